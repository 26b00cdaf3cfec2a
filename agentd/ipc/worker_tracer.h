/* SPDX-License-Identifier: MIT */
#ifndef AGENTD_IPC_WORKER_TRACER_H
#define AGENTD_IPC_WORKER_TRACER_H

/**
 * @file worker_tracer.h
 * Messages between a worker that has NVIDIA's library, or reads stacks, and its tracer, which has the right to trace.
 *
 * The worker makes the pair of sockets.  Its first message says which process the tracer is for;
 * after that each struct ipc_tracer_call is answered by one struct ipc_tracer_answer.  A block of
 * registers, or a text, may follow either of them in the same message.  Whatever breaks these rules
 * ends the tracer, and with it the kernel lets all threads go.
 */

#include <stdint.h>

/** The descriptors that a tracer finds. */
#define IPC_FD_TRACER_WORKER 4 /**< The socket pair to the worker. */
#define IPC_FD_TRACER_PROC   5 /**< The directory /proc/PID. */
#define IPC_FD_TRACER_PIDFD  6
#define IPC_FD_TRACER_MAPS   7 /**< /proc/PID/maps, of the program that the worker may trace. */

/** Most bytes that follow a call or an answer: a thread's vector registers. */
#define IPC_TRACER_BLOCK_MAX 16384u
/** The same of IPC_TRACER_SAMPLE: registers, and the top of the stack. */
#define IPC_TRACER_SAMPLE_MAX 65536u
/** A function may use so many bytes below its stack pointer (System V ABI of x86-64, 3.2.2); they are read as well. */
#define IPC_TRACER_RED_ZONE 128u
/** Longest text of IPC_TRACER_PLACE. */
#define IPC_TRACER_PLACE_MAX 512u

enum ipc_tracer_verb {
	IPC_TRACER_TARGET = 0x700 + 1, /**< struct ipc_tracer_target; not answered. */
	IPC_TRACER_SEIZE,
	IPC_TRACER_INTERRUPT,
	IPC_TRACER_LOOK,       /**< The answer has the stop. */
	IPC_TRACER_GO,	       /**< `what` is enum cudbgshim_go, `number` a signal. */
	IPC_TRACER_GET,	       /**< `what` is enum cudbgshim_part; the block follows the answer. */
	IPC_TRACER_SET,	       /**< `what` is enum cudbgshim_part; the block follows the call. */
	IPC_TRACER_PLACE,      /**< The text of /proc/PID/task/TID/syscall follows the answer. */
	IPC_TRACER_DESCRIPTOR, /**< Pipe `number` of the process; a duplicate comes with the answer. */
	/**
	 * Stop a thread, read it, and let it go, while the tracer holds none.  `number` is the offset of the stack
	 * pointer in the registers.  They follow the answer, and behind them the stack, as far as it can be read.
	 */
	IPC_TRACER_SAMPLE,
};

/** The process that the worker was allowed to attach to, as it was then. */
struct ipc_tracer_target {
	uint32_t verb;
	int32_t pid;
	uint64_t start_ticks; /**< Field 22 of /proc/PID/stat. */
	uint32_t uids[4];     /**< Real, effective, saved, file system. */
	uint32_t dumpable;
	uint32_t pad[7];
};

struct ipc_tracer_call {
	uint32_t verb;
	int32_t tid;
	uint32_t what;
	int32_t number;
	uint32_t size; /**< IPC_TRACER_GET: room for the block; IPC_TRACER_SET: its size. */
	uint32_t pad[11];
};

struct ipc_tracer_answer {
	int32_t result; /**< 0 or -errno. */
	uint32_t stop;	/**< IPC_TRACER_LOOK: kind of struct cudbgshim_stop. */
	int32_t sig;
	uint32_t size; /**< Bytes that follow. */
	uint32_t registers; /**< IPC_TRACER_SAMPLE: how many of them are registers. */
	uint32_t stopped_us; /**< IPC_TRACER_SAMPLE: how long the thread stood still at most. */
	uint64_t begin; /**< IPC_TRACER_SAMPLE: address of the stack's first byte. */
	uint32_t pad[8];
};

_Static_assert(sizeof(struct ipc_tracer_target) == 64 && sizeof(struct ipc_tracer_call) == 64 &&
	       sizeof(struct ipc_tracer_answer) == 64, "messages have one size");

#endif /* AGENTD_IPC_WORKER_TRACER_H */
