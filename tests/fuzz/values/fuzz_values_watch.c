/* SPDX-License-Identifier: MIT */
/* Expressions as people and editors send them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fuzzlib.h"
#include "values/expression/expression.h"
#include "values/expression/parts.h"

static struct values_types *types;

static int read_memory(void *context, enum values_space space, uint64_t address, void *ret, size_t size)
{
	memset(ret, (int)address, size);
	return address < 16 ? -EFAULT : 0;
}

static int set(struct values_result *ret, const char *type, uint64_t bits, size_t size)
{
	ret->type = values_type_named(types, type);
	ret->bytes = malloc(size);
	ret->size = size;
	if (!ret->bytes)
		return -ENOMEM;
	memset(ret->bytes, 0, size);
	memcpy(ret->bytes, &bits, size < 8 ? size : 8);
	return 0;
}

static int find_variable(void *context, const char *name, struct values_result *ret)
{
	switch (name[0]) {
	case 'i':
		return set(ret, "int", UINT64_C(0x80000000), 4);
	case 'f':
		return set(ret, "float", 0x7fc00001, 4);
	case 'p':
		return set(ret, "char*", 0x1000, 8);
	case 'd':
		return set(ret, "dim3", 5, 12);
	case 'a':
		*ret = (struct values_result){ .type = values_type_array(types, values_type_named(types, "int"), 8),
					       .has_address = true, .address = 0x2000 };
		return 0;
	case 's':
		*ret = (struct values_result){ .type = values_type_named(types, "float4"), .has_address = true,
					       .address = 0x3000 };
		return 0;
	case 'u': {
		int r = set(ret, "unsigned long", 1, 8);

		ret->known = calloc(1, 8);
		return r;
	}
	}
	return -ENOENT;
}

static int read_register(void *context, const char *name, int64_t lane, struct values_result *ret)
{
	return lane > 63 ? -ENOENT : set(ret, "unsigned int", (uint64_t)lane, 4);
}

static int select_lane(void *context, uint64_t lane, uint32_t *ret_before)
{
	*ret_before = 0;
	return lane < 32 ? 0 : -ENOENT;
}

static const struct values_names names = { NULL, find_variable, read_register, NULL, select_lane };

/* What is told of a part must be an expression that means a part of the same type. */
static void check_part(const char *text, struct values_type *t)
{
	struct values_expression *e = NULL;
	struct values_result v = { 0 };
	struct values_error error;
	struct values_call call;
	int r;

	values_call_init(&call, read_memory, NULL);
	if (values_expression_parse(text, &e, &error) < 0)
		__builtin_trap();
	r = values_expression_evaluate(e, types, &names, &call, &v, &error);
	if (r == 0 && values_type_size(v.type) != values_type_size(t))
		__builtin_trap();
	values_result_deinit(&v);
	values_expression_destroy(e);
}

static void check_parts(const struct values_expression *e, struct values_type *t)
{
	for (uint64_t i = 0; i < values_parts_count(t) && i < 4; i++) {
		auto_out struct out name = { 0 }, text = { 0 };

		values_part_print_name(e, t, i, &name);
		if (values_part_print_expression(e, t, i, &text))
			check_part(text.data, values_part_type(t, i));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct values_expression *e = NULL;
	struct values_result v = { 0 };
	struct values_error error;
	struct values_node node;
	struct values_call call;
	char *text = strndup((const char *)data, size);
	auto_out struct out o = { 0 };

	if (!text || values_types_create(NULL, &types) < 0)
		return 0;
	values_call_init(&call, read_memory, NULL);
	if (values_expression_parse(text, &e, &error) == 0 &&
	    values_expression_evaluate(e, types, &names, &call, &v, &error) == 0 &&
	    values_result_node(values_expression_format(e), &v, &call, &node) == 0) {
		values_node_print(&node, &o);
		values_type_print(v.type, &o);
		values_node_deinit(&node);
		check_parts(e, v.type);
	} else if (!error.text[0] || error.column > strlen(text) + 1) {
		__builtin_trap();
	}
	values_result_deinit(&v);
	values_expression_destroy(e);
	values_types_destroy(types);
	free(text);
	return 0;
}
