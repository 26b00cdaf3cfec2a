/* SPDX-License-Identifier: MIT */
#include "fuzzlib.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dap/dap.h"
#include "protocol/rpc_client.h"

/* An agent that answers every line with the next of a few texts. */
static const char *const answers[] = {
	("{\"jsonrpc\":\"2.0\",\"id\":%u,\"result\":{\"session\":\"s1\",\"pid\":1,\"comm\":\"c\",\"uid\":0,"
	"\"vendor\":\"amd\",\"joined\":false,\"control\":true,\"runtime\":{\"state\":\"enabled\"}}}\n"),
	"{\"jsonrpc\":\"2.0\",\"id\":%u,\"error\":{\"code\":-32000,\"message\":\"no\"}}\n",
	"{\"jsonrpc\":\"2.0\",\"id\":%u,\"result\":{}}\n",
};

static void *agent(void *arg)
{
	int fd = (int)(intptr_t)arg;
	unsigned id = 0;
	char buf[4096], text[512];
	ssize_t n;

	while ((n = read(fd, buf, sizeof(buf))) > 0)
		for (ssize_t i = 0; i < n; i++) {
			if (buf[i] != '\n')
				continue;
			id++;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
			snprintf(text, sizeof(text), answers[id == 1 ? 0 : 1 + id % 2], id);
#pragma GCC diagnostic pop
			if (send(fd, text, strlen(text), MSG_NOSIGNAL) < 0)
				break;
		}
	close(fd);
	return NULL;
}

static pthread_t thread;
static int n_threads;

static int connect_fake(const char *socket, struct rpc_client **ret, struct agent_err *err)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		abort();
	if (pthread_create(&thread, NULL, agent, (void *)(intptr_t)fds[1]) != 0)
		abort();
	n_threads++;
	return rpc_client_open_fd(fds[0], ret, err);
}

/* Whatever an editor sends: the adapter ends when its input does, and says why if it gave up. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dap_options o = { .socket = "x", .timeout_ms = 2000, .connect = connect_fake };
	struct agent_err err = { 0 };
	FILE *in = tmpfile(), *out = fopen("/dev/null", "w");

	if (!in || !out)
		abort();
	if (size && fwrite(data, 1, size, in) != size)
		abort();
	rewind(in);
	n_threads = 0;
	o.in_fd = fileno(in);
	o.out_fd = fileno(out);
	if (dap_run(&o, &err) < 0 && !err.code)
		abort();
	if (n_threads)
		pthread_join(thread, NULL);
	fclose(in);
	fclose(out);
	return 0;
}
