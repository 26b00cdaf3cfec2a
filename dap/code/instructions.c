/* SPDX-License-Identifier: MIT */
/*
 * Instructions around an address.  Editors ask for so many lines in front and behind, and get as
 * many, with or without code.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "dap/code/instructions.h"
#include "disasm/disasm.h"

/*
 * Milliseconds that the vendor's disassembler may take.  It may run twice, within the time after
 * which a lease that is not renewed ends.
 */
#define PROGRAM_MS 1500u

/* Most instructions of one request, and in one direction. */
#define INSTRUCTIONS_MAX 4096

struct listing {
	uint64_t address; /* The address that lines are counted from. */
	int64_t offset;	  /* First line wanted, counted from there. */
	size_t count;

	struct disasm_line *lines;
	size_t n, at;
	const struct rpc_code_place *places; /* Places of the lines; NULL if unknown. */
	const uint8_t *code;
	uint64_t start;
	uint32_t word; /* Bytes of the shortest instruction. */
};

int dap_disasm_for(struct dap *d, const char *cpu, struct agent_err *err)
{
	const char *library = getenv("GPU_AGENT_LLVM");
	const struct disasm_options o = { .cpu = cpu, .library = str_is_empty(library) ? NULL : library,
					  .program = d->options->nvdisasm,
					  .program_ms = PROGRAM_MS };
	int r;

	if (d->disasm && !strcmp(d->disasm_cpu, cpu))
		return 0;
	disasm_close(d->disasm);
	d->disasm = NULL;
	d->disasm_noted = false;
	str_copy(d->disasm_cpu, sizeof(d->disasm_cpu), cpu);
	r = disasm_open(&o, &d->disasm);
	if (r == -EINVAL)
		return agent_err_set(err, RPC_ERROR_UNSUPPORTED, EOPNOTSUPP, NULL, NULL,
				     "a device is of no known architecture: \"%s\"", cpu);
	if (r < 0)
		return agent_err_set(err, RPC_ERROR_FAILED, -r, NULL, NULL,
				     "starting the disassembler: %s", strerror(-r));
	return 0;
}

/* Open the disassembler for the device of the focus, unless it is open. */
static int open_disasm(struct dap *d, struct agent_err *err)
{
	const struct rpc_group *g =
		d->focus < d->snap->n_threads ? d->snap->threads[d->focus].group : NULL;
	const struct rpc_device *device = g ? dap_device(d, g->gpu_id) : d->snap->doc.devices;

	if (!device || !d->snap->doc.n_devices)
		return agent_err_set(err, RPC_ERROR_FAILED, ENODEV, NULL, NULL,
				     "the process has no device whose instructions these could be");
	return dap_disasm_for(d, device->arch, err);
}

void dap_disasm_note(struct dap *d)
{
	if (d->disasm_noted || !disasm_note(d->disasm))
		return;
	d->disasm_noted = true;
	dap_output(d, "console", "%s", disasm_note(d->disasm));
}

const struct rpc_code_place *dap_locate(struct dap *d, struct rpc_arena *a, uint64_t *addresses, size_t n)
{
	const struct rpc_code_locate_params p = { .session = d->session, .addresses = addresses,
						  .n_addresses = n };
	struct rpc_code_locate_result result;
	struct agent_err err;

	if (rpc_client_code_locate(d->client, &p, a, &result, &err) < 0 || result.n_places < n)
		return NULL;
	return result.places;
}

/*
 * Read and decode the lines.  Instructions differ in length: they can be counted only from the
 * function's beginning on.  It is no failure that there is no memory; any other failure is one.
 */
static int get_lines(struct dap *d, struct listing *l, struct agent_err *err)
{
	size_t before = l->offset < 0 ? (size_t)-l->offset : 0;
	size_t behind = l->offset + (int64_t)l->count > 0 ? (size_t)(l->offset + (int64_t)l->count) : 0;
	const struct rpc_code_place *place = dap_locate(d, &d->arena, &l->address, 1);
	struct rpc_memory_read_params p = { .session = d->session };
	struct disasm_range range = { .around = l->address, .before = before, .count = behind + 1 };
	uint8_t *code;
	size_t size, want = (behind + 1) * DISASM_LONGEST;
	ssize_t n;
	int r;

	l->start = place && place->has_symbol ? place->symbol.address : l->address;
	/*
	 * A function too long to be read is counted from the address itself: lines in front are
	 * missing then.
	 */
	if (l->start > l->address || l->address - l->start + want > DAP_MEMORY_MAX)
		l->start = l->address;
	p.address = range.start = l->start;
	p.size = (uint32_t)(l->address - l->start + want);
	r = dap_memory_get(d, &p, &code, &size, err);
	if (r < 0)
		return dap_is_unreadable(err) ? 0 : r;
	l->code = code;
	l->lines = rpc_arena_array(&d->arena, before + behind + 1, sizeof(*l->lines));
	if (!l->lines)
		return agent_err_no_memory(err, NULL);
	n = disasm_lines(d->disasm, code, size, &range, l->lines, &l->at);
	/* Memory may have ended before the address. */
	if (n < 0 && n != -EINVAL)
		return agent_err_set(err, RPC_ERROR_FAILED, (int)-n, NULL, NULL, "disassembling: %s",
				     strerror((int)-n));
	l->n = n > 0 ? (size_t)n : 0;
	dap_disasm_note(d);
	return 0;
}

/* Find the source lines, as many as one call takes. */
static void find_sources(struct dap *d, struct listing *l)
{
	size_t n = l->n < INSTRUCTIONS_MAX ? l->n : INSTRUCTIONS_MAX;
	uint64_t *addresses = rpc_arena_array(&d->arena, n, sizeof(*addresses));

	if (!addresses || !n)
		return;
	l->n = n;
	for (size_t i = 0; i < n; i++)
		addresses[i] = l->lines[i].address;
	l->places = dap_locate(d, &d->arena, addresses, n);
}

/* Append the source of an instruction.  @return false if it is not to be had. */
static bool put_location(struct dap *d, struct out *o, const struct rpc_code_place *p, const char *file)
{
	const char *path = dap_source_path(d, &d->arena, file);
	uint32_t reference = path ? 0 : dap_embedded_at(d, p, file);

	if (!path && !reference)
		return false;
	out_json_fmt(o, ",'location':{'name':%s", str_base_name(file));
	if (path)
		dap_put_path(d, o, path);
	else
		out_json_fmt(o, ",'sourceReference':%u", reference);
	out_char(o, '}');
	return true;
}

/*
 * Append symbol and source line of an instruction.
 * @param file  File of the instructions above, as far as they are shown; NULL for none.  A location
 * is repeated only when it changes.
 */
static void put_place(struct dap *d, struct out *o, const struct rpc_code_place *p,
		      const char **file)
{
	const struct rpc_frame *f = p->n_frames ? &p->frames[0] : NULL;

	if (p->has_symbol && p->symbol.name && p->address == p->symbol.address)
		out_json_fmt(o, ",'symbol':%s", p->symbol.name);
	if (!f || !f->file || !f->has_line)
		return;
	if (!*file || strcmp(*file, f->file) != 0) {
		if (!put_location(d, o, p, f->file))
			return;
		*file = f->file;
	}
	out_json_fmt(o, ",'line':%u", f->line - !d->lines_from);
}

/* Append one instruction. */
static void put_line(struct dap *d, struct out *o, const struct listing *l, size_t i,
		     const char **file)
{
	const struct disasm_line *line = &l->lines[i];
	const uint8_t *bytes = l->code + (line->address - l->start);

	out_json_fmt(o, "'address':%" PRIx64 ",'instructionBytes':'", line->address);
	for (uint32_t k = 0; k < line->size; k++)
		out_fmt(o, "%s%02x", k ? " " : "", bytes[k]);
	out_json_fmt(o, "','instruction':%s", line->text);
	if (l->places)
		put_place(d, o, &l->places[i], file);
}

/*
 * An address moved by words.  The first and the last address stand for those beyond them: editors
 * look rows up by address.
 */
static uint64_t moved(uint64_t address, int64_t words, uint32_t word)
{
	uint64_t by = (uint64_t)(words < 0 ? -words : words) * word;

	if (words < 0)
		return address > by ? address - by : 0;
	return by < UINT64_MAX - address ? address + by : UINT64_MAX;
}

/*
 * Append a line without an instruction.  Editors count lines, so there must be as many as they
 * asked for.
 */
static void put_nothing(struct out *o, const struct listing *l, int64_t from_at)
{
	const struct disasm_line *last = l->n ? &l->lines[l->n - 1] : NULL;
	uint64_t address;

	if (last && from_at < 0)
		address = moved(l->lines[0].address, from_at + (int64_t)l->at, l->word);
	else if (last)
		address = moved(last->address + last->size, from_at - (int64_t)(l->n - l->at),
				l->word);
	else
		address = moved(l->address, from_at, l->word);
	out_json_fmt(o, "'address':%" PRIx64 ",'instruction':'(no code)','presentationHint':'invalid'",
		     address);
}

int dap_disassemble(struct dap *d, const struct dap_request *q, struct dap_answer *ret)
{
	struct listing l = { 0 };
	const char *file = NULL;
	int64_t count;
	int r = dap_memory_reference(q->args, &l.address, &ret->err);

	if (r == 0)
		r = dap_count_arg(q->args, "instructionCount", 0, INSTRUCTIONS_MAX, &count, &ret->err);
	if (r == 0 && dap_json_has(dap_json_get(q->args, "instructionOffset")))
		r = dap_count_arg(q->args, "instructionOffset", -INSTRUCTIONS_MAX, INSTRUCTIONS_MAX,
			      &l.offset, &ret->err);
	if (r == 0)
		r = open_disasm(d, &ret->err);
	if (r < 0)
		return r;
	l.count = (size_t)count;
	l.word = disasm_word_size(d->disasm);
	r = get_lines(d, &l, &ret->err);
	if (r < 0)
		return r;
	find_sources(d, &l);
	out_json_fmt(&ret->body, "{'instructions':[");
	for (int64_t i = l.offset; i < l.offset + count; i++) {
		int64_t at = i + (int64_t)l.at;

		out_json_fmt(&ret->body, ",{");
		if (at >= 0 && (size_t)at < l.n)
			put_line(d, &ret->body, &l, (size_t)at, &file);
		else
			put_nothing(&ret->body, &l, i);
		out_char(&ret->body, '}');
	}
	out_str(&ret->body, "]}");
	return 0;
}

/* ------------------------------------------------------------------ as text ------------------ */

int dap_show_instructions(struct dap *d, uint64_t address, uint32_t before, uint32_t count,
			  struct out *o, struct agent_err *err)
{
	struct listing l = { .address = address, .offset = -(int64_t)before,
			     .count = (size_t)before + count };
	int r = open_disasm(d, err);

	if (r == 0)
		r = get_lines(d, &l, err);
	if (r < 0)
		return r;
	if (!l.n)
		return agent_err_set(err, RPC_ERROR_FAILED, EFAULT, NULL, NULL,
				     "there is no code at 0x%" PRIx64, address);
	for (size_t i = 0; i < l.n && i < l.at + count; i++)
		out_fmt(o, "%s%s 0x%012" PRIx64 "  %s", o->size ? "\n" : "",
			i == l.at ? "=>" : "  ", l.lines[i].address, l.lines[i].text);
	return 0;
}
