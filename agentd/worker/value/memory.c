/* SPDX-License-Identifier: MIT */
#include "agentd/worker/value/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/worker/value/request.h"
#include "base/clock.h"
#include "values/constant_bank.h"

/* User addresses end here; an address above can only be in an aperture. */
#define GLOBAL_END (UINT64_C(1) << 47)
/* Bytes of a piece: of one lane, and of each of many. */
#define PIECE	   4096u
#define LANE_PIECE 1024u
#define PIECES_MAX 16u
/* Tries to read one, each a stop. */
#define FETCHES_MAX 24u
#define LANES_MAX   64u
#define NOT_TRIED   UINT32_MAX

/* A piece of memory that was fetched, or tried to be. */
struct value_piece {
	enum values_space space;
	uint64_t lanes; /* Whose memory it is; lane 0 where all have the same. */
	bool is_one; /* Of one lane, whose bytes come first. */
	uint64_t address;
	uint32_t size; /* Of each lane. */
	uint32_t got[LANES_MAX];
	int rest; /* Why there is no more: -EFAULT, -EBUSY, -ETIMEDOUT. */
	uint8_t *data; /* Of one lane, or of all up to the last one. */
};

int value_memory_init(struct value_memory *m)
{
	*m = (struct value_memory){ .pieces = calloc(FETCHES_MAX, sizeof(*m->pieces)) };
	return m->pieces ? 0 : -ENOMEM;
}

void value_memory_deinit(struct value_memory *m)
{
	for (size_t i = 0; i < m->n_fetches; i++)
		free(m->pieces[i].data);
	free(m->pieces);
	*m = (struct value_memory){ 0 };
}

/* Fetch within a stop that has begun.  @param ret_rest  Why there is no more than that. */
static ssize_t fetch(struct value_request *k, const struct target_wave_memory *what, int *ret_rest)
{
	struct agent_err err = { 0 };
	uint64_t late_ns = clock_deadline_ms(k->from.max_stop_ms);
	ssize_t n = k->target->ops->wave_memory(k->target, &k->from, what, k->arena, &err);

	*ret_rest = -EFAULT;
	if (n == -EBUSY)
		*ret_rest = -EBUSY;
	/* What the time of the stop did not suffice for comes back short, like what ends there. */
	else if (n == -ETIME || n == -ETIMEDOUT || (n > 0 && clock_now_ns() >= late_ns))
		*ret_rest = -ETIMEDOUT;
	value_request_stop_end(k, -1);
	return n;
}

static bool space_to_rpc(enum values_space space, enum rpc_memory_space *ret)
{
	switch (space) {
	case VALUES_SPACE_PRIVATE: *ret = RPC_MEMORY_SPACE_SCRATCH; return true;
	case VALUES_SPACE_SHARED: *ret = RPC_MEMORY_SPACE_LDS; return true;
	case VALUES_SPACE_PARAMETER: *ret = RPC_MEMORY_SPACE_PARAM; return true;
	case VALUES_SPACE_GENERIC: *ret = RPC_MEMORY_SPACE_GENERIC; return true;
	case VALUES_SPACE_CODE: *ret = RPC_MEMORY_SPACE_CODE; return true;
	case VALUES_SPACE_CONSTANT: *ret = RPC_MEMORY_SPACE_CONSTANT; return true;
	default: return false;
	}
}

static uint64_t bit_of(uint32_t lane)
{
	return UINT64_C(1) << lane;
}

/* Does it have the byte at an address? */
static bool piece_has(const struct value_piece *p, enum values_space space, uint32_t lane, uint64_t address)
{
	return p->space == space && p->lanes & bit_of(lane) && address >= p->address &&
	       address - p->address < p->got[lane];
}

static const struct value_piece *find_piece(const struct value_memory *m, enum values_space space, uint32_t lane,
					    uint64_t address)
{
	for (size_t i = 0; i < m->n_fetches; i++)
		if (piece_has(&m->pieces[i], space, lane, address))
			return &m->pieces[i];
	return NULL;
}

/*
 * Has it been tried to read from that address on, or on to it, in vain?  Where time ran out on the way to
 * it, another try from there may succeed.
 * @return 0, or why that failed.
 */
static int known_failure(const struct value_memory *m, enum values_space space, uint32_t lane, uint64_t address)
{
	for (size_t i = 0; i < m->n_fetches; i++) {
		const struct value_piece *p = &m->pieces[i];

		if (p->space == space && p->lanes & bit_of(lane) && address >= p->address &&
		    address - p->address < p->size &&
		    (address == p->address || (p->got[lane] && p->rest != -ETIMEDOUT)))
			return p->rest;
	}
	return 0;
}

/*
 * Ask for a piece.
 * @param ret  With what could be read.
 * @return 0, or why nothing was tried: -EDQUOT, -EBUSY, -ENOMEM.
 */
static int fetch_piece(struct value_request *k, enum values_space space, enum rpc_memory_space name, uint64_t lanes,
		       uint64_t address, const struct value_piece **ret)
{
	struct value_memory *m = &k->memory;
	struct value_piece *p;
	uint32_t first = (uint32_t)__builtin_ctzll(lanes), last = LANES_MAX - 1 - (uint32_t)__builtin_clzll(lanes);
	bool is_one = first == last;
	struct target_wave_memory what = { .wave = k->wave, .space = name, .lane = first, .address = address,
					   .size = is_one ? PIECE : LANE_PIECE, .lanes = is_one ? 0 : lanes,
					   .bank = VALUES_CONSTANT_BANK };
	uint32_t retry_ms;
	uint8_t *data;
	ssize_t n;

	/* Each try stops the queue, also one that reads nothing. */
	if (m->n_pieces == PIECES_MAX || m->n_fetches == FETCHES_MAX) {
		m->out_of_pieces = true;
		return -EDQUOT;
	}
	data = malloc(is_one ? PIECE : (size_t)(last + 1) * LANE_PIECE);
	if (!data)
		return -ENOMEM;
	if (!value_request_stop_begin(k, &retry_ms)) {
		free(data);
		return -EBUSY;
	}
	p = &m->pieces[m->n_fetches++];
	*p = (struct value_piece){ .space = space, .lanes = lanes, .is_one = is_one, .address = address,
				   .size = what.size, .data = data };
	what.buf = p->data;
	what.got = p->got;
	for (uint32_t i = first; !is_one && i <= last; i++)
		p->got[i] = NOT_TRIED;
	n = fetch(k, &what, &p->rest);
	m->n_pieces += n > 0;
	if (is_one)
		p->got[first] = n > 0 ? (uint32_t)n : 0;
	for (uint32_t i = first; !is_one && i <= last; i++)
		if (p->got[i] == NOT_TRIED) {
			p->lanes &= n > 0 ? ~bit_of(i) : UINT64_MAX;
			p->got[i] = 0;
		}
	*ret = p;
	return 0;
}

/* Fetch what lies around an address; less when that cannot be read. */
static int fetch_around(struct value_request *k, enum values_space space, enum rpc_memory_space name, uint32_t lane,
			uint64_t address, const struct value_piece **ret)
{
	uint64_t lanes = space == VALUES_SPACE_PRIVATE ? k->memory.lanes | bit_of(lane) : bit_of(lane);
	uint32_t size = lanes == bit_of(lane) ? PIECE : LANE_PIECE;
	uint64_t starts[] = { address & ~(uint64_t)(size - 1), address };

	/* What begins there was cut short, or it would be there. */
	for (size_t i = find_piece(&k->memory, space, lane, starts[0]) ? 1 : 0;
	     i < sizeof(starts) / sizeof(starts[0]); i++) {
		int r = known_failure(&k->memory, space, lane, address);

		if (r == 0)
			r = fetch_piece(k, space, name, lanes, starts[i], ret);
		if (r < 0)
			return r;
		if (k->target->ended)
			return -EPIPE;
		if (piece_has(*ret, space, lane, address))
			return 0;
		if (!((*ret)->lanes & bit_of(lane)) || (*ret)->rest != -EFAULT)
			return (*ret)->rest == -EFAULT ? -ETIMEDOUT : (*ret)->rest;
	}
	return -EFAULT;
}

bool value_memory_is_own(const struct value_request *k, enum values_space space)
{
	return space == VALUES_SPACE_PRIVATE ||
	       (space == VALUES_SPACE_GENERIC &&
		k->target->ops->wave_spaces & TARGET_SPACE_BIT(RPC_MEMORY_SPACE_GENERIC));
}

static int read_wave_memory(struct value_request *k, uint32_t lane, enum values_space space, uint64_t address,
			    uint8_t *to, size_t size)
{
	enum rpc_memory_space name;

	if (!space_to_rpc(space, &name) || !(k->target->ops->wave_spaces & TARGET_SPACE_BIT(name)))
		return -EOPNOTSUPP;
	if (space != VALUES_SPACE_PRIVATE && space != VALUES_SPACE_GENERIC)
		lane = 0;
	while (size) {
		const struct value_piece *p = find_piece(&k->memory, space, lane, address);
		int r = p ? 0 : fetch_around(k, space, name, lane, address, &p);
		size_t n;

		if (r < 0)
			return r;
		n = p->got[lane] - (size_t)(address - p->address);
		n = n < size ? n : size;
		memcpy(to, p->data + (p->is_one ? 0 : (size_t)lane * p->size) + (address - p->address), n);
		to += n;
		address += n;
		size -= n;
	}
	return 0;
}

/* @return 0, -EBUSY (only a stop would make it readable), -EFAULT. */
static int read_global(struct target *t, uint64_t address, void *ret, size_t size)
{
	struct agent_err err = { 0 };
	ssize_t n = -EFAULT;
	bool is_busy;

	if (address >= GLOBAL_END || size > UINT32_MAX)
		return -EFAULT;
	if (t->ops->memory) {
		t->memory_no_stop = true;
		n = t->ops->memory(t, address, ret, (uint32_t)size, &err);
	}
	is_busy = n == -EBUSY;
	if (n < 0 && !t->ended)
		n = memory_read(&t->memory, address, ret, size);
	if (n == (ssize_t)size)
		return 0;
	return is_busy ? -EBUSY : -EFAULT;
}

/* Is it memory of the process, and not what only the wave sees? */
static bool is_global(const struct target *t, enum values_space space, uint64_t address)
{
	switch (space) {
	case VALUES_SPACE_GLOBAL: return true;
	case VALUES_SPACE_CONSTANT: return address >= VALUES_CONSTANT_BANK_MAX;
	case VALUES_SPACE_GENERIC: return !(t->ops->wave_spaces & TARGET_SPACE_BIT(RPC_MEMORY_SPACE_GENERIC));
	default: return false;
	}
}

static int read_any(struct value_request *k, uint32_t lane, enum values_space space, uint64_t address, void *ret,
		    size_t size)
{
	int r;

	if (k->target->ended)
		return -EPIPE;
	if (is_global(k->target, space, address)) {
		r = read_global(k->target, address, ret, size);
		if (r != -EBUSY)
			return r;
		/* NVIDIA's driver reads device memory only while devices stand still; the wave's own does. */
		space = VALUES_SPACE_GENERIC;
		lane = k->lane;
	}
	if (value_request_is_late(k))
		return -ETIMEDOUT;
	k->memory.ran = true;
	return read_wave_memory(k, lane, space, address, ret, size);
}

int value_memory_read(void *request, uint32_t lane, enum values_space space, uint64_t address, void *ret,
		      size_t size)
{
	struct value_request *k = request;
	int r = read_any(k, lane, space, address, ret, size);

	if (r == -EBUSY || r == -ETIMEDOUT)
		k->memory.passing = r;
	k->memory.busy |= r == -EBUSY;
	k->memory.late |= r == -ETIMEDOUT;
	return r;
}

const char *value_memory_passing(int error)
{
	switch (error) {
	case -EBUSY: return "its queue may not be stopped for it now";
	case -ETIMEDOUT: return VALUE_NO_TIME;
	default: return NULL;
	}
}

void value_memory_excuse(const struct value_memory *m, struct values_bytes *b)
{
	if (!b->has_address || !m->passing)
		return;
	b->has_address = false;
	b->address = 0;
	b->reason = value_memory_passing(m->passing);
	b->state = b->state == VALUES_UNREADABLE ? VALUES_UNAVAILABLE : b->state;
}
