/* SPDX-License-Identifier: MIT */
#ifndef CTL_CLI_WORDS_H
#define CTL_CLI_WORDS_H

/**
 * @file cli_words.h
 * Puts what the agent says into the words of a command line.
 *
 * The agent speaks to programs: it names methods, parameters and the kernel's ids of devices.  A
 * person at a terminal has verbs, options and numbered GPUs.
 */

struct ctl;

/**
 * Replace methods by verbs, parameters by options and arguments, `device 51187` by `GPU 0`; the
 * process is that of the session.  For `rpc`, whose user knows methods, the text stays as it is.
 * @return @p text, or a text in the arena.
 */
const char *cli_words(struct ctl *c, const char *text);

#endif /* CTL_CLI_WORDS_H */
