/* SPDX-License-Identifier: MIT */
/* The commands of a scenario, each a function; the table below has their help. */
#include "app.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/out.h"
#include "base/str.h"
#include "libkfdtrap/src/kfd_abi.h"
#include "sim/app/scene.h"
#include "tests/lib/passed.h"
#include "tests/lib/words.h"

void script_ready(struct process *p)
{
	const struct app *a = (struct app *)p;
	const char *sep = "";

	printf("ready pid=%d queues=", getpid());
	for (uint32_t i = 0; i < p->status->n_queues; i++)
		if (p->status->queues[i].alive) {
			printf("%s%u", sep, p->status->queues[i].queue_id);
			sep = ",";
		}
	printf(" gpus=%zu r_debug=0x%llx\n", a->n_gpus, (unsigned long long)p->status->r_debug);
	if (a->passed && a->passed->data)
		fputs(a->passed->data, stdout);
}

/*
 * Create queues, on a GPU or on all of them in turn.
 * @param count_at  The word with their number; 0 if there is none, and one queue is made.
 */
static int create_queues(struct app *a, const struct words *w, int count_at, uint32_t type)
{
	uint64_t n = 1, gpu;
	uint32_t id;
	int r;

	if (count_at && (w->n <= count_at || words_number(w, count_at, 1, SIMAPP_QUEUES_MAX, &n)))
		return -EINVAL;
	r = words_number(w, count_at + 1, UINT64_MAX, APP_GPUS_MAX, &gpu);
	for (uint64_t i = 0; i < n && !r; i++)
		r = device_queue_create(a, gpu != UINT64_MAX ? gpu : a->n_gpus ? i % a->n_gpus : 0,
					type, &id);
	return r;
}

static int cmd_queues(struct app *a, const struct words *w)
{
	return create_queues(a, w, 1, KFDABI_QUEUE_TYPE_COMPUTE_AQL);
}

static int cmd_create(struct app *a, const struct words *w)
{
	return create_queues(a, w, 0, KFDABI_QUEUE_TYPE_COMPUTE_AQL);
}

static int cmd_sdma(struct app *a, const struct words *w)
{
	return create_queues(a, w, 0, KFDABI_QUEUE_TYPE_SDMA);
}

static int cmd_context(struct app *a, const struct words *w)
{
	uint64_t gpu;

	if (words_number(w, 1, 0, APP_GPUS_MAX, &gpu))
		return -EINVAL;
	return device_context_create(a, gpu);
}

static int cmd_destroy(struct app *a, const struct words *w)
{
	uint64_t id;

	if (w->n != 2 || words_number(w, 1, 0, UINT32_MAX, &id))
		return -EINVAL;
	return device_queue_destroy(a, (uint32_t)id);
}

/* `skip` does nothing; it stands where a test's script must have some runtime command. */
static int cmd_runtime(struct app *a, const struct words *w)
{
	if (w->n != 2)
		return -EINVAL;
	if (!strcmp(w->w[1], "on"))
		return device_runtime(a, KFDABI_RUNTIME_ENABLE_MODE_ENABLE);
	if (!strcmp(w->w[1], "ttmp"))
		return device_runtime(a, KFDABI_RUNTIME_ENABLE_MODE_ENABLE |
						 KFDABI_RUNTIME_ENABLE_MODE_TTMP_SAVE);
	if (!strcmp(w->w[1], "off"))
		return device_runtime(a, 0);
	return strcmp(w->w[1], "skip") ? -EINVAL : 0;
}

/* Wait for one line; the end of the file counts as well. */
static int cmd_wait_line(struct app *a, const struct words *w)
{
	char c;

	process_ready(&a->process);
	for (;;) {
		ssize_t n = read(STDIN_FILENO, &c, 1);

		if (n == 0 || (n == 1 && c == '\n') || (n < 0 && errno != EINTR))
			return 0;
	}
}

static int cmd_sleepers(struct app *a, const struct words *w)
{
	char name[16] = "";
	uint64_t n;

	if (w->n < 2 || words_number(w, 1, 0, 100000, &n))
		return -EINVAL;
	/* Names of threads have blanks. */
	for (size_t i = 2, used = 0; i < (size_t)w->n && used < sizeof(name); i++)
		used += (size_t)snprintf(name + used, sizeof(name) - used, "%s%s", i > 2 ? " " : "", w->w[i]);
	return threads_start_sleepers((unsigned int)n, *name ? name : NULL);
}

/* Ask the simulator for an exception of a wave. */
static int cmd_fault(struct app *a, const struct words *w)
{
	char line[128];
	uint64_t queue;

	if (words_number(w, 1, 0, UINT32_MAX, &queue))
		return -EINVAL;
	snprintf(line, sizeof(line), "raise %d queue %u %s", getpid(), (unsigned int)queue,
		 w->n > 2 ? w->w[2] : "5");
	return device_control(a, line);
}

/* Ask the simulator for a memory violation. */
static int cmd_memfault(struct app *a, const struct words *w)
{
	char line[128];
	uint64_t gpu;

	if (words_number(w, 1, 0, APP_GPUS_MAX, &gpu))
		return -EINVAL;
	snprintf(line, sizeof(line), "fault %d #%u %s not-present", getpid(), (unsigned int)gpu,
		 w->n > 2 ? w->w[2] : "0xdead000");
	return device_control(a, line);
}

/* Whether a word of `waves` stands where a pc may stand: behind KIND and N, which follow QUEUE or "and". */
static bool is_pc_place(const struct words *w, int i)
{
	return i == 4 || (i > 4 && !strcmp(w->w[i - 3], "and"));
}

/* Copy REGISTER=@SIGNAL[+OFFSET] as the two registers that hold the address of the signal's value. */
static int address_of(const struct app *a, const char *text, const char *at, char *ret, size_t size)
{
	char name[64];
	const char *plus = strchrnul(at, '+'), *number = text + 1;
	uint64_t address, offset = 0, reg;
	char digits[16];
	int r;

	snprintf(name, sizeof(name), "%.*s", (int)(plus - at), at);
	snprintf(digits, sizeof(digits), "%.*s", (int)(strcspn(number, ".=")), number);
	r = str_to_u64(digits, 0, 254, &reg);
	if (!r && *plus)
		r = str_to_u64_any(plus + 1, &offset);
	if (!r)
		r = device_signal_find(a, name, &address);
	if (r)
		return r;
	address += APP_SIGNAL_VALUE + offset;
	snprintf(ret, size, "%c%llu=0x%x %c%llu=0x%x", text[0], (unsigned long long)reg, (uint32_t)address, text[0],
		 (unsigned long long)reg + 1, (uint32_t)(address >> 32));
	return 0;
}

/* Copy a word of `waves`; a symbol in the place of the pc becomes an address. */
static int place_of(const struct app *a, const struct words *w, int i, char *ret, size_t size)
{
	const char *text = w->w[i], *at = strstr(text, "=@");
	uint64_t address;
	int r;

	if (at)
		return address_of(a, text, at + 2, ret, size);
	if (!is_pc_place(w, i) || strchr(text, '=') || !strcmp(text, "and") || (text[0] >= '0' && text[0] <= '9')) {
		snprintf(ret, size, "%s", text);
		return 0;
	}
	r = object_address(a, text, &address);
	if (!r)
		snprintf(ret, size, "0x%llx", (unsigned long long)address);
	return r;
}

/*
 * Plant waves.  That goes through the simulator's control file: the device itself knows no such
 * thing.
 */
static int cmd_waves(struct app *a, const struct words *w)
{
	char line[1024], word[1024];
	int n = snprintf(line, sizeof(line), "waves %d", getpid());

	for (int i = 1; i < w->n; i++) {
		int r = place_of(a, w, i, word, sizeof(word));

		if (r)
			return r;
		n += snprintf(line + n, sizeof(line) - (size_t)n, " %s", word);
		if (n >= (int)sizeof(line))
			return -E2BIG;
	}
	return device_control(a, line);
}

static int cmd_load(struct app *a, const struct words *w)
{
	auto_free char *path = w->n < 2 ? NULL : scene_file(a->process.script.directory, w->w[1]);
	uint64_t offset = 0, size = 0;
	bool in_memory = false;
	int r = w->n < 2 ? -EINVAL : path ? 0 : -ENOMEM;

	for (int i = 2; i < w->n && !r; i++) {
		if (!strcmp(w->w[i], "memory"))
			in_memory = true;
		else if (str_starts_with(w->w[i], "offset="))
			r = str_to_u64_any(w->w[i] + 7, &offset);
		else if (str_starts_with(w->w[i], "size="))
			r = str_to_u64_any(w->w[i] + 5, &size);
		else
			r = -EINVAL;
	}
	return r ? r : object_load(a, path, offset, size, in_memory);
}

/* Note what a dispatch was given, for the ready line: `passed queue=0 kernel=scale p:0x0,i:160`. */
static int note_passed(struct app *a, uint64_t queue, const char *kernel, const char *text)
{
	if (!a->passed)
		a->passed = calloc(1, sizeof(*a->passed));
	if (!a->passed)
		return -ENOMEM;
	out_fmt(a->passed, "passed queue=%llu kernel=%s %s\n", (unsigned long long)queue, kernel, text);
	return out_error(a->passed);
}

/* Read `args=LIST` and `args-at=ADDRESS` among the words. */
static int read_arguments(struct app *a, const struct words *w, uint64_t queue, uint8_t *buf,
			  struct app_arguments *ret)
{
	int r = 0;

	for (int i = 3; i < w->n && r == 0; i++) {
		if (str_starts_with(w->w[i], "args-at=")) {
			r = str_to_u64_any(w->w[i] + 8, &ret->at);
		} else if (str_starts_with(w->w[i], "args=")) {
			r = passed_encode(w->w[i] + 5, buf, &ret->size);
			ret->bytes = buf;
			if (r == 0)
				r = note_passed(a, queue, w->w[2], w->w[i] + 5);
		}
	}
	return r;
}

static int cmd_dispatch(struct app *a, const struct words *w)
{
	static uint8_t buf[PASSED_MAX];
	struct app_arguments arguments = { 0 };
	uint32_t grid[3] = { 1, 1, 1 };
	uint16_t group[3] = { 1, 1, 1 };
	uint64_t id, items, size, descriptor;
	char name[1024];
	int r;

	if (w->n < 3 || words_number(w, 1, 0, UINT32_MAX, &id) ||
	    words_number(w, 3, 64, UINT32_MAX, &items) || words_number(w, 4, 64, UINT16_MAX, &size))
		return -EINVAL;
	snprintf(name, sizeof(name), "%s.kd", w->w[2]);
	r = object_address(a, name, &descriptor);
	if (!r)
		r = read_arguments(a, w, id, buf, &arguments);
	grid[0] = (uint32_t)items;
	group[0] = (uint16_t)size;
	return r ? r : device_queue_dispatch(a, (uint32_t)id, descriptor, grid, group, &arguments);
}

static int cmd_signal(struct app *a, const struct words *w)
{
	uint64_t value;

	if (w->n < 2 || words_number(w, 2, 1, UINT64_MAX, &value))
		return -EINVAL;
	return device_signal_set(a, w->w[1], (int64_t)value);
}

/* Read the words of `packet` behind the kind. */
static int read_packet_word(struct app *a, const char *word, struct app_packet *p)
{
	static const char *const conditions[] = { "eq=", "ne=", "lt=", "gte=" };

	for (uint32_t i = 0; i < 4; i++)
		if (str_starts_with(word, conditions[i])) {
			p->condition = i;
			return str_to_u64_any(word + strlen(conditions[i]), &p->value);
		}
	if (str_starts_with(word, "mask="))
		return str_to_u64_any(word + 5, &p->mask);
	if (!strcmp(word, "barrier")) {
		p->barrier = true;
		return 0;
	}
	if (str_starts_with(word, "completion="))
		return device_signal_find(a, word + 11, &p->completion);
	if (p->n_signals == APP_PACKET_SIGNALS)
		return -E2BIG;
	return device_signal_find(a, word, &p->signals[p->n_signals++]);
}

static int cmd_packet(struct app *a, const struct words *w)
{
	static const char *const kinds[] = { [APP_PACKET_INVALID] = "invalid", [APP_PACKET_KERNEL] = "kernel",
					     [APP_PACKET_AND] = "and",	       [APP_PACKET_OR] = "or",
					     [APP_PACKET_VALUE] = "value" };
	struct app_packet p = { .mask = UINT64_MAX };
	uint64_t queue, at;
	int r = 0;

	if (w->n < 4 || words_number(w, 1, 0, UINT32_MAX, &queue) || words_number(w, 2, 0, UINT32_MAX, &at))
		return -EINVAL;
	while (p.kind < APP_PACKET_COUNT && strcmp(w->w[3], kinds[p.kind]))
		p.kind++;
	if (p.kind == APP_PACKET_COUNT)
		return -EINVAL;
	for (int i = 4; i < w->n && !r; i++)
		r = read_packet_word(a, w->w[i], &p);
	return r ? r : device_packet_write(a, (uint32_t)queue, at, &p);
}

static int cmd_map(struct app *a, const struct words *w)
{
	uint64_t address;

	return w->n != 3 || str_to_u64_any(w->w[1], &address) ? -EINVAL : device_map_file(address, w->w[2]);
}

static int cmd_memory(struct app *a, const struct words *w)
{
	static uint8_t buf[PASSED_MAX];
	uint64_t address;
	size_t size;

	if (w->n != 3 || str_to_u64_any(w->w[1], &address) || passed_encode(w->w[2], buf, &size))
		return -EINVAL;
	return device_write_memory(address, buf, size);
}

static int cmd_pending(struct app *a, const struct words *w)
{
	uint64_t queue, n;

	if (w->n != 3 || words_number(w, 1, 0, UINT32_MAX, &queue) || words_number(w, 2, 0, UINT32_MAX, &n))
		return -EINVAL;
	return device_queue_pending(a, (uint32_t)queue, n);
}

/* Refuse to run on other GPUs than those that the script was written for. */
static int cmd_gpus(struct app *a, const struct words *w)
{
	bool fits = w->n > 1;

	for (int i = 1; i < w->n; i++)
		fits = fits && i <= (int)a->n_gpus && a->gpus[i - 1].name && !strcmp(a->gpus[i - 1].name, w->w[i]);
	if (fits)
		return 0;
	fprintf(stderr, "simapp: the script is for other GPUs; start: gpu-agent-sim --gpus ");
	for (int i = 1; i < w->n; i++)
		fprintf(stderr, "%s%s", i > 1 ? "," : "", w->w[i]);
	fputs("\n", stderr);
	return -ENODEV;
}

/* Pass a line on to the simulator's control file. */
static int cmd_control(struct app *a, const struct words *w)
{
	auto_out struct out line;

	out_init(&line, 1024);
	for (int i = 1; i < w->n; i++)
		out_fmt(&line, "%s%s", i > 1 ? " " : "", w->w[i]);
	return out_error(&line) ? -E2BIG : device_control(a, line.data);
}

/* A thread waits for the work of a queue. */
static int cmd_wait(struct app *a, const struct words *w)
{
	struct app_await what = { .n = 1 };
	uint64_t id, value;
	int r;

	if (w->n < 2 || words_number(w, 1, 0, UINT32_MAX, &id) || words_number(w, 2, 1, INT32_MAX, &value))
		return -EINVAL;
	r = device_queue_signal(a, (uint32_t)id, (int64_t)value, &what.events[0]);
	return r ? r : threads_start_waiter(a, &what);
}

/* Threads wait for a signal, or for it and for what nobody does. */
static int cmd_await(struct app *a, const struct words *w)
{
	const char *how = w->n > 3 ? w->w[3] : "one";
	const bool two = !strcmp(how, "any") || !strcmp(how, "all");
	struct app_await what = { .n = two ? 2 : 1, .all = !strcmp(how, "all"), .hidden = !strcmp(how, "hidden") };
	uint64_t n;
	int r;

	if (w->n < 2 || words_number(w, 2, 1, 1000, &n) || (!two && !what.hidden && strcmp(how, "one")))
		return -EINVAL;
	r = device_signal_event(a, w->w[1], &what.events[0]);
	if (!r && two)
		r = device_event_create(a, &what.events[1]);
	for (uint64_t i = 0; i < n && !r; i++)
		r = threads_start_waiter(a, &what);
	return r;
}

static int cmd_swap(struct app *a, const struct words *w)
{
	uint64_t one, other;

	if (w->n != 3 || words_number(w, 1, 0, UINT32_MAX, &one) || words_number(w, 2, 0, UINT32_MAX, &other))
		return -EINVAL;
	return device_queues_swap_signals(a, (uint32_t)one, (uint32_t)other);
}

static int cmd_list(struct app *a, const struct words *w)
{
	return w->n == 2 ? device_list_state(a, w->w[1]) : -EINVAL;
}

static int cmd_signals(struct app *a, const struct words *w)
{
	uint64_t n, us;

	if (w->n < 2 || words_number(w, 1, 0, 1000000000, &n) || words_number(w, 2, 1000, 1000000, &us))
		return -EINVAL;
	return threads_start_signals(a, (unsigned int)n, (unsigned int)us);
}

static int cmd_object(struct app *a, const struct words *w)
{
	uint64_t bias = 0;

	if (w->n < 2 || (w->n > 2 && str_to_u64_any(w->w[2], &bias)))
		return -EINVAL;
	return device_object_add(a, w->w[1], bias);
}

static int cmd_idle(struct app *a, const struct words *w)
{
	a->idle = w->n < 2 || strcmp(w->w[1], "off");
	return 0;
}

static int cmd_huge(struct app *a, const struct words *w)
{
	a->huge_pages = true;
	return 0;
}

static const struct {
	const char *name;
	int (*run)(struct app *a, const struct words *w);
	const char *help;
} commands[] = {
	{ "queues", cmd_queues, "N [GPU]: create AQL queues (round robin without GPU)" },
	{ "create", cmd_create, "[GPU]: one AQL queue" },
	{ "sdma", cmd_sdma, "[GPU]: one SDMA queue" },
	{ "context", cmd_context, "[GPU]: a secondary context with one AQL queue" },
	{ "destroy", cmd_destroy, "ID" },
	{ "runtime", cmd_runtime, "on|ttmp|off|skip" },
	{ "wait-line", cmd_wait_line, "ready, then wait for a line on stdin" },
	{ "sleepers", cmd_sleepers, "N [NAME...]: threads that wait, each until it gets SIGUSR2" },
	{ "wait", cmd_wait, "QUEUE [VALUE]: a thread that waits for the work of a queue, whose signal has that value (1; 0: done)" },
	{ "await", cmd_await, "SIGNAL [N [one|any|all|hidden]]: threads that wait for a signal, for it or another one, for both; or whose arguments nobody can read" },
	{ "swap", cmd_swap, "QUEUE QUEUE: exchange the signals that packets of the two queues complete" },
	{ "fault", cmd_fault, "[QUEUE [CODES]]: wave exception (default queue 0, code 5)" },
	{ "memfault", cmd_memfault, "[GPU [ADDRESS]]: memory violation" },
	{ "waves", cmd_waves, "QUEUE KIND N [PC|SYMBOL[+OFFSET]] [KEY=VALUE...] [and KIND N ...]: what is in the queue when suspended; REGISTER=@SIGNAL[+OFFSET] sets two registers to the address of the signal's value" },
	{ "signals", cmd_signals, "N [US]: real-time signals against itself" },
	{ "load", cmd_load, "PATH [memory] [offset=N] [size=N]: load a code object" },
	{ "gpus", cmd_gpus, "NAME...: fail if there are other GPUs than these" },
	{ "control", cmd_control, "WORDS...: a line for the simulator's control file" },
	{ "dispatch", cmd_dispatch, "QUEUE KERNEL [ITEMS GROUP [args=LIST] [args-at=ADDRESS]]: what the packets of a queue start" },
	{ "signal", cmd_signal, "NAME [VALUE]: make a signal, or set its value (default 1)" },
	{ "packet", cmd_packet, "QUEUE SLOT invalid|kernel|and|or|value [SIGNAL...] [completion=SIGNAL] [barrier] [eq|ne|lt|gte=N] [mask=N]: what is in a place of the ring" },
	{ "pending", cmd_pending, "QUEUE N: so many packets are not done; use `idle` before" },
	{ "map", cmd_map, "ADDRESS PATH: the first 64 KiB of a file in memory" },
	{ "memory", cmd_memory, "ADDRESS LIST: memory at an address, with what is listed as behind args=" },
	{ "list", cmd_list, "busy|whole|cycle|gone|newer: spoil the list of code objects" },
	{ "object", cmd_object, "URI [BIAS]: add a code object to the list" },
	{ "huge", cmd_huge, "back save areas of queues to come with huge pages" },
	{ "idle", cmd_idle, "[off]: stop publishing packets" },
};

void script_help(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		printf("  %-16s %s\n", commands[i].name, commands[i].help);
}

int script_command(struct process *p, const struct words *w)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (!strcmp(commands[i].name, w->w[0]))
			return commands[i].run((struct app *)p, w);
	return -ENOSYS;
}
