/* SPDX-License-Identifier: MIT */
#include "agentd/worker/value/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/worker/value/request.h"
#include "base/clock.h"
#include "values/constant_bank.h"

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
	uint64_t addresses[LANES_MAX]; /* By lane. */
	uint32_t size; /* Of each lane. */
	uint32_t got[LANES_MAX];
	int rest; /* Why there is no more: -EFAULT, -EBUSY, -ETIMEDOUT. */
	uint8_t *data; /* Of one lane, or of all up to the last one. */
};

int value_memory_init(struct value_memory *m)
{
	*m = (struct value_memory){ .pieces = calloc(FETCHES_MAX, sizeof(*m->pieces)),
				    .noted_at = calloc(LANES_MAX, sizeof(*m->noted_at)) };
	return m->pieces && m->noted_at ? 0 : -ENOMEM;
}

void value_memory_deinit(struct value_memory *m)
{
	for (size_t i = 0; i < m->n_fetches; i++)
		free(m->pieces[i].data);
	free(m->pieces);
	free(m->noted_at);
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
	return p->space == space && p->lanes & bit_of(lane) && address >= p->addresses[lane] &&
	       address - p->addresses[lane] < p->got[lane];
}

static const struct value_piece *find_piece(const struct value_memory *m, enum values_space space, uint32_t lane,
					    uint64_t address)
{
	for (size_t i = 0; i < m->n_fetches; i++)
		if (piece_has(&m->pieces[i], space, lane, address))
			return &m->pieces[i];
	return NULL;
}

/* Has a lane's part been tried to read from that address on, or on to it, in vain?  @return 0, or why. */
static int failure_of(const struct value_piece *p, uint32_t lane, uint64_t address)
{
	bool is_first = address == p->addresses[lane];

	if (address < p->addresses[lane] || address - p->addresses[lane] >= p->size)
		return 0;
	/* Where time ran out on the way to it, another try from there may succeed. */
	return is_first || (p->got[lane] && p->rest != -ETIMEDOUT) ? p->rest : 0;
}

/* The same of any of some lanes, which have the same memory there. */
static int known_failure(const struct value_memory *m, enum values_space space, uint64_t lanes, uint64_t address)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < m->n_fetches; i++) {
		const struct value_piece *p = &m->pieces[i];
		uint64_t left = p->space == space ? p->lanes & lanes : 0;

		for (; r == 0 && left; left &= left - 1)
			r = failure_of(p, (uint32_t)__builtin_ctzll(left), address);
	}
	return r;
}

/* Room for a piece of some lanes.  @return NULL: -ENOMEM, or there were too many (out_of_pieces). */
static struct value_piece *begin_piece(struct value_memory *m, enum values_space space, uint64_t lanes)
{
	uint32_t first = (uint32_t)__builtin_ctzll(lanes), last = LANES_MAX - 1 - (uint32_t)__builtin_clzll(lanes);
	bool is_one = first == last;
	struct value_piece *p = &m->pieces[m->n_fetches];

	/* Each try stops the queue, also one that reads nothing. */
	m->out_of_pieces |= m->n_pieces == PIECES_MAX || m->n_fetches == FETCHES_MAX;
	if (m->n_pieces == PIECES_MAX || m->n_fetches == FETCHES_MAX)
		return NULL;
	*p = (struct value_piece){ .space = space, .lanes = lanes, .is_one = is_one,
				   .size = is_one ? PIECE : LANE_PIECE,
				   .data = malloc(is_one ? PIECE : (size_t)(last + 1) * LANE_PIECE) };
	for (uint32_t i = first; i <= last; i++)
		p->got[i] = NOT_TRIED;
	return p->data ? p : NULL;
}

/* Fetch it, in a stop that has begun. */
static void fill_piece(struct value_request *k, struct value_piece *p, struct target_wave_memory *what)
{
	ssize_t n;

	k->memory.n_fetches++;
	what->wave = k->wave;
	what->lane = (uint32_t)__builtin_ctzll(p->lanes);
	what->lanes = p->is_one ? 0 : p->lanes;
	what->size = p->size;
	what->buf = p->data;
	what->got = p->got;
	n = fetch(k, what, &p->rest);
	k->memory.n_pieces += n > 0;
	if (p->is_one)
		p->got[what->lane] = n > 0 ? (uint32_t)n : 0;
	for (uint32_t i = 0; i < LANES_MAX; i++)
		if (p->lanes & bit_of(i) && p->got[i] == NOT_TRIED) {
			p->lanes &= n > 0 ? ~bit_of(i) : UINT64_MAX;
			p->got[i] = 0;
		}
}

/*
 * Ask for a piece.
 * @param ret  With what could be read.
 * @return 0, or why nothing was tried: -EDQUOT, -EBUSY, -ENOMEM.
 */
static int fetch_piece(struct value_request *k, enum values_space space, enum rpc_memory_space name, uint64_t lanes,
		       uint64_t address, const struct value_piece **ret)
{
	struct target_wave_memory what = { .space = name, .address = address, .bank = VALUES_CONSTANT_BANK };
	struct value_piece *p = begin_piece(&k->memory, space, lanes);
	uint32_t retry_ms;

	if (!p)
		return k->memory.out_of_pieces ? -EDQUOT : -ENOMEM;
	if (!value_request_stop_begin(k, &retry_ms)) {
		free(p->data);
		return -EBUSY;
	}
	for (uint32_t i = 0; i < LANES_MAX; i++)
		p->addresses[i] = address;
	fill_piece(k, p, &what);
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
		int r = known_failure(&k->memory, space, bit_of(lane), address);

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

/* ------------------------------------------------------------------ all lanes at once -------- */

/* Where a piece for an address begins: at the address itself where a larger one was tried in vain. */
static uint64_t start_of(const struct value_memory *m, uint64_t lanes, uint64_t address)
{
	uint64_t start = address & ~(uint64_t)(LANE_PIECE - 1);

	for (size_t i = 0; i < m->n_fetches; i++) {
		const struct value_piece *p = &m->pieces[i];
		uint64_t left = p->space == VALUES_SPACE_GENERIC ? p->lanes & lanes : 0;

		for (; left; left &= left - 1)
			if (p->addresses[__builtin_ctzll(left)] == start)
				return address;
	}
	return start;
}

/* Does a lane lack what another one lacks as well, where all of them have the same? */
static bool is_noted(const struct value_memory *m, uint64_t start)
{
	for (uint64_t left = m->noted; left; left &= left - 1)
		if (m->noted_at[__builtin_ctzll(left)] == start)
			return true;
	return false;
}

static void note(struct value_memory *m, uint32_t lane, uint64_t address, bool is_same)
{
	uint64_t start = start_of(m, is_same ? UINT64_MAX : bit_of(lane), address);

	if (m->noted & bit_of(lane) || (is_same && is_noted(m, start)))
		return;
	m->noted |= bit_of(lane);
	m->noted_at[lane] = start;
}

void value_memory_note(struct value_request *k)
{
	k->memory.noting = value_memory_is_own(k, VALUES_SPACE_GENERIC) && !value_request_is_late(k);
	k->memory.noted = 0;
}

bool value_memory_fetch_noted(struct value_request *k)
{
	struct value_memory *m = &k->memory;
	struct target_wave_memory what = { .space = RPC_MEMORY_SPACE_GENERIC, .addresses = m->noted_at };
	struct value_piece *p;
	uint32_t retry_ms;

	m->noting = false;
	if (!m->noted || k->target->ended || value_request_is_late(k))
		return false;
	what.address = m->noted_at[__builtin_ctzll(m->noted)];
	p = begin_piece(m, VALUES_SPACE_GENERIC, m->noted);
	if (!p)
		return false;
	if (!value_request_stop_begin(k, &retry_ms)) {
		free(p->data);
		return false;
	}
	memcpy(p->addresses, m->noted_at, sizeof(p->addresses));
	fill_piece(k, p, &what);
	m->ran = true;
	return true;
}

/* ------------------------------------------------------------------ reading ------------------ */

/* Find the piece of any lane: all of them have the same at the address. */
static const struct value_piece *find_same(const struct value_memory *m, uint64_t address, uint32_t *lane)
{
	for (uint32_t i = 0; i < LANES_MAX; i++) {
		const struct value_piece *p = find_piece(m, VALUES_SPACE_GENERIC, i, address);

		if (p) {
			*lane = i;
			return p;
		}
	}
	return NULL;
}

/* @param is_same  All lanes have the same at the address. */
static int find_or_fetch(struct value_request *k, uint32_t *lane, enum values_space space, enum rpc_memory_space name,
			 uint64_t address, bool is_same, const struct value_piece **ret)
{
	int r;

	*ret = is_same ? find_same(&k->memory, address, lane) : find_piece(&k->memory, space, *lane, address);
	if (*ret)
		return 0;
	r = known_failure(&k->memory, space, is_same ? UINT64_MAX : bit_of(*lane), address);
	if (r == 0 && k->memory.noting && space == VALUES_SPACE_GENERIC) {
		note(&k->memory, *lane, address, is_same);
		return -EAGAIN;
	}
	return r < 0 ? r : fetch_around(k, space, name, *lane, address, ret);
}

static int read_wave_memory(struct value_request *k, uint32_t lane, enum values_space space, uint64_t address,
			    bool is_same, uint8_t *to, size_t size)
{
	enum rpc_memory_space name;

	if (!space_to_rpc(space, &name) || !(k->target->ops->wave_spaces & TARGET_SPACE_BIT(name)))
		return -EOPNOTSUPP;
	if (space != VALUES_SPACE_PRIVATE && space != VALUES_SPACE_GENERIC)
		lane = 0;
	while (size) {
		const struct value_piece *p;
		int r = find_or_fetch(k, &lane, space, name, address, is_same, &p);
		size_t n;

		if (r < 0)
			return r;
		n = p->got[lane] - (size_t)(address - p->addresses[lane]);
		n = n < size ? n : size;
		memcpy(to, p->data + (p->is_one ? 0 : (size_t)lane * p->size) + (address - p->addresses[lane]), n);
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

	if (address >= TARGET_GLOBAL_END || size > UINT32_MAX)
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
	bool is_same = is_global(k->target, space, address);
	int r;

	if (k->target->ended)
		return -EPIPE;
	if (is_same) {
		r = read_global(k->target, address, ret, size);
		if (r != -EBUSY)
			return r;
		/* NVIDIA's driver reads device memory only while devices stand still; the wave's own does. */
		space = VALUES_SPACE_GENERIC;
		lane = k->memory.noting ? lane : k->lane;
	}
	if (value_request_is_late(k))
		return -ETIMEDOUT;
	k->memory.ran = true;
	return read_wave_memory(k, lane, space, address, is_same, ret, size);
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
