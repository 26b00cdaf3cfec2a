/* SPDX-License-Identifier: MIT */
#ifndef CTL_MCP_SERVER_H
#define CTL_MCP_SERVER_H

/**
 * @file server.h
 * What the files of the server share: its state, the calls that run, and how messages are written.
 *
 * server.c has the loop, methods.c the requests, calls.c the calls of tools, answers.c what they answer, and
 * resources.c the documents that are kept.
 */

#include "base/out.h"
#include "ctl/mcp/child.h"
#include "ctl/mcp/keep.h"
#include "ctl/mcp/mcp.h"
#include "ctl/mcp/message.h"
#include "ctl/mcp/stops.h"
#include "ctl/mcp/tools.h"
#include "protocol/rpc_wire.h"

/** Most calls that are not answered, with suspensions that are held, and how many programs run for them at a time. */
#define CALLS_MAX     128
#define CALLS_RUNNING 4
#define HOLDS_MAX     8

/** The revision of the protocol that a request is of. */
enum revision { REVISION_NONE, REVISION_2025_06, REVISION_2025_11, REVISION_2026_07 };

enum call_state {
	CALL_WAITS,   /**< For its turn. */
	CALL_RUNS,
	CALL_HOLDS,   /**< It is answered: its program keeps queues suspended. */
	CALL_ENDS,    /**< Nobody waits for its answer: its program was told to end, and is killed if it does not. */
	CALL_DONE,    /**< To be freed. */
};

/** One call of a tool. */
struct call {
	struct call *next;
	enum call_state state;
	char id[MCP_ID_SIZE];
	enum revision revision;
	const struct mcp_tool *tool;
	struct mcp_value values[MCP_ARGS_MAX];
	struct mcp_command command;
	struct child child;
	char snapshot[KEEP_NAME_SIZE]; /**< The snapshot that was taken and is being shown; "" for none. */
	int snapshot_status;	       /**< Exit status of the command that took it. */
	struct out snapshot_note;      /**< What that said on standard error. */
	char progress[MCP_ID_SIZE];    /**< JSON text of the token; "" for none. */
	uint64_t begin_ns, deadline_ns, progress_ns;
	uint64_t child_ns; /**< When its program was started. */
};

struct server {
	const struct mcp_options *options;
	struct rpc_wire wire;
	struct out out; /**< Not yet written are the bytes from sent on. */
	size_t sent;
	enum revision revision; /**< Of initialize; REVISION_NONE before that. */
	struct call *calls, **end;
	struct keep keep;
	struct stops stops;
	bool eof;
	int failed; /**< -errno. */
};

/* server.c */

/** Append a message, which @p line is but for its line break. */
void server_send(struct server *s, const struct out *line);

/* answers.c: how messages are written. */

/** Begin the result of a request; members follow, each as out_json_fmt() begins one. */
void answer_begin(struct out *o, const char *id, enum revision revision);
/** End a result.  @param meta  JSON text of members of _meta; NULL for none of ours. */
void answer_end(struct server *s, struct out *o, enum revision revision, const char *meta);
/** Answer with an error. @param id  "" where it is not known. */
void answer_error(struct server *s, const char *id, int code, const char *text);
/** The same with data, which is JSON text. */
void answer_error_data(struct server *s, const char *id, int code, const char *text, const char *data);
/** Answer a call with an error that the assistant is to read. @param next  What to do; NULL: that is not known. */
void answer_refused(struct server *s, const struct call *c, int status, const char *text, const char *next);
/** Answer a call whose program has ended. */
void answer_call(struct server *s, struct call *c);
/** Answer a call with a page of what is kept. */
void answer_page(struct server *s, const struct call *c, const char *cursor);
/** Answer a call of suspend, whose program has printed its result and goes on. */
void answer_held(struct server *s, struct call *c);

/* calls.c: calls of tools. */

/** Begin the call that a request asks for, or answer it. */
void call_begin(struct server *s, const struct mcp_message *m, enum revision revision);
/** Give up the call of an id, which is not answered then. */
void call_cancel(struct server *s, const char *id);
/** Whether a call of that id is not answered yet. */
bool call_is_known(const struct server *s, const char *id);
/** Start what waits, tell of progress, and end what is late. */
void calls_step(struct server *s);
/** When calls_step() has something to do although nothing arrives; in milliseconds, as poll() takes them. */
int calls_left_ms(const struct server *s);
/** Fill CHILD_FDS places for each call.  @return how many places. */
size_t calls_list(const struct server *s, struct pollfd *fds);
/** Take what has arrived for the calls that calls_list() has listed. */
void calls_serve(struct server *s, const struct pollfd *fds);
/** End all calls, and wait for their programs for a moment. */
void calls_end(struct server *s);

/* methods.c */

/** Do what a message asks for. */
void method_run(struct server *s, const struct mcp_message *m);

/* resources.c */

/** Answer resources/list, resources/templates/list and resources/read. */
void resources_list(struct server *s, const struct mcp_message *m, enum revision revision);
void resources_templates(struct server *s, const struct mcp_message *m, enum revision revision);
void resources_read(struct server *s, const struct mcp_message *m, enum revision revision);

#endif /* CTL_MCP_SERVER_H */
