/* SPDX-License-Identifier: MIT */
#ifndef MANAGER_NOTIFY_H
#define MANAGER_NOTIFY_H

/** @file notify.h  systemd's service protocol: sd_notify(3) datagrams and sd_listen_fds(3). */

#include <stdint.h>

/** Take NOTIFY_SOCKET and WATCHDOG_* out of the environment.  Silent when there is no manager. */
void notify_init(void);
/** Send lines such as "READY=1"; failures have nowhere to go. */
void notify_send(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/** Interval at which "WATCHDOG=1" is due, in ms; 0 when the manager does not watch. */
uint32_t notify_watchdog_ms(void);

/**
 * Listening socket handed over by the manager.
 * @param ret_fd  -1 when there is none.
 * @return 0, -EINVAL (more than one, or not a listening Unix stream socket).
 */
int notify_listen_fd(int *ret_fd);

#endif /* MANAGER_NOTIFY_H */
