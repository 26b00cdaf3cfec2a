/* SPDX-License-Identifier: MIT */
#ifndef CONFORMANCE_ENV_H
#define CONFORMANCE_ENV_H

/**
 * @file env.h
 * The device under test, the processes around it, and one function per operation.
 *
 * With GPU_AGENT_KFD set, tests run on that device; those that need GPUs, queues or the control
 * file of the simulator are then skipped.  Otherwise each test starts a simulator of its own.
 * GPU_AGENT_KFD_PERMISSIONS=thread|process says which permission rule a real device follows,
 * GPU_AGENT_KFD_EFAULT=new that an ENABLE which ends with EFAULT leaves no session; a simulator does so then, too.
 *
 * One test at a time; everything it started ends with it, also after a fatal assertion.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/clock.h"
#include "libkfdtrap/src/kfd_abi.h"
#include "sim/app/status.h"
#include "testlib.h"

#define RUNTIME_MASK KFDABI_EC_MASK(KFDABI_EC_PROCESS_RUNTIME)
#define NEW_MASK     KFDABI_EC_MASK(KFDABI_EC_QUEUE_NEW)
#define FAULT_MASK   KFDABI_EC_MASK(KFDABI_EC_DEVICE_MEMORY_VIOLATION)
#define TRAP_MASK    KFDABI_EC_MASK(KFDABI_EC_QUEUE_WAVE_TRAP)

/** For what comes at once, unless the machine is busy with something else. */
#define PATIENCE_MS 30000

/** A test with its own surroundings. */
#define CONFORMANCE(name)                                                                          \
	static void name##_body(void);                                                             \
	void name(void);                                                                           \
	void name(void)                                                                            \
	{                                                                                          \
		env_begin();                                                                       \
		name##_body();                                                                     \
		env_end();                                                                         \
	}                                                                                          \
	static void name##_body(void)

void env_begin(void);
void env_end(void);

/** Simulator with GPUs, or skip the test (false). */
bool env_sim(const char *kernel, const char *gpus, const char *extra_option);
/**
 * Device without GPUs: the real one if there is, else a simulator following @p permissions.
 * NULL: the test holds under either rule.
 */
bool env_plain(const char *permissions);
/** Replace the running simulator: for tests that walk through profiles. */
bool env_next(const char *kernel, const char *gpus, const char *extra_option);
/** Errors of a failed ENABLE with -EFAULT leave the session on (older kernels). */
bool env_efault_leaves_session(void);
int env_kfd(void);
const char *env_kfd_path(void);
const char *env_dir(void);
/** Write to the control file; asserts success. */
void env_control(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/** Same, giving the error back. */
int env_control_try(const char *line);
/** The whole control file. */
const char *env_status(void);
/** The test will end the simulator itself. */
pid_t env_sim_lost(void);

/* ---- processes ---- */

struct target {
	pid_t pid;
	int in, out;
	struct simapp_status *status; /**< Only max_gap_ns may be written. */
};

/** A simapp that executed @p script and then listens for commands. */
bool target_start(struct target *t, const char *script);
/** A child that never opens the device. */
bool target_start_bare(struct target *t);
/** Send a command without waiting for its answer. */
void target_send(struct target *t, const char *command);
/** 0, -errno of the command, -ETIMEDOUT, -EPIPE. */
int target_reply(struct target *t, int timeout_ms);
int target_command(struct target *t, const char *command);
void target_kill(struct target *t);
/** Queue slot i of the status file. */
const struct simapp_queue *target_queue(const struct target *t, uint32_t i);
uint64_t target_read_index(const struct target *t, uint32_t i);
/** Queue i consumes packets. */
bool target_queue_runs(const struct target *t, uint32_t i);
/** Queue i consumes none for half a second. */
bool target_queue_stands(const struct target *t, uint32_t i);

/** Run in a forked child; its result.  The child is not reaped by anything else. */
int env_in_child(int (*run)(void *data), void *data);
/** Run in another thread of this process. */
int env_in_thread(int (*run)(void *data), void *data);
/** Start a child that stays until env_end(); returns its pid. */
pid_t env_monitor(void (*run)(void *data), void *data);
/** Forget a child that was reaped by the test. */
void env_reaped(pid_t pid);

int seize(pid_t pid);

/* ---- debugger ---- */

struct dbg {
	pid_t pid;
	int fd; /**< Device; -1: env_kfd(). */
	int rd, wr; /**< Event socket pair. */
	struct kfdabi_dbg_args a;
	struct kfdabi_runtime_info info;
};

void dbg_init(struct dbg *d, pid_t pid);
/** Bytes that arrived since the last call. */
int dbg_bytes(struct dbg *d);
/** Bytes arrive. */
bool dbg_byte_comes(struct dbg *d);
/** The kernel dropped its copy of dbg_fd (the own one is closed by this call). */
bool dbg_closed(struct dbg *d);
int dbg_op(struct dbg *d, uint32_t op);
int dbg_enable(struct dbg *d, uint64_t mask);
int dbg_disable(struct dbg *d);
int dbg_send(struct dbg *d, uint64_t mask, uint32_t gpu, uint32_t queue);
int dbg_exceptions(struct dbg *d, uint64_t mask);
int dbg_override(struct dbg *d, uint32_t mode, uint32_t enable, uint32_t request);
int dbg_mode(struct dbg *d, uint32_t mode);
int dbg_suspend(struct dbg *d, uint64_t clear, uint32_t *ids, uint32_t n);
int dbg_resume(struct dbg *d, uint32_t *ids, uint32_t n);
int dbg_watch(struct dbg *d, uint32_t gpu, uint64_t address);
int dbg_unwatch(struct dbg *d, uint32_t gpu, uint32_t id);
int dbg_flags(struct dbg *d, uint32_t flags);
int dbg_query(struct dbg *d, uint64_t clear);
int dbg_info(struct dbg *d, uint32_t code, uint32_t source, void *buf, uint32_t size, bool clear);
int dbg_queues(struct dbg *d, uint64_t clear, void *buf, uint32_t n, uint32_t stride);
int dbg_devices(struct dbg *d, uint64_t clear, void *buf, uint32_t n, uint32_t stride);
/** Make all queues suspendable. */
void dbg_forget_new(struct dbg *d);
/** seize + ENABLE; asserts success. */
bool dbg_attach(struct dbg *d, pid_t pid, uint64_t mask);

/** Poll an expression until it holds, or patience ends. */
#define EVENTUALLY(expr)                                                                           \
	({                                                                                         \
		uint64_t end_ = clock_deadline_ms(PATIENCE_MS);                                    \
		bool eventually_;                                                                  \
		while (!(eventually_ = (expr)) && clock_left_ms(end_))                             \
			usleep(5000);                                                              \
		eventually_;                                                                       \
	})

#endif /* CONFORMANCE_ENV_H */
