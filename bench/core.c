/* SPDX-License-Identifier: MIT */
/* A core from standard input, a stream socket as core.write gives it, into a new file. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "corefile/stream.h"

int main(int argc, char **argv)
{
	struct corefile_stream_in *in;
	struct corefile_sink *sink;
	struct corefile_sink_options o = { .total = argc == 3 ? strtoull(argv[2], NULL, 10) : 0 };
	int fd = argc == 3 ? open(argv[1], O_WRONLY | O_CREAT | O_EXCL, 0600) : -1, r;

	if (fd < 0 || corefile_stream_in_create(0, o.total, &in) < 0 || corefile_sink_create(fd, &o, &sink) < 0) {
		fprintf(stderr, "usage: %s NEW-FILE BYTES <STREAM\n", argv[0]);
		return 2;
	}
	do
		r = corefile_stream_in_read(in, sink);
	while (r == 0);
	return r == 1 && corefile_sink_finish(sink) == 0 ? 0 : 1;
}
