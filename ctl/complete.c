/* SPDX-License-Identifier: MIT */
/* Which part of the command line is being completed, and what the tables of the program say of it. */
#include "ctl/complete.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "ctl/terminal/text.h"

/* Time that the agent has to answer, while somebody waits for the shell. */
#define ANSWER_MS 1000
/* Most arguments and most alternatives of one argument that are told apart. */
#define WORDS_MAX 64

/* What the words in front of the last one say. */
struct line {
	const struct ctl_verb *verb; /* NULL: none yet. */
	bool bad_verb;		     /* There is a verb, and nobody knows it. */
	const char *args[WORDS_MAX]; /* Arguments of the verb; NULL: the core file. */
	size_t n_args;
	const char *option; /* The last word is the value of this option; without dashes. */
	bool options_over;  /* There was a `--`. */
};

/* How much of a description is its first sentence, without the full stop. */
static size_t first_sentence(const char *text)
{
	const char *end = strstr(text, ". ");
	size_t n = end ? (size_t)(end - text) : strlen(text);

	return n - (n && !end && text[n - 1] == '.');
}

void complete_offer(struct completion *k, const char *value, const char *description)
{
	if (!str_starts_with(value, k->word))
		return;
	/* What others have chosen stays on its line and has no TAB. */
	text_escape(&k->text, k->front, k->front_size);
	text_escape(&k->text, value, strlen(value));
	out_char(&k->text, '\t');
	if (description)
		text_escape(&k->text, description, first_sentence(description));
	out_char(&k->text, '\n');
}

void complete_offer_either(struct completion *k, const char *name, const char *alias,
			   const char *description)
{
	complete_offer(k, alias && !str_starts_with(name, k->word) ? alias : name, description);
}

/* ------------------------------------------------------------------ the line ---------------- */

static void take_positional(const struct complete_program *p, struct line *l, const char *word)
{
	if (!l->verb && !l->bad_verb) {
		l->verb = p->find_verb(word);
		l->bad_verb = !l->verb;
	} else if (l->n_args < WORDS_MAX) {
		l->args[l->n_args++] = word;
	}
}

/* Remember what an option says that completion itself needs. */
static void take_option(struct ctl *c, const char *option, const char *value)
{
	if (str_starts_with(option, "--socket"))
		c->socket_option = value;
	else if (str_starts_with(option, "--core"))
		c->core = value;
}

/* Read all words but the last one, which is being typed. */
static void read_line(struct ctl *c, const struct complete_program *p, int n, char **words,
		      struct line *ret)
{
	*ret = (struct line){ 0 };
	for (int i = 0; i + 1 < n; i++) {
		const char *word = words[i], *equals = strchr(word, '=');

		if (ret->options_over || word[0] != '-' || !word[1]) {
			take_positional(p, ret, word);
		} else if (!strcmp(word, "--")) {
			ret->options_over = true;
		} else if (!p->takes_next(word)) {
			if (equals)
				take_option(c, word, equals + 1);
		} else if (i + 2 < n) {
			take_option(c, word, words[++i]);
		} else {
			ret->option = word;
		}
	}
	/* A core file stands for the first argument of the verb, a process. */
	if (c->core && ret->verb && ret->verb->takes_core && ret->n_args < WORDS_MAX) {
		memmove(ret->args + 1, ret->args, ret->n_args++ * sizeof(*ret->args));
		ret->args[0] = NULL;
	}
}

/* ------------------------------------------------------------------ options ----------------- */

/* Call a function for each table of options that the verb has. */
static void each_table(struct completion *k, const struct line *l,
		       void (*fn)(struct completion *k, const struct argv_option *o, const void *data),
		       const void *data)
{
	if (l->verb && l->verb->options)
		fn(k, l->verb->options, data);
	if (l->verb && l->verb->takes_core)
		fn(k, k->program->core, data);
	fn(k, k->program->common, data);
}

static void offer_options(struct completion *k, const struct argv_option *o, const void *data)
{
	for (; o->name; o++)
		complete_offer_either(k, o->name, o->alias, o->help);
}

/* Offer the words of a name such as `pretty|short|off`, or the values of a kind such as PID. */
static void offer_words(struct completion *k, const char *text)
{
	while (text[0]) {
		size_t n = strcspn(text, "|");
		char word[32];

		snprintf(word, sizeof(word), "%.*s", (int)n, text);
		if (isupper((unsigned char)word[0]))
			complete_values(k, word);
		else if (isalnum((unsigned char)word[0]))
			complete_offer(k, word, NULL);
		text += n + (text[n] == '|');
	}
}

/* Move what was typed in front of the last comma to what stays as it is. */
static void skip_list(struct completion *k)
{
	const char *comma = strrchr(k->word, ',');

	if (!comma)
		return;
	k->front_size += (size_t)(comma + 1 - k->word);
	k->word = comma + 1;
}

/* What a shell completes behind an option. */
struct wanted {
	const char *name; /* Of the option, without dashes. */
	size_t size;
	char letter; /* 0: the name counts. */
};

static void offer_option_values(struct completion *k, const struct argv_option *o, const void *data)
{
	const struct wanted *w = data;

	for (; o->name; o++) {
		const char *list = o->metavar ? strchr(o->metavar, ',') : NULL;
		char item[32];

		if (!o->metavar || (w->letter ? o->letter != w->letter : !argv_option_is(o, w->name, w->size)))
			continue;
		/* `BANK,...` and `ID,ID` are lists of what stands in front of the comma. */
		if (list)
			skip_list(k);
		snprintf(item, sizeof(item), "%.*s",
			 (int)(list ? (size_t)(list - o->metavar) : strlen(o->metavar)), o->metavar);
		offer_words(k, item);
	}
}

/* Offer values of the option that stands in front of the word, as `--color` or `-qo`. */
static void complete_next(struct completion *k, const struct line *l)
{
	const struct wanted w = { .name = l->option + 2,
				  .size = l->option[1] == '-' ? strlen(l->option + 2) : 0,
				  .letter = l->option[1] == '-' ? 0 : l->option[strlen(l->option) - 1] };

	each_table(k, l, offer_option_values, &w);
}

/* Offer options, or the values of the one in `--color=au`. */
static void complete_option(struct completion *k, const struct line *l)
{
	const char *equals = strchr(k->word, '=');
	const struct wanted w = { .name = k->word + 2,
				  .size = equals ? (size_t)(equals - k->word - 2) : 0 };

	/* A letter is complete as it is. */
	if (k->word[1] && k->word[1] != '-')
		return;
	if (!equals) {
		k->front = "--";
		k->front_size = 2;
		k->word += k->word[1] ? 2 : 1;
		each_table(k, l, offer_options, NULL);
	} else if (equals > k->word + 2) {
		k->front_size = (size_t)(equals + 1 - k->word);
		k->word = equals + 1;
		each_table(k, l, offer_option_values, &w);
	}
}

/* ------------------------------------------------------------------ arguments --------------- */

/* Whether an argument can be one of the words of the usage, such as `PID` or `pin|unpin`. */
static bool fits(const char *arg, const char *usage, size_t size)
{
	for (size_t i = 0, n; i < size; i += n + 1) {
		n = strcspn(usage + i, "|");
		if (n > size - i)
			n = size - i;
		if (!arg || usage[i] == '[' || isupper((unsigned char)usage[i]) ||
		    (strlen(arg) == n && !memcmp(arg, usage + i, n)))
			return true;
	}
	return false;
}

/*
 * Copy the usage's word for the argument behind those that are there, without brackets and dots.
 * @param usage  One way to use the verb, such as `PID set ADDRESS SIZE`.
 * @return whether there is one, and the arguments so far belong to that way.
 */
static bool next_word(const struct line *l, const char *usage, size_t size, char *ret, size_t ret_size)
{
	const char *end = usage + size, *word = usage;
	size_t n = 0;

	for (size_t i = 0; word < end; i++) {
		n = strcspn(word, " ");
		if (n > (size_t)(end - word))
			n = (size_t)(end - word);
		if (i == l->n_args || memmem(word, n, "...", 3))
			break;
		if (!fits(l->args[i], word, n))
			return false;
		word += n;
		word += word < end;
	}
	if (word >= end)
		return false;
	while (n && word[0] == '[') {
		word++;
		n--;
	}
	while (n && strchr("].", word[n - 1]))
		n--;
	snprintf(ret, ret_size, "%.*s", (int)n, word);
	return true;
}

/* Offer what can be the next argument in one of the ways to use the verb, each thing once. */
static void complete_argument(struct completion *k, const struct line *l)
{
	char seen[8][64];
	size_t n_seen = 0;

	for (const char *usage = l->verb->args, *end; usage; usage = end ? end + 3 : NULL) {
		size_t i = 0, size;

		end = strstr(usage, " | ");
		size = end ? (size_t)(end - usage) : strlen(usage);
		if (n_seen == ARRAY_SIZE(seen) || !next_word(l, usage, size, seen[n_seen], sizeof(seen[0])))
			continue;
		while (strcmp(seen[i], seen[n_seen]))
			i++;
		if (i < n_seen)
			continue;
		offer_words(k, seen[n_seen++]);
	}
}

void complete_print(struct ctl *c, const struct complete_program *program, int n, char **words)
{
	const char *word = n ? words[n - 1] : "";
	struct completion k = { .c = c, .program = program, .word = word, .front = word };
	struct line l;

	c->timeout_ms = ANSWER_MS;
	out_init(&k.text, 0);
	read_line(c, program, n, words, &l);
	/* The agent is asked for what is running, whatever the verb would read. */
	c->core = NULL;
	if (l.option)
		complete_next(&k, &l);
	else if (word[0] == '-' && !l.options_over)
		complete_option(&k, &l);
	else if (l.verb)
		complete_argument(&k, &l);
	else if (!l.bad_verb)
		complete_values(&k, "VERB");
	out_str(&k.text, k.files ? ":file\n" : ":none\n");
	if (!out_error(&k.text))
		fwrite(k.text.data, 1, k.text.size, stdout);
	out_deinit(&k.text);
}
