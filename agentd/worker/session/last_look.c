/* SPDX-License-Identifier: MIT */
#include "agentd/worker/session/last_look.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/out.h"
#include "protocol/rpc_codec.h"

#define TEXT_BYTES_MAX ((size_t)4 << 20)

struct last_look {
	uint64_t at_ns;
	struct out text; /* The members of a snapshot point into its arena: so they are kept as text. */
};

void last_look_free(struct last_look *l)
{
	if (l)
		out_deinit(&l->text);
	free(l);
}

void last_look_keep(struct last_look **l, const struct rpc_gpu_snapshot_result *seen)
{
	const struct rpc_last_look v = { .wave_count = seen->wave_count,
					 .groups = seen->groups,
					 .n_groups = seen->n_groups };

	last_look_free(*l);
	*l = malloc(sizeof(**l));
	if (!*l)
		return;
	(*l)->at_ns = clock_now_ns();
	out_init(&(*l)->text, TEXT_BYTES_MAX);
	rpc_last_look_encode(&(*l)->text, &v);
	if (out_error(&(*l)->text)) {
		last_look_free(*l);
		*l = NULL;
	}
}

bool last_look_tell(const struct last_look *l, struct rpc_arena *a, struct rpc_last_look *ret)
{
	struct json_object *json = NULL;
	struct rpc_decoder d;
	int r = l ? rpc_json_parse(l->text.data, l->text.size, &json, NULL) : -ENOENT;

	rpc_decoder_init_lenient(&d, "last_look", a, NULL);
	if (r == 0)
		r = rpc_last_look_decode(&d, json, ret);
	rpc_json_put(json);
	if (r < 0)
		return false;
	ret->age_ms = (clock_now_ns() - l->at_ns) / 1000000;
	return true;
}
