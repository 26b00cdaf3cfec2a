/* SPDX-License-Identifier: MIT */
#include "ctl/nccl/report.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/out.h"
#include "base/str.h"
#include "protocol/rpc_scan.h"

/* Memory for a report of NCCL_ANSWER_MAX. */
#define REPORT_MEMORY_MAX ((size_t)128 << 20)
/* ncclSuccess and ncclInProgress of nccl.h: the communicator has no error. */
#define NCCL_SUCCESS	 0
#define NCCL_IN_PROGRESS 7
/* Ranks that a line names. */
#define NAMED_MAX 4

/*
 * Operations that all ranks of a communicator launch equally often.  Sends and receives are not among them: how many
 * there are is different for each rank of a pipeline, and accuses nobody.
 */
static const char *const operations[] = { "AllReduce", "AllGather", "ReduceScatter", "Broadcast",
					  "Reduce",    "AlltoAll",  "Scatter",	     "Gather" };
#define OPERATIONS (sizeof(operations) / sizeof(*operations))

struct counts {
	uint64_t of[OPERATIONS];
};

struct reader {
	const struct nccl_who *who;
	struct rpc_arena *arena;
	struct rpc_arena *scratch;
	struct agent_err *err;
	const char *here; /* The address that was last found to be of this host. */
};

static int no_report(struct reader *r, const char *what)
{
	return agent_err_set(r->err, RPC_ERROR_FAILED, EINVAL, "ask NCCL", NULL, "its report makes no sense: %s", what);
}

static int no_memory(struct reader *r)
{
	return agent_err_no_memory(r->err, "ask NCCL");
}

/* ------------------------------------------------------------------ counts ------------------- */

static bool read_number(const char *text, size_t size, uint64_t *ret)
{
	char digits[24];

	if (size >= sizeof(digits))
		return false;
	memcpy(digits, text, size);
	digits[size] = 0;
	return str_to_u64(digits, 0, UINT64_MAX, ret) == 0;
}

/* @return false for what has no place: an operation that is not known here. */
static bool find_operation(const char *name, size_t *ret)
{
	for (size_t i = 0; i < OPERATIONS; i++)
		if (!strcmp(operations[i], name)) {
			*ret = i;
			return true;
		}
	return false;
}

/* An object of names and numbers.  @return whether it is one. */
static bool read_counts(const char *text, struct counts *ret)
{
	struct rpc_scan s;
	enum rpc_token token;

	*ret = (struct counts){ { 0 } };
	rpc_scan_init(&s, text, strlen(text), 1);
	if (rpc_scan_next(&s) != RPC_TOKEN_OBJECT)
		return false;
	for (token = rpc_scan_next(&s); token == RPC_TOKEN_NAME; token = rpc_scan_next(&s)) {
		char name[24];
		uint64_t value;
		size_t at;
		bool is_whole = rpc_scan_string(s.data + s.start, s.pos - s.start, name, sizeof(name));

		if (rpc_scan_next(&s) != RPC_TOKEN_NUMBER || !read_number(s.data + s.start, s.pos - s.start, &value))
			return false;
		if (is_whole && find_operation(name, &at))
			ret->of[at] = value;
	}
	return token == RPC_TOKEN_OBJECT_END;
}

/* ------------------------------------------------------------------ one communicator --------- */

static bool is_own(struct reader *r, const char *host, int64_t pid)
{
	if (pid != (int64_t)r->who->pid)
		return false;
	if (r->here && !strcmp(r->here, host))
		return true;
	if (!r->who->is_here(r->who->data, host))
		return false;
	r->here = host;
	return true;
}

static void add_own(struct rpc_nccl_communicator *to, uint32_t rank)
{
	size_t i = to->n_own++;

	for (; i && to->own[i - 1] > rank; i--)
		to->own[i] = to->own[i - 1];
	to->own[i] = rank;
}

/* @return 0, -ENOMEM; ret->own is empty for a communicator of other processes. */
static int find_own(struct reader *r, const struct rpc_nccl_report_communicator *from, struct rpc_nccl_communicator *to)
{
	size_t n = 0;

	for (size_t i = 0; i < from->n_ranks; i++)
		n += is_own(r, from->ranks[i].host, from->ranks[i].pid);
	for (size_t i = 0; i < from->n_missing_ranks; i++)
		n += is_own(r, from->missing_ranks[i].host, from->missing_ranks[i].pid);
	to->own = rpc_arena_array(r->arena, n, sizeof(*to->own));
	if (!to->own)
		return no_memory(r);
	for (size_t i = 0; i < from->n_ranks; i++)
		if (is_own(r, from->ranks[i].host, from->ranks[i].pid))
			add_own(to, from->ranks[i].rank);
	for (size_t i = 0; i < from->n_missing_ranks; i++)
		if (is_own(r, from->missing_ranks[i].host, from->missing_ranks[i].pid))
			add_own(to, from->missing_ranks[i].rank);
	return 0;
}

/* @return the entry to be filled further, or NULL: there is no room for more. */
static struct rpc_nccl_rank *add_odd(struct reader *r, struct rpc_nccl_communicator *to, uint32_t rank,
				     const char *host, int64_t pid, enum rpc_nccl_rank_state state)
{
	struct rpc_nccl_rank *odd;

	to->odd_count++;
	if (to->n_odd == NCCL_ODD_MAX)
		return NULL;
	odd = &to->odd[to->n_odd++];
	*odd = (struct rpc_nccl_rank){ .rank = rank, .state = state, .host = rpc_arena_strdup(r->arena, host) };
	odd->has_pid = pid > 0 && pid <= INT32_MAX;
	odd->pid = odd->has_pid ? (uint32_t)pid : 0;
	return odd;
}

static void add_states(struct reader *r, const struct rpc_nccl_report_communicator *from,
		       struct rpc_nccl_communicator *to)
{
	for (size_t i = 0; i < from->n_missing_ranks; i++) {
		const struct rpc_nccl_report_missing *m = &from->missing_ranks[i];

		add_odd(r, to, m->rank, m->host, m->pid,
			m->status.considered_dead ? RPC_NCCL_RANK_STATE_DEAD :
			m->status.unresponsive	  ? RPC_NCCL_RANK_STATE_UNRESPONSIVE :
						    RPC_NCCL_RANK_STATE_LEFT);
	}
	for (size_t i = 0; i < from->n_ranks; i++) {
		const struct rpc_nccl_report_rank *k = &from->ranks[i];

		if (k->status.async_error != NCCL_SUCCESS && k->status.async_error != NCCL_IN_PROGRESS)
			add_odd(r, to, k->rank, k->host, k->pid, RPC_NCCL_RANK_STATE_FAILED);
		if (k->status.abort_flag)
			add_odd(r, to, k->rank, k->host, k->pid, RPC_NCCL_RANK_STATE_ABORTED);
	}
}

/* Ranks that have launched an operation less often than others. */
static void add_operation(struct reader *r, const struct rpc_nccl_report_communicator *from,
			  const struct counts *counts, size_t operation, struct rpc_nccl_communicator *to)
{
	uint64_t least = UINT64_MAX, most = 0;

	for (size_t i = 0; i < from->n_ranks; i++) {
		const uint64_t value = counts[i].of[operation];

		least = value < least ? value : least;
		most = value > most ? value : most;
	}
	if (!most)
		return;
	to->operations[to->n_operations++] =
		(struct rpc_nccl_operation){ .name = operations[operation], .least = least, .most = most };
	for (size_t i = 0; i < from->n_ranks && least < most; i++) {
		const struct rpc_nccl_report_rank *k = &from->ranks[i];
		struct rpc_nccl_rank *odd;

		if (counts[i].of[operation] == most)
			continue;
		odd = add_odd(r, to, k->rank, k->host, k->pid, RPC_NCCL_RANK_STATE_BEHIND);
		if (!odd)
			continue;
		odd->operation = operations[operation];
		odd->has_launched = true;
		odd->launched = counts[i].of[operation];
	}
}

static int check(struct reader *r, const struct rpc_nccl_report_communicator *from)
{
	if (from->n_ranks > from->size || from->n_missing_ranks > from->size - from->n_ranks)
		return no_report(r, "a communicator has more ranks than its size");
	for (size_t i = 0; i < from->n_ranks; i++)
		if (from->ranks[i].rank >= from->size)
			return no_report(r, "a rank is none of its communicator");
	for (size_t i = 0; i < from->n_missing_ranks; i++)
		if (from->missing_ranks[i].rank >= from->size)
			return no_report(r, "a rank is none of its communicator");
	return 0;
}

/* @return 1: the process is in it, and it was read; 0; negative with the error. */
static int read_communicator(struct reader *r, const struct rpc_nccl_report_communicator *from,
			     struct rpc_nccl_communicator *ret)
{
	struct counts *counts = rpc_arena_array(r->scratch, from->n_ranks, sizeof(*counts));
	int e = check(r, from);

	*ret = (struct rpc_nccl_communicator){ .hash = from->hash, .ranks = from->size };
	if (e == 0)
		e = find_own(r, from, ret);
	if (e < 0 || !ret->n_own)
		return e;
	ret->operations = rpc_arena_array(r->arena, OPERATIONS, sizeof(*ret->operations));
	ret->odd = rpc_arena_array(r->arena, NCCL_ODD_MAX, sizeof(*ret->odd));
	if (!counts || !ret->operations || !ret->odd)
		return no_memory(r);
	for (size_t i = 0; i < from->n_ranks; i++)
		if (!read_counts(from->ranks[i].collective_counts, &counts[i]))
			return no_report(r, "counts of operations are no numbers");
	add_states(r, from, ret);
	for (size_t i = 0; i < OPERATIONS; i++)
		add_operation(r, from, counts, i, ret);
	return 1;
}

/* ------------------------------------------------------------------ all of them -------------- */

/* Those with ranks that differ come first: others may have no room. */
static void sort(struct rpc_nccl_communicator *list, struct rpc_nccl_communicator *spare, size_t n)
{
	size_t at = 0;

	memcpy(spare, list, n * sizeof(*list));
	for (int odd = 1; odd >= 0; odd--)
		for (size_t i = 0; i < n; i++)
			if ((spare[i].odd_count > 0) == odd)
				list[at++] = spare[i];
}

static int read_all(struct reader *r, const struct rpc_nccl_report *report, struct rpc_nccl_told *ret)
{
	struct rpc_nccl_communicator *list = rpc_arena_array(r->scratch, report->n_communicators, sizeof(*list));
	struct rpc_nccl_communicator *spare = rpc_arena_array(r->scratch, report->n_communicators, sizeof(*list));
	size_t n = 0;

	if (!list || !spare)
		return no_memory(r);
	for (size_t i = 0; i < report->n_communicators; i++) {
		int e = read_communicator(r, &report->communicators[i], &list[n]);

		if (e < 0)
			return e;
		n += (size_t)e;
	}
	sort(list, spare, n);
	*ret = (struct rpc_nccl_told){ .address = "",
				       .version = rpc_arena_strdup(r->arena, report->nccl_version),
				       .communicators_count = (uint32_t)n,
				       .others_count = (uint32_t)(report->n_communicators - n),
				       .confidence = RPC_CONFIDENCE_INFERRED };
	ret->n_communicators = n < NCCL_COMMUNICATORS_MAX ? n : NCCL_COMMUNICATORS_MAX;
	ret->communicators = rpc_arena_array(r->arena, ret->n_communicators, sizeof(*ret->communicators));
	if (!ret->communicators || rpc_arena_error(r->arena))
		return no_memory(r);
	memcpy(ret->communicators, list, ret->n_communicators * sizeof(*list));
	return 0;
}

int nccl_report_read(const char *text, size_t size, const struct nccl_who *who, struct rpc_arena *arena,
		     struct rpc_nccl_told *ret, struct agent_err *err)
{
	auto_rpc_arena struct rpc_arena scratch;
	struct reader r = { .who = who, .arena = arena, .scratch = &scratch, .err = err };
	struct rpc_nccl_report report;
	struct json_object *obj = NULL;
	struct rpc_decoder d;
	int e = rpc_json_parse(text, size, &obj, err);

	rpc_arena_init(&scratch, REPORT_MEMORY_MAX);
	rpc_decoder_init_lenient(&d, "report", &scratch, err);
	d.code = RPC_ERROR_FAILED;
	if (e == 0)
		e = rpc_nccl_report_decode(&d, obj, &report);
	rpc_json_put(obj);
	if (e < 0)
		agent_err_prepend(err, "its report cannot be read");
	return e < 0 ? e : read_all(&r, &report, ret);
}

/* ------------------------------------------------------------------ joining ------------------ */

static bool fits(const struct rpc_nccl_communicator *c, const struct rpc_collective *k)
{
	bool is_own = false;

	for (size_t i = 0; i < c->n_own; i++)
		is_own |= c->own[i] == k->rank;
	return is_own && c->ranks == k->ranks;
}

/* Whether an operation fits no other communicator, and the communicator no other operation. */
static bool is_only(const struct rpc_nccl_told *told, size_t at, const struct rpc_collective *collectives, size_t n,
		    size_t k)
{
	for (size_t i = 0; i < told->n_communicators; i++)
		if (i != at && fits(&told->communicators[i], &collectives[k]))
			return false;
	for (size_t i = 0; i < n; i++)
		if (i != k && fits(&told->communicators[at], &collectives[i]))
			return false;
	return told->communicators_count == told->n_communicators;
}

size_t nccl_report_join(struct rpc_nccl_told *told, const struct rpc_collective *collectives, size_t n)
{
	size_t joined = 0;

	for (size_t i = 0; i < told->n_communicators; i++)
		for (size_t k = 0; k < n; k++) {
			struct rpc_nccl_communicator *c = &told->communicators[i];

			if (!fits(c, &collectives[k]) || !is_only(told, i, collectives, n, k))
				continue;
			c->has_collective = true;
			c->collective = (uint32_t)k;
			joined++;
		}
	return joined;
}

/* ------------------------------------------------------------------ words -------------------- */

/* In the order in which they are told; those that are behind follow by operation. */
static const struct {
	enum rpc_nccl_rank_state state;
	const char *words;
} states[] = {
	{ RPC_NCCL_RANK_STATE_DEAD, "dead" },
	{ RPC_NCCL_RANK_STATE_UNRESPONSIVE, "without an answer" },
	{ RPC_NCCL_RANK_STATE_LEFT, "no longer in it" },
	{ RPC_NCCL_RANK_STATE_FAILED, "with an error" },
	{ RPC_NCCL_RANK_STATE_ABORTED, "being aborted" },
};
#define STATES (sizeof(states) / sizeof(*states))

/* One rank of several: the first ones in full. */
static void put_rank(struct out *o, const struct rpc_nccl_rank *odd, size_t n)
{
	if (n == NAMED_MAX)
		out_str(o, ", ...");
	if (n >= NAMED_MAX)
		return;
	out_fmt(o, "%s%u", n ? ", " : "", odd->rank);
	if (odd->has_pid)
		out_fmt(o, " (pid %u on %s)", odd->pid, odd->host);
}

static void put_state(struct out *o, const struct rpc_nccl_communicator *c, size_t state, bool *begun)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n_odd; i++) {
		if (c->odd[i].state != states[state].state)
			continue;
		if (!n)
			out_fmt(o, "%s%s: rank ", *begun ? "; " : "", states[state].words);
		put_rank(o, &c->odd[i], n++);
	}
	*begun |= n > 0;
}

static bool is_behind(const struct rpc_nccl_rank *odd, const struct rpc_nccl_operation *op)
{
	return odd->state == RPC_NCCL_RANK_STATE_BEHIND && odd->operation && !strcmp(odd->operation, op->name);
}

static void put_behind(struct out *o, const struct rpc_nccl_communicator *c, const struct rpc_nccl_operation *op,
		       bool *begun)
{
	size_t n = 0;

	if (op->least == op->most)
		return;
	out_fmt(o, "%s%s launched %" PRIu64 " times, but ", *begun ? "; " : "", op->name, op->most);
	*begun = true;
	for (size_t i = 0; i < c->n_odd; i++) {
		const struct rpc_nccl_rank *odd = &c->odd[i];

		if (!is_behind(odd, op))
			continue;
		if (n < NAMED_MAX)
			out_fmt(o, "%s%" PRIu64 " by rank ", n ? ", " : "", odd->launched);
		put_rank(o, odd, n < NAMED_MAX ? 0 : n);
		n++;
	}
	/* Others have taken the room of the list. */
	if (!n)
		out_fmt(o, "%" PRIu64 " by others", op->least);
}

void nccl_report_put(struct out *o, const struct rpc_nccl_communicator *c)
{
	bool begun = false;

	for (size_t i = 0; i < STATES; i++)
		put_state(o, c, i, &begun);
	for (size_t i = 0; i < c->n_operations; i++)
		put_behind(o, c, &c->operations[i], &begun);
	if (begun)
		return;
	out_str(o, c->n_operations ? "all ranks have launched " : "no operation was launched");
	for (size_t i = 0; i < c->n_operations; i++)
		out_fmt(o, "%s%" PRIu64 " %s", i ? ", " : "", c->operations[i].most, c->operations[i].name);
	if (c->n_operations)
		out_str(o, ", which does not say that they go on");
}
