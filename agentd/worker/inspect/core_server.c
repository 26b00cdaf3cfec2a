/* SPDX-License-Identifier: MIT */
#include "agentd/worker/inspect/core_server.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agentd/privileges.h"
#include "agentd/sandbox.h"
#include "agentd/worker/host/core.h"
#include "agentd/worker/session/session.h"
#include "agentd/worker/target/core_file.h"
#include "agentd/worker/wait/wait.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/out.h"
#include "base/str.h"
#include "corefile/file.h"
#include "protocol/rpc_message.h"
#include "protocol/rpc_wire.h"

#define SESSION	     "core"
#define READ_BYTES   65536
/* A compressed core may expand to so much, but leaves a part of the file system that it is expanded in. */
#define EXPANDED_MAX (UINT64_C(1) << 40)
#define KEEP_PERCENT 5

/* The one session with its core. */
struct server {
	struct session session; /* The handlers need only its target; the rest stays zero. */
	struct corefile_map map;
	struct core_source source; /* The same bytes, for what reads threads. */
	struct agent_err open_err; /* The answer to each call if there is no target. */
};

/* ------------------------------------------------------------------ opening ------------------ */

static const char *scratch_directory(void)
{
	const char *dir = getenv("TMPDIR");

	return str_is_empty(dir) ? "/var/tmp" : dir;
}

/*
 * Make a file without a name into which a compressed core can be expanded, before the sandbox
 * forbids that.
 * @return a descriptor, or -errno.
 */
static int open_scratch(void)
{
	int fd = open(scratch_directory(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	char path[PATH_MAX];

	if (fd >= 0)
		return fd;
	/* Some file systems have no O_TMPFILE. */
	snprintf(path, sizeof(path), "%s/.gpu-agent-core.XXXXXX", scratch_directory());
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	unlink(path);
	return fd;
}

/* Root becomes the owner of the core, who may read the files that the dead process had loaded. */
static int give_up_rights(const struct stat *st)
{
	bool is_root = geteuid() == 0;
	int r = privileges_become(is_root ? st->st_uid : geteuid(), is_root ? st->st_gid : getegid());

	if (r == 0)
		r = sandbox_core();
	/* This process ends with its parent; a change of user resets that, so it is set last. */
	return r == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ? -errno : r;
}

/* Say why the core cannot be opened.  @param scratch  What open_scratch() returned. */
static int refuse(struct server *s, const char *name, int scratch, int r)
{
	const char *why = r == -EINVAL	? "not a regular file, or an empty one" :
			  r == -EBADMSG ? "its compression (zstd or gzip) is damaged or cut short" :
			  r == -EFBIG	? "it expands to more than 1 TiB" :
			  r == -ENOMEM	? "there is no memory for it, or for the window of its compression" :
			  r == -EBADF	? "compressed, and no file to expand it into can be made in " :
			  r == -ENOSPC	? "compressed, and there is no room to expand it in " :
					  strerror(-r);
	bool place = r == -EBADF || r == -ENOSPC;
	char offset[32] = "";

	if (r == -EBADMSG)
		snprintf(offset, sizeof(offset), "offset 0x%llx: ", (unsigned long long)s->map.damaged_at);
	return agent_err_set(&s->open_err, RPC_ERROR_FAILED, r == -EBADF ? -scratch : -r,
			     "read the core", place ? "$TMPDIR names another directory" : NULL,
			     "%.120s: %s%s%.120s%s%s", name, offset, why, place ? scratch_directory() : "",
			     r == -EBADF ? ": " : "", r == -EBADF ? strerror(-scratch) : "");
}

static int open_core(struct server *s, const char *name)
{
	auto_close int scratch = open_scratch();
	static const struct worker_options options;
	struct core_bytes bytes = { .name = name };
	uint64_t room = EXPANDED_MAX;
	struct stat st;
	int r = fstat(STDIN_FILENO, &st) < 0 ? -errno : 0;

	if (scratch >= 0 && corefile_space(scratch, KEEP_PERCENT, &room) == 0 && room > EXPANDED_MAX)
		room = EXPANDED_MAX;
	if (r == 0)
		r = give_up_rights(&st);
	if (r < 0)
		return agent_err_set(&s->open_err, RPC_ERROR_FAILED, -r, "drop privileges", NULL,
				     "cannot enter the sandbox");
	r = corefile_map_open(STDIN_FILENO, scratch, room, &s->map);
	if (r == -EFBIG && room < EXPANDED_MAX)
		r = -ENOSPC;
	if (r < 0)
		return refuse(s, name, scratch, r);
	bytes.data = s->map.data;
	bytes.size = s->map.size;
	bytes.time_us = (uint64_t)st.st_mtim.tv_sec * 1000000 + (uint64_t)st.st_mtim.tv_nsec / 1000;
	s->source = (struct core_source){ bytes.data, bytes.size, name, bytes.time_us };
	return target_core_create(&options, &bytes, &s->session.target, &s->open_err);
}

/* ------------------------------------------------------------------ calls -------------------- */

static void attach(const struct server *s, struct out *reply)
{
	const struct target *t = s->session.target;
	const struct rpc_process *p = &t->origin->process;
	const struct rpc_session_attach_result result = {
		.session = SESSION,
		.pid = p->pid,
		.comm = p->comm,
		.uid = p->uid,
		.vendor = t->ops->vendor,
		.runtime = t->runtime,
	};

	rpc_session_attach_result_encode(reply, &result);
}

/* @return 0, or negative with @p err. */
static int call(struct server *s, struct rpc_arena *a, const struct rpc_request *q,
		struct out *reply, struct agent_err *err)
{
	int m = rpc_method_find(q->method);

	if (m < 0)
		return agent_err_set(err, RPC_ERROR_METHOD_NOT_FOUND, 0, NULL, NULL,
				     "there is no method %s", q->method);
	if (m == RPC_METHOD_HOST_STACKS && s->source.data)
		return core_stacks(&s->source, a, q->params ? q->params : "", q->params_size, reply, err);
	if (!s->session.target) {
		*err = s->open_err;
		return -EIO;
	}
	if (m == RPC_METHOD_SESSION_ATTACH) {
		attach(s, reply);
		return 0;
	}
	if (m == RPC_METHOD_SESSION_DETACH) {
		out_str(reply, "{\"ended\":true}");
		return 0;
	}
	s->session.call = (struct ipc_head){ .number = (uint32_t)m };
	return rpc_session_dispatch(&session_handlers, &s->session, NULL, a, (enum rpc_method)m,
				    q->params ? q->params : "", q->params_size, reply, err);
}

static int answer(struct server *s, const struct rpc_request *q, struct out *text)
{
	auto_rpc_arena struct rpc_arena arena;
	auto_out struct out result;
	struct agent_err err = { 0 };
	int r = -EINVAL;

	rpc_arena_init(&arena, 0);
	out_init(&result, 0);
	if (q->code)
		rpc_request_error(q, &err);
	else
		r = call(s, &arena, q, &result, &err);
	if (r == 0 && out_error(&result))
		r = agent_err_set(&err, RPC_ERROR_INTERNAL, -out_error(&result), NULL, NULL,
				  "the reply does not fit into memory");
	if (!rpc_request_wants_reply(q))
		return 0;
	if (r == 0)
		rpc_message_result(text, q->id, q->id_size, result.data, result.size);
	else
		rpc_message_error(text, q->id, q->id_size, &err);
	return out_error(text);
}

/* Answer one message.  @return 0, -errno if the client is gone or a message is too long. */
static int serve(struct server *s, enum rpc_wire_mode mode, const char *body, size_t size)
{
	auto_out struct out text, framed;
	struct rpc_message message;
	struct agent_err err = { 0 };
	int r = rpc_message_parse(body, size, &message, &err);

	out_init(&text, 0);
	out_init(&framed, 0);
	if (r == 0 && message.batch)
		r = agent_err_set(&err, RPC_ERROR_INVALID_REQUEST, 0, NULL, NULL,
				  "a core takes no batches");
	if (r < 0)
		rpc_message_error(&text, NULL, 0, &err);
	else
		r = answer(s, &message.requests[0], &text);
	rpc_message_deinit(&message);
	if (!text.size)
		return out_error(&text);
	rpc_wire_write(&framed, mode, text.data, text.size);
	return out_error(&framed) ? out_error(&framed) :
				    fd_write_all(STDOUT_FILENO, framed.data, framed.size);
}

static int serve_all(struct server *s)
{
	auto_free char *chunk = malloc(READ_BYTES);
	struct rpc_wire wire;
	int r = chunk ? 0 : -ENOMEM;

	rpc_wire_init(&wire, 0);
	while (r == 0) {
		ssize_t n = read(STDOUT_FILENO, chunk, READ_BYTES);
		const char *body;
		size_t size;
		int event = 0;

		if (n <= 0)
			break;
		r = rpc_wire_feed(&wire, chunk, (size_t)n);
		while (r == 0 && (event = rpc_wire_next(&wire, &body, &size)) > 0)
			r = event == RPC_WIRE_BODY ? serve(s, wire.mode, body, size) : -EMSGSIZE;
		if (event < 0)
			r = event;
	}
	rpc_wire_deinit(&wire);
	return r;
}

int core_server_run(const char *name)
{
	struct server s = { .session = {
				    .deadline = { .fd = -1 }, .store_fd = -1, .call_fd = -1 } };
	int r;

	/* The deadline's alarm protects targets that must not stop for long; a core is none. */
	signal(SIGALRM, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	open_core(&s, name);
	r = serve_all(&s);
	wait_history_free(s.session.looks);
	target_destroy(s.session.target);
	corefile_map_close(&s.map);
	return r < 0;
}
