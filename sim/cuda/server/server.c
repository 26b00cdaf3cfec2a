/* SPDX-License-Identifier: MIT */
/*
 * The process behind the libraries: one thread that polls all connections.  An answer waits while
 * the debugger owes an acknowledgement, or while the script delays it.
 */
#include "server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"

#define CONNECTIONS_MAX 256
#define TICK_MS         2
#define READ_SIZE       65536
#define SEND_BUFFER     (4 << 20)           /* One getDeviceInfo in one go. */
#define BACKLOG_MAX     ((size_t)256 << 20) /* Bytes that a reader may leave waiting. */

/* A connection; its role is known after the hello. */
struct connection {
	int fd, pid_fd;
	int pid;
	uint32_t role; /* 0: the hello was not read yet. */
	uint32_t release;
	struct sim_process *process;
	uint8_t *in;
	size_t n_in, in_capacity;
	struct out out;
	size_t sent;
	bool held;         /* APP: the answer waits for an acknowledgement. */
	bool silent;       /* DEBUGGER: a scripted hang. */
	uint64_t reply_at; /* End of a scripted delay; 0: none. */
	bool dead;         /* It is closed when the loop comes by. */
};

static struct {
	int listener;
	struct sim sim;
	struct connection *list[CONNECTIONS_MAX];
	size_t n;
	char path[108];
} server = { .listener = -1 };

/* ---- sending ---- */

/* Queue a frame. */
static void frame_put(struct connection *c, uint32_t code, const void *data, size_t size)
{
	struct wire_head head = { (uint32_t)(sizeof(head) + size), code };

	out_bytes(&c->out, &head, sizeof(head));
	out_bytes(&c->out, data, size);
}

/* Whether there is something to send, and nothing holds it back. */
static bool may_send(const struct connection *c)
{
	return c->out.size > c->sent && !c->held && !c->silent && !c->reply_at;
}

/* Send as much as the reader takes. */
static void flush(struct connection *c)
{
	while (may_send(c)) {
		ssize_t n = send(c->fd, c->out.data + c->sent, c->out.size - c->sent,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0) {
			c->dead |= errno != EAGAIN && errno != EINTR;
			return;
		}
		c->sent += (size_t)n;
	}
	if (c->sent == c->out.size) {
		out_reset(&c->out);
		c->sent = 0;
	}
}

/* ---- what the core asks for ---- */

/* Find the newest connection of a process that has that role. */
static struct connection *connection_of(const struct sim_process *p, uint32_t role)
{
	for (size_t i = server.n; i-- > 0;)
		if (server.list[i]->process == p && server.list[i]->role == role &&
		    !server.list[i]->dead)
			return server.list[i];
	return NULL;
}

static void os_notify(struct sim_process *p, uint32_t tid, uint32_t timeout)
{
	struct connection *c = connection_of(p, WIRE_NOTIFY);
	const uint32_t words[] = { tid, timeout };

	if (!c)
		return;
	frame_put(c, 0, words, sizeof(words));
	flush(c);
}

static void os_ask_engine(struct sim_process *p, enum wire_ask ask, uint32_t initialized,
			  uint32_t resume)
{
	struct connection *c = connection_of(p, WIRE_ENGINE);
	const uint32_t words[] = { initialized, resume };

	if (!c)
		return;
	frame_put(c, ask, words, ask == WIRE_ASK_SET ? sizeof(words) : 0);
	flush(c);
}

/* The program's calls that waited for an acknowledgement return. */
static void os_release_app(struct sim_process *p)
{
	for (size_t i = 0; i < server.n; i++) {
		struct connection *c = server.list[i];

		if (c->process != p || c->role != WIRE_APP)
			continue;
		c->held = false;
		flush(c);
	}
}

static void os_kill_target(struct sim_process *p)
{
	kill(p->pid, SIGKILL);
}

static const struct sim_os os = { os_notify, os_ask_engine, os_release_app, os_kill_target,
				  clock_now_ns };

/* ---- processes ---- */

/*
 * Find or make the process of a connection.  The first connection makes it: of the program's
 * driver, or of an engine inside the vendor's driver.
 */
static struct sim_process *process_get(struct connection *c)
{
	struct sim_process *p = sim_process_find(&server.sim, c->pid);

	if (!p)
		p = sim_process_create(&server.sim, c->pid);
	if (!p)
		fprintf(stderr, "cudasim: the script fails for process %d\n", c->pid);
	c->pid_fd = (int)syscall(SYS_pidfd_open, c->pid, 0);
	return p;
}

/* A process has ended.  Debuggers keep their connection and hear that communication failed. */
static void process_gone(struct sim_process *p)
{
	os_notify(p, CUDBGABI_NO_TID, 0);
	for (size_t i = 0; i < server.n; i++)
		if (server.list[i]->process == p) {
			server.list[i]->process = NULL;
			server.list[i]->dead |= server.list[i]->role == WIRE_APP ||
						server.list[i]->role == WIRE_ENGINE;
		}
	sim_process_destroy(p);
}

/* ---- requests ---- */

/* The process that a line is for; for a CONTROL connection, "to PID" names it. */
static struct sim_process *command_target(struct connection *c, const char **line)
{
	struct sim_process *p = c->process;
	char *end;
	long pid;

	if (c->role != WIRE_CONTROL)
		return p;
	if (!str_starts_with(*line, "to "))
		return server.sim.processes;
	pid = strtol(*line + 3, &end, 10);
	if (*end != ' ')
		return NULL;
	*line = end + 1;
	return sim_process_find(&server.sim, (int)pid);
}

/* Answer a line of text.  A driver's request also carries its cudbgIpcFlag, in the code. */
static void text_request(struct connection *c, uint32_t code, const char *data, size_t size)
{
	size_t line_size = strnlen(data, size) + 1;
	const char *line = data;
	struct sim_process *p;
	auto_out struct out ret = { 0 };
	int r;

	out_init(&ret, 0);
	p = command_target(c, &line);
	if (c->role == WIRE_CONTROL && !strcmp(line, "state")) {
		state_json(&server.sim, &ret);
		r = 0;
	} else if (!p) {
		r = -ESRCH;
	} else {
		if (c->role == WIRE_APP)
			p->ipc_flag = code != 0;
		r = command_run(p, line, line_size < size ? data + line_size : NULL,
				line_size < size ? size - line_size : 0, &ret);
	}
	frame_put(c, (uint32_t)-r, ret.data, ret.size);
	c->held = c->role == WIRE_APP && p && p->owes_ack && p->phase == PHASE_ATTACHED;
	flush(c);
}

/* Let the engine in the debuggee end, as if it had crashed. */
static void engine_kill(struct sim_process *p)
{
	struct connection *c = connection_of(p, WIRE_ENGINE);

	if (c) {
		frame_put(c, WIRE_ASK_QUIT, NULL, 0);
		flush(c);
	}
	p->phase = PHASE_NONE;
}

/* Answer a debugger call, and do what the faults of the script want done besides. */
static void debugger_request(struct connection *c, uint32_t slot, const uint8_t *data, size_t size)
{
	struct sim_process *p = c->process;
	struct slot_request q;
	struct call_fate fate;
	auto_out struct out ret = { 0 };
	uint32_t result = CUDBGABI_ERROR_COMMUNICATION_FAILURE;

	if (!p) {
		frame_put(c, result, NULL, 0);
		flush(c);
		return;
	}
	if (slot_request_decode(slot, data, size, &q)) {
		c->dead = true;
		return;
	}
	out_init(&ret, WIRE_FRAME_MAX);
	result = call_answer(p, &q, &ret, &fate);
	frame_put(c, result, ret.data, ret.size);
	c->silent |= fate.hang;
	if (fate.delay_ms)
		c->reply_at = clock_deadline_ms(fate.delay_ms);
	if (fate.kill_target)
		os_kill_target(p);
	if (fate.kill_engine) {
		engine_kill(p);
		c->dead = true;
	}
	flush(c);
}

/* An engine came up; one of an earlier session is closed. */
static void engine_hello(struct connection *c, const struct wire_hello *h)
{
	struct connection *old;
	uint32_t resume, result;

	c->process = process_get(c);
	if (!c->process) {
		c->dead = true;
		return;
	}
	result = session_engine(c->process, h->label, h->session, h->word, &resume);
	old = connection_of(c->process, WIRE_ENGINE);
	c->role = WIRE_ENGINE;
	if (old && !result)
		old->dead = true;
	frame_put(c, result, &resume, sizeof(resume));
	if (c->process->script.attach_delay_ms)
		c->reply_at = clock_deadline_ms(c->process->script.attach_delay_ms);
	if (c->process->script.attach_kill)
		os_kill_target(c->process);
	flush(c);
}

/* Learn what is at the other end; for a debugger, which session it means. */
static void hello(struct connection *c, const struct wire_hello *h)
{
	if (h->magic != WIRE_MAGIC || h->role < WIRE_APP || h->role > WIRE_NOTIFY) {
		c->dead = true;
		return;
	}
	if (h->role == WIRE_ENGINE) {
		engine_hello(c, h);
		return;
	}
	c->role = h->role;
	if (c->role == WIRE_APP) {
		c->process = process_get(c);
		c->dead = !c->process;
	} else if (c->role != WIRE_CONTROL) {
		c->process = sim_process_find_session(&server.sim, h->label, h->session);
		if (c->process && c->role == WIRE_DEBUGGER)
			c->process->release = h->word;
	}
}

static void engine_answer(struct connection *c, const uint8_t *data, size_t size)
{
	uint32_t flag;

	if (!c->process || size != sizeof(flag))
		return;
	memcpy(&flag, data, sizeof(flag));
	session_engine_answer(c->process, flag != 0);
}

/* Handle a frame as the role wants it. */
static void request(struct connection *c, uint32_t code, const uint8_t *data, size_t size)
{
	switch (c->role) {
	case WIRE_APP:
	case WIRE_CONTROL:
		text_request(c, code, (const char *)data, size);
		break;
	case WIRE_ENGINE:
		engine_answer(c, data, size);
		break;
	case WIRE_DEBUGGER:
		debugger_request(c, code, data, size);
		break;
	default:
		c->dead = true;
	}
}

/* ---- receiving ---- */

/* Handle one message.  @return the bytes that it used, or 0 if it is not complete. */
static size_t message_take(struct connection *c, const uint8_t *data, size_t size)
{
	struct wire_hello h;
	struct wire_head head;

	if (!c->role) {
		if (size < sizeof(h))
			return 0;
		memcpy(&h, data, sizeof(h));
		hello(c, &h);
		return sizeof(h);
	}
	if (size < sizeof(head))
		return 0;
	memcpy(&head, data, sizeof(head));
	if (head.size < sizeof(head) || head.size > WIRE_FRAME_MAX) {
		c->dead = true;
		return 0;
	}
	if (size < head.size)
		return 0;
	request(c, head.code, data + sizeof(head), head.size - sizeof(head));
	return head.size;
}

/* Handle all messages that are complete, and keep the rest. */
static void messages_take(struct connection *c)
{
	size_t at = 0, n;

	while (!c->dead && (n = message_take(c, c->in + at, c->n_in - at)))
		at += n;
	if (at) {
		memmove(c->in, c->in + at, c->n_in - at);
		c->n_in -= at;
	}
}

/* Read once; the room doubles with the largest message. */
static void receive(struct connection *c)
{
	ssize_t n;

	if (c->in_capacity - c->n_in < READ_SIZE) {
		size_t capacity = c->in_capacity ? c->in_capacity * 2 : 2 * READ_SIZE;
		uint8_t *in = realloc(c->in, capacity);

		if (!in) {
			c->dead = true;
			return;
		}
		c->in = in;
		c->in_capacity = capacity;
	}
	n = recv(c->fd, c->in + c->n_in, READ_SIZE, MSG_DONTWAIT);
	if (n <= 0) {
		c->dead |= n == 0 || (errno != EAGAIN && errno != EINTR);
		return;
	}
	c->n_in += (size_t)n;
	messages_take(c);
}

/* ---- connections ---- */

/* Accept a connection, or close it when there are too many. */
static void connection_accept(void)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);
	struct connection *c;
	int fd = accept4(server.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return;
	c = server.n < CONNECTIONS_MAX ? calloc(1, sizeof(*c)) : NULL;
	if (!c || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size)) {
		free(c);
		close(fd);
		return;
	}
	setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &(int){ SEND_BUFFER }, sizeof(int));
	c->fd = fd;
	c->pid_fd = -1;
	/* The kernel says which process it is, so that no connection can claim another one. */
	c->pid = peer.pid;
	out_init(&c->out, BACKLOG_MAX);
	server.list[server.n++] = c;
}

static void connection_free(struct connection *c)
{
	close(c->fd);
	if (c->pid_fd >= 0)
		close(c->pid_fd);
	free(c->in);
	out_deinit(&c->out);
	free(c);
}

/* The end of a debugger ends its session; the last connection of a process ends the process. */
static void connection_ended(struct connection *c)
{
	struct sim_process *p = c->process;

	if (!p)
		return;
	c->process = NULL;
	if (c->role == WIRE_DEBUGGER)
		sim_debugger_gone(p);
	else if (c->role != WIRE_NOTIFY && !connection_of(p, WIRE_APP) &&
		 !connection_of(p, WIRE_ENGINE))
		process_gone(p);
}

/* Free the connections that are dead. */
static void connections_sweep(void)
{
	for (size_t i = 0; i < server.n;) {
		struct connection *c = server.list[i];

		if (!c->dead) {
			i++;
			continue;
		}
		server.list[i] = server.list[--server.n];
		connection_ended(c);
		connection_free(c);
	}
}

/* ---- the loop ---- */

/* Fill in what to poll: the listener, then two descriptors of each connection. */
static size_t poll_fill(struct pollfd *f)
{
	size_t n = 0;

	f[n++] = (struct pollfd){ server.listener, POLLIN, 0 };
	for (size_t i = 0; i < server.n; i++) {
		struct connection *c = server.list[i];

		f[n++] = (struct pollfd){ c->fd, (short)(POLLIN | (may_send(c) ? POLLOUT : 0)), 0 };
		f[n++] = (struct pollfd){ c->pid_fd, POLLIN, 0 };
	}
	return n;
}

/*
 * Whether a delay is over early: an engine also comes up when the wish that held it has been taken
 * back.
 */
static bool is_released(const struct connection *c)
{
	return c->role == WIRE_ENGINE && c->process && !c->process->script.attach_delay_ms;
}

/* Send the answers whose delay is over. */
static void delays_end(void)
{
	for (size_t i = 0; i < server.n; i++) {
		struct connection *c = server.list[i];

		if (c->reply_at && (is_released(c) || clock_now_ns() >= c->reply_at)) {
			c->reply_at = 0;
			flush(c);
		}
	}
}

static void connections_serve(const struct pollfd *f, size_t n)
{
	/* The list only changes behind this loop, so that positions in f[] stay true. */
	for (size_t i = 0; i < (n - 1) / 2; i++) {
		struct connection *c = server.list[i];

		if (f[1 + 2 * i].revents & (POLLIN | POLLHUP | POLLERR))
			receive(c);
		if (f[1 + 2 * i].revents & POLLOUT)
			flush(c);
		if (f[2 + 2 * i].revents && c->process)
			process_gone(c->process);
	}
	if (f[0].revents)
		connection_accept();
	connections_sweep();
}

/* Whether anything happens without a message. */
static bool needs_ticks(void)
{
	for (const struct sim_process *p = server.sim.processes; p; p = p->next)
		if (p->phase != PHASE_NONE || p->breakpoints)
			return true;
	for (size_t i = 0; i < server.n; i++)
		if (server.list[i]->reply_at)
			return true;
	return false;
}

static int wait_for_messages(struct wire_soon *soon, struct pollfd *f, size_t n)
{
	int r = 0;

	while (!r && wire_soon(soon))
		r = poll(f, n, 0);
	if (!r)
		r = poll(f, n, needs_ticks() ? TICK_MS : 500);
	if (r > 0)
		wire_soon_begin(soon);
	return r;
}

int server_run(volatile const bool *stop)
{
	struct pollfd f[1 + 2 * CONNECTIONS_MAX];
	struct wire_soon soon = { 0 };

	while (!*stop) {
		size_t n = poll_fill(f);

		if (wait_for_messages(&soon, f, n) < 0 && errno != EINTR)
			return -errno;
		if (*stop)
			break;
		connections_serve(f, n);
		delays_end();
		for (struct sim_process *p = server.sim.processes; p; p = p->next)
			session_tick(p);
	}
	return 0;
}

int server_open(const char *path, const char *script)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	if (strlen(path) >= sizeof(a.sun_path))
		return -ENAMETOOLONG;
	strcpy(a.sun_path, path);
	strcpy(server.path, path);
	server.sim.os = &os;
	server.sim.script = script ? strdup(script) : NULL;
	unlink(path);
	server.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (server.listener < 0 || bind(server.listener, (struct sockaddr *)&a, sizeof(a)) ||
	    chmod(path, 0666) || listen(server.listener, 64))
		return -errno;
	return 0;
}

void server_close(void)
{
	for (size_t i = 0; i < server.n; i++)
		connection_free(server.list[i]);
	server.n = 0;
	while (server.sim.processes)
		sim_process_destroy(server.sim.processes);
	free(server.sim.script);
	close(server.listener);
	unlink(server.path);
}
