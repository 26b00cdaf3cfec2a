/* SPDX-License-Identifier: MIT */
/*
 * For test_tracer.py: a worker that has fallen, and has nothing left but the socket of its tracer.
 *
 *   tracer_probe TRACER PID UID START DUMPABLE OTHER
 *
 * Starts a tracer for PID and says on each line what one attempt came to, as a negative errno, 0, or
 * `ended` when the tracer has gone.  Waits for a line on stdin before it looks at the process again.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agentd/child.h"
#include "agentd/ipc/worker_tracer.h"
#include "base/fd.h"
#include "cudbgshim_target.h"

static const char *program;
static struct ipc_tracer_target target;
static int sock = -1;
static struct ipc_tracer_answer answer;

static void start(void)
{
	static const int to[] = { IPC_FD_TRACER_WORKER, IPC_FD_TRACER_PROC, IPC_FD_TRACER_PIDFD, IPC_FD_TRACER_MAPS };
	const char *argv[] = { program, NULL };
	char path[64];
	int pair[2], from[4];

	if (sock >= 0)
		close(sock);
	if (fd_socketpair(0, pair) < 0)
		exit(1);
	snprintf(path, sizeof(path), "/proc/%d", target.pid);
	from[0] = pair[1];
	from[1] = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	from[2] = (int)syscall(SYS_pidfd_open, target.pid, 0);
	snprintf(path, sizeof(path), "/proc/%d/maps", target.pid);
	from[3] = open(path, O_RDONLY | O_CLOEXEC);
	if (fork() == 0) {
		child_place_fds(from, to, 4);
		child_exec(program, argv, 0);
	}
	for (int i = 0; i < 4; i++)
		close(from[i]);
	sock = pair[0];
	fd_send(sock, &target, sizeof(target), NULL, 0);
}

static int send_bytes(const void *data, size_t size)
{
	static uint8_t buf[64 + IPC_TRACER_BLOCK_MAX];
	ssize_t n = send(sock, data, size, MSG_NOSIGNAL);

	if (n >= 0)
		n = recv(sock, buf, sizeof(buf), 0);
	if (n < (ssize_t)sizeof(answer))
		return 1;
	memcpy(&answer, buf, sizeof(answer));
	return answer.result;
}

static int try(const char *name, struct ipc_tracer_call c)
{
	int r = send_bytes(&c, sizeof(c));

	if (r == 1)
		printf("%s ended\n", name);
	else
		printf("%s %d\n", name, r);
	return r;
}

/* Until it stands still. */
static void await_stop(int tid)
{
	const struct ipc_tracer_call look = { .verb = IPC_TRACER_LOOK, .tid = tid };

	for (int i = 0; i < 2000 && send_bytes(&look, sizeof(look)) == 0 && answer.stop == CUDBGSHIM_STOP_NONE; i++)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

#define CALL(v, ...) ((struct ipc_tracer_call){ .verb = (v), __VA_ARGS__ })

static void try_protocol(int pid, int other)
{
	uint8_t big[65] = { 0 };

	start();
	try("get_before_seize", CALL(IPC_TRACER_GET, .tid = pid, .size = 4096));
	try("interrupt_before_seize", CALL(IPC_TRACER_INTERRUPT, .tid = pid));
	try("other_process", CALL(IPC_TRACER_SEIZE, .tid = other));
	try("seize", CALL(IPC_TRACER_SEIZE, .tid = pid));
	try("get_running", CALL(IPC_TRACER_GET, .tid = pid, .size = 4096));
	try("descriptor_while_held", CALL(IPC_TRACER_DESCRIPTOR, .number = 0));
	try("interrupt", CALL(IPC_TRACER_INTERRUPT, .tid = pid));
	await_stop(pid);
	try("get", CALL(IPC_TRACER_GET, .tid = pid, .size = 4096));
	try("set_signal_part", CALL(IPC_TRACER_SET, .tid = pid, .what = CUDBGSHIM_PART_SIGNAL));
	try("kill_by_go", CALL(IPC_TRACER_GO, .tid = pid, .number = 9));
	try("after_that", CALL(IPC_TRACER_LOOK, .tid = pid));
	start();
	try("unknown_verb", CALL(0x7ff));
	try("after_unknown_verb", CALL(IPC_TRACER_LOOK, .tid = pid));
	start();
	try("large_block", CALL(IPC_TRACER_GET, .tid = pid, .size = 1u << 30));
	start();
	printf("odd_size %s\n", send_bytes(big, sizeof(big)) == 1 ? "ended" : "0");
	start();
	printf("short_message %s\n", send_bytes(big, 4) == 1 ? "ended" : "0");
	target.start_ticks++;
	start();
	try("other_start_time", CALL(IPC_TRACER_LOOK, .tid = pid));
	target.start_ticks--;
	target.uids[2]++;
	start();
	try("other_user", CALL(IPC_TRACER_LOOK, .tid = pid));
	target.uids[2]--;
}

static void try_exec(int pid)
{
	char line[8];

	start();
	try("seize_for_exec", CALL(IPC_TRACER_SEIZE, .tid = pid));
	if (!fgets(line, sizeof(line), stdin))
		exit(1);
	try("look_after_exec", CALL(IPC_TRACER_GET, .tid = pid, .size = 4096));
	printf("stop_after_exec %u\n", answer.stop);
	try("get_after_exec", CALL(IPC_TRACER_GET, .tid = pid, .size = 4096));
	start();
	try("start_after_exec", CALL(IPC_TRACER_SEIZE, .tid = pid));
}

int main(int argc, char **argv)
{
	if (argc != 7)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	program = argv[1];
	target = (struct ipc_tracer_target){ .verb = IPC_TRACER_TARGET, .pid = atoi(argv[2]),
					     .start_ticks = strtoull(argv[4], NULL, 10),
					     .dumpable = (uint32_t)atoi(argv[5]) };
	for (int i = 0; i < 4; i++)
		target.uids[i] = (uint32_t)atoi(argv[3]);
	try_protocol(target.pid, atoi(argv[6]));
	try_exec(target.pid);
	return 0;
}
