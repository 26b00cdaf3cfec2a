/* SPDX-License-Identifier: MIT */
#ifndef CONFORMANCE_ANSWERS_H
#define CONFORMANCE_ANSWERS_H

/**
 * @file answers.h
 * One program for the simulator and for real kernels: it expects nothing, and prints what it is told.
 *
 * Every answer is one line, "ANSWER group.name text".  answers.txt has the answers of the real
 * kernels; test_answers.py compares.  GPU_AGENT_KFD_PERMISSIONS names the rule that is followed.
 */

#include "env.h"

/** One answer: the name of an errno, or a number.  @p name is a printf format. */
void answer(int result, const char *name, ...) __attribute__((format(printf, 2, 3)));
/** Words after the name of the answer that comes next, such as values that were handed out. */
void answer_with(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/** A group of answers, on a device without GPUs. */
#define ANSWERS(group)                                                                             \
	static void group##_answers(void);                                                         \
	void group(void);                                                                          \
	void group(void)                                                                           \
	{                                                                                          \
		env_begin();                                                                       \
		if (answers_begin(#group))                                                         \
			group##_answers();                                                         \
		env_end();                                                                         \
	}                                                                                          \
	static void group##_answers(void)

bool answers_begin(const char *group);

/* ---- actors: processes that do what they are told ---- */

struct actor {
	pid_t pid;
	int fd;
};

/** Up to four numbers for what an actor shall do. */
struct part {
	int (*play)(const uint64_t *with);
	uint64_t with[4];
};

/** Start a process that has not opened the device. */
bool actor_start(struct actor *a);
void actor_send(const struct actor *a, const struct part *p);
/** What it returned, or -ETIMEDOUT, -EPIPE. */
int actor_reply(const struct actor *a, int timeout_ms);
int actor_plays(const struct actor *a, const struct part *p);
#define PLAY(a, f, ...) actor_plays((a), &(struct part){ (f), { __VA_ARGS__ } })
/** Whether it gives no answer for as long as one that does not wait would need many times over. */
bool actor_waits(const struct actor *a);

/** Parts. */
int play_open(const uint64_t *with);
int play_close(const uint64_t *with);
/** RUNTIME_ENABLE with mode with[0] and r_debug with[1]; repeated when interrupted. */
int play_runtime(const uint64_t *with);
/** The same, once. */
int play_runtime_once(const uint64_t *with);

/** ioctl of the device @p fd: its result, or -errno. */
int device_call(int fd, uint32_t word, void *arg);
/** The actor's own descriptor of the device; in other processes whatever they opened last. */
extern int actor_kfd;

/** One DBG_TRAP operation with harmless arguments. */
int harmless_op(int fd, pid_t pid, uint32_t op);
/** How answers call it. */
const char *op_name(uint32_t op);

/** Bring a traced actor to a stop, and let it go on or go. */
bool actor_stop(pid_t pid);

#endif /* CONFORMANCE_ANSWERS_H */
