/* SPDX-License-Identifier: MIT */
#ifndef KFDSIM_OS_H
#define KFDSIM_OS_H

/**
 * @file os.h
 * What the state machine needs from the machine it runs on: tasks, their memory, descriptors.
 *
 * The table exists so that the state machine knows neither procfs nor FUSE.  All functions return
 * 0 or -errno unless they say otherwise.  Process numbers are those of the simulator's own pid
 * namespace, except where a parameter says "as the caller counts".
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A task as the permission checks see it. */
struct sim_task {
	int tid;
	int tgid;
	int tracer;	   /**< Thread that traces this task, 0 if none. */
	int leader_tracer; /**< Thread that traces the thread-group leader, 0 if none. */
	bool has_mm;	   /**< False for zombies, kernel threads, finished main threads. */
};

/** Grip on one address space: survives neither exec nor exit of its owner. */
struct sim_hold {
	int pidfd;
	int mem_fd; /**< /proc/PID/mem, which stays bound to the address space of its opening. */
};
#define SIM_HOLD_NULL ((struct sim_hold){ -1, -1 })

struct sim_os {
	uint64_t (*now_ns)(void);
	/** Task by number as @p caller_tid counts.  -ESRCH. */
	int (*task_find)(int caller_tid, uint32_t pid, struct sim_task *ret);
	int (*tgid_of)(int tid, int *ret_tgid);
	int (*hold)(int tgid, struct sim_hold *ret);
	void (*release)(struct sim_hold *hold);
	/** Whether the address space is still in use. */
	bool (*holds)(const struct sim_hold *hold);
	/** All bytes or -EFAULT; page protection counts. */
	int (*mem_read)(int tgid, uint64_t addr, void *buf, size_t size);
	int (*mem_write)(int tgid, uint64_t addr, const void *buf, size_t size);
	/** Duplicate of a descriptor of @p tgid, -EBADF. */
	int (*fd_take)(int tgid, int fd, int *ret_fd);
	void (*fd_close)(int fd);
	/**
	 * The kernel's one-byte write to dbg_fd.  Never blocks, reports nothing.
	 * @param writer  Process whose context the write happens in (gets SIGPIPE, and is the writer for a
	 *                socket that asks), or 0: a worker of the kernel.
	 */
	void (*notify)(int fd, int writer);
	/** A fatal signal is pending for this thread. */
	bool (*is_dying)(int tid);
};

extern const struct sim_os sim_os_linux;

/** st_dev of the simulator's own mount: never touch descriptors that lie there. */
void sim_os_linux_own_device(uint64_t device);

#endif /* KFDSIM_OS_H */
