/* SPDX-License-Identifier: MIT */
#ifndef DISASM_CONFINE_H
#define DISASM_CONFINE_H

/** @file confine.h  Leave a child process nothing but what its work needs. */

#include <sys/types.h>

/**
 * Begin a child that was just forked: signals as a program expects them, @p fds as its first @p n
 * descriptors and no others, no core file, no more than @p cpu_s of a processor, no life after @p parent.
 * @return 0, -errno.
 */
int disasm_settle(const int *fds, size_t n, unsigned int cpu_s, pid_t parent);

/**
 * From here on it can read, write, take memory and exit; any other system call gives EPERM.
 * Does nothing on machines whose system call numbers are not known here.
 * @return 0, -errno.
 */
int disasm_confine(void);
/**
 * The same for a program that is executed next: besides, it can read files that its user can, and have
 * threads, but make, write or delete no file, start no process, open no socket, and signal nobody.
 */
int disasm_confine_program(void);

#endif /* DISASM_CONFINE_H */
