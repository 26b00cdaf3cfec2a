/* SPDX-License-Identifier: MIT */
#ifndef COREFILE_CUDA_LAYOUT_H
#define COREFILE_CUDA_LAYOUT_H

/**
 * @file cuda_layout.h
 * Every section, record and field of the CUDA core format as data, by which writer and reader go.
 *
 * Sources: the vendor's cudacoredump.h up to R550; what later branches appended, from the vendor's
 * newer header and the field list of LLDB's CUDA core plug-in.
 */

#include "corefile/cuda/model.h"
#include "corefile/elf_read.h"

/** ELF machine and ABI of a core. */
#define CUDA_EM_CUDA		 190
#define CUDA_ELFOSABI		 0x33
#define CUDA_ABI_VERSION	 7
/** ABI that cubins of CUDA 13 carry; cores may follow. */
#define CUDA_ELFOSABI_13	 0x41
#define CUDA_ABI_VERSION_13	 8

/** Section types of memory ranges. */
#define CUDA_SHT_MANAGED UINT32_C(0x80000001)
#define CUDA_SHT_GLOBAL	 UINT32_C(0x80000002)

enum cuda_field_kind { CUDA_U32, CUDA_U64, CUDA_STRING };

/** A field of a record, and the member of our row that has it. */
struct cuda_field {
	uint16_t at;	 /**< Offset in the record. */
	uint16_t member; /**< Offset in the row. */
	uint8_t kind;	 /**< enum cuda_field_kind. */
	uint8_t count; /**< Consecutive u32 of which it consists; 0 ends a list. */
	uint8_t since; /**< enum cudacore_layout that added it. */
};

/** Parent of a table that belongs to the file itself. */
#define CUDA_NO_PARENT CUDACORE_TABLE_COUNT

/** A table: a kind of section, and the array of our model that has its rows. */
struct cuda_table {
	const char *section;
	const char *label; /**< Text that a row adds to the names of the sections below it. */
	uint32_t type;
	/** Lengths of the two strings above without their NUL. */
	uint8_t section_size, label_size;
	uint8_t parent;	   /**< Table of the parent, or CUDA_NO_PARENT. */
	bool always;	   /**< Written even when it has no rows. */
	bool single;	   /**< One record: a driver of 580 gives its section no size of records. */
	uint16_t children; /**< Offset of the range in the parent's row. */
	uint16_t parent_at; /**< Offset of the parent's position in the row. */
	uint16_t age_at;
	uint16_t row_size;
	uint16_t array_at; /**< Offset of the array in struct cudacore. */
	const struct cuda_field *fields;
	/** Bytes of a record in each layout; 0 before it existed. */
	uint16_t sizes[CUDACORE_LAYOUT_COUNT];
};

/** A kind of section whose content is bytes that belong to a row. */
struct cuda_blob {
	const char *section;
	uint32_t type;
	uint8_t section_size;
	uint8_t parent;
	uint8_t since;
	uint8_t entry_size;
	bool always;	 /**< Written even when it is empty. */
	bool bulk;	 /**< Lies behind all that is needed to look at every lane. */
	uint16_t member; /**< Offset of the blob in the parent's row. */
	uint16_t address; /**< Offset of its address in the parent's row; 0: it has none. */
};

#define CUDA_BLOB_COUNT 10

extern const struct cuda_table cuda_tables[CUDACORE_TABLE_COUNT];
/** The kinds of blobs, in the order of their parents' tables. */
extern const struct cuda_blob cuda_blobs[CUDA_BLOB_COUNT];

/** @return row @p i of a table. */
void *cuda_row(const struct cudacore *c, enum cudacore_table table, uint32_t i);

/**
 * Encode all of a record but its strings.
 * @param to  Zeroed, of the size that the record has in that layout.
 */
void cuda_encode(const struct cuda_table *t, enum cudacore_layout layout, const void *row,
		 uint8_t *to);
/** Decode all of a record of @p size bytes but its strings, and set the row's age. */
void cuda_decode(const struct cuda_table *t, const uint8_t *from, size_t size, void *row);

#endif /* COREFILE_CUDA_LAYOUT_H */
