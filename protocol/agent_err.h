/* SPDX-License-Identifier: MIT */
#ifndef AGENT_ERR_H
#define AGENT_ERR_H

/**
 * @file agent_err.h
 * Why something failed, in a fixed-size object that travels unchanged from the place that found
 * out to the client that asked.
 *
 * An error is set once, where the failure is discovered; callers may only prepend context.  Nothing
 * here but the two decoders allocates, so reporting "out of memory" cannot fail.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct out;

/** The agent could not be reached.  Only clients make this code; it never travels.  Exit code 9. */
#define AGENT_ERR_UNREACHABLE 1

/** One failure.  A zeroed object says that nothing has failed; there is nothing to release. */
struct agent_err {
	int32_t code;	    /**< enum rpc_error_code, AGENT_ERR_UNREACHABLE; 0 = nothing set. */
	int err;	    /**< errno, 0 when no system call is to blame. */
	int64_t vendor;	    /**< Status of a vendor library, 0 when there is none. */
	char op[32];	    /**< What was being done, for example "ptrace seize"; may be empty. */
	char message[240];  /**< One sentence, no full stop needed; never empty once set. */
	char hint[240];	    /**< What to do about it; may be empty. */
	bool has_resumed;   /**< Whether the failure says anything about the target's queues. */
	bool resumed;	    /**< The target's queues run again; meaningful when has_resumed. */
	uint32_t retry_ms;  /**< After this time it may succeed; 0: nothing is known of that. */
};

/**
 * Fill @p err (NULL allowed) and hand back a value for `return`.  Texts that are too long are cut.
 * @param code    enum rpc_error_code or AGENT_ERR_UNREACHABLE.
 * @param err_no  errno or 0.
 * @param op      NULL or a few words; it, @p hint and the arguments may point into @p err.
 * @param hint    NULL or one sentence.
 * @param fmt     The message; never empty.
 * @return -err_no, or -EPROTO when err_no is 0: always negative.
 */
int agent_err_set(struct agent_err *err, int32_t code, int err_no, const char *op, const char *hint,
		  const char *fmt, ...) __attribute__((format(printf, 6, 7)));
/**
 * Say that there was no memory.
 * @param op  NULL or what was to be done.
 * @return -ENOMEM.
 */
int agent_err_no_memory(struct agent_err *err, const char *op);
/**
 * Put context in front of the message: "context: message".
 * Nothing happens if @p err is NULL or nothing is set.
 */
void agent_err_prepend(struct agent_err *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/**
 * Note whether the target's queues run again after the failure.
 * @param err  NULL is allowed.
 */
void agent_err_set_resumed(struct agent_err *err, bool resumed);

/**
 * The name of an error's code.
 * @return its name in the schema, "unreachable", or "error" for a code that the schema lacks.
 */
const char *agent_err_name(const struct agent_err *err);
/**
 * The exit status of a command that ends with this error.
 * @return what the schema says of the code, 9 for AGENT_ERR_UNREACHABLE, 1 for an unknown code.
 */
int agent_err_exit(const struct agent_err *err);

/**
 * Append the JSON-RPC error object of a failure.
 * @param err  NULL, or an object in which nothing is set, becomes an internal error.
 */
void agent_err_encode(struct out *o, const struct agent_err *err);
/**
 * Read the text of a JSON-RPC error object.
 * @return 0; -EINVAL (it is no error object, or no JSON; @p ret is untouched); -ENOMEM.
 */
int agent_err_decode_text(const char *text, size_t size, struct agent_err *ret);

#endif /* AGENT_ERR_H */
