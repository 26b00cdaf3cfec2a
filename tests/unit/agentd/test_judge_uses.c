/* SPDX-License-Identifier: MIT */
/* Who is told to have done something: names of clients, also of such that have gone, and budgets. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agentd/judge/clients.h"
#include "agentd/judge/names.h"
#include "agentd/judge/uses.h"
#include "testlib.h"

#define SECOND_NS UINT64_C(1000000000)

static struct client of(uint64_t id, uid_t uid)
{
	return (struct client){ .id = id, .peer = { .pid = (pid_t)id + 100, .uid = uid, .charge = uid, .pidfd = -1 } };
}

/* Add one that is connected, or has gone. */
static void let_in(struct names *n, struct clients *all, struct client *k, uint32_t worker, bool connected)
{
	const struct ipc_started m = { .worker = worker, .session = 3, .rights = IPC_RIGHT_CONTROL,
				       .target_uid = 1001 };

	if (connected) {
		k->next = all->buckets[k->id % CLIENTS_BUCKETS];
		all->buckets[k->id % CLIENTS_BUCKETS] = k;
	}
	names_add(n, all, k, &m, 42);
}

static void those_who_have_gone_are_known_for_a_while(void)
{
	static struct clients all;
	struct client stays = of(1, 1001), comes;
	struct names n = { 0 };

	let_in(&n, &all, &stays, 7, true);
	names_add(&n, &all, &stays, &(struct ipc_started){ .worker = 7 }, 42);
	names_add(&n, &all, &stays, &(struct ipc_started){ .worker = 8 }, 43);
	TEST_EQ(n.n, 2);
	for (uint64_t id = 2; id < 5000; id++) {
		comes = of(id, 1002);
		let_in(&n, &all, &comes, 7, false);
	}
	CU_ASSERT_TRUE(n.n <= 2 + NAMES_GONE + 1);
	CU_ASSERT_PTR_NOT_NULL_FATAL(names_find(&n, 1, 7));
	TEST_EQ(names_find(&n, 1, 7)->uid, 1001);
	TEST_EQ(names_find(&n, 1, 7)->pid, 101);
	CU_ASSERT_PTR_NOT_NULL(names_find(&n, 4999, 7));
	CU_ASSERT_PTR_NOT_NULL(names_find(&n, 5000 - NAMES_GONE, 7));
	CU_ASSERT_PTR_NULL(names_find(&n, 2, 7));
	/* Known there, and not elsewhere. */
	CU_ASSERT_PTR_NULL(names_find(&n, 4999, 8));
	CU_ASSERT_PTR_NULL(names_find(&n, 0, 7));
	/* Also for a moment when the session is over. */
	names_worker_ended(&n, 7);
	CU_ASSERT_PTR_NOT_NULL(names_find(&n, 1, 7));
	for (uint32_t worker = 100; worker < 100 + NAMES_ENDED; worker++)
		names_worker_ended(&n, worker);
	CU_ASSERT_PTR_NULL(names_find(&n, 1, 7));
	TEST_EQ(n.n, 1);
	CU_ASSERT_PTR_NOT_NULL(names_find(&n, 1, 8));
	names_deinit(&n);
}

/* ------------------------------------------------------------------ records ------------------ */

static struct clients nobody_else;
static char logged[1 << 17];
static int stderr_was, log_pipe[2];

/* What is logged without a journal goes to standard error. */
static void log_begin(void)
{
	TEST_EQ_FATAL(pipe2(log_pipe, O_CLOEXEC | O_NONBLOCK), 0);
	stderr_was = dup(STDERR_FILENO);
	dup2(log_pipe[1], STDERR_FILENO);
}

static void log_end(void)
{
	ssize_t n;

	dup2(stderr_was, STDERR_FILENO);
	close(stderr_was);
	close(log_pipe[1]);
	n = read(log_pipe[0], logged, sizeof(logged) - 1);
	logged[n > 0 ? n : 0] = '\0';
	close(log_pipe[0]);
}

static unsigned count(const char *word)
{
	unsigned n = 0;

	for (const char *p = logged; (p = strstr(p, word)); p++)
		n++;
	return n;
}

static void used(struct uses *u, const struct names *n, uint64_t client, enum ipc_use kind, const char *method,
		 uint32_t more, uint64_t now)
{
	struct judge_used m = { .worker = 7, .session = 3, .pid = 42, .uid = 1001,
				.used = { .kind = kind, .client = client, .more = more } };

	snprintf(m.used.method, sizeof(m.used.method), "%s", method);
	uses_record(u, n, &nobody_else, &m, now);
}

static void own_floods_hide_nobody(void)
{
	static struct clients all;
	const uint64_t now = 1000 * SECOND_NS;
	struct client owner = of(1, 1001), other = of(2, 1002);
	struct names n = { 0 };
	struct uses u = { 0 };

	let_in(&n, &all, &owner, 7, true);
	let_in(&n, &all, &other, 7, true);
	log_begin();
	for (unsigned i = 0; i < 1000; i++)
		used(&u, &n, 1, IPC_USE_CONTROL, "gpu.renew", 9, now);
	used(&u, &n, 2, IPC_USE_READ, "memory.read", 5, now);
	used(&u, &n, 2, IPC_USE_CONTROL, "gpu.suspend", 0, now);
	/* Somebody who is not in that session. */
	used(&u, &n, 99, IPC_USE_READ, "memory.read", 0, now);
	uses_due(&u, now + 10 * SECOND_NS, false);
	log_end();
	TEST_EQ(count("gpu.renew on process 42 by uid 1001 (pid 101), and 9 calls before\n"), 20);
	TEST_EQ(count("gpu.renew"), 20 + 1);
	TEST_EQ(count("memory.read on process 42 of uid 1001 by uid 1002 (pid 102), and 5 calls before\n"), 1);
	TEST_EQ(count("gpu.suspend on process 42 by uid 1002 (pid 102)\n"), 1);
	TEST_EQ(count("memory.read on process 42 of uid 1001 by uid -1 (pid 0)\n"), 1);
	TEST_EQ(count("uid 1001: 9800 more calls on its own processes in 10 s: gpu.renew\n"), 1);
	TEST_EQ(count(" more calls on "), 1);
	/* Nor is a flood of somebody's calls on others hidden by those on his own. */
	log_begin();
	for (unsigned i = 0; i < 100; i++)
		used(&u, &n, 2, IPC_USE_READ, "memory.read", 0, now + 20 * SECOND_NS);
	/* What one changes has a budget beside what it reads, and names what was only counted. */
	for (unsigned i = 0; i < 100; i++)
		used(&u, &n, 2, IPC_USE_CONTROL, i == 50 ? "gpu.resume" : "gpu.renew", 0, now + 20 * SECOND_NS);
	uses_due(&u, now + 20 * SECOND_NS, true);
	log_end();
	TEST_EQ(count("memory.read on"), 20);
	TEST_EQ(count("uid 1002: 80 more calls on other users' processes in 0 s: memory.read\n"), 1);
	TEST_EQ(count("gpu.renew on process 42 by uid 1002"), 20);
	TEST_EQ(count("uid 1002: 80 more calls on other users' processes in 0 s: gpu.renew gpu.resume\n"), 1);
	names_deinit(&n);
}

static void who_takes_control_from_whom(void)
{
	static struct clients all;
	const uint64_t now = 1000 * SECOND_NS;
	struct client loser = of(11, 1001), taker = of(12, 0);
	struct judge_used m = { .worker = 7, .session = 3, .pid = 42, .uid = 1001,
				.used = { .kind = IPC_USE_TAKEN_FORCED, .client = 12, .from = 11, .idle_ms = 70 } };
	struct names n = { 0 };
	struct uses u = { 0 };

	let_in(&n, &all, &loser, 7, true);
	let_in(&n, &all, &taker, 7, true);
	log_begin();
	uses_record(&u, &n, &all, &m, now);
	/* The frontend says that it has left, and its connection is open. */
	m.used.kind = IPC_USE_TAKEN_LEFT;
	uses_record(&u, &n, &all, &m, now);
	clients_close(&all, &loser);
	uses_record(&u, &n, &all, &m, now);
	uses_release(&u, names_find(&n, 12, 7), now);
	log_end();
	TEST_EQ(count("control of process 42 taken from uid 1001 (pid 111) by uid 0 (pid 112): forced\n"), 1);
	TEST_EQ(count(": left\n"), 1);
	TEST_EQ(count("session.detach on process 42 by uid 0 (pid 112)\n"), 1);
	names_judged(&n, 12, 42, IPC_RIGHT_NONE);
	TEST_EQ(names_find(&n, 12, 7)->rights, IPC_RIGHT_NONE);
	TEST_EQ(names_find(&n, 11, 7)->rights, IPC_RIGHT_CONTROL);
	names_deinit(&n);
}

static void uses_of_records(void)
{
	static struct clients all;
	const uint64_t now = 1000 * SECOND_NS;
	struct client admin = of(21, 0);
	struct judge_record_used m = { .worker = 9, .used = { .kind = IPC_USE_CONTROL, .uid = 1001, .more = 2,
							     .method = "cores.remove", .record = "20261124T1-ab" } };
	struct names n = { 0 };
	struct uses u = { 0 };

	let_in(&n, &all, &admin, 9, true);
	log_begin();
	uses_record_store(&u, &n, &m, now);
	memcpy(m.used.record, "x\ny", 4);
	uses_record_store(&u, &n, &m, now);
	m.worker = 10;
	uses_record_store(&u, &n, &m, now);
	log_end();
	TEST_EQ(count("cores.remove on record 20261124T1-ab of uid 1001 by uid 0 (pid 121)\n"), 1);
	TEST_EQ(count("cores.remove on record ? of uid 1001 by uid 0 (pid 121)\n"), 1);
	TEST_EQ(count("cores.remove on record ? of uid 1001 by uid -1 (pid 0)\n"), 1);
	names_deinit(&n);
}

TEST_SUITE(judge_uses, TEST(who_takes_control_from_whom), TEST(uses_of_records),
	   TEST(those_who_have_gone_are_known_for_a_while), TEST(own_floods_hide_nobody));
