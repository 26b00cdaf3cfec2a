/* SPDX-License-Identifier: MIT */
#ifndef COREFILE_CUDA_LAYOUT_H
#define COREFILE_CUDA_LAYOUT_H

/**
 * @file cuda_layout.h
 * Every section, record and field of the CUDA core format as data; writer and reader walk it.
 *
 * Sources: the vendor's cudacoredump.h up to R550; what later branches appended, from the
 * vendor's newer header and the field list of LLDB's CUDA core plug-in.
 */

#include "corefile/cuda_model.h"
#include "corefile/elf_read.h"

#define CUDA_EM_CUDA		 190
#define CUDA_ELFOSABI		 0x33
#define CUDA_ABI_VERSION	 7
/** What cubins of CUDA 13 carry; cores may follow. */
#define CUDA_ELFOSABI_13	 0x41
#define CUDA_ABI_VERSION_13	 8

#define CUDA_SHT_MANAGED UINT32_C(0x80000001)
#define CUDA_SHT_GLOBAL	 UINT32_C(0x80000002)

enum cuda_field_kind { CUDA_U32, CUDA_U64, CUDA_STRING };

/** A field of a record, and the member of the row that has it. */
struct cuda_field {
	uint16_t at;
	uint16_t member;
	uint8_t kind;
	uint8_t count; /**< Of consecutive u32. */
	uint8_t since;
};

#define CUDA_NO_PARENT CUDACORE_TABLE_COUNT

struct cuda_table {
	const char *section;
	const char *label; /**< What a row adds to the names of sections below it. */
	uint32_t type;
	uint8_t section_size, label_size; /**< Without their ends. */
	uint8_t parent;	   /**< CUDA_NO_PARENT: the file. */
	bool always;	   /**< Written without rows too. */
	uint16_t children; /**< Offset of the range in the parent's row. */
	uint16_t parent_at; /**< Offset of the parent's position in the row. */
	uint16_t age_at;
	uint16_t row_size;
	uint16_t array_at; /**< Offset of the array in struct cudacore. */
	const struct cuda_field *fields;
	uint16_t sizes[CUDACORE_LAYOUT_COUNT]; /**< Of the record; 0 before it existed. */
};

/** Bytes that belong to a row. */
struct cuda_blob {
	const char *section;
	uint32_t type;
	uint8_t section_size;
	uint8_t parent;
	uint8_t since;
	uint8_t entry_size;
	bool always;	 /**< Written when empty too. */
	bool bulk;	 /**< Lies behind all that a look at every lane needs. */
	uint16_t member; /**< Offset of the blob in the parent's row. */
	uint16_t address; /**< Offset of its address there; 0: none. */
};

#define CUDA_BLOB_COUNT 10

extern const struct cuda_table cuda_tables[CUDACORE_TABLE_COUNT];
/** In the order of the tables. */
extern const struct cuda_blob cuda_blobs[CUDA_BLOB_COUNT];

/** Row @p i of a table. */
void *cuda_row(const struct cudacore *c, enum cudacore_table table, uint32_t i);

/** All but the strings of a record.  @param to  Size of the record at that age; zeroed. */
void cuda_encode(const struct cuda_table *t, enum cudacore_layout layout, const void *row,
		 uint8_t *to);
/** All but the strings of a record of @p size bytes; sets the row's age. */
void cuda_decode(const struct cuda_table *t, const uint8_t *from, size_t size, void *row);

#endif /* COREFILE_CUDA_LAYOUT_H */
