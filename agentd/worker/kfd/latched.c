/* SPDX-License-Identifier: MIT */
/*
 * Faults that are latched before a subscription.
 *
 * The kernel latches faults that nobody subscribed to as well, and gives them to the runtime at
 * once.  A new subscription must neither announce those nor send them on once more.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agentd/worker/kfd/kfd.h"

/*
 * Time that the kernel's work item may take to write its byte, which is far less.  It is waited for
 * only when a fault came while subscribing.
 */
#define OTHERS_MS 2

/* All exceptions that are latched, and at which source. */
struct latched {
	struct kfdtrap_queue *queues;
	struct kfdtrap_device *devices;
	size_t n_queues, n_devices;
	uint64_t all;
};

static void latched_free(struct latched *l)
{
	free(l->queues);
	free(l->devices);
}

#define auto_latched __attribute__((cleanup(latched_free)))

static int latched_read(struct target_kfd *k, struct latched *ret)
{
	struct kfdtrap_runtime_info info;
	int r = kfdtrap_queue_snapshot_alloc(k->kt, 0, &ret->queues, &ret->n_queues);

	if (r == 0)
		r = kfdtrap_device_snapshot_alloc(k->kt, 0, &ret->devices, &ret->n_devices);
	if (r < 0)
		return r;
	for (size_t i = 0; i < ret->n_queues; i++)
		ret->all |= ret->queues[i].exceptions;
	for (size_t i = 0; i < ret->n_devices; i++)
		ret->all |= ret->devices[i].exceptions;
	if (kfdtrap_query_runtime_info(k->kt, false, &info) != -ENODATA)
		ret->all |= KFD_RUNTIME_MASK;
	return 0;
}

/* Clear only the bits that the snapshot had: another fault, raised meanwhile, must stay. */
static int forget_queue(struct target_kfd *k, const struct kfdtrap_queue *q, uint64_t exceptions)
{
	uint64_t left = q->exceptions & exceptions & KFD_FORWARD_QUEUE;
	int r = 0;

	for (uint32_t code = 1; left && (r >= 0 || r == -ENODATA); code++, left >>= 1)
		if (left & 1)
			r = kfdtrap_query_exception_info(k->kt, code, q->queue_id, true, NULL, 0,
							 NULL);
	/* ENODATA: the bit is clear already.  EINVAL: the queue is gone. */
	return r == -ENODATA || r == -EINVAL ? 0 : r;
}

static int forget_device(struct target_kfd *k, const struct kfdtrap_device *d, uint64_t exceptions)
{
	struct kfdtrap_memory_violation v;
	int r;

	if (!(d->exceptions & exceptions & KFD_FORWARD_DEVICE))
		return 0;
	r = kfdtrap_query_memory_violation(k->kt, d->gpu_id, true, &v);
	kfd_set_stale(k, d->gpu_id, false);
	/* ENODATA: the bit is clear already.  That is no error; the other devices follow. */
	return r == -ENODATA || r > 0 ? 0 : r;
}

/* Clear the exceptions that were latched before: the runtime has got them from the kernel. */
static int forget(struct target_kfd *k, const struct latched *l, uint64_t exceptions)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < l->n_queues; i++)
		r = forget_queue(k, &l->queues[i], exceptions);
	for (size_t i = 0; r == 0 && i < l->n_devices; i++)
		r = forget_device(k, &l->devices[i], exceptions);
	return r;
}

/* Which processes have written bytes into the event channel. */
struct writers {
	bool we, others;
};

/* Empty the event channel.  The wake-ups are gone with the bytes, which event_swallowed notes. */
static void take_bytes(struct target_kfd *k, struct writers *ret)
{
	union {
		char buf[CMSG_SPACE(sizeof(struct ucred))];
		struct cmsghdr align;
	} control;
	char byte;
	struct iovec iov = { .iov_base = &byte, .iov_len = sizeof(byte) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.buf };
	const struct cmsghdr *c;
	struct ucred who;
	ssize_t n;

	do {
		msg.msg_controllen = sizeof(control.buf);
		n = recvmsg(k->t.event_fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		if (n <= 0)
			continue;
		c = CMSG_FIRSTHDR(&msg);
		who.pid = 0;
		if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS)
			memcpy(&who, CMSG_DATA(c), sizeof(who));
		*(who.pid == getpid() ? &ret->we : &ret->others) = true;
		k->t.event_swallowed = true;
	} while (n > 0 || (n < 0 && errno == EINTR));
}

/*
 * Forget a fault that came between forget() and the subscription: it went to the runtime as well.
 *
 * SET_EXCEPTIONS_ENABLED finds such a fault and writes a byte for it itself, so that this process
 * is the writer; a fault that came later has a byte of another writer.  If there is only a byte of
 * this process, and nothing else for which it could be, what is latched is such a fault.  In doubt
 * the fault is taken for new, and the application gets it twice rather than never: that happens
 * when faults of both kinds come within these moments, when the socket does not say who wrote, or
 * when the kernel cannot say what is latched.  The subscription stands by now, whatever happens here.
 * @param others  Exceptions that were latched before and are subscribed already, or the runtime's:
 *                the byte of this process may be for these.
 */
static void forget_gap(struct target_kfd *k, uint64_t exceptions, uint64_t others)
{
	auto_latched struct latched now = { 0 };
	struct writers w = { 0 };
	struct pollfd p = { .fd = k->t.event_fd, .events = POLLIN };

	take_bytes(k, &w);
	if (!w.we || w.others || others || latched_read(k, &now) < 0 || !(now.all & exceptions))
		return;
	/* If a later fault is latched by now, a work item of the kernel writes its byte soon. */
	if (poll(&p, 1, OTHERS_MS) == 0)
		(void)forget(k, &now, exceptions);
}

int kfd_subscribe_afresh(struct target_kfd *k, uint64_t mask, uint64_t more, const char **ret_op)
{
	auto_latched struct latched past = { 0 };
	struct writers before = { 0 };
	int r = latched_read(k, &past);

	if (r == 0)
		r = forget(k, &past, more);
	*ret_op = r < 0 ? "KFD GET_QUEUE_SNAPSHOT" : "KFD SET_EXCEPTIONS_ENABLED";
	if (r < 0)
		return r;
	take_bytes(k, &before);
	r = kfdtrap_set_exceptions_enabled(k->kt, mask);
	if (r == 0)
		forget_gap(k, more, past.all & mask & ~more);
	return r;
}
