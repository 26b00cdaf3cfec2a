/* SPDX-License-Identifier: MIT */
#include "ctl/verbs/wait/told.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "ctl/nccl/ask.h"
#include "ctl/nccl/place.h"
#include "ctl/nccl/report.h"
#include "ctl/verbs/wait/page.h"

#define COMM_MAX 64
/* Communicators that are shown without --verbose. */
#define SHOWN	 2

/* ------------------------------------------------------------------ the process -------------- */

/* The agent may number processes otherwise, if it is in another namespace: its answer has to be about this one. */
static bool is_process(int proc_fd, const struct rpc_session_attach_result *s)
{
	auto_free char *comm = NULL;
	size_t size;
	struct stat st;

	if (fstat(proc_fd, &st) < 0 || fd_read_file_at(proc_fd, "comm", COMM_MAX, &comm, &size) < 0)
		return false;
	comm[size ? size - 1 : 0] = 0;
	/* That of a process that is not dumpable is root's. */
	return (st.st_uid == s->uid || st.st_uid == 0) && !strcmp(comm, s->comm);
}

void told_open(struct ctl *c, struct told_by *ret)
{
	char path[32];

	*ret = (struct told_by){ .proc_fd = -1 };
	snprintf(path, sizeof(path), "/proc/%u", c->session.pid);
	ret->proc_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (ret->proc_fd < 0) {
		agent_err_set(&ret->err, RPC_ERROR_FAILED, errno, "ask NCCL", NULL, "%s: %s", path, strerror(errno));
	} else if (!is_process(ret->proc_fd, &c->session)) {
		agent_err_set(&ret->err, RPC_ERROR_FAILED, ESRCH, "ask NCCL", NULL,
			      "%s is another process than the agent's: it numbers processes otherwise", path);
		told_close(ret);
	}
}

void told_close(struct told_by *t)
{
	if (t->proc_fd >= 0)
		close(t->proc_fd);
	t->proc_fd = -1;
}

/* ------------------------------------------------------------------ asking ------------------- */

static bool is_here(void *data, const char *host)
{
	return nccl_is_here(data, host);
}

static int ask(struct ctl *c, struct nccl_place *p, uint64_t deadline_ns, struct rpc_nccl_told *ret,
	       struct agent_err *err)
{
	const struct nccl_who who = { .pid = p->pid, .is_here = is_here, .data = p };
	auto_out struct out text = { 0 };
	int r = nccl_ask(p, deadline_ns, &text, err);

	if (r == 0)
		r = nccl_report_read(text.data, text.size, &who, &c->arena, ret, err);
	if (r < 0)
		return r;
	ret->address = rpc_arena_strdup(&c->arena, p->address.text);
	if (!ret->communicators_count && ret->others_count == 1)
		return agent_err_set(err, RPC_ERROR_FAILED, ESRCH, "ask NCCL", NULL,
				     "the only communicator that is told of at %s does not have this process, which is %u to itself",
				     p->address.text, p->pid);
	if (!ret->communicators_count)
		return agent_err_set(err, RPC_ERROR_FAILED, ESRCH, "ask NCCL", NULL,
				     "none of the %u communicators that are told of at %s has this process, which is %u to itself",
				     ret->others_count, p->address.text, p->pid);
	return ret->address ? 0 : agent_err_no_memory(err, "ask NCCL");
}

/* @return until when NCCL may be asked; 0 with err: that is over. */
static uint64_t ask_until(const struct told_by *t, struct agent_err *err)
{
	const uint64_t until_ns = clock_deadline_ms(NCCL_ASK_MS);

	if (!t->deadline_ns || t->deadline_ns >= until_ns)
		return until_ns;
	if (clock_left_ms(t->deadline_ns))
		return t->deadline_ns;
	agent_err_set(err, RPC_ERROR_FAILED, ETIMEDOUT, "ask NCCL", NULL, "it was not asked: no time was left before the deadline");
	return 0;
}

int told_ask(struct ctl *c, const struct told_by *t, struct rpc_why_get_result *r, const char **ret_missing)
{
	struct nccl_place place = { .net_fd = -1 };
	struct agent_err err = t->err;
	int e = t->proc_fd < 0 ? -ESRCH : nccl_place_find(t->proc_fd, &place, &err);
	const uint64_t until_ns = e == 0 ? ask_until(t, &err) : 0;

	*ret_missing = NULL;
	if (e == 0)
		e = until_ns ? ask(c, &place, until_ns, &r->told_by_nccl, &err) : -ETIMEDOUT;
	nccl_place_deinit(&place);
	if (e < 0) {
		r->told_by_nccl = (struct rpc_nccl_told){ 0 };
		*ret_missing = rpc_arena_strdup(&c->arena, err.message);
		return *ret_missing ? 0 : ctl_fail(c, ENOMEM, "the document");
	}
	r->has_told_by_nccl = true;
	nccl_report_join(&r->told_by_nccl, r->collectives, r->n_collectives);
	return 0;
}

/* ------------------------------------------------------------------ words -------------------- */

static const char *told_text(struct ctl *c, const struct rpc_why_get_result *r, const struct rpc_nccl_communicator *k)
{
	auto_out struct out text = { 0 };

	out_fmt(&text, "says of communicator 0x%" PRIx64 " of %u, in which this is rank %u%s", k->hash, k->ranks, k->own[0],
		k->n_own > 1 ? " and others" : "");
	if (k->has_collective && k->collective < r->n_collectives)
		out_fmt(&text, " and its %s are those of %s %u", vendor_word(r->vendor, "waves"),
			vendor_word(r->vendor, "queue"), r->collectives[k->collective].queue_id);
	out_str(&text, ": ");
	nccl_report_put(&text, k);
	return out_error(&text) ? "" : rpc_arena_strdup(&c->arena, text.data);
}

static const char *more_text(struct ctl *c, size_t n)
{
	return rpc_arena_printf(&c->arena, "(%zu more communicator%s of NCCL%s)", n, n == 1 ? "" : "s",
				c->verbose ? "" : ": --verbose");
}

static const char *rest_text(struct ctl *c, const struct rpc_why_get_result *r, size_t n)
{
	return rpc_arena_printf(&c->arena, "(of what the %s execute, %zu fit%s none of NCCL's communicators, or several)",
				vendor_word(r->vendor, "waves"), n, n == 1 ? "s" : "");
}

void told_show(struct ctl *c, const struct rpc_why_get_result *r)
{
	const struct rpc_nccl_told *told = &r->told_by_nccl;
	const size_t shown = c->verbose || told->n_communicators < SHOWN ? told->n_communicators : SHOWN;
	const char *confidence = show_name(&c->arena, &rpc_confidence_enum, told->confidence);
	size_t joined = 0;

	if (!r->has_told_by_nccl)
		return;
	for (size_t i = 0; i < told->n_communicators; i++) {
		joined += told->communicators[i].has_collective;
		if (i < shown)
			why_line(c, "NCCL", told_text(c, r, &told->communicators[i]), confidence);
	}
	if (told->communicators_count > shown)
		why_line(c, "", more_text(c, told->communicators_count - shown), NULL);
	if (r->n_collectives > joined)
		why_line(c, "", rest_text(c, r, r->n_collectives - joined), NULL);
}
