/* SPDX-License-Identifier: MIT */
#ifndef WAITS_ROCM_HOSTCALL_H
#define WAITS_ROCM_HOSTCALL_H

/**
 * @file hostcall.h
 * The buffer by which waves of AMD devices call the host, as printf(), malloc() and assert() of HIP do: that of ROCm's
 * device library (__ockl_hostcall_internal() of rocm-device-libs) and of its runtime.
 *
 * A queue has one, and a kernel finds it by an argument that the compiler has added.  It has one of two layouts.
 *
 * WAITS_HOSTCALL_STACKS: a wave takes a packet from the stack of free ones, marks it as not answered, pushes it to the
 * stack of ready ones and polls the mark.  A thread of the host takes that whole stack at once, answers one packet
 * after the other, and takes the mark off each.  The wave gives the packet back.
 *
 * WAITS_HOSTCALL_PHASES: each packet has a bit of the device and one of the host.  A wave writes a packet that is its
 * own, changes the device's bit and polls until both bits are the same.  The thread of the host answers the packets
 * whose bits differ, and changes its own bit of each.
 */

#include <stddef.h>
#include <stdint.h>

/** The kind of the argument that points to the buffer, as the code object notes it. */
#define WAITS_HOSTCALL_ARGUMENT "hidden_hostcall_buffer"
/** What is read of a buffer, and for each of its packets. */
#define WAITS_HOSTCALL_BYTES	    56u
#define WAITS_HOSTCALL_PACKET_BYTES 24u
/** Most packets that are looked at; a buffer has one for each wave that fits its device. */
#define WAITS_HOSTCALL_PACKETS_MAX 16384u
/** The name of the runtime's thread that answers, as far as the kernel keeps it. */
#define WAITS_HOSTCALL_THREAD "Hostcall Listen"

/** What a packet asks for.  Others are WAITS_SERVICE_OTHER. */
enum waits_service {
	WAITS_SERVICE_OTHER,
	WAITS_SERVICE_FUNCTION,
	WAITS_SERVICE_PRINTF,
	WAITS_SERVICE_MEMORY,
	WAITS_SERVICE_SANITIZER,
	WAITS_SERVICE_COUNT,
};

enum waits_hostcall_layout {
	WAITS_HOSTCALL_STACKS,
	WAITS_HOSTCALL_PHASES, /**< Of libraries and runtimes that are built with USE_NEW_HOSTCALL_IMPL. */
	WAITS_HOSTCALL_LAYOUTS,
};

/** A buffer. */
struct waits_hostcall {
	enum waits_hostcall_layout layout;
	uint64_t at;	      /**< Address of what is read for its packets. */
	uint64_t doorbell;    /**< Signal that says that there are calls. */
	uint64_t free, ready; /**< Stacks: the first packet of each, with a tag above `mask`; 0: none. */
	uint64_t mask;	      /**< Of stacks. */
	uint32_t packets;
};

/** What becomes of its packets. */
struct waits_calls {
	uint32_t free;	   /**< With phases: all that are not ready. */
	uint32_t ready;	   /**< Not answered.  With stacks: and the host has not taken them. */
	uint32_t taken;	   /**< Not answered, and on no stack: the host has taken them, or the wave still writes. */
	uint32_t answered; /**< With stacks: the wave has not given them back. */
	uint32_t services[WAITS_SERVICE_COUNT]; /**< What is asked for by those that are not answered. */
	uint64_t lanes; /**< Those that ask. */
};

/** @return "printf", "function"...; never NULL. */
const char *waits_service_name(enum waits_service s);

/**
 * Read a buffer.
 * @param address  Where it is.
 * @return 0; -E2BIG: it has more packets than are looked at; -EINVAL: it is none, or of another layout.
 */
int waits_hostcall_read(const void *buffer, size_t size, uint64_t address, struct waits_hostcall *ret);

/**
 * @return how much of what is read for packets, from its begin on, is to be read once more: where that has changed, or
 *         the buffer has, it was not read as it was in one moment.
 */
size_t waits_hostcall_again(const struct waits_hostcall *b);

/**
 * Read its packets.
 * @param marks  Room for one byte of each.
 * @return 0; -EBADMSG: packets do not fit together with stacks or phases, or there are less bytes than packets.
 */
int waits_hostcall_calls(const struct waits_hostcall *b, const void *packets, size_t size, uint8_t *marks,
			 struct waits_calls *ret);

#endif /* WAITS_ROCM_HOSTCALL_H */
