/* SPDX-License-Identifier: MIT */
/* The words of the console, which are those of gpu-agentctl. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "dap/adapter.h"

/* Most waves and bytes shown at once, and numbers of lines of instructions. */
#define WAVES_SHOWN   64u
#define MEMORY_SHOWN  4096u
#define LINES_BEFORE  8u
#define LINES_DEFAULT 16u
#define LINES_SHOWN   512u

static const char help_text[] =
	"groups              waves by place, faulting ones first\n"
	"snapshot            the same, after a new look\n"
	"waves               waves of the group that is looked at\n"
	"registers           registers of its wave\n"
	"memory ADDRESS [N]  bytes of the process\n"
	"disassemble [ADDRESS [N]]  instructions there, or where the wave is\n"
	"devices, queues     of the process\n"
	"watchpoint set ADDRESS SIZE [MODE], watchpoint list, watchpoint clear\n"
	"pause, resume       stop the GPU's queues, let them run\n"
	"EXPRESSION          a value: n, tile[3], p->x, table, x; (groups) is no word\n"
	"NAME                a register: pc, exec, s4, v2, v2[17], R7, UR3, P1\n"
	"help                this text";

/* ------------------------------------------------------------------ words -------------------- */

static int word_help(struct dap *d, const struct dap_words *w, struct out *o, struct agent_err *err)
{
	out_str(o, help_text);
	return 0;
}

static int word_groups(struct dap *d, const struct dap_words *w, struct out *o,
		       struct agent_err *err)
{
	out_fmt(o, "%u waves in %zu groups", d->snap->doc.wave_count, d->snap->n_all);
	for (size_t i = 0; i < d->snap->n_threads; i++)
		out_fmt(o, "\n%3zu  %s", i + 1, dap_thread_name(&d->arena, d, i));
	return 0;
}

/* A new snapshot does not stop the process for the editor. */
static int word_snapshot(struct dap *d, const struct dap_words *w, struct out *o,
			 struct agent_err *err)
{
	int r = dap_session_look(d, NULL, err);

	return r < 0 ? r : word_groups(d, w, o, err);
}

static int word_waves(struct dap *d, const struct dap_words *w, struct out *o,
		      struct agent_err *err)
{
	const struct rpc_wave_select which = { .has_max = true, .max = WAVES_SHOWN };
	struct dap_waves page;

	/* Waves may have started since the last snapshot saw none. */
	if (!d->snap->n_threads && !dap_is_still(d) && dap_session_look(d, NULL, err) < 0)
		return -EIO;
	if (dap_need_wave(d, err) < 0)
		return -EINVAL;
	if (dap_waves_get(d, d->focus, &which, &page, err) < 0)
		return -EIO;
	for (size_t i = 0; i < page.n; i++) {
		struct rpc_wave_name name = dap_wave_of(&page.waves[i].ref);

		out_fmt(o, "%s%-12s pc 0x%" PRIx64 " %u of %u lanes", i ? "\n" : "",
			dap_wave_text(&d->arena, &name), page.waves[i].pc, page.waves[i].lanes,
			page.waves[i].width);
	}
	if (page.total > page.n)
		out_fmt(o, "\n%" PRIu64 " more", page.total - page.n);
	dap_waves_free(&page);
	return 0;
}

/* Append registers, one to a line. */
static void show_bank(struct out *o, const struct rpc_scalar_register *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out_fmt(o, "%s%-12s 0x%0*" PRIx64, o->size ? "\n" : "", list[i].name,
			list[i].bits == 64 ? 16 : 8, list[i].value);
}

static int word_registers(struct dap *d, const struct dap_words *w, struct out *o,
			  struct agent_err *err)
{
	const struct dap_ref of = dap_ref_focus(d);
	const struct rpc_wave_registers *r;

	if (dap_need_wave(d, err) < 0)
		return -EINVAL;
	r = dap_registers_shared(d, &of, err);
	if (!r)
		return -EIO;
	show_bank(o, r->special, r->n_special);
	show_bank(o, r->scalar, r->n_scalar);
	return 0;
}

static int word_memory(struct dap *d, const struct dap_words *w, struct out *o,
		       struct agent_err *err)
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

static int word_pause(struct dap *d, const struct dap_words *w, struct out *o,
		      struct agent_err *err)
{
	int r = dap_need_control(d, err);

	return r < 0 ? r : dap_session_pause(d, "pause", err);
}

/* The editor hears that the queues run from an event: it has not asked for it itself. */
static int word_resume(struct dap *d, const struct dap_words *w, struct out *o,
		       struct agent_err *err)
{
	int r = dap_session_continue(d, err);

	if (r == 0)
		dap_continued(d);
	return r;
}

/* ------------------------------------------------------------------ instructions ------------- */

static int word_disassemble(struct dap *d, const struct dap_words *w, struct out *o,
			    struct agent_err *err)
{
	uint64_t address = 0, count = LINES_DEFAULT;

	if (w->n > 3 || (w->n > 1 && str_to_u64_any(w->w[1], &address) < 0) ||
	    (w->n > 2 && str_to_u64_any(w->w[2], &count) < 0) || !count || count > LINES_SHOWN)
		return dap_invalid(err, "disassemble [ADDRESS [LINES]], at most %u lines",
				   LINES_SHOWN);
	if (w->n < 2 && dap_need_wave(d, err) < 0)
		return -EINVAL;
	if (w->n < 2)
		address = d->snap->threads[d->focus].pc;
	return dap_show_instructions(d, address, LINES_BEFORE, (uint32_t)count, o, err);
}

/* ------------------------------------------------------------------ devices, queues ---------- */

static int word_devices(struct dap *d, const struct dap_words *w, struct out *o,
			struct agent_err *err)
{
	for (size_t i = 0; i < d->snap->doc.n_devices; i++) {
		const struct rpc_device *dev = &d->snap->doc.devices[i];

		out_fmt(o, "%sGPU %-3zu %-8u %-8s %s", i ? "\n" : "", i, dev->gpu_id, dev->arch,
			dev->name);
	}
	return 0;
}

static int word_queues(struct dap *d, const struct dap_words *w, struct out *o,
		       struct agent_err *err)
{
	const struct rpc_gpu_queues_params p = { .session = d->session };
	struct rpc_gpu_queues_result result;
	int r = rpc_client_gpu_queues(d->client, &p, &d->arena, &result, err);

	for (size_t i = 0; r == 0 && i < result.n_queues; i++) {
		const struct rpc_queue *q = &result.queues[i];

		out_fmt(o, "%s%-4u %-8s %-8s %s", i ? "\n" : "", q->queue_id,
			dap_device_text(&d->arena, d, q->gpu_id),
			rpc_enum_name(&rpc_queue_type_enum, q->type),
			q->suspended ? "suspended" : "runs");
	}
	return r;
}

/* ------------------------------------------------------------------ table -------------------- */

static const struct {
	const char *word;
	dap_word_fn run;
} table[] = {
	{ "help", word_help },		     { "groups", word_groups },
	{ "snapshot", word_snapshot },	     { "waves", word_waves },
	{ "registers", word_registers },     { "memory", word_memory },
	{ "disassemble", word_disassemble }, { "devices", word_devices },
	{ "queues", word_queues },	     { "watchpoint", dap_word_watchpoint },
	{ "pause", word_pause },	     { "suspend", word_pause },
	{ "resume", word_resume },
};

dap_word_fn dap_find_word(const char *word)
{
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (!strcmp(table[i].word, word))
			return table[i].run;
	return NULL;
}

/* Only the first word of a line is one of these; behind it, and in expressions, nothing is known to be offered. */
int dap_completions(struct dap *d, const struct dap_request *q, struct dap_answer *ret)
{
	char text[DAP_EXPRESSION_MAX];
	int64_t column;

	if (!dap_json_str(dap_json_get(q->args, "text"), text, sizeof(text)))
		return dap_invalid(&ret->err, "text: must be what was typed, of at most %u bytes",
				   (unsigned)sizeof(text) - 1);
	if (dap_count_arg(q->args, "column", d->columns_from, DAP_EXPRESSION_MAX, &column, &ret->err) < 0)
		return -EINVAL;
	column -= d->columns_from;
	if ((size_t)column < strlen(text))
		text[column] = '\0';
	out_json_fmt(&ret->body, "{'targets':[");
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (str_starts_with(table[i].word, text))
			out_json_fmt(&ret->body, ",{'label':%s,'type':'keyword','start':0,'length':%zu}",
				     table[i].word, strlen(text));
	out_str(&ret->body, "]}");
	return 0;
}
