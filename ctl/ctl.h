/* SPDX-License-Identifier: MIT */
#ifndef CTL_H
#define CTL_H

/**
 * @file ctl.h
 * gpu-agentctl: what every subcommand works with.
 *
 * To add a verb: verbs/NAME.c with `const struct ctl_verb ctl_verb_NAME`, one line in the list
 * below, a page in docs/man/verbs/ and a line in docs/man/gpu-agentctl.1; ctl/check-verbs fails until
 * all of them are there.
 * Completion for shells comes from the same tables (complete.h).
 *
 * A verb appends its data to ctl.output and returns an exit status, or a negative value after it
 * (or what it called) filled ctl.err.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/argv.h"
#include "ctl/document/gpu_names.h"
#include "ctl/document/source.h"
#include "ctl/document/vendor_words.h"
#include "ctl/terminal/output.h"
#include "ctl/terminal/table.h"
#include "rpc_client_gen.h"

/** Exit statuses that no error code has; see EXIT STATUS in gpu-agentctl(1). */
#define CTL_EXIT_FAILURE        1   /**< Something failed, and no other status says what. */
#define CTL_EXIT_NO_MATCH       3   /**< There is no such process, session or record. */
#define CTL_EXIT_NOT_PERMITTED  4   /**< The user may not do that to the process. */
#define CTL_EXIT_NOT_DEBUGGABLE 5   /**< The process cannot be debugged. */
#define CTL_EXIT_BUSY           6   /**< Another client or debugger is in the way. */
#define CTL_EXIT_BUDGET         7   /**< The stop budget was used up before the work was done. */
#define CTL_EXIT_PARTIAL        8   /**< There is a result, but not all of it. */
#define CTL_EXIT_NO_PROGRESS    10  /**< The compared process is hung, or something waits for what does not come. */
#define CTL_EXIT_NO_CAUSE       11  /**< Something is stuck, and it is not known why. */
#define CTL_EXIT_SIGNAL         128 /**< Plus the number of the signal that ended the verb. */

struct corefile_file;

/** One run of the program; main() owns it. */
struct ctl {
	const char *verb; /**< Name of the verb, or NULL while it is not known. */

	/* The options that every verb has, as they were given. */
	const char *json_option, *color_option, *timeout_option, *max_stop_option, *socket_option;
	bool no_pager, no_legend, quiet, verbose, help, version;

	uint32_t timeout_ms;  /**< Time for each request. */
	uint64_t turn_end_ns; /**< When waiting for our turn is over; 0: it has not begun. */
	uint32_t max_stop_ms; /**< Longest stop of queues; 0: no limit was asked for. */
	uint32_t max_look_ms; /**< The same as the agent accepts it for one look; 0: as it likes. */
	bool take, force; /**< ctl_attach() takes the lease from a silent holder; from any. */
	char socket[108]; /**< Path of the agent's socket, as long as sockaddr_un has room. */
	bool color_messages; /**< Standard error gets colours. */

	struct output output;
	struct rpc_arena arena; /**< Everything that the agent sent; freed at the end. */
	const char *core; /**< Core file given instead of a process; ctl_attach() opens it. */
	struct source_core source; /**< The program that reads the core, while there is one. */
	struct rpc_client *client; /**< NULL until ctl_connect(). */
	struct rpc_session_attach_result session; /**< Valid while attached. */
	bool attached;
	bool exited; /**< The session is over, because its process ended. */
	struct gpu_names gpus; /**< GPUs of what is shown; ctl_name_gpus() or a document fills it. */
	enum rpc_vendor vendor; /**< Whose words tables use: of the session, or of the document. */
	struct agent_err err; /**< Why the verb failed. */
	struct out err_json; /**< The agent's own error object, when the agent sent the failure. */
};

/** Milliseconds that a request may take unless --timeout says otherwise. */
#define CTL_TIMEOUT_MS 30000

/** What the program knows of a verb; see the checklist above. */
struct ctl_verb {
	const char *name;
	const char *alias;   /**< Another name, where NVIDIA's users know the thing by it; or NULL. */
	const char *args;    /**< For help: `PID ADDRESS SIZE`; "" if there are none. */
	const char *summary; /**< One line. */
	const struct argv_option *options; /**< NULL if it has none of its own. */
	int min_args, max_args; /**< How many arguments may follow the verb. */
	bool takes_core; /**< The first argument is a process; `--core FILE` may stand for it. */
	/**
	 * Do the work.
	 * @param argv  Arguments without the verb and the options; argv[0] is the first.
	 * @return exit status, or negative with ctl.err.
	 */
	int (*run)(struct ctl *c, int argc, char **argv);
};

/* clang-format off */
#define CTL_VERBS(X) \
	X(list) X(doctor) X(snapshot) X(why) X(stacks) X(analyze) X(diff) X(merge) X(job) X(report) \
	X(watch) X(record) X(top) X(devices) X(queues) X(attach) X(detach) X(suspend) X(resume) X(watchpoint) X(waves) \
	X(lanes) X(registers) X(variables) X(print) X(memory) X(disassemble) X(dump) X(cores) X(hooks) \
	X(events) X(rpc) X(dap) X(mcp) X(status) X(metrics) X(help) X(version)
/* clang-format on */

/* Declares the object of each verb. */
#define CTL_DECLARE(name) extern const struct ctl_verb ctl_verb_##name;
CTL_VERBS(CTL_DECLARE)
#undef CTL_DECLARE

/* main.c: the verbs. */

/** Find a verb by its name or its alias.  @return it, or NULL with err, which names a similar one. */
const struct ctl_verb *ctl_find_verb(struct ctl *c, const char *name);
/** Print the help of a verb, or of the program when it is NULL, on standard output. */
void ctl_print_help(const struct ctl_verb *verb);

/* ctl.c: messages and the connection. */

/** Whether data is to be printed as JSON. */
static inline bool ctl_is_json(const struct ctl *c)
{
	return c->output.json != OUTPUT_JSON_OFF;
}
/** Print a message on standard error unless -q was given. */
void ctl_note(const struct ctl *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/** Print a message on standard error if -v was given. */
void ctl_debug(const struct ctl *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/** Fill err with a mistake in the command line.  @return -EINVAL. */
int ctl_usage(struct ctl *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/**
 * Fill err with a failure on this side.
 * @param err_no  A positive errno.
 * @param op      What failed: a few words, or the name of a file.
 * @return -err_no.
 */
int ctl_fail(struct ctl *c, int err_no, const char *op);
/**
 * Begin a file that appears under its name when it is complete; see corefile_file_open_path().
 * A signal that ends the program leaves nothing of the file.  There may be one such file at a time.
 * @param ret  Release with ctl_close_file().
 * @return 0, or negative with err.
 */
int ctl_make_file(struct ctl *c, const char *path, mode_t mode, bool replace,
		  struct corefile_file *ret);
/** Close a file of ctl_make_file(); what was not committed is removed. */
void ctl_close_file(struct corefile_file *f);
/** Report err: message and hint on standard error, and the error document in JSON mode. */
void ctl_report(struct ctl *c);

/**
 * Connect to the agent, or open the core file, unless that was done.
 * @return 0, negative with err.
 */
int ctl_connect(struct ctl *c);
/**
 * Remember the error object that the agent sent.  Where it says that it does not know the session,
 * which has ended since, the error becomes one that says why.  It is put around every call:
 *	r = ctl_called(c, rpc_client_gpu_queues(c->client, &p, &c->arena, &result, &c->err));
 * @return @p r.
 */
int ctl_called(struct ctl *c, int r);
/**
 * Was the last call refused only because the agent allows no more at once?  Then this waits a little, and forgets the
 * error.  All such waits of a run take no longer together than one answer may.
 * @return whether to ask again.
 */
bool ctl_wait_for_turn(struct ctl *c);
/**
 * Ask what the threads of a process do.  Who reads them is gone in a moment: where the agent has as many of those as it
 * allows, this waits for its turn.
 * @return 0, negative with err.
 */
int ctl_host_stacks(struct ctl *c, const struct rpc_host_stacks_params *p, struct rpc_host_stacks_result *ret);
/** What the schema says of a reason to end a session, which a newer agent may have more of. */
const char *ctl_end_reason(int32_t reason);
/**
 * Connect, and attach to a process or join the session that it has.
 * @param pid_text  The process as it was given; ignored when there is a core file.
 * @param control   Whether the writer lease is needed.
 * @return 0 (ctl.session is filled), or negative with err.
 */
int ctl_attach(struct ctl *c, const char *pid_text, bool control);
/**
 * Leave the session if there is one.
 * The verb has its data by then, so that a failure is only a message of -v.
 */
void ctl_detach(struct ctl *c);
/**
 * Learn which GPUs the session's process has, unless that was done: tables show their indices and
 * args_gpu() accepts them.  It makes a call, so that ctl_print_result() must not follow it.
 * @return 0 (ctl.gpus is filled), or negative with err.
 */
int ctl_name_gpus(struct ctl *c);
/** The same for tables; after a failure, and in JSON mode, they are not known. */
void ctl_name_gpus_for_text(struct ctl *c);
/** Take GPUs and vendor of a document instead. */
void ctl_name_gpus_of(struct ctl *c, const struct rpc_gpu_snapshot_result *s);
/**
 * The exit status of a result that may lack something.
 * @param budget_exceeded  The stop budget was used up, which explains what is missing.
 * @return 0, CTL_EXIT_BUDGET, CTL_EXIT_PARTIAL.
 */
static inline int ctl_status(bool complete, bool budget_exceeded)
{
	return complete ? 0 : budget_exceeded ? CTL_EXIT_BUDGET : CTL_EXIT_PARTIAL;
}
/** Append a document that the verb has made, in the style of --json.  @return 0, negative with err. */
int ctl_print_json(struct ctl *c, const struct out *doc);
/** Append the last call's result as a JSON document.  @return 0, negative with err. */
int ctl_print_result(struct ctl *c);
/** How tables are printed on this terminal. */
static inline struct table_form ctl_table_form(const struct ctl *c)
{
	return (struct table_form){ c->output.width, c->output.legend, c->output.color, c->output.ascii };
}
/** Append the rows of a table.  @return 0, negative with err. */
int ctl_print_table(struct ctl *c, const struct table *t);

/*
 * args.c: arguments to values.  In all of them name is what help calls the argument.  They return
 * 0, or what ctl_usage() or ctl_fail() returned; *ret is unspecified then.
 */

/** Read the id of a process. */
int args_pid(struct ctl *c, const char *text, uint32_t *ret);
/** Read a decimal number from @p min to @p max. */
int args_u32(struct ctl *c, const char *name, const char *text, uint32_t min, uint32_t max,
	     uint32_t *ret);
/** Read a size in bytes from 1 to @p max: `512`, `0x200`, `4K`, `64M`, `1G`. */
int args_size(struct ctl *c, const char *name, const char *text, uint64_t max, uint64_t *ret);
/** Read an address, decimal or with 0x. */
int args_address(struct ctl *c, const char *name, const char *text, uint64_t *ret);
/** Read a time such as `5s` or `250ms`, from 1 to @p max_ms milliseconds; a number is seconds. */
int args_duration(struct ctl *c, const char *name, const char *text, uint32_t max_ms,
		  uint32_t *ret_ms);
/** Read a time as args_duration(), but a plain number is milliseconds. */
int args_ms(struct ctl *c, const char *name, const char *text, uint32_t max_ms, uint32_t *ret_ms);
/** Ask for threads to be stopped, for no longer than --max-stop says, or not. */
void args_stops(const struct ctl *c, bool stop, struct rpc_host_stacks_params *p);
/**
 * Read the name of a wave: `QUEUE:UNIT:INDEX`, or `QUEUE:UNIT:DISPATCH@X,Y,Z/N` for what the wave
 * works on, as tables show it.  Arrays live in the arena.  The number of a row of `snapshot` stands
 * for the example of that row: args_find_wave() has to follow then, as it may always.
 */
int args_wave(struct ctl *c, const char *name, const char *text, struct rpc_wave_name *ret);
/** What a snapshot shows of waves says nothing if nothing was stopped.  @return 0, or negative with the error set. */
int ctl_check_stopped(struct ctl *c, const struct rpc_gpu_snapshot_result *s);
/** What is asked for by a number has to be there.  @return 0, or negative with the queues there are in the error. */
int args_check_queue(struct ctl *c, enum rpc_vendor vendor, uint32_t id, const struct rpc_queue *queues, size_t n);
/** The same for several; asks for the queues of the session's process. */
int args_check_queues(struct ctl *c, const uint32_t *ids, size_t n);
/** Find the wave that a row's number stands for; in a session, before the result that is printed. */
int args_find_wave(struct ctl *c, struct rpc_wave_name *wave);
/** The same, with the lane that the row is about where that is not all of them; one that is set stays. */
int args_find_wave_lane(struct ctl *c, struct rpc_wave_name *wave, bool *has_lane, uint32_t *lane);
/**
 * Read a wave as args_wave() does, or an address: hexadecimal with 0x, or a decimal number too large for a row.
 * @param ret_is_wave  Which of the two it is; only that one is filled in.
 */
int args_wave_or_address(struct ctl *c, const char *name, const char *text, bool *ret_is_wave,
			 struct rpc_wave_name *ret_wave, uint64_t *ret_address);
/** Read one number or a range of them, both ends included: `3` or `3-8`. */
int args_range(struct ctl *c, const char *name, const char *text, uint32_t max, uint32_t *ret_first,
	       uint32_t *ret_last);
/**
 * Read a GPU of the session's process: its index in `devices`, its id or its PCI address; see
 * gpu_names_find().  It may make a call, as ctl_name_gpus() does.
 */
int args_gpu(struct ctl *c, const char *name, const char *text, uint32_t *ret_gpu_id);
/** Read numbers joined by commas, as `0,1,7`; the array lives in the arena. */
int args_u32_list(struct ctl *c, const char *name, const char *text, uint32_t **ret, size_t *ret_n);

/*
 * show.c: the tables that several verbs print.  Those that return an int append rows to the output
 * and return 0, or negative with err.  Texts live in the arena; NULL when it is exhausted.
 */

/** Append the table of devices, which gives them their numbers: ctl.gpus is filled. */
int show_devices(struct ctl *c, const struct rpc_device *devices, size_t n);
/** Append the table of queues; the numbers of their GPUs are those of ctl.gpus, in all tables. */
int show_queues(struct ctl *c, const struct rpc_queue *queues, size_t n);
/** The type of a queue in words; NULL for a context, since the title of its table says that. */
const char *show_queue_type(struct rpc_arena *a, const struct rpc_queue *q);
/** Append a table of waves. */
int show_waves(struct ctl *c, const struct rpc_wave *waves, size_t n);
/** Append a table of a snapshot's waves, with the kernel and line that their groups tell. */
int show_snapshot_waves(struct ctl *c, const struct rpc_gpu_snapshot_result *s);
/** Append what became of each queue that was to be suspended or resumed. */
int show_queue_results(struct ctl *c, const struct rpc_queue_result *results, size_t n);
/** Append the table of watch points. */
int show_watchpoints(struct ctl *c, const struct rpc_watchpoint *watchpoints, size_t n);
/** Append the table of open sessions. */
int show_sessions(struct ctl *c, const struct rpc_session_info *sessions, size_t n);
/** A suspension in a few words, the vendor's: `queues 0,1, 3.2 s left`. */
const char *show_suspension(struct rpc_arena *a, enum rpc_vendor vendor, const struct rpc_suspension *s);
/** The name of a value in the schema; its number if this client does not know the value. */
const char *show_name(struct rpc_arena *a, const struct rpc_enum *e, int64_t value);
/** The name of a user; its number if this machine has no name for it. */
const char *show_user(struct rpc_arena *a, uint32_t uid);
/** Names of exceptions joined by commas; NULL also if there are none. */
const char *show_exceptions(struct rpc_arena *a, const enum rpc_exception *list, size_t n);

/* show_registers.c: one wave in full. */

/**
 * Append one wave: what it does, then its registers.
 * @param lanes  Those shown of vector registers, as bits.
 * @return 0, or negative with err.
 */
int show_registers(struct ctl *c, const struct rpc_wave_registers *r, uint64_t lanes);

#endif /* CTL_H */
