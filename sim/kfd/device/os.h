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

/** A grip on one address space, which survives neither exec nor exit of its owner. */
struct sim_hold {
	int pidfd;
	int mem_fd; /**< /proc/PID/mem, which stays bound to the address space of its opening. */
};
#define SIM_HOLD_NULL ((struct sim_hold){ -1, -1 })

/** One of the pieces of memory that are read together. */
struct sim_piece {
	uint64_t addr;
	void *buf;
	bool is_read;
};

/** The functions of one machine; the fuzzer has its own. */
struct sim_os {
	/** Monotonic time. */
	uint64_t (*now_ns)(void);
	/** Find a task by its number as @p caller_tid counts.  -ESRCH. */
	int (*task_find)(int caller_tid, uint32_t pid, struct sim_task *ret);
	/** The process of a thread.  -ESRCH. */
	int (*tgid_of)(int tid, int *ret_tgid);
	/** Take a grip on the present address space of a process. */
	int (*hold)(int tgid, struct sim_hold *ret);
	void (*release)(struct sim_hold *hold);
	/** Whether the address space is still in use. */
	bool (*holds)(const struct sim_hold *hold);
	/** Read all bytes, or fail with -EFAULT; page protection counts. */
	int (*mem_read)(int tgid, uint64_t addr, void *buf, size_t size);
	/** Read pieces of one size, each as mem_read() does, in few calls of the kernel. */
	void (*mem_read_pieces)(int tgid, struct sim_piece *pieces, size_t n, size_t size);
	int (*mem_write)(int tgid, uint64_t addr, const void *buf, size_t size);
	/** Whether two processes have one address space. */
	bool (*shares_memory)(int tgid, int other);
	/** Thread that traces a process' main thread, 0 if none. */
	int (*leader_tracer)(int tgid);
	/** Duplicate a descriptor of the thread @p tid, which may have a table of its own.  -EBADF. */
	int (*fd_take)(int tid, int fd, int *ret_fd);
	void (*fd_close)(int fd);
	/**
	 * Do what the kernel's one-byte write to dbg_fd does; it never blocks and reports nothing.
	 * @param writer  Process in whose context the write happens: it gets SIGPIPE, and is the
	 * writer for a socket that asks.  0 is a worker of the kernel.
	 */
	void (*notify)(int fd, int writer);
	/** Whether a fatal signal is pending for this thread. */
	bool (*is_dying)(int tid);
	/**
	 * The store of all memory of GPUs: a sparse file that processes map.  Bytes that were never
	 * written, or were given back, are zero and take no room.
	 */
	int (*store_read)(uint64_t offset, void *buf, size_t size);
	int (*store_write)(uint64_t offset, const void *buf, size_t size);
	void (*store_free)(uint64_t offset, uint64_t size);
	uint64_t (*store_used)(void); /**< Bytes of it that take room. */
};

/** The machine that the simulator runs on. */
extern const struct sim_os sim_os_linux;

/**
 * Tell the st_dev of the simulator's own mount, whose files must not be asked for anything: the
 * simulator would wait for itself.
 */
void sim_os_linux_own_device(uint64_t device);

#endif /* KFDSIM_OS_H */
