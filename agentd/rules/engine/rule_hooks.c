/* SPDX-License-Identifier: MIT */
#include "agentd/rules/engine/rule_hooks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"

#define ID_CHARACTERS "0123456789abcdefT-"

/* For whom the hook of a rule that has no hook_user would run. */
static void tell_targets(const struct rule *rule, struct hook_rule *ret)
{
	ret->takes_root = !rule->n_users;
	for (size_t i = 0; i < rule->n_users; i++)
		ret->takes_root = ret->takes_root || rule->users[i] == 0;
	for (size_t i = 0; i < rule->n_users && (!ret->has_target_uid || ret->target_uid == 0); i++) {
		ret->has_target_uid = true;
		ret->target_uid = rule->users[i];
	}
}

void rule_hooks_configure(struct hooks *h, const struct rules *rules)
{
	auto_free struct hook_rule *list = calloc(rules->n + 1, sizeof(*list));
	int r = list ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < rules->n; i++) {
		list[i] = rules->list[i].hook;
		tell_targets(&rules->list[i], &list[i]);
	}
	if (r == 0)
		r = hooks_configure(h, list, rules->n);
	if (r < 0)
		log_error("hooks of rules: %s", strerror(-r));
}

/* The worker speaks with the target's rights: what it says goes no further unseen. */
static bool is_sane(const struct ipc_fault *f)
{
	return memchr(f->record, '\0', sizeof(f->record)) && strspn(f->record, ID_CHARACTERS) == strlen(f->record) &&
	       memchr(f->comm, '\0', sizeof(f->comm)) && memchr(f->vendor, '\0', sizeof(f->vendor)) &&
	       memchr(f->exception, '\0', sizeof(f->exception)) && memchr(f->kernel, '\0', sizeof(f->kernel)) &&
	       memchr(f->location, '\0', sizeof(f->location)) && memchr(f->exe, '\0', sizeof(f->exe));
}

void rule_hooks_run(struct hooks *h, const struct rules_fault *f, int document_fd)
{
	const struct ipc_fault *fault = &f->fault;
	const struct log_field fields[] = {
		{ "GPU_AGENT_RECORD", fault->record },	     { "GPU_AGENT_COMM", fault->comm },
		{ "GPU_AGENT_EXE", fault->exe },	     { "GPU_AGENT_VENDOR", fault->vendor },
		{ "GPU_AGENT_EXCEPTION", fault->exception }, { "GPU_AGENT_KERNEL", fault->kernel },
		{ "GPU_AGENT_LOCATION", fault->location },   { NULL, NULL },
	};
	const struct hook_event e = { .rule = f->rule,
				      .pid = f->pid,
				      .uid = f->uid,
				      .gid = f->gid,
				      .fields = fields,
				      .document_fd = document_fd };
	int r = -EPROTO;

	if (is_sane(fault))
		r = hooks_run(h, &e, NULL, NULL);
	if (r < 0 && r != -ENOBUFS)
		log_warning("rule %s: its hook is not run for process %d: %s", f->rule, (int)f->pid,
			    strerror(-r));
}
