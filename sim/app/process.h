/* SPDX-License-Identifier: MIT */
#ifndef SIMAPP_PROCESS_H
#define SIMAPP_PROCESS_H

/**
 * @file process.h
 * What the programs on both vendors' simulated GPUs have in common: options, counters, heartbeat threads, and the
 * commands of a script that concern the process itself.
 */

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/argv.h"
#include "sim/app/scene.h"
#include "sim/app/status.h"
#include "tests/lib/words.h"

/** A program on simulated GPUs; each vendor's has one. */
struct process {
	const char *program;	     /**< Its name in messages. */
	const char *vendor;	     /**< Whose scenes it runs: "amd" or "cuda". */
	const char *default_script;
	struct words_names names;    /**< Parameters of the script. */
	struct scene script;	     /**< Without a directory, files that it names lie where the program runs. */
	struct simapp_status *status;
	uint64_t beat_us;	     /**< Pause between two beats. */
	bool realtime;		     /**< Heartbeats run under SCHED_FIFO, if that is permitted. */
	bool is_ready;		     /**< The ready line was printed. */
	/** Print the line that tests wait for, with what they need to know. */
	void (*print_ready)(struct process *p);
	/** Run a command of the vendor's own.  @return 0, -ENOSYS (there is no such command), -errno. */
	int (*run)(struct process *p, const struct words *w);
	/** Called now and then by the first heartbeat thread; NULL: there is nothing to do. */
	void (*on_beat)(struct process *p);
};

/** Options as they were given. */
struct process_options {
	const char *script, *scene, *scene_dir, *set, *status, *threads, *beat_us;
	const char *file; /**< With the script; NULL: none. */
	bool list_scenes, help, version;
};

/** Rows of an option table. */
#define PROCESS_OPTIONS(o)                                                                                       \
	{ "execute", 'e', ARGV_STRING, &(o).script, "SCRIPT", "commands to run" },                               \
	{ "scene", 'S', ARGV_STRING, &(o).scene, "NAME|FILE", "run that scene, or a file with a slash in its path" }, \
	{ "set", 0, ARGV_STRING, &(o).set, "NAME=VALUE,...", "values of the scene's parameters" },               \
	{ "scene-dir", 0, ARGV_STRING, &(o).scene_dir, "DIR", "where scenes lie, instead of the usual place" },  \
	{ "list-scenes", 'l', ARGV_FLAG, &(o).list_scenes, NULL, "show all scenes" },                            \
	{ "status-file", 's', ARGV_STRING, &(o).status, "PATH", "publish counters there" },                      \
	{ "threads", 't', ARGV_STRING, &(o).threads, "N", "heartbeat threads (default 1)" },                     \
	{ "beat-us", 'b', ARGV_STRING, &(o).beat_us, "US", "pause between beats; 0 burns a CPU" },               \
	{ "version", 0, ARGV_FLAG, &(o).version, NULL, "show the version" },                                     \
	{ "help", 'h', ARGV_FLAG, &(o).help, NULL, "this text" }

/**
 * Find the script, and map the counters.
 * @param ret_threads  Heartbeat threads to start.
 * @return 0, or an exit status after a message.
 */
int process_begin(struct process *p, const struct process_options *o, unsigned int *ret_threads);
/** Say on standard error what failed.  @return an exit status. */
int process_fail(const struct process *p, const char *what, int r);

/** Start heartbeat threads, which count and measure how long they stand still.  @return 0 or -errno. */
int process_start_beats(struct process *p, unsigned int n);
/** Start a detached thread with a small stack.  @return 0 or -errno. */
int process_start_thread(void *(*run)(void *), void *arg, bool realtime);
/** Sleep; a signal ends it early. */
void process_pause_us(uint64_t us);
/** Count signals of the number that `signals` raises. */
void process_count_signals(struct process *p);
/** The number of those signals. */
#define PROCESS_SIGNAL (SIGRTMIN + 3)

/** Print the ready line, once. */
void process_ready(struct process *p);
/** Run commands up to the first that fails, and count the others.  @return 0 or its error. */
int process_run_script(struct process *p, const char *text, size_t size);
/** Print the commands that both programs have. */
void process_help(void);

#endif /* SIMAPP_PROCESS_H */
