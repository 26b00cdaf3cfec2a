/* SPDX-License-Identifier: MIT */
#ifndef CUDBGSHIM_TARGET_H
#define CUDBGSHIM_TARGET_H

/**
 * @file cudbgshim_target.h
 * The debuggee's side: where its driver library is, which symbols it has, what has been changed.
 *
 * Nothing here opens a file or stops a thread: memory is read and written through callbacks, so the
 * debuggee's mount namespace does not matter, and everything the debuggee wrote is parsed as
 * hostile.  Functions return 0 or -errno and leave their results untouched on failure.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Access to the debuggee's memory, normally /proc/PID/mem; each transfers all bytes or fails. */
struct cudbgshim_memory {
	/** @return 0, -EFAULT (not readable), -ESRCH (process gone), other -errno. */
	int (*read)(void *ctx, uint64_t addr, void *buf, size_t size);
	/** The same; NULL where nothing may be written. */
	int (*write)(void *ctx, uint64_t addr, const void *buf, size_t size);
	void *ctx;
};

/** `read` and `write` over an open /proc/PID/mem; @p mem_fd is borrowed for as long as it is used. */
struct cudbgshim_memory cudbgshim_memory_from_fd(int mem_fd);

/* ------------------------------------------------------------------ mappings ----------------- */

#define CUDBGSHIM_MAP_READ  UINT32_C(1)
#define CUDBGSHIM_MAP_WRITE UINT32_C(2)
#define CUDBGSHIM_MAP_EXEC  UINT32_C(4)

/** One line of /proc/PID/maps; @p name points into the text and is not terminated. */
struct cudbgshim_map {
	uint64_t start, end, offset, inode;
	uint32_t flags;	   /**< CUDBGSHIM_MAP_*. */
	const char *name;  /**< Path or [stack]; without " (deleted)". */
	size_t name_size;  /**< 0 for anonymous memory. */
};

/** Position in the text of /proc/PID/maps. */
struct cudbgshim_maps {
	const char *text;
	size_t size, pos;
};

/** @return false at the end; lines that are none are passed over. */
bool cudbgshim_maps_next(struct cudbgshim_maps *maps, struct cudbgshim_map *ret_map);
/** The mapping that holds @p addr. */
bool cudbgshim_maps_find(const char *text, size_t size, uint64_t addr,
			 struct cudbgshim_map *ret_map);

#define CUDBGSHIM_PATH_MAX 4096

/** One copy of the driver library in the debuggee. */
struct cudbgshim_library {
	uint64_t base; /**< Where file offset 0 is mapped. */
	uint64_t end;  /**< End of the last mapping of that file. */
	char path[CUDBGSHIM_PATH_MAX]; /**< As the debuggee's mount namespace names it. */
};

/**
 * The @p nth (from 0) copy of libcuda in the text of /proc/PID/maps: base name `libcuda.so`,
 * optionally followed by a version.  A process may map it under several paths.
 * @return 0, -ENOENT.
 */
int cudbgshim_find_libcuda(const char *maps, size_t size, size_t nth,
			   struct cudbgshim_library *ret_library);

/* ------------------------------------------------------------------ symbols ------------------ */

/** Everything that libcuda exports for debuggers (reference sheet section 3). */
enum cudbgshim_symbol {
	CUDBGSHIM_SYM_IPC_FLAG,
	CUDBGSHIM_SYM_RPC_ENABLED,
	CUDBGSHIM_SYM_CLIENT_PID,
	CUDBGSHIM_SYM_CLIENT_REVISION,
	CUDBGSHIM_SYM_SESSION_ID,
	CUDBGSHIM_SYM_CAPABILITIES,
	CUDBGSHIM_SYM_INJECTION_PATH,
	CUDBGSHIM_SYM_USE_EXTERNAL_DEBUGGER,
	CUDBGSHIM_SYM_INITIALIZED,
	CUDBGSHIM_SYM_RESUME_FLAG,
	CUDBGSHIM_SYM_ATTACH_HANDLER_AVAILABLE,
	CUDBGSHIM_SYM_ATTACH_FD,
	CUDBGSHIM_SYM_LAUNCH_BLOCKING,
	CUDBGSHIM_SYM_PREEMPTION,
	CUDBGSHIM_SYM_MEMCHECK,
	CUDBGSHIM_SYM_DETACH_SUSPENDED_MASK,
	CUDBGSHIM_SYM_API_ERROR_FLAGS,
	CUDBGSHIM_SYM_API_ERROR_CODE,
	CUDBGSHIM_SYM_API_ERROR_FUNC_NAME_SIZE,
	CUDBGSHIM_SYM_API_ERROR_FUNC_NAME_ADDR,
	CUDBGSHIM_SYM_API_ERROR_SOURCE,
	CUDBGSHIM_SYM_API_ERROR_NAME_SIZE,
	CUDBGSHIM_SYM_API_ERROR_NAME_ADDR,
	CUDBGSHIM_SYM_API_ERROR_STRING_SIZE,
	CUDBGSHIM_SYM_API_ERROR_STRING_ADDR,
	CUDBGSHIM_SYM_INTERNAL_ERROR_CODE,
	/* Functions from here on. */
	CUDBGSHIM_SYM_API_INIT,
	CUDBGSHIM_SYM_API_ATTACH,
	CUDBGSHIM_SYM_API_DETACH,
	CUDBGSHIM_SYM_REPORT_API_ERROR,
	CUDBGSHIM_SYM_REPORT_INTERNAL_ERROR,
	CUDBGSHIM_SYM_REPORT_ATTACH_FINISHED,
	CUDBGSHIM_SYM_PRE_INIT,
	CUDBGSHIM_SYM_MAIN,
	CUDBGSHIM_SYM_COUNT
};

/** Name in the ELF file. */
const char *cudbgshim_symbol_name(enum cudbgshim_symbol symbol);
/** Bytes that the variable has in every driver seen; 0 for a function. */
uint32_t cudbgshim_symbol_size(enum cudbgshim_symbol symbol);

/** Addresses in the debuggee; 0 where this driver has no such symbol. */
struct cudbgshim_symbols {
	uint64_t addr[CUDBGSHIM_SYM_COUNT];
};

/** Why a symbol table was refused. */
struct cudbgshim_symbols_error {
	const char *what; /**< Static text: which structure, and what is wrong with it. */
	uint64_t where;	  /**< Address in the debuggee. */
	/** The variable with an unexpected kind or size (-EPROTO); else CUDBGSHIM_SYM_COUNT. */
	enum cudbgshim_symbol symbol;
	uint64_t size; /**< What its st_size says (-EPROTO). */
};

/**
 * Look all symbols up in the `.dynsym` of a mapped ELF file, through DT_GNU_HASH or DT_HASH.
 *
 * @param base     Where file offset 0 is mapped.
 * @param ret_err  Filled in on failure; NULL allowed.
 * @return 0 (also when it has none of them), -ENOEXEC (no 64-bit x86 ELF file), -EBADMSG
 *         (damaged), -EPROTO (a symbol has another size or kind than we know how to use),
 *         or what the reader returned.
 */
int cudbgshim_symbols_read(const struct cudbgshim_memory *memory, uint64_t base,
			   struct cudbgshim_symbols *ret_symbols,
			   struct cudbgshim_symbols_error *ret_err);

#endif /* CUDBGSHIM_TARGET_H */
