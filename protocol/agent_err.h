/* SPDX-License-Identifier: MIT */
#ifndef AGENT_ERR_H
#define AGENT_ERR_H

/**
 * @file agent_err.h
 * Why something failed, in a fixed-size object that travels unchanged from the place that found
 * out to the client that asked.
 *
 * Set once, where the failure is discovered; callers may only prepend context.  Nothing here
 * allocates, so reporting "out of memory" cannot fail.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_object;
struct out;

/** The agent could not be reached.  Made by clients only, never on the wire; exit code 9. */
#define AGENT_ERR_UNREACHABLE 1

struct agent_err {
	int32_t code;	    /**< enum rpc_error_code, AGENT_ERR_UNREACHABLE; 0 = nothing set. */
	int err;	    /**< errno, 0 when no system call is to blame. */
	int64_t vendor;	    /**< Status of a vendor library, 0 when there is none. */
	char op[32];	    /**< What was being done, for example "ptrace seize"; may be empty. */
	char message[240];  /**< One sentence, no full stop needed; never empty once set. */
	char hint[240];	    /**< What to do about it; may be empty. */
	bool has_resumed;
	bool resumed;	    /**< The target runs again; meaningful when has_resumed. */
};

/**
 * Fill @p err (NULL allowed) and hand back a value for `return`.
 * @param err_no  errno or 0.
 * @param op      NULL or a few words.
 * @param hint    NULL or one sentence.
 * @return -err_no, or -EPROTO when err_no is 0: always negative.
 */
int agent_err_set(struct agent_err *err, int32_t code, int err_no, const char *op, const char *hint,
		  const char *fmt, ...) __attribute__((format(printf, 6, 7)));
/** Put context in front of the message: "context: message".  Nothing happens if nothing is set. */
void agent_err_prepend(struct agent_err *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void agent_err_set_resumed(struct agent_err *err, bool resumed);

/** Name of the code in the schema, "unreachable", or "error" for a code nobody knows. */
const char *agent_err_name(const struct agent_err *err);
/** Exit status of a command that failed so; 1 when the code says nothing. */
int agent_err_exit(const struct agent_err *err);

/** JSON-RPC error object.  Nothing set, or NULL, becomes an internal error. */
void agent_err_encode(struct out *o, const struct agent_err *err);
/** The reverse.  @return 0, -EINVAL (no error object; @p ret is untouched). */
int agent_err_decode(struct json_object *obj, struct agent_err *ret);
int agent_err_decode_text(const char *text, size_t size, struct agent_err *ret);

#endif /* AGENT_ERR_H */
