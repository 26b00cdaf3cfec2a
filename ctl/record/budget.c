/* SPDX-License-Identifier: MIT */
#include "ctl/record/budget.h"

/* Longer slots are as good as for ever, and their sums still fit. */
#define SLOT_MAX_NS (UINT64_C(1) << 50)
/* Who comes late because the machine is busy may catch up with so much, or with a slot where that is longer. */
#define LATE_MAX_NS UINT64_C(1000000000)

void budget_init(struct budget *b, uint32_t share_ppm, uint64_t interval_ns, uint64_t now_ns)
{
	*b = (struct budget){
		.share_ppm = share_ppm,
		.interval_ns = interval_ns,
		.begin_ns = now_ns,
		.slot_ns = now_ns,
		.slot_size_ns = interval_ns,
	};
}

uint64_t budget_due(const struct budget *b, uint32_t random)
{
	return b->slot_ns + (uint64_t)((double)b->slot_size_ns * (random / 4294967296.0));
}

void budget_pay(struct budget *b, uint64_t stopped_ns, uint64_t now_ns)
{
	double needed = (double)stopped_ns * BUDGET_WHOLE / b->share_ppm;
	uint64_t size = needed < (double)SLOT_MAX_NS ? (uint64_t)needed : SLOT_MAX_NS, late;

	/* The slot of the capture before is over when this one has been paid for. */
	size = size < b->interval_ns ? b->interval_ns : size;
	b->slot_ns += size;
	/* Nobody saves more time than that for a burst of captures. */
	late = size > LATE_MAX_NS ? size : LATE_MAX_NS;
	if (b->slot_ns + late < now_ns)
		b->slot_ns = now_ns - late;
	b->slot_size_ns = size;
	b->stopped_ns += stopped_ns;
	b->last_ns = stopped_ns;
}

void budget_delay(struct budget *b, uint64_t until_ns)
{
	if (until_ns > b->slot_ns)
		b->slot_ns = until_ns;
}

bool budget_has_room(const struct budget *b, uint64_t end_ns)
{
	double allowed = (double)(end_ns - b->begin_ns) * b->share_ppm / BUDGET_WHOLE;

	return (double)b->stopped_ns + (double)b->last_ns <= allowed;
}

uint32_t budget_share_ppm(uint64_t stopped_ns, uint64_t time_ns)
{
	double share = time_ns ? (double)stopped_ns / (double)time_ns : 0;

	return share < 1 ? (uint32_t)(share * BUDGET_WHOLE + 0.5) : BUDGET_WHOLE;
}
