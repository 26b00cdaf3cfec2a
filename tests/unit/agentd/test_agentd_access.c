/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agentd/access.h"
#include "testlib.h"

#define STATUS "Name:\tapp\nState:\tS (sleeping)\nTgid:\t42\nPid:\t42\nTracerPid:\t7\n"                     \
	       "Uid:\t1000\t1000\t1000\t1000\nGid:\t5\t6\t7\t8\nNSpid:\t42\t3\nCapPrm:\t00000000000000c0\nVmSize:\t  10 kB\n"

static void status_is_parsed(void)
{
	struct access_target t;

	TEST_EQ_FATAL(access_status_parse(STATUS, strlen(STATUS), &t), 0);
	TEST_EQ(t.pid, 42);
	TEST_EQ(t.ns_pid, 3);
	TEST_EQ(t.tracer_pid, 7);
	TEST_EQ(t.uids[3], 1000);
	TEST_EQ(t.gids[1], 6);
	TEST_EQ(t.permitted, 0xc0);
	TEST_EQ(t.state, 'S');
	TEST_STR(t.comm, "app");
	CU_ASSERT_FALSE(t.kernel_thread);
}

/* Cut anywhere, it is an error or a complete answer, and never read past its end. */
static void truncated_status_is_refused(void)
{
	struct access_target t;

	for (size_t n = 0; n < strlen(STATUS); n++) {
		char *cut = test_tail_dup(STATUS, n);

		if (access_status_parse(cut, n, &t) == 0 && t.uids[0] != 1000)
			TEST_ROW_EQ(n, t.uids[0], 1000);
	}
	TEST_EQ(access_status_parse("Uid:\tx\n", 7, &t), -EBADMSG);
}

static const struct access_target mine = { .pid = 1, .uids = { 1000, 1000, 1000, 1000 },
					   .dumpable = true, .state = 'S' };

static void rule_table(void)
{
	static const struct {
		uid_t peer;
		bool admin, observer;
		uid_t suid;
		bool not_dumpable, kernel_thread;
		char state;
		enum ipc_verdict want;
		enum ipc_right right;
		bool unknown;
	} rows[] = {
		{ 0, true, false, 1000, false, false, 'S', IPC_VERDICT_OK, IPC_RIGHT_CONTROL },
		{ 0, true, false, 1000, true, false, 'S', IPC_VERDICT_OK, IPC_RIGHT_CONTROL },
		{ 7, true, false, 1000, false, false, 'R', IPC_VERDICT_OK, IPC_RIGHT_CONTROL },
		{ 7, false, false, 1000, false, false, 'S', IPC_VERDICT_OTHER_USER, 0 },
		{ 7, false, true, 1000, false, false, 'S', IPC_VERDICT_OK, IPC_RIGHT_READ },
		{ 1000, false, false, 0, false, false, 'S', IPC_VERDICT_OTHER_USER, 0 },
		{ 1000, false, false, 1000, false, false, 'S', IPC_VERDICT_UNKNOWN_PEER, 0, true },
		{ 7, false, true, 1000, false, false, 'S', IPC_VERDICT_UNKNOWN_PEER, 0, true },
		{ 0, true, false, 1000, false, true, 'S', IPC_VERDICT_KERNEL_THREAD, 0 },
		{ 0, true, false, 1000, false, false, 'Z', IPC_VERDICT_NO_PROCESS, 0 },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct access_peer peer = { .pid = getpid(), .uid = rows[i].peer, .admin = rows[i].admin,
					    .observer = rows[i].observer, .pidfd = -1,
					    .known = !rows[i].unknown, .near_user = true,
					    .near_pid = true };
		struct access_target t = mine;
		enum ipc_right right = IPC_RIGHT_NONE;

		t.uids[2] = rows[i].suid;
		t.dumpable = !rows[i].not_dumpable;
		t.kernel_thread = rows[i].kernel_thread;
		t.state = rows[i].state;
		TEST_ROW_EQ(i, access_decide(&peer, &t, &right), rows[i].want);
		TEST_ROW_EQ(i, right, rows[i].right);
	}
}

/* ---- a kernel that says something else about the peer's process ---- */

int __real_getsockopt(int sock, int level, int name, void *value, socklen_t *size);
int __wrap_getsockopt(int sock, int level, int name, void *value, socklen_t *size);
static int peerpidfd_error;
static pid_t cred_pid;

int __wrap_getsockopt(int sock, int level, int name, void *value, socklen_t *size)
{
	int r;

	if (level == SOL_SOCKET && name == 77 /* SO_PEERPIDFD */ && peerpidfd_error) {
		errno = peerpidfd_error;
		return -1;
	}
	r = __real_getsockopt(sock, level, name, value, size);
	if (r == 0 && level == SOL_SOCKET && name == SO_PEERCRED && cred_pid)
		((struct ucred *)value)->pid = cred_pid;
	return r;
}

static const struct access_rules nobody_else = { ACCESS_NO_GROUP, ACCESS_NO_GROUP };

/* A process with these real and effective ids that has connected, and its socket. */
static int connect_with(uid_t real, uid_t uid, pid_t *ret_pid)
{
	char path[] = "/tmp/gpu-agent-access.XXXXXX";
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int listener = socket(AF_UNIX, SOCK_STREAM, 0), sock;

	if (!mkdtemp(path) || chmod(path, 0755) < 0)
		return -1;
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/socket", path);
	if (bind(listener, (struct sockaddr *)&addr, sizeof(addr)) < 0 ||
	    chmod(addr.sun_path, 0666) < 0 || listen(listener, 1) < 0)
		return -1;
	*ret_pid = fork();
	if (*ret_pid == 0) {
		sock = socket(AF_UNIX, SOCK_STREAM, 0);
		if (setresgid(real, uid, uid) < 0 || setresuid(real, uid, uid) < 0 ||
		    prctl(PR_SET_DUMPABLE, 1) < 0 ||
		    connect(sock, (struct sockaddr *)&addr, sizeof(addr)) < 0)
			_exit(1);
		pause();
		_exit(0);
	}
	sock = accept(listener, NULL, NULL);
	close(listener);
	unlink(addr.sun_path);
	rmdir(path);
	return sock;
}

static int connect_as(uid_t uid, pid_t *ret_pid)
{
	return connect_with(uid, uid, ret_pid);
}

static void end_process(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static struct access_peer look_at(int sock)
{
	struct access_peer peer;

	TEST_EQ_FATAL(access_peer_read(sock, &nobody_else, &peer), 0);
	access_peer_look(&peer);
	return peer;
}

/* What is not known is no reason to trust: each answer of SO_PEERPIDFD, for a live peer and a dead one. */
static void nobody_without_a_proof(void)
{
	static const struct {
		int error;
		bool alive_is_known;
	} rows[] = {
		{ 0, true },	   { ENOPROTOOPT, true }, { EINVAL, false }, { ESRCH, false },
		{ ENODATA, false }, { EPERM, false },	   { EMFILE, false },
	};

	if (getuid() != 0)
		return;
	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		for (uid_t uid = 0; uid <= 1000; uid += 1000) {
			struct access_peer peer;
			pid_t child;
			int sock = connect_as(uid, &child);

			peerpidfd_error = rows[i].error;
			peer = look_at(sock);
			TEST_ROW_EQ(i, peer.known, rows[i].alive_is_known);
			TEST_ROW_EQ(i, peer.admin, rows[i].alive_is_known && uid == 0);
			access_peer_deinit(&peer);
			end_process(child);
			peer = look_at(sock);
			TEST_ROW_EQ(i, peer.known, false);
			TEST_ROW_EQ(i, peer.admin, false);
			access_peer_deinit(&peer);
			peerpidfd_error = 0;
			close(sock);
		}
	}
}

/* Without SO_PEERPIDFD the number may be another process's by now. */
static void number_of_somebody_else_is_no_proof(void)
{
	struct access_peer peer;
	pid_t child, other;
	int sock, other_sock;

	if (getuid() != 0)
		return;
	sock = connect_as(1000, &child);
	other_sock = connect_as(1001, &other);
	peerpidfd_error = ENOPROTOOPT;
	cred_pid = other;
	peer = look_at(sock);
	CU_ASSERT_FALSE(peer.known);
	access_peer_deinit(&peer);
	cred_pid = child;
	peer = look_at(sock);
	CU_ASSERT_TRUE(peer.known);
	access_peer_deinit(&peer);
	cred_pid = peerpidfd_error = 0;
	close(sock);
	close(other_sock);
	end_process(child);
	end_process(other);
}

static pid_t start_in_own_user_namespace(uid_t uid)
{
	bool is_ready;
	pid_t child;
	int ready[2];
	char byte;

	if (pipe(ready) < 0)
		return -1;
	child = fork();
	if (child == 0) {
		if (setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0 || prctl(PR_SET_DUMPABLE, 1) < 0 ||
		    unshare(CLONE_NEWUSER) < 0 || write(ready[1], "1", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	close(ready[1]);
	is_ready = read(ready[0], &byte, 1) == 1;
	close(ready[0]);
	return is_ready ? child : -1;
}

/* Without SO_PEERPIDFD, one of the same user may have it, in a container, where no more than the user is the same. */
static void number_reused_in_another_namespace_is_no_proof(void)
{
	struct access_peer peer;
	pid_t child, other;
	int sock;

	if (getuid() != 0)
		return;
	sock = connect_as(1000, &child);
	other = start_in_own_user_namespace(1000);
	TEST_EQ_FATAL(other > 0, true);
	peerpidfd_error = ENOPROTOOPT;
	cred_pid = other;
	peer = look_at(sock);
	CU_ASSERT_FALSE(peer.known);
	access_peer_deinit(&peer);
	cred_pid = peerpidfd_error = 0;
	close(sock);
	end_process(child);
	end_process(other);
}

/* The socket tells effective ids, and the kernel judges a tracer by its real ones. */
static void set_user_id_client_is_no_owner(void)
{
	static const struct {
		uid_t real, effective;
		enum ipc_verdict want;
	} rows[] = {
		{ 1000, 1000, IPC_VERDICT_OK },
		{ 1001, 1000, IPC_VERDICT_OTHER_USER },
		{ 1000, 1001, IPC_VERDICT_OTHER_USER },
	};

	if (getuid() != 0)
		return;
	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		enum ipc_right right = IPC_RIGHT_NONE;
		struct access_peer peer;
		struct access_target t;
		pid_t child, target;
		int sock = connect_with(rows[i].real, rows[i].effective, &child);
		int other = connect_as(1000, &target);

		peer = look_at(sock);
		TEST_EQ(access_target_read(target, &t), 0);
		TEST_ROW_EQ(i, access_decide(&peer, &t, &right), rows[i].want);
		peer.has_other_uid = false;
		peer.has_other_gid = true;
		TEST_ROW_EQ(i, access_decide(&peer, &t, &right),
			    rows[i].effective == 1000 ? IPC_VERDICT_OTHER_GROUP : IPC_VERDICT_OTHER_USER);
		access_peer_deinit(&peer);
		close(sock);
		close(other);
		end_process(child);
		end_process(target);
	}
}

/* The peer's identity comes from the socket; a group it is not in gives nothing. */
static void peer_is_read_from_the_socket(void)
{
	const struct access_rules rules = { ACCESS_NO_GROUP, getgid() };
	struct access_peer peer;
	int pair[2];

	TEST_EQ_FATAL(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	TEST_EQ_FATAL(access_peer_read(pair[0], &rules, &peer), 0);
	TEST_EQ(peer.uid, getuid());
	TEST_EQ(peer.pid, getpid());
	TEST_EQ(peer.admin, getuid() == 0);
	CU_ASSERT_TRUE(peer.observer);
	CU_ASSERT_FALSE(peer.known);
	access_peer_look(&peer);
	CU_ASSERT_TRUE(peer.known && peer.near_user && peer.near_pid);
	access_peer_deinit(&peer);
	close(pair[0]);
	close(pair[1]);
	CU_ASSERT_TRUE(access_peer_read(0, &rules, &peer) < 0);
}

/* Starts a process that tells when it is as wished, and waits to be killed. */
static pid_t start_process(bool dumpable)
{
	int ready[2];
	char byte;
	pid_t child;

	if (pipe(ready) < 0)
		return -1;
	child = fork();
	if (child == 0) {
		/* For root the owner of the files does not tell. */
		if (getuid() == 0 && setuid(65534) < 0)
			_exit(1);
		prctl(PR_SET_DUMPABLE, dumpable);
		if (write(ready[1], "1", 1) == 1)
			pause();
		_exit(0);
	}
	close(ready[1]);
	TEST_EQ(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return child;
}

/* Facts of real processes: alive, zombie, gone, not dumpable, a kernel thread. */
static void facts_of_real_processes(void)
{
	struct access_target t;
	pid_t child = start_process(true);

	TEST_EQ(access_target_read(child, &t), 0);
	CU_ASSERT_TRUE(t.dumpable);
	TEST_EQ(t.uids[0], getuid() ? getuid() : 65534);
	kill(child, SIGKILL);
	waitid(P_PID, (id_t)child, &(siginfo_t){ 0 }, WEXITED | WNOWAIT);
	TEST_EQ(access_target_read(child, &t), 0);
	TEST_EQ(t.state, 'Z');
	waitpid(child, NULL, 0);
	TEST_EQ(access_target_read(child, &t), -ESRCH);
	child = start_process(false);
	TEST_EQ(access_target_read(child, &t), 0);
	CU_ASSERT_FALSE(t.dumpable);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	if (access_target_read(2, &t) == 0 && !strcmp(t.comm, "kthreadd"))
		CU_ASSERT_TRUE(t.kernel_thread);
}

TEST_SUITE(agentd_access, TEST(status_is_parsed), TEST(truncated_status_is_refused),
	   TEST(rule_table), TEST(nobody_without_a_proof),
	   TEST(number_of_somebody_else_is_no_proof), TEST(number_reused_in_another_namespace_is_no_proof),
	   TEST(set_user_id_client_is_no_owner),
	   TEST(peer_is_read_from_the_socket), TEST(facts_of_real_processes));
