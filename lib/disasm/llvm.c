/* SPDX-License-Identifier: MIT */
/* Calls LLVM's C interface (llvm-c/Disassembler.h, llvm-c/Target.h), which is found at run time. */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "disasm/backend.h"

/* Major versions of LLVM whose names are tried. */
#define NEWEST 40u
#define OLDEST 11u

bool disasm_llvm_name(const char *library, size_t i, char buf[DISASM_LLVM_NAME_SIZE])
{
	/*
	 * The first form is LLVM's own since version 18, the second that of distributions before.
	 */
	static const struct {
		const char *before, *behind;
	} names[] = { { "libLLVM.so.", ".1" }, { "libLLVM-", ".so.1" } };
	size_t kind = i % ARRAY_SIZE(names);

	if (library) {
		str_copy(buf, DISASM_LLVM_NAME_SIZE, library);
		return i == 0 && strlen(library) < DISASM_LLVM_NAME_SIZE;
	}
	if (i / ARRAY_SIZE(names) > NEWEST - OLDEST)
		return false;
	snprintf(buf, DISASM_LLVM_NAME_SIZE, "%s%zu%s", names[kind].before,
		 NEWEST - i / ARRAY_SIZE(names), names[kind].behind);
	return true;
}

/*
 * dlsym() returns an object pointer, which C cannot convert to a function pointer, so it is copied.
 */
static bool find(void *handle, const char *name, void *ret_function)
{
	void *symbol = dlsym(handle, name);

	memcpy(ret_function, &symbol, sizeof(symbol));
	return symbol;
}

int disasm_llvm_load(const char *name, struct disasm_llvm *ret)
{
	static const char *const needed[] = { "LLVMInitializeAMDGPUTargetInfo",
					      "LLVMInitializeAMDGPUTargetMC",
					      "LLVMInitializeAMDGPUDisassembler" };
	void (*initialize[ARRAY_SIZE(needed)])(void);
	struct disasm_llvm l = { .handle = dlopen(name, RTLD_NOW | RTLD_LOCAL) };
	bool ok;

	if (!l.handle)
		return -ENOENT;
	ok = find(l.handle, "LLVMDisasmInstruction", &l.instruction);
	for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
		ok = ok && find(l.handle, needed[i], &initialize[i]);
	if (!ok) {
		dlclose(l.handle);
		return -ENOTSUP;
	}
	for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
		initialize[i]();
	*ret = l;
	return 0;
}

/*
 * Processors from gfx10 on have 32 or 64 lanes by choice; gfx9 always has 64 and no such features.
 */
static const char *features(const char *cpu, uint32_t lanes)
{
	if (!str_starts_with(cpu, "gfx1") || strlen(cpu) < strlen("gfx1000"))
		return "";
	if (lanes == 64)
		return "+wavefrontsize64,-wavefrontsize32";
	return lanes == 32 ? "+wavefrontsize32,-wavefrontsize64" : "";
}

int disasm_llvm_choose(struct disasm_llvm *l, const char *cpu, uint32_t lanes)
{
	void *(*create)(const char *triple, const char *cpu, const char *features, void *info,
			int tag_type, void *get_op_info, void *look_up);

	if (!find(l->handle, "LLVMCreateDisasmCPUFeatures", &create))
		return -ENOTSUP;
	l->context = create("amdgcn-amd-amdhsa", cpu, features(cpu, lanes), NULL, 0, NULL, NULL);
	return l->context ? 0 : -ENOTSUP;
}

uint32_t disasm_llvm_decode(const struct disasm_llvm *l, const uint8_t *bytes, uint32_t size,
			    uint64_t address, char *ret_text)
{
	uint8_t copy[DISASM_LONGEST] = { 0 };
	size_t n;

	memcpy(copy, bytes, size);
	n = l->instruction(l->context, copy, size, address, ret_text, DISASM_TEXT_SIZE);
	return n <= size ? (uint32_t)n : 0;
}
