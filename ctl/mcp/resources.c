/* SPDX-License-Identifier: MIT */
/* Documents that a client may read: snapshots that are kept, as JSON, and the guide. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "ctl/mcp/page.h"
#include "ctl/mcp/server.h"

#define GUIDE	    "gpu-agent://guide"
#define GUIDE_MAX   ((size_t)64 << 10)
#define SCHEME	    "gpu-agent://process/"
#define TEMPLATE    SCHEME "{pid}/snapshot/{id}{?offset}"
#define URI_SIZE    160
#define PAGE_BYTES  ((size_t)64 << 10)
#define LISTED_MAX  20

static void put_lifetime(struct out *o, enum revision revision)
{
	if (revision == REVISION_2026_07)
		out_json_fmt(o, ",'ttlMs':0,'cacheScope':'private'");
}

static void put_uri(struct out *o, const struct kept *k)
{
	char uri[URI_SIZE];

	snprintf(uri, sizeof(uri), SCHEME "%u/snapshot/%s", k->pid, k->name);
	out_json_fmt(o, "'uri':%s", uri);
}

void resources_list(struct server *s, const struct mcp_message *m, enum revision revision)
{
	auto_out struct out o = { 0 };
	size_t listed = 0;

	answer_begin(&o, m->id, revision);
	out_json_fmt(&o, ",'resources':[");
	if (s->options->guide && access(s->options->guide, R_OK) == 0)
		out_json_fmt(&o, "{'uri':'" GUIDE "','name':'guide','title':'How to find out why a GPU process hangs'"
				 ",'mimeType':'text/markdown'}");
	/* The newest first. */
	for (size_t i = s->keep.n; i-- && listed < LISTED_MAX;) {
		const struct kept *k = &s->keep.items[i];

		if (k->tool)
			continue;
		listed++;
		if (o.data[o.size - 1] == '}')
			out_char(&o, ',');
		out_char(&o, '{');
		put_uri(&o, k);
		out_json_fmt(&o, ",'name':%s,'mimeType':'application/json','size':%zu}", k->name, k->size);
	}
	out_json_fmt(&o, "]");
	put_lifetime(&o, revision);
	answer_end(s, &o, revision, NULL);
}

void resources_templates(struct server *s, const struct mcp_message *m, enum revision revision)
{
	auto_out struct out o = { 0 };

	answer_begin(&o, m->id, revision);
	out_json_fmt(&o, ",'resourceTemplates':[{'uriTemplate':%s,'name':'snapshot','mimeType':'application/json'"
			 ",'title':'A snapshot as JSON, in pieces of 64 KiB'}]", TEMPLATE);
	put_lifetime(&o, revision);
	answer_end(s, &o, revision, NULL);
}

static void send_text(struct server *s, const struct mcp_message *m, enum revision revision, const char *uri,
		      const char *type, const char *text, size_t size, const char *meta)
{
	auto_out struct out o = { 0 };

	answer_begin(&o, m->id, revision);
	out_json_fmt(&o, ",'contents':[{'uri':%s,'mimeType':%s,'text':", uri, type);
	out_json_str(&o, text, size);
	out_str(&o, "}]");
	put_lifetime(&o, revision);
	answer_end(s, &o, revision, meta);
}

static void refuse(struct server *s, const struct mcp_message *m, enum revision revision, const char *uri)
{
	auto_out struct out data = { 0 };

	out_json_fmt(&data, "{'uri':%s}", uri);
	answer_error_data(s, m->id, revision == REVISION_2026_07 ? MCP_INVALID_PARAMS : MCP_RESOURCE_NOT_FOUND,
			  "there is no such resource, or it is not kept any more", data.data);
}

/* The snapshot that a URI names.  @return it, or NULL. */
static const struct kept *find(struct server *s, const char *uri, uint64_t *ret_offset)
{
	char copy[URI_SIZE], *name, *query;
	const struct kept *k;
	uint64_t pid;

	*ret_offset = 0;
	if (!str_starts_with(uri, SCHEME))
		return NULL;
	str_copy(copy, sizeof(copy), uri + strlen(SCHEME));
	query = strstr(copy, "?offset=");
	if (query) {
		*query = '\0';
		if (str_to_u64(query + strlen("?offset="), 0, KEEP_BYTES_MAX, ret_offset) < 0)
			return NULL;
	}
	name = strstr(copy, "/snapshot/");
	if (!name)
		return NULL;
	*name = '\0';
	k = keep_find(&s->keep, name + strlen("/snapshot/"), clock_now_ns());
	if (!k || k->tool || str_to_u64(copy, 0, UINT32_MAX, &pid) < 0 || pid != k->pid || *ret_offset >= k->size)
		return NULL;
	return k;
}

static void read_snapshot(struct server *s, const struct mcp_message *m, enum revision revision, const char *uri)
{
	auto_out struct out meta = { 0 };
	const struct kept *k;
	uint64_t offset;
	size_t end;

	k = find(s, uri, &offset);
	if (!k) {
		refuse(s, m, revision, uri);
		return;
	}
	end = page_end(k->text, k->size, offset, PAGE_BYTES);
	out_json_fmt(&meta, "'gpu-agent/answer':{'truncated':%i", end < k->size);
	if (end < k->size)
		out_fmt(&meta, ",\"next\":\"" SCHEME "%u/snapshot/%s?offset=%zu\"", k->pid, k->name, end);
	out_char(&meta, '}');
	send_text(s, m, revision, uri, "application/json", k->text + offset, end - offset, meta.data);
}

static void read_guide(struct server *s, const struct mcp_message *m, enum revision revision)
{
	char *text;
	size_t size;

	if (!s->options->guide || fd_read_file(s->options->guide, GUIDE_MAX, &text, &size) < 0) {
		refuse(s, m, revision, GUIDE);
		return;
	}
	send_text(s, m, revision, GUIDE, "text/markdown", text, size, NULL);
	free(text);
}

void resources_read(struct server *s, const struct mcp_message *m, enum revision revision)
{
	char uri[URI_SIZE];

	if (!dap_json_str(dap_json_get(m->params, "uri"), uri, sizeof(uri)))
		answer_error(s, m->id, MCP_INVALID_PARAMS, "params has no uri, or one that names nothing here");
	else if (!strcmp(uri, GUIDE))
		read_guide(s, m, revision);
	else
		read_snapshot(s, m, revision, uri);
}
