/* SPDX-License-Identifier: MIT */
#ifndef DISASM_CONFINE_H
#define DISASM_CONFINE_H

/**
 * @file confine.h
 * Leaves a child process nothing but what its work needs.
 */

#include <sys/types.h>

/**
 * Prepare a child that was just forked: signals are handled as a program expects, @p fds become its
 * first
 * @p n descriptors and no others stay open, it writes no core file, uses no more than @p cpu_s
 * seconds of a processor, and does not outlive @p parent.
 * @return 0, -errno.
 */
int disasm_settle(const int *fds, size_t n, unsigned int cpu_s, pid_t parent);

/**
 * Confine the process: from here on it can read, write, take memory and exit; any other system call
 * gives EPERM.  Does nothing on machines whose system call numbers are not known here.
 * @return 0, -errno.
 */
int disasm_confine(void);
/**
 * The same for a program that is executed next.  It can also read the files that its user can, and
 * have threads, but it can make, write or delete no file, start no process, open no socket, and
 * signal nobody.
 * @return 0, -ENOTSUP (a machine whose system call numbers are not known here), other -errno.
 */
int disasm_confine_program(void);

#endif /* DISASM_CONFINE_H */
