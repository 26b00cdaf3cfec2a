/* SPDX-License-Identifier: MIT */
#ifndef CTL_CLI_WORDS_H
#define CTL_CLI_WORDS_H

/**
 * @file cli_words.h
 * Puts what the agent says into the words of a command line.
 *
 * The agent speaks to programs: it names methods, parameters and the kernel's ids of devices, in the
 * protocol's words.  A person at a terminal has verbs, options, numbered GPUs, and a vendor's words.
 */

struct ctl;

/**
 * Replace methods by verbs, parameters by options and arguments, `device 51187` by `GPU 0`, and
 * whole words by those of the session's vendor (vendor_sentence()).  The process is that of the session.
 * For `rpc`, whose user knows methods, the text stays as it is.
 * @return @p text, or a text in the arena.
 */
const char *cli_words(struct ctl *c, const char *text);

#endif /* CTL_CLI_WORDS_H */
