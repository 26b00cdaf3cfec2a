/* SPDX-License-Identifier: MIT */
#include "fuzzlib.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/out.h"
#include "dap/dap.h"
#include "protocol/rpc_client.h"

/* What the agent says of a process with two groups; other methods fail. */
static const struct {
	const char *method, *result;
} results[] = {
	{ "session.attach",
	  "{\"session\":\"s1\",\"pid\":1,\"comm\":\"c\",\"uid\":0,\"vendor\":\"amd\",\"join"
	  "ed\":false,\"control\":true,\"runtime\":{\"state\":\"enabled\"}}" },
	{ "gpu.snapshot",
	  "{\"schema\":\"gpu-agent.snapshot/1\",\"source\":{\"kind\":\"live\",\"host\":\"h"
	  "\",\"agent\":\"0\"},\"time_us\":1,\"process\":{\"pid\":1,\"uid\":0,\"comm\":\"c"
	  "\",\"vendor\":\"amd\",\"gpu_ids\":[7],\"queues\":2,\"debuggable\":true},\"interf"
	  "ace_version\":\"1\",\"runtime\":{\"state\":\"enabled\"},\"devices\":[{\"gpu_id\""
	  ":7,\"name\":\"n\",\"arch\":\"gfx90a\",\"node\":1,\"pci\":\"0000:03:00.0\",\"vend"
	  "or_id\":4098,\"units\":1,\"max_waves\":8,\"watchpoints\":4,\"debuggable\":true,"
	  "\"exceptions\":[]}],\"queues\":[],\"wave_count\":4,\"groups\":[{\"gpu_id\":7,\"k"
	  "ernel\":{\"address\":\"0x7000\",\"name\":\"spin\"},\"frames\":[{\"function\":\"i"
	  "nner\",\"file\":\"/src/spin.cl\",\"line\":7,\"column\":3,\"inlined\":true},{\"fu"
	  "nction\":\"spin\",\"file\":\"/src/spin.cl\",\"line\":7,\"column\":3,\"inlined\":"
	  "false}],\"pc\":\"0x1010\",\"pcs\":1,\"state\":\"stopped\",\"reasons\":[\"memory_"
	  "violation\"],\"waves\":2,\"lanes_min\":64,\"lanes_median\":64,\"lanes_max\":64,"
	  "\"workgroups\":1,\"first_workgroup\":[0,0,0],\"last_workgroup\":[0,0,0],\"repres"
	  "entative\":{\"queue_id\":1,\"unit\":0,\"index\":0,\"dispatch\":0,\"workgroup\":["
	  "0,0,0],\"wave_in_group\":0}},{\"gpu_id\":7,\"kernel\":{\"address\":\"0x7000\",\""
	  "name\":\"spin\"},\"frames\":[],\"pc\":\"0x2000\",\"pcs\":1,\"state\":\"halted\","
	  "\"reasons\":[],\"waves\":2,\"lanes_min\":64,\"lanes_median\":64,\"lanes_max\":64"
	  ",\"workgroups\":1,\"first_workgroup\":[0,0,0],\"last_workgroup\":[0,0,0],\"repre"
	  "sentative\":{\"queue_id\":0,\"unit\":0,\"index\":0,\"dispatch\":0,\"workgroup\":"
	  "[0,0,0],\"wave_in_group\":0}}],\"waves\":[{\"ref\":{\"queue_id\":1,\"unit\":0,\""
	  "index\":0,\"dispatch\":0,\"workgroup\":[0,0,0],\"wave_in_group\":0},\"gpu_id\":7"
	  ",\"pc\":\"0x1010\",\"exec\":\"0xff\",\"lanes\":8,\"width\":64,\"state\":\"halted"
	  "\",\"reasons\":[],\"trap_id\":0,\"group\":0}],\"stopped_us\":1,\"budget_exceeded"
	  "\":false,\"complete\":true,\"missing\":[\"some\"]}" },
	{ "wave.registers",
	  "{\"registers\":{\"wave\":{\"ref\":{\"queue_id\":1,\"unit\":0,\"index\":0,\"dispa"
	  "tch\":0,\"workgroup\":[0,0,0],\"wave_in_group\":0},\"gpu_id\":7,\"pc\":\"0x1010"
	  "\",\"exec\":\"0xff\",\"lanes\":8,\"width\":64,\"state\":\"halted\",\"reasons\":["
	  "],\"trap_id\":0,\"group\":0},\"special\":[{\"name\":\"pc\",\"bits\":64,\"value\""
	  ":\"0x1010\"}],\"scalar\":[{\"name\":\"s0\",\"bits\":32,\"value\":\"0x5\"}],\"vec"
	  "tor\":[{\"name\":\"v0\",\"lanes\":[\"0x1\",\"0x2\"]},{\"name\":\"v1\",\"lanes\":"
	  "[\"0x1\",\"0x2\"]}],\"accumulator\":[{\"name\":\"a0\",\"lanes\":[\"0x1\",\"0x2\""
	  "]}],\"trap\":[],\"vector_count\":40,\"accumulator_count\":1,\"lds_bytes\":2048,"
	  "\"scratch\":false,\"work_items\":[{\"lane\":0,\"in_group\":[0,0,0],\"global\":[0"
	  ",0,0]}]},\"stopped_us\":1}" },
	{ "memory.read",
	  "{\"address\":\"0x1000\",\"data\":\"AACBvwAAgb8AAIG/AACBvw==\",\"size\":16}" },
	{ "code.locate",
	  "{\"places\":[{\"address\":\"0x1000\",\"symbol\":{\"name\":\"spin\",\"raw\":\"spi"
	  "n\",\"address\":\"0x1000\",\"size\":72},\"frames\":[{\"function\":\"spin\",\"fil"
	  "e\":\"/src/spin.cl\",\"line\":7,\"column\":3,\"inlined\":false}]}],\"complete\":"
	  "true,\"missing\":[]}" },
	{ "code.source",
	  "{\"bytes\":4,\"digest\":\"0x7\",\"text\":\"text\",\"complete\":true,\"missing\":[]}" },
	{ "gpu.suspend",
	  "{\"queues\":[],\"suspended\":2,\"lease_ms\":5000}" },
	{ "gpu.resume",
	  "{\"queues\":[],\"resumed\":2,\"stopped_us\":9}" },
	{ "exception.subscribe",
	  "{\"exceptions\":[]}" },
	{ "watchpoint.set",
	  "{\"watchpoints\":[]}" },
	{ "watchpoint.clear",
	  "{\"cleared\":1}" },
	{ "watchpoint.list",
	  "{\"watchpoints\":[]}" },
};

static const char *result_of(const char *line)
{
	for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++) {
		char quoted[64];

		snprintf(quoted, sizeof(quoted), "\"%s\"", results[i].method);
		if (strstr(line, quoted))
			return results[i].result;
	}
	return NULL;
}

static void answer(int fd, const char *line, unsigned id)
{
	const char *result = result_of(line);
	auto_out struct out o;

	out_init(&o, 0);
	out_fmt(&o, "{\"jsonrpc\":\"2.0\",\"id\":%u,\"%s\":%s}\n", id, result ? "result" : "error",
		result ? result : "{\"code\":-32000,\"message\":\"no\"}");
	/* An adapter that has left reads no more. */
	(void)fd_write_all(fd, o.data, o.size);
}

static void *agent(void *arg)
{
	FILE *f = fdopen((int)(intptr_t)arg, "r");
	char *line = NULL;
	size_t size = 0;
	unsigned id = 0;

	if (!f)
		abort();
	while (getline(&line, &size, f) > 0)
		answer(fileno(f), line, ++id);
	free(line);
	fclose(f);
	return NULL;
}

static pthread_t agent_thread;
static int n_agents;

static int connect_fake(const char *socket, struct rpc_client **ret, struct agent_err *err)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		abort();
	if (n_agents++)
		pthread_join(agent_thread, NULL);
	if (pthread_create(&agent_thread, NULL, agent, (void *)(intptr_t)fds[1]) != 0)
		abort();
	return rpc_client_open_fd(fds[0], ret, err);
}

/* Behind the input: a request that is answered in its turn, when all others have been. */
#define LAST_SEQ "987654321"
static const char last[] = "{\"seq\":" LAST_SEQ ",\"type\":\"request\",\"command\":\"evaluate\","
			   "\"arguments\":{\"expression\":\"x\"}}";
#define PATIENCE_MS 5000
#define BUDGET_MS   45000

struct editor {
	int fd;
	const uint8_t *data;
	size_t size;
};

static bool send_message(int fd, const void *body, size_t size)
{
	char head[40];
	int n = snprintf(head, sizeof(head), "Content-Length: %zu\r\n\r\n", size);

	return fd_write_all(fd, head, (size_t)n) == 0 && fd_write_all(fd, body, size) == 0;
}

/* One message a line: what frames may be is for fuzz_rpc_wire. */
static void send_lines(const struct editor *e)
{
	size_t at = 0;

	while (at < e->size) {
		const uint8_t *end = memchr(e->data + at, '\n', e->size - at);
		size_t n = end ? (size_t)(end - e->data) - at : e->size - at;

		if (!send_message(e->fd, e->data + at, n))
			return;
		at += n + 1;
	}
	(void)send_message(e->fd, last, sizeof(last) - 1);
}

static void *editor(void *arg)
{
	struct editor *e = arg;
	char buf[65536];
	size_t kept = 0;
	ssize_t n = 1;

	send_lines(e);
	while (n > 0 && !memmem(buf, kept, LAST_SEQ, sizeof(LAST_SEQ) - 1)) {
		struct pollfd p = { .fd = e->fd, .events = POLLIN };

		if (kept > sizeof(buf) / 2) {
			memmove(buf, buf + kept - sizeof(LAST_SEQ), sizeof(LAST_SEQ));
			kept = sizeof(LAST_SEQ);
		}
		n = poll(&p, 1, PATIENCE_MS) > 0 ? read(e->fd, buf + kept, sizeof(buf) - kept) : 0;
		kept += n > 0 ? (size_t)n : 0;
	}
	shutdown(e->fd, SHUT_WR);
	while (read(e->fd, buf, sizeof(buf)) > 0)
		continue;
	return NULL;
}

/* Whatever an editor sends: the adapter ends when its input does, and says why if it gave up. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dap_options o = { .socket = "x", .timeout_ms = 2000, .connect = connect_fake };
	struct editor e = { .data = data, .size = size };
	struct agent_err err = { 0 };
	static uint64_t end_ns;
	pthread_t thread;
	int fds[2];

	/* Each has dozens of round trips between threads: on a busy machine, not all that are meant. */
	if (!end_ns)
		end_ns = clock_deadline_ms(BUDGET_MS);
	if (!clock_left_ms(end_ns))
		return 0;
	signal(SIGPIPE, SIG_IGN); /* of either end, when the other has left */
	setenv("GPU_AGENT_LLVM", "/nonexistent", 1); /* ours is tried, not that library */
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		abort();
	e.fd = fds[1];
	if (pthread_create(&thread, NULL, editor, &e) != 0)
		abort();
	n_agents = 0;
	o.in_fd = o.out_fd = fds[0];
	if (dap_run(&o, &err) < 0 && !err.code)
		abort();
	close(fds[0]);
	pthread_join(thread, NULL);
	close(fds[1]);
	if (n_agents)
		pthread_join(agent_thread, NULL);
	return 0;
}
