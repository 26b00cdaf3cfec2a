/* SPDX-License-Identifier: MIT */
/*
 * The simulated driver with more processes than it looks at with each call: what it answers is about address spaces of
 * this moment all the same.  The machine is made up, and each look at an address space takes a second of its clock.
 */
#include <errno.h>
#include <string.h>

#include "sim/kfd/device/sim.h"
#include "testlib.h"

/* Process number N is place N, and place 0 stays empty. */
#define PROCESSES 101
#define TARGET	  1
#define DEBUGGER  2
#define NS_PER_S  UINT64_C(1000000000)

static struct {
	uint64_t now;
	unsigned int looks;
	int life[PROCESSES]; /**< Which of its successive address spaces it has. */
	struct sim_file files[PROCESSES];
	struct sim sim;
} world;

static uint64_t now_ns(void)
{
	return world.now;
}

static int task_find(int caller_tid, uint32_t pid, struct sim_task *ret)
{
	*ret = (struct sim_task){ (int)pid, (int)pid, DEBUGGER, DEBUGGER, true };
	return pid < PROCESSES ? 0 : -ESRCH;
}

static int hold(int tgid, struct sim_hold *ret)
{
	*ret = (struct sim_hold){ tgid, world.life[tgid] };
	return 0;
}

static void release(struct sim_hold *h)
{
	*h = SIM_HOLD_NULL;
}

static bool holds(const struct sim_hold *h)
{
	world.now += NS_PER_S;
	world.looks++;
	return world.life[h->pidfd] == h->mem_fd;
}

static bool shares_memory(int tgid, int other)
{
	return false;
}

static int leader_tracer(int tgid)
{
	return DEBUGGER;
}

static int fd_take(int tid, int fd, int *ret)
{
	*ret = fd;
	return 0;
}

static void fd_close(int fd)
{
}

static int mem_write(int tgid, uint64_t addr, const void *buf, size_t size)
{
	return 0;
}

static const struct sim_os made_up = {
	.now_ns = now_ns,
	.task_find = task_find,
	.hold = hold,
	.release = release,
	.holds = holds,
	.shares_memory = shares_memory,
	.leader_tracer = leader_tracer,
	.fd_take = fd_take,
	.fd_close = fd_close,
	.mem_write = mem_write,
};

/* All have opened the device, and the next look at all of them is far away. */
static void begin(void)
{
	memset(&world, 0, sizeof(world));
	sim_init(&world.sim, &made_up, kernel_profile_find("1.17"));
	TEST_EQ_FATAL(sim_gpu_add(&world.sim, gpu_profile_find("gfx942", strlen("gfx942"))), 0);
	for (int i = 1; i < PROCESSES; i++)
		TEST_EQ_FATAL(sim_open(&world.sim, i, &world.files[i]), 0);
	CU_ASSERT_FATAL(world.sim.crowd_until_ns > world.now + 1000 * NS_PER_S);
}

static void end(void)
{
	for (int i = 1; i < PROCESSES; i++)
		sim_close(&world.sim, &world.files[i]);
	sim_deinit(&world.sim);
}

static int answer;

static void complete(struct sim_call *call, int result)
{
	answer = result;
}

/* What a process is answered about another one. */
static int command(int caller, uint32_t pid, uint32_t op)
{
	struct kfdabi_dbg_args a = { .pid = pid, .op = op };
	struct sim_call call = { .file = &world.files[caller], .tid = caller, .tgid = caller, .arg = &a,
				 .arg_size = sizeof(a), .command = KFDABI_IOC_DBG_TRAP, .complete = complete };

	answer = SIM_LATER;
	sim_submit(&world.sim, &call);
	return answer;
}

static void exec_ends_a_session_for_the_next_call(void)
{
	begin();
	TEST_EQ(command(DEBUGGER, TARGET, KFDABI_DBG_ENABLE), 0);
	TEST_EQ(command(DEBUGGER, TARGET, KFDABI_DBG_QUERY_DEBUG_EVENT), -EAGAIN);
	world.life[TARGET]++;
	TEST_EQ(command(DEBUGGER, TARGET, KFDABI_DBG_QUERY_DEBUG_EVENT), -ESRCH);
	end();
}

static void exec_of_the_debugger_ends_its_session(void)
{
	begin();
	TEST_EQ(command(DEBUGGER, TARGET, KFDABI_DBG_ENABLE), 0);
	world.life[DEBUGGER]++;
	/* The target would be told that it has no event yet. */
	TEST_EQ(command(TARGET, TARGET, KFDABI_DBG_QUERY_DEBUG_EVENT), -EINVAL);
	end();
}

static void a_descriptor_that_outlived_its_program_is_none(void)
{
	begin();
	world.life[DEBUGGER]++;
	TEST_EQ(command(DEBUGGER, TARGET, KFDABI_DBG_ENABLE), -EBADF);
	end();
}

/* The caller, its target and the debugger of that: all others cost a call nothing. */
static void a_call_looks_at_whom_it_is_about(void)
{
	begin();
	TEST_EQ(command(DEBUGGER, TARGET, KFDABI_DBG_ENABLE), 0);
	world.looks = 0;
	TEST_EQ(command(DEBUGGER, TARGET, KFDABI_DBG_QUERY_DEBUG_EVENT), -EAGAIN);
	TEST_EQ(world.looks, 3);
	end();
}

TEST_SUITE(kfdsim_crowd, TEST(exec_ends_a_session_for_the_next_call), TEST(exec_of_the_debugger_ends_its_session),
	   TEST(a_descriptor_that_outlived_its_program_is_none), TEST(a_call_looks_at_whom_it_is_about));
