/* SPDX-License-Identifier: MIT */
/*
 * wave.variables, wave.evaluate: registers are copied in one stop of the queue, everything else is
 * looked up and read when it runs again.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/worker/session/handlers.h"
#include "agentd/worker/snapshot/code.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "symbols/debug_info.h"
#include "values/expression/expression.h"
#include "values/scope.h"
#include "values/text/value.h"
#include "values/type/type.h"

#define REPLY_MAX ((size_t)8 << 20)
/* User addresses end here; an address above can only be in an aperture. */
#define GLOBAL_END (UINT64_C(1) << 47)
/* Memory of a wave is fetched in pieces, each of which stops the queue. */
#define PIECE	   4096u
#define PIECES_MAX 16u
/* Tries to read one, each a stop. */
#define FETCHES_MAX 24u
/* For everything about one frame: debug information may be made to take long. */
#define LOOK_MS 3000
/* Longest text of a type. */
#define TYPE_TEXT_MAX 1024u
#define DEPTH_MAX  66u /* Callers and the innermost frame. */
#define VALUE_MAX  65536u

/* A piece of memory that was fetched. */
struct piece {
	enum values_space space;
	uint32_t lane, size;
	uint64_t address;
	uint8_t data[PIECE];
};

/* What one request looks at. */
struct look {
	struct session *s;
	struct target *t;
	struct rpc_arena *arena;
	const struct rpc_wave_variables_params *p;
	struct target_waves_from from;
	uint32_t max_stop_ms;
	struct rpc_wave_registers registers;
	struct piece *pieces;
	size_t n_pieces;
	unsigned n_fetches; /* So often the queue was stopped for memory. */
	uint64_t deadline_ns;
	bool ran; /* Memory was read while the queue ran between stops. */
	bool out_of_pieces, out_of_time;
	bool unreadable; /* Something is in memory that could not be read. */
	uint32_t lane;
	struct evaluation *evaluation; /* NULL: all variables are wanted. */
	struct rpc_wave_variables_result *ret;
};

/* It stays so: whatever is left is left out. */
static bool is_late(struct look *k)
{
	k->out_of_time |= clock_now_ns() >= k->deadline_ns;
	return k->out_of_time;
}

static void miss(struct look *k, const char *what)
{
	const char **list = rpc_arena_array(k->arena, k->ret->n_missing + 1, sizeof(*list));

	if (!list)
		return;
	if (k->ret->n_missing)
		memcpy(list, k->ret->missing, k->ret->n_missing * sizeof(*list));
	list[k->ret->n_missing++] = what;
	k->ret->missing = list;
}

/* ------------------------------------------------------------------ registers ---------------- */

static const struct rpc_scalar_register *find_scalar(const struct rpc_scalar_register *list, size_t n,
						     const char *name, size_t guess)
{
	if (guess < n && !strcmp(list[guess].name, name))
		return &list[guess];
	for (size_t i = 0; i < n; i++)
		if (!strcmp(list[i].name, name))
			return &list[i];
	return NULL;
}

static int read_vector(const struct rpc_vector_register *list, size_t n, const char *name, size_t guess,
		       uint32_t lane, uint32_t *ret)
{
	for (size_t i = 0; i <= n; i++) {
		size_t at = i ? i - 1 : guess;

		if (at >= n || strcmp(list[at].name, name))
			continue;
		if (lane >= list[at].n_lanes)
			return -ENXIO;
		*ret = (uint32_t)list[at].lanes[lane];
		return 0;
	}
	return -ENXIO;
}

static const char *const letters[] = {
	[VALUES_FILE_SCALAR] = "s", [VALUES_FILE_VECTOR] = "v", [VALUES_FILE_ACCUMULATION] = "a",
	[VALUES_FILE_PC] = "pc", [VALUES_FILE_EXEC] = "exec", [VALUES_FILE_VCC] = "vcc",
	[VALUES_FILE_STATUS] = "status", [VALUES_FILE_REGISTER] = "R", [VALUES_FILE_UNIFORM] = "UR",
	[VALUES_FILE_PREDICATE] = "P", [VALUES_FILE_UNIFORM_PREDICATE] = "UP",
};

static int read_special(const struct rpc_wave_registers *r, const char *name, uint32_t half, uint32_t *ret)
{
	const struct rpc_scalar_register *found = find_scalar(r->special, r->n_special, name, 0);

	if (!found || half > 1)
		return -ENXIO;
	*ret = (uint32_t)(found->value >> half * 32);
	return 0;
}

static int read_register(void *context, uint32_t lane, enum values_file file, uint32_t number,
			 uint32_t *ret)
{
	const struct look *k = context;
	const struct rpc_wave_registers *r = &k->registers;
	const struct rpc_scalar_register *scalar;
	char name[16];

	snprintf(name, sizeof(name), "%s%u", letters[file], number);
	switch (file) {
	case VALUES_FILE_VECTOR:
	case VALUES_FILE_REGISTER:
	case VALUES_FILE_PREDICATE:
		return read_vector(r->vector, r->n_vector, name, number, lane, ret);
	case VALUES_FILE_ACCUMULATION:
		return read_vector(r->accumulator, r->n_accumulator, name, number, lane, ret);
	case VALUES_FILE_PC:
	case VALUES_FILE_EXEC:
	case VALUES_FILE_VCC:
	case VALUES_FILE_STATUS:
		return read_special(r, letters[file], number, ret);
	default:
		scalar = find_scalar(r->scalar, r->n_scalar, name, number);
		*ret = scalar ? (uint32_t)scalar->value : 0;
		return scalar ? 0 : -ENXIO;
	}
}

/* ------------------------------------------------------------------ memory ------------------- */

static ssize_t fetch(struct look *k, const struct target_wave_memory *what)
{
	struct agent_err err = { 0 };
	uint32_t retry_ms, ms = readers_stop_begin(k->s, k->max_stop_ms, &retry_ms);
	ssize_t n;

	if (!ms)
		return -EBUSY;
	k->from.max_stop_ms = session_stop_begin(k->s, ms);
	n = k->t->ops->wave_memory(k->t, &k->from, what, k->arena, &err);
	session_stop_end(k->s);
	readers_stop_end(k->s, -1);
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
	default: return false;
	}
}

static const struct piece *find_piece(const struct look *k, enum values_space space, uint32_t lane,
				      uint64_t address)
{
	for (size_t i = 0; i < k->n_pieces; i++) {
		const struct piece *p = &k->pieces[i];

		if (p->space == space && p->lane == lane && address >= p->address &&
		    address - p->address < p->size)
			return p;
	}
	return NULL;
}

/* Fetch what lies around an address; less when that cannot be read. */
static const struct piece *fetch_piece(struct look *k, enum values_space space, enum rpc_memory_space name,
				       uint32_t lane, uint64_t address)
{
	uint64_t starts[] = { address & ~(uint64_t)(PIECE - 1), address };
	struct piece *p;

	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		struct target_wave_memory what = { .wave = &k->p->wave, .space = name, .lane = lane,
						   .address = starts[i], .size = PIECE };
		ssize_t n;

		/* Each try stops the queue, also one that reads nothing. */
		if (k->n_pieces == PIECES_MAX || k->n_fetches == FETCHES_MAX) {
			k->out_of_pieces = true;
			return NULL;
		}
		if (i && starts[1] == starts[0])
			return NULL;
		k->n_fetches++;
		p = &k->pieces[k->n_pieces];
		what.buf = p->data;
		n = fetch(k, &what);
		if (k->t->ended)
			return NULL;
		if (n <= 0 || (uint64_t)n <= address - starts[i])
			continue;
		p->space = space;
		p->lane = lane;
		p->address = starts[i];
		p->size = (uint32_t)n;
		k->n_pieces++;
		return p;
	}
	return NULL;
}

static int read_wave_memory(struct look *k, uint32_t lane, enum values_space space, uint64_t address,
			    uint8_t *to, size_t size)
{
	enum rpc_memory_space name;

	if (!space_to_rpc(space, &name) || !(k->t->ops->wave_spaces & TARGET_SPACE_BIT(name)))
		return -EOPNOTSUPP;
	if (space != VALUES_SPACE_PRIVATE && space != VALUES_SPACE_GENERIC)
		lane = 0;
	while (size) {
		const struct piece *p = find_piece(k, space, lane, address);
		size_t n;

		if (!p)
			p = fetch_piece(k, space, name, lane, address);
		if (!p)
			return -EFAULT;
		n = p->size - (size_t)(address - p->address);
		n = n < size ? n : size;
		memcpy(to, p->data + (address - p->address), n);
		to += n;
		address += n;
		size -= n;
	}
	return 0;
}

/* Global memory of a process is read without a stop. */
static int read_global(struct look *k, uint64_t address, void *ret, size_t size)
{
	struct agent_err err = { 0 };
	ssize_t n = -EFAULT;

	if (address >= GLOBAL_END || size > UINT32_MAX)
		return -EFAULT;
	if (k->t->ops->memory) {
		k->t->memory_no_stop = true;
		n = k->t->ops->memory(k->t, address, ret, (uint32_t)size, &err);
	}
	if (n < 0 && !k->t->ended)
		n = memory_read(&k->t->memory, address, ret, size);
	return n == (ssize_t)size ? 0 : -EFAULT;
}

static int read_memory(void *context, uint32_t lane, enum values_space space, uint64_t address,
		       void *ret, size_t size)
{
	struct look *k = context;

	if (k->t->ended)
		return -EPIPE;
	if (space == VALUES_SPACE_GLOBAL ||
	    (space == VALUES_SPACE_GENERIC &&
	     !(k->t->ops->wave_spaces & TARGET_SPACE_BIT(RPC_MEMORY_SPACE_GENERIC))))
		return read_global(k, address, ret, size);
	if (is_late(k))
		return -ETIMEDOUT;
	k->ran = true;
	return read_wave_memory(k, lane, space, address, ret, size);
}

/* What pointers lead to, as text. */
static int read_target(void *context, enum values_space space, uint64_t address, void *ret, size_t size)
{
	const struct look *k = context;

	return read_memory(context, k->lane, space, address, ret, size);
}

/* ------------------------------------------------------------------ values ------------------- */

static void fill_value(struct look *k, struct values_types *types, const struct values_bytes *b,
		       const uint8_t *data, const uint8_t *known, size_t size, struct values_type *type,
		       struct rpc_variable *to)
{
	struct values_data d = { .bytes = data, .known = known, .size = size, .lack = b->state };
	struct values_node node = { 0 };
	auto_out struct out text = { 0 };
	struct values_call call;

	values_call_init(&call, read_target, k);
	if (values_node_init(&node, NULL, type, &d, &call) == 0) {
		values_node_print(&node, &text);
		if (!out_error(&text))
			to->value = rpc_arena_strdup(k->arena, text.data ? text.data : "");
	}
	values_node_deinit(&node);
}

static void fill_variable(struct look *k, struct values_image *image, struct values_types *types,
			  const struct values_scope *s, const struct values_variable *v,
			  const struct values_frame *f, struct rpc_variable *to)
{
	auto_free struct values_place *place = calloc(1, sizeof(*place));
	struct values_type *type = values_type_of(types, (Dwarf_Die *)&v->die);
	uint64_t size = values_type_size(type);
	auto_free uint8_t *data = NULL, *known = NULL;
	auto_out struct out text = { .limit = TYPE_TEXT_MAX }, where = { 0 };
	struct values_bytes b;

	if (size > VALUE_MAX)
		size = VALUE_MAX;
	data = malloc(size + 1);
	known = malloc(size + 1);
	to->name = rpc_arena_strdup(k->arena, v->name ? v->name : "");
	to->scope = (enum rpc_variable_scope)v->kind;
	to->block = v->block;
	values_type_print(type, &text);
	to->type = rpc_arena_strdup(k->arena, text.data ? text.data : "");
	if (!place || !data || !known) {
		to->state = RPC_VALUE_STATE_UNAVAILABLE;
		to->reason = "memory ran out";
		return;
	}
	values_variable_find(image, s, v, f, place);
	values_place_read(place, f, size, data, known, &b);
	to->state = (enum rpc_value_state)b.state;
	to->reason = b.reason;
	to->has_address = b.has_address;
	to->address = b.address;
	k->unreadable |= b.has_address;
	values_place_print(place, f, &where);
	if (place->pieces[place->first].kind != VALUES_PIECE_HOLE || place->n > 1)
		to->location = rpc_arena_strdup(k->arena, where.data);
	if (b.state != VALUES_OK && b.state != VALUES_PARTIAL)
		return;
	fill_value(k, types, &b, data, known, size, type, to);
	if (!k->ret->active && b.state == VALUES_OK && v->kind != VALUES_STATIC)
		to->state = RPC_VALUE_STATE_INACTIVE;
}

static bool is_wanted(const struct rpc_wave_variables_params *p, enum values_kind kind)
{
	for (size_t i = 0; i < p->n_scopes; i++)
		if (p->scopes[i] == (enum rpc_variable_scope)kind)
			return true;
	return !p->has_scopes;
}

static int fill_variables(struct look *k, struct values_types *types, struct values_image *image,
			  const struct values_scope *s, const struct values_frame *f)
{
	struct rpc_variable *list = rpc_arena_array(k->arena, s->n + 1, sizeof(*list));

	if (!list)
		return -ENOMEM;
	k->ret->variables = list;
	for (size_t i = 0; i < s->n && !k->t->ended && !is_late(k); i++)
		if (is_wanted(k->p, s->items[i].kind))
			fill_variable(k, image, types, s, &s->items[i], f, &list[k->ret->n_variables++]);
	return 0;
}

/* ------------------------------------------------------------------ expressions -------------- */

/* What one expression is evaluated in. */
struct evaluation {
	struct look *k;
	const char *text;
	struct values_expression *parsed;
	struct values_error error;
	struct rpc_wave_evaluate_result *ret;
	struct values_image *image;
	struct values_types *types;
	const struct values_scope *scope; /* Empty without debug information. */
	const struct values_frame *frame;
	struct values_call call;
	bool done;
	bool invalid;	     /* The error says why. */
	bool read_failed;    /* The last read of memory, of this address. */
	bool inactive;	     /* Something is of a lane that does not execute. */
	uint64_t address;
	const char *reason;  /* Why a variable is not known. */
};

static int read_operand(void *context, enum values_space space, uint64_t address, void *ret, size_t size)
{
	struct evaluation *e = context;
	int r = read_memory(e->k, e->k->lane, space, address, ret, size);

	e->read_failed = r < 0;
	e->address = address;
	return r;
}

/* The one of the innermost block hides others of its name. */
static const struct values_variable *pick_variable(const struct values_scope *s, const char *name)
{
	const struct values_variable *found = NULL;

	for (size_t i = 0; i < s->n; i++) {
		const struct values_variable *v = &s->items[i];

		if (v->name && !strcmp(v->name, name) && (!found || v->block > found->block))
			found = v;
	}
	return found;
}

/* A variable that lies in memory as a whole is read when its value is needed. */
static bool is_in_memory(const struct values_place *place, uint64_t size)
{
	const struct values_piece *p = &place->pieces[place->first];

	return place->n == 1 && p->kind == VALUES_PIECE_MEMORY && p->offset % 8 == 0 &&
	       (p->bits == VALUES_REST || p->bits / 8 >= size);
}

static int read_variable(struct evaluation *e, const struct values_place *place, struct values_result *ret)
{
	const struct values_piece *p = &place->pieces[place->first];
	uint64_t size = values_type_size(ret->type);
	struct values_bytes b;

	if (is_in_memory(place, size)) {
		ret->has_address = true;
		ret->space = p->space;
		ret->address = p->number + p->offset / 8;
		return 0;
	}
	if (size > e->call.bytes_left)
		return -EDQUOT;
	e->call.bytes_left -= (uint32_t)size;
	ret->bytes = malloc(size + 1);
	ret->known = malloc(size + 1);
	ret->size = size;
	if (!ret->bytes || !ret->known) {
		values_result_deinit(ret);
		return -ENOMEM;
	}
	values_place_read(place, e->frame, size, ret->bytes, ret->known, &b);
	ret->lack = b.state;
	e->reason = b.reason;
	e->k->unreadable |= b.has_address;
	if (b.has_address) {
		e->ret->has_address = true;
		e->ret->address = b.address;
	}
	return 0;
}

static int find_variable(void *context, const char *name, struct values_result *ret)
{
	struct evaluation *e = context;
	const struct values_variable *v = pick_variable(e->scope, name);
	auto_free struct values_place *place = v ? calloc(1, sizeof(*place)) : NULL;
	auto_out struct out where = { 0 }, type = { 0 };

	if (!v)
		return -ENOENT;
	if (!place)
		return -ENOMEM;
	if (!e->call.reads_left)
		return -EDQUOT;
	e->call.reads_left--;
	e->inactive |= v->kind != VALUES_STATIC && !e->k->ret->active;
	ret->type = values_type_of(e->types, (Dwarf_Die *)&v->die);
	values_variable_find(e->image, e->scope, v, e->frame, place);
	if (!strcmp(name, e->text)) {
		values_type_print(ret->type, &type);
		e->ret->type = rpc_arena_strdup(e->k->arena, type.data ? type.data : "");
		values_place_print(place, e->frame, &where);
		if (place->pieces[place->first].kind != VALUES_PIECE_HOLE || place->n > 1)
			e->ret->location = rpc_arena_strdup(e->k->arena, where.data);
	}
	return read_variable(e, place, ret);
}

/* Parse the name of a register: v3, exec. */
static bool parse_register(const char *name, enum values_file *ret_file, uint32_t *ret_number)
{
	for (size_t file = 0; file < sizeof(letters) / sizeof(letters[0]); file++) {
		bool is_special = file >= VALUES_FILE_PC && file <= VALUES_FILE_STATUS;
		size_t n = strlen(letters[file]);
		unsigned long number = 0;
		char *end;

		if (strncmp(name, letters[file], n))
			continue;
		if (name[n] >= '0' && name[n] <= '9') {
			number = strtoul(name + n, &end, 10);
			if (is_special || *end || number > UINT16_MAX)
				continue;
		} else if (!is_special || name[n]) {
			continue;
		}
		*ret_file = (enum values_file)file;
		*ret_number = (uint32_t)number;
		return true;
	}
	return false;
}

static int find_register(void *context, const char *name, int64_t lane, struct values_result *ret)
{
	struct evaluation *e = context;
	struct values_frame f = *e->frame;
	enum values_file file;
	uint32_t number, words[2] = { 0 };
	bool is_wide, is_own;
	int r = 0;

	if (!parse_register(name, &file, &number) || lane >= (int64_t)f.machine->lanes)
		return -ENOENT;
	is_own = file == VALUES_FILE_VECTOR || file == VALUES_FILE_ACCUMULATION || file == VALUES_FILE_REGISTER ||
		 file == VALUES_FILE_PREDICATE;
	is_wide = file == VALUES_FILE_PC || file == VALUES_FILE_EXEC || file == VALUES_FILE_VCC;
	if (lane >= 0 && (!is_own || f.callee))
		return -ENOENT;
	if (lane >= 0)
		f.lane = (uint32_t)lane;
	if (file == VALUES_FILE_PC) {
		words[0] = (uint32_t)e->k->ret->pc;
		words[1] = (uint32_t)(e->k->ret->pc >> 32);
	} else {
		for (uint32_t i = 0; r == 0 && i < 1u + is_wide; i++)
			r = values_frame_register(&f, file, number + i, &words[i]);
	}
	if (r < 0)
		return r == -ENXIO ? -ENOENT : r;
	e->inactive |= is_own && !(e->k->registers.wave.exec >> f.lane & 1);
	ret->type = values_type_named(e->types, is_wide ? "unsigned long" : "unsigned int");
	ret->size = is_wide ? 8 : 4;
	ret->bytes = malloc(ret->size);
	if (!ret->bytes)
		return -ENOMEM;
	memcpy(ret->bytes, words, ret->size);
	return 0;
}

/* How much of a result is known. */
static enum values_state state_of(const struct evaluation *e, const struct values_result *v)
{
	size_t n = 0;

	for (size_t i = 0; v->known && i < v->size; i++)
		n += v->known[i] != 0;
	if (v->bytes && (!v->known || n == v->size) && (v->size || v->lack == VALUES_OK))
		return e->inactive ? VALUES_INACTIVE : VALUES_OK;
	if (n)
		return VALUES_PARTIAL;
	return v->lack == VALUES_OK || v->lack == VALUES_PARTIAL ? VALUES_UNAVAILABLE : v->lack;
}

static int fill_result(struct evaluation *e, const struct values_result *v)
{
	struct rpc_wave_evaluate_result *ret = e->ret;
	struct rpc_arena *a = e->k->arena;
	auto_out struct out type = { 0 }, text = { 0 };
	struct values_node node = { 0 };
	enum values_state state = state_of(e, v);

	values_type_print(v->type, &type);
	ret->type = rpc_arena_strdup(a, type.data ? type.data : "");
	ret->state = (enum rpc_value_state)state;
	ret->reason = state == VALUES_OK || state == VALUES_INACTIVE ? NULL : e->reason;
	if (v->has_address && !ret->location)
		ret->location = rpc_arena_printf(a, "%s 0x%llx", values_space_name(v->space),
						 (unsigned long long)v->address);
	if (state == VALUES_OK || state == VALUES_INACTIVE || state == VALUES_PARTIAL) {
		if (values_result_node(e->parsed, v, &e->call, &node) < 0)
			return -ENOMEM;
		values_node_print(&node, &text);
		values_node_deinit(&node);
		ret->value = rpc_arena_strdup(a, text.data ? text.data : "");
	}
	if (e->call.cut)
		miss(e->k, "value: it leads to more memory than one request reads");
	return 0;
}

/* Memory that cannot be read is no fault of the expression. */
static void fill_unreadable(struct evaluation *e)
{
	e->ret->state = RPC_VALUE_STATE_UNREADABLE;
	e->ret->reason = rpc_arena_strdup(e->k->arena, e->error.text);
	e->ret->has_address = true;
	e->ret->address = e->address;
	e->k->unreadable = true;
}

static int evaluate(struct evaluation *e)
{
	const struct values_names names = { .context = e, .variable = find_variable, .reg = find_register };
	struct values_result v = { 0 };
	int r;

	e->done = true;
	values_call_init(&e->call, read_operand, e);
	r = values_expression_evaluate(e->parsed, e->types, &names, &e->call, &v, &e->error);
	if (r == 0) {
		r = fill_result(e, &v);
	} else if (r == -EINVAL && e->read_failed) {
		fill_unreadable(e);
		r = 0;
	} else if (r == -EINVAL) {
		e->invalid = true;
		r = 0;
	}
	values_result_deinit(&v);
	return r;
}

/* Do what was asked for in the frame. */
static int use_frame(struct look *k, struct symbols_image *symbols, struct values_image *image,
		     const struct values_scope *s, const struct values_frame *f)
{
	struct evaluation *e = k->evaluation;
	struct values_types *types;
	int r = values_types_create(symbols ? symbols_image_debug_info(symbols) : NULL, &types);

	if (r < 0)
		return r;
	if (e) {
		e->types = types;
		e->image = image;
		e->scope = s;
		e->frame = f;
		r = evaluate(e);
	} else {
		r = fill_variables(k, types, image, s, f);
	}
	if (s->cut || values_types_is_cut(types))
		miss(k, "variables: there are more, or parts of their types, than are looked at");
	values_types_destroy(types);
	return r;
}

/* ------------------------------------------------------------------ frames ------------------- */

/* The walk from the innermost frame to the wanted one. */
struct walk {
	struct look *k;
	struct values_machine machine;
	struct code_set *code;
	struct values_frame *frames; /* DEPTH_MAX of them, by calls. */
	uint32_t left;		     /* Levels that are still to be passed. */
};

static uint64_t address_of(const struct look *k, uint32_t call)
{
	const struct rpc_wave_registers *r = &k->registers;

	if (call)
		return r->callers[call - 1].address;
	for (size_t i = 0; i < r->n_work_items; i++)
		if (r->work_items[i].lane == k->lane && r->work_items[i].has_pc)
			return r->work_items[i].pc;
	return r->wave.pc;
}

/* @return 1 when the wanted level was found there, 0 when it is further out, negative at the end. */
static int enter_frame(struct walk *w, uint32_t call)
{
	struct look *k = w->k;
	struct values_frame *f = &w->frames[call];
	uint64_t address = address_of(k, call), lookup = address - !!call;
	struct code_object *o = code_find(w->code, lookup);
	struct values_image *image;
	struct values_scope s;
	int r = -ENOENT;

	if (!o || code_open(w->code, o) < 0 || values_image_create(w->code->image, &image) < 0)
		return -ENOENT;
	*f = (struct values_frame){ .machine = &w->machine, .lane = k->lane, .pc = address - o->bias,
				    .load_bias = o->bias, .callee = call ? &w->frames[call - 1] : NULL };
	for (uint32_t inlined = 0;; inlined++, w->left--) {
		r = values_scope_find(image, values_frame_lookup(f), inlined, &s);
		if (r < 0)
			break;
		if (!inlined)
			values_image_enter(image, &s, f);
		if (!w->left) {
			k->ret->pc = address;
			k->ret->function = s.function ? rpc_arena_strdup(k->arena, s.function) : NULL;
			r = use_frame(k, w->code->image, image, &s, f);
			r = r < 0 ? r : 1;
			values_scope_deinit(&s);
			break;
		}
		values_scope_deinit(&s);
	}
	values_scope_deinit(&s);
	/* Names of the frame lie in the image. */
	f->registers = NULL;
	f->function = NULL;
	values_image_destroy(image);
	return r == -ENOENT && f->is_cuda ? 0 : r;
}

static void machine_init(struct values_machine *m, struct look *k)
{
	for (size_t i = 0; i < k->from.n_devices; i++)
		if (k->from.devices[i].rpc.gpu_id == k->registers.wave.gpu_id &&
		    k->from.devices[i].rpc.has_gfx_target_version)
			m->stack_counts_waves =
				values_stack_counts_waves(k->from.devices[i].rpc.gfx_target_version);
	m->context = k;
	m->read_register = read_register;
	m->read_memory = read_memory;
	m->lanes = k->registers.wave.width;
}

static int find_frame(struct look *k, struct code_set *code)
{
	auto_free struct values_frame *frames = calloc(DEPTH_MAX, sizeof(*frames));
	struct walk w = { .k = k, .code = code, .frames = frames, .left = k->p->frame };
	uint32_t calls = 0;
	int r = 0;

	if (!frames)
		return -ENOMEM;
	machine_init(&w.machine, k);
	for (calls = 0; r == 0; calls++) {
		if (calls > k->registers.n_callers || calls == DEPTH_MAX)
			return -ENOENT;
		r = enter_frame(&w, calls);
	}
	return r < 0 ? r : 0;
}

/* ------------------------------------------------------------------ the request -------------- */

/* The lane that callers are told of: the first with an exception, else the first active one. */
static uint32_t speaker(const struct rpc_wave_registers *r)
{
	for (size_t i = 0; i < r->n_work_items; i++)
		if (r->work_items[i].exception)
			return r->work_items[i].lane;
	return r->wave.exec ? (uint32_t)__builtin_ctzll(r->wave.exec) : 0;
}

static int copy_registers(struct look *k, struct agent_err *err)
{
	const struct target_registers_wanted what = {
		.wave = &k->p->wave, .banks = UINT32_MAX, .count = UINT32_MAX, .work_items = true,
	};
	uint32_t retry_ms, ms = readers_stop_begin(k->s, k->max_stop_ms, &retry_ms);
	int r;

	if (!ms)
		return readers_refuse(retry_ms, err);
	k->from.max_stop_ms = session_stop_begin(k->s, ms);
	r = k->t->ops->registers(k->t, &k->from, &what, k->arena, &k->registers, &k->ret->stopped_us, err);
	session_stop_end(k->s);
	readers_stop_end(k->s, (int64_t)k->ret->stopped_us);
	session_note_stop(k->s, k->ret->stopped_us);
	return r;
}

static int choose_lane(struct look *k, struct agent_err *err)
{
	k->lane = k->p->has_lane ? k->p->lane : speaker(&k->registers);
	if (k->lane >= k->registers.wave.width)
		return agent_err_set(err, RPC_ERROR_INVALID_PARAMS, EINVAL, NULL, NULL,
				     "params.lane: the wave has only %u lanes", k->registers.wave.width);
	if (k->lane != speaker(&k->registers))
		k->registers.n_callers = 0;
	k->ret->lane = k->lane;
	k->ret->active = k->registers.wave.exec >> k->lane & 1;
	return 0;
}

static int look_up(struct look *k, struct agent_err *err)
{
	struct code_set code = { 0 };
	int r = code_set_init(&code, k->t, k->arena, HANDLERS_LOOK_UP_MS);

	if (r == 0)
		r = find_frame(k, &code);
	code_set_deinit(&code);
	if (r == -ENOENT && k->p->frame)
		return agent_err_set(err, RPC_ERROR_INVALID_PARAMS, ENOENT, NULL, NULL,
				     "params.frame: nothing is known of that many frames of this lane");
	if (r == -ENOENT)
		miss(k, "variables: there is no debug information that names those of this code");
	else if (r < 0)
		return agent_err_no_memory(err, NULL);
	return 0;
}

static void tell_missing(struct look *k)
{
	bool stands = k->t->origin || k->from.queues[0].suspended ||
		      k->registers.wave.state != RPC_WAVE_STATE_RUNNING;

	if (k->ran && !stands)
		miss(k, "memory: it was read after the registers, and the queue ran in between; "
			"suspend it for values of one moment");
	if (k->unreadable)
		miss(k, "memory: that of some variables could not be read");
	if (k->out_of_time)
		miss(k, "variables: looking at them takes too long, and some were not read");
	if (k->out_of_pieces)
		miss(k, "memory: more of the wave's was asked for than one request reads");
	for (size_t i = 0; i < k->registers.n_missing; i++)
		miss(k, k->registers.missing[i]);
	k->ret->complete = !k->ret->n_missing;
}

static int answer(struct look *k, struct agent_err *err)
{
	int r;

	if (!k->t->ops->registers || !k->t->ops->wave_memory)
		return agent_err_set(err, RPC_ERROR_UNSUPPORTED, EOPNOTSUPP, NULL, NULL,
				     "devices of this vendor do not show registers");
	k->deadline_ns = clock_deadline_ms(LOOK_MS);
	k->pieces = calloc(PIECES_MAX, sizeof(*k->pieces));
	if (!k->pieces)
		return agent_err_no_memory(err, NULL);
	k->arena->limit = REPLY_MAX;
	r = handlers_find_queue(k->t, k->arena, &k->p->wave, &k->from, err);
	if (r == 0)
		r = copy_registers(k, err);
	if (r == 0)
		r = choose_lane(k, err);
	if (r == 0)
		r = look_up(k, err);
	if (r == 0 && !k->ret->n_variables && !k->ret->pc)
		k->ret->pc = address_of(k, 0);
	return r;
}

int handlers_wave_variables(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
			    const struct rpc_wave_variables_params *params,
			    struct rpc_wave_variables_result *ret, struct agent_err *err)
{
	struct session *s = ctx;
	struct look k = { .s = s, .t = s->target, .arena = arena, .p = params, .ret = ret,
			  .max_stop_ms = params->has_max_stop_ms ? params->max_stop_ms : HANDLERS_STOP_MS };
	int r = answer(&k, err);

	free(k.pieces);
	if (r < 0)
		return r;
	tell_missing(&k);
	return rpc_arena_error(arena) ? agent_err_no_memory(err, NULL) : 0;
}

static int refuse_expression(const struct evaluation *e, bool no_names, struct agent_err *err)
{
	return agent_err_set(err, RPC_ERROR_INVALID_PARAMS, EINVAL, NULL, NULL,
			     "params.expression: column %u: %s%s", e->error.column, e->error.text,
			     no_names ? " (there is no debug information that names variables of this code)" : "");
}

/* Numbers, registers and addresses mean something where no debug information is, too. */
static int evaluate_without_names(struct look *k, struct agent_err *err)
{
	const struct values_scope none = { 0 };
	struct values_machine machine = { 0 };
	struct values_frame f = { .machine = &machine, .lane = k->lane };

	machine_init(&machine, k);
	return use_frame(k, NULL, NULL, &none, &f) < 0 ? agent_err_no_memory(err, NULL) : 0;
}

static int evaluate_for(struct look *k, struct agent_err *err)
{
	struct evaluation *e = k->evaluation;
	bool no_names = false;
	int r = answer(k, err);

	if (r == 0 && !e->done) {
		no_names = true;
		r = evaluate_without_names(k, err);
	}
	return r == 0 && e->invalid ? refuse_expression(e, no_names, err) : r;
}

int handlers_wave_evaluate(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
			   const struct rpc_wave_evaluate_params *params,
			   struct rpc_wave_evaluate_result *ret, struct agent_err *err)
{
	struct session *s = ctx;
	const struct rpc_wave_variables_params p = { .wave = params->wave, .has_lane = params->has_lane,
						     .lane = params->lane, .has_frame = params->has_frame,
						     .frame = params->frame };
	struct rpc_wave_variables_result found = { 0 };
	struct evaluation e = { .text = params->expression, .ret = ret };
	struct look k = { .s = s, .t = s->target, .arena = arena, .p = &p, .ret = &found, .evaluation = &e,
			  .max_stop_ms = params->has_max_stop_ms ? params->max_stop_ms : HANDLERS_STOP_MS };
	int r = values_expression_parse(params->expression, &e.parsed, &e.error);

	e.k = &k;
	ret->type = "";
	if (r == -EINVAL)
		return refuse_expression(&e, false, err);
	if (r < 0)
		return agent_err_no_memory(err, NULL);
	r = evaluate_for(&k, err);
	values_expression_destroy(e.parsed);
	free(k.pieces);
	if (r < 0)
		return r;
	tell_missing(&k);
	ret->lane = found.lane;
	ret->active = found.active;
	ret->pc = found.pc;
	ret->function = found.function;
	ret->complete = found.complete;
	ret->missing = found.missing;
	ret->n_missing = found.n_missing;
	ret->stopped_us = found.stopped_us;
	return rpc_arena_error(arena) ? agent_err_no_memory(err, NULL) : 0;
}
