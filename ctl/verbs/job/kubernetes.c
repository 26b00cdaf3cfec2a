/* SPDX-License-Identifier: MIT */
#include "ctl/verbs/job/kubernetes.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "ctl/job/pods.h"
#include "ctl/verbs/job/job.h"

#define AGENTS	   "gpu-agent"
#define LABEL	   "app.kubernetes.io/name=gpu-agent"
#define CONTAINER  "gpu-agentd"

/* Pods that kubectl has listed. */
struct listed {
	struct pod *list;
	size_t n;
};

struct kubernetes {
	struct listed pods, agents;
	const char *agents_in, *context;
};

/* ------------------------------------------------------------------ from outside ------------- */

/* Kubernetes has small letters, digits and - in the name of a namespace. */
static bool is_namespace(const char *name, size_t n)
{
	return n && n <= 63 && strspn(name, "0123456789abcdefghijklmnopqrstuvwxyz-") >= n && name[0] != '-';
}

/* @param only  One more option, or NULL. */
static int list(struct job *j, const char *namespace, const char *selector, const char *only, struct listed *ret)
{
	struct rpc_arena *a = &j->c->arena;
	const char *context = j->kubernetes->context;
	const char *argv[JOB_ARGUMENTS_MAX] = { "kubectl",
						"get",
						"pods",
						rpc_arena_printf(a, "--namespace=%s", namespace),
						rpc_arena_printf(a, "--selector=%s", selector),
						"--output=" PODS_FORMAT };
	const char *const *kept;
	struct printed p;
	size_t n = 6;
	int r;

	if (only)
		argv[n++] = only;
	if (context)
		argv[n++] = rpc_arena_printf(a, "--context=%s", context);
	kept = job_keep_argv(j, argv, n);
	r = kept ? job_ask(j, "ask Kubernetes", kept, &p) : ctl_fail(j->c, ENOMEM, "the job");
	if (r < 0)
		return r;
	ret->list = rpc_arena_array(a, PODS_MAX, sizeof(*ret->list));
	if (!ret->list)
		return ctl_fail(j->c, ENOMEM, "the job");
	r = pods_parse(p.text, p.size, ret->list, PODS_MAX, &ret->n);
	return r < 0 ? agent_err_set(&j->c->err, RPC_ERROR_FAILED, -r, "ask Kubernetes", NULL, "kubectl get pods: %s",
				     r == -EFBIG ? "there are too many" : "it does not print what was asked for")
		     : 0;
}

static const struct pod *agent_on(const struct kubernetes *k, const char *node)
{
	for (size_t i = 0; i < k->agents.n; i++)
		if (!strcmp(k->agents.list[i].node, node))
			return &k->agents.list[i];
	return NULL;
}

static bool is_asked(const struct job *j, const char *node)
{
	for (size_t i = 0; i < j->n; i++)
		if (!strcmp(j->tasks[i].name, node))
			return true;
	return false;
}

/* A pod that has done its work is none of the job's any more; one that waits, or has failed, is missing. */
static int add_pod(struct job *j, const struct pod *p)
{
	struct rpc_arena *a = &j->c->arena;
	const char *name = rpc_arena_printf(a, "pod %s", p->name);

	if (!name)
		return ctl_fail(j->c, ENOMEM, "the job");
	if (!strcmp(p->phase, "Succeeded"))
		return 0;
	if (strcmp(p->phase, "Running") != 0 || !p->node[0])
		return job_miss(j, name, rpc_arena_printf(a, "it is %s", p->phase[0] ? p->phase : "not started"));
	if (!agent_on(j->kubernetes, p->node))
		return job_miss(j, name, rpc_arena_printf(a, "no pod of the agent runs on its node %s (namespace %s, label " LABEL ")",
							  p->node, j->kubernetes->agents_in));
	return is_asked(j, p->node) ? 0 : job_add_task(j, p->node, NULL);
}

int kubernetes_add_nodes(struct job *j, const char *what, const char *agents, const char *context)
{
	struct kubernetes *k = rpc_arena_array(&j->c->arena, 1, sizeof(*k));
	const char *slash = strchr(what, '/'), *namespace;
	int r;

	if (!slash || !slash[1] || !is_namespace(what, (size_t)(slash - what)))
		return ctl_usage(j->c, "--kubernetes: \"%.100s\" is not NAMESPACE/SELECTOR, such as train/job-name=llm", what);
	if (agents && (!is_namespace(agents, strlen(agents))))
		return ctl_usage(j->c, "--agents: \"%.100s\" is no name of a namespace", agents);
	namespace = rpc_arena_strndup(&j->c->arena, what, (size_t)(slash - what));
	if (!k || !namespace)
		return ctl_fail(j->c, ENOMEM, "the job");
	*k = (struct kubernetes){ .agents_in = agents ? agents : AGENTS, .context = context };
	j->kubernetes = k;
	r = list(j, namespace, slash + 1, NULL, &k->pods);
	if (r == 0 && !k->pods.n)
		r = agent_err_set(&j->c->err, RPC_ERROR_NO_SUCH_PROCESS, ESRCH, "look at the job", NULL,
				  "no pod of namespace %s has the labels %.200s", namespace, slash + 1);
	if (r == 0)
		r = list(j, k->agents_in, LABEL, "--field-selector=status.phase=Running", &k->agents);
	if (r == 0)
		r = job_make_room(j, k->pods.n);
	for (size_t i = 0; r == 0 && i < k->pods.n; i++)
		r = add_pod(j, &k->pods.list[i]);
	return r;
}

/* The running pods of a node, joined by commas; NULL when memory is exhausted. */
static const char *uids_of(struct job *j, const char *node)
{
	const struct listed *pods = &j->kubernetes->pods;
	const char *text = "";

	for (size_t i = 0; text && i < pods->n; i++)
		if (!strcmp(pods->list[i].node, node) && !strcmp(pods->list[i].phase, "Running"))
			text = rpc_arena_printf(&j->c->arena, "%s%s%s", text, *text ? "," : "", pods->list[i].uid);
	return text;
}

/* Without -t, which would change ends of lines, and without -i: there is nothing to say to it. */
const char *const *kubernetes_argv(struct job *j, const char *node)
{
	struct rpc_arena *a = &j->c->arena;
	const struct kubernetes *k = j->kubernetes;
	const char *uids = uids_of(j, node), *argv[JOB_ARGUMENTS_MAX] = { "kubectl", "exec" };
	size_t n = 2;

	argv[n++] = rpc_arena_printf(a, "--namespace=%s", k->agents_in);
	argv[n++] = "--container=" CONTAINER;
	if (k->context)
		argv[n++] = rpc_arena_printf(a, "--context=%s", k->context);
	argv[n++] = agent_on(k, node)->name;
	argv[n++] = "--";
	argv[n++] = "gpu-agentctl";
	argv[n++] = "job";
	argv[n++] = "--json=short";
	argv[n++] = "--quiet";
	argv[n++] = uids ? rpc_arena_printf(a, "--pod-uids=%s", uids) : NULL;
	argv[n++] = rpc_arena_printf(a, "--deadline=%ums", job_remote_ms(j));
	if (j->c->max_stop_ms)
		argv[n++] = rpc_arena_printf(a, "--max-stop=%ums", j->c->max_stop_ms);
	if (j->waits)
		argv[n++] = "--why";
	if (j->ras)
		argv[n++] = "--ras";
	return job_keep_argv(j, argv, n);
}

/* ------------------------------------------------------------------ on the node -------------- */

/* The UIDs, and whether a process of each was found. */
struct own {
	const char *uids[PODS_MAX / 16];
	bool has_process[PODS_MAX / 16];
	size_t n;
};

static int read_uids(struct job *j, const char *text, struct own *ret)
{
	char *words = rpc_arena_strdup(&j->c->arena, text), *save, *word;

	if (!words)
		return ctl_fail(j->c, ENOMEM, "the job");
	for (word = strtok_r(words, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		if (!pods_is_uid(word))
			return ctl_usage(j->c, "--pod-uids: \"%.60s\" is not the UID of a pod", word);
		if (ret->n == sizeof(ret->uids) / sizeof(*ret->uids))
			return ctl_usage(j->c, "--pod-uids: too many pods for one node");
		ret->uids[ret->n++] = word;
	}
	return ret->n ? 0 : ctl_usage(j->c, "--pod-uids: there is no pod");
}

static int add_if_own(struct job *j, struct own *own, uint32_t pid)
{
	auto_free char *text = NULL;
	size_t size;

	/* One that has just ended belongs to nobody. */
	if (pods_read_cgroup(pid, &text, &size) < 0)
		return 0;
	for (size_t i = 0; i < own->n; i++)
		if (pods_has_process(own->uids[i], text, size)) {
			own->has_process[i] = true;
			return job_add_process(j, pid);
		}
	return 0;
}

static int miss_others(struct job *j, const struct own *own)
{
	char host[256] = "";
	int r = 0;

	gethostname(host, sizeof(host) - 1);
	for (size_t i = 0; r == 0 && i < own->n; i++)
		if (!own->has_process[i])
			r = job_miss(j, rpc_arena_printf(&j->c->arena, "pod %s of %s", own->uids[i], host),
				     "none of its processes uses a GPU that the agent sees");
	return r;
}

int kubernetes_add_own(struct job *j, const char *uids)
{
	struct ctl *c = j->c;
	struct rpc_process_list_result l;
	struct own *own = rpc_arena_array(&c->arena, 1, sizeof(*own));
	int r = own ? 0 : ctl_fail(c, ENOMEM, "the job");

	if (r == 0) {
		*own = (struct own){ 0 };
		r = read_uids(j, uids, own);
	}
	if (r == 0)
		r = job_list(j, &l);
	for (size_t i = 0; r == 0 && i < l.n_processes; i++)
		r = add_if_own(j, own, l.processes[i].pid);
	return r < 0 ? r : miss_others(j, own);
}
