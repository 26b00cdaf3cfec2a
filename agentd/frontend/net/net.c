/* SPDX-License-Identifier: MIT */
#include "agentd/frontend/net/net.h"

#include <event2/event.h>

void net_start_idle_timer(struct net *net)
{
	const struct timeval tv = { .tv_sec = net->idle_ms / 1000,
				    .tv_usec = (net->idle_ms % 1000) * 1000 };

	if (net->idle_ms && !net->n_conns && !net->idle && !net->stays)
		event_add(net->idle_timer, &tv);
}

void net_update_idle(struct net *net)
{
	event_del(net->idle_timer);
	net_start_idle_timer(net);
}
