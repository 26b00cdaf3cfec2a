/* SPDX-License-Identifier: MIT */
/* What /dev/kfd must answer: the acceptance list and the measured tables. */
#include "testlib.h"

#define CONFORMANCE_TESTS(X)                                                                       \
	X(acc01_ladder_order)                                                                      \
	X(acc02_outputs_change_on_failure)                                                         \
	X(acc03_enable_and_disable_twice)                                                          \
	X(acc04_old_events_and_the_notification_byte)                                              \
	X(acc05_query_order_and_companions)                                                        \
	X(acc06_new_queue_is_not_suspendable)                                                      \
	X(acc07_suspend_and_resume_counts)                                                         \
	X(acc08_hws_and_mes_failures)                                                              \
	X(acc09_snapshot_strides)                                                                  \
	X(acc10_launch_override)                                                                   \
	X(acc11_flags_and_launch_mode)                                                             \
	X(acc12_watch_points)                                                                      \
	X(acc13_handshake)                                                                         \
	X(acc14_memory_violation)                                                                  \
	X(acc15_ends_of_processes)                                                                 \
	X(acc16_destroy_waits_for_resume)                                                          \
	X(acc17_permission_generations)                                                            \
	X(acc18_version_profiles)

#define DECLARE(name) void name(void);
#define LIST(name)    TEST(name),

CONFORMANCE_TESTS(DECLARE)

TEST_SUITE(conformance, CONFORMANCE_TESTS(LIST));
