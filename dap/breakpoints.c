/* SPDX-License-Identifier: MIT */
/* What stops the process by itself: exceptions that were asked for, and watch points. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "dap/adapter.h"

/* Bytes that are watched where the editor does not say how many: the least that all devices can. */
#define WATCH_BYTES 64

/* Most exceptions of one filter. */
#define EXCEPTIONS_MAX 9

static const struct filter {
	const char *id, *label;
	enum rpc_exception exceptions[EXCEPTIONS_MAX];
	size_t n;
	bool on; /**< The filter is on unless the user says otherwise. */
} filters[] = {
	{ "memory", "Memory violations",
	  { RPC_EXCEPTION_WAVE_MEMORY_VIOLATION, RPC_EXCEPTION_WAVE_ADDRESS_ERROR,
	    RPC_EXCEPTION_DEVICE_MEMORY_VIOLATION }, 3, true },
	{ "illegal", "Illegal instructions", { RPC_EXCEPTION_WAVE_ILLEGAL_INSTRUCTION }, 1, true },
	{ "math", "Arithmetic errors", { RPC_EXCEPTION_WAVE_MATH_ERROR }, 1, true },
	{ "assert", "Asserts and aborts", { RPC_EXCEPTION_WAVE_ABORT }, 1, true },
	{ "trap", "Traps and breakpoints of the program", { RPC_EXCEPTION_WAVE_TRAP }, 1, false },
	{ "fault", "Other faults of waves", { RPC_EXCEPTION_WAVE_FAULT }, 1, false },
	{ "queue", "Packets and queues that the device refuses",
	  { RPC_EXCEPTION_PACKET_DISPATCH_DIM_INVALID,
	    RPC_EXCEPTION_PACKET_DISPATCH_GROUP_SEGMENT_SIZE_INVALID,
	    RPC_EXCEPTION_PACKET_DISPATCH_CODE_INVALID, RPC_EXCEPTION_PACKET_RESERVED,
	    RPC_EXCEPTION_PACKET_UNSUPPORTED,
	    RPC_EXCEPTION_PACKET_DISPATCH_WORK_GROUP_SIZE_INVALID,
	    RPC_EXCEPTION_PACKET_DISPATCH_REGISTER_INVALID,
	    RPC_EXCEPTION_PACKET_VENDOR_UNSUPPORTED, RPC_EXCEPTION_QUEUE_PREEMPTION_ERROR }, 9, true },
	{ "device", "Errors of the device",
	  { RPC_EXCEPTION_DEVICE_RAS_ERROR, RPC_EXCEPTION_DEVICE_FATAL_HALT,
	    RPC_EXCEPTION_PROCESS_DEVICE_REMOVE }, 3, true },
};

void dap_put_filters(struct out *o)
{
	out_char(o, '[');
	for (size_t i = 0; i < ARRAY_SIZE(filters); i++)
		out_json_fmt(o, ",{'filter':%s,'label':%s,'default':%i}", filters[i].id,
			     filters[i].label, filters[i].on);
	out_char(o, ']');
}

/* ------------------------------------------------------------------ exceptions --------------- */

/* Add an exception to a list once. */
static void add(enum rpc_exception *list, size_t *n, enum rpc_exception e)
{
	for (size_t i = 0; i < *n; i++)
		if (list[i] == e)
			return;
	list[(*n)++] = e;
}

/*
 * Tell the agent which exceptions are wanted, and of which faults the console tells besides.  A hit
 * of a watch point is a trap of its wave.  The agent tells of exceptions also a client that may not
 * stop anything.  It forwards each right after it has told of it; where nothing is to stop, it does
 * not stop queues to look, either.
 */
static int subscribe(struct dap *d, uint64_t wanted, bool watching, struct agent_err *err)
{
	enum rpc_exception list[EXCEPTIONS_MAX * ARRAY_SIZE(filters) + 1];
	struct rpc_exception_subscribe_params p = { .session = d->session, .exceptions = list,
						    .has_look_ms = !wanted && !watching };
	struct rpc_exception_subscribe_result result;
	int r;

	if (dap_is_core(d))
		return 0; /* In a core none is raised. */
	for (size_t i = 0; i < ARRAY_SIZE(filters); i++)
		for (size_t k = 0; k < filters[i].n; k++)
			if (wanted >> i & 1 || dap_exception_is_fault(filters[i].exceptions[k]))
				add(list, &p.n_exceptions, filters[i].exceptions[k]);
	if (watching)
		add(list, &p.n_exceptions, RPC_EXCEPTION_WAVE_TRAP);
	r = watching ? dap_need_control(d, err) : 0;
	if (r == 0)
		r = rpc_client_exception_subscribe(d->client, &p, &d->arena, &result, err);
	if (r < 0)
		return r;
	d->filters = wanted;
	d->watching = watching;
	return 0;
}

void dap_exceptions_begin(struct dap *d)
{
	struct agent_err err = { 0 };

	/* Who may not be told of exceptions has been told that it may only look. */
	if (subscribe(d, d->filters, false, &err) < 0 && err.code != RPC_ERROR_NOT_PERMITTED &&
	    err.err != ECANCELED)
		dap_output(d, "important", "Exceptions are not told: %s", err.message);
}

bool dap_exception_is_wanted(const struct dap *d, const struct rpc_exception_raised_params *e)
{
	for (size_t n = 0; n < e->n_exceptions; n++) {
		if (d->watching && e->exceptions[n] == RPC_EXCEPTION_WAVE_TRAP)
			return true;
		for (size_t i = 0; i < ARRAY_SIZE(filters); i++)
			for (size_t k = 0; d->filters >> i & 1 && k < filters[i].n; k++)
				if (filters[i].exceptions[k] == e->exceptions[n])
					return true;
	}
	return false;
}

/* Set the bit of the filter of that name. */
static int filter_bit(struct dap_json v, uint64_t *ret, struct agent_err *err)
{
	char id[32];

	if (!dap_json_str(v, id, sizeof(id)))
		return dap_invalid(err, "filters: must be names of filters");
	for (size_t i = 0; i < ARRAY_SIZE(filters); i++)
		if (!strcmp(filters[i].id, id)) {
			*ret |= UINT64_C(1) << i;
			return 0;
		}
	return dap_invalid(err, "filters: there is no \"%s\"", id);
}

void dap_put_refused(struct out *body, struct dap_json list, const char *why)
{
	out_json_fmt(body, "{'breakpoints':[");
	for (size_t i = 0; dap_json_has(dap_json_item(list, i)); i++)
		out_json_fmt(body, ",{'verified':false,'message':%s}", why);
	out_str(body, "]}");
}

int dap_set_exception_breakpoints(struct dap *d, const struct dap_request *q,
				  struct dap_answer *ret)
{
	struct dap_json list = dap_json_get(q->args, "filters"), v;
	uint64_t wanted = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && dap_json_has(v = dap_json_item(list, i)); i++)
		r = filter_bit(v, &wanted, &ret->err);
	if (r < 0)
		return r;
	r = subscribe(d, wanted, d->watching, &ret->err);
	/*
	 * An editor has filters on before a user asks for them: that they cannot be had is no
	 * failure.
	 */
	if (r < 0 && ret->err.code == RPC_ERROR_NOT_PERMITTED) {
		dap_put_refused(&ret->body, list, ret->err.message);
		return 0;
	}
	return r;
}

/* ------------------------------------------------------------------ watch points ------------- */

/* Read the id of a watch point: `0xADDRESS/SIZE`. */
static int parse_data_id(const char *id, struct rpc_watchpoint_set_params *p)
{
	char text[64], *slash;

	str_copy(text, sizeof(text), id);
	slash = strchr(text, '/');
	if (!slash)
		return -EINVAL;
	*slash = '\0';
	if (str_to_hex64(text, &p->address) < 0)
		return -EINVAL;
	return str_to_u64(slash + 1, 1, UINT64_C(1) << 30, &p->size);
}

/*
 * The id of a watch point.  Hardware compares masked addresses: the size becomes a power of two,
 * and NULL is returned for an address that is not a multiple of it.
 */
static const char *data_id(struct dap *d, uint64_t address, uint64_t bytes)
{
	uint64_t size = 1;

	while (size < bytes)
		size *= 2;
	if (address % size)
		return NULL;
	return rpc_arena_printf(&d->arena, "0x%" PRIx64 "/%" PRIu64, address, size);
}

/* Whether any device of the process has watch points. */
static bool has_watch_points(const struct dap *d)
{
	for (size_t i = 0; i < d->snap->doc.n_devices; i++)
		if (d->snap->doc.devices[i].watchpoints)
			return true;
	return false;
}

int dap_data_breakpoint_info(struct dap *d, const struct dap_request *q, struct dap_answer *ret)
{
	bool is_address = dap_json_is_true(dap_json_get(q->args, "asAddress"));
	struct dap_json v = dap_json_get(q->args, "bytes");
	const char *id = NULL, *why = "an address such as 0x7f00 can be watched, where it is a "
				      "multiple of the bytes watched";
	struct agent_err control;
	char name[64];
	uint64_t address;
	int64_t bytes = WATCH_BYTES;

	if (!dap_json_has(dap_json_get(q->args, "name")))
		return dap_invalid(&ret->err, "name: missing");
	if (!dap_json_str(dap_json_get(q->args, "name"), name, sizeof(name)))
		name[0] = '\0'; /* Whatever it is, it is no address. */
	if (dap_json_has(v) && (!dap_json_i64(v, &bytes) || bytes < 1 || bytes > 1 << 30))
		return dap_invalid(&ret->err, "bytes: must be between 1 and 1073741824");
	if ((is_address ? str_to_u64_any : str_to_hex64)(name, &address) == 0) {
		/* Without a number of bytes, the block around the address is watched. */
		address -= dap_json_has(v) ? 0 : address % WATCH_BYTES;
		id = data_id(d, address, (uint64_t)bytes);
	}
	if (!has_watch_points(d)) {
		id = NULL;
		why = "the GPUs of this process have no watch points";
	} else if (id && dap_need_control(d, &control) < 0) {
		id = NULL;
		why = control.message;
	}
	if (id)
		out_json_fmt(&ret->body, "{'dataId':%s,'description':%s,"
			     "'accessTypes':['read','write','readWrite']}", id, id);
	else
		out_json_fmt(&ret->body, "{'dataId':null,'description':%s}", why);
	return 0;
}

/* Without an access type, writes are watched. */
static enum rpc_watch_mode watch_mode(struct dap_json v)
{
	char text[16];

	if (!dap_json_str(v, text, sizeof(text)))
		return RPC_WATCH_MODE_NONREAD;
	return !strcmp(text, "read")	  ? RPC_WATCH_MODE_READ :
	       !strcmp(text, "readWrite") ? RPC_WATCH_MODE_ALL :
					    RPC_WATCH_MODE_NONREAD;
}

/* Set one watch point and answer for it; a failure is that of this one only. */
static bool set_one(struct dap *d, struct dap_json v, struct out *body)
{
	struct rpc_watchpoint_set_params p = { .session = d->session, .has_mode = true };
	struct rpc_watchpoint_set_result result;
	struct agent_err err = { 0 };
	char id[64] = "";
	int r = -EINVAL;

	if (dap_json_str(dap_json_get(v, "dataId"), id, sizeof(id)) && parse_data_id(id, &p) == 0) {
		p.mode = watch_mode(dap_json_get(v, "accessType"));
		r = rpc_client_watchpoint_set(d->client, &p, &d->arena, &result, &err);
	} else {
		dap_invalid(&err, "dataId: not one that dataBreakpointInfo gave");
	}
	out_json_fmt(body, ",{'verified':%i", r == 0);
	if (r < 0)
		out_json_fmt(body, ",'message':%s", err.message);
	out_char(body, '}');
	return r == 0;
}

static int clear_all(struct dap *d, struct agent_err *err)
{
	const struct rpc_watchpoint_clear_params p = { .session = d->session };
	struct rpc_watchpoint_clear_result result;
	int r = dap_need_control(d, err);

	return r < 0 ? r : rpc_client_watchpoint_clear(d->client, &p, &d->arena, &result, err);
}

int dap_set_data_breakpoints(struct dap *d, const struct dap_request *q, struct dap_answer *ret)
{
	struct dap_json list = dap_json_get(q->args, "breakpoints"), v;
	struct agent_err ignored;
	bool watching = false, some = dap_json_has(dap_json_item(list, 0));
	int r;

	/* Editors send an empty list at the start; that needs no control. */
	if (!some && !d->watching) {
		out_str(&ret->body, "{\"breakpoints\":[]}");
		return 0;
	}
	r = clear_all(d, &ret->err);
	if (r < 0)
		return r;
	out_str(&ret->body, "{\"breakpoints\":[");
	for (size_t i = 0; dap_json_has(v = dap_json_item(list, i)); i++)
		watching |= set_one(d, v, &ret->body);
	out_str(&ret->body, "]}");
	r = subscribe(d, d->filters, watching, &ret->err);
	if (r < 0 && watching)
		(void)clear_all(d, &ignored); /* The editor takes none of them for set. */
	return r;
}

/* ------------------------------------------------------------------ the console's ------------ */

static int list_watch_points(struct dap *d, struct out *o, struct agent_err *err)
{
	const struct rpc_watchpoint_list_params p = { .session = d->session };
	struct rpc_watchpoint_list_result result;
	int r = rpc_client_watchpoint_list(d->client, &p, &d->arena, &result, err);

	for (size_t i = 0; r == 0 && i < result.n_watchpoints; i++) {
		const struct rpc_watchpoint *w = &result.watchpoints[i];

		out_fmt(o, "%s%u on device %u: %" PRIu64 " bytes at 0x%" PRIx64 ", %s", i ? "\n" : "",
			w->id, w->gpu_id, w->size, w->address,
			rpc_enum_name(&rpc_watch_mode_enum, w->mode));
	}
	if (r == 0 && !result.n_watchpoints)
		out_str(o, "no watch points");
	return r;
}

static int set_watch_point(struct dap *d, const struct dap_words *w, struct agent_err *err)
{
	struct rpc_watchpoint_set_params p = { .session = d->session, .has_mode = w->n > 4 };
	struct rpc_watchpoint_set_result result;
	int64_t mode = 0;
	int r;

	if (w->n < 4 || str_to_u64_any(w->w[2], &p.address) < 0 ||
	    str_to_u64_any(w->w[3], &p.size) < 0 ||
	    (p.has_mode && rpc_enum_value(&rpc_watch_mode_enum, w->w[4], &mode) < 0))
		return dap_invalid(err, "watchpoint set ADDRESS SIZE [read|nonread|atomic|all]");
	p.mode = (enum rpc_watch_mode)mode;
	r = dap_need_control(d, err);
	if (r == 0)
		r = rpc_client_watchpoint_set(d->client, &p, &d->arena, &result, err);
	return r < 0 ? r : subscribe(d, d->filters, true, err);
}

int dap_word_watchpoint(struct dap *d, const struct dap_words *w, struct out *o,
			struct agent_err *err)
{
	const char *what = w->n > 1 ? w->w[1] : "list";
	int r = 0;

	if (dap_is_core(d))
		return dap_need_control(d, err);
	if (!strcmp(what, "set"))
		r = set_watch_point(d, w, err);
	else if (!strcmp(what, "clear"))
		r = clear_all(d, err) < 0 ? -EIO : subscribe(d, d->filters, false, err);
	else if (strcmp(what, "list") != 0)
		r = dap_invalid(err, "watchpoint: \"%.40s\" is none of set, list, clear", what);
	return r < 0 ? r : list_watch_points(d, o, err);
}
