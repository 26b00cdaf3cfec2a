/* SPDX-License-Identifier: MIT */
/* Who is told to have done something: names of clients, also of such that have gone, and two budgets. */
#include <fcntl.h>
#include <stdio.h>
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
	if (connected) {
		k->next = all->buckets[k->id % CLIENTS_BUCKETS];
		all->buckets[k->id % CLIENTS_BUCKETS] = k;
	}
	names_add(n, all, k, worker);
}

static void those_who_have_gone_are_known_for_a_while(void)
{
	static struct clients all;
	struct client stays = of(1, 1001), comes;
	struct names n = { 0 };

	let_in(&n, &all, &stays, 7, true);
	names_add(&n, &all, &stays, 7);
	names_add(&n, &all, &stays, 8);
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
	names_worker_ended(&n, 7);
	TEST_EQ(n.n, 1);
	CU_ASSERT_PTR_NOT_NULL(names_find(&n, 1, 8));
	names_deinit(&n);
}

/* ------------------------------------------------------------------ records ------------------ */

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
	uses_record(u, n, &m, now);
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
	TEST_EQ(count("gpu.renew"), 20);
	TEST_EQ(count("memory.read on process 42 of uid 1001 by uid 1002 (pid 102), and 5 calls before\n"), 1);
	TEST_EQ(count("gpu.suspend on process 42 by uid 1002 (pid 102)\n"), 1);
	TEST_EQ(count("memory.read on process 42 of uid 1001 by uid -1 (pid 0)\n"), 1);
	TEST_EQ(count("uid 1001: 9800 more calls on its own processes in 10 s\n"), 1);
	TEST_EQ(count(" more calls on "), 1);
	/* Nor is a flood of somebody's calls on others hidden by those on his own. */
	log_begin();
	for (unsigned i = 0; i < 100; i++)
		used(&u, &n, 2, IPC_USE_READ, "memory.read", 0, now + 20 * SECOND_NS);
	uses_due(&u, now + 20 * SECOND_NS, true);
	log_end();
	TEST_EQ(count("memory.read"), 20);
	TEST_EQ(count("uid 1002: 80 more calls on other users' processes"), 1);
	names_deinit(&n);
}

TEST_SUITE(judge_uses, TEST(those_who_have_gone_are_known_for_a_while), TEST(own_floods_hide_nobody));
