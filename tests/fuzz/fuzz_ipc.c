/* SPDX-License-Identifier: MIT */
/* A message from a process that has been taken over. */
#include <sys/socket.h>
#include <unistd.h>

#include "agentd/ipc/link.h"
#include "base/fd.h"
#include "fuzzlib.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ipc_message m;
	struct ipc_link l;
	int pair[2];

	if (fd_socketpair(SOCK_NONBLOCK, pair) < 0)
		return 0;
	ipc_link_init(&l, pair[0]);
	if (fd_send(pair[1], data, size, NULL, 0) >= 0 && ipc_link_recv(&l, &m) == 1)
		ipc_message_deinit(&m);
	ipc_link_deinit(&l);
	close(pair[1]);
	return 0;
}
