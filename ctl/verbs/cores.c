/* SPDX-License-Identifier: MIT */
/* gpu-agentctl cores: what the agent has stored, chosen as coredumpctl(1) does it. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "ctl/ctl.h"
#include "ctl/snapshot_show.h"
#include "ctl/document/code_text.h"
#include "ctl/document/document.h"
#include "ctl/document/when.h"
#include "ctl/terminal/text.h"

/* Most arguments that choose records. */
#define MATCHES_MAX 64
/*
 * Bytes of one cores.read: a multiple of three, so that no piece of base64 but the last one is
 * padded.
 */
#define PIECE	    ((uint32_t)3 << 20)
/* Time between two updates of the progress on a terminal. */
#define TELL_NS	    UINT64_C(200000000)
#define REPLY_MEMORY_MAX ((size_t)512 << 20)

static const char *since, *until, *field, *count;
static bool newest_first, only_last;

static const struct argv_option options[] = {
	{ "since", 'S', ARGV_STRING, &since, "DATE", "not older: -1h, yesterday, 2026-11-21 09:00, @EPOCH" },
	{ "until", 'U', ARGV_STRING, &until, "DATE", "not newer" },
	{ "field", 'F', ARGV_STRING, &field, "FIELD", "list: only the different values of a field" },
	{ "reverse", 'r', ARGV_FLAG, &newest_first, NULL, "list: newest first" },
	{ "last", '1', ARGV_FLAG, &only_last, NULL, "only the newest that matches" },
	{ "number", 'n', ARGV_STRING, &count, "N", "at most the N newest that match" },
	{ 0 },
};

/* ------------------------------------------------------------------ choosing ----------------- */

/*
 * Whether an argument is the id of a record, or the date at its beginning.  A date has eight
 * digits, and no process id is as long (PID_MAX_LIMIT of Linux has seven digits).
 */
static bool is_id(const char *text)
{
	size_t n = strspn(text, "0123456789");

	return n == 8 && (text[8] == 'T' || !text[8]);
}

static bool is_number(const char *text)
{
	return text[0] && !text[strspn(text, "0123456789")];
}

/*
 * The FIELD=VALUE that an argument stands for, as coredumpctl(1) has it: a number is a process, an
 * id a record, a path an executable, and anything else a name.
 */
static char *match_of(struct ctl *c, const char *arg)
{
	if (strchr(arg, '='))
		return rpc_arena_strdup(&c->arena, arg);
	if (is_id(arg))
		return rpc_arena_printf(&c->arena, "RECORD=%s", arg);
	if (is_number(arg))
		return rpc_arena_printf(&c->arena, "PID=%s", arg);
	return rpc_arena_printf(&c->arena, arg[0] == '/' ? "EXE=%s" : "NAME=%s", arg);
}

/* Read a time; without the option, *ret stays as it is. */
static int time_option(struct ctl *c, const char *name, const char *text, bool *ret_has,
		       uint64_t *ret)
{
	if (!text)
		return 0;
	*ret_has = true;
	if (when_parse(text, clock_wall_us(), ret) < 0)
		return ctl_usage(c, "%s: \"%.40s\" is not a time such as -1h, yesterday, "
				    "\"2026-11-21 09:00\" or @1764000000", name, text);
	return 0;
}

/* Make the parameters of cores.list of the options and arguments. */
static int choose(struct ctl *c, int argc, char **argv, struct rpc_cores_list_params *p)
{
	const char **matches = rpc_arena_array(&c->arena, (size_t)argc + 1, sizeof(*matches));
	int r = time_option(c, "--since", since, &p->has_since_us, &p->since_us);

	if (r == 0)
		r = time_option(c, "--until", until, &p->has_until_us, &p->until_us);
	if (r == 0 && count)
		r = args_u32(c, "--number", count, 1, UINT32_MAX, &p->limit);
	if (r < 0)
		return r;
	if (only_last)
		p->limit = 1;
	p->has_limit = p->limit != 0;
	for (int i = 0; matches && i < argc; i++) {
		/* A script's variable without a value must not choose the newest of all records. */
		if (!argv[i][0])
			return ctl_usage(c, "cores: an argument is empty");
		matches[i] = match_of(c, argv[i]);
	}
	p->matches = matches;
	p->n_matches = (size_t)argc;
	p->has_matches = argc > 0;
	return rpc_arena_error(&c->arena) ? ctl_fail(c, ENOMEM, "arguments") : 0;
}

static int list(struct ctl *c, int argc, char **argv, struct rpc_cores_list_result *ret)
{
	struct rpc_cores_list_params p = { 0 };
	int r = choose(c, argc, argv, &p);

	if (r == 0)
		r = ctl_connect(c);
	return r < 0 ? r : ctl_called(c, rpc_client_cores_list(c->client, &p, &c->arena, ret, &c->err));
}

/*
 * What may have been meant when no record matches: a number may be the beginning of an id, too
 * short to be told from a process.
 * @return text in the arena.
 */
static const char *no_match_hint(struct ctl *c, int argc, char **argv)
{
	for (int i = 0; i < argc; i++)
		if (is_number(argv[i]) && !is_id(argv[i]))
			return rpc_arena_printf(&c->arena,
						"%.20s is taken for a process; for the beginning of a "
						"record's id write RECORD=%.20s, or eight digits or more",
						argv[i], argv[i]);
	return "`gpu-agentctl cores list` shows all";
}

/* Choose one record: the newest that matches, as coredumpctl(1) does. */
static int choose_one(struct ctl *c, int argc, char **argv, const char **ret_id)
{
	struct rpc_cores_list_result found;
	int r;

	only_last = true;
	r = list(c, argc, argv, &found);
	if (r < 0)
		return r;
	if (!found.n_records)
		return agent_err_set(&c->err, RPC_ERROR_NO_SUCH_RECORD, ENOENT, "cores",
				     no_match_hint(c, argc, argv), "no record matches");
	*ret_id = found.records[found.n_records - 1].record;
	return 0;
}

/* ------------------------------------------------------------------ list --------------------- */

/* What the record says of its core file. */
static const char *core_text(struct ctl *c, const struct rpc_record *r)
{
	return r->broken ? "broken" : show_name(&c->arena, &rpc_record_body_enum, r->body);
}

static void add_row(struct ctl *c, struct table *t, const struct rpc_record *r)
{
	char when[32];

	when_format(r->time_us, when, sizeof(when));
	table_str(t, when);
	table_str(t, r->record);
	table_u64(t, r->pid);
	/* As FIELD=VALUE takes it. */
	table_style(t, r->exception ? COLOR_BAD : COLOR_PLAIN, r->exception ? r->exception : r->reason);
	table_str(t, r->comm);
	table_str(t, r->kernel ? code_text_name(&c->arena, r->kernel) : NULL);
	table_style(t, r->broken ? COLOR_BAD : r->body == RPC_RECORD_BODY_PRESENT ? COLOR_GOOD : COLOR_PLAIN,
		    core_text(c, r));
	table_str(t, r->pinned ? "pin" : NULL);
	table_u64(t, r->count);
	table_str(t, show_user(&c->arena, r->uid));
	table_size(t, r->disk_bytes);
}

static int print_list(struct ctl *c, const struct rpc_cores_list_result *l)
{
	/* The id, which tells the time as well, has to be whole: other actions want it. */
	static const struct table_column columns[] = {
		{ "TIME", .importance = 1 },
		{ "RECORD" },
		{ "PID", true },
		{ "REASON", .importance = 8, .min = 12 },
		{ "COMMAND", .importance = 5 },
		{ "KERNEL", .optional = true, .importance = 7, .min = 10 },
		{ "CORE" },
		{ "PIN", .optional = true, .importance = 4 },
		{ "COUNT", true, .importance = 3 },
		{ "USER", .importance = 3 },
		{ "SIZE", true, .importance = 2 },
	};
	auto_table struct table t;

	table_init(&t, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < l->n_records; i++)
		add_row(c, &t, &l->records[i]);
	return ctl_print_table(c, &t);
}

/* The value of a field by its name, "" for none; NULL if records have no such field. */
static const char *field_text(struct ctl *c, const struct rpc_record *r, const char *name)
{
	const struct {
		const char *name, *text;
	} texts[] = { { "RECORD", r->record },	   { "BOOT_ID", r->boot_id }, { "COMM", r->comm },
		      { "EXE", r->exe },	   { "VENDOR", r->vendor },   { "REASON", r->reason },
		      { "RULE", r->rule },	   { "EXCEPTION", r->exception }, { "KERNEL", r->kernel },
		      { "LOCATION", r->location }, { "KEY", r->key } };

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (!strcasecmp(texts[i].name, name))
			return texts[i].text ? texts[i].text : "";
	if (!strcasecmp(name, "PID"))
		return rpc_arena_printf(&c->arena, "%u", r->pid);
	if (!strcasecmp(name, "UID"))
		return rpc_arena_printf(&c->arena, "%u", r->uid);
	if (!strcasecmp(name, "TIME_US"))
		return rpc_arena_printf(&c->arena, "%" PRIu64, r->time_us);
	if (!strcasecmp(name, "COUNT"))
		return rpc_arena_printf(&c->arena, "%" PRIu64, r->count);
	return NULL;
}

/*
 * Collect the different values of a field.
 * @return how many there are, -ENOMEM.
 */
static ssize_t field_values(struct ctl *c, const struct rpc_cores_list_result *l, const char ***ret)
{
	const char **seen = rpc_arena_array(&c->arena, l->n_records, sizeof(*seen));
	size_t n = 0, k;

	for (size_t i = 0; seen && i < l->n_records; i++) {
		const char *text = field_text(c, &l->records[i], field);

		for (k = 0; text && k < n && strcmp(seen[k], text); k++)
			;
		if (text && k == n && text[0])
			seen[n++] = text;
	}
	*ret = seen;
	return seen && !rpc_arena_error(&c->arena) ? (ssize_t)n : -ENOMEM;
}

static int print_values_json(struct ctl *c, const char *const *values, size_t n)
{
	auto_out struct out o = { 0 };

	out_json_fmt(&o, "{'field':%s,'values':[", field);
	for (size_t i = 0; i < n; i++)
		out_json_fmt(&o, ",%s", values[i]);
	out_str(&o, "]}");
	return ctl_print_json(c, &o);
}

static int print_field(struct ctl *c, const struct rpc_cores_list_result *l)
{
	/* An empty record is enough to learn whether the field exists. */
	static const struct rpc_record none;
	const char **values;
	ssize_t n;

	if (!field_text(c, &none, field))
		return ctl_usage(c, "--field: \"%.40s\" is no field of a record", field);
	n = field_values(c, l, &values);
	if (n < 0)
		return ctl_fail(c, ENOMEM, "values");
	if (ctl_is_json(c))
		return print_values_json(c, values, (size_t)n);
	if (l->n_records && !n)
		ctl_note(c, "no record has the field %s", field);
	for (ssize_t i = 0; i < n; i++)
		text_put(&c->output.text, "", values[i], "\n");
	return 0;
}

/* Append the records as the agent sent them, or in the other order. */
static int print_records_json(struct ctl *c, const struct rpc_cores_list_result *l)
{
	auto_out struct out o = { 0 };

	if (!newest_first)
		return ctl_print_result(c);
	rpc_cores_list_result_encode(&o, l);
	return ctl_print_json(c, &o);
}

/* Reverse the order: the agent sends the oldest record first. */
static void turn_round(struct rpc_cores_list_result *l)
{
	for (size_t i = 0; i < l->n_records / 2; i++) {
		struct rpc_record r = l->records[i];

		l->records[i] = l->records[l->n_records - 1 - i];
		l->records[l->n_records - 1 - i] = r;
	}
}

/* A list that is empty, as words: an empty store is nothing to search in another way. */
static void tell_no_match(struct ctl *c, int argc, char **argv)
{
	if (!argc && !since && !until)
		ctl_note(c, "the store has no records that you may see");
	else
		ctl_note(c, "no record matches: %s", no_match_hint(c, argc, argv));
}

static int run_list(struct ctl *c, int argc, char **argv)
{
	struct rpc_cores_list_result found;
	int r = list(c, argc, argv, &found);

	if (r < 0)
		return r;
	if (newest_first)
		turn_round(&found);
	if (!found.n_records && !ctl_is_json(c))
		tell_no_match(c, argc, argv);
	if (field)
		r = print_field(c, &found);
	else if (ctl_is_json(c))
		r = print_records_json(c, &found);
	else if (found.n_records)
		r = print_list(c, &found);
	return r < 0 ? r : found.n_records || ctl_is_json(c) ? 0 : CTL_EXIT_NO_MATCH;
}

/* ------------------------------------------------------------------ info --------------------- */

/* Append `key  text`, unless the text is empty. */
static void line(struct ctl *c, const char *key, const char *text)
{
	bool color = c->output.color;
	struct out *o = &c->output.text;

	if (str_is_empty(text))
		return;
	out_fmt(o, "%s%-10s%s ", color_begin(COLOR_HEADER, color), key,
		color_end(COLOR_HEADER, color));
	text_put(o, "", text, "\n");
}

static void print_record(struct ctl *c, const struct rpc_record *r)
{
	auto_out struct out size = { 0 };
	char when[32];

	when_format(r->time_us, when, sizeof(when));
	line(c, "record", r->record);
	line(c, "time", when);
	line(c, "pid", rpc_arena_printf(&c->arena, "%u  %s", r->pid, r->comm ? r->comm : ""));
	line(c, "user", show_user(&c->arena, r->uid));
	line(c, "executable", r->exe);
	line(c, "boot", r->boot_id);
	line(c, "reason", r->reason);
	line(c, "rule", r->rule);
	line(c, "exception", r->exception);
	line(c, "count", rpc_arena_printf(&c->arena, "%" PRIu64, r->count));
	line(c, "kernel", r->kernel);
	line(c, "location", r->location);
	text_size(&size, r->body_bytes);
	line(c, "core", r->body == RPC_RECORD_BODY_PRESENT ?
				rpc_arena_printf(&c->arena, "%s%s", size.data, r->zstd ? " (zstd)" : "") :
				core_text(c, r));
	line(c, "pinned", r->pinned ? "yes" : "no");
	out_char(&c->output.text, '\n');
}

static int run_info(struct ctl *c, int argc, char **argv)
{
	struct rpc_cores_info_params p = { 0 };
	struct rpc_cores_info_result info;
	struct document d;
	int r;

	c->arena.limit = REPLY_MEMORY_MAX;
	r = choose_one(c, argc, argv, &p.record);
	if (r == 0)
		r = ctl_called(c, rpc_client_cores_info(c->client, &p, &c->arena, &info, &c->err));
	if (r < 0)
		return r;
	if (ctl_is_json(c))
		return ctl_print_result(c);
	print_record(c, &info.record);
	r = document_parse(info.record.record, info.snapshot, strlen(info.snapshot), &c->arena, &d,
			   &c->err);
	return r < 0 ? r : snapshot_show(c, &(struct snapshot_page){ .snapshot = &d.snapshot });
}

/* ------------------------------------------------------------------ export ------------------- */

/* Write the progress over the last one. */
static void tell(uint64_t done, uint64_t total)
{
	auto_out struct out o = { 0 };

	text_size(&o, done);
	out_str(&o, " of ");
	text_size(&o, total);
	if (!out_error(&o))
		fprintf(stderr, "\r\033[K%s", o.data);
}

static int read_piece(struct ctl *c, const struct rpc_cores_read_params *p,
		      struct rpc_cores_read_result *ret)
{
	uint8_t *bytes;
	int r = ctl_called(c, rpc_client_cores_read(c->client, p, &c->arena, ret, &c->err));

	/* An empty piece before the end would make copy_body() ask for ever. */
	if (r == 0)
		r = rpc_client_bytes(ret->data,
				     ret->size || p->offset >= ret->body_bytes ? ret->size : 1,
				     "cores.read", &c->arena, &bytes, &c->err);
	if (r < 0)
		return r;
	out_bytes(&c->output.text, bytes, ret->size);
	r = output_flush(&c->output);
	return r < 0 ? ctl_fail(c, -r, "writing the output") : 0;
}

static int copy_body(struct ctl *c, const char *id)
{
	struct rpc_cores_read_params p = { .record = id, .size = PIECE };
	bool terminal = !c->quiet && isatty(STDERR_FILENO);
	struct rpc_cores_read_result piece;
	uint64_t told_ns = clock_now_ns();
	int r;

	do {
		rpc_arena_reset(&c->arena);
		r = read_piece(c, &p, &piece);
		if (r < 0)
			break;
		p.offset += piece.size;
		if (terminal && clock_now_ns() - told_ns >= TELL_NS) {
			tell(p.offset, piece.body_bytes);
			told_ns = clock_now_ns();
		}
	} while (p.offset < piece.body_bytes);
	if (terminal)
		fputs("\r\033[K", stderr);
	if (r == 0 && piece.zstd)
		ctl_note(c, "the core is compressed: zstd -d");
	return r;
}

static int run_export(struct ctl *c, int argc, char **argv)
{
	const char *found;
	char id[64];
	int r;

	if (ctl_is_json(c))
		return ctl_usage(c, "export: a core is not JSON: leave --json out");
	if (!c->output.path && isatty(STDOUT_FILENO))
		return ctl_usage(c,
				 "export would write bytes to the terminal; use -o FILE or a pipe");
	r = choose_one(c, argc, argv, &found);
	if (r < 0)
		return r;
	/* The arena, which has the id, is emptied between the pieces. */
	str_copy(id, sizeof(id), found);
	if (!c->output.path)
		output_begin_stream(&c->output);
	return copy_body(c, id);
}

/* ------------------------------------------------------------------ pin, rm, du -------------- */

static int pin(struct ctl *c, int argc, char **argv, bool pinned)
{
	struct rpc_cores_pin_params p = { .has_pinned = true, .pinned = pinned };
	struct rpc_cores_pin_result result;
	int r = choose_one(c, argc, argv, &p.record);

	if (r == 0)
		r = ctl_called(c, rpc_client_cores_pin(c->client, &p, &c->arena, &result, &c->err));
	if (r < 0)
		return r;
	if (ctl_is_json(c))
		return ctl_print_result(c);
	ctl_note(c, "%s %s", result.record, result.pinned ? "is pinned" : "is not pinned any more");
	return 0;
}

static int run_pin(struct ctl *c, int argc, char **argv)
{
	return pin(c, argc, argv, true);
}

static int run_unpin(struct ctl *c, int argc, char **argv)
{
	return pin(c, argc, argv, false);
}

static int run_rm(struct ctl *c, int argc, char **argv)
{
	struct rpc_cores_remove_params p = { 0 };
	struct rpc_cores_remove_result result;
	int r = choose_one(c, argc, argv, &p.record);

	if (r == 0)
		r = ctl_called(c,
			       rpc_client_cores_remove(c->client, &p, &c->arena, &result, &c->err));
	if (r < 0)
		return r;
	if (ctl_is_json(c))
		return ctl_print_result(c);
	ctl_note(c, "removed %s", result.record);
	return 0;
}

static const char *sized(struct ctl *c, uint64_t bytes)
{
	auto_out struct out o = { 0 };

	text_size(&o, bytes);
	return o.data ? rpc_arena_strdup(&c->arena, o.data) : "";
}

/* `3 of 1.5 GiB together`, or `none`. */
static const char *counted(struct ctl *c, uint64_t n, uint64_t bytes)
{
	return n ? rpc_arena_printf(&c->arena, "%" PRIu64 " of %s together", n, sized(c, bytes)) : "none";
}

/* Print what the store holds and may hold. */
static int run_du(struct ctl *c, int argc, char **argv)
{
	struct rpc_cores_usage_result u;
	int r = argc ? ctl_usage(c, "du: unexpected argument \"%.40s\"", argv[0]) : ctl_connect(c);

	if (r == 0)
		r = ctl_called(c, rpc_client_cores_usage(c->client, NULL, &c->arena, &u, &c->err));
	if (r < 0)
		return r;
	if (ctl_is_json(c))
		return ctl_print_result(c);
	line(c, "used",
	     rpc_arena_printf(&c->arena, "%s of %s", sized(c, u.disk_bytes),
			      sized(c, u.max_use_bytes)));
	line(c, "cores", rpc_arena_printf(&c->arena, "%s, at most %s each",
					  counted(c, u.bodies, u.body_bytes), sized(c, u.max_body_bytes)));
	line(c, "records",
	     rpc_arena_printf(&c->arena, "%" PRIu64 " of %" PRIu64, u.records, u.max_records));
	line(c, "pinned", counted(c, u.pinned, u.pinned_bytes));
	if (u.unfinished_bytes)
		line(c, "unfinished", sized(c, u.unfinished_bytes));
	line(c, "free", rpc_arena_printf(&c->arena, "%s, cores go below %s", sized(c, u.free_bytes),
					 sized(c, u.keep_free_bytes)));
	if (u.foreign)
		line(c, "foreign",
		     rpc_arena_printf(&c->arena, "%" PRIu64 " files that are not the store's",
				      u.foreign));
	return 0;
}

static int run(struct ctl *c, int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(struct ctl *c, int argc, char **argv);
		bool one;
	} actions[] = { { "list", run_list, false },    { "info", run_info, true },
			{ "export", run_export, true }, { "pin", run_pin, true },
			{ "unpin", run_unpin, true },   { "rm", run_rm, true },
			{ "du", run_du, false } };

	if (argc - 1 > MATCHES_MAX)
		return ctl_usage(c, "cores: more than %d arguments", MATCHES_MAX);
	for (size_t i = 0; i < ARRAY_SIZE(actions); i++) {
		if (strcmp(argv[0], actions[i].name))
			continue;
		if (field && actions[i].run != run_list)
			return ctl_usage(c, "--field goes with list");
		/*
		 * An action that changes or copies a record must be told which; `info` alone takes
		 * the newest.
		 */
		if (actions[i].one && argc == 1 && actions[i].run != run_info && !only_last)
			return ctl_usage(c, "cores %s needs a record", argv[0]);
		return actions[i].run(c, argc - 1, argv + 1);
	}
	return ctl_usage(c, "cores: \"%.40s\" is none of list, info, export, pin, unpin, rm, du", argv[0]);
}

const struct ctl_verb ctl_verb_cores = {
	.name = "cores",
	.args = "list|info|export|pin|unpin|rm|du [RECORD|PID|NAME|FIELD=VALUE...]",
	.summary = "Stored records of snapshots and exceptions, and their core files",
	.options = options,
	.min_args = 1,
	.max_args = 1 + MATCHES_MAX,
	.run = run,
};
