/* SPDX-License-Identifier: MIT */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/out.h"
#include "ctl/nccl/ask.h"
#include "ctl/nccl/awaited.h"
#include "ctl/nccl/place.h"
#include "ctl/nccl/report.h"
#include "testlib.h"

static struct rpc_arena arena;

/* ------------------------------------------------------------------ where it is -------------- */

static int parse(const char *text, struct nccl_address *ret)
{
	return nccl_address_parse(text, strlen(text), ret);
}

static void reads_addresses(void)
{
	struct nccl_address a;

	TEST_EQ_FATAL(parse("localhost:28028", &a), 0);
	TEST_EQ_FATAL(a.n, 2);
	TEST_EQ(((struct sockaddr_in *)&a.list[0])->sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	TEST_EQ(((struct sockaddr_in *)&a.list[0])->sin_port, htons(28028));
	TEST_EQ(a.list[1].ss_family, AF_INET6);
	TEST_STR(a.text, "localhost:28028");
	TEST_EQ(parse("10.0.0.7:1", &a), 0);
	TEST_EQ(parse("[fe80::1]:65535", &a), 0);
	TEST_EQ(((struct sockaddr_in6 *)&a.list[0])->sin6_port, htons(65535));
}

static void refuses_what_is_no_address(void)
{
	static const char *const bad[] = { "", ":", "localhost", "localhost:", "localhost:0", "localhost:65536", "localhost:1x",
					   "example.org:1", "10.0.0.7", "10.0.0:1", "fe80::1:1", "[]:1", "[10.0.0.7]:1", "[::1:1",
					   "[fe80::1%eth0]:1", " 127.0.0.1:1" };
	struct nccl_address a;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		TEST_ROW_EQ(i, parse(bad[i], &a), -EINVAL);
	TEST_EQ(nccl_address_parse("127.0.0.1:1\0", 12, &a), -EINVAL);
	TEST_EQ(parse("127.0.0.1:00000000000000000000000000000000000000000000000000000000000000000000000001", &a), -EINVAL);
}

static void finds_variables(void)
{
	static const char text[] = "XNCCL_RAS_ADDR=a\0NCCL_RAS_ADDR\0NCCL_RAS_ADDR=\0NCCL_RAS_ADDR=b";
	size_t n = 9;

	/* The first one that is set counts, as for getenv(). */
	TEST_EQ(nccl_environ_find(text, sizeof(text) - 1, "NCCL_RAS_ADDR", &n) == text + 45, true);
	TEST_EQ(n, 0);
	TEST_EQ(nccl_environ_find("A=bc", 4, "A", &n) != NULL, true);
	TEST_EQ(n, 2);
	TEST_EQ(nccl_environ_find("A=bc", 1, "A", &n) == NULL, true);
	TEST_EQ(nccl_environ_find("", 0, "A", &n) == NULL, true);
}

static int read_pid(const char *text, uint32_t *ret)
{
	return nccl_status_pid(text, strlen(text), ret);
}

static void finds_the_innermost_number(void)
{
	uint32_t pid = 0;

	TEST_EQ(read_pid("Name:\tx\nNSpid:\t4242\t7\nNSpgid:\t1\n", &pid), 0);
	TEST_EQ(pid, 7);
	TEST_EQ(read_pid("Name:\tx\nNSpid:\t4242\n", &pid), 0);
	TEST_EQ(pid, 4242);
	TEST_EQ(read_pid("Name:\tx\nNSpid:\t\n", &pid), -EINVAL);
	TEST_EQ(read_pid("Name:\tx\nNSpid:\t42", &pid), -EINVAL);
	TEST_EQ(read_pid("Name:\tx\nNSpid:\t99999999999\n", &pid), -EINVAL);
	TEST_EQ(read_pid("NSpid:\t1\n", &pid), -EINVAL);
}

static void knows_its_own_addresses(void)
{
	const struct nccl_place p = { .net_fd = -1 };

	TEST_EQ(nccl_is_here(&p, "127.0.0.1"), true);
	TEST_EQ(nccl_is_here(&p, "192.0.2.1"), false);
	TEST_EQ(nccl_is_here(&p, "2001:db8::1"), false);
	TEST_EQ(nccl_is_here(&p, "unknown"), false);
	TEST_EQ(nccl_is_here(&p, ""), false);
}

/* ------------------------------------------------------------------ what it says ------------- */

static bool is_here(void *data, const char *host)
{
	(void)data;
	return !strcmp(host, "here");
}

/* A rank that has launched so many operations. */
static void put_rank(struct out *o, unsigned rank, const char *host, int pid, unsigned reduced, unsigned sent)
{
	out_json_fmt(o, ",{'rank':%u,'host':%s,'pid':", rank, host);
	out_fmt(o, "%d", pid);
	out_json_fmt(o, ",'status':{'async_error':0,'abort_flag':%i,'x':1},'collective_counts':{'AllReduce':%u,'Send':%u,'New':1}}", 0,
		     reduced, sent);
}

static int read_report(struct out *o, struct rpc_nccl_told *ret)
{
	const struct nccl_who who = { .pid = 42, .is_here = is_here };
	struct agent_err err = { 0 };
	int r;

	rpc_arena_deinit(&arena);
	rpc_arena_init(&arena, 0);
	r = nccl_report_read(o->data, o->size, &who, &arena, ret, &err);
	out_deinit(o);
	return r;
}

static void begin(struct out *o, unsigned size)
{
	out_json_fmt(o, ",{'hash':'0xab','size':%u,'missing_ranks':[],'ranks':[", size);
}

static void many_ranks_are_counted_and_the_first_told(void)
{
	struct rpc_nccl_told told;
	struct out o = { 0 };
	auto_out struct out text = { 0 };

	out_json_fmt(&o, "{'nccl_version':'2.28.7','communicators':[");
	begin(&o, 1000);
	put_rank(&o, 999, "here", 42, 5, 7);
	for (unsigned i = 0; i < 999; i++)
		put_rank(&o, i, i & 1 ? "there" : "elsewhere", 42, 4, i);
	out_str(&o, "]}]}");
	TEST_EQ_FATAL(read_report(&o, &told), 0);
	TEST_EQ_FATAL(told.n_communicators, 1);
	TEST_EQ_FATAL(told.communicators[0].n_own, 1);
	TEST_EQ(told.communicators[0].own[0], 999);
	TEST_EQ(told.communicators[0].odd_count, 999);
	TEST_EQ(told.communicators[0].n_odd, NCCL_ODD_MAX);
	/* Sends differ from rank to rank, and New is not known. */
	TEST_EQ(told.communicators[0].n_operations, 1);
	nccl_report_put(&text, &told.communicators[0]);
	TEST_STR(text.data, "AllReduce launched 5 times, but 4 by rank 0 (pid 42 on elsewhere), 4 by rank 1 (pid 42 on there), "
			    "4 by rank 2 (pid 42 on elsewhere), 4 by rank 3 (pid 42 on there), ...");
}

static void communicators_have_a_limit_and_odd_ones_come_first(void)
{
	struct rpc_nccl_told told;
	struct out o = { 0 };

	out_json_fmt(&o, "{'nccl_version':'2.28.7','communicators':[");
	for (unsigned i = 0; i < 100; i++) {
		begin(&o, 2);
		put_rank(&o, 0, "here", i == 50 ? 43 : 42, 5, 0);
		put_rank(&o, 1, "there", 42, i == 99 ? 4 : 5, 0);
		out_str(&o, "]}");
	}
	out_str(&o, "]}");
	TEST_EQ_FATAL(read_report(&o, &told), 0);
	TEST_EQ(told.communicators_count, 99);
	TEST_EQ(told.others_count, 1);
	TEST_EQ_FATAL(told.n_communicators, NCCL_COMMUNICATORS_MAX);
	TEST_EQ(told.communicators[0].odd_count, 1);
	TEST_EQ(told.communicators[1].odd_count, 0);
	TEST_EQ(told.confidence, RPC_CONFIDENCE_INFERRED);
}

static void joins_what_fits_alone(void)
{
	uint32_t own[] = { 1, 2 };
	struct rpc_nccl_communicator list[] = { { .ranks = 4, .own = own, .n_own = 2 },
						{ .ranks = 8, .own = own, .n_own = 1 } };
	struct rpc_nccl_told told = { .communicators = list, .n_communicators = 2, .communicators_count = 2 };
	const struct rpc_collective one[] = { { .rank = 1, .ranks = 8 }, { .rank = 0, .ranks = 4 } };
	const struct rpc_collective two[] = { { .rank = 1, .ranks = 4 }, { .rank = 2, .ranks = 4 } };

	TEST_EQ(nccl_report_join(&told, one, 2), 1);
	TEST_EQ(list[1].has_collective, true);
	TEST_EQ(list[1].collective, 0);
	TEST_EQ(list[0].has_collective, false);
	list[1].has_collective = false;
	TEST_EQ(nccl_report_join(&told, two, 2), 0);
	/* One that is not told of may fit as well. */
	told.communicators_count = 3;
	TEST_EQ(nccl_report_join(&told, one, 1), 0);
	TEST_EQ(list[1].has_collective, false);
}

/* ------------------------------------------------------------------ for whom ranks wait ------ */

static void tells_for_whom_ranks_wait(void)
{
	uint32_t two[] = { 6, 7 };
	struct rpc_collective list[] = { { .rank = 3, .ranks = 8 },
					 { .rank = 0, .ranks = 8, .waits_for = two, .n_waits_for = 2 },
					 { .rank = 1, .ranks = 4, .waits_for = two, .n_waits_for = 1 } };
	struct rpc_why_get_result r = { .collectives = list, .n_collectives = 1 };

	TEST_EQ(awaited_text(&arena, &r) == NULL, true);
	r.n_collectives = 2;
	TEST_STR(awaited_text(&arena, &r), "rank 0 waits for ranks 6, 7, which were not looked at (job and merge compare ranks)");
	r.n_collectives = 3;
	TEST_STR(awaited_text(&arena, &r),
		 "2 collective operations wait for other ranks (job and merge compare ranks)");
	/* The process has one of them itself. */
	list[2] = (struct rpc_collective){ .rank = 7, .ranks = 8 };
	TEST_STR(awaited_text(&arena, &r), "rank 0 waits for ranks 6, 7 (job and merge compare ranks)");
	list[2] = (struct rpc_collective){ .rank = 1, .ranks = 4, .waits_for = two, .n_waits_for = 1 };
	TEST_STR(awaited_rank_text(&arena, &r, &list[0]),
		 "3 of a communicator of 8: in a collective operation, operations that are not told apart (0 waves of queue 0)");
	TEST_STR(strstr(awaited_rank_text(&arena, &r, &list[2]), ", waits"), ", waits for rank 6 (not seen)");
	list[0].waves = 1;
	TEST_STR(strstr(awaited_rank_text(&arena, &r, &list[0]), " ("), " (1 wave of queue 0)");
	r.vendor = RPC_VENDOR_NVIDIA;
	TEST_STR(strstr(awaited_rank_text(&arena, &r, &list[0]), " ("), " (1 warp of context 0)");
	list[0].waves = 8;
	TEST_STR(strstr(awaited_rank_text(&arena, &r, &list[0]), " ("), " (8 warps of context 0)");
}

/* What has come between two samples is told: who waits then waits for something new. */
static void a_rank_that_has_moved_says_so(void)
{
	uint32_t six = 6;
	struct rpc_collective k = { .rank = 1, .ranks = 8, .waits_for = &six, .n_waits_for = 1,
				    .queue_id = 3, .dispatch = 9 };
	struct rpc_wait waits[] = {
		{ .kind = RPC_WAIT_KIND_COLLECTIVE, .queue_id = 3, .has_dispatch = true, .dispatch = 9,
		  .has_stuck = true },
		{ .kind = RPC_WAIT_KIND_COLLECTIVE, .queue_id = 3, .has_dispatch = true, .dispatch = 8 },
		{ .kind = RPC_WAIT_KIND_BARRIER, .queue_id = 3, .has_dispatch = true, .dispatch = 9 },
	};
	struct rpc_why_get_result r = { .vendor = RPC_VENDOR_AMD, .collectives = &k, .n_collectives = 1, .waits = waits,
					.n_waits = TEST_COUNT(waits) };

	rpc_arena_deinit(&arena);
	rpc_arena_init(&arena, 0);
	TEST_STR(strstr(awaited_rank_text(&arena, &r, &k), "), "), "), has moved and waits for rank 6 (not seen)");
	TEST_STR(awaited_text(&arena, &r),
		 "rank 1 has moved and waits for rank 6, which was not looked at (job and merge compare ranks)");
	/* Of one that is not known to have moved it is not said, nor of another operation of the queue. */
	waits[0].has_stuck = false;
	waits[1].has_stuck = true;
	TEST_STR(strstr(awaited_rank_text(&arena, &r, &k), "), "), "), waits for rank 6 (not seen)");
	waits[0].has_stuck = waits[0].stuck = true;
	TEST_STR(strstr(awaited_rank_text(&arena, &r, &k), "), "), "), waits for rank 6 (not seen)");
	r.n_waits = 0;
	TEST_STR(strstr(awaited_rank_text(&arena, &r, &k), "), "), "), waits for rank 6 (not seen)");
}

TEST_SUITE(ctl_nccl, TEST(a_rank_that_has_moved_says_so), TEST(reads_addresses), TEST(refuses_what_is_no_address),
	   TEST(finds_variables),
	   TEST(finds_the_innermost_number), TEST(knows_its_own_addresses),
	   TEST(many_ranks_are_counted_and_the_first_told), TEST(communicators_have_a_limit_and_odd_ones_come_first),
	   TEST(joins_what_fits_alone), TEST(tells_for_whom_ranks_wait));
