/* SPDX-License-Identifier: MIT */
#include "agentd/options.h"

struct options options;

const struct argv_option options_table[] = {
	{ "user", 0, ARGV_FLAG, &options.user, NULL, "run without privileges, for this user's processes" },
	{ "socket", 0, ARGV_STRING, &options.socket, "PATH", "listen there" },
	{ "config", 0, ARGV_STRING, &options.config, "FILE", "read only this configuration file" },
	{ "check-config", 0, ARGV_FLAG, &options.check_config, NULL, "check the configuration and exit" },
	{ "dump-config", 0, ARGV_FLAG, &options.dump_config, NULL, "print every setting and its origin, and exit" },
	{ "kfd", 0, ARGV_STRING, &options.kfd, "PATH", "KFD device (default /dev/kfd)" },
	{ "kfd-sysfs", 0, ARGV_STRING, &options.kfd_sysfs, "DIR", "KFD topology (default /sys/class/kfd/kfd)" },
	{ "cuda-library", 0, ARGV_STRING, &options.cuda_library, "PATH", "CUDA driver (default libcuda.so.1)" },
	{ "store", 0, ARGV_STRING, &options.store, "DIR", "keep records there" },
	{ "idle-exit", 0, ARGV_STRING, &options.idle_exit, "TIME", "exit after TIME without a connection" },
	{ "permissive", 0, ARGV_FLAG, &options.permissive, NULL, "log what NVIDIA's library may not call, and let it" },
	{ "verbose", 'v', ARGV_FLAG, &options.verbose, NULL, "log more" },
	{ "version", 0, ARGV_FLAG, &options.version, NULL, "print the version and exit" },
	{ "help", 'h', ARGV_FLAG, &options.help, NULL, "print this help and exit" },
	{ 0 },
};
