/* SPDX-License-Identifier: MIT */
#include "tests/unit/worker/kernel.h"

#include <sys/socket.h>
#include <unistd.h>

#include "testlib.h"

/* Announced, cleared and sent on, each source once; companions that nobody asked for stay. */
static void events_are_consumed_and_forwarded(void)
{
	struct target_event e;
	int n = 0;
	WITH(t);

	TEST_EQ(kfd_subscribe(&t->t, 0x12 | KFD_VIOLATION_MASK, false, &err), 0);
	k.queue_bits[1] = 0x2 | KFD_NEW_MASK;
	k.queue_bits[2] = 0x10;
	k.device_bits[0] = KFD_VIOLATION_MASK;
	k.process_bits = KFD_RUNTIME_MASK;
	while (n < 10 && kfd_event_next(&t->t, &e, &err) == 1) {
		TEST_EQ(kfd_event_done(&t->t, &e, &err), 0);
		n++;
	}
	TEST_EQ(n, 4);
	TEST_EQ(k.handshakes, 1);
	TEST_EQ(k.sends, 3);
	TEST_EQ(k.sent[0].mask, 2);
	TEST_EQ(k.sent[0].queue, 1);
	TEST_EQ(k.sent[0].gpu, KFDTRAP_ID_NONE);
	TEST_EQ(k.sent[2].mask, KFD_VIOLATION_MASK);
	TEST_EQ(k.sent[2].gpu, GPU);
	TEST_EQ(k.queue_bits[1], KFD_NEW_MASK);
	TEST_EQ(k.device_bits[0], 0);
	released(t);
}

/* Held: announced once, still latched for the client, sent when the subscription ends. */
static void held_events_are_sent_at_the_end(void)
{
	const struct target_source what = { .exceptions = 2, .has_queue = true, .queue_id = 0 };
	struct target_source found;
	struct target_event e;
	WITH(t);

	TEST_EQ(kfd_subscribe(&t->t, 0x12 | KFD_VIOLATION_MASK, true, &err), 0);
	k.queue_bits[0] = 2;
	k.queue_bits[1] = 0x10;
	k.device_bits[1] = KFD_VIOLATION_MASK;
	for (int i = 0; i < 3; i++) {
		TEST_EQ(kfd_event_next(&t->t, &e, &err), 1);
		TEST_EQ(e.forwarded, false);
		TEST_EQ(kfd_event_done(&t->t, &e, &err), 0);
	}
	TEST_EQ(kfd_event_next(&t->t, &e, &err), 0);
	TEST_EQ(k.sends, 0);
	TEST_EQ(kfd_query(&t->t, 0, &found, &err), 1);
	TEST_EQ(found.exceptions, 2);
	/* One is sent by hand and cleared; raised again, it is news again. */
	TEST_EQ(kfd_forward(&t->t, &what, &err), 0);
	TEST_EQ(k.sends, 1);
	TEST_EQ(kfd_query(&t->t, 2, &found, &err), 1);
	TEST_EQ(kfd_event_next(&t->t, &e, &err), 0);
	/* Raised behind our back, and never announced. */
	k.queue_bits[2] = 2;
	TEST_EQ(undo_run(&t->t.undo, 0, &err), 0);
	TEST_EQ(k.sends, 4);
	TEST_EQ(k.queue_bits[1] | k.queue_bits[2] | k.device_bits[1], 0);
	for (unsigned i = 1; i < 4; i++)
		TEST_ROW_EQ(i, k.sent[i].queue == 0, false);
	released(t);
}

/* One list of codes in the schema, one in the library: the same ones, of the same kind. */
static void codes_have_the_kernels_names(void)
{
	for (uint32_t code = 1; code < KFDTRAP_EC_COUNT; code++) {
		const char *theirs = kfdtrap_exception_name(code);
		const char *ours = rpc_exception_name((enum rpc_exception)code);

		TEST_ROW_EQ(code, theirs != NULL, ours != NULL);
		if (!theirs || !ours || code == RPC_EXCEPTION_WAVE_ADDRESS_ERROR)
			continue;
		theirs += strncmp(ours, "queue_", 6) && !strncmp(theirs, "QUEUE_", 6) ? 6 : 0;
		TEST_ROW_EQ(code, strcasecmp(theirs, ours), 0);
	}
	TEST_STR(kfdtrap_exception_name(RPC_EXCEPTION_WAVE_ADDRESS_ERROR), "QUEUE_WAVE_APERTURE_VIOLATION");
}

/* What nobody was subscribed to went its way: it is neither told nor sent when somebody is. */
static void what_was_before_is_forgotten(void)
{
	struct target_event e;
	WITH(t);

	k.queue_bits[0] = 0x12 | KFD_NEW_MASK;
	k.device_bits[1] = KFD_VIOLATION_MASK;
	TEST_EQ(kfd_subscribe(&t->t, 0x2 | KFD_VIOLATION_MASK, false, &err), 0);
	TEST_EQ(kfd_event_next(&t->t, &e, &err), 0);
	TEST_EQ(k.queue_bits[0], 0x10 | KFD_NEW_MASK);
	TEST_EQ(k.device_bits[1], 0);
	/* What is subscribed already may not have been told yet. */
	k.queue_bits[0] |= 0x2;
	TEST_EQ(kfd_subscribe(&t->t, 0x12 | KFD_VIOLATION_MASK, false, &err), 0);
	TEST_EQ(kfd_event_next(&t->t, &e, &err), 1);
	TEST_EQ(e.withheld, 0x2);
	TEST_EQ(kfd_event_done(&t->t, &e, &err), 0);
	TEST_EQ(k.sends, 1);
	released(t);
}

/* What was latched just before cannot be asked for any more: it is taken for new, and the subscription stands. */
static void a_subscription_stands_once_the_kernel_has_it(void)
{
	struct target_event e;
	int pair[2];
	WITH(t);

	TEST_EQ_FATAL(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
	TEST_EQ(setsockopt(pair[0], SOL_SOCKET, SO_PASSCRED, &(int){ 1 }, sizeof(int)), 0);
	t->t.event_fd = pair[0];
	k.wakes = pair[1];
	k.fail_op = KFDABI_DBG_GET_QUEUE_SNAPSHOT;
	k.fail_err = EIO;
	k.fail_after = 1;
	TEST_EQ(kfd_subscribe(&t->t, 0x2, false, &err), 0);
	TEST_EQ(k.fail_after < 0, true);
	k.fail_err = 0;
	k.queue_bits[0] = 0x2;
	TEST_EQ(kfd_event_next(&t->t, &e, &err), 1);
	TEST_EQ(kfd_event_done(&t->t, &e, &err), 0);
	TEST_EQ(k.sends, 1);
	released(t);
	close(pair[1]);
}

/* One that is kept back hides neither what is behind it nor the next of its own. */
static void a_violation_kept_back_hides_nothing(void)
{
	struct target_event first, second;
	WITH(t);

	TEST_EQ(kfd_subscribe(&t->t, 0x2 | KFD_VIOLATION_MASK, false, &err), 0);
	k.device_bits[0] = k.device_bits[1] = KFD_VIOLATION_MASK;
	TEST_EQ(kfd_event_next(&t->t, &first, &err), 1);
	TEST_EQ(first.source.gpu_id, GPU);
	TEST_EQ(kfd_event_next(&t->t, &second, &err), 1);
	TEST_EQ(second.source.gpu_id, GPU + 1);
	TEST_EQ(kfd_event_done(&t->t, &second, &err), 0);
	k.process_bits = KFD_RUNTIME_MASK;
	TEST_EQ(kfd_event_next(&t->t, &second, &err), 1);
	TEST_EQ(second.kind, TARGET_EVENT_RUNTIME);
	TEST_EQ(kfd_event_done(&t->t, &second, &err), 0);
	k.device_bits[0] = KFD_VIOLATION_MASK;
	TEST_EQ(kfd_event_next(&t->t, &second, &err), 1);
	TEST_EQ(second.source.gpu_id, GPU);
	/* A subscription that goes without them sends what it knows of, once. */
	TEST_EQ(kfd_subscribe(&t->t, 0x2, false, &err), 0);
	TEST_EQ(k.sends, 1);
	TEST_EQ(kfd_event_done(&t->t, &first, &err), 0);
	TEST_EQ(kfd_event_done(&t->t, &second, &err), 0);
	TEST_EQ(k.sends, 3);
	TEST_EQ(kfd_event_next(&t->t, &second, &err), 0);
	released(t);
}

/* The handshake answered on the way out, exactly once, also when it was not read yet. */
static void handshake_is_answered_once(void)
{
	struct target_event e;
	WITH(t);

	TEST_EQ(kfd_answer_handshake(t, &err), 0);
	TEST_EQ(k.handshakes, 0);
	k.process_bits = KFD_RUNTIME_MASK;
	TEST_EQ(kfd_event_next(&t->t, &e, &err), 1);
	TEST_EQ(kfd_answer_handshake(t, &err), 0);
	TEST_EQ(k.handshakes, 1);
	TEST_EQ(kfd_answer_handshake(t, &err), 0);
	TEST_EQ(k.handshakes, 1);
	k.process_bits = KFD_RUNTIME_MASK;
	TEST_EQ(kfd_answer_handshake(t, &err), 0);
	TEST_EQ(k.handshakes, 2);
	released(t);
}

static void forward_refuses_nonsense(void)
{
	static const struct target_source rows[] = {
		{ 0 },
		{ .exceptions = KFD_RUNTIME_MASK },
		{ .exceptions = 2 },
		{ .exceptions = 2, .has_gpu = true },
		{ .exceptions = KFD_VIOLATION_MASK, .has_queue = true },
		{ .exceptions = KFD_VIOLATION_MASK | 2, .has_queue = true, .has_gpu = true },
	};
	WITH(t);

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		err = (struct agent_err){ 0 };
		TEST_ROW_EQ(i, kfd_forward(&t->t, &rows[i], &err) < 0, true);
		TEST_ROW_EQ(i, err.code, RPC_ERROR_INVALID_PARAMS);
	}
	TEST_EQ(k.sends, 0);
	released(t);
}

static void info_tells_latched_from_unknown(void)
{
	struct target_exception_info info;
	WITH(t);

	k.device_bits[0] = KFD_VIOLATION_MASK;
	TEST_EQ(kfd_info(&t->t, RPC_EXCEPTION_DEVICE_MEMORY_VIOLATION, GPU, false, &info, &err), 0);
	TEST_EQ(info.latched && !info.details, true);
	TEST_EQ(kfd_info(&t->t, RPC_EXCEPTION_DEVICE_MEMORY_VIOLATION, GPU, true, &info, &err), 0);
	TEST_EQ(kfd_info(&t->t, RPC_EXCEPTION_DEVICE_MEMORY_VIOLATION, GPU, false, &info, &err), 0);
	TEST_EQ(info.latched, false);
	TEST_EQ(kfd_info(&t->t, RPC_EXCEPTION_WAVE_TRAP, 99, false, &info, &err) < 0, true);
	TEST_EQ(err.code, RPC_ERROR_INVALID_PARAMS);
	/* A client cannot take the handshake away. */
	k.process_bits = KFD_RUNTIME_MASK;
	TEST_EQ(kfd_info(&t->t, RPC_EXCEPTION_PROCESS_RUNTIME, 0, true, &info, &err), 0);
	TEST_EQ(info.latched, true);
	TEST_EQ(k.process_bits, KFD_RUNTIME_MASK);
	released(t);
}

TEST_SUITE(worker_kfd_events, TEST(events_are_consumed_and_forwarded),
	   TEST(held_events_are_sent_at_the_end), TEST(codes_have_the_kernels_names),
	   TEST(what_was_before_is_forgotten), TEST(a_subscription_stands_once_the_kernel_has_it),
	   TEST(a_violation_kept_back_hides_nothing),
	   TEST(handshake_is_answered_once), TEST(forward_refuses_nonsense),
	   TEST(info_tells_latched_from_unknown));
