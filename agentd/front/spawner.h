/* SPDX-License-Identifier: MIT */
#ifndef FRONT_SPAWNER_H
#define FRONT_SPAWNER_H

/** @file spawner.h  front's end of the socket pair to spawn. */

#include "agentd/front/request.h"

int spawner_init(struct front *f, int spawn_fd);
/** Drop what waits for spawn; the clients are gone already. */
void spawner_deinit(struct front *f);
/** Ask for a worker on behalf of @p r; the answer goes to the request's method. */
void spawner_start(struct request *r, enum ipc_kind kind, uint32_t timeout_ms);
/** Once more, when another session has ended: in what is left of the time. */
void spawner_start_again(struct request *r);
/**
 * Ask about hooks; hooks_answered() gets the answer.
 * @param document_fd  For a test, or -1; borrowed.
 * @return 0, -EBUSY (enough are asked for).
 */
int spawner_ask_hooks(struct request *r, const char *rule, uint32_t uid, int document_fd);
void spawner_note(struct front *f, enum ipc_note_kind kind, uint32_t value);
/** Ask for a process that closes @p fd, which is kept until closing_received() hears of it. */
void spawner_drop(struct front *f, int fd, uid_t uid);
/** Tell spawn the figures for the service status. */
void spawner_status(struct front *f);

#endif /* FRONT_SPAWNER_H */
