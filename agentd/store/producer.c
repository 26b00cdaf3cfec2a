/* SPDX-License-Identifier: MIT */
/* Adding the records about one process, which its session worker sends. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agentd/ipc/child.h"
#include "agentd/ipc/worker_store.h"
#include "agentd/store/service.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/log.h"

/* Log the new record, with the fields of its metadata. */
static void record_added(const struct store_meta *m, const struct store_added *added)
{
	char pid[12], uid[12], count[21];
	const struct log_field fields[] = {
		{ "OBJECT_PID", pid },		       { "GPU_AGENT_RECORD", added->id },
		{ "GPU_AGENT_PID", pid },	       { "GPU_AGENT_UID", uid },
		{ "GPU_AGENT_COMM", m->comm },	       { "GPU_AGENT_EXE", m->exe },
		{ "GPU_AGENT_REASON", m->reason },     { "GPU_AGENT_RULE", m->rule },
		{ "GPU_AGENT_VENDOR", m->vendor },     { "GPU_AGENT_EXCEPTION", m->exception },
		{ "GPU_AGENT_KERNEL", m->kernel },     { "GPU_AGENT_LOCATION", m->location },
		{ "GPU_AGENT_COUNT", count },	       { NULL, NULL },
	};

	snprintf(pid, sizeof(pid), "%u", m->pid);
	snprintf(uid, sizeof(uid), "%u", m->uid);
	snprintf(count, sizeof(count), "%" PRIu64, m->count);
	log_record(LOG_LEVEL_INFO, LOG_MESSAGE_RECORD, fields,
		   "process %s (%s) of uid %s: %s, record %s%s", pid, m->comm, uid, m->reason,
		   added->id, added->body_status < 0 ? "; its core file could not be kept" : "");
}

/*
 * Add a record.  Pid and user come from the monitor's command line: the worker, which reads what the
 * target writes, has no say in them.
 * @param text  A line of metadata, and the document.
 */
static int add(struct service *s, const char *text, size_t size, int body_fd, uint64_t body_bytes,
	       struct store_added *ret)
{
	const char *newline = memchr(text, '\n', size < STORE_META_MAX ? size : STORE_META_MAX);
	struct store_meta m;
	int r;

	if (!newline)
		return -EBADMSG;
	r = store_meta_decode(text, (size_t)(newline - text), &m);
	if (r < 0)
		return r;
	m.pid = (uint32_t)s->pid;
	m.uid = s->client_uid;
	r = s->status;
	if (r == 0)
		r = store_add(&s->store, &m, newline + 1, size - (size_t)(newline + 1 - text),
			      body_fd, body_bytes, ret);
	if (r == 0)
		record_added(&m, ret);
	else
		log_warning("process %u: the record (%s) cannot be stored: %s", m.pid, m.reason,
			    store_error_text(r));
	return r;
}

static int add_from_memfd(struct service *s, int text_fd, int body_fd, uint64_t body_bytes,
			  struct store_added *ret)
{
	const void *text;
	size_t size;
	int r = fd_memfd_map(text_fd, STORE_META_MAX + STORE_JSON_MAX, &text, &size);

	if (r < 0)
		return r;
	r = add(s, text, size, body_fd, body_bytes, ret);
	fd_memfd_unmap(text, size);
	return r;
}

/*
 * Add the record of one message, and answer.
 * @return 0 to go on, -EPIPE at the end of the channel, other -errno.
 */
static int receive(struct service *s)
{
	struct ipc_added answer = { .type = IPC_ADDED };
	struct store_added added = { 0 };
	struct ipc_add m;
	int fds[FD_MESSAGE_MAX];
	size_t n_fds;
	ssize_t n = fd_recv(IPC_FD_FRONT, &m, sizeof(m), fds, &n_fds);

	if (n == -EAGAIN)
		return 0;
	if (n <= 0)
		return n == 0 ? -EPIPE : (int)n;
	if (n == sizeof(m) && m.type == IPC_ADD && m.has_body <= 1 && n_fds == 1 + m.has_body)
		answer.status = add_from_memfd(s, fds[0], m.has_body ? fds[1] : -1, m.body_bytes, &added);
	else
		answer.status = -EPROTO;
	while (n_fds)
		close(fds[--n_fds]);
	answer.body_status = added.body_status;
	memcpy(answer.id, added.id, sizeof(added.id));
	n = fd_send(IPC_FD_FRONT, &answer, sizeof(answer), NULL, 0);
	return answer.status == -EPROTO ? -EPROTO : n < 0 ? (int)n : 0;
}

int producer_run(struct service *s)
{
	int r = 0;

	while (r == 0) {
		struct pollfd p[] = { { .fd = IPC_FD_FRONT, .events = POLLIN },
				      { .fd = IPC_FD_MONITOR, .events = POLLIN } };

		if (poll(p, 2, -1) < 0)
			r = errno == EINTR ? 0 : -errno;
		else if (p[1].revents)
			r = -EPIPE;
		else
			r = receive(s);
	}
	if (r != -EPIPE)
		log_error("channel of a worker: %s", strerror(-r));
	return r == -EPIPE ? 0 : 1;
}
