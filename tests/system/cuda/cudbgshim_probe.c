/* SPDX-License-Identifier: MIT */
/*
 * A debugger of one process through libcudbgshim, up to where the target has to be touched: the
 * test does that part.  Commands come on stdin, one a line:
 *	replay	  read events until the attach is complete, print them
 *	snapshot  suspend, read the state in both ways, compare, resume
 *	finish	  finalize and end
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cudbgshim.h"

#define PATIENCE_MS 20000

static struct cudbgshim *s;
static atomic_uint n_notified;
static struct cudbgshim_state_reader *readers[CUDBGSHIM_MAX_DEVICES];

static void notify(void *user, uint32_t tid)
{
	atomic_fetch_add(&n_notified, 1);
}

static int check(int r, const char *what)
{
	const struct cudbgshim_call *call = cudbgshim_last(s);

	if (r >= 0)
		return r;
	fprintf(stderr, "%s: %s; %s: %s\n", what, strerror(-r), call->name,
		call->called ? cudbgshim_result_name(call->result) : "not called");
	exit(1);
}

static void expect(bool holds, const char *what, const struct cudbgshim_place *at)
{
	if (holds)
		return;
	fprintf(stderr, "%s differs: device %u SM %u warp %u lane %u\n", what, at->dev, at->sm,
		at->warp, at->lane);
	exit(1);
}

/* ------------------------------------------------------------------ events ------------------- */

static void show_event(const struct cudbgshim_event *e)
{
	printf("event %s", cudbgshim_event_name(e->kind));
	if (e->kind == CUDBGSHIM_EVENT_ELF_IMAGE_LOADED) {
		auto_free char *image = calloc(1, e->image.size);

		check(cudbgshim_get_elf_image(s, e->dev, e->image.handle, true, image,
					      e->image.size),
		      "image");
		printf(" %s", memcmp(image, "\177ELF", 4) == 0 ? "elf" : "no elf");
	}
	printf("\n");
}

static void replay(void)
{
	uint64_t deadline = clock_deadline_ms(PATIENCE_MS);
	struct cudbgshim_event e = { 0 };

	while (e.kind != CUDBGSHIM_EVENT_ATTACH_COMPLETE) {
		int r = check(cudbgshim_get_next_event(s, CUDBGSHIM_QUEUE_SYNC, &e), "event");

		if (r == 0) {
			show_event(&e);
			continue;
		}
		if (clock_left_ms(deadline) == 0)
			check(-ETIMEDOUT, "replay");
		check(cudbgshim_acknowledge_sync_events(s), "acknowledge");
		usleep(1000);
	}
	check(cudbgshim_acknowledge_sync_events(s), "acknowledge");
	/* It comes from another thread, which may not have had its turn yet. */
	while (!atomic_load(&n_notified) && clock_left_ms(deadline))
		usleep(1000);
	printf("notified %d\n", atomic_load(&n_notified) > 0);
}

/* ------------------------------------------------------------------ state -------------------- */

static bool same_dim(struct cudbgshim_dim3 a, struct cudbgshim_dim3 b)
{
	return a.x == b.x && a.y == b.y && a.z == b.z;
}

static void compare_warps(const struct cudbgshim_warp *a, const struct cudbgshim_warp *b,
			  const struct cudbgshim_place *at)
{
	expect(a->grid_id == b->grid_id, "grid", at);
	expect(same_dim(a->block, b->block), "block", at);
	expect(same_dim(a->base_thread, b->base_thread), "first thread", at);
	expect(a->valid_lanes == b->valid_lanes, "valid lanes", at);
	expect(a->active_lanes == b->active_lanes, "active lanes", at);
	expect(a->syscall_lanes == b->syscall_lanes, "lanes in system calls", at);
	expect(a->error_pc == b->error_pc, "error address", at);
	expect(a->breakpoint == b->breakpoint, "breakpoint", at);
	expect(same_dim(a->cluster_idx, b->cluster_idx), "index in the cluster", at);
	expect(same_dim(a->cluster_dim, b->cluster_dim), "cluster", at);
	expect(same_dim(a->cluster_target, b->cluster_target), "target of the exception", at);
	expect(a->has == b->has, "set of facts", at);
}

static void compare_grid(const struct cudbgshim_state *state, const struct cudbgshim_place *at)
{
	const struct cudbgshim_warp *w =
		&state->warps[cudbgshim_state_index(state, at->sm, at->warp)];
	struct cudbgshim_dim3 block_dim;
	struct cudbgshim_grid grid;

	check(cudbgshim_get_grid(s, at->dev, w->grid_id, &grid), "grid");
	check(cudbgshim_get_block_dim(s, at, &block_dim), "block dimensions");
	expect(same_dim(block_dim, grid.block_dim), "block dimensions", at);
}

static void compare_states(uint32_t dev, const struct cudbgshim_state *a,
			   const struct cudbgshim_state *b)
{
	size_t n_lanes = (size_t)a->n_sms * a->n_warps * a->n_lanes;
	struct cudbgshim_place at = { .dev = dev };
	uint32_t n_warps = 0, n_valid = 0, n_broken = 0;

	expect(memcmp(a->exception_sms, b->exception_sms, sizeof(a->exception_sms)) == 0,
	       "SMs with exceptions", &at);
	expect(memcmp(a->lane_pc, b->lane_pc, n_lanes * sizeof(*a->lane_pc)) == 0, "pcs", &at);
	expect(memcmp(a->lane_exception, b->lane_exception, n_lanes * sizeof(*a->lane_exception)) ==
		       0,
	       "exceptions", &at);
	for (at.sm = 0; at.sm < a->n_sms; at.sm++) {
		expect(a->valid_warps[at.sm] == b->valid_warps[at.sm], "valid warps", &at);
		expect(a->broken_warps[at.sm] == b->broken_warps[at.sm], "broken warps", &at);
		n_broken += (uint32_t)__builtin_popcountll(a->broken_warps[at.sm]);
		for (at.warp = 0; at.warp < a->n_warps; at.warp++) {
			size_t i = cudbgshim_state_index(a, at.sm, at.warp);

			compare_warps(&a->warps[i], &b->warps[i], &at);
			if (!(a->valid_warps[at.sm] >> at.warp & 1))
				continue;
			compare_grid(a, &at);
			n_warps++;
			n_valid += (uint32_t)__builtin_popcount(a->warps[i].valid_lanes);
		}
	}
	printf("device %u warps %u lanes %u broken %u batched %d\n", dev, n_warps, n_valid,
	       n_broken, cudbgshim_state_reader_is_batched(readers[dev]));
}

static void snapshot(uint32_t n_devices)
{
	check(cudbgshim_suspend_all(s), "suspend");
	for (uint32_t dev = 0; dev < n_devices; dev++) {
		const struct cudbgshim_state *state;
		struct cudbgshim_state *plain;

		if (!readers[dev])
			check(cudbgshim_state_reader_create(s, dev, &readers[dev]), "reader");
		check(cudbgshim_state_reader_read(readers[dev], &state), "state");
		check(cudbgshim_state_create(state->n_sms, state->n_warps, state->n_lanes, &plain),
		      "memory");
		check(cudbgshim_state_read_plain(s, dev, plain), "plain state");
		compare_states(dev, state, plain);
		cudbgshim_state_destroy(plain);
	}
	check(cudbgshim_resume_all(s), "resume");
}

static void show_device(uint32_t dev)
{
	struct cudbgshim_device d;

	check(cudbgshim_get_device(s, dev, &d), "device");
	printf("is %u %s %s SMs %u warps %u lanes %u registers %u\n", dev, d.chip, d.sm_type,
	       d.n_sms, d.n_warps, d.n_lanes, d.n_registers);
}

int main(int argc, char **argv)
{
	struct cudbgshim_options options = { .path = argc > 1 ? argv[1] : NULL };
	struct cudbgshim_failure failure;
	uint32_t n_devices;
	char line[64];
	int r;

	setvbuf(stdout, NULL, _IOLBF, 0);
	r = cudbgshim_create(&options, &s, &failure);
	if (r < 0) {
		fprintf(stderr, "step %d: %s %s\n", failure.step, strerror(-r), failure.text);
		return 1;
	}
	check(cudbgshim_set_client(s, argc > 2 ? (uint32_t)atoi(argv[2]) : 1, 0), "client");
	check(cudbgshim_set_notify(s, notify, NULL), "notify");
	check(cudbgshim_initialize(s), "initialize");
	check(cudbgshim_get_n_devices(s, &n_devices), "devices");
	printf("release %u.%u slots %u\n", cudbgshim_get_version(s).major,
	       cudbgshim_get_version(s).minor, cudbgshim_get_version(s).n_slots);
	for (uint32_t dev = 0; dev < n_devices; dev++)
		show_device(dev);
	while (printf("ok\n"), fgets(line, sizeof(line), stdin)) {
		if (strcmp(line, "replay\n") == 0)
			replay();
		else if (strcmp(line, "snapshot\n") == 0)
			snapshot(n_devices);
		else if (strcmp(line, "finish\n") == 0)
			break;
	}
	for (uint32_t dev = 0; dev < n_devices; dev++)
		cudbgshim_state_reader_destroy(readers[dev]);
	check(cudbgshim_finalize(s), "finalize");
	cudbgshim_destroy(s);
	return 0;
}
