/* SPDX-License-Identifier: MIT */
#include "agentd/store/record_uses.h"

#include <string.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"

#define SECOND_NS UINT64_C(1000000000)
#define AGAIN_NS  (10 * SECOND_NS)

static bool is_same(const struct ipc_record_used *a, const struct ipc_record_used *b)
{
	return a->kind == b->kind && a->uid == b->uid && !strcmp(a->method, b->method) && !strcmp(a->record, b->record);
}

static bool has_room(struct record_uses *u, uint64_t now)
{
	if (now - u->since_ns >= SECOND_NS) {
		u->since_ns = now;
		u->n = 0;
	}
	if (u->n >= RECORD_USES_PER_SECOND)
		return false;
	u->n++;
	return true;
}

static bool send_used(const struct record_uses *u, const struct ipc_record_used *m)
{
	return fd_send(u->fd, m, sizeof(*m), NULL, 0) == (ssize_t)sizeof(*m);
}

void record_uses_tell(struct record_uses *u, enum ipc_use use, const char *method, const char *record, uid_t uid,
		      uint64_t now)
{
	struct ipc_record_used m = { .type = IPC_RECORD_USED, .kind = use, .uid = uid,
				     .more = u->has_untold ? u->untold.more + 1 : 0 };

	str_copy(m.method, sizeof(m.method), method);
	str_copy(m.record, sizeof(m.record), record ? record : "");
	if ((is_same(&m, &u->last) && now - u->last_ns < AGAIN_NS) || !has_room(u, now) || !send_used(u, &m)) {
		u->untold = m;
		u->has_untold = true;
		return;
	}
	u->last = m;
	u->last_ns = now;
	u->has_untold = false;
}

void record_uses_end(struct record_uses *u)
{
	if (u->has_untold && !send_used(u, &u->untold))
		log_warning("who has used %u records is not in the log: the monitor takes no more messages",
			    u->untold.more + 1);
	u->has_untold = false;
}
