/* SPDX-License-Identifier: MIT */
/*
 * Threads that wait in many ways, each below three calls of its own.  A line is printed when all are at it.
 * usage: waits          built with frame pointers it is waits_frame_pointer
 *        waits SEED     what the program has in memory of its own files is then scribbled over
 *        waits 0        one thread that naps below one chain of calls, then below another
 */
#include <elf.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include WAITS_MACHINE /* waits_x86_64.h, waits_aarch64.h */

/* Functions whose names are looked for. */
#define EXPORT __attribute__((visibility("default"), noipa))
EXPORT long wait_by_hand(long n);
EXPORT void inner_call(void (*wait)(void));
EXPORT void middle_call(void (*wait)(void));
EXPORT void *outer_call(void *wait);

static volatile int sink;

/* In a function whose frame only the frame pointer finds. */
long wait_by_hand(long n)
{
	volatile char *room = __builtin_alloca((size_t)n);
	long result;

	room[0] = 1;
	result = call_kernel(WAITS_FOR_EVER, NULL);
	sink = room[0];
	return result;
}

static void wait_read(void)
{
	int fds[2];
	char byte;

	if (pipe(fds) == 0)
		sink = (int)read(fds[0], &byte, 1);
}

static void wait_futex(void)
{
	static sem_t semaphore;

	sem_wait(&semaphore);
}

static void wait_sleep(void)
{
	const struct timespec t = { .tv_sec = 100000 };

	nanosleep(&t, NULL);
}

static void wait_poll(void)
{
	struct pollfd p = { .fd = -1 };

	poll(&p, 1, -1);
}

static void wait_epoll(void)
{
	struct epoll_event e;

	epoll_wait(epoll_create1(0), &e, 1, -1);
}

/* syscall() of the C library calls no function: on aarch64 its return address is in a register. */
static __attribute__((noipa)) void call_leaf(void)
{
	syscall(SYS_ppoll, NULL, 0, NULL, NULL, 0);
	sink++;
}

static void wait_leaf(void)
{
	call_leaf();
	sink++;
}

static void wait_itself(void)
{
	wait_by_hand(100);
}

void inner_call(void (*wait)(void))
{
	char room[100];

	memset(room, sink, sizeof(room));
	wait();
	sink = room[sink & 63];
}

void middle_call(void (*wait)(void))
{
	inner_call(wait);
	sink++;
}

void *outer_call(void *wait)
{
	void (*fn)(void);

	memcpy(&fn, &wait, sizeof(fn));
	middle_call(fn);
	sink++;
	return NULL;
}

/* ------------------------------------------------------------------ two chains of calls ------ */

/* The innermost frame is the chain's own, too: its registers and its stack must be of one moment. */
static inline __attribute__((always_inline)) void nap(void)
{
	const struct timespec t = { .tv_nsec = 100000 };

	call_kernel(SYS_nanosleep, &t);
}

#define CHAIN(name, next)          \
	EXPORT void name(int left); \
	void name(int left)        \
	{                          \
		next;              \
		sink += left;      \
	}
CHAIN(a_inner, nap())
CHAIN(a_middle, left ? a_middle(left - 1) : a_inner(left))
CHAIN(a_outer, a_middle(left))
CHAIN(b_inner, nap())
CHAIN(b_middle, left ? b_middle(left - 1) : b_inner(left))
CHAIN(b_outer, b_middle(left))

static void alternate(void)
{
	puts("ready");
	fflush(stdout);
	for (;;) {
		a_outer(20);
		b_outer(20);
	}
}

/* ------------------------------------------------------------------ hostile tables ----------- */

struct scribble {
	uint64_t random;
	unsigned one_of; /* So many bytes, one is changed. */
};

static uint64_t next_random(struct scribble *s)
{
	s->random ^= s->random << 13;
	s->random ^= s->random >> 7;
	s->random ^= s->random << 17;
	return s->random;
}

/* Headers, tables and symbols are in what can neither be written nor executed. */
static int scribble_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct scribble *s = arg;

	for (size_t i = 0; i < info->dlpi_phnum && size; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t begin = (info->dlpi_addr + p->p_vaddr) & ~(uintptr_t)4095, end = begin + p->p_memsz;

		if (p->p_type != PT_LOAD || p->p_flags & (PF_W | PF_X) ||
		    mprotect((void *)begin, end - begin, PROT_READ | PROT_WRITE))
			continue;
		/* Sometimes the headers stay. */
		begin += next_random(s) & 1 ? 0 : 1024;
		for (uintptr_t at = begin; at < end; at += 1 + next_random(s) % s->one_of)
			*(volatile unsigned char *)at = (unsigned char)next_random(s);
	}
	return 0;
}

static void scribble(unsigned seed)
{
	struct scribble s = { .random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1, .one_of = 4u << seed % 8 };

	dl_iterate_phdr(scribble_object, &s);
}

int main(int argc, char **argv)
{
	void (*const waits[])(void) = { wait_read, wait_futex, wait_sleep, wait_poll, wait_epoll, wait_leaf,
					      wait_itself };
	const unsigned seed = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
	char ready[] = { 'r', 'e', 'a', 'd', 'y', '\n' };
	pthread_t thread;

	if (argc > 1 && !seed)
		alternate();
	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
		void *arg;

		memcpy(&arg, &waits[i], sizeof(arg));
		if (pthread_create(&thread, NULL, outer_call, arg))
			return 1;
	}
	sleep(1);
	if (seed)
		scribble(seed);
	if (write(1, ready, sizeof(ready)) < 0)
		return 1;
	wait_by_hand(100);
	return 0;
}
