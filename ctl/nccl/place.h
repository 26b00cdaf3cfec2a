/* SPDX-License-Identifier: MIT */
#ifndef CTL_NCCL_PLACE_H
#define CTL_NCCL_PLACE_H

/** @file place.h  Where a process has the status socket of NCCL, and what it calls itself there. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct agent_err;

#define NCCL_TEXT_MAX 80 /**< Bytes of an address as text, with its NUL. */

/** An address that can be connected to: localhost is two of them. */
struct nccl_address {
	struct sockaddr_storage list[2];
	size_t n;
	char text[NCCL_TEXT_MAX]; /**< As it was given. */
};

struct nccl_place {
	struct nccl_address address;
	uint32_t pid;  /**< The process, as it numbers itself: in the innermost of its namespaces. */
	int net_fd;    /**< Its network namespace; -1: that of this program. */
};

/**
 * Read what NCCL takes for an address: `localhost:28028`, `10.0.0.7:4000`, `[fe80::1]:4000`.  Other names are refused:
 * to look one up may take long, and leaves the machine.
 * @return 0, -EINVAL.
 */
int nccl_address_parse(const char *text, size_t size, struct nccl_address *ret);

/**
 * Find a variable in what /proc/PID/environ has.
 * @return its value, of *ret_size bytes and without a NUL that is sure to be there; NULL when it is not set.
 */
const char *nccl_environ_find(const char *text, size_t size, const char *name, size_t *ret_size);

/** Find what a process calls itself in what /proc/PID/status has.  @return 0, -EINVAL. */
int nccl_status_pid(const char *text, size_t size, uint32_t *ret);

/**
 * Find the socket of a process.
 * @param proc_fd  /proc/PID, opened: it leads to no other process once this one has ended.
 * @param ret      Release with nccl_place_deinit().
 * @return 0, or negative with @p err.
 */
int nccl_place_find(int proc_fd, struct nccl_place *ret, struct agent_err *err);
void nccl_place_deinit(struct nccl_place *p);

#endif /* CTL_NCCL_PLACE_H */
