/* SPDX-License-Identifier: MIT */
#include "agentd/spawn/rule_hooks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"

#define ID_CHARACTERS "0123456789abcdefT-"

void rule_hooks_configure(struct hooks *h, const struct rules *rules)
{
	auto_free struct hook_rule *list = calloc(rules->n + 1, sizeof(*list));
	int r = list ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < rules->n; i++)
		list[i] = rules->list[i].hook;
	if (r == 0)
		r = hooks_configure(h, list, rules->n);
	if (r < 0)
		log_error("hooks of rules: %s", strerror(-r));
}

/* The worker speaks with the target's rights: what it says goes no further unseen. */
static bool is_id(const char *record, size_t size)
{
	size_t n = strnlen(record, size);

	return n < size && strspn(record, ID_CHARACTERS) == n;
}

void rule_hooks_run(struct hooks *h, const struct worker *k, const char *record, int document_fd)
{
	const struct log_field fields[] = { { "GPU_AGENT_RECORD", record }, { NULL, NULL } };
	const struct hook_event e = { .rule = k->rule,
				      .pid = k->target,
				      .uid = k->target_uid,
				      .gid = k->target_gid,
				      .fields = fields,
				      .document_fd = document_fd };
	int r = -EPROTO;

	if (is_id(record, sizeof(((struct ipc_guard *)0)->record)))
		r = hooks_run(h, &e, NULL, NULL);
	if (r < 0 && r != -ENOBUFS)
		log_warning("rule %s: its hook is not run for process %d: %s", k->rule, (int)k->target,
			    strerror(-r));
}
