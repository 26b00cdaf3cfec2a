/* SPDX-License-Identifier: MIT */
/*
 * The file of pprof: one message of protocol buffers, by proto/profile.proto of github.com/google/pprof, which may be
 * compressed and is not.  A number of a field is written as the key that stands in front of its value.
 *
 * A line is no frame there but a part of the frame of its function: a place is joined with what is in front of it.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "ctl/record/recording.h"
#include "ctl/terminal/text.h"

/* Fields of message Profile. */
enum {
	SAMPLE_TYPE = 1,
	SAMPLE = 2,
	LOCATION = 4,
	FUNCTION = 5,
	STRING_TABLE = 6,
	TIME_NANOS = 9,
	DURATION_NANOS = 10,
	COMMENT = 13,
	DEFAULT_SAMPLE_TYPE = 14,
};

/* A frame of a stack in this file: a function, and where in it. */
struct place {
	const struct recording_frame *function;
	const struct recording_frame *line; /* NULL: nothing is known of where. */
};

struct writer {
	struct out *o;
	const struct recording *r;
	struct out strings; /* Their fields; the first one is "". */
	uint64_t n_strings;
	struct place *places; /* In the order of their ids, which begin with 1. */
	size_t n_places, places_capacity;
	uint32_t *of_frame; /* The first place of each frame as a function, plus 1; 0: none. */
	uint32_t *next;	    /* Of each place: the next one of the same function, plus 1. */
	size_t next_capacity;
	int error;
};

/* ------------------------------------------------------------------ protocol buffers --------- */

static void put_varint(struct out *o, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		out_char(o, (char)(v | 0x80));
	out_char(o, (char)v);
}

static void put_number(struct out *o, unsigned field, uint64_t v)
{
	put_varint(o, field << 3);
	put_varint(o, v);
}

static void put_bytes(struct out *o, unsigned field, const void *data, size_t size)
{
	put_varint(o, field << 3 | 2);
	put_varint(o, size);
	out_bytes(o, data, size);
}

static void put_message(struct writer *w, unsigned field, const struct out *message)
{
	put_bytes(w->o, field, message->size ? message->data : "", message->size);
	w->error = w->error ? w->error : out_error(message);
}

/* Add a text.  @return its number. */
static uint64_t add_string(struct writer *w, const char *s)
{
	auto_out struct out safe = { 0 };

	/* Texts are UTF-8 there, and go to terminals. */
	text_escape(&safe, s, strlen(s));
	put_bytes(&w->strings, STRING_TABLE, safe.size ? safe.data : "", safe.size);
	w->error = w->error ? w->error : out_error(&safe);
	return w->n_strings++;
}

/* ------------------------------------------------------------------ places ------------------- */

/* Find a place, or add it.  @return its id; 0: no memory. */
static uint64_t place_id(struct writer *w, const struct recording_frame *function, const struct recording_frame *line)
{
	uint32_t *at = &w->of_frame[function->id];

	for (; *at; at = &w->next[*at - 1])
		if (w->places[*at - 1].line == line)
			return *at;
	if (vec_reserve(&w->places, w->n_places, 1, &w->places_capacity, sizeof(*w->places)) < 0)
		return 0;
	w->places[w->n_places] = (struct place){ function, line };
	/* Written before the array that it may be in can move. */
	*at = (uint32_t)w->n_places + 1;
	if (vec_reserve(&w->next, w->n_places, 1, &w->next_capacity, sizeof(*w->next)) < 0)
		return 0;
	w->next[w->n_places] = 0;
	return ++w->n_places;
}

/* Whether a frame is a line in the function in front of it, and no frame of its own. */
static bool is_line(const struct recording_frame *f)
{
	return f->kind == RECORDING_PLACE && f->line;
}

/* What a stack counts, of waves or of threads: what it is not, it has nothing of. */
static void put_values(struct writer *w, struct out *o, bool threads, const struct recording_stack *s,
		       const struct recording_facts *f)
{
	uint64_t weight = s->threads == threads ? s->weight : 0;

	put_varint(o, (weight * 1000 + RECORDING_CAPTURE / 2) / RECORDING_CAPTURE);
	put_varint(o, (uint64_t)(recording_share(w->r, threads, weight).share * (double)f->duration_us * 1000));
}

static void put_sample(struct writer *w, const struct recording_stack *s, const struct recording_facts *f)
{
	auto_out struct out message = { 0 }, ids = { 0 }, values = { 0 };

	/* The innermost comes first. */
	for (uint32_t i = s->depth; i > 0; i--) {
		const struct recording_frame *frame = s->frames[i - 1], *line = NULL;
		uint64_t id;

		if (is_line(frame) && i > 2) {
			line = frame;
			frame = s->frames[--i - 1];
		}
		id = place_id(w, frame, line);
		if (!id)
			w->error = -ENOMEM;
		put_varint(&ids, id);
	}
	put_values(w, &values, false, s, f);
	if (w->r->thread_captures)
		put_values(w, &values, true, s, f);
	put_bytes(&message, 1, ids.size ? ids.data : "", ids.size);
	put_bytes(&message, 2, values.size ? values.data : "", values.size);
	put_message(w, SAMPLE, &message);
	w->error = w->error ? w->error : out_error(&ids) < 0 ? out_error(&ids) : out_error(&values);
}

static void put_places(struct writer *w)
{
	for (size_t i = 0; i < w->n_places; i++) {
		auto_out struct out message = { 0 }, line = { 0 };

		put_number(&line, 1, w->places[i].function->id + 1);
		if (w->places[i].line)
			put_number(&line, 2, w->places[i].line->line);
		put_number(&message, 1, i + 1);
		put_bytes(&message, 4, line.data, line.size);
		put_message(w, LOCATION, &message);
	}
}

/* All frames that are functions of a place, each once. */
static void put_functions(struct writer *w)
{
	for (size_t i = 0; i < w->r->n_frames; i++) {
		const struct recording_frame *f = w->r->frames[i];
		uint32_t first = w->of_frame[f->id];
		const struct recording_frame *line = first ? w->places[first - 1].line : NULL;
		const char *file = f->file[0] ? f->file : line ? line->file : "";
		auto_out struct out message = { 0 };
		uint64_t name;

		if (!first)
			continue;
		name = add_string(w, f->name);
		put_number(&message, 1, f->id + 1);
		put_number(&message, 2, name);
		put_number(&message, 3, name);
		if (file[0])
			put_number(&message, 4, add_string(w, file));
		put_message(w, FUNCTION, &message);
	}
}

/* ------------------------------------------------------------------ the file ----------------- */

static void put_type(struct writer *w, const char *type, const char *unit)
{
	auto_out struct out message = { 0 };

	put_number(&message, 1, add_string(w, type));
	put_number(&message, 2, add_string(w, unit));
	put_message(w, SAMPLE_TYPE, &message);
}

static void put_head(struct writer *w, const struct recording_facts *f)
{
	auto_out struct out facts = { 0 };

	add_string(w, "");
	put_type(w, "captures", "thousandths");
	put_type(w, "time", "nanoseconds");
	if (w->r->thread_captures) {
		put_type(w, "thread_captures", "thousandths");
		put_type(w, "thread_time", "nanoseconds");
	}
	put_number(w->o, TIME_NANOS, f->begin_us * 1000);
	put_number(w->o, DURATION_NANOS, f->duration_us * 1000);
	out_fmt(&facts, "%s: ", w->r->process);
	recording_put_facts(&facts, w->r, f);
	put_number(w->o, COMMENT, add_string(w, facts.data ? facts.data : ""));
	/* A reader sees shares of the time that it went on. */
	put_number(w->o, DEFAULT_SAMPLE_TYPE, add_string(w, "time"));
}

int recording_write_pprof(struct out *o, const struct recording *r, const struct recording_facts *f)
{
	struct writer w = { .o = o, .r = r };
	const struct recording_stack *const *list;
	struct rpc_arena a;
	int k;

	rpc_arena_init(&a, 0);
	w.of_frame = rpc_arena_array(&a, r->n_frames, sizeof(*w.of_frame));
	k = recording_sorted(r, &a, &list);
	if (k == 0) {
		put_head(&w, f);
		for (size_t i = 0; i < r->n_stacks && !w.error; i++)
			put_sample(&w, list[i], f);
		put_places(&w);
		put_functions(&w);
		out_bytes(o, w.strings.data, w.strings.size);
		k = w.error ? w.error : out_error(&w.strings);
	}
	free(w.places);
	free(w.next);
	out_deinit(&w.strings);
	rpc_arena_deinit(&a);
	return k < 0 ? k : out_error(o);
}
