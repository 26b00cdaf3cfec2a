/* SPDX-License-Identifier: MIT */
#include "agentd/rules/engine/check.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agentd/rules/engine/rule_hooks.h"
#include "base/clock.h"

/* Of a user that the database does not know, without any rights. */
#define NOBODY 65534
/* How often runners that have ended are looked for. */
#define REAP_MS 50

struct check {
	const struct rules *rules;
	int result;
};

static void on_listed(void *ctx, const struct hook_info *list, size_t n)
{
	struct check *c = ctx;

	for (size_t i = 0; i < n; i++) {
		const struct rule *rule = rules_find(c->rules, list[i].rule);
		const char *where = rule ? rule->where : "";

		if (list[i].check != HOOK_END_EXIT) {
			log_error("%s: [rule %s] hook: %s", where, list[i].rule, list[i].why);
			c->result = -EINVAL;
		} else if (list[i].why[0]) {
			log_warning("%s: [rule %s] hook: %s", where, list[i].rule, list[i].why);
		}
	}
}

static void wait_for(struct hooks *h)
{
	while (hooks_is_busy(h)) {
		struct pollfd fds[HOOKS_RUNNING_MAX + 1];
		size_t n = hooks_poll(h, fds);
		int status;
		pid_t pid;

		poll(fds, n, REAP_MS);
		for (size_t i = 0; i < n; i++)
			if (fds[i].revents)
				hooks_readable(h, fds[i].fd);
		hooks_deadlines(h);
		while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
			hooks_reaped(h, pid, status);
	}
}

int check_hooks(const struct rules *rules, const char *program, bool user_mode)
{
	struct check c = { .rules = rules };
	struct hooks h;
	int r;

	hooks_init(&h, program);
	rule_hooks_configure(&h, rules);
	if (h.rules.n && !user_mode && geteuid() != 0) {
		log_warning("only root can judge hooks: not checked");
	} else if (h.rules.n) {
		r = hooks_list(&h, user_mode ? getuid() : NOBODY, user_mode ? getgid() : NOBODY, !user_mode,
			       on_listed, &c);
		c.result = r;
		if (r == 0)
			wait_for(&h);
		else
			log_error("hooks: %s", strerror(-r));
	}
	hooks_deinit(&h);
	return c.result;
}
