/* SPDX-License-Identifier: MIT */
#ifndef RPC_CODEC_H
#define RPC_CODEC_H

/**
 * @file rpc_codec.h
 * Decoder and encoder driven by the tables in the generated rpc_gen.c.
 *
 * Programs use the typed functions of rpc_gen.h, which are made of these.  The decoder reads what
 * strangers send: every value is checked for type, range, length and number of items, and the
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

/** The type of a member, which decides its JSON form and its C type. */
enum rpc_kind {
	RPC_KIND_BOOL,
	RPC_KIND_U32,
	RPC_KIND_U64,
	RPC_KIND_I64,
	RPC_KIND_HEX64,	 /**< uint64_t as a string `0x...`; numbers lose bits in some languages. */
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

/** One member of a structure: its name on the wire, and where it lies in the C structure. */
struct rpc_member {
	const char *name;
	enum rpc_kind kind;
	bool optional;
	bool array;
	bool has_flag; /**< It is optional and no pointer: a bool `has_...` says if it is there. */
	uint32_t offset;     /**< Where the value lies; for arrays, the pointer to the items. */
	uint32_t has_offset; /**< Where that bool lies. */
	uint32_t n_offset;   /**< Where the size_t lies that counts an array's items. */
	uint32_t max_length; /**< Most bytes of a string; 0 = no limit of its own. */
	uint32_t max_items;  /**< Most items of an array; 0 = no limit of its own. */
	uint64_t min, max;   /**< Range of a number; for RPC_KIND_I64 the bits of an int64_t. */
	const struct rpc_enum *enumeration;
	const struct rpc_struct *structure;
};

/** A structure of the schema. */
struct rpc_struct {
	const char *name;
	const struct rpc_member *members;
	size_t n;
	size_t size; /**< sizeof the C structure. */
};

struct rpc_path;

/** How to decode one message; set up by an init function below. */
struct rpc_decoder {
	struct rpc_arena *arena; /**< Strings and arrays go here. */
	bool strict;		 /**< An unknown member is an error. */
	int32_t code;		 /**< Error code of a failure. */
	struct agent_err *err;	 /**< May be NULL. */
	const struct rpc_path *path; /**< Steps from the root to the value at hand. */
	const char *root;	     /**< First word of the paths in messages. */
};

/**
 * Prepare to decode parameters: unknown members are errors, failures have the code invalid_params,
 * paths start with "params".
 */
void rpc_decoder_init_strict(struct rpc_decoder *d, struct rpc_arena *arena, struct agent_err *err);
/**
 * Prepare to decode what the agent sent: unknown members are skipped, since a newer agent may say
 * more; failures have the code internal.
 * @param root First word of paths, for example "result"; borrowed.
 */
void rpc_decoder_init_lenient(struct rpc_decoder *d, const char *root, struct rpc_arena *arena,
			      struct agent_err *err);

/**
 * Decode an object into a C structure.
 * @param obj NULL counts as an empty object.
 * @param ret structure->size bytes; zeroed first, contents unspecified on failure.
 * @return 0, -EINVAL (does not fit the schema), -ENOMEM or -EFBIG (arena).
 */
int rpc_decode_struct(struct rpc_decoder *d, const struct rpc_struct *structure,
		      struct json_object *obj, void *ret);
/**
 * Append the JSON text of a filled structure.  A required string that is NULL is written as "", an
 * enum value that the schema lacks as null: readers then refuse the reply and a bug here shows.
 */
void rpc_encode_struct(struct out *o, const struct rpc_struct *structure, const void *value);

/**
 * Whether a result travels without an object around it: one that has a required `json` member and
 * no other travels as the value of that member.
 */
bool rpc_struct_is_bare(const struct rpc_struct *structure);

/** The name that the schema gives a value.  @return NULL if the enum has no such value. */
const char *rpc_enum_name(const struct rpc_enum *e, int64_t value);
/**
 * The names of values joined by commas, "" for none; a number for a value that the schema lacks.
 * @param values  Array of the C type of the enum, which has 32 bits.
 * @return a text in the arena, NULL when that is exhausted.
 */
const char *rpc_enum_join(struct rpc_arena *a, const struct rpc_enum *e, const void *values,
			  size_t n);
/** The value of a name.  @return 0, -EINVAL (the enum has no such name). */
int rpc_enum_value(const struct rpc_enum *e, const char *name, int64_t *ret_value);

/**
 * Parse JSON text into json-c's tree, more strictly than json-c alone does it: RFC 8259 grammar,
 * valid UTF-8, nothing behind the value, no integer beyond 64 bits, at most RPC_DEPTH_MAX levels.
 * @param ret Release with rpc_json_put().  It is NULL, with the return value 0, for the value null.
 * @return 0, -EINVAL (with @p err, code parse_error), -EIO (json-c refuses what is valid), -ENOMEM.
 */
int rpc_json_parse(const char *text, size_t size, struct json_object **ret, struct agent_err *err);
/** Release a tree of rpc_json_parse(); NULL is allowed. */
void rpc_json_put(struct json_object *obj);

/** Levels of the deepest nesting in a request or a reply. */
#define RPC_DEPTH_MAX 32

#endif /* RPC_CODEC_H */
