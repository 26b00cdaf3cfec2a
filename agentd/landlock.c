/* SPDX-License-Identifier: MIT */
#include "agentd/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

/*
 * From include/uapi/linux/landlock.h of Linux 6.12: older headers lack the newer rights and members.
 * The kernel takes a longer struct than it knows if the rest is zero.
 */
struct ruleset {
	uint64_t fs, net, scoped;
};

#define FS_VERSION_1 ((UINT64_C(1) << 13) - 1)
#define FS_REFER     (UINT64_C(1) << 13)
#define FS_TRUNCATE  (UINT64_C(1) << 14)
#define FS_IOCTL_DEV (UINT64_C(1) << 15)
#define FS_READ	     (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
/* What a directory of records needs; neither devices nor sockets, and no program. */
#define FS_KEEP                                                                                                     \
	(FS_READ | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG | \
	 FS_REFER | FS_TRUNCATE)
#define NET_TCP	     UINT64_C(3) /* bind and connect */
#define SCOPE_SOCKET UINT64_C(1) /* abstract Unix sockets */
#define SCOPE_SIGNAL UINT64_C(2)
#define SCOPE_ALL    (SCOPE_SOCKET | SCOPE_SIGNAL)

/* What each version brought: Documentation/userspace-api/landlock.rst. */
static const struct {
	int version;
	struct ruleset brings;
} versions[] = {
	{ 1, { .fs = FS_VERSION_1 } }, { 2, { .fs = FS_REFER } },     { 3, { .fs = FS_TRUNCATE } },
	{ 4, { .net = NET_TCP } },     { 5, { .fs = FS_IOCTL_DEV } }, { 6, { .scoped = SCOPE_ALL } },
};

int landlock_version(void)
{
	int n = (int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	return n < 0 ? 0 : n;
}

static struct ruleset handled_by(int version, uint64_t scopes)
{
	struct ruleset all = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(versions); i++)
		if (versions[i].version <= version) {
			all.fs |= versions[i].brings.fs;
			all.net |= versions[i].brings.net;
			all.scoped |= versions[i].brings.scoped & scopes;
		}
	return all;
}

/*
 * Some vendors' kernels tell a version whose rights they do not all have: an older one is tried.
 * @param ret  What the rules may name.
 * @return a descriptor, -ENOENT (the kernel has no Landlock), other -errno.
 */
static int create(uint64_t scopes, struct ruleset *ret)
{
	for (int version = landlock_version(); version > 0; version--) {
		int fd;

		*ret = handled_by(version, scopes);
		fd = (int)syscall(SYS_landlock_create_ruleset, ret, sizeof(*ret), 0);
		if (fd >= 0)
			return fd;
		if (errno != EINVAL && errno != E2BIG)
			return -errno;
	}
	return -ENOENT;
}

/* @param dir_fd  -1: there is nothing to allow. */
static int allow(int ruleset_fd, int dir_fd, uint64_t may)
{
	const struct landlock_path_beneath_attr beneath = { .parent_fd = dir_fd, .allowed_access = may };

	if (dir_fd < 0)
		return 0;
	return syscall(SYS_landlock_add_rule, ruleset_fd, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0) < 0 ? -errno
												       : 0;
}

#ifdef __SANITIZE_ADDRESS__
/* The sanitizer's leak check at exit reads /proc/self. */
static int open_runtime(void)
{
	return open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
}
#else
static int open_runtime(void)
{
	return -1;
}
#endif

/* @param dir_fd  -1: @p may is allowed nowhere. */
static int confine(int dir_fd, uint64_t may, uint64_t scopes)
{
	auto_close int runtime = open_runtime();
	struct ruleset handled;
	auto_close int fd = create(scopes, &handled);
	int r;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	r = allow(fd, dir_fd, may & handled.fs);
	if (r == 0)
		r = allow(fd, runtime, FS_READ);
	if (r < 0)
		return r;
	return syscall(SYS_landlock_restrict_self, fd, 0) < 0 ? -errno : 0;
}

int landlock_read_only(void)
{
	auto_close int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	return root < 0 ? -errno : confine(root, FS_READ, SCOPE_ALL);
}

int landlock_keep_beneath(int dir_fd)
{
	return confine(dir_fd, FS_KEEP, SCOPE_ALL);
}

int landlock_forbid_files(void)
{
	return confine(-1, 0, SCOPE_SIGNAL);
}
