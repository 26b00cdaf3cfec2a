/* SPDX-License-Identifier: MIT */
#ifndef CTL_JOB_PODS_H
#define CTL_JOB_PODS_H

/** @file pods.h  Reads what kubectl prints of pods, and which pod a process belongs to. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PODS_MAX 16384 /**< Most pods of a job. */

/** What kubectl is to print: a pod a line, its members separated by tabs. */
#define PODS_FORMAT                                                                                                    \
	"jsonpath={range .items[*]}{.metadata.uid}{\"\\t\"}{.metadata.name}{\"\\t\"}{.spec.nodeName}{\"\\t\"}"         \
	"{.status.phase}{\"\\n\"}{end}"

/** A pod; its words are in the text that was read. */
struct pod {
	const char *uid, *name;
	const char *node;  /**< "" before it is scheduled. */
	const char *phase; /**< Pending, Running, Succeeded, Failed, Unknown. */
};

/**
 * Read such lines.
 * @param text  Has a NUL at text[size]; is cut into words.
 * @param ret   Room for @p room pods.
 * @return 0; -EINVAL when a line is none of them, -EFBIG.
 */
int pods_parse(char *text, size_t size, struct pod *ret, size_t room, size_t *ret_n);

/** Whether that may be the UID of a pod: digits of hex in groups, and nothing that is anything to another program. */
bool pods_is_uid(const char *uid);

/**
 * Whether a process is of a pod.
 * @param cgroup  What /proc/PID/cgroup says: the kubelet makes a group for each pod, with its UID in the name, in which
 *                systemd wants `_` where the UID has `-`.
 */
bool pods_has_process(const char *uid, const char *cgroup, size_t size);

/** Read /proc/PID/cgroup.  @param ret  To be freed.  @return 0, -errno: -ENOENT or -ESRCH for one that has ended. */
int pods_read_cgroup(uint32_t pid, char **ret, size_t *ret_size);

#endif /* CTL_JOB_PODS_H */
