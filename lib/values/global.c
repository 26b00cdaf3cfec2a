/* SPDX-License-Identifier: MIT */
#include "values/global.h"

#include <dwarf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "symbols/demangle.h"

#define DEPTH_MAX 16u	  /* Namespaces in namespaces. */
#define STEPS_MAX 200000u /* DIEs that are passed for one question. */
#define NAMES_MAX 2000u	  /* Names that are demangled for it. */

/* What is looked for, and the best that was found. */
struct search {
	struct debug_info *d;
	const char *name; /* Without namespaces that are around the function. */
	const char *last; /* Its last part. */
	char mangled[VALUES_GLOBAL_NAME_MAX + 24]; /* That, as it stands in a mangled name. */
	char around[VALUES_GLOBAL_NAME_MAX + 2]; /* Namespaces around the function, as "ns::in::"; or empty. */
	uint32_t left;	     /* DIEs that may still be passed. */
	uint32_t names_left; /* Names that may still be demangled. */
	bool found, several;
	size_t depth;	  /* So many bytes of @around lead to what was found. */
	bool is_external;
	struct values_variable variable;
};

/* ------------------------------------------------------------------ names -------------------- */

/* Namespaces without a name, as the demangler and nvcc write them. */
static bool is_nameless(const char *part, size_t n)
{
	static const char *const begins[] = { "(anonymous namespace)", "<unnamed>", "_INTERNAL_", "_GLOBAL__N_" };

	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
		if (n >= strlen(begins[i]) && !strncmp(part, begins[i], strlen(begins[i])))
			return true;
	return false;
}

/* Find the end of one part of a name: "::", or the end.  Angle brackets and parentheses are passed. */
static size_t part_length(const char *s)
{
	unsigned depth = 0;
	size_t n = 0;

	for (; s[n]; n++) {
		if (s[n] == '<' || s[n] == '(')
			depth++;
		else if ((s[n] == '>' || s[n] == ')') && depth)
			depth--;
		else if (!depth && s[n] == ':' && s[n + 1] == ':')
			break;
	}
	return n;
}

/* Copy a name part by part: nameless ones as "?", or not at all. */
static void copy_parts(const char *from, bool all, char *to, size_t size)
{
	size_t used = 0;

	to[0] = '\0';
	while (*from) {
		size_t n = part_length(from);
		bool nameless = is_nameless(from, n) || (n == 1 && *from == '?');

		if ((all || !nameless) && used + n + 3 < size)
			used += (size_t)snprintf(to + used, size - used, "%s%.*s", used ? "::" : "",
						 nameless ? 1 : (int)n, nameless ? "?" : from);
		from += n;
		from += *from ? 2 : 0;
	}
}

/* Where the parameters of a demangled function begin; spaces before it end what it returns. */
static char *find_parameters(char *s, char **ret_name)
{
	unsigned depth = 0;

	*ret_name = s;
	for (; *s; s++) {
		if (!depth && *s == '(' && strncmp(s, "(anonymous namespace)", 21))
			return s;
		if (*s == '<' || *s == '(')
			depth++;
		else if ((*s == '>' || *s == ')') && depth)
			depth--;
		else if (!depth && *s == ' ')
			*ret_name = s + 1;
	}
	return s;
}

/* The namespaces and classes around a function, out of its linkage name. */
static void find_around(const char *function, char *to, size_t size)
{
	char raw[VALUES_GLOBAL_NAME_MAX], *name, *last = NULL;

	to[0] = '\0';
	if (!function || !symbols_demangle(function, raw, sizeof(raw)))
		return;
	*find_parameters(raw, &name) = '\0';
	for (char *p = name; *p; p += *p ? 2 : 0) {
		p += part_length(p);
		last = *p ? p : last;
	}
	if (!last)
		return;
	*last = '\0';
	copy_parts(name, true, to, size - 2);
	str_copy(to + strlen(to), 3, "::");
}

/*
 * Does a whole name mean what is looked for?  It must be the name, behind none, some or all of the
 * namespaces around the function; the most of them count.
 */
static bool is_meant(const struct search *g, const char *full, size_t *ret_depth)
{
	char rest[VALUES_GLOBAL_NAME_MAX];
	bool found = false;
	size_t depth = 0, next;

	for (;; depth = next) {
		copy_parts(full + depth, false, rest, sizeof(rest));
		if (!strcmp(rest, g->name)) {
			*ret_depth = depth;
			found = true;
		}
		if (!g->around[depth])
			return found;
		next = depth + part_length(g->around + depth) + 2;
		if (strncmp(full, g->around, next))
			return found;
	}
}

/* ------------------------------------------------------------------ the walk ----------------- */

static bool has(Dwarf_Die *die, unsigned attribute)
{
	Dwarf_Attribute a;

	return dwarf_attr_integrate(die, attribute, &a);
}

/*
 * The name with all namespaces.  A mangled name has them: clang writes that as the linkage name, nvcc in
 * place of the name, beside a linkage name of its own making for a static variable.
 */
static bool full_name(struct search *g, Dwarf_Die *die, const char *path, char *to, size_t size)
{
	static const unsigned attributes[] = { DW_AT_name, DW_AT_linkage_name, DW_AT_MIPS_linkage_name };
	const char *plain = debug_info_string(g->d, die, DW_AT_name);
	char readable[VALUES_GLOBAL_NAME_MAX];

	for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++) {
		const char *name = debug_info_string(g->d, die, attributes[i]);

		/* Most names are not looked for, and demangling takes long. */
		if (!name || strncmp(name, "_Z", 2) || !strstr(name, g->mangled) || !g->names_left)
			continue;
		g->names_left--;
		if (!symbols_demangle(name, readable, sizeof(readable)))
			continue;
		copy_parts(readable, true, to, size);
		return true;
	}
	if (!plain || !strstr(plain, g->last))
		return false;
	snprintf(to, size, "%s%s%s", path, *path ? "::" : "", plain);
	return true;
}

/* Which of two is told: that of the inner namespace, then one that all units share. */
static void offer(struct search *g, Dwarf_Die *die, size_t depth)
{
	bool is_external = has(die, DW_AT_external);
	Dwarf_Attribute a;

	if (g->found && (depth < g->depth || (depth == g->depth && g->is_external && !is_external)))
		return;
	/* Units that share a variable each describe it. */
	g->several = g->found && depth == g->depth && g->is_external == is_external && !is_external;
	g->found = true;
	g->depth = depth;
	g->is_external = is_external;
	g->variable = (struct values_variable){ .name = g->name, .kind = VALUES_STATIC, .die = *die };
	g->variable.has_type = dwarf_attr_integrate(die, DW_AT_type, &a) &&
			       dwarf_formref_die(&a, &g->variable.type);
}

static void consider(struct search *g, Dwarf_Die *die, const char *path)
{
	char full[VALUES_GLOBAL_NAME_MAX];
	size_t depth;

	if (!has(die, DW_AT_location) && (!has(die, DW_AT_const_value) || has(die, DW_AT_declaration)))
		return;
	if (full_name(g, die, path, full, sizeof(full)) && is_meant(g, full, &depth))
		offer(g, die, depth);
}

static void walk(struct search *g, Dwarf_Die *parent, const char *path, unsigned depth)
{
	struct debug_children c;
	Dwarf_Die die;

	debug_children_init(&c, g->d, parent, g->left);
	while (debug_children_next(&c, &die)) {
		const char *name;
		char inner[VALUES_GLOBAL_NAME_MAX];

		if (dwarf_tag(&die) == DW_TAG_variable)
			consider(g, &die, path);
		if (dwarf_tag(&die) != DW_TAG_namespace || depth == DEPTH_MAX)
			continue;
		name = debug_info_string(g->d, &die, DW_AT_name);
		snprintf(inner, sizeof(inner), "%s%s%s", path, *path ? "::" : "", name ? name : "?");
		g->left = c.steps;
		walk(g, &die, inner, depth + 1);
		c.steps = g->left;
	}
	g->left = c.steps;
}

static Dwarf_Off unit_of(Dwarf_Die *die)
{
	Dwarf_Die unit;

	return die->cu && dwarf_diecu(die, &unit, NULL, NULL) ? dwarf_dieoffset(&unit) : 0;
}

/* The function's own unit first: what is found there is meant.  @return that something was. */
static bool search_own(struct search *g, Dwarf_Off own)
{
	Dwarf_Die unit;

	if (own && debug_info_die(g->d, own, &unit))
		walk(g, &unit, "", 0);
	return g->found;
}

/* All others: only then it is known whether several have one. */
static void search_others(struct search *g, Dwarf_Off own)
{
	Dwarf_Die unit;

	for (size_t k = 0; debug_info_unit(g->d, k, &unit); k++)
		if (dwarf_dieoffset(&unit) != own)
			walk(g, &unit, "", 0);
}

int values_global_find(struct debug_info *d, const struct values_scope *s, const char *name,
		       struct values_variable *ret)
{
	struct search g = { .d = d, .name = name, .last = name, .left = STEPS_MAX, .names_left = NAMES_MAX };
	Dwarf_Die subprogram = s->subprogram;
	Dwarf_Off own = unit_of(&subprogram);

	if (strlen(name) >= VALUES_GLOBAL_NAME_MAX)
		return -ENAMETOOLONG;
	for (const char *p = strstr(name, "::"); p; p = strstr(p + 2, "::"))
		g.last = p + 2;
	snprintf(g.mangled, sizeof(g.mangled), "%zu%s", strlen(g.last), g.last);
	find_around(s->function, g.around, sizeof(g.around));
	if (!search_own(&g, own)) {
		search_others(&g, own);
		if (!g.left || !g.names_left)
			return -E2BIG;
	}
	if (!g.found)
		return -ENOENT;
	if (g.several)
		return -ENOTUNIQ;
	*ret = g.variable;
	return 0;
}
