/* SPDX-License-Identifier: MIT */
/* What the user types: a word of the console, an expression, or the name of a register. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "dap/values/values.h"

/* The highest number of a vector register. */
#define REGISTERS_MAX 511

/* Cut a line into words; false if there are none, or too many. */
static bool split(const char *line, struct dap_words *w)
{
	char *save = NULL, *word;

	w->n = 0;
	if (strlen(line) >= sizeof(w->text))
		return false;
	str_copy(w->text, sizeof(w->text), line);
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
		return dap_invalid(err, "\"%.40s\" is no register, no variable here and no word of the "
					"console; \"help\" lists those", text);
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

	r = dap_registers_shared(d, of, err);
	if (!r || (of->lane == DAP_LANE_ANY && dap_check_place(d, of, r->wave.pc, err) < 0))
		return -EIO;
	s = find_scalar(r->special, r->n_special, name);
	if (!s)
		s = find_scalar(r->scalar, r->n_scalar, name);
	if (!s)
		return show_vector(d, of, name, o, err);
	out_fmt(o, "0x%0*" PRIx64, s->bits == 64 ? 16 : 8, s->value);
	return 0;
}

/* Whether a text may be the name of a register: one word, maybe with a lane. */
static bool is_name(const char *text)
{
	size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");

	return n && (!text[n] || text[n] == '[');
}

/* ------------------------------------------------------------------ expressions -------------- */

/*
 * Append the value of an expression, or of a register: variables hide registers of their name, which
 * begin with $ in an expression.
 */
static int show_value(struct dap *d, const struct dap_ref *of, const char *text, struct out *body,
		      struct agent_err *err)
{
	const struct dap_expression e = { .text = text };
	const struct rpc_wave_evaluate_result *r = dap_frame_value(d, of, &e, err);
	auto_out struct out o = { 0 };
	struct agent_err why = *err;
	struct dap_value v;
	struct dap_row row;
	int status;

	if (!r && (err->code != RPC_ERROR_INVALID_PARAMS || !is_name(text)))
		return -EIO;
	if (!r) {
		status = show_register(d, of, text, &o, err);
		if (status < 0 && err->code == RPC_ERROR_INVALID_PARAMS && !err->hint[0])
			str_copy(err->hint, sizeof(err->hint), dap_plain(why.message));
		if (status == 0)
			out_json_fmt(body, "{'result':%s,'variablesReference':0}", o.data);
		return status;
	}
	v = dap_value_of(r, text);
	row = dap_value_row(d, of, &v);
	out_json_fmt(body, "{'result':%s,'variablesReference':%u", row.value, row.ref);
	if (row.type && d->client_type)
		out_json_fmt(body, ",'type':%s", row.type);
	if (row.n_named)
		out_json_fmt(body, ",'namedVariables':%" PRIu64, row.n_named);
	if (row.n_indexed)
		out_json_fmt(body, ",'indexedVariables':%" PRIu64, row.n_indexed);
	if (row.memory)
		out_json_fmt(body, ",'memoryReference':%s", row.memory);
	out_json_fmt(body, ",'presentationHint':{'attributes':['readOnly']}}");
	return 0;
}

/* Say that a wave is not there because the GPU runs. */
static void explain_running(const struct dap *d, struct agent_err *err)
{
	if (err->code == RPC_ERROR_NO_SUCH_WAVE && !dap_is_still(d) && !d->held)
		agent_err_set(err, RPC_ERROR_NO_SUCH_WAVE, ESTALE, NULL, "pause it first",
			      "the GPU runs, and the wave that is shown is not there any more");
}

/* ------------------------------------------------------------------ evaluate ----------------- */

/*
 * Choose the frame that the editor has selected, or the focus.  While the GPU runs, the frame may
 * be gone: the console then takes the focus, and a watch fails.
 */
static int choose_frame(struct dap *d, struct dap_json args, bool repl, struct dap_ref *ret,
			struct agent_err *err)
{
	struct dap_ref ref;

	*ret = dap_ref_focus(d);
	if (!dap_json_has(dap_json_get(args, "frameId")))
		return 0;
	if (dap_ref_parse(d, dap_json_get(args, "frameId"), &ref, err) < 0)
		return repl ? 0 : -EINVAL;
	if (ref.scope != DAP_SCOPE_FRAME)
		return dap_invalid(err, "frameId: not the id of a frame");
	/* The words of the console know the present snapshot only. */
	if (ref.snap == d->snap)
		d->focus = ref.thread;
	*ret = repl && ref.snap != d->snap ? *ret : ref;
	return 0;
}

/* The value of what was typed; in the console it is that of this moment. */
static int evaluate(struct dap *d, const struct dap_ref *of, bool repl, const char *text,
		    struct dap_answer *ret)
{
	int r;

	if (of->thread >= of->snap->n_threads)
		return dap_need_wave(d, &ret->err);
	if (repl && !dap_is_still(d) && !d->held)
		dap_forget(d);
	r = show_value(d, of, text, &ret->body, &ret->err);
	if (r < 0)
		explain_running(d, &ret->err);
	return r;
}

int dap_evaluate(struct dap *d, const struct dap_request *q, struct dap_answer *ret)
{
	char context[16] = "repl", text[DAP_EXPRESSION_MAX];
	auto_out struct out said = { 0 };
	dap_word_fn run = NULL;
	struct dap_words w;
	struct dap_ref of;
	bool repl;
	int r;

	(void)dap_json_str(dap_json_get(q->args, "context"), context, sizeof(context));
	repl = !strcmp(context, "repl");
	if (!dap_json_str(dap_json_get(q->args, "expression"), text, sizeof(text)) ||
	    !text[strspn(text, " \t\r\n")])
		return dap_invalid(&ret->err, "expression: needs a text of at most %d bytes; \"help\" "
					      "lists the words of the console", DAP_EXPRESSION_MAX - 1);
	r = choose_frame(d, q->args, repl, &of, &ret->err);
	if (r < 0)
		return r;
	if (repl && split(text, &w))
		run = dap_find_word(w.w[0]);
	/* The words of the console are of no frame; a value of the focus would pass for one of this frame. */
	if (!run && dap_host_is_frame(d, dap_json_get(q->args, "frameId")))
		return dap_invalid(&ret->err, "this thread runs on a processor: it has no waves");
	if (!run)
		return evaluate(d, &of, repl, text, ret);
	r = run(d, &w, &said, &ret->err);
	if (r < 0)
		return r;
	out_json_fmt(&ret->body, "{'result':%s,'variablesReference':0}", said.data);
	return 0;
}
