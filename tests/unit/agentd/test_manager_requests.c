/* SPDX-License-Identifier: MIT */
/* What each process may ask of the manager, and what it is killed for. */
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agentd/ipc/monitor_judge.h"
#include "agentd/manager/requests.h"
#include "base/fd.h"
#include "testlib.h"

/* @return what comes of one message of the rules process. */
static int ask_as_rules(struct manager *s, struct ipc_link *theirs, const struct ipc_head *head, const void *data,
			bool with_fd)
{
	struct ipc_head h = *head;
	int fd = -1;

	if (with_fd) {
		h.flags = IPC_FLAG_FD;
		TEST_EQ_FATAL(fd_memfd_sealed("test", "text", 4, &fd), 0);
		TEST_EQ_FATAL(ipc_link_send_fd(theirs, &h, data, fd), 0);
	} else {
		TEST_EQ_FATAL(ipc_link_send(theirs, &h, data), 0);
	}
	return requests_read_rules(s);
}

static void rules_ask_for_their_own(void)
{
	static const union {
		struct rules_watch watch;
		struct ipc_hooked hooked;
		struct rules_config config;
	} zero, mine = { .hooked = { .request = 5 } };
	static const struct {
		struct ipc_head head;
		const void *data;
		bool with_fd;
		int want;
	} rows[] = {
		{ { .type = RULES_LOOK }, NULL, false, 0 },
		{ { .type = RULES_LOOK }, &zero, true, -EPROTO },
		{ { .type = RULES_READ, .number = 1 }, NULL, false, 0 },
		{ { .type = RULES_READ }, NULL, false, -EPROTO },
		{ { .type = RULES_READ, .number = INT32_MAX + 1u }, NULL, false, -EPROTO },
		{ { .type = RULES_WATCH, .size = sizeof(zero.watch) }, &zero, false, -EPROTO },
		{ { .type = RULES_WATCH, .size = sizeof(zero.watch) - 1 }, &zero, false, -EPROTO },
		{ { .type = RULES_LET_GO, .number = 3 }, NULL, false, 0 },
		/* Answers that nobody waits for. */
		{ { .type = RULES_CONFIG, .size = sizeof(zero.config) }, &zero, false, -EPROTO },
		{ { .type = RULES_HOOKED, .size = sizeof(zero.hooked) }, &zero, false, -EPROTO },
		{ { .type = RULES_HOOKED, .size = sizeof(zero.hooked) }, &mine, true, 0 },
		{ { .type = RULES_HOOKED, .size = sizeof(zero.hooked) }, &mine, true, -EPROTO },
		/* The monitor's, and nobody's. */
		{ { .type = RULES_FOUND }, NULL, false, -EPROTO },
		{ { .type = 0 }, NULL, false, -EPROTO },
		{ { .type = UINT32_MAX }, NULL, false, -EPROTO },
	};
	struct manager *s = calloc(1, sizeof(*s));
	struct ipc_link theirs;
	int pair[2];

	CU_ASSERT_PTR_NOT_NULL_FATAL(s);
	TEST_EQ_FATAL(fd_socketpair(SOCK_NONBLOCK, pair), 0);
	s->stop_at = 1;
	s->front.box.sock = -1;
	s->monitor.link.fd = -1;
	rules_child_init(&s->rules, "none", NULL);
	ipc_link_init(&s->rules.link, pair[0]);
	ipc_link_init(&theirs, pair[1]);
	rules_child_add_request(&s->rules, 5);
	for (size_t i = 0; i < TEST_COUNT(rows); i++)
		TEST_ROW_EQ(i, ask_as_rules(s, &theirs, &rows[i].head, rows[i].data, rows[i].with_fd), rows[i].want);
	/* Before it has said what it has read it may ask nothing. */
	s->rules.is_fresh = true;
	TEST_EQ(ask_as_rules(s, &theirs, &rows[0].head, NULL, false), -EPROTO);
	TEST_EQ(requests_read_rules(s), -EAGAIN);
	ipc_link_deinit(&theirs);
	TEST_EQ(requests_read_rules(s), -EPIPE);
	rules_child_deinit(&s->rules);
	free(s);
}

static void judge_asks_for_its_own(void)
{
	static union {
		uint32_t type;
		struct judge_hooks hooks;
		struct judge_facts facts;
		struct ipc_note note;
		char longer[sizeof(struct judge_facts) + 1];
	} note = { .note = { .type = IPC_NOTE, .kind = IPC_NOTE_STATUS } },
	  hooks = { .hooks = { .type = JUDGE_HOOKS } },
	  facts = { .facts = { .type = JUDGE_FACTS } }, start = { .type = JUDGE_START },
	  of_front = { .type = IPC_START }, arm = { .type = IPC_ARM };
	const size_t head = offsetof(struct judge_facts, cgroup);
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
		{ &hooks, sizeof(hooks.hooks), false, 0 },
		{ &hooks, sizeof(hooks.hooks) + 1, false, -EPROTO },
		/* For a rules process that has ended. */
		{ &facts, head, false, 0 },
		{ &facts, sizeof(facts.facts), false, 0 },
		{ &facts, head - 1, false, -EPROTO },
		/* The monitor's */
		{ &start, sizeof(struct judge_start), true, -EPROTO },
		/* The frontend's own reach nobody but the judge. */
		{ &of_front, sizeof(struct ipc_start), false, -EPROTO },
		{ &arm, sizeof(arm.note), false, -EPROTO },
		{ &arm, sizeof(uint32_t), false, -EPROTO },
		{ &note, sizeof(note), false, -EMSGSIZE },
	};
	struct manager *s = calloc(1, sizeof(*s));
	int pair[2], memory;

	CU_ASSERT_PTR_NOT_NULL_FATAL(s);
	TEST_EQ_FATAL(fd_socketpair(SOCK_NONBLOCK, pair), 0);
	TEST_EQ_FATAL(fd_memfd_sealed("test", "text", 4, &memory), 0);
	s->stop_at = 1;
	s->monitor.link.fd = -1;
	rules_child_init(&s->rules, "none", NULL);
	s->front.box.sock = pair[0];
	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		TEST_EQ(fd_send(pair[1], rows[i].message, rows[i].size, &memory, rows[i].with_fd) > 0, true);
		TEST_ROW_EQ(i, requests_read_judge(s), rows[i].want);
	}
	TEST_EQ(requests_read_judge(s), -EAGAIN);
	close(pair[1]);
	TEST_EQ(requests_read_judge(s), -EPIPE);
	outbox_forget(&s->front.box);
	close(pair[0]);
	close(memory);
	free(s);
}

static int ask_as_monitor(struct manager *s, struct ipc_link *theirs, uint32_t type, size_t size, const void *data)
{
	const struct ipc_head h = { .type = type, .size = size };

	TEST_EQ_FATAL(ipc_link_send(theirs, &h, data), 0);
	return requests_read_monitor(s);
}

static void monitor_asks_for_its_own(void)
{
	static const union {
		struct rules_found found;
		struct rules_ended ended;
		struct rules_looking looking;
		struct rules_watched watched;
		struct rules_fault fault;
		struct rules_watch watch;
	} zero;
	static const struct {
		uint32_t type;
		size_t size;
		int want;
	} rows[] = {
		{ MONITOR_READY, 0, 0 },
		{ MONITOR_READY, 1, -EPROTO },
		{ MONITOR_PONG, 0, 0 },
		{ MONITOR_OWED, 0, 0 },
		{ MONITOR_REPLACED, 0, 0 },
		/* For a rules process that has ended. */
		{ RULES_HINT, 0, 0 },
		{ RULES_FOUND, sizeof(zero.found), 0 },
		{ RULES_FOUND, sizeof(zero.found) - 1, -EPROTO },
		{ RULES_HELD, sizeof(zero.found), 0 },
		{ RULES_ENDED, sizeof(zero.ended), 0 },
		{ RULES_LOOKING, sizeof(zero.looking), 0 },
		{ RULES_WATCHED, sizeof(zero.watched), 0 },
		/* Without a document there is nothing that a hook could read; the others' faults are told. */
		{ RULES_FAULT, sizeof(zero.fault), 0 },
		/* The other direction's, and nobody's. */
		{ MONITOR_STOP, 0, -EPROTO },
		{ RULES_LET_GO, 0, -EPROTO },
		{ RULES_WATCH, sizeof(zero.watch), -EPROTO },
		{ 0, 0, -EPROTO },
		{ UINT32_MAX, 0, -EPROTO },
	};
	struct manager *s = calloc(1, sizeof(*s));
	struct ipc_link theirs;
	int pair[2];

	CU_ASSERT_PTR_NOT_NULL_FATAL(s);
	TEST_EQ_FATAL(fd_socketpair(SOCK_NONBLOCK, pair), 0);
	s->stop_at = 1;
	s->front.box.sock = -1;
	rules_child_init(&s->rules, "none", NULL);
	ipc_link_init(&s->monitor.link, pair[0]);
	ipc_link_init(&theirs, pair[1]);
	for (size_t i = 0; i < TEST_COUNT(rows); i++)
		TEST_ROW_EQ(i, ask_as_monitor(s, &theirs, rows[i].type, rows[i].size, &zero), rows[i].want);
	TEST_EQ(s->monitor.is_ready, true);
	TEST_EQ(s->replaced, true);
	TEST_EQ(requests_read_monitor(s), -EAGAIN);
	ipc_link_deinit(&theirs);
	TEST_EQ(requests_read_monitor(s), -EPIPE);
	ipc_link_deinit(&s->monitor.link);
	free(s);
}

/* A process id of 0 would stand for this process, and all of its group. */
static void a_monitor_that_was_reaped_is_not_killed(void)
{
	struct manager *s = calloc(1, sizeof(*s));
	int pair[2], status;
	pid_t child;

	CU_ASSERT_PTR_NOT_NULL_FATAL(s);
	TEST_EQ_FATAL(fd_socketpair(SOCK_NONBLOCK, pair), 0);
	ipc_link_init(&s->monitor.link, pair[0]);
	child = fork();
	if (child == 0) {
		setsid();
		manager_kill_monitor(s);
		_exit(s->monitor.link.fd == -1 ? 0 : 1);
	}
	TEST_EQ_FATAL(waitpid(child, &status, 0), child);
	TEST_EQ(status, 0);
	ipc_link_deinit(&s->monitor.link);
	close(pair[1]);
	free(s);
}

TEST_SUITE(manager_requests, TEST(judge_asks_for_its_own), TEST(rules_ask_for_their_own),
	   TEST(monitor_asks_for_its_own), TEST(a_monitor_that_was_reaped_is_not_killed));
