/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ctl/job/pods.h"
#include "testlib.h"

#define UID_A "0a1b2c3d-1111-2222-3333-444455556666"

static int parse(const char *text, struct pod *ret, size_t room, size_t *ret_n)
{
	static char copy[512];

	snprintf(copy, sizeof(copy), "%s", text);
	return pods_parse(copy, strlen(copy), ret, room, ret_n);
}

static void reads_pods(void)
{
	struct pod list[3];
	size_t n;

	TEST_EQ_FATAL(parse(UID_A "\ttrain-0\tgpu07\tRunning\n77\ttrain-1\t\tPending\n", list, 3, &n), 0);
	TEST_EQ_FATAL(n, 2);
	TEST_STR(list[0].uid, UID_A);
	TEST_STR(list[0].name, "train-0");
	TEST_STR(list[0].node, "gpu07");
	TEST_STR(list[1].node, "");
	TEST_STR(list[1].phase, "Pending");
	TEST_EQ(parse("", list, 3, &n), 0);
	TEST_EQ(n, 0);
	/* The end of the last line may be missing. */
	TEST_EQ(parse("77\ta\tn\tRunning", list, 3, &n), 0);
	TEST_EQ(parse("77\ta\tn\tRunning\n78\tb\tn\tRunning\n", list, 1, &n), -EFBIG);
}

static void refuses_what_is_no_pod(void)
{
	static const char *const bad[] = { "77\ta\tn\n", "77\ta\tn\tRunning\tx\n", "\n", "\ta\tn\tRunning\n", "77\t\tn\tRunning\n",
					   "77\t-a\tn\tRunning\n", "77\ta\t--all\tRunning\n", "77\ta b\tn\tRunning\n",
					   "-7\ta\tn\tRunning\n", "77\ta\tn\tRun ning\n", "No resources found\n" };
	struct pod list[3];
	size_t n;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		TEST_EQ(parse(bad[i], list, 3, &n), -EINVAL);
	TEST_EQ(pods_parse((char[]){ '7', 0, '7', 0 }, 3, list, 3, &n), -EINVAL);
}

static bool has(const char *uid, const char *cgroup)
{
	return pods_has_process(uid, cgroup, strlen(cgroup));
}

/* As drivers of container runtimes make them, and as they are seen from within another container's group. */
static void finds_the_pod_of_a_process(void)
{
	TEST_EQ(has(UID_A, "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0a1b2c3d_1111_2222_3333_444455556666"
			     ".slice/cri-containerd-0123.scope\n"), true);
	TEST_EQ(has(UID_A, "0::/kubepods.slice/kubepods-pod0a1b2c3d_1111_2222_3333_444455556666.slice/crio-01.scope\n"), true);
	TEST_EQ(has(UID_A, "12:memory:/kubepods/besteffort/pod" UID_A "/0123\n0::/\n"), true);
	TEST_EQ(has(UID_A, "0::/../../pod" UID_A "/0123\n"), true);
	TEST_EQ(has(UID_A, "0::/../pod" UID_A), true);
	TEST_EQ(has(UID_A, "0::/kubepods/pod" UID_A "7/0123\n"), false);
	TEST_EQ(has(UID_A, "0::/kubepods/pod" UID_A "-7/0123\n"), false);
	TEST_EQ(has(UID_A, "0::/kubepods/xpod" UID_A "/0123\n"), false);
	TEST_EQ(has(UID_A, "0::/kubepods/pod0a1b2c3d\n"), false);
	TEST_EQ(has(UID_A, "0::/user.slice\n"), false);
	TEST_EQ(has(UID_A, ""), false);
}

static void knows_uids(void)
{
	TEST_EQ(pods_is_uid(UID_A), true);
	TEST_EQ(pods_is_uid(""), false);
	TEST_EQ(pods_is_uid("-1"), false);
	TEST_EQ(pods_is_uid("abc/def"), false);
	TEST_EQ(pods_is_uid("xyz"), false);
}

TEST_SUITE(ctl_pods, TEST(reads_pods), TEST(refuses_what_is_no_pod), TEST(finds_the_pod_of_a_process),
	   TEST(knows_uids));
