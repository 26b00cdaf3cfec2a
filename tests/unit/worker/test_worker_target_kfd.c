/* SPDX-License-Identifier: MIT */
#include "tests/unit/worker/kernel.h"

#include <unistd.h>

#include <kfdtrap_wave.h>

#include "testlib.h"

/* ------------------------------------------------------------------ queues ------------------- */

static void suspend_and_resume(void)
{
	static const uint32_t asked[] = { 1, 77, 2 };
	struct rpc_queue_result *r;
	size_t n;
	WITH(t);

	k.queue_bits[2] = KFD_NEW_MASK;
	/* The snapshot that precedes makes the new queue old. */
	TEST_EQ(kfd_suspend(&t->t, asked, 3, 0, &arena, &r, &n, &err), 0);
	TEST_EQ(n, 3);
	TEST_EQ(r[0].verdict, RPC_QUEUE_VERDICT_SUSPENDED);
	TEST_EQ(r[1].verdict, RPC_QUEUE_VERDICT_SKIPPED);
	TEST_EQ(r[1].queue_id, 77);
	TEST_EQ(r[2].verdict, RPC_QUEUE_VERDICT_SUSPENDED);
	TEST_EQ(t->t.n_suspended, 2);
	/* A queue of somebody else, or running, is none of our business. */
	TEST_EQ(kfd_resume(&t->t, (uint32_t[]){ 0, 2 }, 2, &arena, &r, &n, &err), 0);
	TEST_EQ(r[0].verdict, RPC_QUEUE_VERDICT_SKIPPED);
	TEST_EQ(r[1].verdict, RPC_QUEUE_VERDICT_RESUMED);
	TEST_EQ(k.suspended[1] && !k.suspended[2], true);
	TEST_EQ(undo_run(&t->t.undo, 0, &err), 0);
	TEST_EQ(k.suspended[1], false);
	TEST_EQ(t->t.undo.n, 0);
	released(t);
}

/* All resumed by hand: nothing is left to undo, and no resume is sent for nothing. */
static void resume_of_all_drops_the_undo(void)
{
	struct rpc_queue_result *r;
	size_t n;
	WITH(t);

	TEST_EQ(kfd_suspend(&t->t, NULL, 0, 0, &arena, &r, &n, &err), 0);
	TEST_EQ(n, 3);
	TEST_EQ(kfd_resume(&t->t, NULL, 0, &arena, &r, &n, &err), 0);
	TEST_EQ(n, 3);
	TEST_EQ(t->t.undo.n, 0);
	k.n_ops = 0;
	TEST_EQ(kfd_resume(&t->t, NULL, 0, &arena, &r, &n, &err), 0);
	TEST_EQ(n, 0);
	TEST_EQ(k.n_ops, 0);
	TEST_EQ(kfd_suspend(&t->t, (uint32_t[]){ 0x40000001 }, 1, 0, &arena, &r, &n, &err) < 0, true);
	TEST_EQ(err.code, RPC_ERROR_INVALID_PARAMS);
	released(t);
}

/* ------------------------------------------------------------------ waves -------------------- */

#define AREA_SIZE 8192u

/* Save areas of this very process, with empty control stacks, and what leads to them. */
static struct {
	_Alignas(8) uint8_t area[3][AREA_SIZE];
	uint64_t counters[2];
	_Alignas(8) uint8_t ring[64];
	struct rpc_queue queues[3];
	struct target_device devices[2];
	struct target_waves_from from;
} node;

static const struct target_waves_from *with_areas(struct target_kfd *t)
{
	memset(&node, 0, sizeof(node));
	for (uint32_t i = 0; i < 2; i++)
		node.devices[i].rpc = (struct rpc_device){ .gpu_id = GPU + i, .arch = "gfx1100",
							   .gfx_target_version = 110000,
							   .units = 1 };
	for (uint32_t i = 0; i < 3; i++) {
		const uint32_t header[4] = { 1024, 0, 1024, 0 };

		memcpy(node.area[i], header, sizeof(header));
		node.queues[i] = (struct rpc_queue){
			.queue_id = i,
			.gpu_id = GPU + i % 2,
			.type = RPC_QUEUE_TYPE_COMPUTE_AQL,
			.read_pointer = (uintptr_t)&node.counters[0],
			.write_pointer = (uintptr_t)&node.counters[1],
			.save_area = (uintptr_t)node.area[i],
			.save_area_bytes = AREA_SIZE,
		};
	}
	node.from = (struct target_waves_from){ node.devices, 2, node.queues, 3, 10000 };
	TEST_EQ_FATAL(memory_open(&t->t.memory, getpid()), 0);
	return &node.from;
}

static bool any_suspended(void)
{
	return k.suspended[0] || k.suspended[1] || k.suspended[2];
}

/* One queue stands still under a lease: the other two stop and run again, it stays as it is. */
static void waves_let_go_what_they_stopped(void)
{
	struct rpc_queue_result *r;
	struct target_waves waves;
	size_t n;
	WITH(t);

	with_areas(t);
	node.queues[1].suspended = true;
	TEST_EQ(kfd_suspend(&t->t, (uint32_t[]){ 1 }, 1, 0, &arena, &r, &n, &err), 0);
	k.n_ops = 0;
	TEST_EQ(kfd_waves(&t->t, &node.from, &arena, &waves, &err), 0);
	k.ops[k.n_ops] = '\0';
	TEST_STR(k.ops, "SR");
	TEST_EQ(waves.n_missing, 0);
	TEST_EQ(waves.n_waves, 0);
	TEST_EQ(waves.budget_exceeded, false);
	TEST_EQ(!k.suspended[0] && k.suspended[1] && !k.suspended[2], true);
	TEST_EQ(t->t.n_suspended, 1);
	TEST_EQ(t->t.undo.n, 1);
	/* All of them: there is nothing to stop. */
	TEST_EQ(kfd_suspend(&t->t, NULL, 0, 0, &arena, &r, &n, &err), 0);
	node.queues[0].suspended = node.queues[2].suspended = true;
	k.n_ops = 0;
	TEST_EQ(kfd_waves(&t->t, &node.from, &arena, &waves, &err), 0);
	TEST_EQ(k.n_ops, 0);
	TEST_EQ(waves.n_missing, 0);
	TEST_EQ(waves.stopped_us, 0);
	released(t);
}

/* Two waves of a workgroup of gfx12.5, of 3072 bytes each; their hardware registers are the highest 512. */
static void states_of_barriers_are_read(void)
{
	enum { TOP = 8000, WAVE = 3072, HWREG = TOP - 512, BLOCK = 14 * 4, CLUSTER = 15 * 4, NAMED = 0x80 };
	static _Alignas(8) uint8_t area[8192];
	const uint32_t stack[] = { 0, 0, 0x80000000, 0x40000000, 0x1000, 0x2000 };
	const uint32_t header[] = { TOP - 2 * WAVE - sizeof(stack), sizeof(stack), TOP, 2 * WAVE };
	struct target_waves waves;
	uint32_t word;
	WITH(t);

	with_areas(t);
	node.devices[0].rpc.gfx_target_version = 120500;
	memset(area, 0, sizeof(area));
	memcpy(area, header, sizeof(header));
	memcpy(area + header[0], stack, sizeof(stack));
	for (uint32_t wave = 0; wave < 2; wave++)
		for (uint32_t i = 0; i < 16; i++) {
			uint8_t *hwreg = area + HWREG - wave * WAVE;

			memcpy(hwreg + NAMED + 4 * i, (word = 0x100 * (wave + 1) + i, &word), 4);
			memcpy(hwreg + BLOCK, (word = 0x30041, &word), 4);
			memcpy(hwreg + CLUSTER, (word = 0x10021, &word), 4);
		}
	node.queues[2].save_area = (uintptr_t)area;
	node.queues[2].save_area_bytes = sizeof(area);
	TEST_EQ(kfd_waves(&t->t, &node.from, &arena, &waves, &err), 0);
	TEST_EQ(waves.n_missing, 0);
	TEST_EQ_FATAL(waves.n_waves, 2);
	for (size_t i = 0; i < 2; i++) {
		TEST_EQ(waves.waves[i].saved.barrier, 0x30041);
		TEST_EQ(waves.waves[i].saved.cluster, 0x10021);
	}
	/* All waves of a workgroup save the same of these: those of the first are read. */
	TEST_EQ(waves.waves[1].saved.named == NULL, true);
	CU_ASSERT_FATAL(waves.waves[0].saved.named != NULL);
	for (uint32_t i = 0; i < 16; i++)
		TEST_ROW_EQ(i, waves.waves[0].saved.named[i], 0x100 + i);
	released(t);
}

/* All stop at once, each device runs again as soon as its own waves are copied. */
static void devices_are_let_go_one_by_one(void)
{
	struct target_waves waves;
	WITH(t);

	with_areas(t);
	k.n_ops = 0;
	TEST_EQ(kfd_waves(&t->t, &node.from, &arena, &waves, &err), 0);
	k.ops[k.n_ops] = '\0';
	TEST_STR(k.ops, "SRR");
	for (size_t i = 0; i < 3; i++)
		TEST_EQ(waves.stops[i].has_stopped_us, true);
	TEST_EQ(waves.stops[0].stopped_us, waves.stops[2].stopped_us);
	TEST_EQ(waves.stops[0].stopped_us <= waves.stops[1].stopped_us, true);
	TEST_EQ(waves.stopped_us, waves.stops[1].stopped_us);
	TEST_EQ(any_suspended(), false);
	TEST_EQ(t->t.undo.n, 0);
	released(t);
}

/* Each way of not seeing a queue's waves is one line, and none costs the other queues. */
static void waves_that_cannot_be_seen_are_missing(void)
{
	static enum rpc_exception is_new[] = { RPC_EXCEPTION_QUEUE_NEW };
	struct target_waves waves;
	WITH(t);

	with_areas(t);
	k.queue_bits[0] = KFD_NEW_MASK;
	node.queues[1].save_area = 16;
	node.area[2][0] = 1;
	TEST_EQ(kfd_waves(&t->t, &node.from, &arena, &waves, &err), 0);
	TEST_EQ_FATAL(waves.n_missing, 3);
	TEST_STR(waves.missing[0], "queue 0: it is being destroyed; its waves are unknown");
	TEST_EQ(waves.stops[0].has_stopped_us, false);
	TEST_EQ(waves.stops[0].has_not_stopped, true);
	TEST_EQ(waves.stops[0].not_stopped, RPC_NOT_STOPPED_ENDING);
	TEST_EQ(waves.stops[1].has_stopped_us, true);
	TEST_EQ(waves.stops[1].has_not_stopped, false);
	TEST_STR(waves.missing[1], "queue 1: its save area is not readable");
	TEST_STR(waves.missing[2], "queue 2: its save area is corrupt: control stack and wave data do not meet");
	TEST_EQ(any_suspended(), false);
	/* A subscriber waits for the news, so the queue stays new. */
	t->subscribed = KFD_NEW_MASK;
	node.queues[0].exceptions = is_new;
	node.queues[0].n_exceptions = 1;
	TEST_EQ(kfd_waves(&t->t, &node.from, &arena, &waves, &err), 0);
	TEST_EQ(waves.stops[0].not_stopped, RPC_NOT_STOPPED_NEW);
	TEST_STR(waves.missing[0], "queue 0: it was just created; its waves are unknown");
	t->subscribed = 0;

	node.queues[0].type = RPC_QUEUE_TYPE_SDMA;
	node.queues[1].save_area = 0;
	node.devices[0].rpc.gfx_target_version = 99;
	k.n_ops = 0;
	TEST_EQ(kfd_waves(&t->t, &node.from, &arena, &waves, &err), 0);
	TEST_EQ_FATAL(waves.n_missing, 2);
	TEST_STR(waves.missing[0], "queue 1: it has no area to save waves in");
	TEST_STR(waves.missing[1], "queue 2: the layout of saved waves of gfx1100 is unknown");
	TEST_EQ(waves.stops[0].has_not_stopped, false);
	TEST_EQ(waves.stops[1].not_stopped, RPC_NOT_STOPPED_NO_SAVE_AREA);
	TEST_EQ(waves.stops[2].not_stopped, RPC_NOT_STOPPED_UNKNOWN_LAYOUT);
	TEST_EQ(k.n_ops, 0);
	released(t);
}

/* Sizes that no hardware has are refused before they cost memory. */
static void huge_control_stacks_are_refused(void)
{
	const uint32_t header[4] = { 64, 2 << 20, 64 + (2 << 20), 0 };
	struct target_waves waves;
	WITH(t);

	with_areas(t);
	node.queues[0].save_area_bytes = UINT32_MAX;
	memcpy(node.area[0], header, sizeof(header));
	TEST_EQ(kfd_waves(&t->t, &node.from, &arena, &waves, &err), 0);
	TEST_EQ_FATAL(waves.n_missing, 1);
	TEST_STR(waves.missing[0], "queue 0: its control stack is larger than any hardware's");
	released(t);
}

static void waves_without_time_or_runtime(void)
{
	struct target_waves waves;
	WITH(t);

	with_areas(t);
	node.from.max_stop_ms = 0;
	TEST_EQ(kfd_waves(&t->t, &node.from, &arena, &waves, &err), 0);
	TEST_EQ(waves.budget_exceeded, true);
	TEST_EQ_FATAL(waves.n_missing, 1);
	TEST_STR(waves.missing[0], "waves: the stop budget of 0 ms was used up with 3 save areas unread");
	TEST_EQ(any_suspended(), false);
	t->t.runtime.state = RPC_RUNTIME_STATE_DISABLED;
	k.n_ops = 0;
	TEST_EQ(kfd_waves(&t->t, &node.from, &arena, &waves, &err), 0);
	TEST_EQ_FATAL(waves.n_missing, 1);
	TEST_STR(waves.missing[0], "waves: the program has not enabled its GPU runtime, although it has queues: its ROCm is "
				   "too old to be debugged (5.2 is, 6.1 is not), or shuts down, or it uses the GPU without ROCm");
	t->t.runtime.state = RPC_RUNTIME_STATE_ERROR;
	TEST_EQ(kfd_waves(&t->t, &node.from, &arena, &waves, &err), 0);
	TEST_EQ_FATAL(waves.n_missing, 1);
	TEST_STR(waves.missing[0], "waves: the driver could not set up debugging on the devices");
	TEST_EQ(k.n_ops, 0);
	released(t);
}

/* ------------------------------------------------------------------ registers of some -------- */

#define WAVES	   3u
#define WAVE_BYTES 1664u /* gfx1100, with as few registers as waves have. */

static size_t n_file_reads;

static ssize_t count_file_reads(int fd, void *buf, size_t size, off_t offset)
{
	n_file_reads++;
	return pread(fd, buf, size, offset);
}

/* Waves of one shape, each a workgroup and at a place of its own: 0x1000, 0x2000... */
static void put_waves(uint8_t *area)
{
	const uint32_t words[4 + WAVES] = { 0, 0, 0x80000000, 0x40000000, 0x20001000, 0x20001000, 0x20001000 };
	const uint32_t end = 1024 + sizeof(words) + WAVES * WAVE_BYTES;
	const uint32_t saved[4] = { 1024, sizeof(words), end, WAVES * WAVE_BYTES };
	const struct kfdtrap_wave_arch *arch = kfdtrap_wave_arch_find(110000);
	struct kfdtrap_wave_layout layout;
	struct kfdtrap_wave_header header;
	struct kfdtrap_wave_iter iter;
	uint32_t at, size;

	memcpy(area, saved, sizeof(saved));
	memcpy(area + 1024, words, sizeof(words));
	TEST_EQ_FATAL(kfdtrap_wave_header_parse(area, AREA_SIZE, &header), KFDTRAP_WAVE_OK);
	kfdtrap_wave_iter_init(&iter, arch, &header, area + 1024, sizeof(words), WAVES);
	for (uint64_t pc = 0x1000; kfdtrap_wave_next(&iter, &layout); pc += 0x1000) {
		TEST_EQ_FATAL(kfdtrap_wave_register_find(arch, &layout, KFDTRAP_WAVE_BANK_SPECIAL, KFDTRAP_WAVE_PC, &at,
							 &size),
			      true);
		memcpy(area + at, &pc, sizeof(pc));
	}
	TEST_EQ_FATAL(iter.n_waves, WAVES);
}

/*
 * Queues stand still for as long as that takes: one call reads the registers of all, and none the packets, which were
 * copied with the headers.  What is read apart goes through the file.
 */
static void registers_of_places_are_read_at_once(void)
{
	const uint64_t kernel_object = 0x7F1234567000;
	struct target_waves waves;
	size_t without;
	WITH(t);

	with_areas(t);
	put_waves(node.area[0]);
	node.counters[1] = 1;
	node.queues[0].ring_base = (uintptr_t)node.ring;
	node.queues[0].ring_bytes = sizeof(node.ring);
	memcpy(node.ring + 32, &kernel_object, sizeof(kernel_object));
	t->t.runtime.ttmp_setup = true;
	t->t.memory.pread = count_file_reads;
	n_file_reads = 0;
	node.from.registers = true;
	TEST_EQ(kfd_waves(&t->t, &node.from, &arena, &waves, &err), 0);
	TEST_EQ(waves.n_missing, 0);
	TEST_EQ(waves.n_waves, WAVES);
	TEST_EQ_FATAL(waves.n_registers, WAVES);
	TEST_EQ(n_file_reads, 0);
	for (size_t i = 0; i < WAVES; i++) {
		TEST_ROW_EQ(i, waves.registers[i].special[0].value, 0x1000 * (i + 1));
		TEST_ROW_EQ(i, waves.registers[i].has_packet, true);
		TEST_ROW_EQ(i, waves.registers[i].packet.kernel_object, kernel_object);
	}
	/* Where the kernel refuses that: one for each wave, and one more if one crosses a boundary of 64 KiB. */
	t->t.memory.pid = 0;
	node.from.registers = false;
	TEST_EQ(kfd_waves(&t->t, &node.from, &arena, &waves, &err), 0);
	without = n_file_reads;
	n_file_reads = 0;
	node.from.registers = true;
	TEST_EQ(kfd_waves(&t->t, &node.from, &arena, &waves, &err), 0);
	TEST_EQ(n_file_reads - without <= WAVES + 1, true);
	released(t);
}

/* ------------------------------------------------------------------ what fails --------------- */

/* A failed SUSPEND may have stopped some queues: all are resumed, and the rest can be shown. */
static void a_failed_stop_is_taken_back(void)
{
	struct target_waves waves;
	WITH(t);

	with_areas(t);
	k.suspended[0] = true;
	k.fail_op = KFDABI_DBG_SUSPEND_QUEUES;
	k.fail_err = EIO;
	TEST_EQ(kfd_waves(&t->t, &node.from, &arena, &waves, &err), 0);
	k.ops[k.n_ops] = '\0';
	TEST_STR(k.ops, "SR");
	TEST_EQ(waves.n_missing, 1);
	TEST_EQ(any_suspended(), false);
	TEST_EQ(t->t.ended, false);
	TEST_EQ(t->t.undo.n, 0);
	/* The process is gone. */
	k.fail_err = ESRCH;
	TEST_EQ(kfd_waves(&t->t, &node.from, &arena, &waves, &err), -ESRCH);
	TEST_EQ(t->t.ended, true);
	released(t);
}

/* Nobody but the kernel can help then, and it does when the session ends. */
static void a_failed_resume_ends_the_session(void)
{
	struct target_waves waves;
	WITH(t);

	with_areas(t);
	k.fail_op = KFDABI_DBG_RESUME_QUEUES;
	k.fail_err = EIO;
	TEST_EQ(kfd_waves(&t->t, &node.from, &arena, &waves, &err) < 0, true);
	TEST_STR(err.op, "KFD RESUME_QUEUES");
	TEST_EQ(t->t.ended, true);
	TEST_EQ(t->t.end_reason, RPC_END_REASON_LOST);
	/* The end of the session tries once more. */
	TEST_EQ(t->t.undo.n, 1);
	TEST_EQ(any_suspended(), true);
	k.fail_err = 0;
	TEST_EQ(undo_run(&t->t.undo, 0, &err), 0);
	TEST_EQ(any_suspended(), false);
	released(t);
}

/* ------------------------------------------------------------------ errors ------------------- */

static void errors_are_translated(void)
{
	static const struct {
		int err;
		int32_t code;
	} rows[] = {
		{ EBUSY, RPC_ERROR_BUSY },	      { ENODEV, RPC_ERROR_NOT_DEBUGGABLE },
		{ EOPNOTSUPP, RPC_ERROR_NOT_DEBUGGABLE }, { ENOTTY, RPC_ERROR_NOT_DEBUGGABLE },
		{ ETIME, RPC_ERROR_TIMEOUT },	      { EIO, RPC_ERROR_FAILED },
		{ EINVAL, RPC_ERROR_FAILED },	      { EPERM, RPC_ERROR_NOT_DEBUGGABLE },
		{ EACCES, RPC_ERROR_FAILED },
	};
	WITH(t);

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		err = (struct agent_err){ 0 };
		TEST_ROW_EQ(i, kfd_hw_error(t, -rows[i].err, "op", &err), -rows[i].err);
		TEST_ROW_EQ(i, err.code, rows[i].code);
		TEST_ROW_EQ(i, err.hint[0] != '\0', rows[i].err != EFAULT);
		TEST_ROW_EQ(i, kfd_error(t, -rows[i].err, "op", &err), -rows[i].err);
		TEST_ROW_EQ(i, err.code,
			    rows[i].err == ETIME ? RPC_ERROR_TIMEOUT : RPC_ERROR_FAILED);
		TEST_ROW_EQ(i, err.message[0] != '\0', true);
		TEST_ROW_EQ(i, t->t.ended, false);
	}
	released(t);
}

static void enable_errors_name_the_cause(void)
{
	static const struct {
		int err;
		int32_t code;
	} rows[] = {
		{ EALREADY, RPC_ERROR_BUSY },	      { ENODEV, RPC_ERROR_NOT_DEBUGGABLE },
		{ EBUSY, RPC_ERROR_BUSY },	      { EINVAL, RPC_ERROR_NOT_DEBUGGABLE },
		{ EPERM, RPC_ERROR_NOT_PERMITTED },   { ENOMEM, RPC_ERROR_FAILED },
	};
	WITH(t);

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		err = (struct agent_err){ 0 };
		kfd_enable_error(t, -rows[i].err, &err);
		TEST_ROW_EQ(i, err.code, rows[i].code);
		TEST_ROW_EQ(i, err.hint[0] != '\0', true);
	}
	released(t);
}

/* EINVAL because somebody disabled the session: the session is over, with that reason. */
static void a_lost_session_is_noticed(void)
{
	struct rpc_queue *queues;
	size_t n;
	WITH(t);

	k.enabled = false;
	TEST_EQ(kfd_queues(&t->t, &arena, &queues, &n, &err), -ESRCH);
	TEST_EQ(err.code, RPC_ERROR_SESSION_ENDED);
	TEST_EQ(t->t.ended, true);
	TEST_EQ(t->t.end_reason, RPC_END_REASON_LOST);
	released(t);
}

/* libdrm's table: comments, a version, tabs, the same device in several revisions, a last line without its end. */
static void names_are_those_of_libdrm(void)
{
	static const char table[] = "# List of AMDGPU IDs\n\n1.0.0\n740F,\t02,\tAMD Instinct MI210\r\n"
				    "73BF,\tC0,\tAMD Radeon RX 6900 XT\n73BF,\tC1,\tAMD Radeon RX 6800 XT\n"
				    "no,\tnumber,\there\n74A1,\n,,\n74A1,\t00,\tAMD Instinct MI300X";
	static const struct {
		uint32_t device, revision;
		const char *name;
	} rows[] = { { 0x740f, 2, "AMD Instinct MI210" },
		     { 0x73bf, 0xc0, "AMD Radeon RX 6900 XT" },
		     { 0x73bf, 0xc1, "AMD Radeon RX 6800 XT" },
		     { 0x74a1, 0, "AMD Instinct MI300X" } };
	auto_rpc_arena struct rpc_arena arena;

	rpc_arena_init(&arena, 0);
	for (size_t i = 0; i < TEST_COUNT(rows); i++)
		TEST_STR(kfd_name_in_table(&arena, table, rows[i].device, rows[i].revision), rows[i].name);
	CU_ASSERT_PTR_NULL(kfd_name_in_table(&arena, table, 0x740f, 3));
	CU_ASSERT_PTR_NULL(kfd_name_in_table(&arena, table, 0x1234, 2));
	CU_ASSERT_PTR_NULL(kfd_name_in_table(&arena, "", 0x740f, 2));
}

TEST_SUITE(worker_target_kfd, TEST(suspend_and_resume), TEST(resume_of_all_drops_the_undo),
	   TEST(waves_let_go_what_they_stopped), TEST(devices_are_let_go_one_by_one),
	   TEST(states_of_barriers_are_read),
	   TEST(waves_that_cannot_be_seen_are_missing), TEST(huge_control_stacks_are_refused),
	   TEST(waves_without_time_or_runtime), TEST(registers_of_places_are_read_at_once),
	   TEST(a_failed_stop_is_taken_back),
	   TEST(a_failed_resume_ends_the_session), TEST(errors_are_translated),
	   TEST(enable_errors_name_the_cause), TEST(a_lost_session_is_noticed),
	   TEST(names_are_those_of_libdrm));
