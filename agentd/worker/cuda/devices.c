/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "agentd/worker/cuda/cuda.h"
#include "agentd/worker/snapshot/convert.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"

#define PCI_DIR	      "/sys/bus/pci/devices"
#define VENDOR_NVIDIA 0x10de

/* ------------------------------------------------------------------ facts -------------------- */

static bool read_pci_number(const char *address, const char *name, uint32_t *ret)
{
	auto_free char *text = NULL;
	char path[96];
	size_t size;

	snprintf(path, sizeof(path), PCI_DIR "/%.23s/%s", address, name);
	return fd_read_file(path, 64, &text, &size) == 0 && sscanf(text, "%x", ret) == 1;
}

/*
 * Find the PCI address.  The driver does not tell the domain; usually one device alone has that bus
 * and number.
 */
static void find_pci(struct cuda_device *d)
{
	const struct cudbgshim_device *f = &d->facts;
	struct dirent *e;
	char tail[16];
	DIR *dir;

	/* The host's bridge is at 00:00; a driver that says so of a GPU does not know its place. */
	if (!f->pci_bus && !f->pci_device)
		return;
	snprintf(tail, sizeof(tail), "%02x:%02x.0", f->pci_bus & 0xff, f->pci_device & 0x1f);
	snprintf(d->pci, sizeof(d->pci), "0000:%s", tail);
	dir = opendir(PCI_DIR);
	while (dir && (e = readdir(dir))) {
		size_t n = strlen(e->d_name);
		uint32_t vendor;

		if (n <= strlen(tail) || n >= sizeof(d->pci) ||
		    strcmp(e->d_name + n - strlen(tail), tail) ||
		    !read_pci_number(e->d_name, "vendor", &vendor) || vendor != VENDOR_NVIDIA)
			continue;
		str_copy(d->pci, sizeof(d->pci), e->d_name);
		d->d.has_device_id = d->d.has_revision_id =
			read_pci_number(e->d_name, "device", &d->d.device_id) &&
			read_pci_number(e->d_name, "revision", &d->d.revision_id);
	}
	if (dir)
		closedir(dir);
}

static void fill_device(struct cuda_device *d, uint32_t dev)
{
	const struct cudbgshim_device *f = &d->facts;

	d->d = (struct rpc_device){
		.gpu_id = dev,
		.name = f->name[0] ? f->name : f->chip,
		.arch = f->sm_type,
		.pci = d->pci,
		.vendor_id = VENDOR_NVIDIA,
		.units = f->n_sms,
		.max_waves = f->n_sms * f->n_warps,
		.debuggable = true,
	};
	find_pci(d);
}

int cuda_devices_read(struct target_cuda *c, struct agent_err *err)
{
	uint32_t n = 0;
	int r = cudbgshim_get_n_devices(c->shim, &n);

	if (r == 0 && n) {
		c->devices = calloc(n, sizeof(*c->devices));
		r = c->devices ? 0 : -ENOMEM;
	}
	for (uint32_t dev = 0; r == 0 && dev < n; dev++) {
		r = cudbgshim_get_device(c->shim, dev, &c->devices[dev].facts);
		if (r == 0) {
			fill_device(&c->devices[dev], dev);
			c->n_devices++;
		}
	}
	return r < 0 ? cuda_error(c, r, "read the devices", err) : 0;
}

int cuda_devices(struct target *t, struct rpc_arena *a, struct target_device **ret, size_t *ret_n,
		 struct agent_err *err)
{
	struct target_cuda *c = cuda_of(t);
	struct target_device *list = rpc_arena_array(a, c->n_devices, sizeof(*list));

	if (!list)
		return cuda_no_memory("gpu.devices", err);
	for (size_t i = 0; i < c->n_devices; i++) {
		struct rpc_device *d = &list[i].rpc;

		*d = c->devices[i].d;
		d->exceptions = convert_exceptions(a, c->devices[i].exceptions, &d->n_exceptions);
	}
	if (rpc_arena_error(a) < 0)
		return cuda_no_memory("gpu.devices", err);
	*ret = list;
	*ret_n = c->n_devices;
	return 0;
}

static bool is_suspended(const struct target_cuda *c, uint32_t dev)
{
	return dev < c->n_devices && c->devices[dev].suspended;
}

int cuda_queues(struct target *t, struct rpc_arena *a, struct rpc_queue **ret, size_t *ret_n,
		struct agent_err *err)
{
	struct target_cuda *c = cuda_of(t);
	struct rpc_queue *list = rpc_arena_array(a, c->n_contexts, sizeof(*list));
	size_t n = 0;

	if (!list)
		return cuda_no_memory("gpu.queues", err);
	for (size_t i = 0; i < c->n_contexts; i++) {
		/* Of a device that the driver does not count, nothing can be read. */
		if (c->contexts[i].dev >= c->n_devices)
			continue;
		list[n++] = (struct rpc_queue){ .queue_id = c->contexts[i].number,
						.gpu_id = c->contexts[i].dev,
						.type = RPC_QUEUE_TYPE_CONTEXT,
						.has_context = true,
						.context = c->contexts[i].handle,
						.suspended = is_suspended(c, c->contexts[i].dev) };
	}
	*ret = list;
	*ret_n = n;
	return 0;
}

/* ------------------------------------------------------------------ one look ----------------- */

uint64_t cuda_devices_of(const struct target_waves_from *from)
{
	uint64_t mask = 0;

	for (size_t i = 0; i < from->n_queues; i++)
		mask |= UINT64_C(1) << from->queues[i].gpu_id;
	return mask;
}

/*
 * The engine has stopped it, and that is still to be told: not the end of this look lets it run,
 * but cuda_event_next(), which is called for this, be its notification heard already or not.
 */
static void was_stopped(struct target_cuda *c, struct cuda_device *d)
{
	d->stopped = false;
	d->faulted = true;
	eventfd_write(cudbgshim_session_fd(c->session), 1);
}

int cuda_stop(struct target_cuda *c, uint64_t devices, struct agent_err *err)
{
	for (uint32_t dev = 0; dev < c->n_devices; dev++) {
		struct cuda_device *d = &c->devices[dev];
		int r;

		if (d->suspended || d->stopped || !(devices >> dev & 1))
			continue;
		/*
		 * A device that a fault has stopped runs on when all clients have been told, not
		 * after a look.
		 */
		d->stopped = !c->wants_resume;
		r = cudbgshim_session_suspend(c->session, dev);
		if (r == CUDBGSHIM_ALREADY && d->stopped)
			was_stopped(c, d);
		if (r >= 0)
			continue;
		d->stopped = r == -EPIPE;
		cuda_error(c, r, "suspend", err);
		cuda_go(c, NULL);
		return r;
	}
	return 0;
}

static int resume_device(struct target_cuda *c, uint32_t dev)
{
	unsigned tries = 0;
	int r;

	do
		r = cudbgshim_session_resume(c->session, dev);
	while (r < 0 && !cudbgshim_is_over(c->shim) && undo_again(&tries));
	return r;
}

int cuda_go(struct target_cuda *c, struct agent_err *err)
{
	int first = 0;

	for (uint32_t dev = 0; dev < c->n_devices; dev++) {
		int r;

		if (!c->devices[dev].stopped)
			continue;
		r = resume_device(c, dev);
		if (r >= 0)
			c->devices[dev].stopped = false;
		if (r < 0 && first == 0)
			first = cuda_error(c, r, "resume", err);
	}
	/* The end of the session lets the devices run, whatever the driver believes now. */
	if (first < 0 && !c->t.ended)
		target_end(&c->t, RPC_END_REASON_LOST, "resume", NULL);
	return first;
}

/* ------------------------------------------------------------------ gpu.suspend -------------- */

static struct cuda_context *find_number(struct target_cuda *c, uint32_t number)
{
	for (size_t i = 0; i < c->n_contexts; i++)
		if (c->contexts[i].number == number)
			return &c->contexts[i];
	return NULL;
}

/*
 * Count the suspended contexts.  Those of a device stop together; each counts, so that each can be
 * named.
 */
static void count_suspended(struct target_cuda *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n_contexts; i++)
		n += is_suspended(c, c->contexts[i].dev);
	if (n && !c->t.n_suspended)
		c->t.suspended_since_ns = clock_now_ns();
	c->t.n_suspended = n;
}

static int undo_suspend(void *ctx, uint64_t arg, struct agent_err *err)
{
	struct target_cuda *c = ctx;
	int r;

	if (!c->shim)
		return 0;
	for (size_t i = 0; i < c->n_devices; i++)
		c->devices[i].stopped |= c->devices[i].suspended;
	r = cuda_go(c, err);
	for (size_t i = 0; i < c->n_devices; i++)
		c->devices[i].suspended &= c->devices[i].stopped;
	count_suspended(c);
	if (r == 0)
		c->suspend_ticket = UNDO_NONE;
	return r;
}

static int suspend_one(struct target_cuda *c, uint32_t dev)
{
	struct cuda_device *d = &c->devices[dev];
	int r;

	if (d->suspended)
		return 0;
	d->suspended = true;
	r = cudbgshim_session_suspend(c->session, dev);
	d->suspended = r >= 0;
	return r;
}

static int resume_one(struct target_cuda *c, uint32_t dev)
{
	struct cuda_device *d = &c->devices[dev];
	int r = d->suspended ? resume_device(c, dev) : 0;

	if (r >= 0)
		d->suspended = false;
	return r;
}

static bool has_context(const struct target_cuda *c, uint32_t dev)
{
	size_t i = 0;

	while (i < c->n_contexts && c->contexts[i].dev != dev)
		i++;
	return i < c->n_contexts;
}

/* Resume devices whose last context has ended meanwhile, which no client can name any more. */
static int resume_unnamed(struct target_cuda *c)
{
	int r = 0;

	for (uint32_t dev = 0; r >= 0 && dev < c->n_devices; dev++)
		if (!has_context(c, dev))
			r = resume_one(c, dev);
	return r;
}

/* List the contexts that a request without a list means: to resume, those that are suspended. */
static uint32_t *all_contexts(const struct target_cuda *c, bool suspend, struct rpc_arena *a, size_t *ret_n)
{
	uint32_t *ids = rpc_arena_array(a, c->n_contexts, sizeof(*ids));

	*ret_n = 0;
	for (size_t i = 0; ids && i < c->n_contexts; i++)
		if (suspend || is_suspended(c, c->contexts[i].dev))
			ids[(*ret_n)++] = c->contexts[i].number;
	return ids;
}

/* @return the devices that are suspended, one bit each. */
static uint64_t suspended_devices(const struct target_cuda *c)
{
	uint64_t mask = 0;

	for (uint32_t dev = 0; dev < c->n_devices; dev++)
		mask |= (uint64_t)c->devices[dev].suspended << dev;
	return mask;
}

/*
 * Suspend or resume contexts; there is one verdict for each of the list, or of all that it can mean.
 * Those of a device run again together, and each that was suspended before is told as resumed.
 */
static int for_contexts(struct target_cuda *c, const uint32_t *ids, size_t n, bool suspend,
			struct rpc_arena *a, struct rpc_queue_result **ret, size_t *ret_n,
			struct agent_err *err)
{
	const uint32_t *chosen = ids ? ids : all_contexts(c, suspend, a, &n);
	struct rpc_queue_result *list = rpc_arena_array(a, n, sizeof(*list));
	uint64_t held = suspended_devices(c);
	int r = 0;

	if (!list || !chosen)
		return cuda_no_memory(suspend ? "suspend" : "resume", err);
	for (size_t i = 0; r >= 0 && i < n; i++) {
		struct cuda_context *x = find_number(c, chosen[i]);

		list[i] = (struct rpc_queue_result){ .queue_id = chosen[i],
						     .verdict = RPC_QUEUE_VERDICT_SKIPPED };
		if (!x || x->dev >= c->n_devices || (!suspend && !(held >> x->dev & 1)))
			continue;
		r = suspend ? suspend_one(c, x->dev) : resume_one(c, x->dev);
		list[i].verdict = suspend ? RPC_QUEUE_VERDICT_SUSPENDED : RPC_QUEUE_VERDICT_RESUMED;
	}
	if (r >= 0)
		r = resume_unnamed(c);
	count_suspended(c);
	if (r >= 0 && !c->t.n_suspended) {
		undo_drop(&c->t.undo, c->suspend_ticket);
		c->suspend_ticket = UNDO_NONE;
	}
	if (r < 0)
		r = cuda_error(c, r, suspend ? "suspend" : "resume", err);
	if (r < 0)
		return suspend ? r : target_undo_failed(&c->t, r);
	*ret = list;
	*ret_n = n;
	return 0;
}

size_t cuda_suspended(const struct target *t, uint32_t *ids, size_t max)
{
	const struct target_cuda *c = (const struct target_cuda *)t;
	size_t n = 0;

	for (size_t i = 0; i < c->n_contexts && n < max; i++)
		if (is_suspended(c, c->contexts[i].dev))
			ids[n++] = c->contexts[i].number;
	return n;
}

int cuda_suspend(struct target *t, const uint32_t *ids, size_t n, uint32_t grace,
		 struct rpc_arena *a, struct rpc_queue_result **ret, size_t *ret_n,
		 struct agent_err *err)
{
	struct target_cuda *c = cuda_of(t);
	int r;

	if (!c->suspend_ticket) {
		r = undo_push(&t->undo, "resume the devices", undo_suspend, c, 0,
			      &c->suspend_ticket, err);
		if (r < 0)
			return r;
	}
	return for_contexts(c, ids, n, true, a, ret, ret_n, err);
}

int cuda_resume(struct target *t, const uint32_t *ids, size_t n, struct rpc_arena *a,
		struct rpc_queue_result **ret, size_t *ret_n, struct agent_err *err)
{
	return for_contexts(cuda_of(t), ids, n, false, a, ret, ret_n, err);
}
