/* SPDX-License-Identifier: MIT */
#ifndef COREFILE_X86_64_H
#define COREFILE_X86_64_H

/** @file x86_64.h  What a note of a thread has on x86-64. */

/** The order of registers, as in the kernel's struct user_regs_struct. */
enum corefile_x86_64_register {
	COREFILE_R15, COREFILE_R14, COREFILE_R13, COREFILE_R12, COREFILE_RBP, COREFILE_RBX, COREFILE_R11,
	COREFILE_R10, COREFILE_R9, COREFILE_R8, COREFILE_RAX, COREFILE_RCX, COREFILE_RDX, COREFILE_RSI, COREFILE_RDI,
	COREFILE_ORIG_RAX,
	COREFILE_RIP, COREFILE_CS, COREFILE_EFLAGS, COREFILE_RSP,
	COREFILE_X86_64_WORDS = 27
};

/** Errors with which the kernel ends or restarts a call that waited (its linux/errno.h). */
enum {
	COREFILE_ERESTARTSYS = 512,
	COREFILE_ERESTARTNOINTR = 513,
	COREFILE_ERESTARTNOHAND = 514,
	COREFILE_ERESTART_RESTARTBLOCK = 516,
};

#endif /* COREFILE_X86_64_H */
