/* SPDX-License-Identifier: MIT */
#include "symbols/image.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "symbols/demangle.h"
#include "symbols/debug_info.h"
#include "symbols/code_elf.h"
#include "symbols/location.h"

/* Zero bytes behind the copy, at which a string without end stops. */
#define PADDING 64

#define SYMBOLS_MAX    (1u << 20)
#define NT_AMDGPU_METADATA 32
#define STO_CUDA_ENTRY	   0x10 /* A bit of st_other. */

static const char descriptor_suffix[] = ".kd";

struct symbol {
	uint64_t address, size;
	const char *name; /**< Points into the copy. */
	bool is_entry;	  /**< In a cubin: it is a kernel, not a device function. */
};

struct symbol_list {
	struct symbol *items;
	size_t n;
};

struct symbols_image {
	uint8_t *bytes;
	size_t size;
	struct elf_view elf;
	struct symbols_image_facts facts;
	struct symbol_list functions, descriptors; /**< Sorted by address. */
	/** The note of the compiler; NULL if there is none. */
	const uint8_t *metadata;
	size_t metadata_size;
	struct debug_info *debug_info;
	bool tried_debug_info;
	int debug_error; /**< Why there is no debug_info. */
	/** What was made of it by others, who read what is above. */
	void *kept;
	size_t kept_bytes;
	void (*destroy_kept)(void *kept);
};

static bool is_descriptor_name(const char *name)
{
	size_t n = strlen(name), suffix = sizeof(descriptor_suffix) - 1;

	return n > suffix && !strcmp(name + n - suffix, descriptor_suffix);
}

static int compare_symbols(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	if (x->size != y->size)
		return x->size < y->size ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

static void sort_symbols(struct symbol_list *l)
{
	if (l->n)
		qsort(l->items, l->n, sizeof(*l->items), compare_symbols);
}

static bool find_table(const struct elf_view *v, uint32_t type, Elf64_Shdr *ret)
{
	for (size_t i = 1; i < v->n_sections; i++) {
		Elf64_Shdr s = elf_view_section(v, i);

		if (s.sh_type == type && s.sh_entsize == sizeof(Elf64_Sym) &&
		    s.sh_link < v->n_sections && code_elf_section_data(v, &s)) {
			*ret = s;
			return true;
		}
	}
	return false;
}

/* Add a symbol to the functions or to the descriptors, or to neither when it is of no interest. */
static void sort_in(struct symbols_image *i, const Elf64_Sym *sym, const char *name)
{
	struct symbol s = { sym->st_value, sym->st_size, name, sym->st_other & STO_CUDA_ENTRY };
	unsigned type = ELF64_ST_TYPE(sym->st_info);

	if (sym->st_shndx == SHN_UNDEF || !name || !*name)
		return;
	if (type == STT_FUNC)
		i->functions.items[i->functions.n++] = s;
	else if (type == STT_OBJECT && is_descriptor_name(name))
		i->descriptors.items[i->descriptors.n++] = s;
}

static int load_symbols(struct symbols_image *i)
{
	Elf64_Shdr table, strings;
	const uint8_t *data;
	size_t n;

	if (!find_table(&i->elf, SHT_SYMTAB, &table) && !find_table(&i->elf, SHT_DYNSYM, &table))
		return 0;
	strings = elf_view_section(&i->elf, table.sh_link);
	data = code_elf_section_data(&i->elf, &table);
	n = (size_t)table.sh_size / sizeof(Elf64_Sym);
	if (n > SYMBOLS_MAX)
		n = SYMBOLS_MAX;
	i->functions.items = calloc(n + 1, sizeof(struct symbol));
	i->descriptors.items = calloc(n + 1, sizeof(struct symbol));
	if (!i->functions.items || !i->descriptors.items)
		return -ENOMEM;
	for (size_t k = 0; k < n; k++) {
		Elf64_Sym sym;

		memcpy(&sym, data + k * sizeof(sym), sizeof(sym));
		sort_in(i, &sym, elf_view_string(&i->elf, &strings, sym.st_name));
	}
	sort_symbols(&i->functions);
	sort_symbols(&i->descriptors);
	i->facts.n_symbols = i->functions.n + i->descriptors.n;
	return 0;
}

static void load_facts(struct symbols_image *i)
{
	const Elf64_Ehdr *h = &i->elf.header;
	struct symbols_image_facts *f = &i->facts;
	const uint8_t *id;
	size_t n;

	f->machine = h->e_machine;
	f->osabi = h->e_ident[EI_OSABI];
	f->abi_version = h->e_ident[EI_ABIVERSION];
	f->flags = h->e_flags;
	f->has_dwarf = debug_info_is_present(&i->elf);
	id = code_elf_note(&i->elf, "GNU", NT_GNU_BUILD_ID, &n);
	if (id && n <= sizeof(f->build_id)) {
		memcpy(f->build_id, id, n);
		f->build_id_size = n;
	}
	i->metadata = code_elf_note(&i->elf, "AMDGPU", NT_AMDGPU_METADATA, &i->metadata_size);
}

/* Take a broken section table away, so that libelf does not see it. */
static void hide_sections(struct symbols_image *i)
{
	Elf64_Ehdr *h = &i->elf.header;

	h->e_shoff = 0;
	h->e_shnum = 0;
	h->e_shstrndx = 0;
	memcpy(i->bytes, h, sizeof(*h));
	i->elf.n_sections = 0;
}

static int load(struct symbols_image *i, const void *bytes, size_t size)
{
	int r;

	i->bytes = malloc(size + PADDING);
	if (!i->bytes)
		return -ENOMEM;
	memcpy(i->bytes, bytes, size);
	memset(i->bytes + size, 0, PADDING);
	i->size = size;
	r = code_elf_init(&i->elf, i->bytes, size);
	if (r < 0)
		return r;
	if (!code_elf_sections_are_sane(&i->elf))
		hide_sections(i);
	load_facts(i);
	return load_symbols(i);
}

int symbols_image_create(const void *bytes, size_t size, struct symbols_image **ret)
{
	struct symbols_image *i;
	int r;

	if (size > SYMBOLS_IMAGE_BYTES_MAX)
		return -EFBIG;
	i = calloc(1, sizeof(*i));
	if (!i)
		return -ENOMEM;
	r = load(i, bytes, size);
	if (r < 0) {
		symbols_image_destroy(i);
		return r;
	}
	*ret = i;
	return 0;
}

void symbols_image_destroy(struct symbols_image *i)
{
	if (!i)
		return;
	if (i->kept)
		i->destroy_kept(i->kept);
	debug_info_destroy(i->debug_info);
	free(i->functions.items);
	free(i->descriptors.items);
	free(i->bytes);
	free(i);
}

const struct symbols_image_facts *symbols_image_facts(const struct symbols_image *i)
{
	return &i->facts;
}

size_t symbols_image_bytes(const struct symbols_image *i)
{
	return sizeof(*i) + i->size + i->facts.n_symbols * sizeof(struct symbol) +
	       debug_info_bytes(i->debug_info) + i->kept_bytes;
}

/*
 * Find the next code section of a cubin that was loaded: its sections have the addresses, its
 * segments those of the file.
 */
static bool next_code(const struct symbols_image *i, size_t *section, uint64_t *ret_start,
		      uint64_t *ret_end)
{
	while (++*section < i->elf.n_sections) {
		Elf64_Shdr s = elf_view_section(&i->elf, *section);

		if (s.sh_type != SHT_PROGBITS || !(s.sh_flags & SHF_EXECINSTR) || !s.sh_addr ||
		    __builtin_add_overflow(s.sh_addr, s.sh_size, ret_end))
			continue;
		*ret_start = s.sh_addr;
		return true;
	}
	return false;
}

static bool cubin_contains(const struct symbols_image *i, uint64_t address)
{
	uint64_t start, end;

	for (size_t k = 0; next_code(i, &k, &start, &end);)
		if (address >= start && address < end)
			return true;
	return false;
}

static void cubin_range(const struct symbols_image *i, uint64_t *ret_start, uint64_t *ret_end)
{
	uint64_t start, end;

	*ret_start = *ret_end = 0;
	for (size_t k = 0; next_code(i, &k, &start, &end);) {
		if (!*ret_end || start < *ret_start)
			*ret_start = start;
		if (end > *ret_end)
			*ret_end = end;
	}
}

void symbols_image_range(const struct symbols_image *i, uint64_t *ret_start, uint64_t *ret_end)
{
	uint64_t start = UINT64_MAX, end = 0;

	if (i->facts.machine == EM_CUDA) {
		cubin_range(i, ret_start, ret_end);
		return;
	}
	for (size_t k = 0; k < i->elf.n_segments; k++) {
		Elf64_Phdr p = elf_view_segment(&i->elf, k);
		uint64_t stop;

		if (p.p_type != PT_LOAD || __builtin_add_overflow(p.p_vaddr, p.p_memsz, &stop))
			continue;
		if (p.p_vaddr < start)
			start = p.p_vaddr;
		if (stop > end)
			end = stop;
	}
	*ret_start = end ? start : 0;
	*ret_end = end;
}

/* @return the number of symbols at or below the address. */
static size_t upper_bound(const struct symbol_list *l, uint64_t address)
{
	size_t low = 0, high = l->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (l->items[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/*
 * Find the function around an address.  Symbols may nest, so some before the nearest are tried; one
 * without a size reaches up to the next.
 */
static const struct symbol *find_function(const struct symbols_image *i, uint64_t address)
{
	size_t n = upper_bound(&i->functions, address);

	for (unsigned tries = 0; n && tries < 16; tries++) {
		const struct symbol *s = &i->functions.items[--n];

		if (address - s->address < s->size || (!s->size && !tries))
			return s;
	}
	return NULL;
}

/* Find a kernel of a cubin.  It has no descriptor, and is named by its own address. */
static const struct symbol *find_entry(const struct symbols_image *i, uint64_t address)
{
	const struct symbol *s = find_function(i, address);

	return s && s->is_entry && s->address == address ? s : NULL;
}

static const struct symbol *find_descriptor(const struct symbols_image *i, uint64_t address)
{
	size_t n = upper_bound(&i->descriptors, address);

	return n && i->descriptors.items[n - 1].address == address ? &i->descriptors.items[n - 1] :
								      NULL;
}

static void export_symbol(const struct symbol *s, struct symbols_symbol *ret)
{
	char name[SYMBOLS_MANGLED_MAX + sizeof(descriptor_suffix)];

	ret->address = s->address;
	ret->size = s->size;
	str_copy(ret->raw, sizeof(ret->raw), s->name);
	str_copy(name, sizeof(name), s->name);
	if (is_descriptor_name(name))
		name[strlen(name) - (sizeof(descriptor_suffix) - 1)] = '\0';
	(void)symbols_demangle(name, ret->name, sizeof(ret->name));
}

int symbols_image_function(const struct symbols_image *i, uint64_t address,
			   struct symbols_symbol *ret)
{
	const struct symbol *s = find_function(i, address);

	if (!s)
		return -ENOENT;
	export_symbol(s, ret);
	return 0;
}

int symbols_image_kernel(const struct symbols_image *i, uint64_t descriptor,
			 struct symbols_symbol *ret)
{
	const struct symbol *s = i->facts.machine == EM_CUDA ? find_entry(i, descriptor) :
								    find_descriptor(i, descriptor);

	if (!s)
		return -ENOENT;
	export_symbol(s, ret);
	return 0;
}

int symbols_image_kernel_of(const struct symbols_image *i, const char *function,
			    struct symbols_symbol *ret)
{
	size_t length = strlen(function);

	for (size_t k = 0; i->facts.machine == EM_CUDA && k < i->functions.n; k++) {
		const struct symbol *s = &i->functions.items[k];

		if (s->is_entry && !strcmp(s->name, function)) {
			export_symbol(s, ret);
			return 0;
		}
	}
	for (size_t k = 0; k < i->descriptors.n; k++) {
		const struct symbol *s = &i->descriptors.items[k];

		if (!strncmp(s->name, function, length) &&
		    !strcmp(s->name + length, descriptor_suffix)) {
			export_symbol(s, ret);
			return 0;
		}
	}
	return -ENOENT;
}

int symbols_image_metadata(const struct symbols_image *i, uint64_t descriptor,
			   struct symbols_kernel *ret)
{
	const struct symbol *s = find_descriptor(i, descriptor);

	if (!s || !i->metadata)
		return -ENOENT;
	return symbols_metadata_find(i->metadata, i->metadata_size, s->name, ret);
}

struct debug_info *symbols_image_debug_info(struct symbols_image *i)
{
	if (!i->tried_debug_info && i->facts.has_dwarf)
		i->debug_error = debug_info_create(&i->elf, i->bytes, &i->debug_info);
	i->tried_debug_info = true;
	return i->debug_info;
}

int symbols_image_each_nv_info(const struct symbols_image *i,
			       int (*visit)(void *arg, uint64_t kernel, const void *info, size_t size),
			       void *arg)
{
	static const char prefix[] = ".nv.info.";

	for (size_t k = 1; i->facts.machine == EM_CUDA && k < i->elf.n_sections; k++) {
		Elf64_Shdr s = elf_view_section(&i->elf, k), text;
		const uint8_t *data = code_elf_section_data(&i->elf, &s);
		int r;

		/* Which code it is about is in sh_info; the name only tells it from other sections. */
		if (!data || s.sh_info >= i->elf.n_sections ||
		    strncmp(elf_view_section_name(&i->elf, &s), prefix, sizeof(prefix) - 1))
			continue;
		text = elf_view_section(&i->elf, s.sh_info);
		if (text.sh_type != SHT_PROGBITS || !(text.sh_flags & SHF_EXECINSTR))
			continue;
		r = visit(arg, text.sh_addr, data, s.sh_size);
		if (r)
			return r;
	}
	return 0;
}

int symbols_image_each_function(const struct symbols_image *i,
				int (*visit)(void *arg, uint64_t address, uint64_t size, const char *raw),
				void *arg)
{
	for (size_t k = 0; k < i->functions.n; k++) {
		const struct symbol *s = &i->functions.items[k];
		int r = s->size ? visit(arg, s->address, s->size, s->name) : 0;

		if (r)
			return r;
	}
	return 0;
}

/* Find the code of a kernel: its descriptor bears the name of its function. */
static const struct symbol *find_code(const struct symbols_image *i, uint64_t kernel)
{
	const struct symbol *d;
	size_t length;

	if (i->facts.machine == EM_CUDA)
		return find_entry(i, kernel);
	d = find_descriptor(i, kernel);
	if (!d)
		return NULL;
	length = strlen(d->name) - (sizeof(descriptor_suffix) - 1);
	for (size_t k = 0; k < i->functions.n; k++)
		if (!strncmp(i->functions.items[k].name, d->name, length) &&
		    !i->functions.items[k].name[length])
			return &i->functions.items[k];
	return NULL;
}

int symbols_image_parameters(struct symbols_image *i, uint64_t kernel,
			     int (*visit)(void *arg, const struct symbols_parameter *p), void *arg)
{
	const struct symbol *code = find_code(i, kernel);
	struct debug_info *d = code ? symbols_image_debug_info(i) : NULL;

	return d ? debug_info_parameters(d, code->address, visit, arg) : -ENOENT;
}

const struct elf_view *symbols_image_elf(const struct symbols_image *i)
{
	return &i->elf;
}

void symbols_image_keep(struct symbols_image *i, void *made, size_t bytes, void (*destroy)(void *made))
{
	i->kept = made;
	i->kept_bytes = bytes;
	i->destroy_kept = destroy;
}

void *symbols_image_kept(const struct symbols_image *i)
{
	return i->kept;
}

void symbols_image_locate(struct symbols_image *i, uint64_t address, struct symbols_location *ret)
{
	const struct symbol *s = find_function(i, address);
	struct debug_info *d = symbols_image_debug_info(i);
	struct symbols_frame *outermost;

	location_init(ret);
	/*
	 * In a cubin as compiled all functions begin at 0, so no address can be told from another.
	 */
	if (i->facts.machine == EM_CUDA && !cubin_contains(i, address))
		return;
	if (d)
		debug_info_locate(d, address, ret);
	if (!s)
		return;
	ret->has_offset = true;
	ret->offset = address - s->address;
	outermost = ret->n_frames ? &ret->frames[ret->n_frames - 1] : location_add(ret);
	/*
	 * A chain that fills all frames may have more behind them, so its last frame need not be
	 * the symbol's.
	 */
	if (!outermost->raw && ret->n_frames < SYMBOLS_FRAMES_MAX)
		location_set_function(ret, outermost, s->name);
}

int symbols_image_source(struct symbols_image *i, uint64_t address, const char *file, const char **ret,
			 size_t *ret_size)
{
	struct debug_info *d = symbols_image_debug_info(i);

	return d ? debug_info_source(d, address, file, ret, ret_size) : -ENOENT;
}

bool symbols_image_has_lines(struct symbols_image *i)
{
	struct debug_info *d = symbols_image_debug_info(i);
	uint64_t start, end;

	symbols_image_range(i, &start, &end);
	return d && debug_info_has_lines(d, start, end);
}

int symbols_image_debug_state(const struct symbols_image *i)
{
	return i->debug_error ? i->debug_error : debug_info_state(i->debug_info);
}
