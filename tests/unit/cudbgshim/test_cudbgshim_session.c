/* SPDX-License-Identifier: MIT */
/* The record of what was written; the sequences themselves: tests/inferior/test_session.py. */
#include <elf.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "libcudbgshim/src/session.h"
#include "testlib.h"

#define BASE UINT64_C(0x1000)

/* The target: a page of memory, of which every access can be made to fail. */
static struct {
	uint8_t bytes[8192];
	int accesses, fail_at;
	uint64_t bad_addr; /* Writing there fails bad_writes times. */
	int bad_writes;
	uint32_t recorded_before_write;
	struct cudbgshim_undo *undo;
} target;

static bool fails(void)
{
	return ++target.accesses == target.fail_at;
}

static int read_target(void *ctx, uint64_t addr, void *buf, size_t size)
{
	if (fails())
		return -EFAULT;
	memcpy(buf, target.bytes + (addr - BASE), size);
	return 0;
}

static int write_target(void *ctx, uint64_t addr, const void *buf, size_t size)
{
	target.recorded_before_write = target.undo->n_writes;
	if (fails() || (addr == target.bad_addr && target.bad_writes-- > 0))
		return -EIO;
	memcpy(target.bytes + (addr - BASE), buf, size);
	return 0;
}

static const struct cudbgshim_memory memory = { read_target, write_target, NULL };

static struct session_target symbols_at(void)
{
	struct session_target t = { .library = { .base = BASE } };

	for (enum cudbgshim_symbol s = 0; s < CUDBGSHIM_SYM_COUNT; s++)
		t.symbols.addr[s] = BASE + 16 * s;
	t.symbols.addr[CUDBGSHIM_SYM_INJECTION_PATH] = BASE + 4096;
	t.symbols.addr[CUDBGSHIM_SYM_MEMCHECK] = 0;
	return t;
}

static void begin(struct cudbgshim_undo *undo)
{
	*undo = (struct cudbgshim_undo){ .version = CUDBGSHIM_UNDO_VERSION };
	memset(&target, 0, sizeof(target));
	target.undo = undo;
	for (size_t i = 0; i < 4096; i++)
		target.bytes[i] = (uint8_t)i;
}

/* Recorded before it is made; the oldest value comes back; a missing variable is no error. */
static void writes_are_undone(void)
{
	struct session_target t = symbols_at();
	struct cudbgshim_undo undo;
	uint8_t before[sizeof(target.bytes)];

	begin(&undo);
	memcpy(before, target.bytes, sizeof(before));
	TEST_EQ(flags_write(&memory, &t, &undo, CUDBGSHIM_SYM_IPC_FLAG, 1), 0);
	TEST_EQ(target.recorded_before_write, 1);
	TEST_EQ(flags_write(&memory, &t, &undo, CUDBGSHIM_SYM_INTERNAL_ERROR_CODE, UINT64_MAX), 0);
	TEST_EQ(flags_write(&memory, &t, &undo, CUDBGSHIM_SYM_IPC_FLAG, 2), 0);
	TEST_EQ(flags_write(&memory, &t, &undo, CUDBGSHIM_SYM_MEMCHECK, 2), 0);
	TEST_EQ(undo.n_writes, 2);
	TEST_EQ(memcmp(before, target.bytes, sizeof(before)) != 0, true);
	TEST_EQ(flags_restore(&memory, &undo), 0);
	TEST_EQ(undo.n_writes, 0);
	TEST_EQ(memcmp(before, target.bytes, sizeof(before)), 0);
	TEST_EQ(flags_restore(&memory, &undo), 0);
}

static void paths_are_written_and_removed(void)
{
	struct session_target t = symbols_at();
	struct cudbgshim_undo undo;
	char path[5000];

	begin(&undo);
	memset(path, 'x', sizeof(path));
	path[4096] = '\0';
	TEST_EQ(flags_write_path(&memory, &t, &undo, path), -ENAMETOOLONG);
	path[4095] = '\0';
	TEST_EQ(flags_write_path(&memory, &t, &undo, path), 0);
	TEST_STR((char *)target.bytes + 4096, path);
	TEST_EQ(flags_write_path(&memory, &t, &undo, "other"), -EBUSY);
	TEST_EQ(flags_restore(&memory, &undo), 0);
	for (size_t i = 4096; i < sizeof(target.bytes); i++)
		TEST_ROW_EQ(i, target.bytes[i], 0);
}

/* Whichever access fails: what was written is on record. */
static void failures_leave_a_record(void)
{
	for (int at = 1; at <= 6; at++) {
		struct session_target t = symbols_at();
		struct cudbgshim_undo undo;
		uint8_t before[sizeof(target.bytes)];
		int rc = 0;

		begin(&undo);
		memcpy(before, target.bytes, sizeof(before));
		target.fail_at = at;
		for (enum cudbgshim_symbol s = 0; s < 3 && rc == 0; s++)
			rc = flags_write(&memory, &t, &undo, s, 0xabcd);
		TEST_ROW_EQ(at, rc, at % 2 ? -EFAULT : -EIO);
		TEST_ROW_EQ(at, flags_restore(&memory, &undo), 0);
		TEST_ROW_EQ(at, memcmp(before, target.bytes, sizeof(before)), 0);
	}
}

/* The last step of detaching, with a target in which two variables were written; @return of the step. */
static int restore_with(struct cudbgshim_undo *undo, enum cudbgshim_symbol bad, int bad_writes, bool is_gone)
{
	struct cudbgshim_session s = { .o.memory = memory, .undo = undo, .is_gone = is_gone };
	const struct session_step *last = session_detach_steps;

	while (last[1].run)
		last++;
	begin(undo);
	s.target = symbols_at();
	TEST_EQ(flags_write(&memory, &s.target, undo, CUDBGSHIM_SYM_IPC_FLAG, 1), 0);
	TEST_EQ(flags_write(&memory, &s.target, undo, CUDBGSHIM_SYM_INTERNAL_ERROR_CODE, 5), 0);
	flags_set_phase(undo, CUDBGSHIM_PHASE_RELEASED);
	target.bad_addr = s.target.symbols.addr[bad];
	target.bad_writes = bad_writes;
	return last->run(&s);
}

static void what_cannot_be_put_back_stays_on_record(void)
{
	static const enum cudbgshim_symbol bad[] = { CUDBGSHIM_SYM_IPC_FLAG, CUDBGSHIM_SYM_INTERNAL_ERROR_CODE };
	struct cudbgshim_undo undo;
	uint8_t before[sizeof(target.bytes)];

	for (size_t i = 0; i < TEST_COUNT(bad); i++) {
		/* A moment later it works. */
		TEST_ROW_EQ(i, restore_with(&undo, bad[i], 1, false), 0);
		TEST_ROW_EQ(i, undo.version, 0);
		memcpy(before, target.bytes, sizeof(before));
		/* For good: a rescue has it in the record, and succeeds where the step did not. */
		TEST_ROW_EQ(i, restore_with(&undo, bad[i], 100, false), -EIO);
		TEST_ROW_EQ(i, undo.version, CUDBGSHIM_UNDO_VERSION);
		TEST_ROW_EQ(i, undo.phase, CUDBGSHIM_PHASE_RELEASED);
		TEST_ROW_EQ(i, undo.n_writes, i + 1);
		target.bad_writes = 0;
		TEST_ROW_EQ(i, flags_restore(&memory, &undo), 0);
		TEST_ROW_EQ(i, memcmp(before, target.bytes, sizeof(before)), 0);
		/* Nobody is left whom a record could serve. */
		TEST_ROW_EQ(i, restore_with(&undo, bad[i], 100, true), 0);
		TEST_ROW_EQ(i, undo.version, 0);
	}
}

/* A flag that is to be 0 and is on no record is the rescue's, too. */
static void flags_that_cannot_be_cleared_stay_on_record(void)
{
	for (int bad_writes = 1; bad_writes <= 2; bad_writes++) {
		struct cudbgshim_undo undo;
		struct cudbgshim_session s = { .o.memory = memory, .undo = &undo };

		begin(&undo);
		flags_set_phase(&undo, CUDBGSHIM_PHASE_ENGAGED);
		s.target = symbols_at();
		target.bad_addr = s.target.symbols.addr[CUDBGSHIM_SYM_INITIALIZED];
		target.bad_writes = bad_writes;
		for (const struct session_step *step = session_detach_steps; step->run; step++)
			if (!strcmp(step->name, "clear the flags") || !strcmp(step->name, "restore the variables"))
				step->run(&s);
		TEST_ROW_EQ(bad_writes, undo.version, bad_writes == 1 ? 0 : CUDBGSHIM_UNDO_VERSION);
	}
}

/* The record lies in memory that others can write. */
static void forged_records_are_refused(void)
{
	struct cudbgshim_undo undo;
	struct cudbgshim_rescue_options o = { .pid = getpid(), .memory = memory };
	char path[32];

	begin(&undo);
	snprintf(path, sizeof(path), "/proc/%d", (int)getpid());
	o.proc_fd = open(path, O_RDONLY | O_DIRECTORY);
	undo.n_writes = CUDBGSHIM_UNDO_WRITES + 1;
	TEST_EQ(flags_restore(&memory, &undo), -EINVAL);
	TEST_EQ(cudbgshim_rescue(&o, &undo, NULL), -EINVAL);
	undo.n_writes = 0;
	TEST_EQ(cudbgshim_rescue(&o, &undo, NULL), -ESRCH); /* of another process */
	undo.pid = getpid();
	TEST_EQ(cudbgshim_rescue(&o, &undo, NULL), -ESRCH); /* of an older one with that number */
	TEST_EQ(flags_start_time(o.proc_fd, &undo.start_time), 0);
	TEST_EQ(cudbgshim_rescue(&o, &undo, NULL), 0);
	undo.suspended = 2; /* All is undone but what only a new session can do. */
	TEST_EQ(cudbgshim_rescue(&o, &undo, NULL), CUDBGSHIM_RESCUE_SUSPENDED);
	TEST_EQ(undo.suspended, 2);
	undo.version = 0;
	TEST_EQ(cudbgshim_rescue(&o, &undo, NULL), 0);
	undo.version = 99;
	TEST_EQ(cudbgshim_rescue(&o, &undo, NULL), -EINVAL);
	close(o.proc_fd);
}

/*
 * Another thread than the first one may execute a program: it has the pid and the start time of the one
 * before, and other random bytes.
 */
static void another_program_is_left_alone(void)
{
	struct session_target t = symbols_at();
	struct cudbgshim_undo undo;
	struct cudbgshim_rescue_options o = { .pid = getpid(), .memory = memory };
	uint8_t before[sizeof(target.bytes)];
	char path[32];

	begin(&undo);
	snprintf(path, sizeof(path), "/proc/%d", (int)getpid());
	o.proc_fd = open(path, O_RDONLY | O_DIRECTORY);
	undo.pid = getpid();
	TEST_EQ(flags_start_time(o.proc_fd, &undo.start_time), 0);
	TEST_EQ(flags_write(&memory, &t, &undo, CUDBGSHIM_SYM_IPC_FLAG, 1), 0);
	undo.random_addr = BASE + 64;
	memcpy(undo.random, target.bytes + 64, sizeof(undo.random));
	target.bytes[64 + 15]++;
	memcpy(before, target.bytes, sizeof(before));
	TEST_EQ(cudbgshim_rescue(&o, &undo, NULL), -ESTALE);
	TEST_EQ(memcmp(before, target.bytes, sizeof(before)), 0);
	target.bytes[64 + 15]--;
	TEST_EQ(cudbgshim_rescue(&o, &undo, NULL), 0);
	TEST_EQ(undo.n_writes, 0);
	TEST_EQ(target.bytes[0], 0);
	close(o.proc_fd);
}

/* What is noted of this process is what the kernel gave it, and no other's. */
static int read_own(void *ctx, uint64_t addr, void *buf, size_t size)
{
	(void)ctx;
	memcpy(buf, (const void *)(uintptr_t)addr, size);
	return 0;
}

static void programs_are_known_by_their_random_bytes(void)
{
	const struct cudbgshim_memory own = { .read = read_own };
	struct cudbgshim_undo undo = { .version = CUDBGSHIM_UNDO_VERSION };
	int proc_fd = open("/proc/self", O_RDONLY | O_DIRECTORY);

	flags_note_program(&own, &cudbgshim_tracer_direct, proc_fd, &undo);
	TEST_EQ(undo.random_addr, getauxval(AT_RANDOM));
	TEST_EQ(memcmp(undo.random, (const void *)getauxval(AT_RANDOM), sizeof(undo.random)), 0);
	TEST_EQ(flags_check_program(&own, &undo), 0);
	undo.random[0]++;
	TEST_EQ(flags_check_program(&own, &undo), -ESTALE);
	close(proc_fd);
}

/* The next session resumes what was left suspended in its program, and nothing of the one before. */
static void a_record_is_of_one_program(void)
{
	struct cudbgshim_undo undo = { 0 };
	struct cudbgshim_session_options o = { .pid = getpid(), .memory.read = read_own, .undo = &undo,
					       .proc_fd = open("/proc/self", O_RDONLY | O_DIRECTORY),
					       .is_left_suspended = true };
	struct cudbgshim_session *s = NULL;

	flags_note_program(&o.memory, &cudbgshim_tracer_direct, o.proc_fd, &undo);
	undo.random[0]++;
	TEST_EQ(cudbgshim_session_create(&o, &s), -ESTALE);
	TEST_EQ(undo.version, 0);
	TEST_EQ(undo.suspended, 0);
	undo.random[0]--;
	TEST_EQ_FATAL(cudbgshim_session_create(&o, &s), 0);
	TEST_EQ(cudbgshim_session_runs(s), false);
	cudbgshim_session_destroy(s);
	/* Who suspends nothing asks for nobody else's record. */
	undo = (struct cudbgshim_undo){ .random_addr = undo.random_addr };
	o.is_left_suspended = false;
	TEST_EQ_FATAL(cudbgshim_session_create(&o, &s), 0);
	TEST_EQ(undo.random_addr, getauxval(AT_RANDOM));
	cudbgshim_session_destroy(s);
	close(o.proc_fd);
}

/* Its rescue would take the process for another one and undo nothing. */
static void nothing_begins_without_the_start_time(void)
{
	struct cudbgshim_undo undo = { 0 };
	struct cudbgshim_session_options o = { .pid = getpid(), .memory.read = read_own, .undo = &undo,
					       .proc_fd = open("/proc/self/fd", O_RDONLY | O_DIRECTORY) };
	struct cudbgshim_session *s = NULL;

	TEST_EQ(cudbgshim_session_create(&o, &s), -ESRCH);
	TEST_EQ(undo.version, 0);
	CU_ASSERT_PTR_NULL(s);
	close(o.proc_fd);
}

static int run_step(struct cudbgshim_session *s, const char *name)
{
	const struct session_step *step = session_detach_steps;

	while (strcmp(step->name, name))
		step++;
	return step->run(s);
}

/* Nobody can resume it without the API: the engine is not told to let go, and the rescue finds all as it was. */
static void a_suspended_gpu_is_left_to_a_rescue(void)
{
	struct cudbgshim_undo undo;
	struct cudbgshim_session s = { .o.memory = memory, .undo = &undo };

	begin(&undo);
	s.target = symbols_at();
	flags_set_phase(&undo, CUDBGSHIM_PHASE_ENGAGED);
	target.bytes[16 * CUDBGSHIM_SYM_USE_EXTERNAL_DEBUGGER] = 1;
	session_note_suspended(&s, 5);
	TEST_EQ(cudbgshim_session_runs(&s), false);
	TEST_EQ(run_step(&s, "let suspended GPUs run"), 0);
	TEST_EQ(run_step(&s, "call cudbgApiDetach"), 0);
	TEST_EQ(run_step(&s, "restore the variables"), -ETIMEDOUT);
	TEST_EQ(undo.version, CUDBGSHIM_UNDO_VERSION);
	TEST_EQ(undo.suspended, 5);
	session_note_suspended(&s, 0);
	TEST_EQ(cudbgshim_session_runs(&s), true);
}

static bool has_steps(const struct session_step *steps, bool is_attach)
{
	size_t n = 0;

	for (; steps->run; steps++, n++) {
		/* Only an armed session may wait for ever. */
		if (!steps->timeout_ms && strcmp(steps->name, "wait for cuInit"))
			return false;
		for (const struct session_step *other = steps + 1; other->run; other++)
			if (!strcmp(steps->name, other->name))
				return false;
	}
	return n >= (is_attach ? 15 : 10);
}

static void steps_and_outcomes_have_names(void)
{
	TEST_EQ(has_steps(session_attach_steps, true), true);
	TEST_EQ(has_steps(session_detach_steps, false), true);
	for (enum cudbgshim_outcome o = 0; o < CUDBGSHIM_OUTCOME_COUNT; o++)
		CU_ASSERT_PTR_NOT_NULL(cudbgshim_outcome_name(o));
	CU_ASSERT_PTR_NULL(cudbgshim_outcome_name(CUDBGSHIM_OUTCOME_COUNT));
	CU_ASSERT_PTR_NULL(cudbgshim_outcome_hint(CUDBGSHIM_OUTCOME_COUNT));
	CU_ASSERT_PTR_NOT_NULL(cudbgshim_outcome_hint(CUDBGSHIM_OUTCOME_TOO_OLD));
}

/* ------------------------------------------------------------------ labels ------------------- */

ssize_t __wrap_getrandom(void *buf, size_t size, unsigned flags);

/* What is drawn, one after the other; the last one again and again. */
static struct {
	const uint32_t *values;
	size_t n, next;
} drawn;

ssize_t __wrap_getrandom(void *buf, size_t size, unsigned flags)
{
	TEST_EQ(size, sizeof(uint32_t));
	memcpy(buf, &drawn.values[drawn.next], size);
	drawn.next += drawn.next + 1 < drawn.n;
	return (ssize_t)size;
}

/* As somebody who takes names in advance, and need not even listen. */
static int squat(uint32_t label)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "nv_target_process_%u_0", label);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	TEST_EQ_FATAL(bind(fd, (struct sockaddr *)&a,
			   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)), 0);
	return fd;
}

static int choose(struct cudbgshim_session *s, const uint32_t *values, size_t n)
{
	drawn.values = values;
	drawn.n = n;
	drawn.next = 0;
	return label_choose(s);
}

static void labels_are_random_and_nobody_has_them(void)
{
	const uint32_t pid = (uint32_t)getpid();
	const uint32_t first[] = { 0, 0x80000000, 0x80000000 | pid }, second[] = { pid, pid + 1 };
	struct cudbgshim_session s = { 0 };
	auto_close int squatter = -1;

	TEST_EQ(choose(&s, first, 3), 0);
	TEST_EQ(s.o.label, pid);
	squatter = squat(pid);
	s.o.label = 0;
	TEST_EQ(choose(&s, second, 2), 0);
	TEST_EQ(s.o.label, pid + 1);
	/* The caller's own choice. */
	s.o.label = pid;
	TEST_EQ(choose(&s, second, 2), 0);
	TEST_EQ(s.o.label, pid);
}

static void no_label_is_tried_for_ever(void)
{
	const uint32_t pid = (uint32_t)getpid(), held[] = { pid, pid, pid, pid, pid, pid + 1 };
	struct cudbgshim_session s = { 0 };
	auto_close int squatter = squat(pid);

	TEST_EQ(choose(&s, held + 1, 5), 0);
	TEST_EQ(s.o.label, pid + 1);
	s.o.label = 0;
	TEST_EQ(choose(&s, held, 6), -EADDRINUSE);
	TEST_EQ(s.o.label, 0);
	TEST_EQ(s.err.outcome, CUDBGSHIM_OUTCOME_NAME);
	TEST_STR(s.err.text, "another user holds the name of the debug engine's socket");
}

static int connector_answer;

static int answer_claim(void *user, uint32_t label)
{
	*(uint32_t *)user = label;
	return connector_answer;
}

static void whoever_connects_is_asked(void)
{
	const uint32_t values[] = { 7 };
	uint32_t asked = 0;
	const struct cudbgshim_connector connector = { .claim = answer_claim, .user = &asked };
	struct cudbgshim_session s = { .o.connector = &connector };

	TEST_EQ(choose(&s, values, 1), 0);
	TEST_EQ(asked, 7);
	connector_answer = -ENOTCONN;
	s.o.label = 0;
	TEST_EQ(choose(&s, values, 1), -ENOTCONN);
	TEST_EQ(s.err.outcome, CUDBGSHIM_OUTCOME_CONNECT);
	TEST_STR(s.err.text, "the connect broker is not running");
}

TEST_SUITE(cudbgshim_session, TEST(writes_are_undone), TEST(paths_are_written_and_removed),
	   TEST(failures_leave_a_record),
	   TEST(what_cannot_be_put_back_stays_on_record), TEST(flags_that_cannot_be_cleared_stay_on_record),
	   TEST(a_suspended_gpu_is_left_to_a_rescue), TEST(forged_records_are_refused),
	   TEST(another_program_is_left_alone), TEST(programs_are_known_by_their_random_bytes),
	   TEST(a_record_is_of_one_program), TEST(nothing_begins_without_the_start_time),
	   TEST(steps_and_outcomes_have_names), TEST(labels_are_random_and_nobody_has_them),
	   TEST(no_label_is_tried_for_ever), TEST(whoever_connects_is_asked));
