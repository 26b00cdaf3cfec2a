/* SPDX-License-Identifier: MIT */
#ifndef SIMAPP_APP_H
#define SIMAPP_APP_H

/** @file app.h  The parts of the simulated GPU application. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "process.h"

#define APP_GPUS_MAX 64

/** A GPU as sysfs and the driver describe it. */
struct app_gpu {
	const char *name; /**< LLVM name; NULL if no simulator knows this GPU. */
	uint32_t gpu_id, num_xcc;
	uint32_t area_size, ctl_stack_size; /**< Bytes of one XCC. */
	uint32_t waves;
};

/** What a dispatch was given. */
struct app_arguments {
	const uint8_t *bytes; /**< NULL: nothing in particular. */
	size_t size;
	uint64_t at; /**< Where the packets say that they are; 0: in memory that is made for them. */
};

struct app_object;

/** Kinds of packets that are written one by one. */
enum app_packet_kind {
	APP_PACKET_INVALID, /**< A place that was taken and not written. */
	APP_PACKET_KERNEL,  /**< As the rest of the ring has it. */
	APP_PACKET_AND,
	APP_PACKET_OR,
	APP_PACKET_VALUE,
	APP_PACKET_COUNT,
};

#define APP_PACKET_SIGNALS 5

/** A packet of a queue. */
struct app_packet {
	enum app_packet_kind kind;
	bool barrier; /**< It begins when all before it are done. */
	uint64_t signals[APP_PACKET_SIGNALS], completion; /**< Addresses. */
	size_t n_signals;
	uint64_t value, mask;
	uint32_t condition;
};

/** Where in a signal its value is (amd_signal_t of AMD's amd_hsa_signal.h). */
#define APP_SIGNAL_VALUE 8u

/** A signal of the program. */
struct app_signal;

#define APP_AWAIT_MAX 2

/** What a thread waits for. */
struct app_await {
	uint32_t events[APP_AWAIT_MAX], n;
	bool all;    /**< For all of them, and not for the first. */
	bool hidden; /**< Nobody can read the arguments while it waits. */
};

/** The program. */
struct app {
	struct process process; /**< The first member, so that the process's functions may cast. */
	const char *kfd_path;
	int kfd;
	uint32_t minor;
	struct app_gpu gpus[APP_GPUS_MAX];
	size_t n_gpus;
	uint32_t memory_event;
	uint32_t wake_event; /**< Makes the event thread look at the queues again. */
	bool huge_pages, idle;
	struct out *passed; /**< A line for each dispatch that was given arguments. */
	struct app_signal *signals;
	struct app_object *objects; /**< Loaded code objects, the last one first. */
};

/* ---- device.c: what a ROCm runtime does with the device ---- */
/** Open the device, read version, apertures and topology.  @return 0 or -errno. */
int device_open(struct app *a);
/** Call RUNTIME_ENABLE, which is repeated on EINTR as libhsakmt does.  @return 0 or -errno. */
int device_runtime(struct app *a, uint32_t mode);
/**
 * Create a queue with everything that a runtime gives it.  @return 0, -ENODEV, -ENOSPC, -ENOMEM, or
 * what the driver says.
 */
int device_queue_create(struct app *a, size_t gpu, uint32_t type, uint32_t *ret_id);
/**
 * Create a secondary context (Linux 7.0 and later) with one AQL queue, and keep both.
 * @return 0, -ENODEV, -ENOMEM, -ENOTTY of an older kernel, or what else the driver says.
 */
int device_context_create(struct app *a, size_t gpu);
/**
 * Give all packets of a queue a completion signal with an event of its own.
 * @param value  Of the signal; 0: the work is done.
 * @return 0, -ENOENT (no such AQL queue), -ENOMEM, or what the driver says.
 */
int device_queue_signal(struct app *a, uint32_t id, int64_t value, uint32_t *ret_event);
/** Exchange the completion signals of two queues.  @return 0, -ENOENT. */
int device_queues_swap_signals(struct app *a, uint32_t one, uint32_t other);
/** Destroy a queue.  @return 0, or what the driver says. */
int device_queue_destroy(struct app *a, uint32_t id);
/** Keep every queue supplied with packets. */
void device_queues_feed(struct app *a);
/** Write one line to the simulator's control file beside the device.  @return 0 or -errno. */
int device_control(const struct app *a, const char *line);
/**
 * Let every packet of a queue's ring start a kernel.
 * @param descriptor  Address of the kernel's descriptor.
 * @param arguments   Are copied.
 * @return 0, -ENOENT (no such AQL queue), -ENOMEM.
 */
int device_queue_dispatch(struct app *a, uint32_t id, uint64_t descriptor, const uint32_t grid[3],
			  const uint16_t group[3], const struct app_arguments *arguments);
/** Make a signal, or set its value.  @return 0, -ENOMEM. */
int device_signal_set(struct app *a, const char *name, int64_t value);
/** Find the event of a signal, which gets one if it has none.  @return 0, -ENOENT, or what the driver says. */
int device_signal_event(struct app *a, const char *name, uint32_t *ret_event);
/** Create an event of the driver for signals.  @return 0, or what the driver says. */
int device_event_create(struct app *a, uint32_t *ret_event);
/** Find the address of a signal by its name.  @return 0, -ENOENT. */
int device_signal_find(const struct app *a, const char *name, uint64_t *ret);
/** Map the first 64 KiB of a file at an address, without reading it.  @return 0, -errno. */
int device_map_file(uint64_t address, const char *path);
/** Write memory at an address, and have it where there is none.  @return 0, negative. */
int device_write_memory(uint64_t address, const void *bytes, size_t size);
/** Write a packet into a place of a queue's ring.  @return 0, -ENOENT (no such AQL queue). */
int device_packet_write(struct app *a, uint32_t id, uint64_t at, const struct app_packet *p);
/** Let a queue have so many packets that are not done.  @return 0, -ENOENT. */
int device_queue_pending(struct app *a, uint32_t id, uint64_t n);
/**
 * Add a code object to the list that `_amdgpu_r_debug` heads, as a runtime does.  @return 0,
 * -ENOMEM.
 */
int device_object_add(struct app *a, const char *uri, uint64_t bias);
/**
 * Spoil that list: "busy" (being changed) until "whole", "cycle", "gone" (empty), or "newer" (of a
 * runtime to come).  @return 0, -EINVAL.
 */
int device_list_state(struct app *a, const char *state);

/* ---- object.c ---- */
/**
 * Load a code object and add it to the list.
 * @param offset     Where it begins in the file.
 * @param size       Its bytes; 0: up to the end of the file.
 * @param in_memory  Publish a copy in memory instead of the file.
 * @return 0 or -errno.
 */
int object_load(struct app *a, const char *path, uint64_t offset, uint64_t size, bool in_memory);
/**
 * The address of `SYMBOL` or `SYMBOL+OFFSET`; the object that was loaded last is asked first.
 * @return 0, -ENOENT, -EINVAL.
 */
int object_address(const struct app *a, const char *text, uint64_t *ret);

/* ---- threads.c ---- */
/** Start the thread that waits for error and memory events, as the runtime's own thread does. */
int threads_start_events(struct app *a);
/** Start a thread that waits for events, as a program does that waits for its work.  @return 0 or -errno. */
int threads_start_waiter(struct app *a, const struct app_await *what);
/** Start threads that wait; SIGUSR2 to one of them ends it.  @param name  Of each; NULL: none of its own. */
int threads_start_sleepers(unsigned int n, const char *name);
/** Raise @p n real-time signals against this process, @p pause_us apart, in the background. */
int threads_start_signals(struct app *a, unsigned int n, unsigned int pause_us);

/* ---- script.c: what process.h wants of a vendor ---- */
/** process.print_ready */
void script_ready(struct process *p);
/** process.run */
int script_command(struct process *p, const struct words *w);
/** Print the commands of this program alone. */
void script_help(void);

#endif /* SIMAPP_APP_H */
