/* SPDX-License-Identifier: MIT */
#ifndef CTL_WATCH_H
#define CTL_WATCH_H

/**
 * @file watch.h
 * The live view of `watch`: what keys do and what a frame looks like.  These are pure functions;
 * verbs/watch.c has the terminal and the agent.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/group_rows.h"
#include "ctl/terminal/screen.h"
#include "rpc_gen.h"

enum watch_sort {
	WATCH_SORT_FAULTS, /**< As the agent sends them: faults first, then by waves. */
	WATCH_SORT_WAVES,
	WATCH_SORT_PLACE,
	WATCH_SORT_COUNT
};

/** What the user has chosen. */
struct watch_state {
	enum watch_sort sort;
	/** No snapshots are taken; devices and queues, or the help text, are shown, not groups. */
	bool paused, devices, help;
	size_t scroll;	      /**< Rows of the table above the window. */
	uint32_t asked_ms;    /**< Time between two snapshots that the user asked for. */
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
 * @param rows    Rows of the table without its title.
 * @param window  Rows of the table that the terminal has room for.
 * @param ret_n   Bytes used; 0: the key is not complete yet.
 */
enum watch_action watch_key(struct watch_state *s, const char *typed, size_t size, size_t rows,
			    size_t window, size_t *ret_n);

/**
 * The time between two snapshots so that queues stand still for at most a twentieth of it.
 * @param asked_ms    What the user asked for; the answer is never shorter.
 * @param stopped_us  How long queues stood still for the last snapshot.
 * @return milliseconds.
 */
uint32_t watch_interval(uint32_t asked_ms, uint64_t stopped_us);

/** Sort rows in place; their numbers stay.  @return 0, -ENOMEM, -EFBIG (arena). */
int watch_sort_rows(struct rpc_arena *a, struct group_rows *rows, enum watch_sort sort);

/** What stands above the table, in whole lines; those that go on a line begin with a blank. */
struct watch_head {
	struct out text;
	size_t headline; /**< Bytes at its beginning that say what is wrong; the rest is whose process it is. */
};

/**
 * How many rows of the table fit into a terminal of that height, below the head.  That gets a third of it, or as many
 * rows as the headline has sentences, of which each has a row then.
 */
size_t watch_window(struct screen_size size, const struct watch_head *head);
/** How many lines a text has, without the first, which is the title. */
size_t watch_rows(const char *table, size_t size);

/**
 * Append a frame: all rows of the terminal.
 * @param table  Title and rows; drawn from row s->scroll on.
 */
void watch_frame(struct out *o, struct screen_size size, const struct watch_state *s,
		 const struct watch_head *head, const struct out *table);

#endif /* CTL_WATCH_H */
