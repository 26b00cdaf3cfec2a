/* SPDX-License-Identifier: MIT */
/*
 * gpu-agentctl analyze: what the waves in a core file, or a saved snapshot, did, exceptions first;
 * --extract-code saves one of a core's code objects.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "corefile/file.h"
#include "ctl/ctl.h"
#include "ctl/document/document.h"
#include "ctl/document/merge.h"
#include "ctl/snapshot_show.h"

/* Bytes that a decoded reply may need: a flat list of all waves. */
#define REPLY_MEMORY_MAX ((size_t)512 << 20)
/* Bytes of one code.read: below the agent's limit, and a multiple of three for base64. */
#define PIECE	  ((uint32_t)768 << 10)
#define CODE_MODE 0644

static bool each_wave, registers, arguments;
static const char *extract;

static const struct argv_option options[] = {
	{ "waves", 0, ARGV_FLAG, &each_wave, NULL, "also one row for each wave", "warps" },
	{ "registers", 0, ARGV_FLAG, &registers, NULL, "also the registers of each group's example" },
	{ "arguments", 0, ARGV_FLAG, &arguments, NULL,
	  "the arguments of all kernels, not of faulted ones alone, with those that the compiler adds" },
	{ "extract-code", 0, ARGV_STRING, &extract, "N",
	  "save the code object of that number as CODE-FILE" },
	{ 0 },
};

/* ------------------------------------------------------------------ code objects ------------- */

static int list_code(struct ctl *c, struct rpc_code_list_result *ret)
{
	const struct rpc_code_list_params p = { .session = c->session.session };

	return ctl_called(c, rpc_client_code_list(c->client, &p, &c->arena, ret, &c->err));
}

/* Append the table of code objects; its numbers are those of --extract-code. */
static int print_code(struct ctl *c, const struct rpc_code_list_result *l)
{
	static const struct table_column columns[] = {
		{ .title = "CODE", .right = true },
		{ .title = "ADDRESS", .importance = 2, .optional = true },
		{ .title = "SIZE", .right = true, .importance = 1, .optional = true },
		{ .title = "SYMBOLS", .right = true, .importance = 1, .optional = true },
		{ .title = "LINES", .optional = true },
		{ .title = "PROBLEM", .importance = 3, .min = 20, .wrap = true, .optional = true },
		{ .title = "NAME", .importance = 4, .min = 24, .wrap = true },
	};
	auto_table struct table t;

	table_init(&t, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < l->n_objects; i++) {
		const struct rpc_code_object *o = &l->objects[i];

		table_u64(&t, i);
		table_hex_if(&t, o->has_address, o->address);
		table_size_if(&t, o->has_size, o->size);
		table_u64_if(&t, o->has_symbols, o->symbols);
		table_str(&t, o->has_has_lines ? o->has_lines ? "yes" : "no" : NULL);
		table_str(&t, o->problem);
		table_str(&t, o->uri);
	}
	return l->n_objects ? ctl_print_table(c, &t) : 0;
}

/*
 * Read a piece of a code object and write it to the file.
 * @return bytes, 0 at the end, or negative with ctl.err.
 */
static int read_piece(struct ctl *c, const char *uri, uint64_t offset, int fd)
{
	const struct rpc_code_read_params p = { .session = c->session.session, .uri = uri,
						.offset = offset, .size = PIECE };
	auto_rpc_arena struct rpc_arena arena;
	struct rpc_code_read_result result;
	uint8_t *bytes;
	int r;

	rpc_arena_init(&arena, 0);
	r = ctl_called(c, rpc_client_code_read(c->client, &p, &arena, &result, &c->err));
	if (r == 0)
		r = rpc_client_bytes(result.data, result.size, "code.read", &arena, &bytes, &c->err);
	if (r < 0)
		return r;
	r = fd_write_all(fd, bytes, result.size);
	return r < 0 ? ctl_fail(c, -r, "writing the code object") : (int)result.size;
}

/* Save a code object; the file gets its name when all of it is there. */
static int save(struct ctl *c, const char *uri, const char *path)
{
	struct corefile_file file = COREFILE_FILE_NULL;
	int r = ctl_make_file(c, path, CODE_MODE, true, &file);
	uint64_t at = 0;

	if (r < 0)
		return r;
	do {
		r = read_piece(c, uri, at, file.fd);
		at += r > 0 ? (uint64_t)r : 0;
	} while (r > 0);
	if (r == 0) {
		r = corefile_file_commit(&file, true);
		if (r < 0)
			r = ctl_fail(c, -r, path);
	}
	ctl_close_file(&file);
	if (r == 0)
		ctl_note(c, "%s: %llu bytes", path, (unsigned long long)at);
	return r;
}

/* The number is a position in the list that the same file gives each time. */
static int extract_code(struct ctl *c, const char *path)
{
	struct rpc_code_list_result l;
	uint32_t number;
	int r = args_u32(c, "--extract-code", extract, 0, UINT32_MAX, &number);

	if (r == 0)
		r = list_code(c, &l);
	if (r < 0)
		return r;
	if (number >= l.n_objects) {
		agent_err_set(&c->err, RPC_ERROR_FAILED, ENOENT, "extract code",
			      "without --extract-code they are listed",
			      "%s has no code object %u, only %zu", c->core, number, l.n_objects);
		return -ENOENT;
	}
	return save(c, l.objects[number].uri, path);
}

/* ------------------------------------------------------------------ all of it ---------------- */

static int show(struct ctl *c, const struct rpc_gpu_snapshot_result *s)
{
	const struct snapshot_page page = { .snapshot = s, .arguments = arguments };
	struct rpc_code_list_result l;
	int r;

	if (ctl_is_json(c))
		return ctl_print_result(c);
	r = list_code(c, &l);
	if (r < 0)
		return r;
	r = snapshot_show(c, &page);
	if (r == 0 && l.n_objects)
		out_char(&c->output.text, '\n');
	return r < 0 ? r : print_code(c, &l);
}

static int analyze(struct ctl *c)
{
	const struct rpc_gpu_snapshot_params p = {
		.session = c->session.session,
		.has_waves = each_wave,
		.waves = each_wave,
		.has_registers = registers,
		.registers = registers,
		.has_arguments = arguments,
		.arguments = arguments,
	};
	struct rpc_gpu_snapshot_result s;
	int r = ctl_called(c, rpc_client_gpu_snapshot(c->client, &p, &c->arena, &s, &c->err));

	if (r == 0)
		r = show(c, &s);
	if (r < 0)
		return r;
	if (!s.complete)
		ctl_note(c, "the core does not have everything");
	return ctl_status(s.complete, false);
}

/* Show a saved snapshot, which has what was asked for when it was taken, or a merged one. */
static int show_saved(struct ctl *c, const char *path)
{
	const struct table_form form = ctl_table_form(c);
	struct document d;
	int r = document_read(path, &c->arena, &d, &c->err);

	if (r < 0)
		return r;
	if (ctl_is_json(c)) {
		auto_out struct out text = { 0 };

		rpc_gpu_snapshot_result_encode(&text, &d.snapshot);
		r = ctl_print_json(c, &text);
	} else if (d.merged) {
		r = merge_print(&c->arena, &c->output.text, &d.snapshot, &form);
		r = r < 0 ? ctl_fail(c, -r, "writing the tree") : 0;
	} else {
		r = snapshot_show(c, &(struct snapshot_page){ .snapshot = &d.snapshot,
								 .arguments = arguments });
	}
	return r < 0 ? r : ctl_status(d.snapshot.complete, d.snapshot.budget_exceeded);
}

/* Whether a file is a saved document: a core is none of text. */
static bool is_document(const char *path)
{
	auto_close int fd = -1;
	struct stat st;
	char first;

	if (!strcmp(path, "-"))
		return true;
	/* Who writes into a FIFO would be told that its reader has gone. */
	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	return fd >= 0 && pread(fd, &first, 1, 0) == 1 && first == '{';
}

static int run(struct ctl *c, int argc, char **argv)
{
	int r;

	/* FILE stands first; CODE-FILE is there if and only if something is extracted. */
	if ((argc == 2) != (extract != NULL))
		return ctl_usage(c, "CODE-FILE and --extract-code go together");
	c->arena.limit = REPLY_MEMORY_MAX;
	if (is_document(argv[0])) {
		if (extract || each_wave || registers)
			return ctl_usage(c, "a saved snapshot has what it was taken with: "
					 "--waves, --registers and --extract-code need a core");
		return show_saved(c, argv[0]);
	}
	c->core = argv[0];
	r = ctl_attach(c, NULL, false);
	if (r < 0)
		return r;
	return extract ? extract_code(c, argv[1]) : analyze(c);
}

const struct ctl_verb ctl_verb_analyze = {
	.name = "analyze",
	.args = "FILE [CODE-FILE]",
	.summary = "Show what the waves in a core file or a saved snapshot did, exceptions first",
	.options = options,
	.min_args = 1,
	.max_args = 2,
	.run = run,
};
