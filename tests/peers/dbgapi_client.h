/* SPDX-License-Identifier: MIT */
#ifndef PEERS_DBGAPI_CLIENT_H
#define PEERS_DBGAPI_CLIENT_H

/**
 * @file dbgapi_client.h
 * What clients of AMD's debugger library answer alike.  Include it once, behind the definition of
 * struct amd_dbgapi_client_process_s; process_info(), breakpoint_insert() and memory() are the
 * client's own.
 */

#include <amd-dbgapi/amd-dbgapi.h>

#include <stdio.h>
#include <stdlib.h>

static amd_dbgapi_status_t process_info(amd_dbgapi_client_process_id_t p,
					amd_dbgapi_client_process_info_t query, size_t size, void *value);
static amd_dbgapi_status_t breakpoint_insert(amd_dbgapi_client_process_id_t p,
					     amd_dbgapi_global_address_t address,
					     amd_dbgapi_breakpoint_id_t id);
static amd_dbgapi_status_t memory(amd_dbgapi_client_process_id_t p,
				  amd_dbgapi_global_address_t address, amd_dbgapi_size_t *size,
				  void *read_buffer, const void *write_buffer);

static amd_dbgapi_status_t breakpoint_remove(amd_dbgapi_client_process_id_t p,
					     amd_dbgapi_breakpoint_id_t id)
{
	return AMD_DBGAPI_STATUS_SUCCESS;
}

static void message(amd_dbgapi_log_level_t level, const char *text)
{
	fprintf(stderr, "dbgapi %d: %s\n", (int)level, text);
}

static amd_dbgapi_callbacks_t callbacks = {
	.allocate_memory = malloc,
	.deallocate_memory = free,
	.client_process_get_info = process_info,
	.insert_breakpoint = breakpoint_insert,
	.remove_breakpoint = breakpoint_remove,
	.xfer_global_memory = memory,
	.log_message = message,
};

#endif /* PEERS_DBGAPI_CLIENT_H */
