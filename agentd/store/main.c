/* SPDX-License-Identifier: MIT */
/*
 * gpu-agent-store: opens the directory with the rights of the monitor, gives them up, and serves.
 *
 * A store that cannot be opened is no reason to end: the client gets that as an answer.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agentd/ipc/child.h"
#include "agentd/ipc/monitor_worker.h"
#include "agentd/privileges.h"
#include "agentd/sandbox.h"
#include "agentd/store/service.h"
#include "base/argv.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"

#define NOBODY UINT32_MAX

static struct {
	const char *directory;
	struct store_limits_text limits;
	uint32_t uid, gid, client_uid, pid;
	bool admin, observer, make_directory, check, verbose;
} opt = { .uid = NOBODY, .gid = NOBODY, .client_uid = NOBODY };

static const struct argv_option options[] = {
	{ "uid", 0, ARGV_U32, &opt.uid, "UID", "become this user" },
	{ "gid", 0, ARGV_U32, &opt.gid, "GID", "and this group" },
	{ "client-uid", 0, ARGV_U32, &opt.client_uid, "UID", "whose records" },
	{ "pid", 0, ARGV_U32, &opt.pid, "PID", "add records about this process; 0: serve a client" },
	{ "admin", 0, ARGV_FLAG, &opt.admin, NULL, "the client is an administrator" },
	{ "observer", 0, ARGV_FLAG, &opt.observer, NULL, "the client may look at all" },
	{ "directory", 0, ARGV_STRING, &opt.directory, "DIR", "the store" },
	{ "make-directory", 0, ARGV_FLAG, &opt.make_directory, NULL, "make it when it is missing" },
	{ "max-use", 0, ARGV_STRING, &opt.limits.max_use, "SIZE", "bytes on disk" },
	{ "keep-free", 0, ARGV_STRING, &opt.limits.keep_free, "SIZE", "bytes left free" },
	{ "max-body", 0, ARGV_STRING, &opt.limits.max_body, "SIZE", "longest body" },
	{ "max-age", 0, ARGV_STRING, &opt.limits.max_age, "AGE", "of bodies" },
	{ "max-record-age", 0, ARGV_STRING, &opt.limits.max_record_age, "AGE", "of records" },
	{ "max-records", 0, ARGV_STRING, &opt.limits.max_records, "N", "records" },
	{ "check", 0, ARGV_FLAG, &opt.check, NULL, "say whether it can be used, and exit" },
	{ "verbose", 0, ARGV_FLAG, &opt.verbose, NULL, "log more" },
	{ 0 },
};

/* The monitor passes "" for limits that the configuration does not set. */
static void drop_empty(const char **text)
{
	if (str_is_empty(*text))
		*text = NULL;
}

/* Make the directory and all above it. */
static void make_parents(const char *path)
{
	char part[PATH_MAX];

	for (const char *slash = path; (slash = strchr(slash + 1, '/'));) {
		str_copy(part, sizeof(part), path);
		if ((size_t)(slash - path) < sizeof(part))
			part[slash - path] = '\0';
		/* Errors do not matter: if a directory is missing afterwards, the open says so. */
		mkdir(part, 0700);
	}
	mkdir(path, 0700);
}

static int open_directory(const char *path, int *ret)
{
	if (str_is_empty(path))
		return -ENOENT;
	if (opt.make_directory)
		make_parents(path);
	/* The open uses the rights of the monitor: the store's owner may not be able to walk there. */
	*ret = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return *ret < 0 ? -errno : 0;
}

static int serve(struct service *s)
{
	const struct ipc_guard settled = { .type = IPC_DISARM };

	/* If the socket has no room for it, the monitor kills this process later, and the frontend says so. */
	fd_send(IPC_FD_MONITOR, &settled, sizeof(settled), NULL, 0);
	return s->pid ? producer_run(s) : client_run(s);
}

static int start(struct service *s)
{
	auto_close int dir_fd = -1;
	int r;

	s->status = open_directory(opt.directory, &dir_fd);
	r = privileges_become(opt.uid, opt.gid);
	if (r == 0)
		r = privileges_hide();
	/* A store that can only be read is one until something is to be written. */
	if (r == 0 && opt.check && s->status == 0 && faccessat(dir_fd, ".", W_OK, AT_EACCESS) < 0)
		s->status = -errno;
	if (r == 0)
		r = sandbox_store(dir_fd);
	if (r < 0) {
		log_error("cannot give up rights: %s", strerror(-r));
		return 1;
	}
	if (s->status == 0)
		s->status = store_init(&s->store, dir_fd, &opt.limits, NULL);
	if (s->status < 0)
		log_error("store %s: %s", opt.directory, strerror(-s->status));
	return opt.check ? s->status < 0 : serve(s);
}

int main(int argc, char **argv)
{
	static const struct argv_option *const tables[] = { options, NULL };
	struct service s = { .link = IPC_LINK_NULL, .body_fd = -1, .uses = { .fd = IPC_FD_MONITOR } };
	char error[160];

	if (fd_reserve_stdio() < 0)
		return 1;
	if (argv_parse(argc, argv, tables, error, sizeof(error)) != 0 || !opt.directory ||
	    opt.uid == NOBODY || opt.gid == NOBODY || opt.client_uid == NOBODY) {
		fputs("gpu-agent-store is started by gpu-agentd\n", stderr);
		return 2;
	}
	drop_empty(&opt.limits.max_use);
	drop_empty(&opt.limits.keep_free);
	drop_empty(&opt.limits.max_body);
	drop_empty(&opt.limits.max_age);
	drop_empty(&opt.limits.max_record_age);
	drop_empty(&opt.limits.max_records);
	log_init("gpu-agent-store", opt.verbose ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO);
	signal(SIGPIPE, SIG_IGN);
	/* A terminal's Ctrl-C goes to all processes of the agent, but the monitor decides their order. */
	signal(SIGINT, SIG_IGN);
	if (opt.check)
		return start(&s);
	fd_set_cloexec(IPC_FD_MONITOR, true);
	fd_set_cloexec(IPC_FD_FRONT, true);
	s.client_uid = opt.client_uid;
	s.pid = (pid_t)opt.pid;
	s.admin = opt.admin;
	s.observer = opt.observer;
	s.directory = opt.directory;
	return start(&s);
}
