/* SPDX-License-Identifier: MIT */
#include "agentd/rules/hooks/hook_rules.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"

/* Mangled names of C++ kernels are long; the document has them whole. */
#define VALUE_MAX  1024
#define FIELDS_MAX 48
#define OWN_FIELDS 10

/* ------------------------------------------------------------------ configuration ------------ */

struct hook_entry *hook_rules_find(const struct hook_rules *h, const char *rule)
{
	for (size_t i = 0; i < h->n; i++)
		if (!strcmp(h->entries[i].rule.rule, rule))
			return &h->entries[i];
	return NULL;
}

static void fill_entry(const struct hook_rules *h, const struct hook_rule *rule, struct hook_entry *ret)
{
	const struct hook_entry *old = hook_rules_find(h, rule->rule);

	*ret = (struct hook_entry){ .rule = *rule };
	if (old)
		ret->info = old->info;
	str_copy(ret->info.rule, sizeof(ret->info.rule), rule->rule);
	str_copy(ret->info.path, sizeof(ret->info.path), rule->path);
	str_copy(ret->info.user, sizeof(ret->info.user), rule->user);
	ret->info.timeout_ms = rule->limits.timeout_ms;
}

int hook_rules_configure(struct hook_rules *h, const struct hook_rule *rules, size_t n)
{
	struct hook_entry *entries;
	size_t n_entries = 0;

	for (size_t i = 0; i < n; i++)
		n_entries += rules[i].path[0] != '\0';
	if (n_entries > HOOKS_RULES_MAX)
		return -E2BIG;
	entries = calloc(n_entries ? n_entries : 1, sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	n_entries = 0;
	for (size_t i = 0; i < n; i++)
		if (rules[i].path[0])
			fill_entry(h, &rules[i], &entries[n_entries++]);
	hook_rules_deinit(h);
	h->entries = entries;
	h->n = n_entries;
	return 0;
}

void hook_rules_deinit(struct hook_rules *h)
{
	free(h->entries);
	*h = (struct hook_rules){ 0 };
}

/* ------------------------------------------------------------------ jobs --------------------- */

static bool is_name(const char *name)
{
	return str_starts_with(name, "GPU_AGENT_") &&
	       strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == strlen(name) &&
	       strcmp(name, "GPU_AGENT_HOOK") != 0;
}

static bool has_field(const struct hook_job *job, const char *name)
{
	size_t size = strlen(name);

	for (const char *p = job->env; p < job->env + job->env_size; p += strlen(p) + 1)
		if (!strncmp(p, name, size) && p[size] == '=')
			return true;
	return false;
}

/* The first of a name is the one that counts. */
static int add_field(struct hook_job *job, const char *name, const char *value)
{
	char *at = job->env + job->env_size, text[VALUE_MAX];
	size_t left = sizeof(job->env) - job->env_size;
	int n;

	if (!is_name(name))
		return -EINVAL;
	if (has_field(job, name))
		return 0;
	/* Names of kernels are the target's words, and the hook may be somebody else's. */
	str_copy(text, sizeof(text), value);
	str_make_printable(text);
	n = snprintf(at, left, "%s=%s", name, text);
	if (n < 0 || (size_t)n >= left)
		return -E2BIG;
	job->env_size += (uint32_t)n + 1;
	return 0;
}

int hook_rules_job(const struct hook_rule *rule, const struct hook_event *e, struct hook_job *ret)
{
	char pid[12], uid[12];
	const struct log_field own[] = { { "GPU_AGENT_RULE", rule->rule },
					 { "GPU_AGENT_PID", e->pid ? pid : NULL },
					 { "GPU_AGENT_UID", uid },
					 { NULL, NULL } };
	int r = 0;

	*ret = (struct hook_job){ .uid = e->uid,
				  .gid = e->gid,
				  .root_allowed = rule->user[0] != '\0',
				  .limits = rule->limits };
	str_copy(ret->path, sizeof(ret->path), rule->path);
	str_copy(ret->user, sizeof(ret->user), rule->user);
	snprintf(pid, sizeof(pid), "%d", (int)e->pid);
	snprintf(uid, sizeof(uid), "%u", e->uid);
	for (const struct log_field *f = own; r == 0 && f->name; f++)
		r = f->value ? add_field(ret, f->name, f->value) : 0;
	for (const struct log_field *f = e->fields; r == 0 && f && f->name; f++)
		r = f->value ? add_field(ret, f->name, f->value) : 0;
	return r;
}

/* ------------------------------------------------------------------ results ------------------ */

void hook_rules_count(struct hook_rules *h, const char *rule, const struct hook_report *report)
{
	struct hook_entry *entry = hook_rules_find(h, rule);
	struct hook_info *info = entry ? &entry->info : NULL;

	if (!info)
		return;
	info->counts.runs++;
	info->counts.failures += report->end != HOOK_END_EXIT || report->status != 0;
	info->counts.timeouts += report->end == HOOK_END_TIMEOUT;
	info->last_end = report->end;
	info->last_status = report->status;
	info->last_us = clock_wall_us();
	info->last_duration_us = report->duration_us;
}

static void describe(const struct hook_report *r, char *text, size_t size)
{
	switch (r->end) {
	case HOOK_END_EXIT:
		snprintf(text, size, "exit status %d", r->status);
		break;
	case HOOK_END_SIGNAL:
		snprintf(text, size, "died of signal %d", r->status);
		break;
	case HOOK_END_TIMEOUT:
		snprintf(text, size, "killed at its deadline");
		break;
	default:
		snprintf(text, size, "%s: %s", hook_end_name(r->end), r->why);
	}
}

/* The fields of the environment, split in place.  @return how many. */
static size_t split_fields(char *env, size_t size, struct log_field *fields, size_t max)
{
	size_t n = 0;

	for (char *p = env; p < env + size && n < max; p += strlen(p) + 1) {
		char *equals = strchr(p, '=');

		if (!equals)
			continue;
		*equals = '\0';
		fields[n++] = (struct log_field){ p, equals + 1 };
		p = equals + 1;
	}
	return n;
}

static char *copy_output(const struct hook_report *report)
{
	char *copy = malloc(report->output_size + 1);

	for (uint32_t i = 0; copy && i < report->output_size; i++)
		copy[i] = report->output[i] ? report->output[i] : '?';
	if (copy)
		copy[report->output_size] = '\0';
	return copy;
}

void hook_rules_log(const struct hook_job *job, const char *rule, pid_t target,
		    const struct hook_report *report)
{
	bool good = report->end == HOOK_END_EXIT && report->status == 0;
	char pid[12], status[12], uid[12], duration[21], total[21], left[12],
		outcome[HOOK_WHY_MAX + 32];
	struct log_field fields[FIELDS_MAX + OWN_FIELDS + 1];
	auto_free char *output = NULL, *env = NULL;
	size_t n = 0;

	/* Without memory the record is shorter. */
	output = copy_output(report);
	env = malloc(job->env_size);
	if (env)
		memcpy(env, job->env, job->env_size);
	snprintf(pid, sizeof(pid), "%d", (int)target);
	snprintf(status, sizeof(status), "%d", report->status);
	snprintf(uid, sizeof(uid), "%u", report->uid);
	snprintf(duration, sizeof(duration), "%" PRIu64, report->duration_us);
	snprintf(total, sizeof(total), "%" PRIu64, report->output_total);
	snprintf(left, sizeof(left), "%u", report->left);
	describe(report, outcome, sizeof(outcome));
	fields[n++] = (struct log_field){ "OBJECT_PID", target ? pid : NULL };
	fields[n++] = (struct log_field){ "GPU_AGENT_HOOK", job->path };
	fields[n++] = (struct log_field){ "GPU_AGENT_HOOK_END", hook_end_name(report->end) };
	fields[n++] = (struct log_field){ "GPU_AGENT_HOOK_STATUS", status };
	fields[n++] = (struct log_field){ "GPU_AGENT_HOOK_UID", uid };
	fields[n++] = (struct log_field){ "GPU_AGENT_HOOK_DURATION_US", duration };
	fields[n++] = (struct log_field){ "GPU_AGENT_HOOK_OUTPUT", output };
	fields[n++] = (struct log_field){ "GPU_AGENT_HOOK_OUTPUT_BYTES", total };
	fields[n++] = (struct log_field){ "GPU_AGENT_HOOK_LEFT", report->left ? left : NULL };
	if (env)
		n += split_fields(env, job->env_size, fields + n, FIELDS_MAX);
	fields[n] = (struct log_field){ NULL, NULL };
	log_record(good ? LOG_LEVEL_INFO : LOG_LEVEL_WARNING, LOG_MESSAGE_HOOK, fields,
		   "rule %s: hook %s for process %s as uid %s: %s", rule, job->path, target ? pid : "-",
		   uid, outcome);
}
