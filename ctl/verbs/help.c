/* SPDX-License-Identifier: MIT */
/* gpu-agentctl help: the manual page of a verb; where there is none, what --help prints. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "ctl/ctl.h"

extern char **environ;

/*
 * Run man(1).
 * @param quiet  Ask only whether there is a page: man finds it and prints nothing.
 * @return whether it ran and was content.
 */
static bool run_man(char *page, bool quiet)
{
	char man[] = "man", where[] = "-w";
	char *ask[] = { man, where, page, NULL }, *show[] = { man, page, NULL };
	posix_spawn_file_actions_t actions;
	int status = -1;
	pid_t pid;

	posix_spawn_file_actions_init(&actions);
	if (quiet) {
		posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
		posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	}
	if (posix_spawnp(&pid, "man", &actions, NULL, quiet ? ask : show, environ) == 0)
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	posix_spawn_file_actions_destroy(&actions);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static int run(struct ctl *c, int argc, char **argv)
{
	const struct ctl_verb *verb = argc ? ctl_find_verb(c, argv[0]) : NULL;
	char page[64];

	if (argc && !verb)
		return -EINVAL;
	snprintf(page, sizeof(page), "gpu-agentctl-%s", verb ? verb->name : "");
	if (!verb || !run_man(page, true) || !run_man(page, false))
		ctl_print_help(verb);
	return 0;
}

const struct ctl_verb ctl_verb_help = {
	.name = "help",
	.args = "[VERB]",
	.summary = "Show the manual page of a verb, or a summary of all verbs",
	.max_args = 1,
	.run = run,
};
