/* SPDX-License-Identifier: MIT */
#include "agentd/worker/session/readers.h"

#include <string.h>

#include "agentd/worker/session/session.h"
#include "base/clock.h"
#include "base/out.h"

#define MS_NS INT64_C(1000000)
/* A stop that has less of a full bucket than this part shows little, and costs its switching all the same. */
#define LEAST_PART 5
/* So long no stop lasts: what says so is wrong, and must not overflow. */
#define LONGEST_NS (86400000 * MS_NS)

/* ------------------------------------------------------------------ the bucket --------------- */

static int64_t most_ns(const struct readers *b)
{
	return b->most_ms * MS_NS;
}

void readers_init(struct readers *b, uint32_t most_ms, uint32_t rate_ms, uint64_t now_ns)
{
	*b = (struct readers){ .most_ms = most_ms, .rate_ms = rate_ms, .at_ns = now_ns };
	b->left_ns = most_ns(b);
}

static void fill(struct readers *b, uint64_t now_ns)
{
	const uint64_t passed_ms = now_ns > b->at_ns ? (now_ns - b->at_ns) / MS_NS : 0;
	const uint64_t missing_ns = (uint64_t)(most_ns(b) - b->left_ns);

	/* Rate 1 ms a second is 1000 ns a millisecond; whole milliseconds only, the rest counts next time. */
	if (passed_ms >= missing_ns / 1000 + 1 && b->rate_ms)
		b->left_ns = most_ns(b);
	else if (passed_ms * b->rate_ms * 1000 >= missing_ns)
		b->left_ns = most_ns(b);
	else
		b->left_ns += (int64_t)(passed_ms * b->rate_ms * 1000);
	b->at_ns += passed_ms * MS_NS;
}

uint32_t readers_grant(struct readers *b, uint32_t ms, uint64_t now_ns, uint32_t *ret_retry_ms)
{
	const uint32_t part = b->most_ms / LEAST_PART ? b->most_ms / LEAST_PART : b->most_ms;
	const int64_t least_ns = (ms < part ? ms : part) * MS_NS;
	uint64_t wait_ms;

	fill(b, now_ns);
	if (b->most_ms && b->left_ns >= least_ns)
		return b->left_ns / MS_NS < ms ? (uint32_t)(b->left_ns / MS_NS) : ms;
	*ret_retry_ms = 0;
	if (!b->most_ms || !b->rate_ms)
		return 0;
	wait_ms = (uint64_t)(least_ns - b->left_ns) / 1000 / b->rate_ms + 1;
	*ret_retry_ms = wait_ms < UINT32_MAX ? (uint32_t)wait_ms : UINT32_MAX;
	return 0;
}

void readers_charge(struct readers *b, uint64_t ns, uint64_t now_ns)
{
	fill(b, now_ns);
	b->left_ns -= ns < (uint64_t)LONGEST_NS ? (int64_t)ns : LONGEST_NS;
	if (b->left_ns < -LONGEST_NS)
		b->left_ns = -LONGEST_NS;
}

void readers_go_on(struct readers *b, const struct ipc_readers *m, uint64_t now_ns)
{
	b->left_ns = m->left_ns > most_ns(b) ? most_ns(b) : m->left_ns < -LONGEST_NS ? -LONGEST_NS : m->left_ns;
	b->at_ns = m->at_ns < now_ns ? m->at_ns : now_ns;
}

/* ------------------------------------------------------------------ of a session ------------- */

bool readers_is_one(const struct session *s)
{
	return !s->target->origin && !(s->call.flags & IPC_FLAG_CONTROL);
}

uint32_t readers_stop_begin(struct session *s, uint32_t ms, uint32_t *ret_retry_ms)
{
	const uint64_t now_ns = clock_now_ns();

	s->readers.stop_ns = 0;
	if (!readers_is_one(s))
		return ms;
	ms = readers_grant(&s->readers, ms, now_ns, ret_retry_ms);
	s->readers.stop_ns = ms ? now_ns : 0;
	return ms;
}

void readers_stop_end(struct session *s, int64_t stopped_us)
{
	struct readers *b = &s->readers;
	const uint64_t now_ns = clock_now_ns();
	struct ipc_readers m;
	auto_out struct out text = { 0 };

	if (!b->stop_ns || !stopped_us)
		return;
	readers_charge(b, stopped_us < 0 ? now_ns - b->stop_ns : (uint64_t)stopped_us * 1000, now_ns);
	b->stop_ns = 0;
	m = (struct ipc_readers){ .start_ticks = s->target->start_ticks,
				  .left_ns = b->left_ns,
				  .at_ns = b->at_ns };
	out_init(&text, 0);
	out_bytes(&text, &m, sizeof(m));
	/* Without memory the frontend does not hear of this stop, and of the next it does. */
	if (!out_error(&text))
		session_tell(s, IPC_READERS, &text);
}

int readers_refuse(uint32_t retry_ms, struct agent_err *err)
{
	int r = agent_err_set(err, RPC_ERROR_TIMEOUT, 0, NULL,
			      retry_ms ? "try again later, or ask the owner of the process" :
					 "ask the owner of the process or an administrator",
			      "those who may only look have stopped the queues of this process for as long as they may");

	if (err)
		err->retry_ms = retry_ms;
	return r;
}

void readers_take(struct session *s, const struct ipc_message *m)
{
	struct ipc_readers before;

	if (m->head.size != sizeof(before))
		return;
	memcpy(&before, m->text, sizeof(before));
	/* Another process had that number. */
	if (s->target && before.start_ticks == s->target->start_ticks)
		readers_go_on(&s->readers, &before, clock_now_ns());
}
