/* SPDX-License-Identifier: MIT */
/*
 * One client, one request at a time: how many round trips per second?
 *
 * Several sockets are measured in turns of a tenth of a second, so that all see the same weather on
 * the machine.  `PATH,64` opens 64 silent connections more before its turns and closes them after.
 * Prints one line per socket: round trips, seconds, p50 and p99 in ns, bytes of a reply.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"

#define REPLY_MAX   65536
#define SAMPLES_MAX (4u << 20)
#define TURN_NS	    UINT64_C(100000000)
#define WARM_UP	    200 /* before each turn */
#define LANES_MAX   8
#define IDLE_MAX    100

struct lane {
	const char *path;
	uint64_t n_idle;
	int fd;
	uint32_t *samples; /* ns */
	size_t n;
	uint64_t busy_ns;
	size_t reply_size;
};

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "ping: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int connect_to(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	str_copy(addr.sun_path, sizeof(addr.sun_path), path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		die(path);
	return fd;
}

static void round_trip(struct lane *l, const char *request, size_t size)
{
	static char reply[REPLY_MAX];
	size_t got = 0;

	if (send(l->fd, request, size, MSG_NOSIGNAL) != (ssize_t)size)
		die("send");
	do {
		ssize_t n = recv(l->fd, reply + got, sizeof(reply) - got, 0);

		if (n <= 0)
			die("recv");
		got += (size_t)n;
	} while (reply[got - 1] != '\n' && got < sizeof(reply));
	l->reply_size = got;
}

static void measure(struct lane *l, const char *request, size_t size)
{
	uint64_t start = clock_now_ns(), now = start, then;

	while (now - start < TURN_NS && l->n < SAMPLES_MAX) {
		then = now;
		round_trip(l, request, size);
		now = clock_now_ns();
		l->samples[l->n++] = (uint32_t)(now - then);
	}
	l->busy_ns += now - start;
}

static void turn(struct lane *l, const char *request, size_t size)
{
	int idle[IDLE_MAX];

	for (uint64_t i = 0; i < l->n_idle; i++)
		idle[i] = connect_to(l->path);
	for (int i = 0; i < WARM_UP; i++)
		round_trip(l, request, size);
	measure(l, request, size);
	for (uint64_t i = 0; i < l->n_idle; i++)
		close(idle[i]);
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static void report(struct lane *l)
{
	qsort(l->samples, l->n, sizeof(*l->samples), compare);
	printf("%zu %.6f %u %u %zu\n", l->n, (double)l->busy_ns / 1e9, l->samples[l->n / 2],
	       l->samples[l->n * 99 / 100], l->reply_size);
}

static void lane_init(struct lane *l, char *arg)
{
	char *comma = strchr(arg, ',');

	if (comma)
		*comma = '\0';
	if (comma && str_to_u64(comma + 1, 0, IDLE_MAX, &l->n_idle) < 0) {
		errno = EINVAL;
		die(comma + 1);
	}
	l->path = arg;
	l->fd = connect_to(arg);
	l->samples = calloc(SAMPLES_MAX, sizeof(*l->samples));
	if (!l->samples)
		die("memory");
}

int main(int argc, char **argv)
{
	static struct lane lanes[LANES_MAX];
	uint64_t seconds = 0;
	char request[256];
	size_t n, size;

	if (argc < 4 || argc > 3 + LANES_MAX || str_to_u64(argv[2], 1, 600, &seconds) < 0) {
		fputs("usage: ping METHOD SECONDS SOCKET[,IDLE_CLIENTS]...\n", stderr);
		return 2;
	}
	size = (size_t)snprintf(request, sizeof(request),
				"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\"}\n", argv[1]);
	n = (size_t)argc - 3;
	for (size_t i = 0; i < n; i++)
		lane_init(&lanes[i], argv[3 + i]);
	for (uint64_t end = clock_deadline_ms(seconds * 1000 * n); clock_left_ms(end);)
		for (size_t i = 0; i < n; i++)
			turn(&lanes[i], request, size);
	for (size_t i = 0; i < n; i++)
		report(&lanes[i]);
	return 0;
}
