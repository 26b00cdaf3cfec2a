/* SPDX-License-Identifier: MIT */
/* Finds the driver's library at run time, and agrees on a version with it. */
#include "internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/str.h"

#define DEFAULT_LIBRARY "libcuda.so.1"

static void *real_open(const char *path)
{
	return dlopen(path, RTLD_LOCAL | RTLD_NOW);
}

static void *real_symbol(void *library, const char *name)
{
	return dlsym(library, name);
}

static const char *real_error(void)
{
	return dlerror();
}

static const struct cudbgshim_sys real_sys = {
	.open = real_open,
	.symbol = real_symbol,
	.error = real_error,
	.now_ns = clock_now_ns,
};

/* The library starts threads and keeps state of its own: a process has one, and for ever. */
static bool is_loaded;

static int fail(struct cudbgshim_failure *failure, enum cudbgshim_step step, int r)
{
	failure->step = step;
	return r;
}

static int open_library(struct cudbgshim *s, const char *path, struct cudbgshim_failure *failure)
{
	const char *text;

	if (s->sys == &real_sys && is_loaded)
		return -EALREADY;
	s->library = s->sys->open(path ? path : DEFAULT_LIBRARY);
	if (!s->library) {
		text = s->sys->error();
		str_copy(failure->text, sizeof(failure->text), text ? text : "");
		return fail(failure, CUDBGSHIM_STEP_LIBRARY, -ENOENT);
	}
	if (s->sys == &real_sys)
		is_loaded = true;
	return 0;
}

static void *find_symbol(struct cudbgshim *s, const char *name, struct cudbgshim_failure *failure)
{
	void *symbol = s->sys->symbol(s->library, name);

	if (!symbol)
		str_copy(failure->text, sizeof(failure->text), name);
	return symbol;
}

/* Set the engine for our side, which our own image of the driver decides. */
static int set_engine(struct cudbgshim *s, const char *path, struct cudbgshim_failure *failure)
{
	char *variable;

	if (strlen(path) >= CUDBGABI_INJECTION_PATH_SIZE)
		return -ENAMETOOLONG;
	variable = find_symbol(s, "cudbgInjectionPath", failure);
	if (!variable)
		return fail(failure, CUDBGSHIM_STEP_SYMBOLS, -ENOEXEC);
	str_copy(variable, CUDBGABI_INJECTION_PATH_SIZE, path);
	return 0;
}

static int negotiate(struct cudbgshim *s, struct cudbgshim_failure *failure)
{
	struct cudbgshim_version v = { 0 };
	cudbgabi_get_api_version_fn *get_version;
	cudbgabi_get_api_fn *get_api;

	get_version = (cudbgabi_get_api_version_fn *)find_symbol(s, CUDBGABI_SYM_GET_API_VERSION,
								 failure);
	if (!get_version)
		return fail(failure, CUDBGSHIM_STEP_SYMBOLS, -ENOEXEC);
	get_api = (cudbgabi_get_api_fn *)find_symbol(s, CUDBGABI_SYM_GET_API, failure);
	if (!get_api)
		return fail(failure, CUDBGSHIM_STEP_SYMBOLS, -ENOEXEC);

	failure->result = get_version(&v.major, &v.minor, &v.revision);
	if (failure->result != CUDBGABI_SUCCESS)
		return fail(failure, CUDBGSHIM_STEP_VERSION, table_error(failure->result));
	failure->major = v.major;
	failure->minor = v.minor;
	failure->revision = v.revision;
	v.n_slots = table_count_slots(v.major, v.minor);
	if (!v.n_slots)
		return fail(failure, CUDBGSHIM_STEP_RELEASE, -EPROTONOSUPPORT);

	failure->result = get_api(v.major, v.minor, v.revision, &s->table);
	if (failure->result != CUDBGABI_SUCCESS)
		return fail(failure, CUDBGSHIM_STEP_TABLE, table_error(failure->result));
	if (!s->table)
		return fail(failure, CUDBGSHIM_STEP_TABLE, -EPROTO);
	s->version = v;
	return 0;
}

int cudbgshim_create(const struct cudbgshim_options *options, struct cudbgshim **ret_shim,
		     struct cudbgshim_failure *ret_failure)
{
	struct cudbgshim_failure failure = { 0 };
	struct cudbgshim *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->sys = options->sys ? options->sys : &real_sys;
	if (options->trace.leave)
		s->trace = options->trace;
	s->last.name = "";
	r = open_library(s, options->path, &failure);
	if (!r && options->engine)
		r = set_engine(s, options->engine, &failure);
	if (!r)
		r = negotiate(s, &failure);
	if (r < 0) {
		if (ret_failure)
			*ret_failure = failure;
		free(s);
		return r;
	}
	*ret_shim = s;
	return 0;
}

void cudbgshim_destroy(struct cudbgshim *s)
{
	event_forget_notify();
	free(s);
}

int cudbgshim_set_client(struct cudbgshim *s, uint32_t label, uint32_t session)
{
	static const char *const names[] = { "cudbgApiClientPid", "cudbgApiClientRevision",
					     "cudbgSessionId" };
	uint32_t values[] = { label, s->version.revision, session };
	uint32_t *variables[3];

	if (!label)
		return -EINVAL;
	for (size_t i = 0; i < 3; i++) {
		variables[i] = s->sys->symbol(s->library, names[i]);
		if (!variables[i])
			return -ENOEXEC;
	}
	for (size_t i = 0; i < 3; i++)
		*variables[i] = values[i];
	return 0;
}
