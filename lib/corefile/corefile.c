/* SPDX-License-Identifier: MIT */
#include "corefile/corefile.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

__attribute__((format(printf, 4, 0)))
static void problem_fill(struct corefile_problem *p, uint32_t section, uint64_t offset,
			 const char *fmt, va_list ap)
{
	p->section = section;
	p->offset = offset;
	vsnprintf(p->text, sizeof(p->text), fmt, ap);
}

void corefile_problem_add(struct corefile_problems *p, uint32_t section, uint64_t offset,
			  const char *fmt, ...)
{
	va_list ap;

	p->total++;
	if (!p->list)
		p->list = calloc(COREFILE_PROBLEMS_MAX, sizeof(*p->list));
	if (!p->list || p->n == COREFILE_PROBLEMS_MAX)
		return;
	va_start(ap, fmt);
	problem_fill(&p->list[p->n++], section, offset, fmt, ap);
	va_end(ap);
}

void corefile_problem_set(struct corefile_problem *p, uint32_t section, uint64_t offset,
			  const char *fmt, ...)
{
	va_list ap;

	if (!p)
		return;
	va_start(ap, fmt);
	problem_fill(p, section, offset, fmt, ap);
	va_end(ap);
}

void corefile_problems_deinit(struct corefile_problems *p)
{
	free(p->list);
	*p = (struct corefile_problems){ 0 };
}
