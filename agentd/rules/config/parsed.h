/* SPDX-License-Identifier: MIT */
#ifndef RULES_CONFIG_PARSED_H
#define RULES_CONFIG_PARSED_H

/**
 * @file parsed.h
 * What the parser of agentd.conf is told, and what it answers (parser.h), as bytes.
 */

#include <stddef.h>
#include <stdint.h>

#include "agentd/rules/config/config.h"
#include "agentd/rules/config/dump.h"
#include "agentd/rules/engine/rules.h"

struct out;

/** Most bytes of an answer. */
#define PARSED_MAX ((size_t)8 << 20)

/** The files, and how they are to be read. */
struct parsed_question {
	uint32_t layout; /**< PARSED_LAYOUT of the sender: two releases do not talk to each other. */
	uint32_t names_must_exist, has_rules, has_dump;
	uint32_t no_memory, n_files;
	struct config config; /**< That is read over. */
};

struct parsed_answer {
	uint32_t layout;
	int32_t status; /**< Of config_parse_files(). */
	uint32_t n_rules, n_settings;
	struct config config;
	char error[CONFIG_ERROR_SIZE];
};

#define PARSED_LAYOUT ((uint32_t)(sizeof(struct parsed_answer) * 31 + sizeof(struct rule) * 7 + sizeof(struct config)))

/** Append the question. */
void parsed_ask(struct out *o, const struct config *c, const struct config_reading *how, const struct config_files *f);
/**
 * Read the question.
 * @param ret        `has_rules` and `has_dump` say whether these are wanted.
 * @param ret_files  Freed by the caller, also after a failure.
 * @return 0, -EBADMSG, -ENOMEM.
 */
int parsed_read_question(const char *data, size_t size, struct parsed_question *ret, struct config_files *ret_files);
/** Append the answer.  @param a  With all that it does not take from the others. */
void parsed_tell(struct out *o, const struct parsed_answer *a, const struct rules *rules,
		 const struct config_dump *dump);
/**
 * Read and check an answer that is not trusted.
 * @param rules, dump  Are added to, if they are wanted; NULL: they are not, and must not be there.
 * @return the answer's status, -EBADMSG, -ENOMEM.
 */
int parsed_read_answer(const char *data, size_t size, struct config *c, struct rules *rules, struct config_dump *dump,
		       char *error, size_t error_size);

#endif /* RULES_CONFIG_PARSED_H */
