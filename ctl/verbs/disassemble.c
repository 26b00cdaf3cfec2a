/* SPDX-License-Identifier: MIT */
/*
 * gpu-agentctl disassemble: instructions around an address, or around where a wave is.  The agent
 * reads the code and knows functions and lines; the instructions are decoded here.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "ctl/ctl.h"
#include "ctl/terminal/text.h"
#include "disasm/disasm.h"

/* Most instructions in each direction. */
#define COUNT_MAX   10000u
/* Most addresses that code.locate takes at once. */
#define LOCATE_MAX  4096u
/* Bytes of code in one go: whole functions, as far as the agent reads them in one call. */
#define CODE_MAX ((uint64_t)1 << 20)

static const char *wave_option, *gpu_option, *count_option, *before_option, *start_option;

static const struct argv_option options[] = {
	{ "wave", 0, ARGV_STRING, &wave_option, "WAVE", "around the program counter of this wave",
	  "warp" },
	{ "gpu", 0, ARGV_STRING, &gpu_option, "GPU", "device whose instructions they are: 0, 1, ..." },
	{ "count", 0, ARGV_STRING, &count_option, "N", "instructions from there on (default 16)" },
	{ "before", 0, ARGV_STRING, &before_option, "N", "instructions in front (default 8)" },
	{ "start", 0, ARGV_STRING, &start_option, "ADDRESS",
	  "where the function begins, if its code object does not tell" },
	{ 0 },
};

/* What is to be shown, and what was found out for it. */
struct job {
	uint64_t pc;
	uint32_t before, count;
	bool has_gpu, has_start;
	uint32_t gpu_id;
	uint64_t start;
	uint32_t lanes; /* Lanes of the wave; 0: unknown. */
	bool has_wave;
	struct rpc_wave_name wave;
	const char *gfx;

	uint8_t *code; /* The bytes from start on. */
	size_t code_size;
	struct disasm *disasm;
	struct disasm_line *lines;
	size_t n_lines, at;

	const char *function;		 /* The one around pc; NULL when unknown. */
	const struct rpc_code_place *places; /* Places of the first lines. */
	size_t n_places;
};

/* ------------------------------------------------------------------ asking the agent --------- */

/* Ask where the wave is, and on which device. */
static int find_pc(struct ctl *c, struct job *j)
{
	enum rpc_register_bank special = RPC_REGISTER_BANK_SPECIAL;
	const struct rpc_wave_registers_params p = {
		.session = c->session.session,
		.wave = j->wave,
		.has_banks = true,
		.banks = &special,
		.n_banks = 1,
		.has_max_stop_ms = c->max_look_ms,
		.max_stop_ms = c->max_look_ms,
	};
	struct rpc_wave_registers_result result;
	int r = ctl_called(c,
			   rpc_client_wave_registers(c->client, &p, &c->arena, &result, &c->err));

	if (r < 0)
		return r;
	j->pc = result.registers.wave.pc;
	j->lanes = result.registers.wave.width;
	j->gpu_id = result.registers.wave.gpu_id;
	j->has_gpu = true;
	return 0;
}

/*
 * Find the instruction set: of the device that was named, or of all devices if they are of one
 * kind.
 */
static int find_gfx(struct ctl *c, struct job *j)
{
	const struct rpc_gpu_devices_params p = { .session = c->session.session };
	struct rpc_gpu_devices_result result;
	int r = ctl_called(c, rpc_client_gpu_devices(c->client, &p, &c->arena, &result, &c->err));

	if (r < 0)
		return r;
	for (size_t i = 0; i < result.n_devices; i++) {
		const struct rpc_device *d = &result.devices[i];

		if (j->has_gpu && d->gpu_id != j->gpu_id)
			continue;
		if (j->gfx && strcmp(j->gfx, d->arch) != 0)
			return ctl_usage(
				c, "--gpu: needed, for the process has devices of several kinds");
		j->gfx = d->arch;
	}
	return j->gfx ? 0 : ctl_fail(c, ENODEV, "looking for a device of the process");
}

/*
 * Ask the agent what it knows of addresses.  It is no failure if the agent cannot tell.
 * @return for how many of them *ret has an answer.
 */
static size_t locate(struct ctl *c, uint64_t *addresses, size_t n, struct rpc_code_place **ret)
{
	const struct rpc_code_locate_params p = {
		.session = c->session.session, .addresses = addresses, .n_addresses = n
	};
	struct rpc_code_locate_result result;
	struct agent_err err = { 0 };

	if (rpc_client_code_locate(c->client, &p, &c->arena, &result, &err) < 0) {
		ctl_debug(c, "functions and lines are not known: %s", err.message);
		return 0;
	}
	*ret = result.places;
	return result.n_places < n ? result.n_places : n;
}

/*
 * Find where instructions can be counted from: they differ in length, so that decoding must begin
 * at a known one, the function's first.
 */
static void find_function(struct ctl *c, struct job *j)
{
	struct rpc_code_place *place;

	if (!j->has_start)
		j->start = j->pc;
	if (!locate(c, &j->pc, 1, &place) || !place->has_symbol)
		return;
	j->function = place->symbol.name;
	if (!j->has_start)
		j->start = place->symbol.address;
}

/* Find the source lines of the first instructions, as many as one call takes. */
static int find_lines(struct ctl *c, struct job *j)
{
	size_t n = j->n_lines < LOCATE_MAX ? j->n_lines : LOCATE_MAX;
	uint64_t *addresses = rpc_arena_array(&c->arena, n, sizeof(*addresses));
	struct rpc_code_place *places;

	if (!addresses)
		return ctl_fail(c, ENOMEM, "disassembling");
	for (size_t i = 0; i < n; i++)
		addresses[i] = j->lines[i].address;
	j->n_places = locate(c, addresses, n, &places);
	j->places = j->n_places ? places : NULL;
	return 0;
}

/* The innermost source line of an instruction; NULL when it is not known. */
static const struct rpc_frame *frame_of(const struct job *j, size_t i)
{
	const struct rpc_code_place *p = i < j->n_places ? &j->places[i] : NULL;

	return p && p->n_frames && p->frames[0].file && p->frames[0].has_line ? p->frames : NULL;
}

/* Read the code from the start to behind the last line wanted. */
static int read_code(struct ctl *c, struct job *j)
{
	uint64_t end = j->pc + (uint64_t)j->count * DISASM_LONGEST;
	struct rpc_memory_read_params p = { .session = c->session.session };
	struct rpc_memory_read_result result;
	int r;

	/* A function that long is not read as a whole: lines in front of pc are missing then. */
	if (j->start > j->pc || j->pc - j->start >= CODE_MAX)
		j->start = j->pc;
	p.address = j->start;
	p.size = (uint32_t)(end - j->start < CODE_MAX ? end - j->start : CODE_MAX);
	r = ctl_called(c, rpc_client_memory_read(c->client, &p, &c->arena, &result, &c->err));
	if (r < 0)
		return r;
	/* What is longer than was asked for is not the answer. */
	j->code_size = result.size < p.size ? result.size : p.size;
	r = rpc_client_bytes(result.data, j->code_size, "memory.read", &c->arena, &j->code, &c->err);
	if (r < 0)
		return r;
	if (j->pc - j->start >= j->code_size)
		return agent_err_set(&c->err, RPC_ERROR_FAILED, EFAULT, "memory.read", NULL,
				     "nothing readable at 0x%" PRIx64, j->pc);
	return 0;
}

/* ------------------------------------------------------------------ instructions ------------- */

/* Decode the lines around pc. */
static int disassemble(struct ctl *c, struct job *j)
{
	const char *library = getenv("GPU_AGENT_LLVM");
	char nvdisasm[PATH_MAX];
	const struct disasm_options o = {
		.cpu = j->gfx,
		.lanes = j->lanes,
		.library = str_is_empty(library) ? NULL : library,
		.program = disasm_find_nvdisasm(nvdisasm) ? nvdisasm : NULL,
	};
	const struct disasm_range range = {
		.start = j->start, .around = j->pc, .before = j->before, .count = j->count
	};
	ssize_t n;
	int r = disasm_open(&o, &j->disasm);

	if (r < 0)
		return ctl_fail(c, -r, "starting the disassembler");
	j->lines = rpc_arena_array(&c->arena, (size_t)j->before + j->count, sizeof(*j->lines));
	if (!j->lines)
		return ctl_fail(c, ENOMEM, "disassembling");
	n = disasm_lines(j->disasm, j->code, j->code_size, &range, j->lines, &j->at);
	if (n < 0)
		return ctl_fail(c, (int)-n, "disassembling");
	j->n_lines = (size_t)n;
	if (disasm_note(j->disasm))
		ctl_note(c, "%s", disasm_note(j->disasm));
	return 0;
}

static void print_line(struct ctl *c, const struct disasm_line *l, bool current)
{
	struct out *o = &c->output.text;
	bool color = c->output.color && current;

	out_fmt(o, "%s%s 0x%012" PRIx64 "  %s", color_begin(COLOR_WARN, color),
		current ? "=>" : "  ", l->address, l->text);
	if (l->has_target)
		out_fmt(o, "  -> 0x%" PRIx64, l->target);
	out_fmt(o, "%s\n", color_end(COLOR_WARN, color));
}

static void encode_text(struct out *o, const char *name, const char *text)
{
	if (text)
		out_json_fmt(o, ",%s:%s", name, text);
}

static void encode_line(struct out *o, const struct job *j, size_t at)
{
	const struct disasm_line *l = &j->lines[at];
	const struct rpc_frame *f = frame_of(j, at);
	const uint8_t *bytes = j->code + (l->address - j->start);

	out_json_fmt(o, "{'address':%" PRIx64 ",'size':%u,'bytes':'", l->address, l->size);
	for (uint32_t i = 0; i < l->size; i++)
		out_fmt(o, "%02x", bytes[i]);
	out_json_fmt(o, "','text':%s,'decoded':%i", l->text, l->decoded);
	if (l->has_target)
		out_json_fmt(o, ",'target':%" PRIx64, l->target);
	if (f)
		out_json_fmt(o, ",'file':%s,'line':%u", f->file, f->line);
	out_char(o, '}');
}

static int print_json(struct ctl *c, const struct job *j)
{
	auto_out struct out o = { 0 };

	out_json_fmt(&o, "{'pc':%" PRIx64, j->pc);
	encode_text(&o, "gfx", j->gfx);
	encode_text(&o, "function", j->function);
	encode_text(&o, "source", disasm_source(j->disasm));
	encode_text(&o, "note", disasm_note(j->disasm));
	out_json_fmt(&o, ",'instructions':[");
	for (size_t i = 0; i < j->n_lines; i++) {
		out_str(&o, i ? "," : "");
		encode_line(&o, j, i);
	}
	out_str(&o, "]}");
	return ctl_print_json(c, &o);
}

static bool is_same_line(const struct rpc_frame *a, const struct rpc_frame *b)
{
	return a && b && a->line == b->line && !strcmp(a->file, b->file);
}

static void print_header(struct ctl *c, const char *text, size_t size)
{
	struct out *o = &c->output.text;

	out_str(o, color_begin(COLOR_HEADER, c->output.color));
	text_escape(o, text, size);
	out_fmt(o, "%s", color_end(COLOR_HEADER, c->output.color));
}

static int print(struct ctl *c, const struct job *j)
{
	const struct rpc_frame *last = NULL;

	if (ctl_is_json(c))
		return print_json(c, j);
	if (j->function) {
		print_header(c, j->function, strlen(j->function));
		out_char(&c->output.text, '\n');
	}
	for (size_t i = 0; i < j->n_lines; i++) {
		const struct rpc_frame *f = frame_of(j, i);

		if (f && !is_same_line(f, last)) {
			print_header(c, f->file, strlen(f->file));
			out_fmt(&c->output.text, ":%u\n", f->line);
		}
		last = f ? f : last;
		print_line(c, &j->lines[i], i == j->at);
	}
	return 0;
}

/* ------------------------------------------------------------------ all of it ---------------- */

/* Find the wave, if one was given, and where it is. */
static int find_wave(struct ctl *c, struct job *j)
{
	int r;

	if (!j->has_wave)
		return 0;
	r = args_find_wave(c, &j->wave);
	/* A number may have been meant as an address. */
	if (r < 0 && c->err.code == RPC_ERROR_NO_SUCH_WAVE && !wave_option)
		str_copy(c->err.hint, sizeof(c->err.hint), "an address begins with 0x");
	return r < 0 ? r : find_pc(c, j);
}

static int parse(struct ctl *c, int argc, char **argv, struct job *j)
{
	int r = 0;

	*j = (struct job){ .before = 8, .count = 16 };
	j->has_gpu = gpu_option;
	j->has_start = start_option;
	if ((argc == 2) == (wave_option != NULL))
		return ctl_usage(c, "needs either a wave or an address, here or as --wave");
	j->has_wave = wave_option;
	if (wave_option)
		r = args_wave(c, "--wave", wave_option, &j->wave);
	else
		r = args_wave_or_address(c, "WAVE|ADDRESS", argv[1], &j->has_wave, &j->wave, &j->pc);
	if (r == 0 && count_option)
		r = args_u32(c, "--count", count_option, 1, COUNT_MAX, &j->count);
	if (r == 0 && before_option)
		r = args_u32(c, "--before", before_option, 0, COUNT_MAX, &j->before);
	if (r == 0 && start_option)
		r = args_address(c, "--start", start_option, &j->start);
	return r;
}

static int run(struct ctl *c, int argc, char **argv)
{
	struct job j;
	int r = parse(c, argc, argv, &j);

	if (r == 0)
		r = ctl_attach(c, argv[0], false);
	if (r < 0)
		return r;
	if (gpu_option)
		r = args_gpu(c, "--gpu", gpu_option, &j.gpu_id);
	if (r == 0)
		r = find_wave(c, &j);
	if (r == 0)
		r = find_gfx(c, &j);
	if (r == 0) {
		find_function(c, &j);
		r = read_code(c, &j);
	}
	if (r == 0)
		r = disassemble(c, &j);
	if (r == 0)
		r = find_lines(c, &j);
	if (r == 0)
		r = print(c, &j);
	disasm_close(j.disasm);
	ctl_detach(c);
	return r;
}

const struct ctl_verb ctl_verb_disassemble = {
	.name = "disassemble",
	.args = "PID [WAVE|ADDRESS]",
	.summary = "Show instructions around an address or a wave",
	.options = options,
	.min_args = 1,
	.max_args = 2,
	.takes_core = true,
	.run = run,
};
