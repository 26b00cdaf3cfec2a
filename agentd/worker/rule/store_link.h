/* SPDX-License-Identifier: MIT */
#ifndef WORKER_RULE_STORE_LINK_H
#define WORKER_RULE_STORE_LINK_H

/**
 * @file store_link.h
 * Records about the target go to the store through a process of its own (gpu-agent-store): the
 * worker has the target's rights, and those do not reach the store.
 *
 * store_link_open(), then any number of store_link_send() and one store_link_receive() for each,
 * then close the descriptor.  The store sets user and process of a record itself.
 */

#include "agentd/worker/process/deadline.h"
#include "store/store.h"

struct ipc_added;
struct rpc_gpu_snapshot_result;
struct rpc_group;

/**
 * Ask for a process of the store.
 * @param ret_fd  Non-blocking; readable when an answer is there, at end of file without a store.
 * @return 0, or -errno.
 */
int store_link_open(const struct deadline *g, int *ret_fd);
/**
 * Hand over one record.
 * @param body_fd  Borrowed; read by the store to its end, from where it stands.  -1: no body.
 * @param body_bytes  What will come from there; with any other number it is not kept.
 * @return 0, -EFBIG (document), -EAGAIN, -EPIPE (no store), -errno.
 */
int store_link_send(int fd, const struct store_meta *m, const char *json, size_t size, int body_fd,
		    uint64_t body_bytes);
/** Take one answer.  @return 0, -EAGAIN (there is none yet), -EPIPE (no store), -EPROTO. */
int store_link_receive(int fd, struct ipc_added *ret);

/**
 * Fill in what a snapshot says about itself; the caller adds reason and rule.
 * @param g  The group that the record is about; NULL: none.
 */
void store_link_describe(struct store_meta *m, const struct rpc_gpu_snapshot_result *s,
			 const struct rpc_group *g);

/**
 * Store a snapshot, and wait for the answer.
 * @param fd  From store_link_open(), or -1; it stays open for the next record, and is -1 after a
 *            failure.
 * @param ret_id  Room for STORE_ID_SIZE bytes.
 * @return 0, -ETIMEDOUT, or what the store answered.
 */
int store_link_snapshot(const struct deadline *g, int *fd, const struct rpc_gpu_snapshot_result *s,
			const char *reason, uint32_t timeout_ms, char *ret_id);

#endif /* WORKER_RULE_STORE_LINK_H */
