/* SPDX-License-Identifier: MIT */
#ifndef CTL_VERBS_WAIT_PAGE_H
#define CTL_VERBS_WAIT_PAGE_H

/** @file page.h  A document that says what waits, as people read it. */

#include "ctl/ctl.h"

/** Columns of what stands in front of a line. */
#define WHY_INDENT 7

/**
 * Append a line.
 * @param text        It may be a stranger's.
 * @param confidence  NULL: it has none.
 */
void why_line(struct ctl *c, const char *head, const char *text, const char *confidence);

/** Append the first line, which is the cause or says that none was found, and what belongs to it. */
void why_page_causes(struct ctl *c, const struct rpc_why_get_result *r);
/** Append what waits, and which collective operations are executed. */
void why_page_waits(struct ctl *c, const struct rpc_why_get_result *r);
/** Append the notes on who waits for nobody else: the last lines of those. */
void why_page_alone(struct ctl *c, const struct rpc_why_get_result *r);

#endif /* CTL_VERBS_WAIT_PAGE_H */
