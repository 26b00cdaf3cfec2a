/* SPDX-License-Identifier: MIT */
/*
 * The engine of hooks as the monitor runs it, without the rest of the agent: runs one hook COUNT times, or
 * looks at its file, and prints a line of JSON for each answer.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agentd/privileges.h"
#include "agentd/rules/hooks/hooks.h"
#include "base/argv.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/out.h"
#include "base/str.h"

#define FIELDS_MAX   16
#define DOCUMENT_MAX ((size_t)256 << 20)

static struct {
	const char *program, *hook, *user, *timeout, *memory, *output, *uid, *gid, *document, *count, *stop;
	bool list;
} opt;

static const struct argv_option options[] = {
	{ "program", 0, ARGV_STRING, &opt.program, "PATH", "gpu-agent-hook" },
	{ "hook", 0, ARGV_STRING, &opt.hook, "PATH", "as in agentd.conf, like the next four" },
	{ "user", 0, ARGV_STRING, &opt.user, "NAME", "" },
	{ "timeout", 0, ARGV_STRING, &opt.timeout, "TIME", "" },
	{ "memory", 0, ARGV_STRING, &opt.memory, "SIZE", "" },
	{ "output", 0, ARGV_STRING, &opt.output, "SIZE", "" },
	{ "uid", 0, ARGV_STRING, &opt.uid, "UID", "the target's" },
	{ "gid", 0, ARGV_STRING, &opt.gid, "GID", "the target's" },
	{ "document", 0, ARGV_STRING, &opt.document, "FILE", "for standard input" },
	{ "count", 0, ARGV_STRING, &opt.count, "N", "ask for it so often at once" },
	{ "stop", 0, ARGV_STRING, &opt.stop, "TIME", "stop the engine after TIME" },
	{ "list", 0, ARGV_FLAG, &opt.list, NULL, "look at the file" },
	{ 0 },
};

static unsigned waiting;

static void print_text(const char *name, const char *data, size_t size)
{
	auto_out struct out o;

	out_init(&o, 0);
	out_json_str(&o, data, size);
	printf(", \"%s\": %s", name, o.data);
}

static void print_report(void *ctx, const struct hook_report *r)
{
	waiting--;
	printf("{\"end\": \"%s\", \"status\": %d, \"uid\": %u, \"left\": %u, \"duration_us\": %" PRIu64
	       ", \"output_total\": %" PRIu64 ", \"output_size\": %u",
	       hook_end_name(r->end), r->status, r->uid, r->left, r->duration_us, r->output_total,
	       r->output_size);
	print_text("why", r->why, strlen(r->why));
	print_text("output", r->output, r->output_size);
	puts("}");
	fflush(stdout);
}

static void print_list(void *ctx, const struct hook_info *list, size_t n)
{
	waiting--;
	for (size_t i = 0; i < n; i++) {
		printf("{\"rule\": \"%s\", \"check\": \"%s\", \"checked_uid\": %u", list[i].rule,
		       hook_end_name(list[i].check), list[i].checked_uid);
		print_text("why", list[i].why, strlen(list[i].why));
		puts("}");
	}
	fflush(stdout);
}

static int configure(struct hooks *h)
{
	const struct {
		const char *key, *value;
	} keys[] = { { "hook", opt.hook },
		     { "hook_user", opt.user },
		     { "hook_timeout", opt.timeout },
		     { "hook_memory", opt.memory },
		     { "hook_output", opt.output } };
	struct hook_rule rule;
	const char *wrong = NULL;

	hook_rule_init(&rule, "probe");
	for (size_t i = 0; i < ARRAY_SIZE(keys) && !wrong; i++)
		if (keys[i].value)
			hook_rule_set(&rule, keys[i].key, keys[i].value, &wrong);
	if (wrong)
		fprintf(stderr, "%s\n", wrong);
	return wrong ? -EINVAL : hooks_configure(h, &rule, 1);
}

static uint32_t number(const char *text, uint32_t otherwise)
{
	uint64_t v = otherwise;

	if (text)
		str_to_u64(text, 0, UINT32_MAX, &v);
	return (uint32_t)v;
}

/* @param words  NAME=VALUE, split in place. */
static int ask(struct hooks *h, char **words, int n)
{
	struct log_field fields[FIELDS_MAX + 1] = { 0 };
	struct hook_event e = { .rule = "probe", .pid = 4242, .uid = number(opt.uid, 0),
				.gid = number(opt.gid, 0), .fields = fields, .document_fd = -1 };
	uint32_t count = number(opt.count, 1);
	auto_free char *text = NULL;
	auto_close int document = -1;
	size_t size;
	int r = 0;

	if (opt.list) {
		waiting++;
		return hooks_list(h, e.uid, e.gid, false, print_list, NULL);
	}
	for (int i = 0; i < n && i < FIELDS_MAX; i++)
		fields[i] = (struct log_field){ strtok(words[i], "="), strtok(NULL, "") };
	if (opt.document)
		r = fd_read_file(opt.document, DOCUMENT_MAX, &text, &size);
	if (r == 0 && text)
		r = fd_memfd_sealed("document", text, size, &document);
	e.document_fd = document;
	for (uint32_t i = 0; i < count && r == 0; i++) {
		r = hooks_run(h, &e, print_report, NULL);
		waiting += r == 0;
		if (r == -ENOBUFS) {
			puts("{\"end\": \"dropped\"}");
			r = 0;
		}
	}
	return r;
}

static void serve(struct hooks *h, int signals)
{
	uint64_t ms = 0, stop_at = opt.stop && str_to_ms(opt.stop, &ms) == 0 ? clock_deadline_ms(ms) : 0;

	while (waiting) {
		struct pollfd fds[HOOKS_RUNNING_MAX + 2];
		size_t n = hooks_poll(h, fds);
		uint64_t next = hooks_deadlines(h);
		struct signalfd_siginfo si;
		int status;
		pid_t pid;

		fds[n] = (struct pollfd){ .fd = signals, .events = POLLIN };
		if (stop_at && (!next || stop_at < next))
			next = stop_at;
		poll(fds, n + 1, next ? clock_left_ms(next) : -1);
		if (stop_at && clock_left_ms(stop_at) == 0) {
			stop_at = 0;
			hooks_stop(h);
		}
		for (size_t i = 0; i < n; i++)
			if (fds[i].revents)
				hooks_readable(h, fds[i].fd);
		while (read(signals, &si, sizeof(si)) == sizeof(si))
			;
		while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
			hooks_reaped(h, pid, status);
	}
}

int main(int argc, char **argv)
{
	static const struct argv_option *const tables[] = { options, NULL };
	struct hooks h;
	char error[160];
	sigset_t set;
	int n = argv_parse(argc, argv, tables, error, sizeof(error)), r, signals;

	if (n < 0 || !opt.program) {
		fprintf(stderr, "hooks_probe: %s\n", n < 0 ? error : "--program is missing");
		return 2;
	}
	log_init("hooks_probe", LOG_LEVEL_INFO);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	r = privileges_keep_attach();
	hooks_init(&h, opt.program);
	if (r == 0)
		r = configure(&h);
	if (r == 0)
		r = ask(&h, argv, n);
	if (r == 0)
		serve(&h, signals);
	else
		fprintf(stderr, "hooks_probe: %s\n", strerror(-r));
	hooks_deinit(&h);
	return r < 0;
}
