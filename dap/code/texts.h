/* SPDX-License-Identifier: MIT */
#ifndef DAP_CODE_TEXTS_H
#define DAP_CODE_TEXTS_H

/**
 * @file texts.h
 * Texts that an editor shows in place of files, by the sourceReference that it was given.
 *
 * Editors keep what they were told of a reference, so that it stands for one text as long as the session lasts.  The
 * text is made when it is needed first, and again when it had to make room for others, as long as it would be the same.
 */

#include "dap/adapter.h"

/** One text. */
struct dap_text {
	uint32_t reference; /**< 0: a place that is free. */
	char *what;	    /**< What it is the text of. */
	char *name;	    /**< Of the source, for the editor. */
	const char *mime_type; /**< NULL: as the name tells. */
	uint64_t digest;       /**< Of what it was made of. */
	uint32_t generation;   /**< Number of the snapshot with which that was the case last. */
	bool is_old;	       /**< It is not any more. */
	uint64_t used;	       /**< When it was used last, counted in uses. */
	/** Make the text, if it would be the same.  @return 0, negative with @p err. */
	int (*make)(struct dap *d, struct dap_text *t, struct agent_err *err);
	struct out text; /**< Empty when it is not kept. */

	/* Code: what it is of, and the address of each line; 0 for one without an instruction. */
	char cpu[32];
	uint64_t start, size;
	bool whole; /**< It begins where its function does. */
	uint64_t *addresses;
	size_t n_lines, room;

	/* A source: the file, and where code was made of it. */
	char *file;
	uint64_t address;
};

/** @return a number for bytes, most likely another one for others. */
uint64_t dap_text_digest(const void *bytes, size_t size);
/** Find what was looked at since the present snapshot was taken.  @return NULL: not yet. */
struct dap_text *dap_text_current(struct dap *d, const char *what);
/**
 * Find a text, or make a place for it; others of the same thing are old from then on.
 * @return the text, whose name is NULL if it is a new one; NULL without memory.
 */
struct dap_text *dap_text_take(struct dap *d, const char *what, uint64_t digest);
/** Throw away the bytes of a text. */
void dap_text_clear(struct dap_text *t);
/** Keep a text that was made, and forget others if there are too many bytes. */
void dap_text_keep(struct dap *d, const struct dap_text *t);

#endif /* DAP_CODE_TEXTS_H */
