/* SPDX-License-Identifier: MIT */
/* gpu-agentctl registers: the registers of one wave. */
#include <errno.h>
#include <string.h>

#include "ctl/ctl.h"

/* Most lanes that a wave has. */
#define LANES_MAX   64u

/* Values of the options. */
static const char *banks, *lanes, *range;

static const struct argv_option options[] = {
	{ "bank", 0, ARGV_STRING, &banks, "BANK,...",
	  "of special, scalar (uniform), vector, accumulator, trap (default all)" },
	{ "range", 0, ARGV_STRING, &range, "A-B", "numbers of vector and accumulation registers" },
	{ "lanes", 0, ARGV_STRING, &lanes, "A-B", "lanes of vector registers", "threads" },
	{ 0 },
};

/* The parameters, and which lanes are shown of what comes. */
struct wanted {
	struct rpc_wave_registers_params p;
	uint32_t first_lane, last_lane;
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

static int parse(struct ctl *c, char **argv, struct wanted *w)
{
	uint32_t last;
	int r = args_wave(c, "WAVE", argv[1], &w->p.wave);

	w->last_lane = LANES_MAX - 1;
	if (r == 0 && banks)
		r = parse_banks(c, &w->p);
	if (r == 0 && lanes)
		r = args_range(c, "--lanes", lanes, LANES_MAX - 1, &w->first_lane, &w->last_lane);
	if (r == 0 && range) {
		r = args_range(c, "--range", range, 65535, &w->p.first, &last);
		w->p.has_first = w->p.has_count = true;
		w->p.count = last - w->p.first + 1;
	}
	w->p.has_max_stop_ms = c->max_look_ms;
	w->p.max_stop_ms = c->max_look_ms;
	return r;
}

static int run(struct ctl *c, int argc, char **argv)
{
	struct wanted w = { 0 };
	struct rpc_wave_registers_result result;
	int r = parse(c, argv, &w);

	if (r == 0)
		r = ctl_attach(c, argv[0], false);
	if (r < 0)
		return r;
	w.p.session = c->session.session;
	ctl_name_gpus_for_text(c);
	r = args_find_wave(c, &w.p.wave);
	if (r == 0)
		r = ctl_called(c, rpc_client_wave_registers(c->client, &w.p, &c->arena, &result, &c->err));
	if (r == 0)
		r = ctl_is_json(c)
			    ? ctl_print_result(c)
			    : show_registers(c, &result.registers, w.first_lane, w.last_lane);
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
