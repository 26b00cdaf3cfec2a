/* SPDX-License-Identifier: MIT */
#include <sys/syscall.h>

#include "libcudbgshim/src/inferior/x86_64.h"
#include "testlib.h"

static const char maps[] =
	"555500000000-555500100000 r-xp 00000000 fe:00 1 /usr/bin/app\n"
	"7f0000000000-7f0000100000 r-xp 00000000 fe:00 2 /usr/lib/libc.so.6\n"
	"7f0000200000-7f0000300000 r-xp 00000000 fe:00 3 /usr/lib/libcuda.so.1\n"
	"7f0000400000-7f0000401000 ---p 00000000 00:00 0 \n"
	"7f0000401000-7f0000c00000 rw-p 00000000 00:00 0 \n"
	"7f0000c00000-7f0000c01000 ---p 00000000 00:00 0 \n"
	"7f0000c01000-7f0000c05000 rw-p 00000000 00:00 0 \n"
	"7fff00000000-7fff00021000 rw-p 00000000 00:00 0 [stack]\n";

#define STACK	    "7f0000bf0000"
#define LIBCUDA	    UINT64_C(0x7f0000200000)
#define STATUS(state, tracer) "Name:\tx\nState:\t" state "\nTracerPid:\t" tracer "\n"

/* Memory whose words are all the same. */
static int read_word(void *ctx, uint64_t addr, void *buf, size_t size)
{
	for (size_t i = 0; i + 8 <= size; i += 8)
		memcpy((char *)buf + i, ctx, 8);
	return 0;
}

static struct cudbgshim_inferior_options options(uint64_t *word)
{
	return (struct cudbgshim_inferior_options){ .memory = { .read = read_word, .ctx = word },
						.avoid_start = LIBCUDA,
						.avoid_end = LIBCUDA + 0x100000 };
}

static int rank_of(const char *status, const char *syscall, uint64_t word, const char **ret_why)
{
	struct cudbgshim_inferior_options o = options(&word);
	struct inferior_thread t;
	int rc = inferior_thread_parse(status, syscall, &t);

	return rc < 0 ? rc : inferior_thread_rank(&t, maps, sizeof(maps) - 1, &o, ret_why);
}

static void threads_are_ranked(void)
{
	static const struct { const char *status, *syscall; uint64_t word; int want; const char *why; } rows[] = {
		{ STATUS("S (sleeping)", "0"), "0 0x3 0x0 0x0 0x0 0x0 0x0 0x" STACK " 0x7f0000000100\n", 0, 0, "" },
		{ STATUS("S (sleeping)", "0"), "35 0x3 0x0 0x0 0x0 0x0 0x0 0x" STACK " 0x7f0000000100\n", 0, 1, "" },
		{ STATUS("S (sleeping)", "0"), "7 0x3 0x1 0xffffffff 0x0 0x0 0x0 0x" STACK " 0x7f0000000100\n", 0, 0, "" },
		{ STATUS("S (sleeping)", "0"), "7 0x3 0x1 0x10 0x0 0x0 0x0 0x" STACK " 0x7f0000000100\n", 0, 1, "" },
		{ STATUS("S (sleeping)", "0"), "232 0x3 0x1 0x10 0xffffffff 0x0 0x0 0x" STACK " 0x7f0000000100\n", 0, 1, "" },
		{ STATUS("S (sleeping)", "0"), "219 0x3 0x1 0x10 0x0 0x0 0x0 0x" STACK " 0x7f0000000100\n", 0, 3, "" },
		{ STATUS("R (running)", "0"), "running\n", 0, 2, "" },
		{ STATUS("S (sleeping)", "0"), "0 0x3 0x0 0x0 0x0 0x0 0x0 0x" STACK " 0x7f0000000100\n", LIBCUDA + 64, 8, "" },
		{ STATUS("S (sleeping)", "0"), "16 0x3 0x0 0x0 0x0 0x0 0x0 0x" STACK " 0x7f0000200100\n", 0, 8, "" },
		{ STATUS("D (disk sleep)", "0"), "0 0x3 0x0 0x0 0x0 0x0 0x0 0x" STACK " 0x7f0000000100\n", 0, -1,
		  "waits in the kernel and cannot be interrupted" },
		{ STATUS("T (stopped)", "0"), "0 0x3 0x0 0x0 0x0 0x0 0x0 0x" STACK " 0x7f0000000100\n", 0, -1, "is stopped" },
		{ STATUS("Z (zombie)", "0"), "-1 0x0 0x0\n", 0, -1, "has ended" },
		{ STATUS("S (sleeping)", "0"), "0 0x3 0x0 0x0 0x0 0x0 0x0 0x7f0000c04000 0x7f0000000100\n", 0, -1,
		  "has too little room on its stack" },
		{ STATUS("S (sleeping)", "0"), "0 0x3 0x0 0x0 0x0 0x0 0x0 0x555500000100 0x7f0000000100\n", 0, -1,
		  "has too little room on its stack" },
		{ STATUS("S (sleeping)", "0"), "231 0x3 0x0 0x0 0x0 0x0 0x0 0x" STACK " 0x7f0000000100\n", 0, -1,
		  "is ending or executing another program" },
		{ STATUS("S (sleeping)", "0"), "0 0x3\n", 0, -EBADMSG, "" },
		{ "nonsense", "running\n", 0, -EBADMSG, "" },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		const char *why = "";

		TEST_ROW_EQ(i, rank_of(rows[i].status, rows[i].syscall, rows[i].word, &why), rows[i].want);
		TEST_ROW_STR(i, why, rows[i].why);
	}
}

static void shadow_stacks_are_seen(void)
{
	struct inferior_thread t;

	TEST_EQ(inferior_thread_parse("State:\tS\nTracerPid:\t7\nx86_Thread_features:\tshstk wrss\n",
				      "running", &t), 0);
	TEST_EQ(t.has_shadow_stack, true);
	TEST_EQ(t.tracer, 7);
	TEST_EQ(inferior_thread_parse("State:\tS\nTracerPid:\t0\nx86_Thread_features:\t\nx:\tshstk\n",
				      "running", &t), 0);
	TEST_EQ(t.has_shadow_stack, false);
}

static const struct inferior_thread unseen = { .nr = -1 };

static void places_are_judged(void)
{
	static const struct { uint64_t cs, rip, rsp, fs_base; int64_t orig; const char *want; } rows[] = {
		{ 0x33, 0x555500000100, 0x7f0000bf0000, 0x7f0000bff000, -1, NULL },
		{ 0x33, 0x555500000100, 0x7fff00020000, 0x100, -1, NULL },
		{ 0x33, 0x7f0000000100, 0x7f0000bf0000, 0x7f0000bff000, 0, NULL },
		{ 0x33, 0x7f0000000100, 0x7f0000bf0000, 0x7f0000bff000, -1,
		  "runs inside the C library, the loader or the driver" },
		{ 0x33, 0x7f0000200100, 0x7f0000bf0000, 0x7f0000bff000, -1,
		  "runs inside the C library, the loader or the driver" },
		{ 0x23, 0x555500000100, 0x7f0000bf0000, 0x7f0000bff000, -1, "runs 32-bit code" },
		{ 0x33, 0x111, 0x7f0000bf0000, 0x7f0000bff000, -1, "runs code that was mapped a moment ago" },
		{ 0x33, 0x555500000100, 0x7f0000bf0000, 0x7f0000a00000, -1, "runs on a stack that is not its own" },
		{ 0x33, 0x555500000100, 0x7f0000bf0000, 0x7fff00001000, -1, "runs on a stack that is not its own" },
		{ 0x33, 0x555500000100, 0x7f0000402000, 0x7f0000bff000, -1, "has too little room on its stack" },
	};
	uint64_t word = 0;
	struct cudbgshim_inferior_options o = options(&word);

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		const struct inferior_registers r = {
			.user = { .cs = rows[i].cs, .rip = rows[i].rip, .rsp = rows[i].rsp, .fs_base = rows[i].fs_base,
				  .orig_rax = (unsigned long long)rows[i].orig },
			.thread_pointer = rows[i].fs_base,
			.is_32bit = rows[i].cs != 0x33,
		};
		uint64_t low;
		const char *why = inferior_check_place(&r, &unseen, maps, sizeof(maps) - 1, &o, &low);

		TEST_ROW_STR(i, why ? why : "", rows[i].want ? rows[i].want : "");
	}
}

/* What the kernel would do with the registers of an interrupted call. */
static void calls_are_restarted(void)
{
	static const struct { int64_t orig, rax; uint64_t want_rax, want_rip; } rows[] = {
		{ SYS_read, -512, SYS_read, 0xffe }, { SYS_read, -513, SYS_read, 0xffe },
		{ SYS_pause, -514, SYS_pause, 0xffe }, { SYS_poll, -516, SYS_poll, 0xffe },
		{ SYS_read, 5, 5, 0x1000 }, { SYS_read, -EINTR, (uint64_t)-EINTR, 0x1000 },
		{ -1, -512, (uint64_t)-512, 0x1000 },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct user_regs_struct r = { .orig_rax = (unsigned long long)rows[i].orig,
					      .rax = (unsigned long long)rows[i].rax, .rip = 0x1000 };
		struct user_regs_struct got = inferior_restarted(&r);

		TEST_ROW_EQ(i, got.rax, rows[i].want_rax);
		TEST_ROW_EQ(i, got.rip, rows[i].want_rip);
		TEST_ROW_EQ(i, got.orig_rax, UINT64_MAX);
	}
}

static void only_harmless_interruptions_are_forgiven(void)
{
	static const struct { int64_t orig, rax, want; } rows[] = {
		{ SYS_epoll_wait, -EINTR, -514 }, { SYS_epoll_wait, 1, 1 }, { SYS_close, -EINTR, -EINTR },
		{ SYS_connect, -EINTR, -EINTR }, { SYS_recvfrom, -EINTR, -514 },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct inferior_registers r = { .user.orig_rax = (unsigned long long)rows[i].orig,
						.user.rax = (unsigned long long)rows[i].rax };

		TEST_ROW_EQ(i, inferior_forgive_interruption(&r, &unseen), rows[i].want != rows[i].rax);
		TEST_ROW_EQ(i, r.user.rax, rows[i].want);
	}
}

static void frames_fit_or_are_refused(void)
{
	static struct inferior_saved s;
	static struct inferior_frame f;
	uint64_t features = 3, word;

	s.regs.user.rsp = 0x7f0000bf0018;
	s.xstate_size = 576;
	s.mask = 0x55;
	memcpy(s.xstate + 464, &features, 8);
	TEST_EQ_FATAL(inferior_frame_build(&s, 0x1234, 0xc00c1e, 0x7f0000401000, &f), 0);
	TEST_EQ(f.addr % 16, 8);
	TEST_EQ(f.addr + f.size <= s.regs.user.rsp - 128, true);
	memcpy(&word, f.bytes, 8);
	TEST_EQ(word, 0x1234);
	memcpy(&word, f.bytes + (f.cookie_addr - f.addr), 8);
	TEST_EQ(word, 0xc00c1e);
	TEST_EQ(inferior_frame_build(&s, 0x1234, 1, s.regs.user.rsp - 700, &f), -ENOSPC);
	TEST_EQ(inferior_frame_build(&s, 0x1234, 1, s.regs.user.rsp + 8, &f), -ENOSPC);
	s.xstate_size = 500;
	TEST_EQ(inferior_frame_build(&s, 0x1234, 1, 0x7f0000401000, &f), -EBADMSG);
	s.xstate_size = 576;
	features |= 4; /* AVX, but no room for it */
	memcpy(s.xstate + 464, &features, 8);
	TEST_EQ(inferior_frame_build(&s, 0x1234, 1, 0x7f0000401000, &f), -EBADMSG);
}

TEST_SUITE(cudbgshim_x86_64, TEST(threads_are_ranked), TEST(shadow_stacks_are_seen),
	   TEST(places_are_judged), TEST(calls_are_restarted),
	   TEST(only_harmless_interruptions_are_forgiven), TEST(frames_fit_or_are_refused));
