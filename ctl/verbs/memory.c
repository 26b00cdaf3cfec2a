/* SPDX-License-Identifier: MIT */
/*
 * gpu-agentctl memory: read memory of a process, of a workgroup or of a lane.  Long ranges are read
 * in pieces and delivered as they come.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ctl/ctl.h"
#include "ctl/terminal/text.h"

/*
 * Bytes of one call: below the agent's limit, whole pages, and a multiple of three, so that pieces
 * of base64 can be joined.
 */
#define PIECE    ((uint32_t)768 << 10)
#define HEX_MAX  (UINT64_C(16) << 20)
#define JSON_MAX (UINT64_C(128) << 20)
#define RAW_MAX  (UINT64_C(1) << 40)

/* Bytes of private memory in one call; a multiple of three as well. */
#define LANE_PIECE ((uint32_t)48 << 10)

static bool raw;
static const char *space_option, *wave_option, *lane_option, *bank_option;

static const struct argv_option options[] = {
	{ "space", 0, ARGV_STRING, &space_option, "SPACE", "global (default), lds (shared), scratch (local, private), generic, param, constant or code" },
	{ "wave", 0, ARGV_STRING, &wave_option, "WAVE", "whose memory, for all but global", "warp" },
	{ "lane", 0, ARGV_STRING, &lane_option, "N", "whose scratch or generic memory", "thread" },
	{ "bank", 0, ARGV_STRING, &bank_option, "N", "of constant memory (default 0)" },
	{ "raw", 0, ARGV_FLAG, &raw, NULL, "the bytes as they are; implied by -o" },
	{ 0 },
};

/* What is to be read, and how much of it was. */
struct range {
	uint64_t address, size;
	uint64_t done;
	struct rpc_memory_read_params of; /* The parameters that all calls share. */
};

/* Append a piece as it is wanted: base64 in JSON, bytes, or a hex dump. */
static int append(struct ctl *c, const struct range *m, const struct rpc_memory_read_result *piece)
{
	uint8_t *bytes;
	int r;

	if (ctl_is_json(c)) {
		out_str(&c->output.text, piece->data);
		return 0;
	}
	r = rpc_client_bytes(piece->data, piece->size, "memory.read", &c->arena, &bytes, &c->err);
	if (r < 0)
		return r;
	if (raw)
		out_bytes(&c->output.text, bytes, piece->size);
	else
		text_hexdump(&c->output.text, m->address + m->done, bytes, piece->size);
	return 0;
}

/* Read the next piece.  *ret_short is set when memory ended before the piece did. */
static int read_piece(struct ctl *c, struct range *m, bool *ret_short)
{
	struct rpc_memory_read_params p = m->of;
	struct rpc_memory_read_result result;
	uint64_t left = m->size - m->done;
	uint32_t most = p.space == RPC_MEMORY_SPACE_SCRATCH ? LANE_PIECE : PIECE;
	int r;

	p.address = m->address + m->done;
	p.size = left < most ? (uint32_t)left : most;
	r = ctl_called(c, rpc_client_memory_read(c->client, &p, &c->arena, &result, &c->err));
	if (r < 0)
		return r;
	if (result.size > p.size)
		return agent_err_set(&c->err, RPC_ERROR_INTERNAL, 0, "memory.read", NULL,
				     "the agent's reply holds no such bytes");
	r = append(c, m, &result);
	m->done += result.size;
	*ret_short = result.size < p.size;
	return r;
}

/*
 * Whether an error only says that the readable memory has ended.  It may end just where a piece
 * begins: then no bytes came with that answer.
 */
static bool is_end(struct ctl *c, const struct range *m)
{
	if (!m->done || c->err.code != RPC_ERROR_FAILED || c->err.err != EFAULT)
		return false;
	c->err = (struct agent_err){ 0 };
	out_reset(&c->err_json);
	return true;
}

/* Read all pieces, and make the document around them in JSON. */
static int read_range(struct ctl *c, struct range *m)
{
	struct out *o = &c->output.text;
	bool ended = false;
	int r = 0;

	if (ctl_is_json(c))
		out_json_fmt(o, "{'address':%" PRIx64 ",'data':'", m->address);
	while (r == 0 && m->done < m->size && !ended) {
		rpc_arena_reset(&c->arena);
		r = read_piece(c, m, &ended);
		if (r < 0 && is_end(c, m)) {
			ended = true;
			r = 0;
		}
		if (r == 0 && !ctl_is_json(c)) {
			int w = output_flush(&c->output);

			r = w < 0 ? ctl_fail(c, -w, "writing the output") : 0;
		}
	}
	if (ctl_is_json(c))
		out_json_fmt(o, "','size':%" PRIu64 "}", m->done);
	return r;
}

/*
 * The document was put together here, without regard for its style: write it anew in the style
 * asked for.
 */
static int restyle(struct ctl *c)
{
	auto_out struct out doc = c->output.text;

	out_init(&c->output.text, 0);
	return ctl_print_json(c, &doc);
}

/*
 * Find the wave of --wave.  The arena is emptied between the pieces, so that the workgroup is copied
 * out of it.
 */
static int find_wave(struct ctl *c, struct rpc_memory_read_params *of)
{
	static uint32_t workgroup[3];
	int r = of->has_wave ? args_find_wave(c, &of->wave) : 0;

	if (r < 0)
		return r;
	if (of->wave.n_workgroup) {
		memcpy(workgroup, of->wave.workgroup, sizeof(workgroup));
		of->wave.workgroup = workgroup;
	}
	return 0;
}

/* Read the memory space and what it needs: a wave, a lane, a bank. */
static int parse_space(struct ctl *c, struct rpc_memory_read_params *of)
{
	int64_t space = RPC_MEMORY_SPACE_GLOBAL;
	int r = 0;

	if (space_option &&
	    rpc_enum_value(&rpc_memory_space_enum, vendor_word_neutral(space_option), &space) < 0)
		return ctl_usage(c,
				 "--space: \"%.40s\" is none of global, lds (shared), scratch (local, "
				 "private), generic, param, constant, code",
				 space_option);
	of->space = (enum rpc_memory_space)space;
	of->has_space = space != RPC_MEMORY_SPACE_GLOBAL;
	if (of->has_space != (wave_option != NULL))
		return ctl_usage(c, "--wave goes with every --space but global, which need it");
	if ((space == RPC_MEMORY_SPACE_SCRATCH || space == RPC_MEMORY_SPACE_GENERIC) !=
	    (lane_option != NULL))
		return ctl_usage(
			c, "--lane goes with --space=scratch (local, private) and --space=generic, which need it");
	if (bank_option && space != RPC_MEMORY_SPACE_CONSTANT)
		return ctl_usage(c, "--bank goes with --space=constant");
	of->has_wave = wave_option;
	if (wave_option)
		r = args_wave(c, "--wave", wave_option, &of->wave);
	if (r == 0 && lane_option)
		r = args_u32(c, "--lane", lane_option, 0, 63, &of->lane);
	if (r == 0 && bank_option)
		r = args_u32(c, "--bank", bank_option, 0, 31, &of->bank);
	of->has_lane = lane_option;
	of->has_bank = bank_option;
	of->has_max_stop_ms = of->has_space && c->max_look_ms;
	of->max_stop_ms = c->max_look_ms;
	return r;
}

static int parse(struct ctl *c, char **argv, struct range *m)
{
	uint64_t max = ctl_is_json(c) ? JSON_MAX : raw ? RAW_MAX : HEX_MAX;
	int r = args_address(c, "ADDRESS", argv[1], &m->address);

	if (r == 0)
		r = args_size(c, "SIZE", argv[2], max, &m->size);
	if (r == 0)
		r = parse_space(c, &m->of);
	if (r == 0 && m->size - 1 > UINT64_MAX - m->address)
		r = ctl_usage(c, "SIZE: the range goes beyond the end of the address space");
	if (r == 0 && raw && !c->output.path && isatty(STDOUT_FILENO))
		r = ctl_usage(c, "--raw would write bytes to the terminal; use -o FILE or a pipe");
	return r;
}

static int run(struct ctl *c, int argc, char **argv)
{
	struct range m = { 0 };
	char session[65];
	int r;

	raw = !ctl_is_json(c) && (raw || c->output.path);
	r = parse(c, argv, &m);
	if (r == 0)
		r = ctl_attach(c, argv[0], false);
	if (r < 0)
		return r;
	snprintf(session, sizeof(session), "%s", c->session.session);
	c->session.session = session; /* The arena is emptied between the pieces. */
	m.of.session = session;
	r = find_wave(c, &m.of);
	if (r == 0)
		r = read_range(c, &m);
	if (r == 0 && ctl_is_json(c))
		r = restyle(c);
	ctl_detach(c);
	if (r < 0)
		return r;
	if (m.done < m.size)
		ctl_note(c, "only %" PRIu64 " of %" PRIu64 " bytes are readable", m.done, m.size);
	return ctl_status(m.done == m.size, false);
}

const struct ctl_verb ctl_verb_memory = {
	.name = "memory",
	.args = "PID ADDRESS SIZE",
	.summary = "Read memory as the GPUs of a process see it",
	.options = options,
	.min_args = 3,
	.max_args = 3,
	.takes_core = true,
	.run = run,
};
