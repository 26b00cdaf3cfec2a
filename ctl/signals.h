/* SPDX-License-Identifier: MIT */
#ifndef CTL_SIGNALS_H
#define CTL_SIGNALS_H

/**
 * @file signals.h
 * Ctrl-C and its relatives.
 *
 * A verb that only asks may be interrupted at any time: the connection closes and the agent undoes
 * what it was doing.  The handler removes a temporary output file, ends JSON mode with an error
 * document and exits with 128 + the signal's number.  A verb that keeps something open catches them
 * while it waits (signals_hold()), so that it can let go in order.
 */

struct corefile_file;
struct output;

/** @param output  Looked at by the handler; must live as long as the program. */
void signals_init(const struct output *output);
/**
 * What the handler does before it ends the program, for example to give back the terminal.
 * @param fn  Async-signal-safe; NULL for nothing.
 */
void signals_at_exit(void (*fn)(void));
/** A file that has a hidden name while it is written, which the handler removes; NULL: none. */
void signals_watch_file(const struct corefile_file *file);
/**
 * From here on the signals arrive as records of a signalfd.
 * @return descriptor, or -errno.
 */
int signals_hold(void);
/** Back to the handler, which also gets what arrived meanwhile.  Closes @p fd. */
void signals_release(int fd);
/** Signal that arrived, or 0. */
int signals_read(int fd);

#endif /* CTL_SIGNALS_H */
