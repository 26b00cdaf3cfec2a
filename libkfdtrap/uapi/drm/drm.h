/* SPDX-License-Identifier: MIT */
/*
 * Debian's linux-libc-dev ships <linux/kfd_ioctl.h> but not the <drm/drm.h> it includes, which
 * libdrm-dev has elsewhere.  Only test_kfdtrap_abi searches this directory, and it last of all.
 */
#include <libdrm/drm.h>
