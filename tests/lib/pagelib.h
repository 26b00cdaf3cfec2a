/* SPDX-License-Identifier: MIT */
#ifndef TESTS_PAGELIB_H
#define TESTS_PAGELIB_H

/**
 * @file pagelib.h
 * Pages of another size than this machine's, for unit tests that are linked with pagelib.c and --wrap=sysconf.
 */

/** Bytes of a page, as sysconf() tells it; 0: what this machine's have. */
extern long page_of_test;

#endif /* TESTS_PAGELIB_H */
