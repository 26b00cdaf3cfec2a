/* SPDX-License-Identifier: MIT */
/* The commands of the control file; control.h lists them. */
#include "control.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/str.h"
#include "tests/lib/words.h"
#include "sim/kfd/device/waves.h"

/* Exception codes that no kernel raises. */
#define NEVER_MASK                                                                                 \
	(KFDABI_EC_MASK(KFDABI_EC_QUEUE_PREEMPTION_ERROR) |                                        \
	 KFDABI_EC_MASK(KFDABI_EC_DEVICE_RAS_ERROR) |                                              \
	 KFDABI_EC_MASK(KFDABI_EC_DEVICE_FATAL_HALT) | KFDABI_EC_MASK(KFDABI_EC_DEVICE_NEW) |      \
	 KFDABI_EC_MASK(KFDABI_EC_PROCESS_DEVICE_REMOVE))

static int parse_process(struct sim *s, const char *w, struct sim_process **ret)
{
	uint64_t pid;

	if (!w || str_to_u64(w, 1, INT32_MAX, &pid))
		return -EINVAL;
	*ret = sim_process_find(s, (int)pid);
	return *ret ? 0 : -ESRCH;
}

static int parse_gpu(struct sim *s, const char *w, struct sim_gpu **ret)
{
	uint64_t n;

	if (!w)
		return -EINVAL;
	if (*w == '#') {
		if (str_to_u64(w + 1, 0, SIM_GPUS_MAX, &n))
			return -EINVAL;
		*ret = n < s->n_gpus ? &s->gpus[n] : NULL;
	} else {
		if (str_to_u64_any(w, &n))
			return -EINVAL;
		*ret = sim_gpu_find(s, (uint32_t)n);
	}
	return *ret ? 0 : -ENODEV;
}

static int parse_queue(struct sim_process *p, const char *w, struct sim_queue **ret)
{
	uint64_t id;

	if (!w || str_to_u64(w, 0, KFDABI_MAX_QUEUES_PER_PROCESS, &id))
		return -EINVAL;
	*ret = sim_queue_find(p, (uint32_t)id);
	return *ret ? 0 : -ENODEV;
}

static int parse_switch(const char *w, bool *ret)
{
	if (!w || (strcmp(w, "on") && strcmp(w, "off")))
		return -EINVAL;
	*ret = !strcmp(w, "on");
	return 0;
}

/* Read how often something is to happen; once if nothing is said. */
static int parse_count(const char *w, uint32_t *ret)
{
	uint64_t n = 1;

	if (w && str_to_u64(w, 1, 1000000, &n))
		return -EINVAL;
	*ret = (uint32_t)n;
	return 0;
}

/* Read codes joined by commas, or a mask in hexadecimal. */
static int parse_codes(char *w, uint64_t *ret)
{
	char *save = NULL;
	uint64_t code;

	if (!w)
		return -EINVAL;
	if (str_starts_with(w, "0x"))
		return str_to_hex64(w, ret);
	*ret = 0;
	for (char *t = strtok_r(w, ",", &save); t; t = strtok_r(NULL, ",", &save)) {
		if (str_to_u64(t, 1, KFDABI_EC_MAX - 1, &code))
			return -EINVAL;
		*ret |= KFDABI_EC_MASK(code);
	}
	return *ret ? 0 : -EINVAL;
}

/* ---- raising ---- */

/* Read codes, and check that the source can raise them. */
static int raise_on(struct sim *s, struct sim_process *p, const struct words *w, uint64_t *ret_mask,
		    char *codes, uint64_t class)
{
	int r = parse_codes(codes, ret_mask);

	if (r)
		return r;
	if ((*ret_mask & ~class) || ((*ret_mask & NEVER_MASK) && !s->allow_never))
		return -EINVAL;
	return 0;
}

static int cmd_raise(struct sim *s, const struct words *w)
{
	struct sim_process *p;
	struct sim_queue *q;
	struct sim_gpu *g;
	uint64_t mask;
	int r;

	if (w->n < 4 || w->n > 5)
		return -EINVAL;
	r = parse_process(s, w->w[1], &p);
	if (r)
		return r;
	if (!strcmp(w->w[2], "process")) {
		r = raise_on(s, p, w, &mask, w->w[3], KFDABI_EC_MASK_PROCESS);
		if (!r)
			sim_raise(s, p, NULL, NULL, mask, false);
		return r;
	}
	if (!strcmp(w->w[2], "gpu")) {
		r = parse_gpu(s, w->w[3], &g);
		if (!r)
			r = raise_on(s, p, w, &mask, w->w[4], KFDABI_EC_MASK_DEVICE);
		if (!r)
			sim_raise(s, p, NULL, sim_device_find(p, g->gpu_id), mask, false);
		return r;
	}
	if (strcmp(w->w[2], "queue"))
		return -EINVAL;
	r = parse_queue(p, w->w[3], &q);
	if (!r)
		r = raise_on(s, p, w, &mask, w->w[4], KFDABI_EC_MASK_QUEUE);
	if (!r)
		sim_interrupt_queue(s, p, q, mask);
	return r;
}

static int cmd_fault(struct sim *s, const struct words *w)
{
	struct kfdabi_memory_exception_data data = { 0 };
	struct sim_process *p;
	struct sim_gpu *g;
	int r = parse_process(s, w->w[1], &p);

	if (!r)
		r = parse_gpu(s, w->w[2], &g);
	if (r || !w->w[3] || str_to_u64_any(w->w[3], &data.va))
		return r ? r : -EINVAL;
	data.va &= ~UINT64_C(4095);
	data.gpu_id = g->gpu_id;
	for (int i = 4; i < w->n; i++) {
		if (!strcmp(w->w[i], "not-present"))
			data.not_present = 1;
		else if (!strcmp(w->w[i], "read-only"))
			data.read_only = 1;
		else if (!strcmp(w->w[i], "no-execute"))
			data.no_execute = 1;
		else if (!strcmp(w->w[i], "imprecise"))
			data.imprecise = 1;
		else
			return -EINVAL;
	}
	sim_interrupt_fault(s, p, sim_device_find(p, g->gpu_id), &data);
	return 0;
}

/* ---- failures ---- */

static int cmd_fail(struct sim *s, const struct words *w)
{
	bool suspend = !strcmp(w->w[0], "fail-suspend");
	struct sim_process *p;
	struct sim_queue *q;
	struct sim_gpu *g;
	uint32_t n;
	int r;

	if (w->n < 3 || parse_count(w->w[3], &n))
		return -EINVAL;
	if (!strcmp(w->w[1], "gpu")) {
		r = parse_gpu(s, w->w[2], &g);
		if (!r)
			*(suspend ? &g->fail_suspend : &g->fail_resume) = n;
		return r;
	}
	r = parse_process(s, w->w[1], &p);
	if (!r)
		r = parse_queue(p, w->w[2], &q);
	if (!r)
		*(suspend ? &q->fail_suspend : &q->fail_resume) = n;
	return r;
}

static int cmd_fail_activate(struct sim *s, const struct words *w)
{
	struct sim_gpu *g;
	int r = parse_gpu(s, w->w[1], &g);

	if (r || !w->w[2])
		return r ? r : -EINVAL;
	if (!strcmp(w->w[2], "busy"))
		g->fail_activate = KFDABI_RUNTIME_STATE_ENABLED_BUSY;
	else if (!strcmp(w->w[2], "error"))
		g->fail_activate = KFDABI_RUNTIME_STATE_ENABLED_ERROR;
	else if (!strcmp(w->w[2], "off"))
		g->fail_activate = 0;
	else
		return -EINVAL;
	return 0;
}

/* Read an errno by its number or name. */
static int parse_errno(const char *w, int *ret)
{
	uint64_t n;

	if (!str_to_u64(w, 1, 133, &n)) {
		*ret = (int)n;
		return 0;
	}
	for (int e = 1; e < 134; e++) {
		const char *name = strerrorname_np(e);

		if (name && !strcmp(name, w)) {
			*ret = e;
			return 0;
		}
	}
	return -EINVAL;
}

/* errno, late, delay, partial, silent: what the next calls of an operation do. */
static int cmd_inject(struct sim *s, const struct words *w)
{
	struct sim_injection *i;
	uint64_t value = 0;
	uint32_t count;
	int error = 0;

	if (w->n < 3 || !sim_op_is_known(w->w[1]) || parse_count(w->w[3], &count))
		return -EINVAL;
	if (!strcmp(w->w[0], "errno") || !strcmp(w->w[0], "late") ? parse_errno(w->w[2], &error)
				      : str_to_u64(w->w[2], 0, 600000, &value))
		return -EINVAL;
	i = sim_injection_get(s, w->w[1]);
	if (!i)
		return -ENOMEM;
	i->count = count;
	if (error) {
		i->error = error;
		i->late = !strcmp(w->w[0], "late");
	} else if (!strcmp(w->w[0], "delay")) {
		i->delay_ms = (uint32_t)value;
	} else {
		i->has_partial = true;
		i->partial = (uint32_t)value;
		i->silent = !strcmp(w->w[0], "silent");
	}
	return 0;
}

static int cmd_block(struct sim *s, const struct words *w)
{
	bool after = false, hard = false;
	struct sim_injection *i;
	uint64_t skip = 0;

	if (w->n < 2 || !sim_op_is_known(w->w[1]))
		return -EINVAL;
	for (int k = 2; k < w->n; k++) {
		if (!strcmp(w->w[k], "after"))
			after = true;
		else if (!strcmp(w->w[k], "hard"))
			hard = true;
		else if (!str_starts_with(w->w[k], "skip=") ||
			 str_to_u64(w->w[k] + strlen("skip="), 0, 1000, &skip))
			return -EINVAL;
	}
	i = sim_injection_get(s, w->w[1]);
	if (!i)
		return -ENOMEM;
	i->count = 1;
	i->skip = (uint32_t)skip;
	i->hard = hard;
	*(after ? &i->block_after : &i->block_before) = true;
	return 0;
}

/* ---- waves ---- */

/* Bytes of the longest script of waves. */
#define SCRIPT_MAX 65536

static int waves_from_file(struct sim_process *p, struct sim_queue *q, const char *path)
{
	auto_free char *text = NULL;
	size_t size;
	int r = fd_read_file(path, SCRIPT_MAX, &text, &size);

	return r ? r : sim_waves_plant(p, q, text);
}

/*
 * Make a line of a script of the words KIND N [PC] [KEY=VALUE...], up to the word "and" or the end.
 * @return the position behind the last word, or -EINVAL.
 */
static int waves_line(const struct words *w, int i, struct out *text)
{
	if (w->n < i + 2)
		return -EINVAL;
	out_fmt(text, "%s n=%s", w->w[i], w->w[i + 1]);
	i += 2;
	if (i < w->n && !strchr(w->w[i], '=') && strcmp(w->w[i], "and"))
		out_fmt(text, " pc=%s", w->w[i++]);
	while (i < w->n && strcmp(w->w[i], "and"))
		out_fmt(text, " %s", w->w[i++]);
	out_str(text, "\n");
	return i;
}

/* Plant the waves that words describe: KIND N [PC] [KEY=VALUE...] [and KIND N ...]. */
static int waves_from_words(struct sim_process *p, struct sim_queue *q, const struct words *w)
{
	auto_out struct out lines;
	auto_free char *text = NULL;
	size_t size;
	int i = 3, r;

	out_init(&lines, SCRIPT_MAX);
	do {
		i = waves_line(w, i, &lines);
		if (i < 0)
			return i;
	} while (i++ < w->n);
	r = out_steal(&lines, &text, &size);
	return r ? r : sim_waves_plant(p, q, text);
}

static int cmd_waves(struct sim *s, const struct words *w)
{
	struct sim_process *p;
	struct sim_queue *q;
	int r = parse_process(s, w->w[1], &p);

	if (!r)
		r = parse_queue(p, w->w[2], &q);
	if (r)
		return r;
	if (w->n == 4 && !strcmp(w->w[3], "clear")) {
		sim_waves_clear(q);
		return 0;
	}
	if (w->n == 5 && !strcmp(w->w[3], "script"))
		return waves_from_file(p, q, w->w[4]);
	return w->n >= 5 ? waves_from_words(p, q, w) : -EINVAL;
}

/* dispatch PID complete|hold [GPU]: what becomes of kernels, on one GPU or all. */
static int cmd_dispatch(struct sim *s, const struct words *w)
{
	struct sim_process *p;
	struct sim_gpu *g = NULL;
	int r = parse_process(s, w->w[1], &p);

	if (!r && w->n == 4)
		r = parse_gpu(s, w->w[3], &g);
	if (r)
		return r;
	if (w->n < 3 || w->n > 4 || (strcmp(w->w[2], "hold") && strcmp(w->w[2], "complete")))
		return -EINVAL;
	for (size_t i = 0; i < p->n_devices; i++)
		if (!g || p->devices[i].gpu == g)
			p->devices[i].holds_dispatches = !strcmp(w->w[2], "hold");
	return 0;
}

static int cmd_release(struct sim *s, const struct words *w)
{
	if (w->n > 1 && !sim_op_is_known(w->w[1]))
		return -EINVAL;
	sim_injection_release(s, w->w[1]);
	return 0;
}

/* ---- settings ---- */

static int cmd_gpu_state(struct sim *s, const struct words *w)
{
	struct sim_gpu *g;
	int r = parse_gpu(s, w->w[1], &g);

	if (r)
		return r;
	return parse_switch(w->w[2], !strcmp(w->w[0], "reset") ? &g->resetting : &g->lost);
}

static int cmd_progress(struct sim *s, const struct words *w)
{
	uint64_t ms;
	bool on;

	if (!parse_switch(w->w[1], &on))
		ms = on ? 5 : 0;
	else if (!w->w[1] || str_to_u64(w->w[1], 1, 60000, &ms))
		return -EINVAL;
	s->progress_ms = (uint32_t)ms;
	return 0;
}

/* Change a setting that has two values. */
static int cmd_setting(struct sim *s, const struct words *w)
{
	const struct {
		const char *name, *off, *on;
		bool *value;
	} settings[] = {
		{ "memory-info", "real", "fixed", &s->memory_info_fixed },
		{ "permissions", "thread", "process", &s->process_bound },
		{ "efault", "old", "new", &s->enable_unwinds },
		{ "never", "off", "on", &s->allow_never },
		{ "scheduler", "hws", "none", &s->no_hws },
	};

	for (size_t i = 0; i < ARRAY_SIZE(settings) && w->n == 2; i++) {
		if (strcmp(w->w[0], settings[i].name))
			continue;
		if (strcmp(w->w[1], settings[i].on) && strcmp(w->w[1], settings[i].off))
			return -EINVAL;
		*settings[i].value = !strcmp(w->w[1], settings[i].on);
		return 0;
	}
	return -EINVAL;
}

static const struct {
	const char *name;
	int (*run)(struct sim *s, const struct words *w);
} commands[] = {
	{ "raise", cmd_raise },
	{ "fault", cmd_fault },
	{ "fail-suspend", cmd_fail },
	{ "fail-resume", cmd_fail },
	{ "fail-activate", cmd_fail_activate },
	{ "errno", cmd_inject },
	{ "late", cmd_inject },
	{ "delay", cmd_inject },
	{ "partial", cmd_inject },
	{ "silent", cmd_inject },
	{ "block", cmd_block },
	{ "release", cmd_release },
	{ "waves", cmd_waves },
	{ "dispatch", cmd_dispatch },
	{ "reset", cmd_gpu_state },
	{ "lost", cmd_gpu_state },
	{ "progress", cmd_progress },
	{ "memory-info", cmd_setting },
	{ "permissions", cmd_setting },
	{ "efault", cmd_setting },
	{ "never", cmd_setting },
	{ "scheduler", cmd_setting },
};

static int run_line(struct sim *s, char *text)
{
	struct words w;
	int r = words_split(text, &w);

	if (r < 0 || !w.n)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (!strcmp(commands[i].name, w.w[0]))
			return commands[i].run(s, &w);
	return -EINVAL;
}

int control_run(struct sim *s, const char *text, size_t size)
{
	auto_free char *copy = strndup(text, size);
	char *save = NULL;
	int r = 0;

	if (!copy)
		return -ENOMEM;
	/* The driver knows at once of a debugger that has ended: nothing is raised for its session. */
	sim_check_processes(s);
	for (char *t = strtok_r(copy, "\n", &save); t && !r; t = strtok_r(NULL, "\n", &save))
		r = run_line(s, t);
	return r;
}
