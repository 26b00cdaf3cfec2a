/* SPDX-License-Identifier: MIT */
/*
 * Instructions of NVIDIA's processors.  Their length is known; what they mean only NVIDIA's own
 * program can tell, which takes half a second to start: it is given all that will be asked for at once.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "disasm/backend.h"

/* Until sm_62 four words belong together: the first tells how the others are scheduled. */
#define BUNDLE 32u
/* A first word that nvdisasm takes, for a bundle whose own is not known. */
#define BUNDLE_CONTROL UINT64_C(0x001fc400fe2007f6)
/* Runs that fail, each of which takes its time. */
#define FAILURES_MAX 2u

struct nvidia {
	char cpu[32];
	uint32_t word, run_ms;
	char *program; /* NULL: none is run */
	unsigned int failures;
	bool works;
	char note[600];

	/* What the program was asked about last. */
	uint64_t start;
	size_t n;
	uint8_t *bytes;
	char (*texts)[DISASM_TEXT_SIZE]; /* "" for what is no instruction */
};

/* "CUDA Binary Utilities": 64 bits until sm_62, 128 from sm_70 on; letters may follow. */
uint32_t disasm_nvidia_size(const char *cpu)
{
	char number[8];
	size_t n;
	uint64_t sm;

	if (!str_starts_with(cpu, "sm_"))
		return 0;
	n = strspn(cpu + 3, "0123456789");
	if (n >= sizeof(number) || strspn(cpu + 3 + n, "af") != strlen(cpu + 3 + n))
		return 0;
	memcpy(number, cpu + 3, n);
	number[n] = '\0';
	if (str_to_u64(number, 10, 999, &sm) < 0)
		return 0;
	return sm < 70 ? 8 : 16;
}

/* ------------------------------------------------------------------ what it prints ----------- */

struct text {
	const char *at, *end;
};

static bool take(struct text *t, const char *word)
{
	size_t n = strlen(word);

	if ((size_t)(t->end - t->at) < n || memcmp(t->at, word, n) != 0)
		return false;
	t->at += n;
	return true;
}

static bool take_hex(struct text *t, uint64_t *ret)
{
	char digits[19] = "0x";
	size_t n = 2;

	while (t->at < t->end && n < sizeof(digits) - 1 && strchr("0123456789abcdefABCDEF", *t->at) &&
	       *t->at)
		digits[n++] = *t->at++;
	digits[n] = '\0';
	return str_to_hex64(digits, ret) == 0;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static void strip(struct text *t)
{
	while (t->at < t->end && is_blank(*t->at))
		t->at++;
	while (t->at < t->end && is_blank(t->end[-1]))
		t->end--;
}

/* @return position of an address among @p n words; @p n if it is none of theirs. */
static size_t place_of(uint64_t address, uint64_t start, uint32_t word, size_t n)
{
	uint64_t offset = address - start;

	/* Of these processors nvdisasm cuts addresses in its errors to 32 bits. */
	if (word < 16)
		offset = (uint32_t)offset;
	return offset % word || offset / word >= n ? n : (size_t)(offset / word);
}

size_t disasm_nvidia_parse(const char *text, size_t size, uint64_t start, uint32_t word,
			   char (*texts)[DISASM_TEXT_SIZE], size_t n)
{
	struct text all = { text, text + size };
	size_t found = 0;

	while (all.at < all.end) {
		const char *end = memchr(all.at, '\n', (size_t)(all.end - all.at));
		struct text line = { all.at, end ? end : all.end };
		uint64_t address;
		size_t i, length;

		all.at = end ? end + 1 : all.end;
		strip(&line);
		if (!take(&line, "/*") || !take_hex(&line, &address) || !take(&line, "*/"))
			continue;
		strip(&line);
		if (line.at < line.end && line.end[-1] == ';')
			line.end--;
		strip(&line);
		i = place_of(address, start, word, n);
		length = (size_t)(line.end - line.at);
		if (i == n || length == 0 || length >= sizeof(texts[i]) || texts[i][0])
			continue;
		memcpy(texts[i], line.at, length);
		texts[i][length] = '\0';
		found += texts[i][0] != '\0';
	}
	return found;
}

size_t disasm_nvidia_blank(const char *text, size_t size, uint64_t start, uint32_t word, uint8_t *bytes,
			   size_t n)
{
	static const char said[] = "at address 0x";
	struct text all = { text, text + size };
	size_t blanked = 0;

	while ((all.at = memmem(all.at, (size_t)(all.end - all.at), said, strlen(said)))) {
		uint64_t address;
		size_t i;

		all.at += strlen(said);
		i = take_hex(&all, &address) ? place_of(address, start, word, n) : n;
		if (i == n)
			continue;
		memset(bytes + i * word, 0, word);
		blanked++;
	}
	return blanked;
}

/* ------------------------------------------------------------------ asking it ---------------- */

static void say(struct nvidia *v, const char *why)
{
	snprintf(v->note, sizeof(v->note), "instructions of %s are shown as their words: %s", v->cpu,
		 why);
}

static void fail(struct nvidia *v, const struct disasm_output *o)
{
	char why[500];

	v->failures++;
	if (o->error == -ETIMEDOUT)
		snprintf(why, sizeof(why), "%.300s did not end within %u ms", v->program, v->run_ms);
	else if (o->error == 0 && o->status == 0)
		snprintf(why, sizeof(why), "what %.300s says of them is not understood", v->program);
	else
		snprintf(why, sizeof(why), "%.300s fails: %.150s", v->program,
			 o->error ? strerror(-o->error) : o->why);
	str_make_printable(why);
	say(v, why);
}

/*
 * Where it meets a word that is none of its instructions it says which one, and nothing of the
 * others.  Zeros, which it takes, stand for those in a second run.
 */
static size_t ask(struct nvidia *v, uint8_t *asked, size_t size, size_t front)
{
	uint8_t *bytes = asked + front;
	struct disasm_output o;
	size_t found = 0;
	bool again = false;

	for (int run = 0; run == 0 || again; run++) {
		disasm_nvdisasm_run(v->program, v->cpu, asked, size, v->start - front, v->run_ms, &o);
		if (o.error == 0 && o.status == 0)
			found = disasm_nvidia_parse(o.out, o.out_size, v->start, v->word, v->texts,
						    v->n);
		again = run == 0 && o.error == 0 && o.status != 0 &&
			disasm_nvidia_blank(o.err, o.err_size, v->start, v->word, bytes, v->n) > 0;
		if (!found && !again)
			fail(v, &o);
		disasm_output_free(&o);
	}
	return found;
}

static void forget(struct nvidia *v)
{
	free(v->bytes);
	free(v->texts);
	v->bytes = NULL;
	v->texts = NULL;
	v->n = 0;
}

/* @return whether these bytes, at that address, are among those that were asked about. */
static bool is_known(const struct nvidia *v, const uint8_t *bytes, size_t size, uint64_t address)
{
	uint64_t offset = address - v->start;

	return v->n && address >= v->start && offset <= v->n * v->word &&
	       size <= v->n * v->word - offset && offset % v->word == 0 &&
	       memcmp(v->bytes + offset, bytes, size) == 0;
}

static void put_control(uint8_t bundle[BUNDLE])
{
	for (unsigned int i = 0; i < 8; i++)
		bundle[i] = (uint8_t)(BUNDLE_CONTROL >> 8 * i);
}

static void prepare(void *ctx, const uint8_t *bytes, uint64_t address, size_t from, size_t end)
{
	struct nvidia *v = ctx;
	size_t back = v->word < 16 ? (size_t)((address + from) % BUNDLE) : 0, size, front, asked;
	auto_free uint8_t *blanked = NULL;

	from -= back < from ? back : from;
	size = (end - from) / v->word * v->word;
	/* It refuses parts of bundles. */
	front = v->word < 16 ? (size_t)((address + from) % BUNDLE) : 0;
	asked = v->word < 16 ? (front + size + BUNDLE - 1) / BUNDLE * BUNDLE : size;
	if (!v->program || !size || v->failures >= FAILURES_MAX ||
	    is_known(v, bytes + from, size, address + from))
		return;
	forget(v);
	v->bytes = malloc(size);
	blanked = calloc(1, asked);
	v->texts = calloc(size / v->word, sizeof(*v->texts));
	if (!v->bytes || !blanked || !v->texts) {
		forget(v);
		return;
	}
	memcpy(v->bytes, bytes + from, size);
	if (front)
		put_control(blanked);
	memcpy(blanked + front, bytes + from, size);
	v->start = address + from;
	v->n = size / v->word;
	if (!ask(v, blanked, asked, front))
		return;
	v->failures = 0;
	for (size_t i = 0; i < v->n; i++)
		if (memcmp(v->bytes + i * v->word, blanked + front + i * v->word, v->word) != 0)
			v->texts[i][0] = '\0';
	v->works = true;
	v->note[0] = '\0';
}

/* ------------------------------------------------------------------ the back end ------------- */

static uint32_t decode(void *ctx, const uint8_t *bytes, uint32_t size, uint64_t address,
		       char *ret_text)
{
	const struct nvidia *v = ctx;
	const char *text;

	if (size < v->word || !is_known(v, bytes, v->word, address))
		return 0;
	text = v->texts[(address - v->start) / v->word];
	memcpy(ret_text, text, DISASM_TEXT_SIZE);
	return text[0] ? v->word : 0;
}

static size_t measure(void *ctx, const uint8_t *bytes, size_t size, uint64_t address,
		      uint8_t *ret_sizes, size_t capacity)
{
	const struct nvidia *v = ctx;
	size_t n = size / v->word < capacity ? size / v->word : capacity;

	memset(ret_sizes, (int)v->word, n);
	return n;
}

static const char *source(void *ctx)
{
	const struct nvidia *v = ctx;

	return v->works ? v->program : NULL;
}

static const char *note(void *ctx)
{
	const struct nvidia *v = ctx;

	return v->note[0] ? v->note : NULL;
}

static void nvidia_close(void *ctx)
{
	struct nvidia *v = ctx;

	forget(v);
	free(v->program);
	free(v);
}

int disasm_nvidia_open(const struct disasm_options *o, void **ret_ctx)
{
	struct nvidia *v = calloc(1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	str_copy(v->cpu, sizeof(v->cpu), o->cpu);
	v->word = disasm_nvidia_size(o->cpu);
	v->run_ms = o->program_ms ? o->program_ms : DISASM_PROGRAM_MS;
	v->program = o->program ? strdup(o->program) : NULL;
	if (o->program && !v->program) {
		free(v);
		return -ENOMEM;
	}
	if (!v->program)
		say(v, "nvdisasm of NVIDIA's toolkit, which gpu-agentctl looks for in PATH where nobody else can write, would name them");
	*ret_ctx = v;
	return 0;
}

const struct disasm_backend disasm_nvidia = {
	.prepare = prepare,
	.decode = decode,
	.measure = measure,
	.source = source,
	.note = note,
	.close = nvidia_close,
};
