/* SPDX-License-Identifier: MIT */
/* Calls of tools: which run, which wait, and what ends them. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "ctl/ctl.h"
#include "ctl/mcp/page.h"
#include "ctl/mcp/server.h"

#define MS_NS UINT64_C(1000000)
/* Milliseconds between two messages of progress, and for a program that is told to end. */
#define PROGRESS_MS 1000
#define END_MS	    1000
/* Milliseconds behind the end of a lease in which the program that has it ends by itself. */
#define LEASE_MARGIN_MS 5000
/* Milliseconds of a wait that nothing limits. */
#define FOREVER_MS 60000

/* ------------------------------------------------------------------ the list ----------------- */

static void call_free(struct call *c)
{
	child_deinit(&c->child);
	out_deinit(&c->snapshot_note);
	free(c);
}

static void sweep(struct server *s)
{
	for (struct call **at = &s->calls; *at;) {
		struct call *c = *at;

		if (c->state != CALL_DONE) {
			at = &c->next;
			continue;
		}
		*at = c->next;
		call_free(c);
	}
	for (s->end = &s->calls; *s->end;)
		s->end = &(*s->end)->next;
}

static size_t count(const struct server *s, enum call_state state)
{
	size_t n = 0;

	for (const struct call *c = s->calls; c; c = c->next)
		n += c->state == state;
	return n;
}

static size_t count_all(const struct server *s)
{
	size_t n = 0;

	for (const struct call *c = s->calls; c; c = c->next)
		n++;
	return n;
}

static bool is_unanswered(const struct call *c)
{
	return c->state == CALL_WAITS || c->state == CALL_RUNS;
}

static struct call *find_unanswered(const struct server *s, const char *id)
{
	for (struct call *c = s->calls; c; c = c->next)
		if (is_unanswered(c) && !strcmp(c->id, id))
			return c;
	return NULL;
}

bool call_is_known(const struct server *s, const char *id)
{
	return find_unanswered(s, id) != NULL;
}

/* Nobody waits for the call any more: its program ends, and with it its connection to the agent. */
static void give_up(struct call *c)
{
	if (!c->child.pid) {
		c->state = CALL_DONE;
		return;
	}
	c->state = CALL_ENDS;
	c->deadline_ns = clock_deadline_ms(END_MS);
	child_signal(&c->child, SIGTERM);
}

static void refuse(struct server *s, struct call *c, int status, const char *text, const char *next)
{
	answer_refused(s, c, status, text, next);
	give_up(c);
}

void call_cancel(struct server *s, const char *id)
{
	struct call *c = find_unanswered(s, id);

	if (c)
		give_up(c);
}

/* ------------------------------------------------------------------ starting ----------------- */

/* Run the command of a call.  @return 0, or negative: it is answered. */
static int start_child(struct server *s, struct call *c)
{
	struct child_options o = { .program = s->options->program, .argv = c->command.argv,
				   .has_input = c->command.holds };
	const struct kept *kept;
	auto_out struct out why = { 0 };
	int r = 0;

	for (size_t i = 0; r == 0 && i < MCP_READS_MAX && c->command.reads[i]; i++) {
		kept = keep_find(&s->keep, c->command.reads[i], clock_now_ns());
		if (!kept || kept->tool) {
			out_fmt(&why, "there is no snapshot \"%s\", or it is not kept any more", c->command.reads[i]);
			r = -ENOENT;
			break;
		}
		r = fd_memfd_sealed("snapshot", kept->text, kept->size, &o.extra[i]);
		o.n_extra += r == 0;
	}
	if (r == 0)
		r = child_start(&c->child, &o);
	for (size_t i = 0; i < o.n_extra; i++)
		close(o.extra[i]);
	c->child_ns = clock_now_ns();
	if (r == -ENOENT && why.data)
		refuse(s, c, CTL_EXIT_NO_MATCH, why.data, "call snapshot, which names one");
	else if (r < 0)
		refuse(s, c, CTL_EXIT_FAILURE, strerror(-r), NULL);
	return r;
}

/* Let go of what earlier calls of suspend hold of the process.  @return whether there was something. */
static bool let_go(struct server *s, struct call *resume)
{
	uint64_t pid = mcp_arg_get(resume->tool->args, resume->values, "pid")->number;
	bool found = false;

	for (struct call *c = s->calls; c; c = c->next) {
		if (c->state != CALL_HOLDS || mcp_arg_get(c->tool->args, c->values, "pid")->number != pid)
			continue;
		close(c->child.in_fd);
		c->child.in_fd = -1;
		c->state = CALL_ENDS;
		c->deadline_ns = clock_deadline_ms(END_MS);
		if (found)
			continue;
		/* What that program says of the end is the answer. */
		found = true;
		c->state = CALL_RUNS;
		c->tool = resume->tool;
		memcpy(c->values, resume->values, sizeof(c->values));
		c->deadline_ns = resume->deadline_ns;
		c->command.holds = false;
		str_copy(c->id, sizeof(c->id), resume->id);
		str_copy(c->progress, sizeof(c->progress), resume->progress);
		c->revision = resume->revision;
		c->begin_ns = resume->begin_ns;
	}
	return found;
}

static void start(struct server *s, struct call *c)
{
	uint32_t wait_ms = c->command.pid ? stops_wait_ms(&s->stops, c->command.pid, clock_now_ns()) : 0;
	char who[24] = "a process", why[160], next[80];

	if (c->command.pid != STOPS_ANY)
		snprintf(who, sizeof(who), "process %u", c->command.pid);
	if (wait_ms) {
		snprintf(why, sizeof(why), "calls have stopped %s for a twentieth of the last minute", who);
		snprintf(next, sizeof(next), "wait %u ms; stacks, list and doctor stop nothing", wait_ms);
		refuse(s, c, CTL_EXIT_BUDGET, why, next);
		return;
	}
	if (!strcmp(c->tool->name, "resume") && let_go(s, c)) {
		c->state = CALL_DONE;
		return;
	}
	if (c->command.holds && count(s, CALL_HOLDS) >= HOLDS_MAX) {
		refuse(s, c, CTL_EXIT_BUSY, "this server keeps queues of too many processes suspended", "resume one");
		return;
	}
	if (start_child(s, c) == 0)
		c->state = CALL_RUNS;
}

/* ------------------------------------------------------------------ a request ---------------- */

static void keep_token(struct call *c, struct dap_json token)
{
	bool is_token = token.text && token.size < sizeof(c->progress) &&
			(token.text[0] == '"' || token.text[0] == '-' || (token.text[0] >= '0' && token.text[0] <= '9'));

	if (!is_token)
		return;
	memcpy(c->progress, token.text, token.size);
	c->progress[token.size] = '\0';
}

/* Before 2025-11-25 wrong arguments are an error of the protocol; then the assistant is to mend them. */
static void refuse_arguments(struct server *s, const struct call *c, const char *why)
{
	if (c->revision == REVISION_2025_06)
		answer_error(s, c->id, MCP_INVALID_PARAMS, why);
	else
		answer_refused(s, c, 2, why, "mend the arguments and call again");
}

/* Read the arguments.  @return 0 (the command is made), or negative: it is answered. */
static int prepare(struct server *s, struct call *c, struct dap_json arguments)
{
	const struct mcp_input in = { c->tool, c->values, s->options };
	const struct mcp_value *cursor;
	auto_out struct out why = { 0 };

	out_str(&why, "");
	if (mcp_args_read(c->tool->args, arguments, c->values, &why) < 0) {
		refuse_arguments(s, c, why.data ? why.data : "the arguments are wrong");
		return -EINVAL;
	}
	cursor = mcp_arg_get(c->tool->args, c->values, MCP_ARG_CURSOR);
	if (cursor->given) {
		answer_page(s, c, cursor->text);
		return -EALREADY;
	}
	if (mcp_tool_build(&in, &c->command, &why) < 0) {
		refuse_arguments(s, c, why.data ? why.data : "the arguments are wrong");
		return -EINVAL;
	}
	return 0;
}

void call_begin(struct server *s, const struct mcp_message *m, enum revision revision)
{
	char name[40] = "", why[80];
	const struct mcp_tool *tool;
	struct call *c;

	(void)dap_json_str(dap_json_get(m->params, "name"), name, sizeof(name));
	tool = mcp_tool_find(name, s->options);
	if (!tool) {
		str_make_printable(name);
		snprintf(why, sizeof(why), "Unknown tool: %s", name);
		answer_error(s, m->id, MCP_INVALID_PARAMS, why);
		return;
	}
	c = calloc(1, sizeof(*c));
	if (!c) {
		s->failed = -ENOMEM;
		return;
	}
	c->revision = revision;
	c->tool = tool;
	str_copy(c->id, sizeof(c->id), m->id);
	keep_token(c, dap_json_get(dap_json_get(m->params, "_meta"), "progressToken"));
	if (prepare(s, c, dap_json_get(m->params, "arguments")) < 0) {
		call_free(c);
		return;
	}
	if (count_all(s) >= CALLS_MAX) {
		answer_refused(s, c, CTL_EXIT_BUSY, "too many calls are not answered yet", "wait for their answers");
		call_free(c);
		return;
	}
	c->begin_ns = clock_now_ns();
	c->progress_ns = c->begin_ns + PROGRESS_MS * MS_NS;
	c->deadline_ns = clock_deadline_ms(c->command.deadline_ms);
	*s->end = c;
	s->end = &c->next;
}

/* ------------------------------------------------------------------ running ------------------ */

static void tell_progress(struct server *s, struct call *c, uint64_t now_ns)
{
	auto_out struct out o = { 0 };
	uint64_t ms = (now_ns - c->begin_ns) / MS_NS;

	c->progress_ns = now_ns + PROGRESS_MS * MS_NS;
	if (!c->progress[0])
		return;
	out_json_fmt(&o, "{'jsonrpc':'2.0','method':'notifications/progress','params':{'progressToken':");
	out_str(&o, c->progress);
	out_json_fmt(&o, ",'progress':%lu,'total':%u,'message':%s}}", ms, c->command.deadline_ms,
		     c->state == CALL_WAITS ? "waits for other calls" : "runs; the figures are milliseconds");
	server_send(s, &o);
}

static void end_late(struct server *s, struct call *c)
{
	char why[160];

	/* It is freed once its program was reaped, which may take a while on a machine that has much to do. */
	if (c->state == CALL_ENDS || c->state == CALL_HOLDS) {
		c->state = CALL_ENDS;
		c->deadline_ns = clock_deadline_ms(END_MS);
		child_signal(&c->child, SIGKILL);
		return;
	}
	snprintf(why, sizeof(why), "%s was not done in %u ms and was ended, at which the agent lets go of the process",
		 c->tool->name, c->command.deadline_ms);
	refuse(s, c, CTL_EXIT_BUDGET, why, "doctor tells whether something else controls the process");
}

void calls_step(struct server *s)
{
	uint64_t now_ns = clock_now_ns();
	size_t running = count(s, CALL_RUNS);

	for (struct call *c = s->calls; c && !s->failed; c = c->next) {
		if (c->state == CALL_WAITS && running < CALLS_RUNNING) {
			start(s, c);
			running += c->state == CALL_RUNS;
		}
		if (c->state != CALL_DONE && c->deadline_ns <= now_ns)
			end_late(s, c);
		else if (is_unanswered(c) && c->progress_ns <= now_ns)
			tell_progress(s, c, now_ns);
	}
	sweep(s);
}

int calls_left_ms(const struct server *s)
{
	uint64_t at_ns = clock_deadline_ms(FOREVER_MS);

	for (const struct call *c = s->calls; c; c = c->next) {
		at_ns = clock_earlier(at_ns, c->deadline_ns);
		if (is_unanswered(c) && c->progress[0])
			at_ns = clock_earlier(at_ns, c->progress_ns);
	}
	return clock_left_ms(at_ns);
}

size_t calls_list(const struct server *s, struct pollfd *fds)
{
	size_t n = 0;

	for (const struct call *c = s->calls; c; c = c->next, n += CHILD_FDS)
		child_list(&c->child, fds + n);
	return n;
}

/* Remember for how long the process was stopped: as the snapshot says, or else as long as that can have been. */
static void charge(struct server *s, const struct call *c)
{
	uint64_t now_ns = clock_now_ns(), pause_ns = c->command.pause_ms * MS_NS, us;
	uint64_t stopped_ns = now_ns - c->child_ns > pause_ns ? now_ns - c->child_ns - pause_ns : 0;
	const struct dap_json document = { c->child.text.data, c->child.text.size };

	if (!c->command.pid)
		return;
	if (stopped_ns > c->command.stop_ms * MS_NS)
		stopped_ns = c->command.stop_ms * MS_NS;
	if (c->command.document && dap_json_u64(dap_json_get(document, "stopped_us"), &us))
		stopped_ns = us * 1000;
	stops_add(&s->stops, c->command.pid, stopped_ns, now_ns);
}

/* Whether the program has printed the snapshot that was asked for, perhaps not a complete one. */
static bool has_document(const struct call *c)
{
	struct dap_json document;

	return c->command.document && WIFEXITED(c->child.status) && !child_is_too_large(&c->child) &&
	       c->child.text.size > 0 && dap_json_parse(c->child.text.data, c->child.text.size, &document) &&
	       !dap_json_has(dap_json_get(document, "error"));
}

/* Keep the snapshot, and run the command that shows it. */
static void show_document(struct server *s, struct call *c)
{
	struct kept item = { .pid = c->command.pid };
	auto_out struct out json = { 0 };
	const struct kept *kept;

	c->snapshot_status = WEXITSTATUS(c->child.status);
	out_bytes(&c->snapshot_note, c->child.note.data ? c->child.note.data : "", c->child.note.size);
	page_json(&json, c->child.text.data, c->child.text.size);
	kept = out_steal(&json, &item.text, &item.size) == 0 ? keep_add(&s->keep, &item, clock_now_ns()) : NULL;
	child_deinit(&c->child);
	if (!kept) {
		refuse(s, c, CTL_EXIT_FAILURE, "the snapshot is too large to be kept", NULL);
		return;
	}
	str_copy(c->snapshot, sizeof(c->snapshot), kept->name);
	mcp_tool_build_show(s->options, &c->command);
	c->command.reads[0] = c->snapshot;
	(void)start_child(s, c);
}

static void on_end(struct server *s, struct call *c)
{
	charge(s, c);
	if (c->state != CALL_RUNS) {
		c->state = CALL_DONE;
		return;
	}
	if (has_document(c)) {
		show_document(s, c);
		return;
	}
	answer_call(s, c);
	c->state = CALL_DONE;
}

/* A program that stays has printed its result as one line. */
static void on_text(struct server *s, struct call *c)
{
	const struct mcp_value *lease = mcp_arg_get(c->tool->args, c->values, "lease_ms");

	if (c->state != CALL_RUNS || !c->command.holds || !c->child.text.size ||
	    !memchr(c->child.text.data, '\n', c->child.text.size))
		return;
	answer_held(s, c);
	out_reset(&c->child.text);
	out_reset(&c->child.note);
	c->state = CALL_HOLDS;
	c->deadline_ns = clock_deadline_ms(lease->number + LEASE_MARGIN_MS);
}

void calls_serve(struct server *s, const struct pollfd *fds)
{
	size_t n = 0;

	for (struct call *c = s->calls; c && !s->failed; c = c->next, n += CHILD_FDS) {
		if (!c->child.pid)
			continue;
		if (child_serve(&c->child, fds + n)) {
			on_end(s, c);
			continue;
		}
		if (child_is_too_large(&c->child) && c->state == CALL_RUNS)
			refuse(s, c, CTL_EXIT_FAILURE, "the answer is larger than 16 MiB", "ask for less");
		on_text(s, c);
	}
}

void calls_end(struct server *s)
{
	uint64_t deadline_ns = clock_deadline_ms(END_MS);
	struct pollfd fds[CALLS_MAX * CHILD_FDS];
	size_t n;

	for (struct call *c = s->calls; c; c = c->next)
		if (c->state != CALL_DONE && c->state != CALL_ENDS)
			give_up(c);
	sweep(s);
	while (s->calls && clock_left_ms(deadline_ns)) {
		n = calls_list(s, fds);
		if (poll(fds, n, clock_left_ms(deadline_ns)) < 0)
			continue;
		n = 0;
		for (struct call *c = s->calls; c; c = c->next, n += CHILD_FDS)
			if (c->child.pid && child_serve(&c->child, fds + n))
				c->state = CALL_DONE;
		sweep(s);
	}
	for (struct call *c = s->calls; c; c = c->next)
		c->state = CALL_DONE;
	sweep(s);
}
