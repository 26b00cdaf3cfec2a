/* SPDX-License-Identifier: MIT */
/* Values of options and arguments by the name that the help has for them. */
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "ctl/complete.h"
#include "ctl/document/when.h"

/* Most records that are offered: the newest ones. */
#define RECORDS_MAX 200

/* What a name in the help stands for: one or several of these. */
struct kind {
	const char *name;
	void (*offer)(struct completion *k);
	const struct rpc_enum *values[2];
	const char *words; /* Joined by blanks. */
	bool files;
};

/* ------------------------------------------------------------------ what the agent knows ------ */

static bool connected(struct completion *k)
{
	return k->program->choose_socket() == 0 && ctl_connect(k->c) == 0;
}

static const char *number(struct completion *k, uint32_t n)
{
	const char *text = rpc_arena_printf(&k->c->arena, "%" PRIu32, n);

	return text ? text : "";
}

static void offer_processes(struct completion *k)
{
	struct rpc_process_list_result list;
	struct ctl *c = k->c;

	if (!connected(k) || rpc_client_process_list(c->client, NULL, &c->arena, &list, &c->err) < 0)
		return;
	for (size_t i = 0; i < list.n_processes; i++) {
		const struct rpc_process *p = &list.processes[i];

		complete_offer(k, number(k, p->pid),
			       rpc_arena_printf(&c->arena, "%.40s of %.32s, %s%s%.80s", p->comm,
						show_user(&c->arena, p->uid),
						show_name(&c->arena, &rpc_vendor_enum, p->vendor),
						p->debuggable || !p->reason ? "" : "; not now: ",
						p->debuggable || !p->reason ? "" : p->reason));
	}
}

static void offer_sessions(struct completion *k)
{
	struct rpc_session_list_result list;
	struct ctl *c = k->c;

	if (!connected(k) || rpc_client_session_list(c->client, NULL, &c->arena, &list, &c->err) < 0)
		return;
	for (size_t i = 0; i < list.n_sessions; i++) {
		const struct rpc_session_info *s = &list.sessions[i];

		complete_offer(k, s->session,
			       rpc_arena_printf(&c->arena, "session on process %" PRIu32 " (%.40s)", s->pid, s->comm));
	}
}

static void offer_records(struct completion *k)
{
	struct rpc_cores_list_params p = { .has_limit = true, .limit = RECORDS_MAX };
	struct rpc_cores_list_result list;
	struct ctl *c = k->c;

	if (!connected(k) || rpc_client_cores_list(c->client, &p, &c->arena, &list, &c->err) < 0)
		return;
	for (size_t i = 0; i < list.n_records; i++) {
		const struct rpc_record *r = &list.records[i];
		char when[32];

		when_format(r->time_us, when, sizeof(when));
		complete_offer(k, r->record,
			       rpc_arena_printf(&c->arena, "%s, process %" PRIu32 " (%.40s): %.60s", when, r->pid,
						r->comm ? r->comm : "?",
						r->exception ? r->exception : r->reason ? r->reason : "?"));
	}
}

static void offer_rules(struct completion *k)
{
	struct rpc_hooks_list_result list;
	struct ctl *c = k->c;

	if (!connected(k) || rpc_client_hooks_list(c->client, NULL, &c->arena, &list, &c->err) < 0)
		return;
	for (size_t i = 0; i < list.n_hooks; i++)
		complete_offer(k, list.hooks[i].rule, list.hooks[i].path);
}

/* ------------------------------------------------------------------ what the program knows ---- */

static void offer_verbs(struct completion *k)
{
	for (size_t i = 0; i < k->program->n_verbs; i++)
		complete_offer_either(k, k->program->verbs[i]->name, k->program->verbs[i]->alias,
				      k->program->verbs[i]->summary);
}

static void offer_methods(struct completion *k)
{
	for (size_t i = 0; i < RPC_METHOD_COUNT; i++)
		complete_offer(k, rpc_methods[i].name, rpc_methods[i].doc);
}

static void offer_users(struct completion *k)
{
	struct passwd *user;

	setpwent();
	while ((user = getpwent()))
		complete_offer(k, user->pw_name, user->pw_gecos);
	endpwent();
}

/* Fields of a record; a value of one follows where the help says FIELD=VALUE. */
#define FIELDS(end)                                                                                \
	"PID" end " UID" end " COMM" end " EXE" end " KERNEL" end " LOCATION" end " REASON" end    \
	" RULE" end " EXCEPTION" end " VENDOR" end " KEY" end " BOOT_ID" end

static const struct kind kinds[] = {
	{ "BANK", .values = { &rpc_register_bank_enum } },
	{ "SCOPE", .values = { &rpc_variable_scope_enum } },
	{ "CODE-FILE", .files = true },
	{ "DATE", .words = "today yesterday -1h -1d" },
	{ "EXCEPTION", .values = { &rpc_exception_enum }, .words = "faults all none" },
	{ "FIELD", .words = FIELDS("") },
	{ "FIELD=VALUE", .words = FIELDS("=") },
	{ "FILE", .files = true },
	{ "LANES", .words = "all active part" },
	{ "LAYOUT", .values = { &rpc_core_layout_enum } },
	{ "METHOD", offer_methods },
	{ "MODE", .values = { &rpc_watch_mode_enum } },
	{ "MS", .words = "500 2000 10000" },
	{ "PATH", .files = true },
	{ "PID", offer_processes },
	{ "RECORD", offer_records },
	{ "RULE", offer_rules },
	{ "SESSION", offer_sessions },
	{ "SPACE", .values = { &rpc_memory_space_enum } },
	{ "STATE", .values = { &rpc_wave_state_enum, &rpc_stop_reason_enum } },
	{ "TIME", .words = "500ms 1s 5s 30s" },
	{ "PERCENT", .words = "0.1% 1% 5%" },
	{ "USER", offer_users },
	{ "VERB", offer_verbs },
	{ "WHEN", .words = "auto always never" },
};

static void offer_enum(struct completion *k, const struct rpc_enum *e)
{
	for (size_t i = 0; e && i < e->n; i++)
		complete_offer(k, e->values[i].name, e->values[i].doc);
}

static void offer_all(struct completion *k, const char *words)
{
	char word[32];

	for (size_t n; words && words[0]; words += n + (words[n] == ' ')) {
		n = strcspn(words, " ");
		snprintf(word, sizeof(word), "%.*s", (int)n, words);
		complete_offer(k, word, NULL);
	}
}

void complete_values(struct completion *k, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		const struct kind *kind = &kinds[i];

		if (strcmp(kind->name, name))
			continue;
		offer_all(k, kind->words);
		for (size_t j = 0; j < ARRAY_SIZE(kind->values); j++)
			offer_enum(k, kind->values[j]);
		if (kind->offer)
			kind->offer(k);
		k->files |= kind->files;
	}
}
