/* SPDX-License-Identifier: MIT */
#ifndef CTL_WATCH_H
#define CTL_WATCH_H

/**
 * @file watch.h
 * The live view: what keys do and what a frame looks like.  Pure functions; verbs/watch.c has the
 * terminal and the agent.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/terminal/screen.h"
#include "rpc_gen.h"

enum watch_sort {
	WATCH_SORT_FAULTS, /**< As the agent sends them: faults first, then by waves. */
	WATCH_SORT_WAVES,
	WATCH_SORT_PLACE,
	WATCH_SORT_COUNT
};

struct watch_state {
	enum watch_sort sort;
	bool paused, devices, help;
	size_t scroll;	      /**< Rows of the table above the window. */
	uint32_t asked_ms;    /**< Between two snapshots. */
	uint32_t interval_ms; /**< The same, stretched by watch_interval(). */
};

/** What a key changed. */
enum watch_action {
	WATCH_NOTHING,
	WATCH_REDRAW, /**< The same table at another place, or another line around it. */
	WATCH_RENDER, /**< Another table. */
	WATCH_QUIT
};

/**
 * Handle the key at the start of what was typed.
 * @param rows    Of the table, and of the window for it.
 * @param ret_n   Bytes used; 0: the key is not complete yet.
 */
enum watch_action watch_key(struct watch_state *s, const char *typed, size_t size, size_t rows,
			    size_t window, size_t *ret_n);

/**
 * Time between two snapshots so that queues stand still for at most a twentieth of it.
 * @param stopped_us  Of the last snapshot.
 */
uint32_t watch_interval(uint32_t asked_ms, uint64_t stopped_us);

/** In place.  @return 0, -ENOMEM, -EFBIG (arena). */
int watch_sort_groups(struct rpc_arena *a, struct rpc_group *groups, size_t n,
		      enum watch_sort sort);

/** One line: process, waves, stop time, completeness. */
void watch_head(struct out *o, const struct rpc_gpu_snapshot_result *s);

/** Rows for the table in a terminal of that height. */
size_t watch_window(struct screen_size size);
/** Lines of a text, without the first, which is the title. */
size_t watch_rows(const char *table, size_t size);

/**
 * @param head   See watch_head().
 * @param table  Title and rows; drawn from row s->scroll on.
 */
void watch_frame(struct out *o, struct screen_size size, const struct watch_state *s,
		 const struct out *head, const struct out *table);

#endif /* CTL_WATCH_H */
