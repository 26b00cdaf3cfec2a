/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_WORKER_KERNEL_H
#define TESTS_UNIT_WORKER_KERNEL_H

#include "agentd/worker/kfd/kfd.h"
#include "libkfdtrap/src/kfd_abi.h"

#define GPU 100u

/* A kernel small enough to read: three queues, two devices, and what it was asked. */
extern struct kernel {
	bool enabled, tracing;
	uint64_t mask, queue_bits[3], device_bits[2], process_bits;
	bool suspended[3];
	uint32_t runtime_state, mode, flags, override, watch_used[2];
	unsigned handshakes, sends;
	struct {
		uint64_t mask;
		uint32_t gpu, queue;
	} sent[16];
	uint32_t fail_op; /* This one ... */
	int fail_err, fail_after; /* ... fails so, after this many successes. */
	int wakes; /* Where it writes a byte for each new mask, if it does. */
	char ops[256];
	size_t n_ops;
} k;

/** A session on a process of this kernel, as after attach; the kernel is new with it. */
struct target_kfd *attached(void);

/** Frees it; what the test has left to undo stays. */
void released(struct target_kfd *t);

/** Declare such a session, with an arena and an error; the test ends with released(). */
#define WITH(t)                                                                                    \
	auto_rpc_arena struct rpc_arena arena;                                                     \
	struct agent_err err = { 0 };                                                              \
	struct target_kfd *t = attached();                                                         \
	rpc_arena_init(&arena, 0)

#endif
