/* SPDX-License-Identifier: MIT */
#include "agentd/worker/value/registers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const letters[] = {
	[VALUES_FILE_SCALAR] = "s", [VALUES_FILE_VECTOR] = "v", [VALUES_FILE_ACCUMULATION] = "a",
	[VALUES_FILE_PC] = "pc", [VALUES_FILE_EXEC] = "exec", [VALUES_FILE_VCC] = "vcc",
	[VALUES_FILE_STATUS] = "status", [VALUES_FILE_REGISTER] = "R", [VALUES_FILE_UNIFORM] = "UR",
	[VALUES_FILE_PREDICATE] = "P", [VALUES_FILE_UNIFORM_PREDICATE] = "UP",
};

/* Is it the name of that register? */
static bool is_named(const char *name, enum values_file file, uint32_t number)
{
	size_t n = strlen(letters[file]);
	uint32_t found = 0;

	if (strncmp(name, letters[file], n) != 0 || !name[n])
		return false;
	for (name += n; *name >= '0' && *name <= '9'; name++)
		found = found * 10 + (uint32_t)(*name - '0');
	return !*name && found == number;
}

static const struct rpc_scalar_register *find_scalar(const struct rpc_scalar_register *list, size_t n,
						     enum values_file file, uint32_t number)
{
	if (number < n && is_named(list[number].name, file, number))
		return &list[number];
	for (size_t i = 0; i < n; i++)
		if (is_named(list[i].name, file, number))
			return &list[i];
	return NULL;
}

/*
 * They are listed by their numbers; predicates come behind the others, so that the place of one is told
 * from the end as well.
 */
static const struct rpc_vector_register *find_vector(const struct rpc_vector_register *list, size_t n,
						     enum values_file file, uint32_t number)
{
	if (number < n && is_named(list[number].name, file, number))
		return &list[number];
	for (size_t i = n; i--;)
		if (is_named(list[i].name, file, number))
			return &list[i];
	return NULL;
}

static int read_vector(const struct rpc_vector_register *list, size_t n, enum values_file file, uint32_t number,
		       uint32_t lane, uint32_t *ret)
{
	const struct rpc_vector_register *found = find_vector(list, n, file, number);

	if (!found || lane >= found->n_lanes)
		return -ENXIO;
	*ret = (uint32_t)found->lanes[lane];
	return 0;
}

static int read_special(const struct rpc_wave_registers *r, const char *name, uint32_t half, uint32_t *ret)
{
	for (size_t i = 0; half <= 1 && i < r->n_special; i++)
		if (!strcmp(r->special[i].name, name)) {
			*ret = (uint32_t)(r->special[i].value >> half * 32);
			return 0;
		}
	return -ENXIO;
}

bool value_registers_are_of_lanes(enum values_file file)
{
	return file == VALUES_FILE_VECTOR || file == VALUES_FILE_ACCUMULATION || file == VALUES_FILE_REGISTER ||
	       file == VALUES_FILE_PREDICATE;
}

int value_registers_read(const struct rpc_wave_registers *r, uint32_t lane, enum values_file file, uint32_t number,
			 uint32_t *ret)
{
	const struct rpc_scalar_register *scalar;

	switch (file) {
	case VALUES_FILE_VECTOR:
	case VALUES_FILE_REGISTER:
	case VALUES_FILE_PREDICATE:
		return read_vector(r->vector, r->n_vector, file, number, lane, ret);
	case VALUES_FILE_ACCUMULATION:
		return read_vector(r->accumulator, r->n_accumulator, file, number, lane, ret);
	case VALUES_FILE_PC:
	case VALUES_FILE_EXEC:
	case VALUES_FILE_VCC:
	case VALUES_FILE_STATUS:
		return read_special(r, letters[file], number, ret);
	default:
		scalar = find_scalar(r->scalar, r->n_scalar, file, number);
		*ret = scalar ? (uint32_t)scalar->value : 0;
		return scalar ? 0 : -ENXIO;
	}
}

bool value_registers_parse(const char *name, enum values_file *ret_file, uint32_t *ret_number)
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
