/* SPDX-License-Identifier: MIT */
/* gpu-agentctl registers: the registers of one wave. */
#include <errno.h>
#include <string.h>

#include "base/bit_list.h"
#include "ctl/ctl.h"

/* Values of the options. */
static const char *banks, *lanes, *range;

static const struct argv_option options[] = {
	{ "bank", 0, ARGV_STRING, &banks, "BANK,...",
	  "of special, scalar (uniform), vector, accumulator, trap (default all)" },
	{ "range", 0, ARGV_STRING, &range, "A-B", "numbers of vector and accumulation registers" },
	{ "lanes", 0, ARGV_STRING, &lanes, "LANES",
	  "lanes of vector registers: a list such as 0-3,8, or all, or active, or part", "threads" },
	{ 0 },
};

/* Read the names of register banks. */
static int parse_banks(struct ctl *c, struct rpc_wave_registers_params *p)
{
	char *copy = rpc_arena_strdup(&c->arena, banks), *save;

	p->banks = rpc_arena_array(&c->arena, 8, sizeof(*p->banks));
	if (!copy || !p->banks)
		return ctl_fail(c, ENOMEM, "--bank");
	p->has_banks = true;
	for (char *w = strtok_r(copy, ",", &save); w; w = strtok_r(NULL, ",", &save)) {
		int64_t value;

		if (rpc_enum_value(&rpc_register_bank_enum, vendor_word_neutral(w), &value) < 0 || p->n_banks == 8)
			return ctl_usage(c, "--bank: \"%.40s\" is none of special, scalar, vector, "
					    "accumulator, trap",
					 w);
		p->banks[p->n_banks++] = (enum rpc_register_bank)value;
	}
	return p->n_banks ? 0 : ctl_usage(c, "--bank: needs names separated by commas");
}

static int parse(struct ctl *c, char **argv, struct rpc_wave_registers_params *p)
{
	uint32_t last;
	uint64_t listed;
	int r = args_wave(c, "WAVE", argv[1], &p->wave);

	if (r == 0 && banks)
		r = parse_banks(c, p);
	if (r == 0 && lanes && strcmp(lanes, "all") && strcmp(lanes, "active") && strcmp(lanes, "part") &&
	    bit_list_parse(lanes, &listed) < 0)
		r = ctl_usage(c, "--lanes: \"%.40s\" is none of all, active and part, nor a list such as 0-3,8", lanes);
	if (r == 0 && range) {
		r = args_range(c, "--range", range, 65535, &p->first, &last);
		p->has_first = p->has_count = true;
		p->count = last - p->first + 1;
	}
	p->has_max_stop_ms = c->max_look_ms;
	p->max_stop_ms = c->max_look_ms;
	return r;
}

/* Lanes of the part that a lane is in; all where there is one. */
static uint64_t part_of(const struct rpc_wave *w, uint32_t lane)
{
	for (size_t i = 0; i < w->n_parts; i++)
		if (w->parts[i].exec >> lane & 1)
			return w->parts[i].exec;
	return UINT64_MAX;
}

/* Which lanes are shown: a row that is about a part of a wave stands for the lanes of that. */
static uint64_t choose_lanes(const struct rpc_wave *w, bool has_lane, uint32_t lane)
{
	uint64_t listed;

	if (lanes && bit_list_parse(lanes, &listed) == 0)
		return listed;
	if (lanes ? !strcmp(lanes, "part") : has_lane)
		return part_of(w, has_lane || !w->exec ? lane : (uint32_t)__builtin_ctzll(w->exec));
	return lanes && !strcmp(lanes, "active") ? w->exec : UINT64_MAX;
}

static int ask(struct ctl *c, struct rpc_wave_registers_params *p)
{
	struct rpc_wave_registers_result result;
	uint32_t lane = 0;
	bool has_lane = false;
	int r;

	ctl_name_gpus_for_text(c);
	r = args_find_wave_lane(c, &p->wave, &has_lane, &lane);
	if (r == 0)
		r = ctl_called(c, rpc_client_wave_registers(c->client, p, &c->arena, &result, &c->err));
	if (r < 0 || ctl_is_json(c))
		return r < 0 ? r : ctl_print_result(c);
	return show_registers(c, &result.registers, choose_lanes(&result.registers.wave, has_lane, lane));
}

static int run(struct ctl *c, int argc, char **argv)
{
	struct rpc_wave_registers_params p = { 0 };
	int r = parse(c, argv, &p);

	if (r == 0)
		r = ctl_attach(c, argv[0], false);
	if (r < 0)
		return r;
	p.session = c->session.session;
	r = ask(c, &p);
	ctl_detach(c);
	return r;
}

const struct ctl_verb ctl_verb_registers = {
	.name = "registers",
	.args = "PID WAVE",
	.summary = "Show the registers of a wave",
	.options = options,
	.min_args = 2,
	.max_args = 2,
	.takes_core = true,
	.run = run,
};
