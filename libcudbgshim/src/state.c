/* SPDX-License-Identifier: MIT */
/* The state of a device, and a reader that keeps it up to date. */
#include "internal.h"

#include <errno.h>
#include <stdlib.h>

int cudbgshim_state_create(uint32_t n_sms, uint32_t n_warps, uint32_t n_lanes,
			   struct cudbgshim_state **ret_state)
{
	struct cudbgshim_state *state;
	size_t all = (size_t)n_sms * n_warps;

	if (!n_sms || n_sms > CUDBGSHIM_MAX_SMS || !n_warps || n_warps > CUDBGSHIM_MAX_WARPS ||
	    !n_lanes || n_lanes > CUDBGSHIM_MAX_LANES)
		return -EINVAL;
	state = calloc(1, sizeof(*state));
	if (!state)
		return -ENOMEM;
	state->n_sms = n_sms;
	state->n_warps = n_warps;
	state->n_lanes = n_lanes;
	state->valid_warps = calloc(n_sms, sizeof(*state->valid_warps));
	state->broken_warps = calloc(n_sms, sizeof(*state->broken_warps));
	state->warps = calloc(all, sizeof(*state->warps));
	state->lane_pc = calloc(all * n_lanes, sizeof(*state->lane_pc));
	state->lane_exception = calloc(all * n_lanes, sizeof(*state->lane_exception));
	if (!state->valid_warps || !state->broken_warps || !state->warps || !state->lane_pc ||
	    !state->lane_exception) {
		cudbgshim_state_destroy(state);
		return -ENOMEM;
	}
	*ret_state = state;
	return 0;
}

void cudbgshim_state_destroy(struct cudbgshim_state *state)
{
	if (!state)
		return;
	free(state->valid_warps);
	free(state->broken_warps);
	free(state->warps);
	free(state->lane_pc);
	free(state->lane_exception);
	free(state);
}

void cudbgshim_state_clear(struct cudbgshim_state *state)
{
	size_t all = (size_t)state->n_sms * state->n_warps;

	memset(state->exception_sms, 0, sizeof(state->exception_sms));
	memset(state->valid_warps, 0, state->n_sms * sizeof(*state->valid_warps));
	memset(state->broken_warps, 0, state->n_sms * sizeof(*state->broken_warps));
	memset(state->warps, 0, all * sizeof(*state->warps));
	memset(state->lane_pc, 0, all * state->n_lanes * sizeof(*state->lane_pc));
	memset(state->lane_exception, 0, all * state->n_lanes * sizeof(*state->lane_exception));
	state->updatable = false;
}

struct cudbgshim_state_reader {
	struct cudbgshim *s;
	uint32_t dev;
	struct cudbgshim_state *state;
	struct cudbgshim_layout layout;
	void *buf; /* NULL when snapshots are read warp by warp. */
};

static bool is_unusable(int r)
{
	return r == -ENOSYS || r == -EOPNOTSUPP || r == -EPROTO || r == -ENOBUFS;
}

static int create_state(struct cudbgshim *s, uint32_t dev, struct cudbgshim_state **ret_state)
{
	uint32_t n_sms = 0, n_warps = 0, n_lanes = 0;
	int r = CALL(s, getNumSMs, dev, &n_sms);

	if (!r)
		r = CALL(s, getNumWarps, dev, &n_warps);
	if (!r)
		r = CALL(s, getNumLanes, dev, &n_lanes);
	if (!r)
		r = cudbgshim_state_create(n_sms, n_warps, n_lanes, ret_state);
	return r == -EINVAL && !s->last.error ? -EPROTO : r;
}

int cudbgshim_state_reader_create(struct cudbgshim *s, uint32_t dev,
				  struct cudbgshim_state_reader **ret_reader)
{
	struct cudbgshim_state_reader *reader = calloc(1, sizeof(*reader));
	int r;

	if (!reader)
		return -ENOMEM;
	reader->s = s;
	reader->dev = dev;
	r = create_state(s, dev, &reader->state);
	if (!r) {
		r = cudbgshim_get_layout(s, dev, &reader->layout);
		if (!r) {
			reader->buf = calloc(1, reader->layout.buffer_size);
			r = reader->buf ? 0 : -ENOMEM;
		} else if (is_unusable(r)) {
			r = 0;
		}
	}
	if (r < 0) {
		cudbgshim_state_reader_destroy(reader);
		return r;
	}
	*ret_reader = reader;
	return 0;
}

void cudbgshim_state_reader_destroy(struct cudbgshim_state_reader *reader)
{
	if (!reader)
		return;
	cudbgshim_state_destroy(reader->state);
	free(reader->buf);
	free(reader);
}

bool cudbgshim_state_reader_is_batched(const struct cudbgshim_state_reader *reader)
{
	return reader->buf;
}

static int read_batched(struct cudbgshim_state_reader *reader, bool full)
{
	uint32_t used;
	int r = cudbgshim_read_batch(reader->s, reader->dev, full, reader->buf,
				     reader->layout.buffer_size, &used);

	if (r < 0)
		return r;
	return cudbgshim_state_decode(reader->state, &reader->layout, reader->buf, used, NULL);
}

int cudbgshim_state_reader_read(struct cudbgshim_state_reader *reader,
				const struct cudbgshim_state **ret_state)
{
	int r = -ENOSYS;

	if (reader->buf) {
		/*
		 * An update that makes no sense is followed by one full answer; then batches are
		 * given up.
		 */
		r = read_batched(reader, !reader->state->updatable);
		if (r == -EPROTO)
			r = read_batched(reader, true);
		if (is_unusable(r)) {
			free(reader->buf);
			reader->buf = NULL;
		}
	}
	if (!reader->buf)
		r = cudbgshim_state_read_plain(reader->s, reader->dev, reader->state);
	RETURN_VALUE(r, ret_state, reader->state);
}
