/* SPDX-License-Identifier: MIT */
/* Handles, the way into the kernel, and the commands that begin, end and steer a session. */
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

static int real_ioctl(int fd, unsigned long req, void *arg)
{
	return ioctl(fd, req, arg);
}

static const struct kfdtrap_sys real_sys = { .ioctl = real_ioctl };

/*
 * Errno values of the checks in front of every command (kfd_chardev.c:kfd_ioctl_set_debug_trap()).
 */
static const int common_errnos[] = {
	EBADF,	ENOTTY, EOPNOTSUPP, ESRCH, EPERM, EINVAL, EBUSY, EFAULT, EINTR, ENOMEM, EIO, 0,
};

const int trap_errnos_none[] = { 0 };
const int trap_errnos_hardware[] = { EACCES, ENODEV, ETIME, 0 };

/*
 * Issue a KFD command; an interrupted one is repeated with its original argument.
 * @return the kernel's positive result, or -errno as it is.
 */
static int kfd_call(const struct kfdtrap_sys *sys, int kfd_fd, uint32_t req, void *arg, size_t size)
{
	unsigned char original[sizeof(struct kfdabi_dbg_args)];
	int r;

	/*
	 * The kernel copies the argument back even when it fails, so a repetition needs the
	 * original.
	 */
	memcpy(original, arg, size);
	for (unsigned int i = 0; i < KFD_INTR_MAX; i++) {
		r = sys->ioctl(kfd_fd, req, arg);
		if (r >= 0)
			return r;
		if (errno != EINTR)
			return errno > 0 ? -errno : -EIO;
		memcpy(arg, original, size);
	}
	return -EINTR;
}

static bool errno_is_listed(const int *list, int code)
{
	for (; *list; list++)
		if (*list == code)
			return true;
	return false;
}

int trap_call(const struct kfdtrap *kt, uint32_t op, struct kfdabi_dbg_args *args,
	      const int *errnos)
{
	int r;

	args->pid = op == KFDABI_DBG_ENABLE && kt->enable_by ? kt->enable_by : kt->pid;
	args->op = op;
	r = kfd_call(kt->sys, kt->kfd_fd, KFDABI_IOC_DBG_TRAP, args, sizeof(*args));
	if (r >= 0 || errno_is_listed(common_errnos, -r) || errno_is_listed(errnos, -r))
		return r;
	return -EIO;
}

int kfdtrap_get_version(int kfd_fd, const struct kfdtrap_sys *sys, uint32_t *ret_major,
			uint32_t *ret_minor)
{
	struct kfdabi_get_version_args args = { 0 };
	int r;

	r = kfd_call(sys ? sys : &real_sys, kfd_fd, KFDABI_IOC_GET_VERSION, &args, sizeof(args));
	if (r == -EBADF || r == -ENOTTY || r == -EFAULT || r == -EINTR)
		return r;
	if (r < 0)
		return -EIO;
	*ret_major = args.major_version;
	*ret_minor = args.minor_version;
	return 0;
}

int kfdtrap_create(int kfd_fd, uint32_t pid, const struct kfdtrap_sys *sys, struct kfdtrap **ret_kt)
{
	struct kfdtrap *kt;

	if (kfd_fd < 0)
		return -EBADF;
	if (pid == 0)
		return -EINVAL;
	kt = malloc(sizeof(*kt));
	if (!kt)
		return -ENOMEM;
	*kt = (struct kfdtrap){ .sys = sys ? sys : &real_sys, .kfd_fd = kfd_fd, .pid = pid };
	*ret_kt = kt;
	return 0;
}

void kfdtrap_destroy(struct kfdtrap *kt)
{
	free(kt);
}

void kfdtrap_enable_by(struct kfdtrap *kt, uint32_t tid)
{
	kt->enable_by = tid;
}

int kfdtrap_enable(struct kfdtrap *kt, uint64_t exceptions, int dbg_fd,
		   struct kfdtrap_runtime_info *ret_info)
{
	static const int errnos[] = { EALREADY, ENODEV, 0 };
	struct kfdabi_runtime_info info = { 0 };
	struct kfdabi_dbg_args args = {
		.enable = {
			.exception_mask = exceptions,
			.rinfo_ptr = trap_ptr(&info),
			.rinfo_size = sizeof(info),
			.dbg_fd = (uint32_t)dbg_fd,
		},
	};
	int r;

	r = trap_call(kt, KFDABI_DBG_ENABLE, &args, errnos);
	if (r >= 0 && args.enable.rinfo_size < sizeof(info))
		r = -EPROTO;
	/* Kernels before 6.12.111 fail with EFAULT but leave the session on. */
	if (r == -EFAULT || r == -EPROTO)
		kfdtrap_disable(kt);
	if (r < 0)
		return r;
	*ret_info = (struct kfdtrap_runtime_info){
		.r_debug = info.r_debug,
		.state = info.runtime_state,
		.ttmp_setup = info.ttmp_setup,
	};
	return 0;
}

int kfdtrap_attach(struct kfdtrap *kt, uint64_t exceptions, int dbg_fd,
		   struct kfdtrap_runtime_info *ret_info)
{
	struct kfdtrap_event event;
	int r = kfdtrap_query_debug_event(kt, 0, &event);

	if (r >= 0)
		return -EALREADY;
	/*
	 * EINVAL means that there is no session, as it should be.  ENABLE repeats the other
	 * refusals.
	 */
	if (r == -ESRCH)
		return r;
	r = kfdtrap_enable(kt, exceptions, dbg_fd, ret_info);
	/*
	 * A session has begun since it was asked for.  The kernel has made this process the one that it belongs to, but
	 * does not end it with this process: its end would then write into memory that has been freed.
	 */
	if (r != -EALREADY)
		return r;
	kfdtrap_disable(kt);
	return -EAGAIN;
}

int kfdtrap_disable(struct kfdtrap *kt)
{
	struct kfdabi_dbg_args args = { 0 };
	int r = trap_call(kt, KFDABI_DBG_DISABLE, &args, trap_errnos_none);

	return r < 0 ? r : 0;
}

int kfdtrap_send_runtime_event(struct kfdtrap *kt, uint64_t exceptions, uint32_t gpu_id,
			       uint32_t queue_id)
{
	static const int errnos[] = { ENODEV, 0 };
	struct kfdabi_dbg_args args = {
		.send_runtime_event = {
			.exception_mask = exceptions,
			.gpu_id = gpu_id,
			.queue_id = queue_id,
		},
	};
	int r = trap_call(kt, KFDABI_DBG_SEND_RUNTIME_EVENT, &args, errnos);

	return r < 0 ? r : 0;
}

int kfdtrap_set_exceptions_enabled(struct kfdtrap *kt, uint64_t exceptions)
{
	struct kfdabi_dbg_args args = {
		.set_exceptions_enabled.exception_mask = exceptions,
	};
	int r = trap_call(kt, KFDABI_DBG_SET_EXCEPTIONS_ENABLED, &args, trap_errnos_none);

	return r < 0 ? r : 0;
}
