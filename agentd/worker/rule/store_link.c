/* SPDX-License-Identifier: MIT */
#include "agentd/worker/rule/store_link.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agentd/ipc/link.h"
#include "agentd/ipc/monitor_worker.h"
#include "agentd/ipc/worker_store.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/out.h"
#include "base/str.h"
#include "rpc_gen.h"

int store_link_open(const struct deadline *g, int *ret_fd)
{
	const struct ipc_store m = { .type = IPC_STORE };

	return ipc_send_pair(g->fd, &m, sizeof(m), ret_fd);
}

int store_link_send(int fd, const struct store_meta *m, const char *json, size_t size, int body_fd,
		    uint64_t body_bytes)
{
	const struct ipc_add add = { .type = IPC_ADD,
				     .has_body = body_fd >= 0,
				     .body_bytes = body_bytes };
	auto_out struct out text;
	auto_close int text_fd = -1;
	int fds[2], r;
	ssize_t n;

	out_init(&text, STORE_META_MAX + STORE_JSON_MAX);
	store_meta_encode(&text, m);
	out_char(&text, '\n');
	out_bytes(&text, json, size);
	r = out_error(&text);
	if (r == 0)
		r = fd_memfd_sealed("gpu-agent-record", text.data, text.size, &text_fd);
	if (r < 0)
		return r;
	fds[0] = text_fd;
	fds[1] = body_fd;
	n = fd_send(fd, &add, sizeof(add), fds, 1 + add.has_body);
	return n < 0 ? (int)n : 0;
}

int store_link_receive(int fd, struct ipc_added *ret)
{
	struct ipc_added m;
	int extra, r = ipc_recv_fixed(fd, &m, sizeof(m), &extra);

	if (r <= 0)
		return r == 0 || r == -ECONNRESET ? -EPIPE : r;
	if (extra >= 0)
		close(extra);
	if (extra >= 0 || m.type != IPC_ADDED || !memchr(m.id, '\0', sizeof(m.id)))
		return -EPROTO;
	*ret = m;
	return 0;
}

/* ------------------------------------------------------------------ snapshots ---------------- */

static void describe_place(struct store_meta *m, const struct rpc_group *g)
{
	const struct rpc_frame *f = g->n_frames ? &g->frames[0] : NULL;

	if (g->has_kernel && g->kernel.name)
		str_copy(m->kernel, sizeof(m->kernel), g->kernel.name);
	if (f && f->file && f->has_line)
		snprintf(m->location, sizeof(m->location), "%s:%u", f->file, f->line);
	else
		snprintf(m->location, sizeof(m->location), "0x%" PRIx64, g->pc);
	if (g->exception)
		str_copy(m->exception, sizeof(m->exception), g->exception);
}

/* Read the id of this boot, which tells its process ids from those of another; "" without /proc. */
static void read_boot_id(char ret[33])
{
	auto_free char *text = NULL;
	size_t size, n = 0;

	if (fd_read_file("/proc/sys/kernel/random/boot_id", 64, &text, &size) < 0)
		return;
	for (size_t i = 0; i < size && n < 32; i++)
		if (text[i] != '-' && text[i] != '\n')
			ret[n++] = text[i];
	ret[n] = '\0';
}

void store_link_describe(struct store_meta *m, const struct rpc_gpu_snapshot_result *s,
			 const struct rpc_group *g)
{
	const char *vendor = rpc_vendor_name(s->process.vendor);

	m->time_us = s->time_us;
	m->pid = s->process.pid;
	m->uid = s->process.uid;
	read_boot_id(m->boot_id);
	str_copy(m->comm, sizeof(m->comm), s->process.comm ? s->process.comm : "");
	str_copy(m->exe, sizeof(m->exe), s->process.exe ? s->process.exe : "");
	str_copy(m->vendor, sizeof(m->vendor), vendor ? vendor : "");
	if (g)
		describe_place(m, g);
	snprintf(m->key, sizeof(m->key), "%s %.100s %.100s", m->reason, m->kernel, m->location);
}

/* Encode the document; a record keeps the groups, and not the list of all waves. */
static int encode(const struct rpc_gpu_snapshot_result *s, struct out *ret)
{
	struct rpc_gpu_snapshot_result kept = *s;

	kept.has_waves = false;
	rpc_gpu_snapshot_result_encode(ret, &kept);
	return out_error(ret);
}

static int wait_answer(int fd, uint64_t deadline_ns, struct ipc_added *ret)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int r = poll(&p, 1, clock_left_ms(deadline_ns));

	if (r < 0 && errno != EINTR)
		return -errno;
	return r == 0 ? -ETIMEDOUT : store_link_receive(fd, ret);
}

/*
 * Send one record and wait.
 * @return 0; -EPIPE: the store's process is gone, another one may do; -errno.
 */
static int add(const struct deadline *g, int *fd, const struct store_meta *m,
	       const struct out *json, uint64_t deadline_ns, struct ipc_added *ret)
{
	int r = *fd < 0 ? store_link_open(g, fd) : 0;

	if (r == 0)
		r = store_link_send(*fd, m, json->data, json->size, -1, 0);
	if (r < 0)
		return r;
	do
		r = wait_answer(*fd, deadline_ns, ret);
	while (r == -EAGAIN);
	return r;
}

int store_link_snapshot(const struct deadline *g, int *fd, const struct rpc_gpu_snapshot_result *s,
			const char *reason, uint32_t timeout_ms, char *ret_id)
{
	uint64_t deadline_ns = clock_deadline_ms(timeout_ms);
	struct store_meta m = { .count = 1 };
	struct ipc_added added;
	auto_out struct out json;
	int r;

	out_init(&json, STORE_JSON_MAX);
	str_copy(m.reason, sizeof(m.reason), reason);
	store_link_describe(&m, s, s->n_groups ? &s->groups[0] : NULL);
	r = encode(s, &json);
	for (int tries = 0; r == 0 && tries < 2; tries++) {
		bool fresh = *fd < 0;

		r = add(g, fd, &m, &json, deadline_ns, &added);
		/* The answer may still come: it must not be taken for that of the next record. */
		if (r < 0 && *fd >= 0)
			close(TAKE_FD(*fd));
		if (r != -EPIPE || fresh)
			break;
		r = 0;
	}
	if (r == 0)
		r = added.status;
	if (r == 0)
		str_copy(ret_id, STORE_ID_SIZE, added.id);
	return r;
}
