/* SPDX-License-Identifier: MIT */
/* What the user types: a word of the console, or the name of a register. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "dap/adapter.h"

/* The highest number of a vector register. */
#define REGISTERS_MAX 511

/* Cut a line into words; false if there are none, or too many. */
static bool split(struct dap_json v, struct dap_words *w)
{
	char *save = NULL, *word;

	w->n = 0;
	if (!dap_json_str(v, w->text, sizeof(w->text)))
		return false;
	for (word = strtok_r(w->text, " \t\r\n", &save); word && w->n < DAP_WORDS_MAX;
	     word = strtok_r(NULL, " \t\r\n", &save))
		w->w[w->n++] = word;
	return w->n && !word;
}

int dap_need_wave(const struct dap *d, struct agent_err *err)
{
	return d->focus < d->snap->n_threads ? 0 : dap_invalid(err, "no wave was found");
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

/*
 * Cut the lane off a name such as `v2[17]`; it is -1 for `v2`.
 * @return false for brackets that hold no lane.
 */
static bool parse_lane(char *name, int64_t *ret_lane)
{
	char *bracket = strchr(name, '['), *end;
	uint64_t n;

	*ret_lane = -1;
	if (!bracket)
		return true;
	end = strchr(bracket, ']');
	if (!end || end[1])
		return false;
	*end = *bracket = '\0';
	if (str_to_u64(bracket + 1, 0, 63, &n) < 0)
		return false;
	*ret_lane = (int64_t)n;
	return true;
}

/*
 * Find the chunk that has a vector register `v2`, `a7`, `R2`; predicates are behind the first one.
 */
static bool find_chunk(const char *name, uint32_t *ret)
{
	uint64_t number;

	if (!name[0] || !strchr("vaRP", name[0]) ||
	    str_to_u64(name + 1, 0, REGISTERS_MAX, &number) < 0)
		return false;
	*ret = name[0] == 'P' ? 0 : (uint32_t)number / DAP_REGISTER_CHUNK;
	return true;
}

static const struct rpc_vector_register *find_vector(const struct rpc_vector_register *list,
						     size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(list[i].name, name))
			return &list[i];
	return NULL;
}

/* Append the lanes of a vector register, or one of them. */
static int show_vector(struct dap *d, const struct dap_ref *of, const char *text, struct out *o,
		       struct agent_err *err)
{
	const struct rpc_wave_registers *r;
	const struct rpc_vector_register *v;
	uint32_t chunk = 0;
	char name[32];
	int64_t lane;

	str_copy(name, sizeof(name), text);
	if (!parse_lane(name, &lane) || !find_chunk(name, &chunk))
		return dap_invalid(err, "\"%.40s\" is no register and no word of the console; "
					"\"help\" lists those", text);
	r = dap_registers_vector(d, of, chunk, err);
	if (!r)
		return -EIO;
	v = find_vector(r->vector, r->n_vector, name);
	if (!v)
		v = find_vector(r->accumulator, r->n_accumulator, name);
	if (!v)
		return dap_invalid(err, "the wave has no register %.40s", name);
	if (lane >= (int64_t)v->n_lanes)
		return dap_invalid(err, "the wave has %zu lanes", v->n_lanes);
	for (size_t i = lane < 0 ? 0 : (size_t)lane; i < v->n_lanes; i++) {
		out_fmt(o, "%s0x%08" PRIx64, o->size ? " " : "", v->lanes[i]);
		if (lane >= 0)
			break;
	}
	return 0;
}

/* Append the value of a register of any bank. */
static int show_register(struct dap *d, const struct dap_ref *of, const char *name, struct out *o,
			 struct agent_err *err)
{
	const struct rpc_wave_registers *r;
	const struct rpc_scalar_register *s;

	if (of->thread >= of->snap->n_threads)
		return dap_need_wave(d, err);
	r = dap_registers_shared(d, of, err);
	if (!r)
		return -EIO;
	s = find_scalar(r->special, r->n_special, name);
	if (!s)
		s = find_scalar(r->scalar, r->n_scalar, name);
	if (!s)
		return show_vector(d, of, name, o, err);
	out_fmt(o, "0x%0*" PRIx64, s->bits == 64 ? 16 : 8, s->value);
	return 0;
}

/* ------------------------------------------------------------------ evaluate ----------------- */

/*
 * Choose the frame that the editor has selected, or the focus.  While the GPU runs, the frame may
 * be gone: the console then takes the focus, and a watch fails.
 */
static int choose_frame(struct dap *d, struct dap_json frame, bool repl, struct dap_ref *ret,
			struct agent_err *err)
{
	struct dap_ref ref;
	int r = dap_json_has(frame) ? dap_ref_parse(d, frame, &ref, err) : 1;

	*ret = dap_ref_focus(d);
	if (r != 0)
		return r < 0 && !repl ? r : 0;
	/* The words of the console know the present snapshot only. */
	if (ref.snap == d->snap)
		d->focus = ref.thread;
	*ret = repl && ref.snap != d->snap ? *ret : ref;
	return 0;
}

int dap_evaluate(struct dap *d, const struct dap_request *q, struct dap_answer *ret)
{
	auto_out struct out text = { 0 };
	char context[16] = "repl";
	struct dap_words w;
	struct dap_ref of;
	dap_word_fn run;
	bool repl;
	int r;

	(void)dap_json_str(dap_json_get(q->args, "context"), context, sizeof(context));
	repl = !strcmp(context, "repl");
	if (!split(dap_json_get(q->args, "expression"), &w))
		return dap_invalid(&ret->err, "expression: one to %d words; \"help\" lists them",
				   DAP_WORDS_MAX);
	r = choose_frame(d, dap_json_get(q->args, "frameId"), repl, &of, &ret->err);
	if (r < 0)
		return r;
	run = repl ? dap_find_word(w.w[0]) : NULL;
	r = run ? run(d, &w, &text, &ret->err) : show_register(d, &of, w.w[0], &text, &ret->err);
	if (r < 0)
		return r;
	out_json_fmt(&ret->body, "{'result':%s,'variablesReference':0}", text.data);
	return 0;
}
