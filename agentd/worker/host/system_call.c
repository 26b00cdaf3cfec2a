/* SPDX-License-Identifier: MIT */
#include "agentd/worker/host/system_call.h"

#include <inttypes.h>
#include <limits.h>
#include <linux/audit.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agentd/worker/host/event_wait.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "corefile/processor.h"

/* A program of 32 bits has its stack below this, and other numbers. */
#define STACK_32 (UINT64_C(1) << 32)

static bool is_32(const struct task *task)
{
	return task->stack_pointer && task->stack_pointer < STACK_32;
}

/* The set of numbers that a thread uses, named as the kernel's linux/audit.h composes its constants. */
static uint32_t arch_of(uint16_t machine, const struct task *task)
{
	const struct corefile_processor *p = corefile_processor_find(machine);

	if (is_32(task))
		return __AUDIT_ARCH_LE | (p ? p->elf_32 : (uint32_t)EM_NONE);
	return __AUDIT_ARCH_LE | __AUDIT_ARCH_64BIT | machine;
}

static bool find_device(pid_t pid, uint64_t fd, char *ret, size_t size)
{
	char path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/fd/%" PRIu64, (int)pid, fd & UINT32_MAX);
	n = readlink(path, ret, size - 1);
	if (n <= 0)
		return false;
	ret[n] = '\0';
	str_make_printable(ret);
	return str_starts_with(ret, "/dev/");
}

const char *system_call_name(struct rpc_arena *a, pid_t pid, uint16_t machine, const struct task *task)
{
	auto_free char *name = NULL;
	char device[256];

	if (!task->has_call || !task->is_off || task->call > INT_MAX)
		return NULL;
	name = seccomp_syscall_resolve_num_arch(arch_of(machine, task), (int)task->call);
	if (!name)
		return rpc_arena_printf(a, "system call %" PRId64, task->call);
	if (!strcmp(name, "ioctl") && find_device(pid, task->first_argument, device, sizeof(device)))
		return rpc_arena_printf(a, "ioctl on %s", device);
	return rpc_arena_strdup(a, name);
}

bool system_call_restarts(uint16_t machine, const struct task *task)
{
	/*
	 * signal(7), "Interruption of system calls and library functions by stop signals", and as measured.  Not calls
	 * on descriptors, whose timeouts and drivers are not known, nor those that go on as restart_syscall(2): nobody
	 * could tell later what the thread waits in.
	 */
	static const char *const names[] = { "ppoll", "select", "pselect6", "wait4", "waitid", "pause" };
	const uint32_t arch = arch_of(machine, task);

	if (task->call == seccomp_syscall_resolve_name_arch(arch, "futex"))
		return !task->fourth_argument; /* Without a timeout. */

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (task->call == seccomp_syscall_resolve_name_arch(arch, names[i]))
			return true;
	return false;
}

char *system_call_name_of(uint16_t machine, int64_t call)
{
	const struct task task = { .call = call };

	return call < 0 || call > INT_MAX ? NULL : seccomp_syscall_resolve_num_arch(arch_of(machine, &task), (int)call);
}

bool system_call_waits_for_events(uint16_t machine, const struct task *task)
{
	return task->has_call && task->is_off && !is_32(task) && event_wait_is_request(task->second_argument) &&
	       task->call == seccomp_syscall_resolve_name_arch(arch_of(machine, task), "ioctl");
}
