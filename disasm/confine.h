/* SPDX-License-Identifier: MIT */
#ifndef DISASM_CONFINE_H
#define DISASM_CONFINE_H

/** @file confine.h  Leave the calling process nothing but memory and the channels it has. */

/**
 * From here on it can read, write, take memory and exit; any other system call gives EPERM.
 * Does nothing on machines whose system call numbers are not known here.
 * @return 0, -errno.
 */
int disasm_confine(void);

#endif /* DISASM_CONFINE_H */
