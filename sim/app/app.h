/* SPDX-License-Identifier: MIT */
#ifndef SIMAPP_APP_H
#define SIMAPP_APP_H

/** @file app.h  The parts of the simulated GPU application. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "status.h"

#define APP_GPUS_MAX 64

struct app_gpu {
	uint32_t gpu_id, num_xcc;
	uint32_t area_size, ctl_stack_size; /**< Per XCC. */
	uint32_t waves;
};

struct app_object;

struct app {
	const char *kfd_path;
	int kfd;
	uint32_t minor;
	struct app_gpu gpus[APP_GPUS_MAX];
	size_t n_gpus;
	uint32_t memory_event;
	uint32_t wake_event; /**< Makes the event thread look at the list again. */
	struct simapp_status *status;
	uint64_t beat_us;
	bool realtime, huge_pages, idle, ready_printed;
	struct app_object *objects; /**< The last one first. */
};

/* ---- device.c: what a ROCm runtime does with the device ---- */
/** Open the device, read version, apertures and topology.  @return 0 or -errno. */
int device_open(struct app *a);
/** RUNTIME_ENABLE; repeats on EINTR as libhsakmt does.  @return 0 or -errno. */
int device_runtime(struct app *a, uint32_t mode);
int device_queue_create(struct app *a, size_t gpu, uint32_t type, uint32_t *ret_id);
int device_queue_destroy(struct app *a, uint32_t id);
/** Keep every queue supplied with packets. */
void device_queues_feed(struct app *a);
/** Write one line to the simulator's control file beside the device. */
int device_control(const struct app *a, const char *line);
/** Let every packet of a queue's ring start a kernel.  @param descriptor  Its address. */
int device_queue_dispatch(struct app *a, uint32_t id, uint64_t descriptor, const uint32_t grid[3],
			  const uint16_t group[3]);
/** Add a code object to the list that `_amdgpu_r_debug` heads. */
int device_object_add(struct app *a, const char *uri, uint64_t bias);
/** Spoil that list: "busy" (being changed) until "whole", "cycle", "gone" (empty), or "newer" (of a runtime to come). */
int device_list_state(struct app *a, const char *state);

/* ---- object.c ---- */
/**
 * Load a code object and add it to the list.
 * @param size       0: up to the end of the file.
 * @param in_memory  Publish a copy in memory instead of the file.
 */
int object_load(struct app *a, const char *path, uint64_t offset, uint64_t size, bool in_memory);
/** Address of `SYMBOL` or `SYMBOL+OFFSET`, of the object loaded last.  @return 0, -ENOENT, -EINVAL. */
int object_address(const struct app *a, const char *text, uint64_t *ret);

/* ---- threads.c ---- */
int threads_start(struct app *a, unsigned int n);
/** Waits for error and memory events, as the runtime's own thread does. */
int threads_start_events(struct app *a);
/** Threads that wait; SIGUSR2 to one of them ends it. */
int threads_start_sleepers(unsigned int n);
/** Raise @p n real-time signals against this process, @p pause_us apart, in the background. */
int threads_start_signals(struct app *a, unsigned int n, unsigned int pause_us);

/* ---- script.c ---- */
/** Run commands separated by `;` or newlines.  @return 0, or the error of the one that failed. */
int script_run(struct app *a, const char *text);
void script_help(void);

#endif /* SIMAPP_APP_H */
