/* SPDX-License-Identifier: MIT */
/*
 * gpu-agentctl job: all processes of a job at once, on this machine or on many, as one merged document.
 *
 * Each process is looked at by a gpu-agentctl of its own, and each host by a `job --all` of its own over
 * ssh, which merges what it has: only the result travels.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "corefile/file.h"
#include "ctl/cli_words.h"
#include "ctl/ctl.h"
#include "ctl/job/collect.h"
#include "ctl/job/hosts.h"
#include "ctl/job/slurm.h"
#include "ctl/report/report.h"
#include "ctl/verbs/job/job.h"
#include "ctl/verbs/job/kubernetes.h"
#include "ctl/verbs/job/merge_files.h"

/* Programs at a time.  ssh takes a tenth of a second of the processor for each host. */
#define WINDOW          32
#define DEADLINE_MS     10000
#define DEADLINE_MAX_MS 600000
/* Most bytes of one answer: a merged document of 1,024 ranks has a tenth of it. */
#define ANSWER_MAX     ((size_t)8 << 20)
#define HOSTS_FILE_MAX ((size_t)1 << 20)
/* Most bytes of a list of nodes, of processes, or of pods, of which PODS_MAX have more than half of it. */
#define LIST_MAX       ((size_t)4 << 20)
#define NODE_PIDS_MAX  16384

static const char *pids, *hosts_path, *slurm, *slurm_node, *pods, *pod_uids, *agents, *context, *deadline, *page_path;
static bool all, waits, ras;

static const struct argv_option options[] = {
	{ "pids", 0, ARGV_STRING, &pids, "PID", "these processes of this machine, joined by commas" },
	{ "all", 0, ARGV_FLAG, &all, NULL, "all processes of this machine that use a GPU and may be looked at" },
	{ "hosts", 0, ARGV_STRING, &hosts_path, "FILE", "the same on the hosts that FILE lists, over ssh" },
	{ "slurm", 0, ARGV_STRING, &slurm, "JOBID", "the processes of a job of Slurm, on all its nodes, by srun" },
	{ "slurm-node", 0, ARGV_STRING, &slurm_node, "JOBID", "those on this node" },
	{ "kubernetes", 0, ARGV_STRING, &pods, "NAMESPACE/SELECTOR", "the processes of these pods, on all their nodes, by kubectl" },
	{ "agents", 0, ARGV_STRING, &agents, "NAMESPACE", "where the agent's pods are (default gpu-agent)" },
	{ "kube-context", 0, ARGV_STRING, &context, "NAME", "context of kubectl" },
	{ "pod-uids", 0, ARGV_STRING, &pod_uids, "UID", "processes of these pods on this node, joined by commas" },
	{ "why", 0, ARGV_FLAG, &waits, NULL, "also what they wait for, by two samples two seconds apart, where ranks wait for each other" },
	{ "ras", 0, ARGV_FLAG, &ras, NULL, "with --why: also ask NCCL's own status socket, of each process, what its ranks have launched" },
	{ "deadline", 0, ARGV_STRING, &deadline, "TIME", "be done by then, with what there is (default 10s)" },
	{ "report", 0, ARGV_STRING, &page_path, "FILE", "also write one page of HTML" },
	{ 0 },
};

/* ------------------------------------------------------------------ answers ------------------ */

int job_miss(struct job *j, const char *name, const char *why)
{
	const char *text = rpc_arena_printf(&j->c->arena, "%s: %s", name, why);

	if (!text)
		return rpc_arena_error(&j->c->arena);
	ctl_note(j->c, "not seen: %s", text);
	if (!j->c->err.code)
		agent_err_set(&j->c->err, RPC_ERROR_FAILED, ENODATA, "look at the job", NULL,
			      "no process could be seen; %.400s", text);
	return merge_add_missing(j->merge, rpc_arena_printf(&j->c->arena, "not seen: %s", text));
}

/* What a program of ours says of its failure, without what it says of itself. */
static const char *reason(const struct collect_task *t)
{
	static const char self[] = "gpu-agentctl: error: ";

	return str_starts_with(t->note, self) ? t->note + strlen(self) : t->note;
}

static const char *end_text(struct job *j, const struct collect_task *t)
{
	if (t->end == COLLECT_LATE)
		return t->note[0]
			       ? rpc_arena_printf(&j->c->arena, "no answer before the deadline; it said: %s", reason(t))
			       : "no answer before the deadline";
	if (t->end == COLLECT_NOT_STARTED)
		return "was not asked: no time was left";
	if (t->end == COLLECT_TOO_LARGE)
		return rpc_arena_printf(&j->c->arena, "the answer is larger than %zu MiB", ANSWER_MAX >> 20);
	if (t->end == COLLECT_FAILED)
		return rpc_arena_printf(&j->c->arena, "cannot be asked: %s", strerror(t->status));
	if (t->note[0])
		return reason(t);
	return WIFSIGNALED(t->status)
		       ? rpc_arena_printf(&j->c->arena, "%s was ended by signal %d", t->argv[0], WTERMSIG(t->status))
		       : rpc_arena_printf(&j->c->arena, "%s has said nothing, exit status %d", t->argv[0],
					  WEXITSTATUS(t->status));
}

/* A process is called by its rank where its launcher has told that, and else by host and number. */
static const char *name_of(struct job *j, const struct document *d)
{
	const struct rpc_gpu_snapshot_result *s = &d->snapshot;

	if (s->has_host && s->host.has_rank)
		return rpc_arena_printf(&j->answer, "rank%u", s->host.rank.rank);
	return rpc_arena_printf(&j->answer, "%s:%u", s->source.host, s->process.pid);
}

static bool has_document(const struct collect_task *t)
{
	int status = WIFEXITED(t->status) ? WEXITSTATUS(t->status) : -1;

	return t->end == COLLECT_ENDED && t->size &&
	       (status == 0 || status == CTL_EXIT_PARTIAL || status == CTL_EXIT_BUDGET);
}

static const char *without_user(const char *host)
{
	const char *at = strchr(host, '@');

	return at ? at + 1 : host;
}

/* The list has the host for another user as well, and all that was seen now was there. */
static bool is_asked_twice(const struct job *j, const struct collect_task *t, const struct document *d)
{
	if (!d->merged || !merge_has(j->merge, &d->snapshot))
		return false;
	for (size_t i = 0; i < j->n; i++)
		if (&j->tasks[i] != t && !strcmp(without_user(j->tasks[i].name), without_user(t->name)))
			return true;
	return false;
}

static int add_answer(void *data, const struct collect_task *t)
{
	struct job *j = data;
	struct agent_err err = { 0 };
	struct document d;
	int r;

	if (!has_document(t))
		return job_miss(j, t->name, end_text(j, t));
	rpc_arena_reset(&j->answer);
	r = document_parse("its answer", t->text, t->size, &j->answer, &d, &err);
	if (r == 0 && !d.merged) {
		d.name = name_of(j, &d);
		r = d.name ? 0 : -ENOMEM;
	}
	if (r == 0 && is_asked_twice(j, t, &d)) {
		ctl_note(j->c, "%s was asked twice", without_user(t->name));
		return 0;
	}
	if (r == 0)
		r = merge_add(j->merge, &d, &err);
	return r < 0 ? job_miss(j, t->name, err.message) : 0;
}

/* ------------------------------------------------------------------ whom to ask -------------- */

int job_add_task(struct job *j, const char *name, const char *const *argv)
{
	if (!name)
		return ctl_fail(j->c, ENOMEM, "the job");
	j->tasks[j->n++] = (struct collect_task){ .name = name, .argv = argv };
	return 0;
}

const char *const *job_keep_argv(struct job *j, const char *const *argv, size_t n)
{
	const char **copy = rpc_arena_array(&j->c->arena, n + 1, sizeof(*copy));

	for (size_t i = 0; copy && i < n; i++) {
		if (!argv[i])
			return NULL;
		copy[i] = argv[i];
	}
	return copy;
}

uint32_t job_remote_ms(const struct job *j)
{
	uint32_t ms = (uint32_t)clock_left_ms(j->deadline_ns) / 10 * 8;

	return ms < JOB_DEADLINE_MIN_MS ? JOB_DEADLINE_MIN_MS : ms;
}

/* This program, whatever PATH says. */
static const char *own_path(struct job *j)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	return n > 0 ? rpc_arena_strndup(&j->c->arena, path, (size_t)n) : NULL;
}

/* Hosts hand on what they miss: the text has to tell where that was. */
static const char *process_name(struct job *j, uint32_t pid)
{
	char host[256] = "";

	gethostname(host, sizeof(host) - 1);
	return rpc_arena_printf(&j->c->arena, "process %u of %s", pid, host);
}

static const char *const *process_argv(struct job *j, uint32_t pid)
{
	struct rpc_arena *a = &j->c->arena;
	const char *argv[JOB_ARGUMENTS_MAX] = { own_path(j), "snapshot",     rpc_arena_printf(a, "%u", pid),
					    "--host",    "--json=short", "--quiet",
					    "--socket",  j->c->socket };
	size_t n = 8;

	/* It may wait for its turn, and says what it was refused for while there is somebody to hear it. */
	argv[n++] = "--timeout";
	argv[n++] = rpc_arena_printf(a, "%ums", job_remote_ms(j));
	if (j->c->max_stop_ms) {
		argv[n++] = "--max-stop";
		argv[n++] = rpc_arena_printf(a, "%ums", j->c->max_stop_ms);
	}
	if (j->waits) {
		argv[n++] = "--why";
		/* On a busy machine processes are looked at a second apart: all looks still share half a second. */
		argv[n++] = "--twice=2000";
	}
	if (j->ras) {
		argv[n++] = "--ras";
		argv[n++] = "--deadline";
		argv[n++] = rpc_arena_printf(a, "%ums", job_remote_ms(j));
	}
	return job_keep_argv(j, argv, n);
}

int job_add_process(struct job *j, uint32_t pid)
{
	if (!pid)
		return ctl_fail(j->c, EINVAL, "the process 0");
	j->pids[j->n] = pid;
	return job_add_task(j, process_name(j, pid), NULL);
}

int job_make_room(struct job *j, size_t n)
{
	j->tasks = rpc_arena_array(&j->c->arena, n, sizeof(*j->tasks));
	j->pids = rpc_arena_array(&j->c->arena, n, sizeof(*j->pids));
	return j->tasks && j->pids ? 0 : ctl_fail(j->c, ENOMEM, "the job");
}

int job_list(struct job *j, struct rpc_process_list_result *ret)
{
	struct ctl *c = j->c;
	int r = ctl_connect(c);

	if (r == 0)
		r = ctl_called(c, rpc_client_process_list(c->client, NULL, &c->arena, ret, &c->err));
	return r < 0 ? r : job_make_room(j, ret->n_processes);
}

static int add_pids(struct job *j)
{
	uint32_t *list;
	size_t n;
	int r = args_u32_list(j->c, "--pids", pids, &list, &n);

	if (r == 0)
		r = job_make_room(j, n);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = list[i] ? job_add_process(j, list[i]) : ctl_usage(j->c, "--pids: 0 is no process");
	return r;
}

/* Processes of others that this user may not look at are none of this job. */
static int add_all(struct job *j)
{
	struct rpc_process_list_result l;
	struct ctl *c = j->c;
	int r = job_list(j, &l);

	for (size_t i = 0; r == 0 && i < l.n_processes; i++) {
		const struct rpc_process *p = &l.processes[i];

		/* What keeps one of this user's may be over when it is asked: another client that just attaches. */
		if (p->debuggable || p->uid == geteuid())
			r = job_add_process(j, p->pid);
	}
	if (r < 0 || j->n)
		return r;
	agent_err_set(&c->err, RPC_ERROR_NO_SUCH_PROCESS, ESRCH, "look at the job", NULL,
		      "no process that may be looked at uses a GPU");
	return -ESRCH;
}

static const char *list_failure(struct printed *p, const struct collect_task *t)
{
	/* What it has said until then explains nothing. */
	if (t->end == COLLECT_TOO_LARGE)
		return rpc_arena_printf(&p->c->arena, "its answer is larger than %zu MiB", LIST_MAX >> 20);
	if (t->note[0])
		return t->note;
	return t->end == COLLECT_LATE ? "no answer before the deadline" : "it has failed";
}

static int keep_text(void *data, const struct collect_task *t)
{
	struct printed *p = data;

	if (t->end != COLLECT_ENDED || t->status)
		return agent_err_set(&p->c->err, RPC_ERROR_FAILED, EIO, p->op, NULL, "%s %s: %s", t->argv[0],
				     t->argv[1], list_failure(p, t));
	p->text = rpc_arena_strndup(&p->c->arena, t->text, t->size);
	p->size = t->size;
	return p->text ? 0 : ctl_fail(p->c, ENOMEM, "the job");
}

int job_ask(struct job *j, const char *op, const char *const *argv, struct printed *ret)
{
	struct collect_task task = { .name = op, .argv = argv };
	const struct collect_options o = { .window = 1,
					   .deadline_ns =
						   clock_deadline_ms((uint64_t)clock_left_ms(j->deadline_ns) / 2),
					   .size_max = LIST_MAX,
					   .done = keep_text,
					   .data = ret };

	*ret = (struct printed){ .c = j->c, .op = op };
	return collect(&task, 1, &o);
}

static const char *const *host_argv(struct job *j, const char *name)
{
	struct rpc_arena *a = &j->c->arena;
	char *host = rpc_arena_strdup(a, name);
	const char *port = host ? hosts_split_port(host) : NULL;
	uint32_t ms = job_remote_ms(j);
	const char *argv[JOB_ARGUMENTS_MAX] = { "ssh", "-T",
					    "-o",  "BatchMode=yes",
					    "-o",  rpc_arena_printf(a, "ConnectTimeout=%u", ms / 1600 + 1),
					    /* A connection that is kept open for others would outlive us. */
					    "-o",  "ControlMaster=no",
					    "-o",  "ServerAliveInterval=2",
					    "-o",  "ServerAliveCountMax=2" };
	size_t n = 12;

	if (port) {
		argv[n++] = "-p";
		argv[n++] = port;
	}
	argv[n++] = "--";
	argv[n++] = host;
	argv[n++] = rpc_arena_printf(a, "gpu-agentctl job --all --json=short --quiet --deadline=%ums", ms);
	if (j->c->max_stop_ms)
		argv[n - 1] = rpc_arena_printf(a, "%s --max-stop=%ums", argv[n - 1], j->c->max_stop_ms);
	if (j->waits)
		argv[n - 1] = rpc_arena_printf(a, "%s --why%s", argv[n - 1], j->ras ? " --ras" : "");
	return job_keep_argv(j, argv, n);
}

static int read_hosts(struct job *j, struct hosts *ret)
{
	bool is_stdin = !strcmp(hosts_path, "-");
	auto_free char *text = NULL;
	const char *why;
	size_t size, line;
	int r = fd_read_file(is_stdin ? "/dev/stdin" : hosts_path, HOSTS_FILE_MAX, &text, &size);

	if (r < 0)
		return ctl_fail(j->c, -r, hosts_path);
	r = hosts_parse(text, size, ret, &line, &why);
	if (r < 0)
		return ctl_usage(j->c, "%.100s, line %zu: %s", hosts_path, line, why);
	return ret->n ? 0 : ctl_usage(j->c, "%.100s: there is no host", hosts_path);
}

static int add_names(struct job *j, const struct hosts *h)
{
	int r = job_make_room(j, h->n);

	for (size_t i = 0; r == 0 && i < h->n; i++)
		r = job_add_task(j, h->list[i], NULL);
	return r;
}

static int add_hosts(struct job *j, struct hosts *h)
{
	int r = read_hosts(j, h);

	/* BatchMode is not handed on to the ssh of a ProxyJump. */
	if (r == 0 && setenv("SSH_ASKPASS_REQUIRE", "never", 1) < 0)
		r = ctl_fail(j->c, errno, "the job");
	return r < 0 ? r : add_names(j, h);
}

/* ------------------------------------------------------------------ Slurm -------------------- */

static int check_job_id(struct ctl *c, const char *id)
{
	uint32_t number;

	return args_u32(c, "JOBID", id, 1, UINT32_MAX, &number);
}

/* Options of the job that this may run in are not meant for the step of ours. */
static void forget_own_job(void)
{
	extern char **environ;

	for (char **e = environ; *e;) {
		char name[128];
		size_t n = strcspn(*e, "=");

		if (!str_starts_with(*e, "SLURM_") || str_starts_with(*e, "SLURM_CONF=") || n >= sizeof(name)) {
			e++;
			continue;
		}
		memcpy(name, *e, n);
		name[n] = 0;
		unsetenv(name);
	}
}

/* A step of its own for each node: lines of several tasks of one step are mixed on its output. */
static const char *const *node_argv(struct job *j, const char *node)
{
	struct rpc_arena *a = &j->c->arena;
	const char *argv[JOB_ARGUMENTS_MAX] = { "srun",
					    "--overlap",
					    "--quiet",
					    "--mpi=none",
					    "--input=none",
					    "--chdir=/",
					    "-N1",
					    "-n1",
					    "--export=PATH,GPU_AGENT_SOCKET,SLURM_CONF",
					    rpc_arena_printf(a, "--jobid=%s", slurm),
					    rpc_arena_printf(a, "--nodelist=%s", node),
					    "gpu-agentctl",
					    "job",
					    "--json=short",
					    "--quiet",
					    rpc_arena_printf(a, "--slurm-node=%s", slurm),
					    rpc_arena_printf(a, "--deadline=%ums", job_remote_ms(j)) };
	size_t n = 17;

	if (j->c->max_stop_ms)
		argv[n++] = rpc_arena_printf(a, "--max-stop=%ums", j->c->max_stop_ms);
	if (j->waits)
		argv[n++] = "--why";
	if (j->ras)
		argv[n++] = "--ras";
	return job_keep_argv(j, argv, n);
}

static int add_nodes(struct job *j, struct hosts *h)
{
	const char *const argv[] = { "squeue", "-h", "-j", slurm, "-o", "%N", NULL };
	struct printed p;
	const char *why;
	size_t line;
	int r = check_job_id(j->c, slurm);

	if (r < 0)
		return r;
	forget_own_job();
	r = job_ask(j, "ask Slurm", argv, &p);
	if (r < 0)
		return r;
	r = hosts_parse(p.text, p.size, h, &line, &why);
	if (r < 0 || !h->n)
		return agent_err_set(&j->c->err, RPC_ERROR_FAILED, ENOENT, "ask Slurm", NULL, "job %s: %s", slurm,
				     r < 0 ? why : "it has no node: it does not run");
	return add_names(j, h);
}

/* Squeue, or those that were asked before, have taken a part of the time. */
static int begin(void *data, struct collect_task *t)
{
	struct job *j = data;
	const uint32_t pid = j->pids[t - j->tasks];

	if (pid)
		t->argv = process_argv(j, pid);
	else if (!t->argv)
		t->argv = slurm ? node_argv(j, t->name) : pods ? kubernetes_argv(j, t->name) : host_argv(j, t->name);
	return t->argv ? 0 : -ENOMEM;
}

static bool is_listed(const uint32_t *list, size_t n, uint32_t pid)
{
	for (size_t i = 0; i < n; i++)
		if (list[i] == pid)
			return true;
	return false;
}

/* Those of the job that use a GPU: a batch script and srun itself are in Slurm's list as well. */
static int add_own_node(struct job *j)
{
	const char *node = getenv("SLURMD_NODENAME");
	const char *const argv[] = { "scontrol", "listpids", slurm_node, node, NULL };
	struct ctl *c = j->c;
	struct rpc_process_list_result l;
	uint32_t *list = rpc_arena_array(&c->arena, NODE_PIDS_MAX, sizeof(*list));
	struct printed p;
	size_t n;
	int r = list ? check_job_id(c, slurm_node) : ctl_fail(c, ENOMEM, "the job");

	if (r == 0)
		r = job_ask(j, "ask Slurm", argv, &p);
	if (r == 0)
		r = job_list(j, &l);
	if (r < 0)
		return r;
	n = slurm_read_pids(p.text, p.size, slurm_node, list, NODE_PIDS_MAX);
	for (size_t i = 0; r == 0 && i < l.n_processes; i++)
		if (is_listed(list, n, l.processes[i].pid))
			r = job_add_process(j, l.processes[i].pid);
	if (r < 0 || j->n)
		return r;
	return agent_err_set(&c->err, RPC_ERROR_NO_SUCH_PROCESS, ESRCH, "look at the job", NULL,
			     "no process of job %s uses a GPU here", slurm_node);
}

/* ------------------------------------------------------------------ the result --------------- */

static int write_page(struct job *j, const struct rpc_gpu_snapshot_result *s)
{
	struct corefile_file file = COREFILE_FILE_NULL;
	auto_out struct out page = { 0 };
	int r = report_write(&j->c->arena, &page, &(struct report_input){ .snapshot = s, .merged = true });

	if (r < 0)
		return ctl_fail(j->c, -r, "writing the page");
	r = ctl_make_file(j->c, page_path, 0644, true, &file);
	if (r < 0)
		return r;
	r = fd_write_all(file.fd, page.data, page.size);
	if (r == 0)
		r = corefile_file_commit(&file, true);
	ctl_close_file(&file);
	return r < 0 ? ctl_fail(j->c, -r, page_path) : 0;
}

static int show(struct job *j)
{
	struct rpc_gpu_snapshot_result s;
	int r, page = 0;

	/* Why the first one was not seen is the error then. */
	if (!merge_ranks(j->merge))
		return j->c->err.code ? -ENODATA : ctl_usage(j->c, "there is nobody to ask");
	j->c->err = (struct agent_err){ 0 };
	r = merge_finish(j->merge, &s);
	if (r < 0)
		return ctl_fail(j->c, -r, "merging");
	if (page_path)
		page = write_page(j, &s);
	/* What the hosts have said would be lost with the page; JSON has no room for an error behind the document. */
	if (page < 0) {
		agent_err_prepend(&j->c->err, "the page was not written");
		if (ctl_is_json(j->c))
			ctl_note(j->c, "%s", j->c->err.message);
		else
			ctl_report(j->c);
	}
	r = merge_show(j->c, &s);
	return r < 0 ? r : page < 0 ? CTL_EXIT_FAILURE : ctl_status(s.complete, false);
}

static int add_tasks(struct job *j, struct hosts *h)
{
	if (pids)
		return add_pids(j);
	if (all)
		return add_all(j);
	if (slurm_node)
		return add_own_node(j);
	if (pod_uids)
		return kubernetes_add_own(j, pod_uids);
	if (pods)
		return kubernetes_add_nodes(j, pods, agents, context);
	return slurm ? add_nodes(j, h) : add_hosts(j, h);
}

static int look(struct job *j, struct hosts *h)
{
	const struct collect_options o = { .window = WINDOW,
					   .deadline_ns = j->deadline_ns,
					   .size_max = ANSWER_MAX,
					   .begin = begin,
					   .done = add_answer,
					   .data = j };
	int r = add_tasks(j, h);

	if (r == 0) {
		r = collect(j->tasks, j->n, &o);
		r = r < 0 ? ctl_fail(j->c, -r, "collecting") : show(j);
	}
	return r;
}

static int run(struct ctl *c, int argc, char **argv)
{
	struct job j = { .c = c, .merge = merge_create(), .waits = waits, .ras = ras };
	struct hosts h = { 0 };
	uint32_t ms = DEADLINE_MS;
	const int ways = (pids != NULL) + all + (hosts_path != NULL) + (slurm != NULL) + (slurm_node != NULL) +
			 (pods != NULL) + (pod_uids != NULL);
	int r = 0;

	if (ways != 1)
		r = ctl_usage(c, "one of --pids, --all, --hosts, --slurm, --slurm-node, --kubernetes and --pod-uids says whom to look at");
	if (r == 0 && (agents || context) && !pods)
		r = ctl_usage(c, "--agents and --kube-context go with --kubernetes");
	if (r == 0 && ras && !waits)
		r = ctl_usage(c, "--ras needs --why");
	if (r == 0 && deadline)
		r = args_duration(c, "--deadline", deadline, DEADLINE_MAX_MS, &ms);
	if (r == 0 && ms < JOB_DEADLINE_MIN_MS)
		r = ctl_usage(c, "--deadline: at least %u ms", JOB_DEADLINE_MIN_MS);
	if (r == 0 && !j.merge)
		r = ctl_fail(c, ENOMEM, "merging");
	if (r == 0) {
		j.deadline_ns = clock_deadline_ms(ms);
		c->arena.limit = MERGE_MEMORY_MAX;
		rpc_arena_init(&j.answer, DOCUMENT_MEMORY_MAX);
		r = look(&j, &h);
		rpc_arena_deinit(&j.answer);
	}
	hosts_deinit(&h);
	merge_destroy(j.merge);
	return r;
}

const struct ctl_verb ctl_verb_job = {
	.name = "job",
	.args = "",
	.summary = "Look at all processes of a job at once, and name the odd one out",
	.options = options,
	.run = run,
};
