/* SPDX-License-Identifier: MIT */
/* What /dev/kfd must answer: the acceptance list and the measured tables. */
#include "testlib.h"

#define CONFORMANCE_TESTS(X)									\
	X(acc01_ladder_order)									\
	X(acc02_outputs_change_on_failure)							\
	X(acc03_enable_and_disable_twice)							\
	X(acc04_old_events_and_the_notification_byte)						\
	X(acc05_query_order_and_companions)							\
	X(acc06_new_queue_is_not_suspendable)							\
	X(acc07_suspend_and_resume_counts)							\
	X(acc08_hws_and_mes_failures)								\
	X(acc09_snapshot_strides)								\
	X(acc10_launch_override)								\
	X(acc11_flags_and_launch_mode)								\
	X(acc12_watch_points)									\
	X(acc13_handshake)									\
	X(acc14_memory_violation)								\
	X(acc15_ends_of_processes)								\
	X(acc16_destroy_waits_for_resume)							\
	X(acc17_permission_generations)								\
	X(acc18_version_profiles)								\
	X(basics_of_the_device)									\
	X(enable_needs_a_live_opened_traced_target)						\
	X(thread_ids_name_the_process)								\
	X(refused_enable_takes_the_record)							\
	X(enable_arguments)									\
	X(efault_on_new_kernels_leaves_nothing)							\
	X(later_operations_thread_rule)								\
	X(later_operations_process_rule)							\
	X(session_before_the_runtime)								\
	X(session_with_the_runtime)								\
	X(runtime_info_survives_sessions)							\
	X(two_targets_are_independent)								\
	X(pids_are_the_callers)									\
	X(runtime_without_a_debugger)								\
	X(runtime_off_waits_each_time)								\
	X(disable_does_not_release_the_handshake)						\
	X(a_new_session_can_release_the_handshake)						\
	X(stale_retry_mark)									\
	X(an_answer_ahead_makes_up_for_a_stale_retry_mark)					\
	X(an_answer_of_the_next_session_leaves_no_mark)						\
	X(debugger_death_does_not_release_the_handshake)					\
	X(a_surplus_send_is_remembered)								\
	X(dbg_fd_kinds)										\
	X(dbg_fd_without_a_reader)								\
	X(injected_errno_delay_and_partial)							\
	X(killed_in_a_blocked_call)								\
	X(blocked_call_holds_its_target_until_released)						\
	X(activation_failures_show_as_state)							\
	X(wave_exceptions_reach_the_runtime_unless_subscribed)					\
	X(queue_deletion_is_a_device_event)							\
	X(suspend_writes_the_kernels_part_of_the_headers)					\
	X(gpu_lost_or_resetting)								\
	X(secondary_contexts_cannot_debug)							\
	X(destroy_restarts_after_a_signal)							\
	X(topology_and_process_files)								\
	X(watch_bits_need_a_sysfs_read)								\
	X(control_refuses_nonsense)								\
	X(killed_simulator_hangs_nobody)							\
	X(cpu_threads_never_stop)

#define DECLARE(name) void name(void);
#define LIST(name)    TEST(name),

CONFORMANCE_TESTS(DECLARE)

TEST_SUITE(conformance, CONFORMANCE_TESTS(LIST));
