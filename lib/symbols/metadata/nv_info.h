/* SPDX-License-Identifier: MIT */
#ifndef SYMBOLS_NV_INFO_H
#define SYMBOLS_NV_INFO_H

/**
 * @file nv_info.h
 * Reads `.nv.info.KERNEL` of a cubin: what NVIDIA's compiler says about the parameters of a kernel.
 * The section is there in stripped cubins, too.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Most parameters of a kernel that are looked at. */
#define SYMBOLS_NV_PARAMETERS_MAX 256u

struct symbols_nv_parameter {
	bool is_known;
	uint16_t offset; /**< In the parameters of the kernel. */
	uint16_t size;
};

struct symbols_nv_info {
	bool has_bank;
	uint16_t base; /**< Of the parameters, in constant bank 0, which is also their address space. */
	uint16_t size; /**< Bytes of all parameters together. */
	size_t n;      /**< Parameters, also those that have no room here. */
	struct symbols_nv_parameter parameters[SYMBOLS_NV_PARAMETERS_MAX]; /**< By position. */
};

/**
 * Read the content of the section.
 * @param ret  What was read in front of the error, too.
 * @return 0, -EBADMSG.
 */
int symbols_nv_info_read(const void *data, size_t size, struct symbols_nv_info *ret);

#endif /* SYMBOLS_NV_INFO_H */
