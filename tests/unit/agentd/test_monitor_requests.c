/* SPDX-License-Identifier: MIT */
/* What each child may ask of the privileged process, and what it is killed for. */
#include <sys/socket.h>
#include <unistd.h>

#include "agentd/monitor/requests.h"
#include "base/fd.h"
#include "testlib.h"

#define PRODUCERS 4
#define OF(kind)  (1u << IPC_KIND_##kind)
#define ALL	  (OF(SESSION) | OF(INSPECT) | OF(STORE) | OF(LOOK) | OF(ADAPTER))

/* So many stores that a worker gets no more: nothing is forked here. */
static void fill(struct monitor *s, struct worker producers[PRODUCERS], uint32_t of)
{
	memset(s, 0, sizeof(*s));
	memset(producers, 0, PRODUCERS * sizeof(*producers));
	s->stop_at = 1;
	s->judge.sock = s->manager.fd = -1;
	for (size_t i = 0; i < PRODUCERS; i++) {
		producers[i] = (struct worker){ .next = s->workers.first, .kind = IPC_KIND_STORE, .producer = of,
						.guard_fd = -1 };
		s->workers.first = &producers[i];
	}
}

static size_t size_of(uint32_t type)
{
	return type == IPC_STORE ? sizeof(struct ipc_store) :
	       type == IPC_THREADS ? sizeof(struct ipc_threads) :
	       type == IPC_FOUND ? sizeof(struct ipc_found) :
	       type == IPC_HOOK	 ? sizeof(struct ipc_hook) :
	       type == IPC_USED	 ? sizeof(struct ipc_used) :
				   sizeof(struct ipc_guard);
}

/* @return what comes of it; whatever is left of the descriptor is closed. */
static int ask(struct monitor *s, enum ipc_kind kind, const union ipc_child_message *m, size_t size,
	       bool with_fd)
{
	struct worker k = { .id = 7, .kind = kind, .guard_fd = -1 };
	int fd = -1, r;

	if (with_fd)
		TEST_EQ_FATAL(fd_memfd_sealed("test", "text", 4, &fd), 0);
	r = requests_take(s, &k, m, size, &fd);
	if (fd >= 0)
		close(fd);
	return r;
}

static void each_kind_asks_for_its_own(void)
{
	static const struct {
		uint32_t type;
		bool with_fd;
		unsigned allowed; /* bits of kinds */
	} rows[] = {
		{ IPC_ARM, false, ALL },
		{ IPC_DISARM, false, ALL },
		{ IPC_STORE, true, OF(SESSION) },
		{ IPC_STORE, false, 0 },
		{ IPC_THREADS, true, OF(SESSION) },
		{ IPC_THREADS, false, 0 },
		{ IPC_HOOK, true, OF(SESSION) },
		{ IPC_HOOK, false, 0 },
		{ IPC_FOUND, false, OF(LOOK) },
		/* No descriptor comes with these. */
		{ IPC_ARM, true, 0 },
		{ IPC_DISARM, true, 0 },
		{ IPC_FOUND, true, 0 },
		/* The frontend's */
		{ IPC_START, true, 0 },
		{ IPC_NOTE, false, 0 },
		{ IPC_HOOKS, true, 0 },
		{ IPC_DROP, true, 0 },
		/* nobody's */
		{ IPC_RULE, false, 0 },
		{ IPC_LET_IN, false, 0 },
		{ 0, false, 0 },
		{ UINT32_MAX, false, 0 },
	};
	struct worker producers[PRODUCERS];
	struct monitor *s = calloc(1, sizeof(*s));

	CU_ASSERT_PTR_NOT_NULL_FATAL(s);
	fill(s, producers, 7);
	for (size_t i = 0; i < TEST_COUNT(rows); i++)
		for (int kind = IPC_KIND_SESSION; kind <= IPC_KIND_ADAPTER; kind++) {
			const union ipc_child_message m = { .found = { .type = rows[i].type, .pid = 1 } };
			const size_t row = i * 10 + (size_t)kind, size = size_of(rows[i].type);

			TEST_ROW_EQ(row, ask(s, (enum ipc_kind)kind, &m, size, rows[i].with_fd),
				    rows[i].allowed & 1u << kind ? 0 : -EPROTO);
			TEST_ROW_EQ(row, ask(s, (enum ipc_kind)kind, &m, size - 1, rows[i].with_fd), -EPROTO);
			TEST_ROW_EQ(row, ask(s, (enum ipc_kind)kind, &m, size + 1, rows[i].with_fd), -EPROTO);
		}
	free(s);
}

/* A file of a file system that never answers would hang whoever looks at it. */
static void documents_are_memory(void)
{
	const union ipc_child_message m = { .hook = { .type = IPC_HOOK } };
	struct worker k = { .id = 7, .kind = IPC_KIND_SESSION, .guard_fd = -1 };
	struct monitor *s = calloc(1, sizeof(*s));
	int pair[2];

	CU_ASSERT_PTR_NOT_NULL_FATAL(s);
	s->manager.fd = -1;
	TEST_EQ_FATAL(fd_socketpair(SOCK_NONBLOCK, pair), 0);
	TEST_EQ(requests_take(s, &k, &m, sizeof(m.hook), &pair[0]), -EPROTO);
	close(pair[0]);
	close(pair[1]);
	free(s);
}

static void values_have_bounds(void)
{
	static const struct {
		enum ipc_kind kind;
		union ipc_child_message m;
		int want;
	} rows[] = {
		{ IPC_KIND_SESSION, { .guard = { .type = IPC_ARM, .ms = 600000 } }, 0 },
		{ IPC_KIND_SESSION, { .guard = { .type = IPC_ARM, .ms = 600001 } }, -EPROTO },
		{ IPC_KIND_LOOK, { .found = { .type = IPC_FOUND, .pid = INT32_MAX } }, 0 },
		{ IPC_KIND_LOOK, { .found = { .type = IPC_FOUND, .pid = INT32_MAX + 1u } }, -EPROTO },
		{ IPC_KIND_LOOK, { .found = { .type = IPC_FOUND } }, -EPROTO },
	};
	struct worker producers[PRODUCERS];
	struct monitor *s = calloc(1, sizeof(*s));

	CU_ASSERT_PTR_NOT_NULL_FATAL(s);
	fill(s, producers, 7);
	for (size_t i = 0; i < TEST_COUNT(rows); i++)
		TEST_ROW_EQ(i, ask(s, rows[i].kind, &rows[i].m, size_of(rows[i].m.type), false), rows[i].want);
	free(s);
}

static int tell_use(struct monitor *s, struct worker *k, uint32_t kind, const char *method, size_t size)
{
	union ipc_child_message m = { .used = { .type = IPC_USED, .kind = kind, .client = 5, .more = 3 } };
	int fd = -1;

	memcpy(m.used.method, method, size);
	return requests_take(s, k, &m, sizeof(m.used), &fd);
}

/* Words of a method, and no others, go on to the judge, with what the worker cannot choose. */
static void uses_have_bounds(void)
{
	static const struct {
		uint32_t kind;
		const char *method;
		size_t size;
		int want;
	} rows[] = {
		{ IPC_USE_READ, "memory.read", 12, 0 },
		{ IPC_USE_CONTROL, "gpu.suspend", 12, 0 },
		{ 0, "gpu.suspend", 12, -EPROTO },
		{ IPC_USE_COUNT, "gpu.suspend", 12, -EPROTO },
		{ IPC_USE_READ, "", 1, -EPROTO },
		{ IPC_USE_READ, "gpu.suspend on", 15, -EPROTO },
		{ IPC_USE_READ, "gpu\nsuspend", 12, -EPROTO },
		{ IPC_USE_READ, "aaaaaaaaaaaaaaaaaaaaaaaaaaaa", IPC_METHOD_SIZE, -EPROTO },
	};
	struct worker k = { .id = 7, .session = 3, .kind = IPC_KIND_SESSION, .target = 42, .target_uid = 1001,
			    .guard_fd = -1 }, store = { .id = 8, .kind = IPC_KIND_STORE, .guard_fd = -1 };
	struct monitor *s = calloc(1, sizeof(*s));
	struct judge_used got;
	int pair[2];

	CU_ASSERT_PTR_NOT_NULL_FATAL(s);
	TEST_EQ_FATAL(fd_socketpair(SOCK_NONBLOCK, pair), 0);
	s->judge.sock = pair[0];
	TEST_EQ(tell_use(s, &store, IPC_USE_READ, "memory.read", 12), -EPROTO);
	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		TEST_ROW_EQ(i, tell_use(s, &k, rows[i].kind, rows[i].method, rows[i].size), rows[i].want);
		TEST_ROW_EQ(i, recv(pair[1], &got, sizeof(got), 0), rows[i].want ? -1 : (ssize_t)sizeof(got));
	}
	TEST_EQ(got.type, JUDGE_USED);
	TEST_EQ(got.worker, 7);
	TEST_EQ(got.session, 3);
	TEST_EQ(got.pid, 42);
	TEST_EQ(got.uid, 1001);
	TEST_EQ(got.used.client, 5);
	TEST_EQ(got.used.more, 3);
	/* A worker that is itself never says so much. */
	k.n_used = 0;
	for (unsigned i = 0; i < IPC_USED_MAX; i++) {
		TEST_ROW_EQ(i, tell_use(s, &k, IPC_USE_READ, "memory.read", 12), 0);
		TEST_ROW_EQ(i, recv(pair[1], &got, sizeof(got), 0), (ssize_t)sizeof(got));
	}
	TEST_EQ(tell_use(s, &k, IPC_USE_READ, "memory.read", 12), -EPROTO);
	outbox_forget(&s->judge);
	close(pair[0]);
	close(pair[1]);
	free(s);
}

/* A judge that stands still, and fallen workers: the agent goes on, and each call is in a count. */
static void uses_leave_room(void)
{
	enum { WORKERS = 8 };
	struct worker k[WORKERS];
	struct monitor *s = calloc(1, sizeof(*s));
	struct judge_used got;
	uint64_t calls[WORKERS] = { 0 };
	int pair[2];

	CU_ASSERT_PTR_NOT_NULL_FATAL(s);
	TEST_EQ_FATAL(fd_socketpair(SOCK_NONBLOCK, pair), 0);
	s->judge.sock = pair[0];
	for (uint32_t i = 0; i < WORKERS; i++) {
		k[i] = (struct worker){ .id = i, .kind = IPC_KIND_SESSION, .guard_fd = -1 };
		for (unsigned n = 0; n < IPC_USED_MAX - 1; n++)
			TEST_EQ(tell_use(s, &k[i], IPC_USE_READ, "memory.read", 12), 0);
	}
	TEST_EQ(s->judge.n_waiting, OUTBOX_WAITING_MAX / 4);
	do {
		while (recv(pair[1], &got, sizeof(got), 0) == (ssize_t)sizeof(got))
			calls[got.worker] += 1 + got.used.more;
		monitor_flush_judge(s);
	} while (s->judge.n_waiting);
	for (uint32_t i = 0; i < WORKERS; i++)
		TEST_ROW_EQ(i, tell_use(s, &k[i], IPC_USE_READ, "memory.read", 12), 0);
	while (recv(pair[1], &got, sizeof(got), 0) == (ssize_t)sizeof(got))
		calls[got.worker] += 1 + got.used.more;
	/* Each message stands for itself and three more. */
	for (uint32_t i = 0; i < WORKERS; i++)
		TEST_ROW_EQ(i, calls[i], 4 * IPC_USED_MAX);
	close(pair[0]);
	close(pair[1]);
	free(s);
}

static void say_as(struct monitor *s, struct worker *k, uint64_t client)
{
	const union ipc_child_message m = { .used = { .type = IPC_USED, .kind = IPC_USE_READ, .client = client,
						      .method = "memory.read" } };
	int fd = -1;

	TEST_EQ(requests_take(s, k, &m, sizeof(m.used), &fd), 0);
}

/* What one client did is never in the count of another one. */
static void uses_without_room_keep_their_clients(void)
{
	static const struct {
		uint64_t without_room[2], then; /* clients */
		uint64_t want[2]; /* clients */
		uint32_t more[2];
	} rows[] = {
		{ { 5, 5 }, 5, { 5, 0 }, { 2, 0 } },
		{ { 5, 5 }, 6, { 5, 6 }, { 1, 0 } },
		{ { 5, 6 }, 6, { 0, 6 }, { 1, 0 } },
	};
	struct monitor *s = calloc(1, sizeof(*s));
	struct judge_used got;
	int pair[2];

	CU_ASSERT_PTR_NOT_NULL_FATAL(s);
	TEST_EQ_FATAL(fd_socketpair(SOCK_NONBLOCK, pair), 0);
	s->judge.sock = pair[0];
	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct worker k = { .id = 7, .kind = IPC_KIND_SESSION, .guard_fd = -1 };

		s->judge.n_waiting = OUTBOX_WAITING_MAX;
		say_as(s, &k, rows[i].without_room[0]);
		say_as(s, &k, rows[i].without_room[1]);
		TEST_ROW_EQ(i, recv(pair[1], &got, sizeof(got), 0), -1);
		s->judge.n_waiting = 0;
		say_as(s, &k, rows[i].then);
		for (size_t n = 0; n < (rows[i].want[1] ? 2 : 1); n++) {
			TEST_ROW_EQ(i, recv(pair[1], &got, sizeof(got), 0), (ssize_t)sizeof(got));
			TEST_ROW_EQ(i, got.used.client, rows[i].want[n]);
			TEST_ROW_EQ(i, got.used.more, rows[i].more[n]);
		}
		TEST_ROW_EQ(i, recv(pair[1], &got, sizeof(got), 0), -1);
	}
	close(pair[0]);
	close(pair[1]);
	free(s);
}

static void judge_asks_for_its_own(void)
{
	static union {
		uint32_t type;
		struct judge_start start;
		struct judge_hooks hooks;
		struct judge_watch watch;
		struct ipc_note note;
		char longer[sizeof(struct judge_start) + sizeof(struct judge_watch)];
	} note = { .note = { .type = IPC_NOTE, .kind = IPC_NOTE_KILL } },
	  idle = { .note = { .type = IPC_NOTE, .kind = IPC_NOTE_IDLE } },
	  start = { .start = { .type = JUDGE_START } }, hooks = { .hooks = { .type = JUDGE_HOOKS } },
	  watch = { .watch = { .type = JUDGE_WATCH } }, of_front = { .type = IPC_START }, arm = { .type = IPC_ARM };
	const struct {
		const void *message;
		size_t size;
		bool with_fd; /* memory */
		int want;
	} rows[] = {
		{ &note, sizeof(note.note), false, 0 },
		{ &note, sizeof(note.note) - 1, false, -EPROTO },
		{ &note, sizeof(note.note) + 1, false, -EPROTO },
		{ &note, sizeof(note.note), true, -EPROTO },
		/* It stops: nothing is started. */
		{ &start, sizeof(start.start), true, 0 },
		{ &start, sizeof(start.start) - 1, true, -EPROTO },
		{ &watch, sizeof(watch.watch), true, 0 },
		{ &watch, sizeof(watch.watch) - 1, false, -EPROTO },
		/* The manager's */
		{ &hooks, sizeof(hooks.hooks), false, -EPROTO },
		{ &idle, sizeof(idle.note), false, -EPROTO },
		/* The frontend's own reach nobody but the judge. */
		{ &of_front, sizeof(struct ipc_start), false, -EPROTO },
		{ &arm, sizeof(arm.note), false, -EPROTO },
		{ &arm, sizeof(uint32_t), false, -EPROTO },
		{ &note, sizeof(note), false, -EMSGSIZE },
	};
	struct monitor *s = calloc(1, sizeof(*s));
	int pair[2], memory;

	CU_ASSERT_PTR_NOT_NULL_FATAL(s);
	TEST_EQ_FATAL(fd_socketpair(SOCK_NONBLOCK, pair), 0);
	TEST_EQ_FATAL(fd_memfd_sealed("test", "text", 4, &memory), 0);
	/* No worker has the number 0, which the note says. */
	s->stop_at = 1;
	s->manager.fd = -1;
	s->judge.sock = pair[0];
	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		TEST_EQ(fd_send(pair[1], rows[i].message, rows[i].size, &memory, rows[i].with_fd) > 0, true);
		TEST_ROW_EQ(i, requests_read_judge(s), rows[i].want);
	}
	TEST_EQ(requests_read_judge(s), -EAGAIN);
	close(pair[1]);
	TEST_EQ(requests_read_judge(s), -EPIPE);
	outbox_forget(&s->judge);
	close(pair[0]);
	close(memory);
	free(s);
}

static int ask_as_manager(struct monitor *s, struct ipc_link *theirs, uint32_t type, size_t size, const void *data)
{
	const struct ipc_head h = { .type = type, .number = 3, .size = size };

	TEST_EQ_FATAL(ipc_link_send(theirs, &h, data), 0);
	return requests_read_manager(s);
}

static void manager_asks_for_its_own(void)
{
	static const struct monitor_config config = { .config = { .socket = "/run/none" } };
	static const struct {
		uint32_t type;
		size_t size;
		int want;
	} rows[] = {
		{ MONITOR_CONFIG, sizeof(struct monitor_config), 0 },
		{ MONITOR_CONFIG, sizeof(struct monitor_config) - 1, -EPROTO },
		{ MONITOR_AGENT, sizeof(struct monitor_agent), 0 },
		{ MONITOR_AGENT, sizeof(struct monitor_agent) - 1, -EPROTO },
		{ MONITOR_PING, 0, 0 },
		/* It stops: nothing is started. */
		{ RULES_LOOK, 0, 0 },
		{ RULES_LET_GO, 0, 0 },
		{ MONITOR_STOP, 0, 0 },
		{ MONITOR_STOP, 8, -EPROTO },
		/* What it passes on in the other direction, and nobody's. */
		{ RULES_FOUND, sizeof(struct rules_found), -EPROTO },
		{ MONITOR_PONG, 0, -EPROTO },
		{ IPC_ARM, sizeof(struct ipc_guard), -EPROTO },
		{ JUDGE_START, sizeof(struct judge_start), -EPROTO },
		{ 0, 0, -EPROTO },
		{ UINT32_MAX, 0, -EPROTO },
	};
	struct monitor *s = calloc(1, sizeof(*s));
	struct ipc_link theirs;
	int pair[2];

	CU_ASSERT_PTR_NOT_NULL_FATAL(s);
	TEST_EQ_FATAL(fd_socketpair(SOCK_NONBLOCK, pair), 0);
	ipc_link_init(&s->manager, pair[0]);
	ipc_link_init(&theirs, pair[1]);
	s->judge.sock = -1;
	s->stop_at = 1;
	/* Nothing before it is known how. */
	TEST_EQ(ask_as_manager(s, &theirs, MONITOR_PING, 0, NULL), -EPROTO);
	for (size_t i = 0; i < TEST_COUNT(rows); i++)
		TEST_ROW_EQ(i, ask_as_manager(s, &theirs, rows[i].type, rows[i].size, &config), rows[i].want);
	TEST_EQ(requests_read_manager(s), -EAGAIN);
	ipc_link_deinit(&theirs);
	TEST_EQ(requests_read_manager(s), -EPIPE);
	ipc_link_deinit(&s->manager);
	free(s);
}

TEST_SUITE(monitor_requests, TEST(each_kind_asks_for_its_own), TEST(documents_are_memory), TEST(values_have_bounds),
	   TEST(uses_have_bounds), TEST(uses_leave_room),
	   TEST(uses_without_room_keep_their_clients), TEST(judge_asks_for_its_own), TEST(manager_asks_for_its_own));
