/* SPDX-License-Identifier: MIT */
/* Script commands that make attaching, events and calls go another way than usual. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

/* A word and what it stands for. */
struct word_value {
	const char *word;
	int value;
};

/* Find the value of a word in a table. */
static int word_find(const struct word_value *table, size_t n, const char *word, int *ret)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(table[i].word, word)) {
			*ret = table[i].value;
			return 0;
		}
	return -EINVAL;
}

/* ---- attach ---- */

static int cmd_replay(struct sim_process *p, const struct args *a)
{
	static const struct word_value modes[] = { { "auto", REPLAY_AUTO },
						   { "none", REPLAY_NONE },
						   { "hang", REPLAY_HANG },
						   { "endless", REPLAY_ENDLESS } };
	uint64_t batch, extra;
	int mode;

	if (a->n < 2 || word_find(modes, 4, a->word[1], &mode) ||
	    arg_key(a, "batch", 0, UINT32_MAX, &batch) || arg_key(a, "extra", 0, 10000, &extra))
		return -EINVAL;
	p->script.replay = (enum sim_replay)mode;
	p->script.replay_batch = (uint32_t)batch;
	p->script.replay_extra = (uint32_t)extra;
	p->script.replay_reverse = arg_value(a, "reverse");
	return 0;
}

static int cmd_attach(struct sim_process *p, const struct args *a)
{
	uint64_t result, times, delay;

	if (arg_number(a, 1, UINT16_MAX, &result) ||
	    arg_key(a, "times", result != 0, UINT32_MAX, &times) ||
	    arg_key(a, "delay", 0, UINT32_MAX, &delay))
		return -EINVAL;
	p->script.attach_result = (uint32_t)result;
	p->script.attach_times = (uint32_t)times;
	p->script.attach_delay_ms = (uint32_t)delay;
	p->script.attach_kill = arg_value(a, "kill");
	return 0;
}

static int cmd_second(struct sim_process *p, const struct args *a)
{
	static const struct word_value modes[] = { { "ok", SECOND_OK },
						   { "inactive", SECOND_INACTIVE },
						   { "refused", SECOND_REFUSED } };
	int mode;

	if (a->n != 2 || word_find(modes, 3, a->word[1], &mode))
		return -EINVAL;
	p->script.second = (enum sim_second)mode;
	return 0;
}

/* Read `on` or `off`. */
static int on_off(const struct args *a, bool *ret)
{
	if (a->n != 2 || (strcmp(a->word[1], "on") && strcmp(a->word[1], "off")))
		return -EINVAL;
	*ret = !strcmp(a->word[1], "on");
	return 0;
}

static int cmd_mps(struct sim_process *p, const struct args *a)
{
	return on_off(a, &p->script.mps);
}

static int cmd_same_regions(struct sim_process *p, const struct args *a)
{
	return on_off(a, &p->script.same_regions);
}

static int cmd_few_registers(struct sim_process *p, const struct args *a)
{
	uint64_t n;

	if (arg_number(a, 1, 255, &n))
		return -EINVAL;
	p->script.few_registers = (uint32_t)n;
	return 0;
}

static int cmd_let_go(struct sim_process *p, const struct args *a)
{
	return on_off(a, &p->script.let_go);
}

static int cmd_no_complete(struct sim_process *p, const struct args *a)
{
	return on_off(a, &p->script.no_complete);
}

static int cmd_batched(struct sim_process *p, const struct args *a)
{
	uint64_t device, sm, warp, lane, unknown;

	if (arg_key(a, "device", 0, 255, &device) || arg_key(a, "sm", 0, 255, &sm) ||
	    arg_key(a, "warp", 0, 255, &warp) || arg_key(a, "lane", 0, 255, &lane) ||
	    arg_key(a, "unknown", 0, 255, &unknown))
		return -EINVAL;
	p->script.grow_device = (uint32_t)device;
	p->script.grow_sm = (uint32_t)sm;
	p->script.grow_warp = (uint32_t)warp;
	p->script.grow_lane = (uint32_t)lane;
	p->script.unknown_attr = (uint32_t)unknown;
	p->script.always_full = arg_value(a, "full");
	return 0;
}

/* ---- events ---- */

static const struct word_value event_kinds[] = {
	{ "internal-error", CUDBGABI_EVENT_INTERNAL_ERROR },
	{ "timeout", CUDBGABI_EVENT_TIMEOUT },
	{ "ctx-push", CUDBGABI_EVENT_CTX_PUSH },
	{ "ctx-pop", CUDBGABI_EVENT_CTX_POP },
	{ "ctx-create", CUDBGABI_EVENT_CTX_CREATE },
	{ "ctx-destroy", CUDBGABI_EVENT_CTX_DESTROY },
	{ "attach-complete", CUDBGABI_EVENT_ATTACH_COMPLETE },
	{ "detach-complete", CUDBGABI_EVENT_DETACH_COMPLETE },
	{ "devices-suspended", CUDBGABI_EVENT_ALL_DEVICES_SUSPENDED },
	{ "logs-threshold", CUDBGABI_EVENT_CUDA_LOGS_THRESHOLD_REACHED },
};

/* Append events: a kind by name or number, payload bytes in hex. */
static int cmd_event(struct sim_process *p, const struct args *a)
{
	const char *hex = arg_value(a, "hex");
	uint8_t payload[SIM_EVENT_SIZE - 4] = { 0 };
	uint64_t kind, count;
	int named;

	if (a->n < 2 || arg_key(a, "count", 1, SIM_EVENTS_MAX, &count) ||
	    (hex && strlen(hex) > 2 * sizeof(payload)))
		return -EINVAL;
	if (!word_find(event_kinds, sizeof(event_kinds) / sizeof(event_kinds[0]), a->word[1],
		       &named))
		kind = (uint64_t)named;
	else if (arg_number(a, 1, UINT32_MAX, &kind))
		return -EINVAL;
	for (size_t i = 0; hex && hex[2 * i] && hex[2 * i + 1]; i++) {
		const char digits[] = { hex[2 * i], hex[2 * i + 1], 0 };

		payload[i] = (uint8_t)strtoul(digits, NULL, 16);
	}
	for (uint64_t i = 0; i < count; i++)
		sim_queue_push(arg_value(a, "async") ? &p->async : &p->sync, (uint32_t)kind,
			       payload, sizeof(payload));
	p->broken_api |= kind == CUDBGABI_EVENT_INTERNAL_ERROR;
	sim_events_announce(p, CUDBGABI_NO_TID);
	return 0;
}

/* Call the debugger's callback with no event behind it. */
static int cmd_storm(struct sim_process *p, const struct args *a)
{
	uint64_t n, timeout;

	if (arg_number(a, 1, 1000000, &n) || arg_key(a, "timeout", 0, 1, &timeout))
		return -EINVAL;
	for (uint64_t i = 0; i < n; i++)
		p->sim->os->notify(p, (uint32_t)p->pid, (uint32_t)timeout);
	return 0;
}

/* ---- single calls ---- */

/* Add a fault: slot number, name or `*`, then what the kind needs. */
static int fault_add(struct sim_process *p, const struct args *a, enum fault_kind kind,
		     bool has_value)
{
	struct sim_fault *f, **at = &p->faults;
	uint64_t slot = SLOT_COUNT + 1, value = 0, from, count;

	if (a->n < 2 || (has_value && arg_number(a, 2, UINT32_MAX, &value)) ||
	    arg_key(a, "nth", 1, UINT32_MAX, &from) ||
	    arg_key(a, "count", UINT32_MAX, UINT32_MAX, &count))
		return -EINVAL;
	if (!strcmp(a->word[1], "*"))
		slot = SLOT_COUNT;
	for (uint32_t i = 0; i < SLOT_COUNT; i++)
		if (!strcmp(slot_table[i].name, a->word[1]))
			slot = i;
	if (slot > SLOT_COUNT && arg_number(a, 1, SLOT_COUNT - 1, &slot))
		return -EINVAL;
	f = malloc(sizeof(*f));
	if (!f)
		return -ENOMEM;
	*f = (struct sim_fault){
		NULL, kind, (uint32_t)slot, (uint32_t)value, (uint32_t)from, (uint32_t)count, 0
	};
	while (*at)
		at = &(*at)->next;
	*at = f;
	return 0;
}

static int cmd_fail(struct sim_process *p, const struct args *a)
{
	return fault_add(p, a, FAULT_RESULT, true);
}
static int cmd_delay(struct sim_process *p, const struct args *a)
{
	return fault_add(p, a, FAULT_DELAY, true);
}
static int cmd_truncate(struct sim_process *p, const struct args *a)
{
	return fault_add(p, a, FAULT_TRUNCATE, true);
}
static int cmd_hang(struct sim_process *p, const struct args *a)
{
	return fault_add(p, a, FAULT_HANG, false);
}
static int cmd_kill_target(struct sim_process *p, const struct args *a)
{
	return fault_add(p, a, FAULT_KILL_TARGET, false);
}
static int cmd_kill_engine(struct sim_process *p, const struct args *a)
{
	return fault_add(p, a, FAULT_KILL_ENGINE, false);
}

static int cmd_heal(struct sim_process *p, const struct args *a)
{
	while (p->faults) {
		struct sim_fault *f = p->faults;

		p->faults = f->next;
		free(f);
	}
	p->script = (struct sim_script){ 0 };
	return 0;
}

const struct command wish_commands[] = {
	{ "replay", cmd_replay,
	  "auto|none|hang|endless [batch=N] [extra=N] [reverse=1]: events at attach" },
	{ "attach", cmd_attach,
	  "RESULT [times=N] [delay=MS] [kill=1]: how the engine starts; 0 is well, and ends a delay" },
	{ "second", cmd_second, "ok|inactive|refused: attaching again after a detach" },
	{ "mps", cmd_mps, "on|off: attach is not possible" },
	{ "same-regions", cmd_same_regions,
	  "on|off: every list of managed memory begins with the first region" },
	{ "few-registers", cmd_few_registers, "N: readRegisterRange gives no more; 0: all" },
	{ "let-go", cmd_let_go,
	  "on|off: when a debugger dies, the GPUs that it had suspended go on" },
	{ "no-complete", cmd_no_complete, "on|off: DETACH_COMPLETE never comes" },
	{ "batched", cmd_batched,
	  "[device=N] [sm=N] [warp=N] [lane=N] [unknown=N] [full=1]: larger records" },
	{ "event", cmd_event, "KIND [hex=BYTES] [count=N] [async=1]" },
	{ "storm", cmd_storm, "N [timeout=1]: callbacks without events" },
	{ "fail", cmd_fail, "SLOT RESULT [nth=N] [count=N]" },
	{ "delay", cmd_delay, "SLOT MS [nth=N] [count=N]" },
	{ "truncate", cmd_truncate, "SLOT BYTES [nth=N] [count=N]: the first output is cut" },
	{ "hang", cmd_hang, "SLOT [nth=N] [count=N]: no answer" },
	{ "kill-target", cmd_kill_target, "SLOT [nth=N] [count=N]" },
	{ "kill-engine", cmd_kill_engine, "SLOT [nth=N] [count=N]" },
	{ "heal", cmd_heal, "forget all of these" },
	{ NULL },
};
