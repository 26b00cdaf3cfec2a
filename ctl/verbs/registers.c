/* SPDX-License-Identifier: MIT */
/* gpu-agentctl registers: the registers of one wave; gpu-agentctl lanes: what each of its lanes is at. */
#include <errno.h>
#include <string.h>

#include "ctl/ctl.h"
#include "ctl/terminal/table.h"

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

/* Ask for the wave; where that succeeds, the caller detaches. */
static int ask(struct ctl *c, char **argv, struct wanted *w, struct rpc_wave_registers_result *ret)
{
	int r = parse(c, argv, w);

	if (r == 0)
		r = ctl_attach(c, argv[0], false);
	if (r < 0)
		return r;
	w->p.session = c->session.session;
	ctl_name_gpus_for_text(c);
	r = args_find_wave(c, &w->p.wave);
	if (r == 0)
		r = ctl_called(c, rpc_client_wave_registers(c->client, &w->p, &c->arena, ret, &c->err));
	if (r < 0)
		ctl_detach(c);
	return r;
}

static int run(struct ctl *c, int argc, char **argv)
{
	struct wanted w = { 0 };
	struct rpc_wave_registers_result result;
	int r = ask(c, argv, &w, &result);

	if (r < 0)
		return r;
	r = ctl_is_json(c) ? ctl_print_result(c) : show_registers(c, &result.registers, w.first_lane, w.last_lane);
	ctl_detach(c);
	return r;
}

/* ------------------------------------------------------------------ lanes -------------------- */

/* What is told of a lane; AMD's have no pc of their own. */
struct lane {
	const struct rpc_work_item *item; /* NULL: it has none, or that is not known. */
	uint64_t pc;
	bool active;
};

static struct lane lane_at(const struct rpc_wave_registers *r, uint32_t i)
{
	struct lane l = { .pc = r->wave.pc, .active = r->wave.exec >> i & 1 };

	for (size_t k = 0; k < r->n_work_items && !l.item; k++)
		if (r->work_items[k].lane == i)
			l.item = &r->work_items[k];
	if (l.item && l.item->has_pc)
		l.pc = l.item->pc;
	return l;
}

/* Is it one of the wave's?  Where nothing is known of work-items, all of them are shown. */
static bool is_shown(const struct rpc_wave_registers *r, const struct lane *l)
{
	return l->item || l->active || !r->n_work_items;
}

static void lane_row(struct ctl *c, struct table *t, uint32_t i, const struct lane *l)
{
	const struct rpc_work_item *w = l->item;

	table_u64(t, i);
	table_str(t, w && w->n_in_group == 3
			     ? rpc_arena_printf(&c->arena, "%u,%u,%u", w->in_group[0], w->in_group[1], w->in_group[2])
			     : NULL);
	table_str(t, l->active ? "yes" : "no");
	table_hex(t, l->pc);
	table_style(t, COLOR_BAD, w ? w->exception : NULL);
}

static int show_lanes(struct ctl *c, const struct rpc_wave_registers *r)
{
	const bool nvidia = c->vendor == RPC_VENDOR_NVIDIA;
	const struct table_column columns[] = {
		{ "LANE", true },
		{ nvidia ? "THREAD" : "WORK-ITEM", .optional = true },
		{ "ACTIVE" },
		{ "PC" },
		{ "EXCEPTION", .optional = true, .importance = 1, .min = 12 },
	};
	size_t parts = r->wave.n_parts ? r->wave.n_parts : 1, shown = 0, active = 0;
	auto_table struct table t;
	int e = show_waves(c, &r->wave, 1);

	out_char(&c->output.text, '\n');
	table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
	for (uint32_t i = 0; i < r->wave.width && i < LANES_MAX; i++) {
		struct lane l = lane_at(r, i);

		if (!is_shown(r, &l))
			continue;
		lane_row(c, &t, i, &l);
		active += l.active;
		shown++;
	}
	table_note(&t, "%zu of %zu lanes active; %zu part%s: lanes that are at one place in one state", active, shown,
		   parts, parts == 1 ? "" : "s");
	return e < 0 ? e : ctl_print_table(c, &t);
}

static int run_lanes(struct ctl *c, int argc, char **argv)
{
	enum rpc_register_bank special = RPC_REGISTER_BANK_SPECIAL;
	struct wanted w = { .p = { .has_banks = true, .banks = &special, .n_banks = 1, .has_work_items = true,
				   .work_items = true } };
	struct rpc_wave_registers_result result;
	int r = ask(c, argv, &w, &result);

	if (r < 0)
		return r;
	r = ctl_is_json(c) ? ctl_print_result(c) : show_lanes(c, &result.registers);
	ctl_detach(c);
	return r;
}

const struct ctl_verb ctl_verb_lanes = {
	.name = "lanes",
	.args = "PID WAVE",
	.summary = "Show what each lane of a wave works on and where it is",
	.min_args = 2,
	.max_args = 2,
	.takes_core = true,
	.run = run_lanes,
};

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
