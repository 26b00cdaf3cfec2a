/* SPDX-License-Identifier: MIT */
/*
 * Opens an AMDGPU core with AMD's debugger library and prints what it finds:
 *
 *	queue ID
 *	wave QUEUE WORKGROUP_X,Y,Z INDEX_IN_GROUP pc PC
 *	code BYTES (of the instruction at the pc; without this line it is not in the core)
 *	register NAME VALUE (hex bytes)
 *
 * Usage: dbgapi_core FILE [REGISTER]...  Not linked with anything of ours, the reading of ELF included.
 */
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct amd_dbgapi_client_process_s {
	const uint8_t *data;
	size_t size;
};

#include "dbgapi_client.h"

static struct amd_dbgapi_client_process_s core;
static amd_dbgapi_process_id_t process;
static int status;

static bool good(amd_dbgapi_status_t s, const char *call)
{
	if (s == AMD_DBGAPI_STATUS_SUCCESS)
		return true;
	fprintf(stderr, "%s: %d\n", call, (int)s);
	status = 1;
	return false;
}

#define GOOD(call, ...) good(amd_dbgapi_##call(__VA_ARGS__), #call)

static const Elf64_Phdr *header(unsigned i)
{
	const Elf64_Ehdr *e = (const void *)core.data;

	return i < e->e_phnum ? (const Elf64_Phdr *)(core.data + e->e_phoff) + i : NULL;
}

static bool find_note(const uint8_t **ret, size_t *ret_size)
{
	const Elf64_Phdr *p;

	for (unsigned i = 0; (p = header(i)); i++) {
		const uint8_t *at = core.data + p->p_offset, *end = at + p->p_filesz;

		while (p->p_type == PT_NOTE && at < end) {
			const Elf64_Nhdr *n = (const void *)at;
			const char *name = (const char *)(n + 1);
			const uint8_t *desc = (const uint8_t *)name + (n->n_namesz + 3) / 4 * 4;

			if (n->n_type == 33 && strcmp(name, "AMDGPU") == 0) {
				*ret = desc;
				*ret_size = n->n_descsz;
				return true;
			}
			at = desc + (n->n_descsz + 3) / 4 * 4;
		}
	}
	return false;
}

static amd_dbgapi_status_t process_info(amd_dbgapi_client_process_id_t p,
					amd_dbgapi_client_process_info_t query, size_t size, void *value)
{
	amd_dbgapi_core_state_data_t *state = value;
	const uint8_t *note;
	size_t note_size;

	if (query != AMD_DBGAPI_CLIENT_PROCESS_INFO_CORE_STATE || !find_note(&note, &note_size))
		return AMD_DBGAPI_STATUS_ERROR_NOT_AVAILABLE;
	if (size != sizeof(*state))
		return AMD_DBGAPI_STATUS_ERROR_INVALID_ARGUMENT_COMPATIBILITY;
	state->endianness = AMD_DBGAPI_ENDIAN_LITTLE;
	state->size = note_size;
	/* The library frees it. */
	state->data = memcpy(malloc(note_size), note, note_size);
	return AMD_DBGAPI_STATUS_SUCCESS;
}

static amd_dbgapi_status_t memory(amd_dbgapi_client_process_id_t c,
				  amd_dbgapi_global_address_t address, amd_dbgapi_size_t *size,
				  void *read_buffer, const void *write_buffer)
{
	const Elf64_Phdr *p;

	for (unsigned i = 0; read_buffer && (p = header(i)); i++)
		if (p->p_type == PT_LOAD && address >= p->p_vaddr &&
		    address - p->p_vaddr < p->p_filesz) {
			uint64_t left = p->p_filesz - (address - p->p_vaddr);

			*size = *size < left ? *size : left;
			memcpy(read_buffer, core.data + p->p_offset + (address - p->p_vaddr), *size);
			return AMD_DBGAPI_STATUS_SUCCESS;
		}
	return AMD_DBGAPI_STATUS_ERROR_MEMORY_ACCESS;
}

static amd_dbgapi_status_t breakpoint_insert(amd_dbgapi_client_process_id_t p,
					     amd_dbgapi_global_address_t address,
					     amd_dbgapi_breakpoint_id_t id)
{
	return AMD_DBGAPI_STATUS_SUCCESS;
}

static void print_register(amd_dbgapi_wave_id_t wave, amd_dbgapi_register_id_t id,
			   char *const *wanted)
{
	uint8_t value[4096];
	uint64_t size = 0;
	char *name = NULL;

	if (!GOOD(register_get_info, id, AMD_DBGAPI_REGISTER_INFO_NAME, sizeof(name), &name) ||
	    !GOOD(register_get_info, id, AMD_DBGAPI_REGISTER_INFO_SIZE, sizeof(size), &size))
		return;
	while (*wanted && strcmp(*wanted, name))
		wanted++;
	if (*wanted && size <= sizeof(value) && GOOD(read_register, wave, id, 0, size, value)) {
		printf("register %s ", name);
		for (uint64_t i = 0; i < size; i++)
			printf("%02x", value[i]);
		printf("\n");
	}
	free(name);
}

static void print_wave(amd_dbgapi_wave_id_t wave, char *const *wanted)
{
	uint64_t pc = 0, os_id = 0;
	uint32_t group[3] = { 0 }, in_group = 0, word;
	amd_dbgapi_size_t size = sizeof(word);
	amd_dbgapi_queue_id_t queue;
	amd_dbgapi_register_id_t *registers = NULL;
	size_t n = 0;

	GOOD(wave_get_info, wave, AMD_DBGAPI_WAVE_INFO_PC, sizeof(pc), &pc);
	GOOD(wave_get_info, wave, AMD_DBGAPI_WAVE_INFO_WORKGROUP_COORD, sizeof(group), group);
	GOOD(wave_get_info, wave, AMD_DBGAPI_WAVE_INFO_WAVE_NUMBER_IN_WORKGROUP, sizeof(in_group),
	     &in_group);
	if (GOOD(wave_get_info, wave, AMD_DBGAPI_WAVE_INFO_QUEUE, sizeof(queue), &queue))
		GOOD(queue_get_info, queue, AMD_DBGAPI_QUEUE_INFO_OS_ID, sizeof(os_id), &os_id);
	printf("wave %" PRIu64 " %u,%u,%u %u pc %#" PRIx64 "\n", os_id, group[0], group[1], group[2],
	       in_group, pc);
	if (amd_dbgapi_read_memory(process, wave, 0, AMD_DBGAPI_ADDRESS_SPACE_GLOBAL, pc, &size, &word) ==
	    AMD_DBGAPI_STATUS_SUCCESS)
		printf("code %" PRIu64 "\n", (uint64_t)size);
	if (*wanted && GOOD(wave_register_list, wave, &n, &registers))
		for (size_t i = 0; i < n; i++)
			print_register(wave, registers[i], wanted);
	free(registers);
}

/* A wave counts as stopped once its event was fetched. */
static void take_events(void)
{
	amd_dbgapi_event_kind_t kind;
	amd_dbgapi_event_id_t id;

	while (GOOD(process_next_pending_event, process, &id, &kind) &&
	       kind != AMD_DBGAPI_EVENT_KIND_NONE)
		GOOD(event_processed, id);
}

static void print_all(char *const *wanted)
{
	amd_dbgapi_queue_id_t *queues = NULL;
	amd_dbgapi_wave_id_t *waves = NULL;
	amd_dbgapi_code_object_id_t *objects = NULL;
	size_t n = 0;

	if (GOOD(process_queue_list, process, &n, &queues, NULL))
		for (size_t i = 0; i < n; i++) {
			uint64_t os_id = 0;

			GOOD(queue_get_info, queues[i], AMD_DBGAPI_QUEUE_INFO_OS_ID, sizeof(os_id), &os_id);
			printf("queue %" PRIu64 "\n", os_id);
		}
	if (GOOD(process_wave_list, process, &n, &waves, NULL))
		for (size_t i = 0; i < n; i++)
			print_wave(waves[i], wanted);
	if (GOOD(process_code_object_list, process, &n, &objects, NULL))
		printf("objects %zu\n", n);
	free(queues);
	free(waves);
	free(objects);
}

int main(int argc, char **argv)
{
	struct stat st;
	int fd = argc > 1 ? open(argv[1], O_RDONLY) : -1;

	if (fd < 0 || fstat(fd, &st) < 0)
		return 2;
	core.size = (size_t)st.st_size;
	core.data = mmap(NULL, core.size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (core.data == MAP_FAILED)
		return 2;
	amd_dbgapi_set_log_level(AMD_DBGAPI_LOG_LEVEL_WARNING);
	if (GOOD(initialize, &callbacks) && GOOD(process_attach, &core, &process)) {
		take_events();
		print_all(argv + 2);
		GOOD(process_detach, process);
	}
	return status;
}
