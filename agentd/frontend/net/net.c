/* SPDX-License-Identifier: MIT */
#include "agentd/frontend/net/net.h"

#include <event2/event.h>

void net_accept(struct net *net)
{
	if (!net->idle && !event_pending(net->accept_event, EV_READ, NULL))
		event_add(net->accept_event, NULL);
}

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
