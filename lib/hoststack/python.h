/* SPDX-License-Identifier: MIT */
#ifndef HOSTSTACK_PYTHON_H
#define HOSTSTACK_PYTHON_H

/** @file python.h  An interpreter in another process: is there one, and which. */

#include "hoststack/layout.h"
#include "hoststack/memory.h"

/** One CPython. */
struct hoststack_python {
	uint64_t runtime; /**< Address of _PyRuntime. */
	struct hoststack_layout layout;
	uint32_t version; /**< PY_VERSION_HEX; of 3.8 to 3.10 the patch release is not known, and 0. */
	/** Addresses of PyCode_Type, PyUnicode_Type and PyBytes_Type; 0: not exported. */
	uint64_t code_type, str_type, bytes_type;
};

/**
 * Look for an interpreter in a loaded ELF file.
 * @param base  Where the file's first byte is mapped.
 * @return 0; -ENOENT (there is none); -ENOTSUP (it is of a release that is not known, and `version` says of which,
 *         if that can be told); -EBADMSG (its table makes no sense); what hoststack_read() returns.
 */
int hoststack_python_find(struct hoststack_memory *m, uint64_t base, struct hoststack_python *ret);

#endif /* HOSTSTACK_PYTHON_H */
