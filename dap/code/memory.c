/* SPDX-License-Identifier: MIT */
/* Bytes: readMemory, and what other requests read of the process. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/str.h"
#include "dap/adapter.h"

int dap_memory_reference(struct dap_json args, uint64_t *ret, struct agent_err *err)
{
	char text[32];
	int64_t offset = 0;
	struct dap_json at = dap_json_get(args, "offset");

	if (!dap_json_str(dap_json_get(args, "memoryReference"), text, sizeof(text)) ||
	    str_to_u64_any(text, ret) < 0)
		return dap_invalid(err, "memoryReference: must be an address such as \"0x7f00\"");
	if (dap_json_has(at) && !dap_json_i64(at, &offset))
		return dap_invalid(err, "offset: must be a whole number");
	/* An offset may be negative; addresses wrap. */
	*ret += (uint64_t)offset;
	return 0;
}

int dap_count_arg(struct dap_json args, const char *name, int64_t min, int64_t max, int64_t *ret,
		  struct agent_err *err)
{
	if (!dap_json_i64(dap_json_get(args, name), ret) || *ret < min || *ret > max)
		return dap_invalid(err, "%s: must be between %" PRId64 " and %" PRId64, name, min,
				   max);
	return 0;
}

/* ------------------------------------------------------------------ bytes -------------------- */

int dap_memory_get(struct dap *d, const struct rpc_memory_read_params *p, uint8_t **ret_data,
		   size_t *ret_size, struct agent_err *err)
{
	struct rpc_memory_read_result result;
	int r = rpc_client_memory_read(d->client, p, &d->arena, &result, err);

	if (r < 0)
		return r;
	/* What is longer than was asked for is not the answer. */
	*ret_size = result.size < p->size ? result.size : p->size;
	return rpc_client_bytes(result.data, *ret_size, "memory.read", &d->arena, ret_data, err);
}

bool dap_is_unreadable(const struct agent_err *err)
{
	return err->code == RPC_ERROR_FAILED && err->err == EFAULT;
}

int dap_read_memory(struct dap *d, const struct dap_request *q, struct dap_answer *ret)
{
	struct rpc_memory_read_params p = { .session = d->session };
	struct rpc_memory_read_result result = { 0 };
	int64_t count;
	int r = dap_memory_reference(q->args, &p.address, &ret->err);

	if (r == 0)
		r = dap_count_arg(q->args, "count", 0, DAP_MEMORY_MAX, &count, &ret->err);
	if (r < 0)
		return r;
	p.size = (uint32_t)count;
	if (count)
		r = rpc_client_memory_read(d->client, &p, &d->arena, &result, &ret->err);
	/* Memory that is not there is an answer, not a failure. */
	if (r < 0 && !dap_is_unreadable(&ret->err))
		return r;
	out_json_fmt(&ret->body, "{'address':%" PRIx64, p.address);
	if (r == 0 && result.size)
		out_json_fmt(&ret->body, ",'data':%s", result.data);
	if (count > result.size)
		out_json_fmt(&ret->body, ",'unreadableBytes':%" PRId64, count - result.size);
	out_char(&ret->body, '}');
	return 0;
}
