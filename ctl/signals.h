/* SPDX-License-Identifier: MIT */
#ifndef CTL_SIGNALS_H
#define CTL_SIGNALS_H

/**
 * @file signals.h
 * What SIGINT (Ctrl-C), SIGTERM and SIGHUP do.
 *
 * A verb that only asks may be interrupted at any time: the connection closes and the agent undoes
 * what it was doing.  The handler removes a temporary output file, ends JSON mode with an error
 * document and exits with 128 + the signal's number.  A verb that keeps something open catches the
 * signals while it waits (signals_hold()), so that it can let go in order.
 */

struct corefile_file;
struct output;

/**
 * Install the handler, and ignore SIGPIPE.  A signal that is ignored stays ignored.
 * @param output  Looked at by the handler; must live as long as the program.
 */
void signals_init(const struct output *output);
/**
 * Set what the handler does before it ends the program, for example to give back the terminal.
 * @param fn  Async-signal-safe; NULL for nothing.
 */
void signals_at_exit(void (*fn)(void));
/**
 * Name a file whose hidden name the handler removes, because the file is still being written.
 * @param file  Borrowed until the next call; NULL for none.
 */
void signals_watch_file(const struct corefile_file *file);
/**
 * Block the signals; from here on they arrive as records of a signalfd.
 * @return a non-blocking descriptor for signals_read() and poll(), or -errno.
 */
int signals_hold(void);
/** Give the signals back to the handler, which also gets those not read yet.  Closes @p fd. */
void signals_release(int fd);
/** Read the number of the next signal that arrived; 0 if none did. */
int signals_read(int fd);

#endif /* CTL_SIGNALS_H */
