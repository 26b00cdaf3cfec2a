/* SPDX-License-Identifier: MIT */
/* Reads and writes the variables of the driver in the target, and records what they were. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/elf_view.h"
#include "base/fd.h"
#include "session.h"

static int read_symbols(const struct cudbgshim_memory *memory, const char *maps, size_t size,
			struct session_target *ret, struct cudbgshim_session_error *err)
{
	struct session_target t, best;
	int found = -ENOENT;

	/*
	 * A process may hold several copies of libcuda; the one that starts the engine has these
	 * variables.
	 */
	for (size_t nth = 0; cudbgshim_find_libcuda(maps, size, nth, &t.library) == 0; nth++) {
		struct cudbgshim_symbols_error why = { .what = "" };
		int rc = cudbgshim_symbols_read(memory, t.library.base, &t.symbols, &why);

		if (rc == 0 && !flags_has(&t, CUDBGSHIM_SYM_IPC_FLAG)) {
			rc = -ENOEXEC;
			why.what = "it has no cudbgIpcFlag";
		}
		if (rc == 0) {
			*ret = t;
			return 0;
		}
		best = t;
		found = rc;
		snprintf(err->text, sizeof(err->text), "%.120s: %s%s%s", best.library.path,
			 why.what, rc == -EPROTO ? ": " : "",
			 rc == -EPROTO ? cudbgshim_symbol_name(why.symbol) : "");
	}
	return found;
}

int flags_find(const struct cudbgshim_memory *memory, const struct cudbgshim_tracer *tracer, int proc_fd,
	       struct session_target *ret, struct cudbgshim_session_error *err)
{
	auto_free char *maps = NULL;
	size_t size;
	int rc = tracer->read_file(tracer->ctx, proc_fd, "maps", CUDBGSHIM_MAPS_MAX, &maps, &size);

	if (rc == 0 && !size)
		rc = -ESRCH;
	if (rc == -ENOENT)
		rc = -ESRCH;
	if (rc < 0) {
		snprintf(err->text, sizeof(err->text), "cannot read its mappings");
		return rc;
	}
	return read_symbols(memory, maps, size, ret, err);
}

bool flags_has(const struct session_target *t, enum cudbgshim_symbol symbol)
{
	return t->symbols.addr[symbol];
}

int flags_read(const struct cudbgshim_memory *memory, const struct session_target *t,
	       enum cudbgshim_symbol symbol, uint32_t *ret_value)
{
	if (!flags_has(t, symbol)) {
		*ret_value = 0;
		return 0;
	}
	return memory->read(memory->ctx, t->symbols.addr[symbol], ret_value, sizeof(*ret_value));
}

/*
 * Record a variable.  The entry is complete before it counts, and counts before the variable is
 * touched, so that a rescuer finds it whatever the moment of our death.
 */
static int record(struct cudbgshim_undo *undo, enum cudbgshim_symbol symbol, uint64_t addr,
		  uint32_t size, uint64_t old)
{
	for (uint32_t i = 0; i < undo->n_writes; i++)
		if (undo->writes[i].addr == addr)
			return 0; /* The oldest value is the one to go back to. */
	if (undo->n_writes >= CUDBGSHIM_UNDO_WRITES)
		return -ENOSPC;
	undo->writes[undo->n_writes] = (struct cudbgshim_undo_write){
		.addr = addr, .old = old, .size = size, .symbol = symbol
	};
	__atomic_store_n(&undo->n_writes, undo->n_writes + 1, __ATOMIC_RELEASE);
	return 0;
}

int flags_write(const struct cudbgshim_memory *memory, const struct session_target *t,
		struct cudbgshim_undo *undo, enum cudbgshim_symbol symbol, uint64_t value)
{
	uint64_t addr = t->symbols.addr[symbol], old = 0;
	uint32_t size = cudbgshim_symbol_size(symbol);
	int rc;

	if (!addr)
		return 0;
	rc = memory->read(memory->ctx, addr, &old, size);
	if (rc == 0)
		rc = record(undo, symbol, addr, size, old);
	return rc < 0 ? rc : memory->write(memory->ctx, addr, &value, size);
}

int flags_write_path(const struct cudbgshim_memory *memory, const struct session_target *t,
		     struct cudbgshim_undo *undo, const char *path)
{
	uint64_t addr = t->symbols.addr[CUDBGSHIM_SYM_INJECTION_PATH];
	size_t size = strlen(path) + 1;
	char old;
	int rc;

	if (!addr)
		return -EOPNOTSUPP;
	if (size > cudbgshim_symbol_size(CUDBGSHIM_SYM_INJECTION_PATH))
		return -ENAMETOOLONG;
	rc = memory->read(memory->ctx, addr, &old, 1);
	if (rc == 0 && old)
		rc = -EBUSY;
	if (rc == 0)
		rc = record(undo, CUDBGSHIM_SYM_INJECTION_PATH, addr, (uint32_t)size, 0);
	if (rc == 0)
		rc = memory->write(memory->ctx, addr + 1, path + 1, size - 1);
	return rc < 0 ? rc : memory->write(memory->ctx, addr, path, 1);
}

static int restore_one(const struct cudbgshim_memory *memory, const struct cudbgshim_undo_write *w)
{
	static const uint8_t zeros[256];

	if (w->size <= sizeof(w->old))
		return memory->write(memory->ctx, w->addr, &w->old, w->size);
	for (uint32_t at = 0; at < w->size; at += sizeof(zeros)) {
		uint32_t left = w->size - at;
		int rc = memory->write(memory->ctx, w->addr + at, zeros,
				       left < sizeof(zeros) ? left : sizeof(zeros));

		if (rc < 0)
			return rc;
	}
	return 0;
}

int flags_restore(const struct cudbgshim_memory *memory, struct cudbgshim_undo *undo)
{
	uint32_t n = undo->n_writes;
	int first = 0;

	if (n > CUDBGSHIM_UNDO_WRITES)
		return -EINVAL;
	while (n--) {
		/*
		 * The entry is copied first: the record lies in memory that its dead owner shared.
		 */
		struct cudbgshim_undo_write w = undo->writes[n];
		int rc = restore_one(memory, &w);

		if (rc < 0 && !first)
			first = rc;
		/* An entry that is still needed keeps those that are older in the record with it. */
		if (!first)
			__atomic_store_n(&undo->n_writes, n, __ATOMIC_RELEASE);
	}
	return first;
}

void flags_set_phase(struct cudbgshim_undo *undo, enum cudbgshim_phase phase)
{
	__atomic_store_n(&undo->phase, phase, __ATOMIC_RELEASE);
}

int flags_start_time(int proc_fd, uint64_t *ret)
{
	auto_free char *text = NULL;
	size_t size;
	const char *p;

	if (fd_read_file_at(proc_fd, "stat", 4096, &text, &size) < 0)
		return -ESRCH;
	/*
	 * The name may contain anything, so fields are counted from behind it, where field 3
	 * starts.
	 */
	p = strrchr(text, ')');
	for (int field = 2; p && field < 22; field++) {
		p = strchr(p, ' ');
		p = p ? p + 1 : NULL;
	}
	if (!p)
		return -ESRCH;
	*ret = strtoull(p, NULL, 10);
	return 0;
}

#define AUXV_MAX 4096

/*
 * An exec by another thread than the first one changes neither the pid nor the start time.  It does
 * change the 16 random bytes that the kernel hands to each program it starts (AT_RANDOM).
 */
void flags_note_program(const struct cudbgshim_memory *memory, const struct cudbgshim_tracer *tracer,
			int proc_fd, struct cudbgshim_undo *undo)
{
	auto_free char *auxv = NULL;
	uint8_t random[sizeof(undo->random)];
	uint64_t addr;
	size_t size;

	if (tracer->read_file(tracer->ctx, proc_fd, "auxv", AUXV_MAX, &auxv, &size) < 0)
		return;
	addr = elf_auxv_find(auxv, size, AT_RANDOM);
	if (!addr || memory->read(memory->ctx, addr, random, sizeof(random)) < 0)
		return;
	memcpy(undo->random, random, sizeof(random));
	undo->random_addr = addr;
}

int flags_check_program(const struct cudbgshim_memory *memory, const struct cudbgshim_undo *undo)
{
	uint8_t random[sizeof(undo->random)];
	int rc;

	if (!undo->random_addr)
		return 0;
	rc = memory->read(memory->ctx, undo->random_addr, random, sizeof(random));
	if (rc == -ENOMEM || rc == -EAGAIN || rc == -EINTR)
		return rc;
	return rc < 0 || memcmp(random, undo->random, sizeof(random)) ? -ESTALE : 0;
}
