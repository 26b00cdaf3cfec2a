/* SPDX-License-Identifier: MIT */
/*
 * gpu-agent-hook: runs one hook of the administrator for the rules process (agentd/hook.h).
 *
 * It has the right to become other users until its child has become one.  Then it keeps only the
 * right to kill processes of other users.  The hook runs as another user, so it can do nothing to
 * this process.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "agentd/hook/runner.h"
#include "agentd/privileges.h"
#include "base/fd.h"
#include "base/log.h"

#define JOBS_MAX 64

/* The jobs come from the rules process; this check keeps a mistake there from becoming an overrun here. */
static bool is_sane(const struct hook_job *j)
{
	return memchr(j->path, '\0', sizeof(j->path)) && memchr(j->user, '\0', sizeof(j->user)) &&
	       j->env_size <= sizeof(j->env) && (!j->env_size || !j->env[j->env_size - 1]) &&
	       j->limits.output_bytes <= HOOK_OUTPUT_MAX;
}

static int take_jobs(const struct hook_job **ret, size_t *ret_n)
{
	const void *data;
	size_t size;
	int r = fd_memfd_map(HOOK_FD_JOB, JOBS_MAX * sizeof(**ret), &data, &size);

	if (r < 0)
		return r;
	*ret = data;
	*ret_n = size / sizeof(**ret);
	for (size_t i = 0; i < *ret_n; i++)
		if (!is_sane(&(*ret)[i]))
			return -EBADMSG;
	return size % sizeof(**ret) || !*ret_n ? -EBADMSG : 0;
}

int main(void)
{
	const struct hook_job *jobs;
	size_t n;
	int r = take_jobs(&jobs, &n);

	if (r < 0) {
		fputs("gpu-agent-hook is started by gpu-agentd\n", stderr);
		return 2;
	}
	log_init("gpu-agent-hook", LOG_LEVEL_INFO);
	/*
	 * A terminal's Ctrl-C and a service manager's SIGTERM go to all processes of the agent.
	 * The rules process says on the link when the runner is to stop.
	 */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	fd_set_cloexec(HOOK_FD_JOB, true);
	fd_set_cloexec(HOOK_FD_LINK, true);
	r = privileges_hide();
	if (r == 0 && prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		r = -errno;
	if (r < 0) {
		log_error("cannot run hooks: %s", strerror(-r));
		return 1;
	}
	if (jobs->check)
		runner_check(jobs, n);
	else
		runner_run(jobs);
	return 0;
}
