/* SPDX-License-Identifier: MIT */
#include "fuzzlib.h"

#include <stdlib.h>
#include <string.h>

#include "base/out.h"
#include "protocol/rpc_format.h"

/* Indenting and squeezing again gives what squeezing gave at once. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_out struct out compact, pretty, again;

	out_init(&compact, 0);
	out_init(&pretty, 0);
	out_init(&again, 0);
	if (rpc_format(&compact, (const char *)data, size, RPC_FORMAT_SHORT) < 0)
		return 0;
	if (rpc_format(&pretty, (const char *)data, size, RPC_FORMAT_PRETTY) < 0 ||
	    rpc_format(&again, pretty.data, pretty.size, RPC_FORMAT_SHORT) < 0 ||
	    again.size != compact.size || memcmp(again.data, compact.data, again.size))
		abort();
	return 0;
}
