/* SPDX-License-Identifier: MIT */
/*
 * For test_pairs.py: the agent's rule, with the rights of the monitor.
 *
 *   access_judge NAME
 *
 * listens on that abstract socket and reads lines:
 *
 *   accept              answers with the number of the client and its pid
 *   judge CLIENT PID    answers with the verdict (enum ipc_verdict), and whether the client's user and pid
 *                       namespaces are ours
 *   forget              closes all clients
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agentd/access.h"
#include "agentd/privileges.h"

#define CLIENTS_MAX 512

static const struct access_rules no_groups = { ACCESS_NO_GROUP, ACCESS_NO_GROUP };
static int clients[CLIENTS_MAX];
static int n_clients;

static int listen_at(const char *name)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strncpy(addr.sun_path + 1, name, sizeof(addr.sun_path) - 2);
	if (bind(fd, (struct sockaddr *)&addr,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name))) < 0 ||
	    listen(fd, CLIENTS_MAX) < 0)
		exit(1);
	return fd;
}

static void accept_client(int listener)
{
	struct ucred cred;
	socklen_t size = sizeof(cred);
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0 || n_clients == CLIENTS_MAX ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) < 0)
		exit(1);
	clients[n_clients] = fd;
	printf("%d %d\n", n_clients++, (int)cred.pid);
}

static void forget(void)
{
	while (n_clients)
		close(clients[--n_clients]);
	puts("0");
}

/* In the steps of agentd/judge/candidates.c: the facts are read again when the kernel has answered. */
static enum ipc_verdict decide(const struct access_peer *peer, pid_t pid)
{
	enum ipc_right rights = IPC_RIGHT_NONE;
	struct oracle oracle = { 0 };
	struct access_target t;
	enum ipc_verdict v;
	int status, r;

	if (access_target_read(pid, &t) < 0)
		return IPC_VERDICT_NO_PROCESS;
	v = access_judge(peer, &t, ACCESS_NOT_ASKED, &rights);
	if (v != ACCESS_VERDICT_ASK)
		return v;
	r = access_ask(peer, &t, &oracle);
	if (r == 0)
		r = waitpid(oracle.child, &status, 0) == oracle.child ? oracle_answer(status) : -ECHILD;
	if (access_target_read(pid, &t) < 0)
		return IPC_VERDICT_NO_PROCESS;
	return access_judge(peer, &t, r, &rights);
}

static void judge(int client, pid_t pid)
{
	struct access_peer peer;

	if (client < 0 || client >= n_clients || access_peer_read(clients[client], &no_groups, &peer) < 0)
		exit(1);
	access_peer_look(&peer);
	printf("%d %d %d\n", (int)decide(&peer, pid), peer.near_user, peer.near_pid);
	access_peer_deinit(&peer);
}

int main(int argc, char **argv)
{
	char line[64];
	int listener, client, pid;

	if (argc != 2 || privileges_keep_attach() < 0)
		return 1;
	listener = listen_at(argv[1]);
	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ready");
	while (fgets(line, sizeof(line), stdin)) {
		if (strcmp(line, "accept\n") == 0)
			accept_client(listener);
		else if (strcmp(line, "forget\n") == 0)
			forget();
		else if (sscanf(line, "judge %d %d", &client, &pid) == 2)
			judge(client, pid);
		else
			return 1;
	}
	return 0;
}
