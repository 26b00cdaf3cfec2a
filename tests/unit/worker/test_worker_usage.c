/* SPDX-License-Identifier: MIT */
/* Who may use a session, and what the monitor is told of it. */
#include <sys/socket.h>
#include <unistd.h>

#include "agentd/worker/session/usage.h"
#include "base/fd.h"
#include "testlib.h"

#define SECOND_NS UINT64_C(1000000000)

static void let_in(struct usage *u, uint64_t client, uid_t uid)
{
	const struct ipc_let_in m = { .type = IPC_LET_IN, .client = client, .rights = IPC_RIGHT_READ, .uid = uid };

	TEST_EQ(usage_let_in(u, &m), 0);
}

static void who_is_let_in_is_known(void)
{
	struct usage u = { 0 };
	const struct ipc_let_in more = { .client = 5, .rights = IPC_RIGHT_CONTROL, .uid = 1005, .admin = 1 };

	CU_ASSERT_PTR_NULL(usage_find(&u, 5));
	for (uint64_t id = 1; id <= 100; id++)
		let_in(&u, id, (uid_t)id + 1000);
	TEST_EQ(usage_find(&u, 5)->uid, 1005);
	TEST_EQ(usage_find(&u, 5)->rights, IPC_RIGHT_READ);
	CU_ASSERT_PTR_NULL(usage_find(&u, 101));
	CU_ASSERT_PTR_NULL(usage_find(&u, 0));
	/* What is said last counts. */
	TEST_EQ(usage_let_in(&u, &more), 0);
	TEST_EQ(usage_find(&u, 5)->rights, IPC_RIGHT_CONTROL);
	TEST_EQ(usage_find(&u, 5)->admin, true);
	TEST_EQ(u.n, 100);
	usage_deinit(&u);
}

/* It is known as long as there is room: the frontend and the monitor do not speak at the same time. */
static void those_who_left_make_room(void)
{
	struct usage u = { 0 };

	for (uint64_t id = 1; id <= IPC_CLIENTS_MAX; id++)
		let_in(&u, id, 1000);
	usage_left(&u, 7, 0);
	usage_left(&u, 3, 0);
	usage_left(&u, 99999, 0);
	CU_ASSERT_PTR_NOT_NULL(usage_find(&u, 3));
	let_in(&u, 5000, 1000);
	CU_ASSERT_PTR_NULL(usage_find(&u, 3));
	/* It came back. */
	let_in(&u, 7, 1000);
	let_in(&u, 5001, 1000);
	CU_ASSERT_PTR_NOT_NULL(usage_find(&u, 7));
	CU_ASSERT_PTR_NULL(usage_find(&u, 1));
	TEST_EQ(u.n, IPC_CLIENTS_MAX);
	usage_deinit(&u);
}

/* Nobody says of a client that it closed its connection before its first call. */
static void those_who_never_called_make_room(void)
{
	enum { OWNER = 1, OTHER = 2 };
	struct usage u = { 0 };

	let_in(&u, OWNER, 1000);
	let_in(&u, OTHER, 1001);
	CU_ASSERT_PTR_NOT_NULL(usage_admit(&u, OWNER));
	CU_ASSERT_PTR_NOT_NULL(usage_admit(&u, OTHER));
	CU_ASSERT_PTR_NULL(usage_admit(&u, 3));
	for (uint64_t id = 3; id <= IPC_CLIENTS_MAX; id++)
		let_in(&u, id, 1001);
	TEST_EQ(u.has_forgotten, false);
	for (uint64_t id = 10000; id < 10000 + 2 * IPC_CLIENTS_MAX; id++)
		let_in(&u, id, 1001);
	CU_ASSERT_PTR_NOT_NULL(usage_find(&u, OWNER));
	CU_ASSERT_PTR_NOT_NULL(usage_find(&u, 10000 + 2 * IPC_CLIENTS_MAX - 1));
	CU_ASSERT_PTR_NULL(usage_find(&u, 10000));
	TEST_EQ(u.has_forgotten, true);
	/* It left, and was let in once more, for nothing. */
	usage_left(&u, OTHER, 0);
	let_in(&u, OTHER, 1001);
	for (uint64_t id = 20000; id < 20000 + IPC_CLIENTS_MAX; id++)
		let_in(&u, id, 1001);
	CU_ASSERT_PTR_NULL(usage_find(&u, OTHER));
	/* Where all call there is no place for another, until somebody leaves. */
	for (size_t i = 0; i < u.n; i++)
		usage_admit(&u, u.list[i].id);
	let_in(&u, 30000, 1001);
	CU_ASSERT_PTR_NULL(usage_find(&u, 30000));
	usage_left(&u, 20100, 0);
	let_in(&u, 30000, 1001);
	CU_ASSERT_PTR_NOT_NULL(usage_find(&u, 30000));
	CU_ASSERT_PTR_NOT_NULL(usage_find(&u, OWNER));
	TEST_EQ(u.n, IPC_CLIENTS_MAX);
	usage_deinit(&u);
}

/* ------------------------------------------------------------------ telling ------------------ */

static int monitor;

static void begin(struct usage *u, uid_t owner)
{
	int pair[2];

	TEST_EQ_FATAL(fd_socketpair(SOCK_NONBLOCK, pair), 0);
	*u = (struct usage){ .owner = owner, .fd = pair[0] };
	monitor = pair[1];
}

static void end(struct usage *u)
{
	close(monitor);
	close(u->fd);
	usage_deinit(u);
}

/* @return what is told next; 0 in `type`: nothing. */
static struct ipc_used told(void)
{
	struct ipc_used m = { 0 };

	return recv(monitor, &m, sizeof(m), 0) == (ssize_t)sizeof(m) ? m : (struct ipc_used){ 0 };
}

static unsigned count_told(uint64_t client, uint64_t *ret_calls)
{
	unsigned n = 0;
	struct ipc_used m;

	*ret_calls = 0;
	while ((m = told()).type)
		if (m.client == client) {
			n++;
			*ret_calls += 1 + m.more;
		}
	return n;
}

static void what_is_told(void)
{
	enum { OWN = 1, OTHER = 2 };
	static const struct {
		uint64_t client;
		enum rpc_method method;
		enum ipc_use want;
	} rows[] = {
		{ OWN, RPC_METHOD_GPU_SUSPEND, IPC_USE_CONTROL },
		{ OWN, RPC_METHOD_EXCEPTION_SUBSCRIBE, IPC_USE_CONTROL },
		{ OWN, RPC_METHOD_SESSION_CONTROL, IPC_USE_CONTROL },
		{ OWN, RPC_METHOD_MEMORY_READ, 0 },
		{ OTHER, RPC_METHOD_CORE_BEGIN, IPC_USE_CONTROL },
		{ OTHER, RPC_METHOD_GPU_SNAPSHOT, IPC_USE_READ },
		{ OTHER, RPC_METHOD_WAVE_REGISTERS, IPC_USE_READ },
		{ OTHER, RPC_METHOD_WAVE_VARIABLES, IPC_USE_READ },
		{ OTHER, RPC_METHOD_WAVE_EVALUATE, IPC_USE_READ },
		{ OTHER, RPC_METHOD_MEMORY_READ, IPC_USE_READ },
		{ OTHER, RPC_METHOD_CORE_READ, IPC_USE_READ },
		{ OTHER, RPC_METHOD_CODE_READ, IPC_USE_READ },
		{ OTHER, RPC_METHOD_GPU_DEVICES, 0 },
		{ OTHER, RPC_METHOD_AGENT_HELLO, 0 },
		{ OTHER, RPC_METHOD_COUNT, 0 },
		{ 3, RPC_METHOD_GPU_SUSPEND, 0 },
	};
	struct usage u;
	struct ipc_used m;

	begin(&u, 1000);
	let_in(&u, OWN, 1000);
	let_in(&u, OTHER, 1001);
	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		usage_called(&u, rows[i].client, rows[i].method, 100 * SECOND_NS);
		m = told();
		TEST_ROW_EQ(i, m.kind, rows[i].want);
		if (rows[i].want)
			TEST_STR(m.method, rpc_methods[rows[i].method].name);
	}
	end(&u);
}

/* Each of them is in a count, and the first at once; another client or method is not behind it. */
static void readings_are_told_from_time_to_time(void)
{
	const uint64_t begun = 100 * SECOND_NS;
	struct ipc_used m;
	uint64_t calls;
	struct usage u;

	begin(&u, 1000);
	let_in(&u, 1, 1001);
	let_in(&u, 2, 1001);
	for (unsigned i = 0; i < 100; i++)
		usage_called(&u, 1, RPC_METHOD_MEMORY_READ, begun + i * SECOND_NS / 20);
	TEST_EQ(count_told(1, &calls), 1);
	usage_called(&u, 1, RPC_METHOD_WAVE_REGISTERS, begun + 5 * SECOND_NS);
	m = told();
	TEST_STR(m.method, "wave.registers");
	TEST_EQ(m.more, 99);
	usage_called(&u, 2, RPC_METHOD_MEMORY_READ, begun + 5 * SECOND_NS);
	TEST_EQ(told().client, 2);
	usage_called(&u, 1, RPC_METHOD_MEMORY_READ, begun + 10 * SECOND_NS);
	m = told();
	TEST_STR(m.method, "memory.read");
	TEST_EQ(m.more, 0);
	/* Who leaves, or was there until the end. */
	usage_called(&u, 1, RPC_METHOD_MEMORY_READ, begun + 11 * SECOND_NS);
	usage_called(&u, 2, RPC_METHOD_MEMORY_READ, begun + 11 * SECOND_NS);
	usage_called(&u, 2, RPC_METHOD_MEMORY_READ, begun + 12 * SECOND_NS);
	usage_called(&u, 2, RPC_METHOD_MEMORY_READ, begun + 13 * SECOND_NS);
	TEST_EQ(told().type, 0);
	usage_left(&u, 1, begun + 13 * SECOND_NS);
	m = told();
	TEST_EQ(m.client, 1);
	TEST_EQ(m.more, 0);
	usage_end(&u);
	m = told();
	TEST_EQ(m.client, 2);
	TEST_EQ(m.more, 2);
	TEST_EQ(told().type, 0);
	end(&u);
}

/* Of methods that are called again and again so many are told in a second. */
#define SHARE (IPC_USED_PER_SECOND / 3 - IPC_USED_PER_SECOND / 15)

/* The monitor would kill a worker that says more; the next message has the rest. */
static void floods_are_counted(void)
{
	const uint64_t begun = 100 * SECOND_NS;
	uint64_t calls, rest;
	struct usage u;

	begin(&u, 1000);
	let_in(&u, 1, 1000);
	let_in(&u, 2, 1001);
	for (unsigned i = 0; i < 10000; i++)
		usage_called(&u, 1, RPC_METHOD_GPU_RENEW, begun + i * SECOND_NS / 20000);
	/* Behind it somebody else is heard. */
	usage_called(&u, 2, RPC_METHOD_MEMORY_READ, begun + SECOND_NS / 2);
	TEST_EQ(u.own.n, SHARE);
	TEST_EQ(u.others_read.n, 1);
	/* Nor does it hide what else this client does. */
	usage_called(&u, 1, RPC_METHOD_GPU_SUSPEND, begun + SECOND_NS / 2);
	TEST_EQ(u.own.n, SHARE + 1);
	TEST_EQ(count_told(1, &calls), SHARE + 1);
	usage_end(&u);
	TEST_EQ(count_told(1, &rest), 0);
	TEST_EQ(calls + rest, 10001);
	end(&u);
}

/* Whoever gets the writer lease while another one has it has taken it, whatever the frontend says. */
static void takers_are_told(void)
{
	const struct ipc_let_in one = { .client = 1, .rights = IPC_RIGHT_CONTROL, .uid = 1000 },
				two = { .client = 2, .rights = IPC_RIGHT_CONTROL, .uid = 1000 };
	const uint64_t begun = 100 * SECOND_NS;
	struct ipc_used m;
	struct usage u;

	begin(&u, 1000);
	usage_let_in(&u, &one);
	usage_let_in(&u, &two);
	let_in(&u, 3, 1001);
	usage_takes(&u, 1, RPC_METHOD_GPU_SUSPEND, false, begun);
	usage_takes(&u, 1, RPC_METHOD_GPU_RENEW, false, begun);
	TEST_EQ(told().type, 0);
	/* More time is no sign of life. */
	usage_called(&u, 1, RPC_METHOD_GPU_RENEW, begun + 2 * SECOND_NS);
	told();
	usage_takes(&u, 2, RPC_METHOD_SESSION_CONTROL, true, begun + 3 * SECOND_NS);
	m = told();
	TEST_EQ(m.kind, IPC_USE_TAKEN_FORCED);
	TEST_EQ(m.client, 2);
	TEST_EQ(m.from, 1);
	TEST_EQ(m.idle_ms, 3000);
	TEST_STR(m.method, "session.control");
	usage_takes(&u, 1, RPC_METHOD_SESSION_ATTACH, false, begun + 4 * SECOND_NS);
	TEST_EQ(told().kind, IPC_USE_TAKEN_SILENT);
	usage_left(&u, 1, begun + 4 * SECOND_NS);
	usage_takes(&u, 2, RPC_METHOD_GPU_SUSPEND, false, begun + 5 * SECOND_NS);
	TEST_EQ(told().kind, IPC_USE_TAKEN_LEFT);
	/* Given back, or to somebody who is not there. */
	usage_gives_back(&u, 1);
	TEST_EQ(u.holder.id, 2);
	usage_gives_back(&u, 2);
	usage_takes(&u, 9, RPC_METHOD_GPU_SUSPEND, false, begun + 5 * SECOND_NS);
	usage_takes(&u, 3, RPC_METHOD_GPU_SUSPEND, false, begun + 5 * SECOND_NS);
	TEST_EQ(u.holder.id, 0);
	usage_takes(&u, 1, RPC_METHOD_GPU_SUSPEND, false, begun + 6 * SECOND_NS);
	TEST_EQ(told().type, 0);
	end(&u);
}

/* A monitor that has no time for it hears it later. */
static void nothing_is_lost_in_a_full_socket(void)
{
	uint64_t calls, sum = 0;
	struct usage u;

	begin(&u, 1000);
	let_in(&u, 1, 1000);
	for (unsigned i = 1; i <= 1000; i++)
		usage_called(&u, 1, RPC_METHOD_GPU_RENEW, i * SECOND_NS);
	count_told(1, &calls);
	CU_ASSERT_TRUE(calls < 1000);
	sum = calls;
	usage_end(&u);
	count_told(1, &calls);
	TEST_EQ(sum + calls, 1000);
	end(&u);
}

TEST_SUITE(worker_usage, TEST(who_is_let_in_is_known), TEST(those_who_left_make_room),
	   TEST(those_who_never_called_make_room), TEST(what_is_told), TEST(readings_are_told_from_time_to_time),
	   TEST(floods_are_counted), TEST(takers_are_told), TEST(nothing_is_lost_in_a_full_socket));
