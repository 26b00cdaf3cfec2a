/* SPDX-License-Identifier: MIT */
#ifndef RPC_CODEC_H
#define RPC_CODEC_H

/**
 * @file rpc_codec.h
 * Decoder and encoder driven by the tables in the generated rpc_gen.c.
 *
 * Programs use the typed functions of rpc_gen.h; this is what those are made of.  The decoder reads
 * what strangers send: every value is checked for type, range, length and number of items, and the
 * message of a failure starts with the path of the value, for example
 * `params.queues[3]: must be between 0 and 1023, not 4096`.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/agent_err.h"
#include "protocol/rpc_arena.h"

struct json_object;
struct out;

enum rpc_kind {
	RPC_KIND_BOOL,
	RPC_KIND_U32,
	RPC_KIND_U64,
	RPC_KIND_I64,
	RPC_KIND_HEX64,
	RPC_KIND_STRING, /**< const char *; optional ones are NULL when absent. */
	RPC_KIND_JSON,	 /**< const char *, the text of any value. */
	RPC_KIND_ENUM,
	RPC_KIND_STRUCT,
};

struct rpc_enum_value {
	const char *name;
	int64_t value;
	const char *doc;
};

struct rpc_enum {
	const char *name;
	const struct rpc_enum_value *values;
	size_t n;
};

struct rpc_struct;

struct rpc_member {
	const char *name;
	enum rpc_kind kind;
	bool optional;
	bool array;
	bool has_flag; /**< Optional, and NULL cannot say that it is absent: a bool does. */
	uint32_t offset;
	uint32_t has_offset; /**< Of that bool. */
	uint32_t n_offset;   /**< size_t; for arrays. */
	uint32_t max_length; /**< Bytes of a string; 0 = no limit of its own. */
	uint32_t max_items;  /**< 0 = no limit of its own. */
	uint64_t min, max;   /**< Of numbers; for RPC_KIND_I64 the bits of an int64_t. */
	const struct rpc_enum *enumeration;
	const struct rpc_struct *structure;
};

struct rpc_struct {
	const char *name;
	const struct rpc_member *members;
	size_t n;
	size_t size; /**< sizeof the C structure. */
};

struct rpc_path;

struct rpc_decoder {
	struct rpc_arena *arena; /**< Strings and arrays go here. */
	bool strict;		 /**< An unknown member is an error. */
	int32_t code;		 /**< Error code of a failure. */
	struct agent_err *err;	 /**< May be NULL. */
	const struct rpc_path *path; /**< Where the decoder is; starts with the name of the root. */
	const char *root;
};

/** For params: unknown members are errors, failures are invalid_params, paths start "params". */
void rpc_decoder_init_strict(struct rpc_decoder *d, struct rpc_arena *arena, struct agent_err *err);
/**
 * For what the agent sent: unknown members are skipped, since a newer agent may say more.
 * @param root First word of paths, for example "result"; borrowed.
 */
void rpc_decoder_init_lenient(struct rpc_decoder *d, const char *root, struct rpc_arena *arena,
			      struct agent_err *err);

/**
 * @param obj NULL counts as an empty object.
 * @param ret structure->size bytes; zeroed first, contents unspecified on failure.
 * @return 0, -EINVAL (does not fit the schema), -ENOMEM or -EFBIG (arena).
 */
int rpc_decode_struct(struct rpc_decoder *d, const struct rpc_struct *structure,
		      struct json_object *obj, void *ret);
/**
 * JSON text of a filled structure.  A required string that is NULL is written as "", an enum value
 * that the schema lacks as null: readers then refuse the reply and a bug here shows.
 */
void rpc_encode_struct(struct out *o, const struct rpc_struct *structure, const void *value);

/** A result of one `json` member travels as that value itself, without the object around it. */
bool rpc_struct_is_bare(const struct rpc_struct *structure);

/** Name of a value, or NULL. */
const char *rpc_enum_name(const struct rpc_enum *e, int64_t value);
/** @return 0, -EINVAL. */
int rpc_enum_value(const struct rpc_enum *e, const char *name, int64_t *ret_value);

/**
 * Text to tree, more strictly than json-c alone does it: RFC 8259 grammar, valid UTF-8, nothing
 * behind the value, no integer beyond 64 bits, at most RPC_DEPTH_MAX levels.
 * @param ret Release with rpc_json_put().  NULL (and 0) for the value null.
 * @return 0, -EINVAL (with @p err, code parse_error), -EIO (json-c refuses what is valid), -ENOMEM.
 */
int rpc_json_parse(const char *text, size_t size, struct json_object **ret, struct agent_err *err);
void rpc_json_put(struct json_object *obj);

/** Deepest nesting in a request or a reply. */
#define RPC_DEPTH_MAX 32

#endif /* RPC_CODEC_H */
