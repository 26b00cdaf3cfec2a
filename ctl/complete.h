/* SPDX-License-Identifier: MIT */
#ifndef CTL_COMPLETE_H
#define CTL_COMPLETE_H

/**
 * @file complete.h
 * Completion for shells, `gpu-agentctl __complete -- WORD... CURRENT`, from what `--help` prints.
 *
 * Nothing is declared for completion alone.  What a value may be is told by its name in the help:
 * `auto|always|never` are the words themselves, and a name in capitals such as PID or FILE is a
 * kind of value that complete_values.c knows.  ctl_verb.args is read the same way, argument by
 * argument.
 */

#include "ctl/ctl.h"

/** What of the program is to be completed; main.c has it. */
struct complete_program {
	const struct ctl_verb *const *verbs;
	size_t n_verbs;
	const struct argv_option *common; /**< The options of every verb. */
	const struct argv_option *core;	  /**< The options of verbs that take a core file. */
	/** The verb of that name, NULL if there is none. */
	const struct ctl_verb *(*find_verb)(const char *name);
	/** Whether the argument behind an option is its value. */
	bool (*takes_next)(const char *option);
	/** Fill ctl.socket.  @return 0, or negative with ctl.err. */
	int (*choose_socket)(void);
};

/** One completion under way. */
struct completion {
	struct ctl *c;
	const struct complete_program *program;
	const char *word; /**< What was typed of the value. */
	const char *front; /**< What stands in front of the value in the same argument: `--color=`. */
	size_t front_size;
	bool files; /**< The value is the name of a file, which the shell knows better. */
	struct out text; /**< What will be printed. */
};

/**
 * Print what can stand at the last of the words: lines `VALUE<TAB>DESCRIPTION`, then `:file` if the
 * shell is to offer files as well, `:none` if not.
 * It never fails and prints no message: what cannot be found out is not offered.  The agent is
 * asked for processes, sessions, records and rules only, and has a second to answer.
 * @param n      How many words there are.
 * @param words  What stands behind the name of the program on the line, up to the cursor.
 */
void complete_print(struct ctl *c, const struct complete_program *program, int n, char **words);

/** Offer a value if it begins with what was typed.  @param description  NULL if there is none. */
void complete_offer(struct completion *k, const char *value, const char *description);

/** Offer a name, or its alias (NULL if there is none) when what was typed begins only that. */
void complete_offer_either(struct completion *k, const char *name, const char *alias,
			   const char *description);

/** Offer values of a kind, by its name in the help; a name that is not known offers nothing. */
void complete_values(struct completion *k, const char *name);

#endif /* CTL_COMPLETE_H */
