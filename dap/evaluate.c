/* SPDX-License-Identifier: MIT */
/* The console speaks the words of gpu-agentctl; the requests of our own give the same as JSON. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "dap/adapter.h"

#define LINE_MAX_BYTES 256
#define WORDS_MAX      4
#define WAVES_SHOWN    64u
#define WAVES_MAX      4096u
#define MEMORY_SHOWN   4096u

static const char help_text[] =
	"groups              waves by place, faulting ones first\n"
	"waves               waves of the group that is looked at\n"
	"registers           registers of its wave\n"
	"memory ADDRESS [N]  bytes of the process\n"
	"pause, resume       stop the GPU's queues, let them run\n"
	"NAME                a register: pc, exec, s4, v2, v2[17]\n"
	"help                this text";

struct words {
	char text[LINE_MAX_BYTES];
	char *w[WORDS_MAX];
	size_t n;
};

typedef int (*word_fn)(struct dap *d, const struct words *w, struct out *o, struct agent_err *err);

static bool split(struct dap_json v, struct words *w)
{
	char *save = NULL, *word;

	w->n = 0;
	if (!dap_json_str(v, w->text, sizeof(w->text)))
		return false;
	for (word = strtok_r(w->text, " \t\r\n", &save); word && w->n < WORDS_MAX;
	     word = strtok_r(NULL, " \t\r\n", &save))
		w->w[w->n++] = word;
	return w->n && !word;
}

/* ------------------------------------------------------------------ words -------------------- */

static int word_help(struct dap *d, const struct words *w, struct out *o, struct agent_err *err)
{
	out_str(o, help_text);
	return 0;
}

static int word_groups(struct dap *d, const struct words *w, struct out *o, struct agent_err *err)
{
	out_fmt(o, "%u waves in %zu groups", d->snap->doc.wave_count, d->snap->n_all);
	for (size_t i = 0; i < d->snap->n_threads; i++)
		out_fmt(o, "\n%3zu  %s", i + 1, dap_thread_name(&d->arena, d, i));
	return 0;
}

/* A snapshot with every wave.  What is on screen stays valid while the queues are stopped. */
static int see_waves(struct dap *d, struct agent_err *err)
{
	uint32_t focus = d->focus;
	int r;

	if (d->snap->doc.has_waves)
		return 0;
	r = dap_session_snapshot(d, true, err);
	if (r == 0 && d->paused)
		d->generation--;
	if (r == 0 && focus < d->snap->n_threads)
		d->focus = focus;
	return r;
}

static bool is_of(const struct dap *d, const struct rpc_wave *w, uint32_t thread)
{
	return w->has_group && w->group < d->snap->doc.n_groups &&
	       d->snap->thread_of[w->group] == thread;
}

static int word_waves(struct dap *d, const struct words *w, struct out *o, struct agent_err *err)
{
	size_t n = 0;
	int r = see_waves(d, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < d->snap->doc.n_waves; i++) {
		const struct rpc_wave *wave = &d->snap->doc.waves[i];
		struct rpc_wave_name name = dap_wave_of(&wave->ref);

		if (!is_of(d, wave, d->focus) || n++ >= WAVES_SHOWN)
			continue;
		out_fmt(o, "%s%-12s pc 0x%" PRIx64 " %u of %u lanes", n > 1 ? "\n" : "",
			dap_wave_text(&d->arena, &name), wave->pc, wave->lanes, wave->width);
	}
	if (n > WAVES_SHOWN)
		out_fmt(o, "\n%zu more", n - WAVES_SHOWN);
	return 0;
}

static int need_thread(const struct dap *d, struct agent_err *err)
{
	return d->focus < d->snap->n_threads ? 0 : dap_invalid(err, "no wave was found");
}

static void show_bank(struct out *o, const struct rpc_scalar_register *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out_fmt(o, "%s%-12s 0x%0*" PRIx64, o->size ? "\n" : "", list[i].name,
			list[i].bits == 64 ? 16 : 8, list[i].value);
}

static int word_registers(struct dap *d, const struct words *w, struct out *o,
			  struct agent_err *err)
{
	const struct rpc_wave_registers *r;

	if (need_thread(d, err) < 0)
		return -EINVAL;
	r = dap_registers_shared(d, d->focus, err);
	if (!r)
		return -EIO;
	show_bank(o, r->special, r->n_special);
	show_bank(o, r->scalar, r->n_scalar);
	return 0;
}

static int word_memory(struct dap *d, const struct words *w, struct out *o, struct agent_err *err)
{
	struct rpc_memory_read_params p = { .session = d->session };
	uint64_t size = 64;
	uint8_t *data;
	size_t n;
	int r;

	if (w->n < 2 || str_to_u64_any(w->w[1], &p.address) < 0 ||
	    (w->n > 2 && str_to_u64_any(w->w[2], &size) < 0) || !size || size > MEMORY_SHOWN)
		return dap_invalid(err, "memory ADDRESS [BYTES], at most %u bytes", MEMORY_SHOWN);
	p.size = (uint32_t)size;
	r = dap_memory_get(d, &p, &data, &n, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		if (i % 16 == 0)
			out_fmt(o, "%s0x%012" PRIx64 " ", i ? "\n" : "", p.address + i);
		out_fmt(o, " %02x", data[i]);
	}
	return 0;
}

static int word_pause(struct dap *d, const struct words *w, struct out *o, struct agent_err *err)
{
	int r = dap_need_control(d, err);

	return r < 0 ? r : dap_session_pause(d, "pause", err);
}

static int word_resume(struct dap *d, const struct words *w, struct out *o, struct agent_err *err)
{
	int r = dap_session_continue(d, err);

	if (r == 0)
		dap_continued(d);
	return r;
}

/* ------------------------------------------------------------------ names of registers ------- */

static const struct rpc_scalar_register *find_scalar(const struct rpc_scalar_register *list,
						     size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(list[i].name, name))
			return &list[i];
	return NULL;
}

/* `v2`, `a7`, `v2[17]`. */
static bool parse_vector(const char *text, bool *ret_acc, uint32_t *ret_number, int64_t *ret_lane)
{
	char copy[32], *bracket;
	uint64_t n;

	str_copy(copy, sizeof(copy), text);
	*ret_lane = -1;
	bracket = strchr(copy, '[');
	if (bracket) {
		char *end = strchr(bracket, ']');

		if (!end || end[1])
			return false;
		*end = *bracket = '\0';
		if (str_to_u64(bracket + 1, 0, 63, &n) < 0)
			return false;
		*ret_lane = (int64_t)n;
	}
	if ((copy[0] != 'v' && copy[0] != 'a') || str_to_u64(copy + 1, 0, 511, &n) < 0)
		return false;
	*ret_acc = copy[0] == 'a';
	*ret_number = (uint32_t)n;
	return true;
}

static int show_vector(struct dap *d, const char *name, struct out *o, struct agent_err *err)
{
	const struct rpc_wave_registers *r;
	const struct rpc_vector_register *v;
	uint32_t number;
	int64_t lane;
	bool acc;

	if (!parse_vector(name, &acc, &number, &lane))
		return dap_invalid(err, "\"%.40s\" is no register and no word of the console; "
					"\"help\" lists those", name);
	r = dap_registers_vector(d, d->focus, number / DAP_REGISTER_CHUNK, err);
	if (!r)
		return -EIO;
	number %= DAP_REGISTER_CHUNK;
	if (number >= (acc ? r->n_accumulator : r->n_vector))
		return dap_invalid(err, "the wave has no register %.40s", name);
	v = acc ? &r->accumulator[number] : &r->vector[number];
	if (lane >= (int64_t)v->n_lanes)
		return dap_invalid(err, "the wave has %zu lanes", v->n_lanes);
	for (size_t i = lane < 0 ? 0 : (size_t)lane; i < v->n_lanes; i++) {
		out_fmt(o, "%s0x%08" PRIx64, o->size ? " " : "", v->lanes[i]);
		if (lane >= 0)
			break;
	}
	return 0;
}

static int show_register(struct dap *d, const char *name, struct out *o, struct agent_err *err)
{
	const struct rpc_wave_registers *r;
	const struct rpc_scalar_register *s;

	if (need_thread(d, err) < 0)
		return -EINVAL;
	r = dap_registers_shared(d, d->focus, err);
	if (!r)
		return -EIO;
	s = find_scalar(r->special, r->n_special, name);
	if (!s)
		s = find_scalar(r->scalar, r->n_scalar, name);
	if (!s)
		return show_vector(d, name, o, err);
	out_fmt(o, "0x%0*" PRIx64, s->bits == 64 ? 16 : 8, s->value);
	return 0;
}

/* ------------------------------------------------------------------ evaluate ----------------- */

int dap_evaluate(struct dap *d, const struct dap_request *q, struct out *body,
		 struct agent_err *err)
{
	static const struct {
		const char *word;
		word_fn run;
	} table[] = {
		{ "help", word_help },	     { "groups", word_groups }, { "waves", word_waves },
		{ "registers", word_registers }, { "memory", word_memory }, { "pause", word_pause },
		{ "suspend", word_pause },   { "resume", word_resume },
	};
	struct dap_json frame = dap_json_get(q->args, "frameId");
	auto_out struct out text;
	char context[16] = "repl";
	struct dap_ref ref;
	struct words w;
	word_fn run = NULL;
	int r = 0;

	out_init(&text, 0);
	(void)dap_json_str(dap_json_get(q->args, "context"), context, sizeof(context));
	if (!split(dap_json_get(q->args, "expression"), &w))
		return dap_invalid(err, "expression: one to %d words; \"help\" lists them", WORDS_MAX);
	if (dap_json_has(frame))
		r = dap_ref_parse(d, frame, &ref, err);
	if (r < 0)
		return r;
	if (dap_json_has(frame))
		d->focus = ref.thread;
	for (size_t i = 0; i < ARRAY_SIZE(table) && !strcmp(context, "repl"); i++)
		if (!strcmp(table[i].word, w.w[0]))
			run = table[i].run;
	r = run ? run(d, &w, &text, err) : show_register(d, w.w[0], &text, err);
	if (r < 0)
		return r;
	out_char(body, '{');
	dap_put_str(body, "result", text.data ? text.data : "");
	dap_put_u64(body, "variablesReference", 0);
	out_char(body, '}');
	return 0;
}

/* ------------------------------------------------------------------ requests of our own ------ */

int dap_gpu_groups(struct dap *d, const struct dap_request *q, struct out *body,
		   struct agent_err *err)
{
	out_str(body, "{\"groups\":[");
	for (size_t i = 0; i < d->snap->n_threads; i++) {
		out_str(body, i ? ",{" : "{");
		dap_put_u64(body, "threadId", i + 1);
		dap_put_str(body, "name", dap_thread_name(&d->arena, d, i));
		out_str(body, ",\"group\":");
		rpc_group_encode(body, d->snap->threads[i].group);
		out_char(body, '}');
	}
	out_str(body, "]");
	dap_put_u64(body, "total", d->snap->n_all);
	dap_put_u64(body, "waves", d->snap->doc.wave_count);
	dap_put_bool(body, "paused", d->paused);
	out_char(body, '}');
	return 0;
}

/* `{threadId, start, count}`: waves of one group. */
int dap_gpu_waves(struct dap *d, const struct dap_request *q, struct out *body,
		  struct agent_err *err)
{
	const struct dap_thread *t = dap_thread_arg(d, q->args, err);
	int64_t start = 0, count = WAVES_MAX;
	size_t seen = 0, written = 0;
	uint32_t thread;
	int r;

	if (!t)
		return -EINVAL;
	thread = (uint32_t)(t - d->snap->threads);
	(void)dap_json_i64(dap_json_get(q->args, "start"), &start);
	(void)dap_json_i64(dap_json_get(q->args, "count"), &count);
	if (start < 0 || count < 0 || count > WAVES_MAX)
		return dap_invalid(err, "start, count: at most %u waves at a time", WAVES_MAX);
	r = see_waves(d, err);
	if (r < 0)
		return r;
	out_str(body, "{\"waves\":[");
	for (size_t i = 0; i < d->snap->doc.n_waves; i++) {
		if (!is_of(d, &d->snap->doc.waves[i], thread))
			continue;
		if (seen++ < (uint64_t)start || written >= (uint64_t)count)
			continue;
		out_str(body, written++ ? "," : "");
		rpc_wave_encode(body, &d->snap->doc.waves[i]);
	}
	out_str(body, "]");
	dap_put_u64(body, "total", seen);
	out_char(body, '}');
	return 0;
}

/* `{threadId, wave: {queue_id, unit, index}}`: show this wave for the group. */
int dap_gpu_focus(struct dap *d, const struct dap_request *q, struct out *body,
		  struct agent_err *err)
{
	struct dap_thread *t = dap_thread_arg(d, q->args, err);
	struct dap_json v = dap_json_get(q->args, "wave");
	int64_t queue, unit = 0, index;
	uint32_t thread;
	int r;

	if (!t)
		return -EINVAL;
	thread = (uint32_t)(t - d->snap->threads);
	if (!dap_json_i64(dap_json_get(v, "queue_id"), &queue) ||
	    !dap_json_i64(dap_json_get(v, "index"), &index))
		return dap_invalid(err, "wave: needs queue_id and index");
	(void)dap_json_i64(dap_json_get(v, "unit"), &unit);
	r = see_waves(d, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < d->snap->doc.n_waves; i++) {
		const struct rpc_wave *w = &d->snap->doc.waves[i];

		if (w->ref.queue_id != queue || w->ref.unit != unit || w->ref.index != index ||
		    !is_of(d, w, thread) || thread >= d->snap->n_threads)
			continue;
		d->snap->threads[thread].wave = dap_wave_of(&w->ref);
		d->snap->threads[thread].pc = w->pc;
		d->focus = thread;
		dap_registers_forget(d);
		dap_event(d, "invalidated", NULL);
		return 0;
	}
	return agent_err_set(err, RPC_ERROR_NO_SUCH_WAVE, ENOENT, NULL, NULL,
			     "wave: the group of this thread has no such wave");
}
