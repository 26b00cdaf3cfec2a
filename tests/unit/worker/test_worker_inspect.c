/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agentd/worker/inspect/inspect.h"
#include "agentd/worker/process/yama.h"
#include "base/fd.h"
#include "testlib.h"

/* A topology with one GPU, and one process that uses it: this one. */
static char root[64];

static void put(const char *path, const char *text)
{
	char full[256];
	int fd;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	for (char *slash = full + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(full, 0755);
		*slash = '/';
	}
	fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	TEST_EQ_FATAL(fd >= 0, true);
	TEST_EQ(fd_write_all(fd, text, strlen(text)), 0);
	close(fd);
}

static void make_tree(const char *capability)
{
	char path[128], text[256];

	strcpy(root, "/tmp/gpu-agent-inspect.XXXXXX");
	TEST_EQ_FATAL(mkdtemp(root) != NULL, true);
	put("topology/generation_id", "1\n");
	put("topology/system_properties", "platform_oem 0\nplatform_id 0\nplatform_rev 0\n");
	put("topology/nodes/0/gpu_id", "77\n");
	put("topology/nodes/0/name", "aldebaran\n");
	snprintf(text, sizeof(text), "simd_count 440\ngfx_target_version 90010\ncapability %s\n",
		 capability);
	put("topology/nodes/0/properties", text);
	snprintf(path, sizeof(path), "proc/%d/pasid", (int)getpid());
	put(path, "32769");
	snprintf(path, sizeof(path), "proc/%d/queues/0/gpuid", (int)getpid());
	put(path, "77");
	snprintf(path, sizeof(path), "proc/%d/queues/0/size", (int)getpid());
	put(path, "4096");
	snprintf(path, sizeof(path), "proc/%d/queues/0/type", (int)getpid());
	put(path, "0");
}

static void remove_tree(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", root);
	TEST_EQ(system(command), 0);
}

static struct worker_options options(void)
{
	return (struct worker_options){ .kind = IPC_KIND_INSPECT,
					.peer_uid = getuid(),
					.peer_gid = getgid(),
					.peer_admin = true,
					.privileged = true,
					.kfd_device = "/nonexistent/kfd",
					.kfd_sysfs = root };
}

static const struct rpc_check *find(const struct rpc_process_doctor_result *r, const char *name)
{
	for (size_t i = 0; i < r->n_checks; i++)
		if (strcmp(r->checks[i].name, name) == 0)
			return &r->checks[i];
	return NULL;
}

/* Every failed check says what to do; the report is not ok as soon as one failed. */
static void doctor_explains_failures(void)
{
	static const struct {
		const char *capability;
		enum rpc_verdict gpu;
	} rows[] = {
		{ "536903680", RPC_VERDICT_PASS }, /* bits 29 and 15 */
		{ "32768", RPC_VERDICT_FAIL },	   /* no debug firmware */
		{ "536870912", RPC_VERDICT_FAIL }, /* not debuggable */
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		auto_rpc_arena struct rpc_arena a;
		struct rpc_process_doctor_result r = { 0 };
		struct agent_err err = { 0 };
		struct worker_options o;
		const struct rpc_check *gpu;

		make_tree(rows[i].capability);
		rpc_arena_init(&a, 0);
		o = options();
		TEST_EQ_FATAL(inspect_doctor(&o, &a, getpid(), &r, &err), 0);
		gpu = find(&r, "gpu_77");
		TEST_EQ_FATAL(gpu != NULL, true);
		TEST_ROW_EQ(i, gpu->verdict, rows[i].gpu);
		TEST_EQ(find(&r, "kfd_device")->verdict, RPC_VERDICT_FAIL);
		TEST_EQ(find(&r, "gpu_use")->verdict, RPC_VERDICT_PASS);
		TEST_EQ(find(&r, "rights")->verdict, RPC_VERDICT_PASS);
		TEST_EQ(find(&r, "runtime")->verdict, RPC_VERDICT_UNKNOWN);
		TEST_EQ(r.ok, false);
		for (size_t c = 0; c < r.n_checks; c++)
			TEST_ROW_EQ(c, r.checks[c].verdict == RPC_VERDICT_FAIL && !r.checks[c].fix,
				    false);
		remove_tree();
	}
}

/* A GPU that a container keeps from the process is none of its GPUs: their numbers are those of `devices`. */
static void doctor_checks_the_gpus_of_the_process(void)
{
	static const char properties[] = "simd_count 440\ngfx_target_version 90010\ncapability 536903680\n";
	auto_rpc_arena struct rpc_arena a;
	struct rpc_process_doctor_result r = { 0 };
	struct agent_err err = { 0 };
	struct worker_options o = options();
	char path[128];

	make_tree("536870912");
	for (char node = '1'; node <= '2'; node++) {
		snprintf(path, sizeof(path), "topology/nodes/%c/gpu_id", node);
		put(path, node == '1' ? "99\n" : "88\n");
		snprintf(path, sizeof(path), "topology/nodes/%c/name", node);
		put(path, "aldebaran\n");
		snprintf(path, sizeof(path), "topology/nodes/%c/properties", node);
		put(path, properties);
		snprintf(path, sizeof(path), "proc/%d/vram_%s", (int)getpid(), node == '1' ? "99" : "88");
		put(path, "0\n");
	}
	rpc_arena_init(&a, 0);
	TEST_EQ_FATAL(inspect_doctor(&o, &a, getpid(), &r, &err), 0);
	TEST_EQ(find(&r, "gpu_77") == NULL, true);
	TEST_EQ_FATAL(find(&r, "gpu_99") && find(&r, "gpu_88"), true);
	TEST_EQ(find(&r, "gpu_99") < find(&r, "gpu_88"), true);
	remove_tree();
}

static void doctor_of_nobody(void)
{
	auto_rpc_arena struct rpc_arena a;
	struct rpc_process_doctor_result r = { 0 };
	struct worker_options o = options();
	struct agent_err err = { 0 };

	rpc_arena_init(&a, 0);
	TEST_EQ(inspect_doctor(&o, &a, 4194304, &r, &err), -ESRCH);
	TEST_EQ(err.code, RPC_ERROR_NO_SUCH_PROCESS);
}

static void list_names_users_of_the_gpu(void)
{
	const struct rpc_process_list_params everybody = { 0 };
	auto_rpc_arena struct rpc_arena a;
	struct rpc_process *p;
	struct rpc_process_list_result r = { 0 };
	struct agent_err err = { 0 };
	struct worker_options o;
	struct seen seen;

	make_tree("32768");
	put("proc/4194303/pasid", "1");
	seen_init(&seen, getuid());
	rpc_arena_init(&a, 0);
	o = options();
	o.peer_near = true;
	TEST_EQ_FATAL(inspect_list(&o, &seen, &a, &everybody, &r, &err), 0);
	p = r.processes;
	/* Others may use a device of the other vendor here. */
	while (p < r.processes + r.n_processes && p->pid != (uint32_t)getpid())
		p++;
	TEST_EQ_FATAL(p < r.processes + r.n_processes, true);
	TEST_EQ(p->queues, 1);
	TEST_EQ(p->n_gpu_ids, 1);
	TEST_EQ(p->gpu_ids[0], 77);
	TEST_STR(p->comm, "test_worker_ins");
	TEST_EQ(p->has_start_ticks && p->start_ticks > 0, true);
	TEST_EQ(p->command_line && strstr(p->command_line, "test_worker_inspect"), true);
	remove_tree();
	/* No driver at all. */
	if (inspect_list(&o, &seen, &a, &everybody, &r, &err) < 0) {
		TEST_EQ(err.code, RPC_ERROR_NOT_DEBUGGABLE);
		CU_ASSERT_NOT_EQUAL(err.hint[0], '\0');
	}
	seen_deinit(&seen);
}

/* ------------------------------------------------------------------ what a look may cost ------ */

static void what_strangers_have_mapped_is_read_in_part(void)
{
	struct seen s;
	uint64_t all = 0;

	seen_init(&s, 1000);
	TEST_EQ(seen_allows(&s, 1000), SIZE_MAX);
	for (unsigned i = 0; i < 1000; i++) {
		size_t most = seen_allows(&s, 1001 + i % 7);

		TEST_EQ_FATAL(most >= SEEN_FREE && most <= SEEN_OTHERS_MAX, true);
		all += most - SEEN_FREE;
		seen_note(&s, 4194304, 1001 + i % 7, most, SEEN_CUT);
	}
	TEST_EQ(all, SEEN_LOOK_MAX);
	TEST_EQ(s.n_cut, 1000);
	/* What one's own processes have mapped costs nobody else anything. */
	seen_init(&s, 1000);
	seen_note(&s, 4194304, 1000, (size_t)64 << 20, SEEN_NO);
	TEST_EQ(s.left, SEEN_LOOK_MAX);
	seen_deinit(&s);
}

/* Whoever does not answer is asked no more after two, and keeps nobody else from being seen. */
static void users_are_lost_each_for_himself(void)
{
	struct seen s;

	seen_init(&s, 1000);
	for (pid_t pid = 1; pid <= 4; pid++) {
		TEST_ROW_EQ(pid, seen_may_ask(&s, 1001), pid <= (pid_t)SEEN_LOST_MAX);
		seen_lose(&s, pid, 1001, seen_may_ask(&s, 1001));
		seen_lose(&s, pid, 1000, true);
	}
	TEST_EQ(s.n_lost, SEEN_LOST_MAX + 4);
	TEST_EQ(s.n_unasked, 4 - SEEN_LOST_MAX);
	TEST_EQ(seen_may_ask(&s, 0), true);
	TEST_EQ(seen_may_ask(&s, 1000), true);
	seen_deinit(&s);
}

static void what_was_found_is_remembered_until_it_may_be_wrong(void)
{
	const size_t n = sizeof(struct ipc_looked);
	struct ipc_looked e;
	enum seen_what what = SEEN_NO;
	struct seen s, next;

	seen_init(&s, 0);
	seen_note(&s, getpid(), 1, SEEN_FREE, SEEN_YES);
	TEST_EQ(s.n, 0);
	seen_note(&s, getpid(), 1, SEEN_FREE + 1, SEEN_YES);
	TEST_EQ_FATAL(s.n, 1);
	e = s.list[0];
	seen_init(&next, 0);
	TEST_EQ(seen_find(&next, getpid(), &what), false);
	seen_learn(&next, &e, n);
	TEST_EQ(seen_find(&next, getpid(), &what), true);
	TEST_EQ(what, SEEN_YES);
	/* The one after that learns it, too, and from when it is. */
	TEST_EQ_FATAL(next.n, 1);
	TEST_EQ(next.list[0].at_ns, e.at_ns);
	for (unsigned i = 0; i < 6; i++) {
		struct ipc_looked other = e;

		other.start_ticks += i == 0;
		other.exe += i == 1;
		other.lib_kib += i == 2;
		other.at_ns -= i == 3 ? SEEN_KEEP_MS * UINT64_C(1000000) : 0;
		other.at_ns = i == 4 ? UINT64_MAX : other.at_ns;
		other.what = i == 5 ? 3 : other.what;
		seen_learn(&next, &other, n);
		TEST_ROW_EQ(i, seen_find(&next, getpid(), &what), false);
	}
	seen_learn(&next, "short", 5);
	TEST_EQ(seen_find(&next, getpid(), &what), false);
	seen_deinit(&next);
	seen_deinit(&s);
}

/* To the client's own user, whom the worker has become, the kernel does not show init. */
static bool init_is_refused(const struct worker_options *o, const struct access_target *facts)
{
	struct access_target t = *facts;
	const char *fix = NULL;
	pid_t child = fork();
	int status;

	if (child == 0) {
		if (getuid() == 0 && (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0))
			_exit(2);
		t.pid = 1;
		t.dumpable = false;
		_exit(!inspect_refusal(o, &t, &fix) || !fix);
	}
	return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

/* Who may what, with the reason and the fix when not. */
static void refusals_have_reasons(void)
{
	const struct access_target base = { .pid = getpid(), .state = 'S', .dumpable = true,
					    .uids = { 5, 5, 5, 5 } };
	struct access_target t = base;
	struct worker_options o = options();
	const char *fix;

	CU_ASSERT_PTR_NULL(inspect_refusal(&o, &t, &fix));
	o.peer_admin = false;
	o.peer_uid = 4;
	CU_ASSERT_PTR_NOT_NULL(inspect_refusal(&o, &t, &fix));
	CU_ASSERT_PTR_NOT_NULL(fix);
	o.peer_observer = true;
	CU_ASSERT_PTR_NULL(inspect_refusal(&o, &t, &fix));
	o.peer_observer = false;
	o.peer_uid = 5;
	CU_ASSERT_PTR_NULL(inspect_refusal(&o, &t, &fix));
	CU_ASSERT_TRUE(init_is_refused(&o, &base));
	t = base;
	t.kernel_thread = true;
	CU_ASSERT_PTR_NOT_NULL(inspect_refusal(&o, &t, NULL));
	t = base;
	t.uids[0] = getuid() + 1;
	o.peer_admin = true;
	o.privileged = false;
	CU_ASSERT_PTR_NOT_NULL(inspect_refusal(&o, &t, &fix));
	t.uids[0] = getuid();
	CU_ASSERT_PTR_NULL(inspect_refusal(&o, &t, &fix));
}

static void ptrace_scope_needs_privileges(void)
{
	static const struct {
		int scope;
		bool privileged, ok;
	} rows[] = { { 0, false, true },  { 1, false, false }, { 1, true, true },
		     { 2, false, false }, { 2, true, true },   { 3, true, false } };

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		const struct worker_options o = { .privileged = rows[i].privileged };

		TEST_ROW_EQ(i, yama_allows(&o, rows[i].scope), rows[i].ok);
	}
}

TEST_SUITE(worker_inspect, TEST(doctor_explains_failures), TEST(doctor_checks_the_gpus_of_the_process),
	   TEST(doctor_of_nobody), TEST(list_names_users_of_the_gpu), TEST(what_strangers_have_mapped_is_read_in_part),
	   TEST(what_was_found_is_remembered_until_it_may_be_wrong), TEST(users_are_lost_each_for_himself),
	   TEST(refusals_have_reasons),
	   TEST(ptrace_scope_needs_privileges));
