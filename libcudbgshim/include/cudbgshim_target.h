/* SPDX-License-Identifier: MIT */
#ifndef CUDBGSHIM_TARGET_H
#define CUDBGSHIM_TARGET_H

/**
 * @file cudbgshim_target.h
 * The debuggee's side: where its driver library is, which symbols it has, how a function is called
 * in it.
 *
 * Nothing here opens a file or stops a thread, except a call (below): memory is read and written
 * through callbacks, so the debuggee's mount namespace does not matter, and everything the debuggee
 * wrote is parsed as hostile.  Functions return 0 or -errno and leave their results untouched on
 * failure.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Access to the debuggee's memory, normally /proc/PID/mem; each transfers all bytes or fails. */
struct cudbgshim_memory {
	/**
	 * Read memory.
	 * @return 0, -EFAULT (not readable), -ESRCH (process gone), other -errno.
	 */
	int (*read)(void *ctx, uint64_t addr, void *buf, size_t size);
	/** Write memory, with the same results; NULL where nothing may be written. */
	int (*write)(void *ctx, uint64_t addr, const void *buf, size_t size);
	void *ctx;
};

/** @return access over an open /proc/PID/mem; @p mem_fd is borrowed for as long as it is used. */
struct cudbgshim_memory cudbgshim_memory_from_fd(int mem_fd);

/* ------------------------------------------------------------------ tracing ------------------ */

/** Why a traced thread stands still. */
struct cudbgshim_stop {
	enum {
		CUDBGSHIM_STOP_NONE,	/**< It runs. */
		CUDBGSHIM_STOP_SIGNAL,	/**< Signal @c sig is about to be delivered. */
		CUDBGSHIM_STOP_SYSCALL, /**< It enters or leaves a system call. */
		CUDBGSHIM_STOP_ASKED,	/**< It was interrupted. */
		CUDBGSHIM_STOP_GROUP,	/**< Job control has stopped the whole process. */
		CUDBGSHIM_STOP_EXEC,	/**< The process executed another program. */
		CUDBGSHIM_STOP_GONE,	/**< The thread has ended, or is not traced. */
		/** Another process traced for us and has ended: the kernel has let the thread go. */
		CUDBGSHIM_STOP_LOST,
	} kind;
	int sig;
};

/** How a stopped thread goes on. */
enum cudbgshim_go {
	CUDBGSHIM_GO_ON,
	CUDBGSHIM_GO_TO_SYSCALL, /**< Up to the next entry or exit of a system call. */
	CUDBGSHIM_GO_LISTEN,	 /**< It stays in the stop of its process, and hears of its end. */
	CUDBGSHIM_GO_FREE,	 /**< It is traced no more. */
};

/** What can be read of a stopped thread; the first three and the last one can be set. */
enum cudbgshim_part {
	CUDBGSHIM_PART_REGISTERS, /**< struct user_regs_struct. */
	CUDBGSHIM_PART_VECTORS,	  /**< XSAVE area (NT_X86_XSTATE); on aarch64 NT_ARM_SVE. */
	CUDBGSHIM_PART_MASK,	  /**< Signal mask, 8 bytes. */
	CUDBGSHIM_PART_SIGNAL,	  /**< siginfo_t of the signal that it stopped for. */
	CUDBGSHIM_PART_RSEQ,	  /**< struct ptrace_rseq_configuration, 24 bytes. */
	CUDBGSHIM_PART_THREAD_POINTER, /**< 8 bytes; on x86-64 it is among the registers. */
	CUDBGSHIM_PART_CALL,	  /**< Only set, on aarch64: the call that it is about to make, an int; -1: none. */
};

/**
 * How threads of the debuggee are traced, and how is read in /proc what only a tracer may read.
 * cudbgshim_tracer_direct does so with the rights of this process.  Where those do not suffice,
 * another process does it, and the caller supplies functions that ask that one.
 *
 * Each returns 0 or -errno of the kernel, unless it says something else; none waits for a thread.
 */
struct cudbgshim_tracer {
	/** Seize a thread; it runs on. */
	int (*seize)(void *ctx, int tid);
	/** Ask a seized thread to stop. */
	int (*interrupt)(void *ctx, int tid);
	/**
	 * Look what a seized thread stopped for.  The stop is left for others to see (WNOWAIT), except
	 * that of an exec and of a death.
	 */
	struct cudbgshim_stop (*look)(void *ctx, int tid);
	/** Let a stopped thread go on.  @param sig  Signal that is delivered to it, or 0. */
	int (*go)(void *ctx, int tid, enum cudbgshim_go how, int sig);
	/** @param size  In: room in @p buf; out: bytes. */
	int (*get)(void *ctx, int tid, enum cudbgshim_part part, void *buf, size_t *size);
	int (*set)(void *ctx, int tid, enum cudbgshim_part part, const void *buf, size_t size);
	/** Read a file of /proc/PID (@p proc_fd): "maps", "auxv", "task/TID/syscall".  As fd_read_file_at(). */
	int (*read_file)(void *ctx, int proc_fd, const char *name, size_t max, char **ret, size_t *ret_size);
	/** @return a duplicate of a descriptor of the debuggee, or its pipe opened anew; -errno. */
	int (*descriptor)(void *ctx, int proc_fd, int pidfd, int number);
	/** @return its network namespace, opened; -errno. */
	int (*network)(void *ctx, int proc_fd);
	void *ctx;
};

extern const struct cudbgshim_tracer cudbgshim_tracer_direct;

/* ------------------------------------------------------------------ mappings ----------------- */

#define CUDBGSHIM_MAP_READ  UINT32_C(1)
#define CUDBGSHIM_MAP_WRITE UINT32_C(2)
#define CUDBGSHIM_MAP_EXEC  UINT32_C(4)

/** One line of /proc/PID/maps; @c name points into the text and is not terminated. */
struct cudbgshim_map {
	uint64_t start, end, offset, inode;
	uint32_t flags;	   /**< CUDBGSHIM_MAP_*. */
	const char *name;  /**< Path, or a name such as [stack]; without " (deleted)". */
	size_t name_size;  /**< 0 for anonymous memory. */
};

/** Position in the text of /proc/PID/maps. */
struct cudbgshim_maps {
	const char *text;
	size_t size, pos;
};

/**
 * Take the next line.
 * @return false at the end; lines that are not mappings are passed over.
 */
bool cudbgshim_maps_next(struct cudbgshim_maps *maps, struct cudbgshim_map *ret_map);
/**
 * Find the mapping that holds @p addr.
 * @return whether there is one.
 */
bool cudbgshim_maps_find(const char *text, size_t size, uint64_t addr,
			 struct cudbgshim_map *ret_map);

#define CUDBGSHIM_PATH_MAX 4096
/**
 * Most bytes of /proc/PID/maps that are read; 65530 mappings of files with long names take 18 MiB.
 */
#define CUDBGSHIM_MAPS_MAX ((size_t)64 << 20)

/** One copy of the driver library in the debuggee. */
struct cudbgshim_library {
	uint64_t base; /**< Address at which file offset 0 is mapped. */
	uint64_t end;  /**< End of the last mapping of that file. */
	char path[CUDBGSHIM_PATH_MAX]; /**< Path as the debuggee's mount namespace has it. */
};

/**
 * Find the @p nth (from 0) copy of libcuda in the text of /proc/PID/maps: its base name is
 * `libcuda.so`, optionally followed by a version.  A process may map it under several paths.
 * @return 0, -ENOENT.
 */
int cudbgshim_find_libcuda(const char *maps, size_t size, size_t nth,
			   struct cudbgshim_library *ret_library);

/* ------------------------------------------------------------------ symbols ------------------ */

/** Everything that libcuda exports for debuggers; cudbg_symbols.h has the names. */
enum cudbgshim_symbol {
	CUDBGSHIM_SYM_IPC_FLAG,
	CUDBGSHIM_SYM_RPC_ENABLED,
	CUDBGSHIM_SYM_CLIENT_PID,
	CUDBGSHIM_SYM_CLIENT_REVISION,
	CUDBGSHIM_SYM_SESSION_ID,
	CUDBGSHIM_SYM_CAPABILITIES,
	CUDBGSHIM_SYM_INJECTION_PATH,
	CUDBGSHIM_SYM_USE_EXTERNAL_DEBUGGER,
	CUDBGSHIM_SYM_INITIALIZED,
	CUDBGSHIM_SYM_RESUME_FLAG,
	CUDBGSHIM_SYM_ATTACH_HANDLER_AVAILABLE,
	CUDBGSHIM_SYM_ATTACH_FD,
	CUDBGSHIM_SYM_LAUNCH_BLOCKING,
	CUDBGSHIM_SYM_PREEMPTION,
	CUDBGSHIM_SYM_MEMCHECK,
	CUDBGSHIM_SYM_DETACH_SUSPENDED_MASK,
	CUDBGSHIM_SYM_API_ERROR_FLAGS,
	CUDBGSHIM_SYM_API_ERROR_CODE,
	CUDBGSHIM_SYM_API_ERROR_FUNC_NAME_SIZE,
	CUDBGSHIM_SYM_API_ERROR_FUNC_NAME_ADDR,
	CUDBGSHIM_SYM_API_ERROR_SOURCE,
	CUDBGSHIM_SYM_API_ERROR_NAME_SIZE,
	CUDBGSHIM_SYM_API_ERROR_NAME_ADDR,
	CUDBGSHIM_SYM_API_ERROR_STRING_SIZE,
	CUDBGSHIM_SYM_API_ERROR_STRING_ADDR,
	CUDBGSHIM_SYM_INTERNAL_ERROR_CODE,
	/* The functions follow. */
	CUDBGSHIM_SYM_API_INIT,
	CUDBGSHIM_SYM_API_ATTACH,
	CUDBGSHIM_SYM_API_DETACH,
	CUDBGSHIM_SYM_REPORT_API_ERROR,
	CUDBGSHIM_SYM_REPORT_INTERNAL_ERROR,
	CUDBGSHIM_SYM_REPORT_ATTACH_FINISHED,
	CUDBGSHIM_SYM_PRE_INIT,
	CUDBGSHIM_SYM_MAIN,
	CUDBGSHIM_SYM_COUNT
};

/** @return the name in the ELF file. */
const char *cudbgshim_symbol_name(enum cudbgshim_symbol symbol);
/** @return the bytes that the variable has in every driver seen; 0 for a function. */
uint32_t cudbgshim_symbol_size(enum cudbgshim_symbol symbol);

/** Addresses of the symbols in the debuggee; 0 where this driver has no such symbol. */
struct cudbgshim_symbols {
	uint64_t addr[CUDBGSHIM_SYM_COUNT];
};

/** Why a symbol table was refused. */
struct cudbgshim_symbols_error {
	const char *what; /**< Static text: which structure, and what is wrong with it. */
	uint64_t where;	  /**< Address in the debuggee. */
	/** The variable with an unexpected kind or size (-EPROTO); else CUDBGSHIM_SYM_COUNT. */
	enum cudbgshim_symbol symbol;
	uint64_t size; /**< Its st_size (-EPROTO). */
};

/**
 * Look all symbols up in the `.dynsym` of a mapped ELF file, through DT_GNU_HASH or DT_HASH.
 *
 * @param base     Address at which file offset 0 is mapped.
 * @param ret_err  Filled in on failure; NULL allowed.
 * @return 0 (also when it has none of them), -ENOEXEC (no 64-bit x86 ELF file), -EBADMSG (damaged),
 *         -EPROTO (a symbol has another size or kind than we know how to use), or what the reader
 *         returned.
 */
int cudbgshim_symbols_read(const struct cudbgshim_memory *memory, uint64_t base,
			   struct cudbgshim_symbols *ret_symbols,
			   struct cudbgshim_symbols_error *ret_err);

/* ------------------------------------------------------------------ calling a function -------- */

/**
 * A call that is under way, for the process that has to clean up after our death.  It lies in
 * memory that outlives the caller, and is written before anything is changed.
 */
struct cudbgshim_inferior_record {
	/** Not 0 while the thread below runs, or may still run, with the frame below. */
	uint32_t is_active;
	int32_t tid;
	uint64_t frame;	 /**< Address of the frame that restores the thread. */
	/** A number, and where it stands until the stack is used again. */
	uint64_t cookie_addr, cookie;
	uint64_t function;
};

/** The function to call, and the process to call it in. */
struct cudbgshim_inferior_options {
	int pid;
	int proc_fd; /**< The directory /proc/PID, open; borrowed. */
	struct cudbgshim_memory memory;
	const struct cudbgshim_tracer *tracer; /**< Borrowed; NULL: cudbgshim_tracer_direct. */
	uint64_t function, argument;
	/** Range of libcuda: a thread inside of it may hold a lock that the function needs. */
	uint64_t avoid_start, avoid_end;
	unsigned timeout_ms; /**< Time for the whole call; 0: 5000. */
	/** Borrowed; NULL if nobody cleans up after us. */
	struct cudbgshim_inferior_record *record;
	/** Called with the name of each step before it is made; NULL allowed. */
	void (*trace)(void *ctx, const char *step);
	void *trace_ctx;
};

/** Why a call failed. */
struct cudbgshim_inferior_error {
	char what[160];
	int tid;	 /**< Thread that was used, or looked at last; 0: none. */
	bool is_entered; /**< The function was entered; it may have run, or still run. */
};

/**
 * Call `void function(argument)` in a thread of another process, without harm on any path.
 *
 * The thread gets a signal frame on its own stack, below the red zone, with all its registers and
 * its signal mask, and a return address that leads to the C library's rt_sigreturn.  Whatever
 * happens to us, the kernel puts the thread back when the function returns; nothing has to be
 * undone.  While we live, the return is caught and the registers are restored from outside, so
 * that an interrupted system call goes on as if it had never been interrupted.
 *
 * Signals other than faults and real-time ones wait until the function has returned.  Only one
 * thread is stopped; it is chosen among those that wait in a system call, or run outside of the C
 * library, the loader and the range to avoid.
 *
 * What cannot be hidden, and is why such threads are the second choice: a system call with a
 * relative timeout starts that again from its beginning, if the function sleeps or we die in the
 * middle, and fails with EINTR if it had been restarted before; epoll_wait() and its kin fail with
 * EINTR if we die in the instant between stopping the thread and mending that, and on aarch64 if the
 * thread ran when it was chosen (one that waits is looked for first, for 10 ms); a signal that
 * arrives during the call does not interrupt the system call if we die.
 *
 * One thread must make all calls on the object (ptrace).  x86-64 and aarch64 only.
 */
struct cudbgshim_inferior;

/**
 * Prepare a call; nothing is touched before cudbgshim_inferior_step().
 * @param ret_call  Release with cudbgshim_inferior_destroy().
 * @return 0, -ENOMEM.
 */
int cudbgshim_inferior_create(const struct cudbgshim_inferior_options *options,
			  struct cudbgshim_inferior **ret_call);
/**
 * Release a call; NULL is allowed.  Threads that are still held are let go as soon as possible, at
 * the latest when we exit.
 */
void cudbgshim_inferior_destroy(struct cudbgshim_inferior *call);

/** Result of cudbgshim_inferior_step(): there is nothing to do before the next SIGCHLD, or 1 ms. */
#define CUDBGSHIM_INFERIOR_WAIT 1

/**
 * Do what can be done without waiting.
 * @return 0 (the function has returned, the thread is itself again), CUDBGSHIM_INFERIOR_WAIT, or
 *         -EAGAIN (no thread could be used within the time), -ETIMEDOUT (the function does not
 *         return; it runs on and restores its thread by itself), -EFAULT (the function faulted and
 *         was cut short), -ESRCH (the process or the thread ended, or it executed another program), -EIO (the
 *         process that traces for us has ended; the function may still run),
 *         -EBUSY (traced by another process, or stopped by job control), -EPERM, -EOPNOTSUPP (not
 *         x86-64 or aarch64, shadow stacks, no rt_sigreturn to be found), -ENOMEM.
 */
int cudbgshim_inferior_step(struct cudbgshim_inferior *call);
/**
 * Step and sleep until the call is over; for callers without a loop.
 * @return as cudbgshim_inferior_step().
 */
int cudbgshim_inferior_run(struct cudbgshim_inferior *call);
/** @return the time at which the next step will act at the latest, CLOCK_MONOTONIC. */
uint64_t cudbgshim_inferior_deadline_ns(const struct cudbgshim_inferior *call);
/** @return what went wrong last; borrowed from the call. */
const struct cudbgshim_inferior_error *
cudbgshim_inferior_error(const struct cudbgshim_inferior *call);

/**
 * Has a recorded call ended?  This stops its thread for a moment.
 * @return 1 (still running), 0 (over, or its thread is gone), -errno of ptrace.
 */
int cudbgshim_inferior_is_running(const struct cudbgshim_inferior_record *record,
			      const struct cudbgshim_memory *memory,
			      const struct cudbgshim_tracer *tracer);

#endif /* CUDBGSHIM_TARGET_H */
