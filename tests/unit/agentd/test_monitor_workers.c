/* SPDX-License-Identifier: MIT */
/* How much the monitor lets one child say before it looks at the others, and when it has targets looked at. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agentd/ipc/child.h"
#include "agentd/ipc/link.h"
#include "agentd/monitor/repairs.h"
#include "agentd/monitor/workers.h"
#include "base/fd.h"
#include "testlib.h"

/* More than anybody may say at once. */
#define FOR_EVER  10000
/* What a dead child has said may be read to the end, but that end comes. */
#define WORDS_MAX 1024

/* A child that says the next thing as soon as one is heard: its socket is never empty. */
struct flood {
	struct workers workers;
	int said_fd; /* The child's end of its guard socket. */
	unsigned heard;
};

static void say(struct flood *f)
{
	const struct ipc_guard m = { .type = IPC_DISARM };

	TEST_EQ(send(f->said_fd, &m, sizeof(m), 0), sizeof(m));
}

static int hear(void *ctx, struct worker *k, const union ipc_child_message *m, size_t size, int *take_fd)
{
	struct flood *f = ctx;

	if (++f->heard < FOR_EVER)
		say(f);
	return 0;
}

static struct worker *begin(struct flood *f)
{
	static const struct config config = { 0 };
	static const struct programs programs;
	const struct workers_setup setup = { .config = &config, .programs = &programs, .records = "/nonexistent",
					     .ask = hear, .ctx = f };
	struct worker *k = calloc(1, sizeof(*k));
	int pair[2];

	CU_ASSERT_PTR_NOT_NULL_FATAL(k);
	TEST_EQ_FATAL(fd_socketpair(SOCK_NONBLOCK, pair), 0);
	workers_init(&f->workers, &setup);
	*k = (struct worker){ .kind = IPC_KIND_INSPECT, .pid = getpid(), .guard_fd = pair[0], .target_pidfd = -1,
			      .undo_fd = -1 };
	f->workers.first = k;
	f->said_fd = pair[1];
	f->heard = 0;
	say(f);
	return k;
}

static void a_child_has_its_turn(void)
{
	struct flood f;
	struct worker *k = begin(&f);

	workers_guard(&f.workers, k);
	TEST_EQ(f.heard, IPC_TURN);
	workers_guard(&f.workers, k);
	TEST_EQ(f.heard, 2 * IPC_TURN);
	workers_deinit(&f.workers);
	close(f.said_fd);
}

/* It has left children behind, which have its socket. */
static void a_dead_child_has_its_last_word(void)
{
	struct ipc_ended ended;
	struct flood f;
	const struct worker *k = begin(&f);

	CU_ASSERT_TRUE(workers_reaped(&f.workers, k->pid, 0, &ended));
	TEST_EQ(f.heard, WORDS_MAX);
	CU_ASSERT_PTR_NULL(f.workers.first);
	workers_deinit(&f.workers);
	close(f.said_fd);
}

/* What a session worker says by its exit status: somebody may wait in its target. */
#define LOOK (IPC_EXIT_LOOK << 8)

static struct worker *add_session(struct flood *f, pid_t pid)
{
	struct worker *k = calloc(1, sizeof(*k));

	CU_ASSERT_PTR_NOT_NULL_FATAL(k);
	*k = (struct worker){ .next = f->workers.first, .kind = IPC_KIND_SESSION, .pid = pid, .guard_fd = -1,
			      .target = getpid(), .target_pidfd = pidfd_open(getpid(), 0), .undo_fd = -1 };
	CU_ASSERT_TRUE_FATAL(k->target_pidfd >= 0);
	f->workers.first = k;
	return k;
}

static void end_session(struct flood *f, pid_t pid, int wait_status)
{
	struct ipc_ended ended;

	add_session(f, pid);
	CU_ASSERT_TRUE(workers_reaped(&f->workers, pid, wait_status, &ended));
}

static void init(struct flood *f)
{
	static const struct config config = { .kfd_device = "/nonexistent", .kfd_sysfs = "/nonexistent",
					      .cuda_library = "none" };
	static const struct programs programs = { .path = { [PROGRAM_HEIR] = (char *)"/bin/true" } };
	const struct workers_setup setup = { .config = &config, .programs = &programs, .records = "/nonexistent" };

	*f = (struct flood){ 0 };
	workers_init(&f->workers, &setup);
}

static void done(struct flood *f)
{
	workers_deinit(&f->workers);
	while (wait(NULL) > 0)
		;
}

/* Clients that come and go do not have it looked at each time, nor put it off for ever. */
static void one_look_is_for_all_who_ended(void)
{
	struct flood f;
	uint64_t at;

	init(&f);
	end_session(&f, 1, LOOK);
	at = workers_deadlines(&f.workers);
	CU_ASSERT_TRUE(at != 0);
	end_session(&f, 2, LOOK);
	TEST_EQ(workers_deadlines(&f.workers), at);
	CU_ASSERT_PTR_NULL(f.workers.rescues.first);
	f.workers.looks->look_at = 1;
	TEST_EQ(workers_deadlines(&f.workers), 0);
	CU_ASSERT_PTR_NOT_NULL(f.workers.rescues.first);
	CU_ASSERT_PTR_NULL(f.workers.looks);
	done(&f);
}

/* The next worker may fail to attach, and then nobody has looked. */
static void a_look_waits_for_the_next_session_and_is_not_lost(void)
{
	struct ipc_ended ended;
	struct flood f;

	init(&f);
	end_session(&f, 1, LOOK);
	f.workers.looks->look_at = 1;
	add_session(&f, 2);
	TEST_EQ(workers_deadlines(&f.workers), 0);
	CU_ASSERT_PTR_NULL(f.workers.rescues.first);
	CU_ASSERT_TRUE(workers_reaped(&f.workers, 2, 0, &ended));
	workers_deadlines(&f.workers);
	CU_ASSERT_PTR_NOT_NULL(f.workers.rescues.first);
	done(&f);
}

static void a_look_that_is_not_due_is_had_at_the_end(void)
{
	struct flood f;

	init(&f);
	end_session(&f, 1, LOOK);
	workers_look_now(&f.workers);
	CU_ASSERT_PTR_NOT_NULL(f.workers.rescues.first);
	done(&f);
}

static void who_asks_for_none_gets_none(void)
{
	struct flood f;

	init(&f);
	end_session(&f, 1, 0);
	TEST_EQ(workers_deadlines(&f.workers), 0);
	CU_ASSERT_PTR_NULL(f.workers.looks);
	CU_ASSERT_PTR_NULL(f.workers.rescues.first);
	done(&f);
}

/* ---- workers that are no good ---- */

/* A session worker that does nothing, with our end of its guard socket in @p ret_said_fd. */
static struct worker *add_child(struct flood *f, int *ret_said_fd)
{
	int pair[2];
	pid_t pid;
	struct worker *k;

	TEST_EQ_FATAL(fd_socketpair(SOCK_NONBLOCK, pair), 0);
	pid = fork();
	if (pid == 0) {
		pause();
		_exit(0);
	}
	k = add_session(f, pid);
	k->guard_fd = pair[0];
	*ret_said_fd = pair[1];
	return k;
}

/* @return the signal that ended it; 0: it was alive, and is not any more. */
static int end_child(struct flood *f, struct worker *k, int said_fd)
{
	const pid_t pid = k->pid;
	int status = 0;

	/* One that was killed stays so, whatever is sent afterwards (prepare_signal() in kernel/signal.c). */
	kill(pid, SIGUSR1);
	waitpid(pid, &status, 0);
	close(said_fd);
	workers_deinit(&f->workers);
	return WIFSIGNALED(status) && WTERMSIG(status) != SIGUSR1 ? WTERMSIG(status) : 0;
}

static int refuse(void *ctx, struct worker *k, const union ipc_child_message *m, size_t size, int *take_fd)
{
	return -EPROTO;
}

static void one_that_breaks_the_protocol_is_killed(void)
{
	/* What the monitor does not know, what is longer than any message, and too many descriptors. */
	for (int way = 0; way < 3; way++) {
		char text[sizeof(union ipc_child_message) + 1] = { 0 };
		struct flood f;
		struct worker *k;
		int said;

		init(&f);
		f.workers.setup.ask = refuse;
		k = add_child(&f, &said);
		if (way == 2)
			TEST_EQ(fd_send(said, text, 4, (const int[]){ said, said }, 2), 4);
		else
			TEST_EQ(send(said, text, way ? sizeof(text) : 4, 0), way ? sizeof(text) : 4);
		workers_guard(&f.workers, k);
		CU_ASSERT_TRUE(k->was_killed);
		TEST_EQ(k->guard_fd, -1);
		TEST_ROW_EQ(way, end_child(&f, k, said), SIGKILL);
	}
}

/* One that only exits is not killed on its way: its exit status says whether somebody waits in its target. */
static void one_that_says_no_more_is_left_alone(void)
{
	struct flood f;
	struct worker *k;
	int said, other;

	init(&f);
	k = add_child(&f, &said);
	other = dup(said);
	workers_guard(&f.workers, k);
	CU_ASSERT_TRUE(k->guard_fd >= 0);
	shutdown(said, SHUT_RDWR);
	workers_guard(&f.workers, k);
	CU_ASSERT_FALSE(k->was_killed);
	TEST_EQ(k->guard_fd, -1);
	close(other);
	TEST_EQ(end_child(&f, k, said), 0);
}

static void one_that_passes_its_deadline_is_killed(void)
{
	for (int late = 0; late < 2; late++) {
		struct flood f;
		struct worker *k;
		int said;

		init(&f);
		k = add_child(&f, &said);
		CU_ASSERT_TRUE(workers_arm(k, 60000));
		if (late)
			k->kill_at = 1;
		CU_ASSERT_TRUE((workers_deadlines(&f.workers) == 0) == !!late);
		TEST_ROW_EQ(late, k->how, late ? IPC_HOW_STUCK : 0);
		workers_disarm(k);
		TEST_EQ(workers_deadlines(&f.workers), 0);
		TEST_ROW_EQ(late, end_child(&f, k, said), late ? SIGKILL : 0);
	}
}

/* Nobody can ask for a deadline that never comes. */
static void no_deadline_is_far_away(void)
{
	struct worker k = { 0 };

	CU_ASSERT_TRUE(workers_arm(&k, 10 * WORKERS_TIMEOUT_MS_MAX));
	k.kill_at = 0;
	CU_ASSERT_FALSE(workers_arm(&k, 10 * WORKERS_TIMEOUT_MS_MAX + 1));
	CU_ASSERT_FALSE(workers_arm(&k, UINT32_MAX));
	TEST_EQ(k.kill_at, 0);
}

/* As the parent sees it; nothing ends a stop but whoever made it, or this. */
static void one_that_is_stopped_is_killed(void)
{
	for (int goes_on = 0; goes_on < 2; goes_on++) {
		struct flood f;
		struct worker *k;
		int said;

		init(&f);
		k = add_child(&f, &said);
		workers_paused(&f.workers, k->pid, SIGSTOP << 8 | 0x7f);
		TEST_EQ(k->stop_signal, SIGSTOP);
		CU_ASSERT_TRUE(workers_deadlines(&f.workers) > 0);
		k->stop_end = 1;
		if (goes_on) {
			workers_paused(&f.workers, k->pid, 0xffff);
			TEST_EQ(k->stop_end, 0);
		}
		TEST_EQ(workers_deadlines(&f.workers), 0);
		TEST_ROW_EQ(goes_on, end_child(&f, k, said), goes_on ? 0 : SIGKILL);
	}
}

/* A memory file as the record of a worker; @p owes: it is not empty. */
static int make_record(bool owes)
{
	int fd = memfd_create("record", MFD_CLOEXEC);

	TEST_EQ_FATAL(ftruncate(fd, 4096), 0);
	if (owes)
		TEST_EQ(pwrite(fd, "\1", 1, 0), 1);
	return fd;
}

/* Whoever has died may have left something, record or not; one that ended well has what it wrote down. */
static void what_a_dead_worker_owes_is_given(void)
{
	static const struct {
		int wait_status;
		enum ipc_how how;
		bool owes, rescued;
	} rows[] = {
		{ 0, IPC_HOW_CLEAN, false, false },	  { 0, IPC_HOW_CLEAN, true, true },
		{ SIGKILL, IPC_HOW_CLEAN, false, true },  { SIGKILL, IPC_HOW_CLEAN, true, true },
		{ 1 << 8, IPC_HOW_CLEAN, false, true },	  { SIGKILL, IPC_HOW_STUCK, false, true },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct ipc_ended ended;
		struct worker *k;
		struct flood f;

		init(&f);
		k = add_session(&f, 1);
		k->how = rows[i].how;
		k->undo_fd = make_record(rows[i].owes);
		CU_ASSERT_TRUE(workers_reaped(&f.workers, 1, rows[i].wait_status, &ended));
		TEST_ROW_EQ(i, f.workers.rescues.first != NULL, rows[i].rescued);
		TEST_ROW_EQ(i, ended.how, rows[i].how == IPC_HOW_STUCK ? IPC_HOW_STUCK :
					  rows[i].wait_status	       ? IPC_HOW_DIED : IPC_HOW_CLEAN);
		done(&f);
	}
}

/* All programs of the agent are true(1). */
static void use_true(struct flood *f, struct programs *programs)
{
	for (size_t i = 0; i < PROGRAM_COUNT; i++) {
		programs->path[i] = (char *)"/bin/true";
		TEST_EQ_FATAL(stat(programs->path[i], &programs->at_start[i]), 0);
	}
	f->workers.setup.programs = programs;
}

/* @return how many there were. */
static int remove_records(const char *directory)
{
	DIR *dir = opendir(directory);
	struct dirent *e;
	int n = 0;

	while ((e = readdir(dir)))
		n += e->d_name[0] != '.' && unlinkat(dirfd(dir), e->d_name, 0) == 0;
	closedir(dir);
	TEST_EQ(rmdir(directory), 0);
	return n;
}

/* A worker is killed whose rescue leaves a GPU suspended.  @return whether somebody is started to repair that. */
static bool is_repaired(bool left)
{
	const uint64_t suspended = 1, nothing = 0;
	struct programs programs;
	struct ipc_ended ended;
	struct worker *k;
	struct flood f;
	bool repaired;
	int status, undo;

	init(&f);
	use_true(&f, &programs);
	k = add_session(&f, 1);
	k->undo_fd = undo = make_record(true);
	CU_ASSERT_TRUE(workers_reaped(&f.workers, 1, SIGKILL, &ended));
	CU_ASSERT_PTR_NOT_NULL_FATAL(f.workers.rescues.first);
	if (left)
		workers_leave(&f.workers);
	TEST_EQ(pwrite(undo, &suspended, sizeof(suspended), IPC_UNDO_SUSPENDED), sizeof(suspended));
	TEST_EQ(pwrite(undo, &nothing, sizeof(nothing), 0), sizeof(nothing));
	CU_ASSERT_FALSE(workers_reaped(&f.workers, wait(&status), 0, &ended));
	repaired = f.workers.first && f.workers.first->kind == IPC_KIND_REPAIR;
	CU_ASSERT_EQUAL(f.workers.first == NULL, !repaired);
	done(&f);
	return repaired;
}

/* Nobody would wait for that at the end, and take the record that says what is left. */
static void a_repair_begins_while_somebody_waits_for_it(void)
{
	CU_ASSERT_TRUE(is_repaired(false));
	CU_ASSERT_FALSE(is_repaired(true));
}

static bool is_repairing(const struct flood *f)
{
	return f->workers.first && f->workers.first->kind == IPC_KIND_REPAIR;
}

static void leave_record(const char *directory, pid_t monitor)
{
	const uint64_t suspended = 1;
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/%d.%d.1", directory, (int)monitor, (int)getpid());
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	TEST_EQ_FATAL(ftruncate(fd, IPC_UNDO_BYTES), 0);
	TEST_EQ(pwrite(fd, &suspended, sizeof(suspended), IPC_UNDO_SUSPENDED), sizeof(suspended));
	close(fd);
}

/* The heir of an agent that was killed is still at work when the next agent has started. */
static void what_an_heir_leaves_is_repaired(void)
{
	char directory[] = "/tmp/gpu-agent-records-XXXXXX";
	struct programs programs;
	struct ipc_ended ended;
	struct flood f;
	int heir, status;

	init(&f);
	use_true(&f, &programs);
	f.workers.setup.records = mkdtemp(directory);
	heir = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	TEST_EQ_FATAL(flock(heir, LOCK_EX | LOCK_NB), 0);
	repairs_begin(&f.workers);
	CU_ASSERT_TRUE(f.workers.repairs_at != 0);
	leave_record(directory, 1);
	repairs_deadline(&f.workers);
	CU_ASSERT_FALSE(is_repairing(&f));
	f.workers.repairs_at = 1;
	CU_ASSERT_TRUE(repairs_deadline(&f.workers) > 1);
	CU_ASSERT_TRUE_FATAL(is_repairing(&f));
	/* It fails: the record is this agent's now, and not looked at again.  When the heir has ended, nothing is. */
	CU_ASSERT_TRUE(workers_reaped(&f.workers, wait(&status), 1 << 8, &ended));
	TEST_EQ(flock(heir, LOCK_UN), 0);
	f.workers.repairs_at = 1;
	TEST_EQ(repairs_deadline(&f.workers), 0);
	CU_ASSERT_FALSE(is_repairing(&f));
	done(&f);
	close(heir);
	TEST_EQ(remove_records(directory), 1);
}

TEST_SUITE(monitor_workers, TEST(one_that_breaks_the_protocol_is_killed), TEST(one_that_says_no_more_is_left_alone),
	   TEST(one_that_passes_its_deadline_is_killed), TEST(no_deadline_is_far_away),
	   TEST(one_that_is_stopped_is_killed), TEST(what_a_dead_worker_owes_is_given),
	   TEST(a_repair_begins_while_somebody_waits_for_it), TEST(what_an_heir_leaves_is_repaired),
	   TEST(a_child_has_its_turn), TEST(a_dead_child_has_its_last_word),
	   TEST(one_look_is_for_all_who_ended), TEST(a_look_waits_for_the_next_session_and_is_not_lost),
	   TEST(a_look_that_is_not_due_is_had_at_the_end), TEST(who_asks_for_none_gets_none));
