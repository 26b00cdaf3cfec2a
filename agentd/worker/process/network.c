/* SPDX-License-Identifier: MIT */
#include "agentd/worker/process/network.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "agentd/ipc/connect.h"
#include "paths.h"

static struct {
	int status;
	struct stat st;
} ours = { .status = -ENOENT };

static int read_namespace(const char *pid, struct stat *ret)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/%s/ns/net", pid);
	return stat(path, ret) < 0 ? -errno : 0;
}

/* A service manager's brokers have its namespace, those that are the monitor's children have ours. */
void network_look(void)
{
	struct stat st;
	bool is_service = stat(RUNSTATEDIR "/gpu-agent/" IPC_CONNECT_SOCKET, &st) == 0 && S_ISSOCK(st.st_mode);

	ours.status = read_namespace(is_service ? "1" : "self", &ours.st);
}

int network_reaches(pid_t pid, bool *ret)
{
	struct stat theirs;
	char number[12];
	int r;

	snprintf(number, sizeof(number), "%d", (int)pid);
	r = ours.status < 0 ? ours.status : read_namespace(number, &theirs);
	if (r == 0)
		*ret = theirs.st_ino == ours.st.st_ino && theirs.st_dev == ours.st.st_dev;
	return r;
}
