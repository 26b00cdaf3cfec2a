/* SPDX-License-Identifier: MIT */
#ifndef CTL_H
#define CTL_H

/**
 * @file ctl.h
 * gpu-agentctl: what every subcommand works with.
 *
 * To add a verb: verbs/NAME.c with `const struct ctl_verb ctl_verb_NAME`, one line in the list below,
 * a section in docs/man/gpu-agentctl.1 and a line in gpu-agentctl.bash; ctl/check-verbs fails
 * until all of them are there.
 *
 * A verb appends its data to ctl.output and returns an exit status, or a negative value after it
 * (or what it called) filled ctl.err.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/argv.h"
#include "ctl/document/source.h"
#include "ctl/terminal/output.h"
#include "ctl/terminal/table.h"
#include "rpc_client_gen.h"

/** Exit statuses that no error code has; see EXIT STATUS in gpu-agentctl(1). */
#define CTL_EXIT_FAILURE        1
#define CTL_EXIT_NO_MATCH       3
#define CTL_EXIT_NOT_DEBUGGABLE 5
#define CTL_EXIT_BUSY           6
#define CTL_EXIT_BUDGET         7
#define CTL_EXIT_PARTIAL        8
#define CTL_EXIT_NO_PROGRESS    10
#define CTL_EXIT_SIGNAL         128

struct corefile_file;

struct ctl {
	const char *verb;

	/* Options every verb has, as given. */
	const char *json_option, *color_option, *timeout_option, *max_stop_option, *socket_option;
	bool no_pager, no_legend, quiet, verbose, help, version;

	uint32_t timeout_ms;  /**< Of each request. */
	uint32_t max_stop_ms; /**< 0: no limit asked for. */
	bool take, force; /**< ctl_attach() takes the lease from a silent holder; from any. */
	char socket[108];
	bool color_messages;

	struct output output;
	struct rpc_arena arena;
	const char *core; /**< Given instead of a process; then ctl_attach() opens it. */
	struct source_core source;
	struct rpc_client *client;
	struct rpc_session_attach_result session; /**< Valid while attached. */
	bool attached;
	struct agent_err err;
	struct out err_json; /**< The agent's own error object, when it sent the failure. */
};

/** Requests wait this long unless --timeout says otherwise. */
#define CTL_TIMEOUT_MS 30000

struct ctl_verb {
	const char *name;
	const char *args;    /**< For help: `PID ADDRESS SIZE`; "" if there are none. */
	const char *summary; /**< One line. */
	const struct argv_option *options; /**< NULL if it has none of its own. */
	int min_args, max_args;
	bool takes_core; /**< Its first argument is a process, and `--core FILE` may stand for it. */
	int (*run)(struct ctl *c, int argc, char **argv);
};

/* clang-format off */
#define CTL_VERBS(X)                                                                               \
	X(list) X(doctor) X(snapshot) X(analyze) X(diff) X(merge) X(watch) X(devices) X(queues)    \
	X(attach) X(detach) X(suspend) X(resume) X(watchpoint) X(waves) X(registers)                \
	X(memory) X(disassemble) X(dump) X(cores) X(hooks) X(events) X(rpc) X(dap) X(status) X(version)
/* clang-format on */

#define CTL_DECLARE(name) extern const struct ctl_verb ctl_verb_##name;
CTL_VERBS(CTL_DECLARE)
#undef CTL_DECLARE

/* ctl.c: messages and the connection. */

static inline bool ctl_is_json(const struct ctl *c)
{
	return c->output.json != OUTPUT_JSON_OFF;
}
/** Message on stderr unless -q. */
void ctl_note(const struct ctl *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/** Message on stderr with -v. */
void ctl_debug(const struct ctl *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/** Fill err with a mistake in the command line.  @return -EINVAL. */
int ctl_usage(struct ctl *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/** Fill err with a failure on this side.  @param err_no positive.  @return -err_no. */
int ctl_fail(struct ctl *c, int err_no, const char *op);
/** corefile_file_open_path(), with err filled; a signal leaves nothing of it.  One at a time. */
int ctl_make_file(struct ctl *c, const char *path, mode_t mode, bool replace,
		  struct corefile_file *ret);
void ctl_close_file(struct corefile_file *f);
/** Report err: message and hint on stderr, and the error document in JSON mode. */
void ctl_report(struct ctl *c);

/** Connect unless connected. */
int ctl_connect(struct ctl *c);
/**
 * To be put around a call: remembers the error object that the agent sent.
 *	r = ctl_called(c, rpc_client_gpu_queues(c->client, &p, &c->arena, &result, &c->err));
 * @return r
 */
int ctl_called(struct ctl *c, int r);
/** Connect, and attach to or join. */
int ctl_attach(struct ctl *c, const char *pid_text, bool control);
/** Leave the session.  The verb has its data by then: a failure is only a message. */
void ctl_detach(struct ctl *c);
/** Append the last call's result as a document. */
int ctl_print_result(struct ctl *c);
/** Append rows. */
int ctl_print_table(struct ctl *c, const struct table *t);

/* args.c: arguments to values.  @p name is what help calls the argument.  0 or ctl_usage(). */

int args_pid(struct ctl *c, const char *text, uint32_t *ret);
int args_u32(struct ctl *c, const char *name, const char *text, uint32_t min, uint32_t max,
	     uint32_t *ret);
/** `512`, `0x200`, `4K`, `64M`, `1G`. */
int args_size(struct ctl *c, const char *name, const char *text, uint64_t max, uint64_t *ret);
int args_address(struct ctl *c, const char *name, const char *text, uint64_t *ret);
int args_duration(struct ctl *c, const char *name, const char *text, uint32_t max_ms,
		  uint32_t *ret_ms);
/** The same, but a plain number is milliseconds. */
int args_ms(struct ctl *c, const char *name, const char *text, uint32_t max_ms, uint32_t *ret_ms);
/**
 * `QUEUE:UNIT:INDEX`, or `QUEUE:UNIT:DISPATCH@X,Y,Z/N` for what the wave works on, as tables show it.
 * Arrays live in the arena.
 */
int args_wave(struct ctl *c, const char *name, const char *text, struct rpc_wave_name *ret);
/** `3` or `3-8`. */
int args_range(struct ctl *c, const char *name, const char *text, uint32_t max, uint32_t *ret_first,
	       uint32_t *ret_last);
/** `0,1,7`; the array lives in the arena. */
int args_u32_list(struct ctl *c, const char *name, const char *text, uint32_t **ret, size_t *ret_n);

/* show.c: the tables that several verbs print. */

int show_devices(struct ctl *c, const struct rpc_device *devices, size_t n);
int show_queues(struct ctl *c, const struct rpc_queue *queues, size_t n);
int show_groups(struct ctl *c, const struct rpc_group *groups, size_t n);
int show_waves(struct ctl *c, const struct rpc_wave *waves, size_t n);
/** Header, groups, devices and queues on one page; verbs/snapshot.c has it. */
int show_snapshot(struct ctl *c, const struct rpc_gpu_snapshot_result *s);
/** An exception of waves that have exited, in a line. */
void show_exited(struct ctl *c, const struct rpc_exited_exception *e);
int show_queue_results(struct ctl *c, const struct rpc_queue_result *results, size_t n);
int show_watchpoints(struct ctl *c, const struct rpc_watchpoint *watchpoints, size_t n);
int show_sessions(struct ctl *c, const struct rpc_session_info *sessions, size_t n);
/** `queues 0,1, 3.2 s left`. */
const char *show_suspension(struct rpc_arena *a, const struct rpc_suspension *s);
/** `amd`, or the number of a vendor that this client does not know. */
const char *show_name(struct rpc_arena *a, const struct rpc_enum *e, int64_t value);
/** User name, or the number. */
const char *show_user(struct rpc_arena *a, uint32_t uid);
/** Names joined by commas; NULL if there are none. */
const char *show_exceptions(struct rpc_arena *a, const enum rpc_exception *list, size_t n);

/* show_registers.c */

/** One wave: what it does, then its registers.  @param first, last  Lanes of vector registers. */
int show_registers(struct ctl *c, const struct rpc_wave_registers *r, uint32_t first,
		   uint32_t last);

#endif /* CTL_H */
