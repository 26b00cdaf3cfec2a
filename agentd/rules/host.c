/* SPDX-License-Identifier: MIT */
#include "agentd/rules/host.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/access.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/str.h"

struct host_news {
	struct host_news *next;
	struct ipc_message message;
};

void host_init(struct host *h, int take_fd)
{
	*h = (struct host){ .is_gone = false };
	ipc_link_init(&h->link, take_fd);
}

static bool take_kept(struct host *h, struct ipc_message *ret)
{
	struct host_news *n = h->first;

	if (!n)
		return false;
	h->first = n->next;
	*ret = n->message;
	free(n);
	return true;
}

void host_deinit(struct host *h)
{
	struct ipc_message m;

	while (take_kept(h, &m))
		ipc_message_deinit(&m);
	ipc_link_deinit(&h->link);
}

void host_tell(struct host *h, enum rules_type type, uint32_t number, const void *data, size_t size, int fd)
{
	struct ipc_head head = { .type = type, .number = number, .size = size };
	int copy = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0), r;

	if (fd >= 0 && copy < 0) {
		r = -errno;
	} else if (fd >= 0) {
		head.flags = IPC_FLAG_FD;
		r = ipc_link_send_fd(&h->link, &head, data, copy);
	} else {
		r = ipc_link_send(&h->link, &head, data);
	}
	if (r < 0 && r != -EPIPE && !h->is_gone)
		log_error("cannot tell the monitor: %s", strerror(-r));
	h->is_gone = h->is_gone || r < 0;
}

/* @return false: nothing has come, or nothing will. */
static bool receive(struct host *h, struct ipc_message *ret)
{
	int r = h->is_gone ? -EPIPE : ipc_link_recv(&h->link, ret);

	if (r == 1)
		return true;
	/* What had a message's text or document is lost: somebody would wait for its answer for ever. */
	if (r == -EMFILE)
		log_error("no descriptor is free for what the monitor says: this process ends, to be started again");
	h->is_gone = h->is_gone || (r != -EAGAIN && r != -EINTR);
	return false;
}

bool host_take(struct host *h, struct ipc_message *ret)
{
	return take_kept(h, ret) || receive(h, ret);
}

bool host_has_news(const struct host *h)
{
	return h->first != NULL;
}

/* ------------------------------------------------------------------ questions ---------------- */

static void keep(struct host *h, const struct ipc_message *m)
{
	struct host_news *n = malloc(sizeof(*n));

	if (!n) {
		log_error("cannot keep what the monitor said: %s", strerror(ENOMEM));
		h->is_gone = true;
		return;
	}
	*n = (struct host_news){ .message = *m };
	*(h->first ? &h->last->next : &h->first) = n;
	h->last = n;
}

static void wait_for_monitor(struct host *h)
{
	struct pollfd p = { .fd = h->link.fd,
			    .events = (short)(POLLIN | (ipc_link_has_queued(&h->link) ? POLLOUT : 0)) };

	if (poll(&p, 1, -1) > 0 && p.revents & POLLOUT && ipc_link_flush(&h->link) < 0)
		h->is_gone = true;
}

/*
 * Wait for the answer to a question that has been asked.
 * @param size  Bytes of its struct, which comes at least.
 * @param ret   Release it after a 0.
 * @return 0, -EPIPE: the monitor is gone.
 */
static int await(struct host *h, enum rules_type type, size_t size, struct ipc_message *ret)
{
	while (!h->is_gone) {
		if (!receive(h, ret)) {
			wait_for_monitor(h);
		} else if (ret->head.type != type) {
			keep(h, ret);
		} else if (ret->head.size >= size) {
			return 0;
		} else {
			ipc_message_deinit(ret);
			h->is_gone = true;
		}
	}
	return -EPIPE;
}

static int look(void *ctx, uint32_t *ret_worker)
{
	const struct rules_looking *a;
	struct ipc_message m;
	int r;

	host_tell(ctx, RULES_LOOK, 0, NULL, 0, -1);
	r = await(ctx, RULES_LOOKING, sizeof(*a), &m);
	if (r < 0)
		return r;
	a = (const void *)m.text;
	r = a->status;
	*ret_worker = a->worker;
	ipc_message_deinit(&m);
	return r;
}

static int take_facts(const struct ipc_message *m, struct rules_process *ret)
{
	const struct rules_facts *a = (const void *)m->text;
	const char *cgroup = m->text + sizeof(*a);
	size_t size = (size_t)m->head.size - sizeof(*a);

	if (a->status < 0)
		return a->status;
	*ret = (struct rules_process){ .uid = a->uid };
	str_copy(ret->exe, sizeof(ret->exe), a->exe);
	if (!a->has_cgroup || !size || cgroup[size - 1])
		return 0;
	ret->cgroup = strdup(cgroup);
	return ret->cgroup ? 0 : -ENOMEM;
}

static int read_process(void *ctx, pid_t pid, int pidfd, struct rules_process *ret)
{
	struct ipc_message m;
	int r;

	host_tell(ctx, RULES_READ, (uint32_t)pid, NULL, 0, -1);
	r = await(ctx, RULES_FACTS, sizeof(struct rules_facts), &m);
	if (r < 0)
		return r;
	r = take_facts(&m, ret);
	ipc_message_deinit(&m);
	/* The pidfd is older than the facts: alive now means that they are about its process. */
	if (r < 0 || access_is_alive(pidfd))
		return r;
	free(ret->cgroup);
	return -ESRCH;
}

static void let_go(void *ctx, uint32_t worker)
{
	host_tell(ctx, RULES_LET_GO, worker, NULL, 0, -1);
}

static int watch(void *ctx, pid_t pid, int pidfd, enum ipc_vendor vendor, const struct ipc_rule *rule,
		 struct ipc_watch *ret)
{
	const struct rules_watch q = { .pid = (uint32_t)pid, .vendor = vendor, .rule = *rule };
	const struct rules_watched *a;
	struct ipc_message m;
	int r;

	host_tell(ctx, RULES_WATCH, 0, &q, sizeof(q), -1);
	r = await(ctx, RULES_WATCHED, sizeof(*a), &m);
	if (r < 0)
		return r;
	a = (const void *)m.text;
	r = a->status;
	*ret = a->watch;
	ipc_message_deinit(&m);
	ret->comm[sizeof(ret->comm) - 1] = '\0';
	if (r < 0 || access_is_alive(pidfd))
		return r;
	/* The process has ended, and its number may have become another one's: no rule chose that. */
	let_go(ctx, ret->worker);
	return -ESRCH;
}

const struct rules_monitor host_monitor = {
	.look = look, .read = read_process, .watch = watch, .let_go = let_go
};
