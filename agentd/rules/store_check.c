/* SPDX-License-Identifier: MIT */
#include "agentd/rules/store_check.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agentd/child.h"
#include "base/clock.h"
#include "base/log.h"

/* For a directory of a file system that answers late. */
#define CHECK_MS 10000

static void exec_store(const struct config *c, const struct rules_ids *ids, const char *program)
{
	char uid[12], gid[12];
	const char *const argv[] = { program, "--check", "--uid", uid, "--gid", gid, "--client-uid", uid,
				     "--directory", c->store_directory, "--max-use", c->store_max_use,
				     "--keep-free", c->store_keep_free, "--max-body", c->store_max_body,
				     "--max-age", c->store_max_age, "--max-record-age", c->store_max_record_age,
				     "--max-records", c->store_max_records, NULL };

	snprintf(uid, sizeof(uid), "%u", ids->front_uid);
	snprintf(gid, sizeof(gid), "%u", ids->front_gid);
	child_exec(program, argv, 0);
}

/* @return its exit status, -ETIMEDOUT, other -errno. */
static int run_store(const struct config *c, const struct rules_ids *ids)
{
	char directory[PATH_MAX - 32], program[PATH_MAX];
	int status, r = child_find_directory(directory, sizeof(directory));
	pid_t pid;

	if (r < 0)
		return r;
	snprintf(program, sizeof(program), "%s/gpu-agent-store", directory);
	pid = fork();
	if (pid == 0)
		exec_store(c, ids, program);
	if (pid < 0)
		return -errno;
	r = child_wait(pid, clock_deadline_ms(CHECK_MS), &status);
	/* Waiting for a file system that does not answer it may not end of this, and is left to the kernel. */
	if (r == -ETIMEDOUT)
		kill(pid, SIGKILL);
	if (r < 0)
		return r;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -ECHILD;
}

bool store_check_is_due(const struct config *c, bool user_mode, const char *where)
{
	struct stat st;

	/* An agent of one user makes the directory; that of the system has it from systemd-tmpfiles(8). */
	return (where && !user_mode) || stat(c->store_directory, &st) == 0 || errno != ENOENT;
}

int store_check(const struct config *c, const struct rules_ids *ids, bool user_mode, const char *where)
{
	int r;

	if (!user_mode && geteuid() != 0) {
		log_warning("only root can judge the store: not checked");
		return 0;
	}
	r = run_store(c, ids);
	if (r == -ETIMEDOUT)
		log_error("%s: [store] directory: gpu-agent-store has not opened it within %d s",
			  where ? where : "built-in default", CHECK_MS / 1000);
	else if (r < 0)
		log_error("gpu-agent-store: %s", strerror(-r));
	/* It has said what is wrong with the directory, and this is where that comes from. */
	if (r > 0)
		log_error("%s: [store] directory: no records can be kept there", where ? where : "built-in default");
	return r > 0 ? -EINVAL : r;
}
