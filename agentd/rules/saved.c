/* SPDX-License-Identifier: MIT */
#include "agentd/rules/saved.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fd.h"

struct saved {
	struct config config;
	struct rules_ids ids;
	size_t n;
	struct rule list[]; /* plain values, as all of this */
};

int saved_write(const struct config *config, const struct rules_ids *ids, const struct rules *rules, int *ret_fd)
{
	size_t size = sizeof(struct saved) + rules->n * sizeof(rules->list[0]);
	auto_free struct saved *s = calloc(1, size);

	if (!s)
		return -ENOMEM;
	s->config = *config;
	s->ids = *ids;
	s->n = rules->n;
	if (rules->n)
		memcpy(s->list, rules->list, rules->n * sizeof(rules->list[0]));
	return fd_memfd_sealed("gpu-agent-rules", s, size, ret_fd);
}

static int take(const struct saved *s, size_t size, struct config *ret_config, struct rules_ids *ret_ids,
		struct rules *ret_rules)
{
	struct rule *list;

	if (size < sizeof(*s) || s->n > RULES_MAX || size != sizeof(*s) + s->n * sizeof(s->list[0]))
		return -EBADMSG;
	list = calloc(s->n + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	memcpy(list, s->list, s->n * sizeof(*list));
	*ret_config = s->config;
	*ret_ids = s->ids;
	*ret_rules = (struct rules){ .list = list, .n = s->n };
	return 0;
}

int saved_read(int fd, struct config *ret_config, struct rules_ids *ret_ids, struct rules *ret_rules)
{
	const void *data;
	size_t size;
	int r = fd_memfd_map(fd, sizeof(struct saved) + RULES_MAX * sizeof(struct rule), &data, &size);

	if (r < 0)
		return r;
	r = take(data, size, ret_config, ret_ids, ret_rules);
	fd_memfd_unmap(data, size);
	return r;
}
