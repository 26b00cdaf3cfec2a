/* SPDX-License-Identifier: MIT */
#include "values/scope.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/elf_view.h"
#include "base/reader.h"
#include "base/vec.h"
#include "symbols/debug_info.h"
#include "values/constant_bank.h"
#include "values/location_list.h"

#define CHAIN_MAX     256u
#define CHILDREN_MAX  200000u /* DIEs that are passed for one address. */
#define VARIABLES_MAX 4096u
#define COMPARED_MAX  64u /* Variables that are compared for the price of a DIE. */
#define CLASS_CONSTANT 4u /* Of DW_AT_address_class, by NVIDIA's cudadebugger.h. */
/* DW_AT_address_class is standard; this is LLVM's, in two reviews. */
#define AT_LLVM_AUGMENTATION	 0x3e09
#define AT_LLVM_AUGMENTATION_NEW 0x3f09

struct values_image {
	struct debug_info *d;
	const struct elf_view *elf;
	struct register_map *registers;
	struct call_frame_table *frames;
	bool is_cuda;
	bool broken_registers; /* There is a register map, and it is not to be read. */
};

static const uint8_t *elf_section(const struct elf_view *v, const char *name, size_t *ret_size)
{
	for (size_t i = 1; i < v->n_sections; i++) {
		Elf64_Shdr s = elf_view_section(v, i);

		if (!strcmp(elf_view_section_name(v, &s), name))
			return elf_view_bytes(v, &s, ret_size);
	}
	return NULL;
}

static void destroy_image(void *image)
{
	struct values_image *i = image;

	register_map_destroy(i->registers);
	call_frame_destroy(i->frames);
	free(i);
}

/* @return 0, -ENOMEM. */
static int read_tables(struct values_image *i)
{
	const uint8_t *data;
	int r = 0;
	size_t n;

	data = elf_section(i->elf, ".nv_debug_info_reg_sass", &n);
	if (data)
		r = register_map_create(data, n, &i->registers);
	i->broken_registers = r < 0;
	data = debug_info_section(i->d, "frame", &n);
	if (data && r != -ENOMEM)
		r = call_frame_create(data, n, &i->frames);
	return r == -ENOMEM ? r : 0;
}

int values_image_open(struct symbols_image *image, struct values_image **ret)
{
	struct debug_info *d = symbols_image_debug_info(image);
	struct values_image *i = symbols_image_kept(image);

	*ret = i;
	if (i || !d)
		return i ? 0 : -ENOENT;
	i = calloc(1, sizeof(*i));
	if (!i)
		return -ENOMEM;
	i->d = d;
	i->elf = symbols_image_elf(image);
	i->is_cuda = debug_info_is_cuda(d);
	if (i->is_cuda && read_tables(i) < 0) {
		destroy_image(i);
		return -ENOMEM;
	}
	symbols_image_keep(image, i,
			   sizeof(*i) + register_map_bytes(i->registers) + call_frame_bytes(i->frames), destroy_image);
	*ret = i;
	return 0;
}

struct debug_info *values_image_debug_info(const struct values_image *i)
{
	return i->d;
}

/* ------------------------------------------------------------------ names -------------------- */

static bool follow(Dwarf_Die *die, unsigned attribute, Dwarf_Die *ret)
{
	Dwarf_Attribute a;

	return dwarf_attr_integrate(die, attribute, &a) && dwarf_formref_die(&a, ret);
}

static bool has(Dwarf_Die *die, unsigned attribute)
{
	Dwarf_Attribute a;

	return dwarf_attr_integrate(die, attribute, &a);
}

/* Bytes of an expression that is no list.  They must lie where libdw took them from. */
static bool read_block(struct values_image *i, Dwarf_Attribute *a, struct values_operations *ret)
{
	const uint8_t *info;
	Dwarf_Block b;
	size_t size;

	switch (dwarf_whatform(a)) {
	case DW_FORM_exprloc:
	case DW_FORM_block:
	case DW_FORM_block1:
	case DW_FORM_block2:
	case DW_FORM_block4:
		break;
	default:
		return false;
	}
	info = debug_info_section(i->d, "info", &size);
	if (!info || dwarf_formblock(a, &b) < 0 || b.data < info ||
	    (size_t)(b.data - info) > size || b.length > size - (size_t)(b.data - info))
		return false;
	*ret = (struct values_operations){ b.data, b.length };
	return true;
}

static uint64_t address_class(Dwarf_Die *die)
{
	Dwarf_Attribute a;
	Dwarf_Word v;

	return dwarf_attr_integrate(die, DW_AT_address_class, &a) && dwarf_formudata(&a, &v) == 0 ?
		       v :
		       0;
}

static enum values_kind kind_of(struct values_image *i, Dwarf_Die *die)
{
	struct values_operations x;
	Dwarf_Attribute a;
	bool shared;

	if (dwarf_tag(die) == DW_TAG_formal_parameter)
		return VALUES_ARGUMENT;
	if (dwarf_attr_integrate(die, DW_AT_location, &a) && read_block(i, &a, &x) &&
	    values_expression_is_static(x, address_class(die), &shared) && !shared)
		return VALUES_STATIC;
	return VALUES_LOCAL;
}

/* ------------------------------------------------------------------ scopes ------------------- */

struct finding {
	struct values_image *i;
	struct values_scope *s;
	uint32_t left; /* DIEs that may still be passed. */
};

static int add_variable(struct finding *g, Dwarf_Die *die, unsigned block)
{
	struct values_scope *s = g->s;
	struct values_variable v = { .die = *die, .block = block };
	Dwarf_Die origin;

	if (s->n == VARIABLES_MAX || !debug_info_is_small(die)) {
		s->cut = true;
		return 0;
	}
	if (has(die, DW_AT_declaration) && !has(die, DW_AT_location))
		return 0;
	v.name = debug_info_string(g->i->d, die, DW_AT_name);
	v.kind = kind_of(g->i, die);
	v.has_type = follow(die, DW_AT_type, &v.type);
	if (follow(die, DW_AT_abstract_origin, &origin))
		v.origin = dwarf_dieoffset(&origin);
	if (vec_reserve(&s->items, s->n, 1, &s->capacity, sizeof(v)) < 0)
		return -ENOMEM;
	s->items[s->n++] = v;
	return 0;
}

static bool is_variable(Dwarf_Die *die, bool arguments)
{
	int tag = dwarf_tag(die);

	return tag == DW_TAG_formal_parameter ? arguments : tag == DW_TAG_variable && !arguments;
}

/* Is an instance of this entry among those that were added from an index on? */
static bool is_known(const struct values_scope *s, size_t from, Dwarf_Die *die)
{
	Dwarf_Off offset = dwarf_dieoffset(die);

	for (size_t k = from; k < s->n; k++)
		if (s->items[k].origin == offset)
			return true;
	return false;
}

static int add_children(struct finding *g, Dwarf_Die *parent, unsigned block, bool arguments,
			bool absent_only, size_t from)
{
	struct debug_children c;
	Dwarf_Die die;
	int r = 0;

	debug_children_init(&c, g->i->d, parent, g->left);
	while (!r && debug_children_next(&c, &die)) {
		uint32_t price = absent_only ? (uint32_t)(g->s->n - from) / COMPARED_MAX : 0;

		if (!is_variable(&die, arguments))
			continue;
		c.steps -= price < c.steps ? price : c.steps;
		if (!absent_only || !is_known(g->s, from, &die))
			r = add_variable(g, &die, block);
	}
	g->left = c.steps;
	g->s->cut |= !c.steps;
	return r;
}

/* Add what is in a scope, and what was in it before the compiler optimised it. */
static int add_scope(struct finding *g, Dwarf_Off offset, unsigned block, bool arguments)
{
	size_t from = g->s->n;
	Dwarf_Die die, origin;
	Dwarf_Attribute a;
	int r;

	if (!debug_info_die(g->i->d, offset, &die))
		return 0;
	r = add_children(g, &die, block, arguments, false, from);
	if (!r && dwarf_attr(&die, DW_AT_abstract_origin, &a) && dwarf_formref_die(&a, &origin))
		r = add_children(g, &origin, block, arguments, true, from);
	return r;
}

/*
 * Pick the scopes of one level of the inline chain out of all, outermost first.
 * @return how many, from *ret_first on; 0 when there is no such level.
 */
static size_t pick_level(const struct debug_scope *chain, size_t n, unsigned inlined,
			 size_t *ret_first)
{
	size_t end = n, first = n;

	for (;; inlined--) {
		while (first && chain[--first].tag == DW_TAG_lexical_block)
			;
		if (first == end || chain[first].tag == DW_TAG_lexical_block)
			return 0;
		if (!inlined)
			break;
		end = first;
	}
	*ret_first = first;
	return end - first;
}

int values_scope_find(struct values_image *i, uint64_t lookup, unsigned inlined,
		      struct values_scope *ret)
{
	struct debug_scope chain[CHAIN_MAX];
	size_t n = debug_info_scopes(i->d, lookup, chain, CHAIN_MAX), first;
	struct finding g = { .i = i, .s = ret, .left = CHILDREN_MAX };
	int r;

	*ret = (struct values_scope){ 0 };
	if (!n || !debug_info_die(i->d, chain[0].die, &ret->subprogram))
		return -ENOENT;
	ret->function = debug_info_string(i->d, &ret->subprogram, DW_AT_MIPS_linkage_name);
	if (!ret->function)
		ret->function = debug_info_string(i->d, &ret->subprogram, DW_AT_linkage_name);
	if (!ret->function)
		ret->function = debug_info_string(i->d, &ret->subprogram, DW_AT_name);
	ret->low = ret->body = chain[0].low;
	ret->high = chain[0].high;
	if (!i->is_cuda)
		ret->body = debug_info_body(i->d, ret->low, ret->high);
	n = pick_level(chain, n, inlined, &first);
	if (!n)
		return -ENOENT;
	ret->die = chain[first].die;
	r = add_scope(&g, chain[first].die, 0, true);
	for (size_t k = n; k-- && !r;)
		r = add_scope(&g, chain[first + k].die, (unsigned)k, false);
	return r;
}

void values_scope_deinit(struct values_scope *s)
{
	free(s->items);
	*s = (struct values_scope){ 0 };
}

void values_image_enter(struct values_image *i, const struct values_scope *s,
			struct values_frame *f)
{
	f->is_cuda = i->is_cuda;
	f->registers = i->registers;
	f->broken_registers = i->broken_registers;
	f->function = s->function;
	f->function_start = s->low;
	if (i->is_cuda)
		values_frame_unwind(f, i->frames);
}

/* ------------------------------------------------------------------ places ------------------- */

/* What is said once for a unit. */
struct unit {
	Dwarf_Die die;
	Dwarf_Off start; /* Of its header. */
	const uint8_t *addresses;
	size_t n_addresses;
};

static uint64_t section_offset(Dwarf_Die *die, unsigned attribute, uint64_t otherwise)
{
	Dwarf_Attribute a;
	Dwarf_Word v;

	return dwarf_attr(die, attribute, &a) && dwarf_formudata(&a, &v) == 0 ? v : otherwise;
}

static bool find_unit(struct values_image *i, Dwarf_Die *die, struct unit *ret)
{
	uint8_t address_size, offset_size;
	uint64_t base;
	size_t size;

	if (!dwarf_diecu(die, &ret->die, &address_size, &offset_size) || address_size != 8)
		return false;
	ret->start = dwarf_dieoffset(die) - dwarf_cuoffset(die);
	ret->addresses = debug_info_section(i->d, "addr", &size);
	base = section_offset(&ret->die, DW_AT_addr_base, UINT64_MAX);
	if (!ret->addresses || base > size) {
		ret->addresses = NULL;
		ret->n_addresses = 0;
	} else {
		ret->addresses += base;
		ret->n_addresses = (size - base) / 8;
	}
	return true;
}

/* DW_OP_convert names integer types by their offset in the unit. */
struct type_finder {
	struct values_image *i;
	Dwarf_Off unit;
};

static int find_base_type(void *context, uint64_t offset, struct values_base_type *ret)
{
	const struct type_finder *t = context;
	Dwarf_Attribute a;
	Dwarf_Word encoding, size;
	Dwarf_Die die;

	if (offset > UINT32_MAX || !debug_info_die(t->i->d, t->unit + offset, &die) ||
	    dwarf_tag(&die) != DW_TAG_base_type || !dwarf_attr(&die, DW_AT_encoding, &a) ||
	    dwarf_formudata(&a, &encoding) < 0 || !dwarf_attr(&die, DW_AT_byte_size, &a) ||
	    dwarf_formudata(&a, &size) < 0 || !size || size > 8)
		return -ENOENT;
	ret->size = (uint32_t)size;
	ret->is_signed = encoding == DW_ATE_signed || encoding == DW_ATE_signed_char;
	if (!ret->is_signed && encoding != DW_ATE_unsigned && encoding != DW_ATE_unsigned_char &&
	    encoding != DW_ATE_boolean && encoding != DW_ATE_address && encoding != DW_ATE_UTF)
		return -ENOENT;
	return 0;
}

/* Where a list begins; DW_FORM_loclistx numbers it in the unit's table. */
static bool list_offset(struct values_image *i, struct location_list *l, const struct unit *u,
			Dwarf_Attribute *a)
{
	unsigned form = dwarf_whatform(a);
	struct reader r;
	uint64_t base, index;
	Dwarf_Die die = u->die;
	const uint8_t *info;
	size_t size;

	if (form != DW_FORM_loclistx) {
		Dwarf_Word v;

		if ((form != DW_FORM_sec_offset && form != DW_FORM_data4 && form != DW_FORM_data8) ||
		    dwarf_formudata(a, &v) < 0)
			return false;
		l->offset = v;
		return true;
	}
	base = section_offset(&die, DW_AT_loclists_base, UINT64_MAX);
	/* Its number: libdw's own call for it parses the expressions. */
	info = debug_info_section(i->d, "info", &size);
	if (!info || a->valp < info || (size_t)(a->valp - info) > size)
		return false;
	reader_init(&r, info, size);
	reader_seek(&r, (size_t)(a->valp - info));
	index = reader_uleb(&r);
	if (!l->section || reader_is_bad(&r) || base > l->size || index > (l->size - base) / 4)
		return false;
	reader_init(&r, l->section, l->size);
	reader_seek(&r, base + index * 4);
	l->offset = base + reader_u32(&r);
	return !reader_is_bad(&r);
}

static int find_in_list(struct values_image *i, const struct unit *u, Dwarf_Attribute *a,
			uint64_t lookup, struct values_operations *ret)
{
	Dwarf_Die die = u->die;
	struct location_list l = { .addresses = u->addresses, .n_addresses = u->n_addresses };
	Dwarf_Addr base;

	l.is_old = dwarf_whatform(a) != DW_FORM_loclistx;
	if (l.is_old) {
		Dwarf_Half version = 4;

		dwarf_cu_info(die.cu, &version, NULL, NULL, NULL, NULL, NULL, NULL);
		l.is_old = version < 5;
	}
	l.section = debug_info_section(i->d, l.is_old ? "loc" : "loclists", &l.size);
	/* In a cubin, relocations make entries whole addresses. */
	if (!i->is_cuda && dwarf_lowpc(&die, &base) == 0)
		l.base = base;
	if (!list_offset(i, &l, u, a))
		return -EBADMSG;
	return location_list_find(&l, lookup, ret);
}

/* A constant instead of a place. */
static bool find_constant(struct values_image *i, const struct values_variable *v, struct values_piece *p)
{
	Dwarf_Die die = v->die;
	struct values_operations x;
	Dwarf_Attribute a;
	Dwarf_Word u;
	Dwarf_Sword s;

	if (!dwarf_attr_integrate(&die, DW_AT_const_value, &a))
		return false;
	*p = (struct values_piece){ .kind = VALUES_PIECE_HOLE, .bits = VALUES_REST, .state = VALUES_UNAVAILABLE,
				    .reason = "its constant is of a form that is not known" };
	if (read_block(i, &a, &x)) {
		p->bytes = x.data;
		p->n_bytes = x.size;
	} else if (dwarf_whatform(&a) == DW_FORM_sdata && dwarf_formsdata(&a, &s) == 0) {
		p->number = (uint64_t)s;
		p->n_bytes = 8;
	} else if (dwarf_formudata(&a, &u) == 0) {
		p->number = u;
		p->n_bytes = 8;
	} else {
		return true;
	}
	p->kind = VALUES_PIECE_BYTES;
	return true;
}

static bool is_marked(struct unit *u)
{
	Dwarf_Attribute a;

	return dwarf_attr(&u->die, AT_LLVM_AUGMENTATION, &a) ||
	       dwarf_attr(&u->die, AT_LLVM_AUGMENTATION_NEW, &a);
}

static int find_expression(struct values_image *i, const struct unit *u, Dwarf_Die *die,
			   unsigned attribute, uint64_t lookup, struct values_operations *ret)
{
	Dwarf_Attribute a;

	if (!dwarf_attr_integrate(die, attribute, &a))
		return -ENODATA;
	return read_block(i, &a, ret) ? 0 : find_in_list(i, u, &a, lookup, ret);
}

static void set_hole(struct values_locator *l, enum values_state state, const char *reason)
{
	l->is_fixed = true;
	l->fixed = (struct values_piece){ .kind = VALUES_PIECE_HOLE, .bits = VALUES_REST, .state = state,
					  .reason = reason };
}

/* The symbol of a variable: the first name that there is of these. */
static const char *symbol_of(struct values_image *i, const struct values_variable *v)
{
	static const unsigned attributes[] = { DW_AT_MIPS_linkage_name, DW_AT_linkage_name, DW_AT_name };
	Dwarf_Die die = v->die;
	const char *name = NULL;

	for (size_t k = 0; !name && k < sizeof(attributes) / sizeof(attributes[0]); k++)
		name = debug_info_string(i->d, &die, attributes[k]);
	return name;
}

/* What debug information says of constant memory is no address. */
static void fix_constant(struct values_locator *l, const struct values_variable *v)
{
	const char *name = symbol_of(l->image, v);
	uint64_t address;

	if (!name || values_constant_find(l->image->elf, name, &address) < 0) {
		set_hole(l, VALUES_UNAVAILABLE, "no symbol, or more than one, tells where in constant memory it is");
		return;
	}
	l->is_fixed = true;
	l->fixed = (struct values_piece){ .kind = VALUES_PIECE_MEMORY, .bits = VALUES_REST, .number = address,
					  .space = VALUES_SPACE_CONSTANT };
}

/* Is it an address in constant memory (ptxConstStorage)? */
static bool is_constant(const struct values_locator *l)
{
	return l->image->is_cuda && l->address_class == CLASS_CONSTANT &&
	       l->operations.size == 1 + sizeof(uint64_t) && l->operations.data[0] == DW_OP_addr;
}

static void init_expression(struct values_locator *l, const struct values_variable *v, struct unit *u,
			    const struct values_frame *f)
{
	Dwarf_Die die = v->die, subprogram = l->scope->subprogram;

	l->unit = u->start;
	l->addresses = u->addresses;
	l->n_addresses = u->n_addresses;
	l->is_marked = is_marked(u);
	l->address_class = address_class(&die);
	if (is_constant(l))
		fix_constant(l, v);
	if (find_expression(l->image, u, &subprogram, DW_AT_frame_base, values_frame_lookup(f), &l->frame_base) < 0)
		l->frame_base = (struct values_operations){ NULL, 0 };
}

void values_locator_init(struct values_locator *l, struct values_image *i, const struct values_scope *s,
			 const struct values_variable *v, const struct values_frame *f)
{
	Dwarf_Die die = v->die;
	struct unit u;
	int r;

	*l = (struct values_locator){ .image = i, .scope = s };
	l->is_fixed = find_constant(i, v, &l->fixed);
	if (l->is_fixed)
		return;
	if (!find_unit(i, &die, &u)) {
		set_hole(l, VALUES_UNAVAILABLE, "its debug information is broken");
		return;
	}
	r = find_expression(i, &u, &die, DW_AT_location, values_frame_lookup(f), &l->operations);
	if (r == -ENODATA)
		set_hole(l, VALUES_OPTIMISED_OUT, NULL);
	else if (r == -ENOENT)
		set_hole(l, VALUES_UNAVAILABLE, "the compiler has it nowhere here");
	else if (r < 0)
		set_hole(l, VALUES_UNAVAILABLE, "its debug information is broken");
	else if (f->callee && !f->is_cuda)
		set_hole(l, VALUES_NOT_SAVED, "nothing tells where its caller's registers are");
	else
		init_expression(l, v, &u, f);
}

void values_locator_find(const struct values_locator *l, const struct values_frame *f, struct values_place *ret)
{
	struct type_finder types = { l->image, l->unit };
	const struct values_scene scene = {
		.frame = f,
		.frame_base = l->frame_base,
		.is_marked = l->is_marked,
		.address_class = l->address_class,
		.addresses = l->addresses,
		.n_addresses = l->n_addresses,
		.find_type = find_base_type,
		.context = &types,
	};

	ret->rows = ret->uses_frame = false;
	if (l->is_fixed) {
		ret->first = 0;
		ret->n = ret->used = 1;
		ret->pieces[0] = l->fixed;
		return;
	}
	values_evaluate(&scene, l->operations, ret);
	if (ret->uses_frame && f->pc < l->scope->body && !f->callee)
		values_place_set_hole(ret, VALUES_PROLOGUE, NULL);
}

void values_variable_find(struct values_image *i, const struct values_scope *s,
			  const struct values_variable *v, const struct values_frame *f,
			  struct values_place *ret)
{
	struct values_locator l;

	values_locator_init(&l, i, s, v, f);
	values_locator_find(&l, f, ret);
}
