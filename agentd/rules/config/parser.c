/* SPDX-License-Identifier: MIT */
#include "agentd/rules/config/parser.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agentd/child.h"
#include "agentd/privileges.h"
#include "agentd/rules/config/dump.h"
#include "agentd/rules/config/parsed.h"
#include "agentd/rules/engine/rules.h"
#include "agentd/rules/engine/users.h"
#include "agentd/sandbox.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/out.h"
#include "base/str.h"

/* Parsing takes milliseconds, and looking a name up as long as the user database wants. */
#define PARSE_MS 10000
#define END_MS	 1000
/* The kernel's user who owns nothing, whatever it is called. */
#define NOBODY	 65534

/* Descriptors of the parser. */
enum { QUESTION_FD = 3, ANSWER_FD, NAMES_FD };

/* The parser asks for the id of a user or group. */
struct name_question {
	uint32_t kind; /* enum users_kind */
	char name[256];
};

struct name_answer {
	int32_t status; /* 0, -ENOENT */
	uint32_t id;
};

/* ------------------------------------------------------------------ the parser --------------- */

static int ask_parent(enum users_kind kind, const char *name, uint32_t *ret_id)
{
	struct name_question q = { .kind = kind };
	struct name_answer a;

	if (strlen(name) >= sizeof(q.name))
		return -ENOENT;
	str_copy(q.name, sizeof(q.name), name);
	/* Without the parent the answer is of no use to anybody. */
	if (send(NAMES_FD, &q, sizeof(q), MSG_NOSIGNAL) != (ssize_t)sizeof(q) ||
	    recv(NAMES_FD, &a, sizeof(a), 0) != (ssize_t)sizeof(a))
		_exit(1);
	*ret_id = a.id;
	return a.status;
}

/* Also as root that has no such user in its namespace, or may not change ids, with all other bounds. */
static int give_up_rights(void)
{
	const struct rlimit size = { PARSED_MAX, PARSED_MAX };
	int r = privileges_may_become() ? privileges_become(NOBODY, NOBODY) : -EINVAL;

	if (r == -EINVAL)
		r = privileges_become(getuid(), getgid());
	if (r == -EPERM)
		r = privileges_give_up();
	if (r == 0)
		r = privileges_hide();
	if (r == 0 && setrlimit(RLIMIT_FSIZE, &size) < 0)
		r = -errno;
	return r < 0 ? r : sandbox_parser();
}

static void parse(const char *data, size_t size, struct out *answer)
{
	static struct parsed_answer a;
	struct config_files files = { 0 };
	struct config_dump dump = { 0 };
	struct parsed_question q;
	struct rules rules = { 0 };
	int r = parsed_read_question(data, size, &q, &files), e;
	const struct config_reading how = { .rules = r == 0 && q.has_rules ? &rules : NULL,
					    .names_must_exist = r == 0 && q.names_must_exist,
					    .dump = r == 0 && q.has_dump ? &dump : NULL };

	if (r == 0) {
		a.config = q.config;
		r = config_parse_files(&a.config, &how, &files, a.error, sizeof(a.error));
		e = rules_check(&rules, a.error, sizeof(a.error));
		r = r ? r : e;
	}
	a.status = r ? r : dump.error;
	parsed_tell(answer, &a, &rules, &dump);
	config_dump_deinit(&dump);
	rules_deinit(&rules);
	config_files_deinit(&files);
}

int parser_run(void)
{
	auto_out struct out answer;
	const void *data;
	size_t size;
	int r = give_up_rights();

	if (r == 0)
		r = fd_memfd_map(QUESTION_FD, SIZE_MAX, &data, &size);
	if (r < 0) {
		log_error("the parser of the configuration cannot begin: %s", strerror(-r));
		return 1;
	}
	users_ask(ask_parent);
	out_init(&answer, 0);
	parse(data, size, &answer);
	if (!out_error(&answer))
		r = fd_write_all(ANSWER_FD, answer.data, answer.size);
	return out_error(&answer) || r < 0;
}

/* ------------------------------------------------------------------ its parent --------------- */

static void answer_name(int sock, const struct name_question *q)
{
	struct name_answer a = { .status = -ENOENT };

	if ((q->kind == USERS_USER || q->kind == USERS_GROUP) && memchr(q->name, '\0', sizeof(q->name)))
		a.status = users_find((enum users_kind)q->kind, q->name, &a.id);
	/* If it is gone, nobody waits for that. */
	(void)!send(sock, &a, sizeof(a), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Until it closes its end.  @return 0, -ETIMEDOUT. */
static int answer_names(int sock, uint64_t deadline_ns)
{
	struct pollfd p = { .fd = sock, .events = POLLIN };
	struct name_question q;
	int left;

	while ((left = clock_left_ms(deadline_ns))) {
		if (poll(&p, 1, left) <= 0)
			continue;
		if (recv(sock, &q, sizeof(q), MSG_DONTWAIT) != (ssize_t)sizeof(q))
			return 0;
		answer_name(sock, &q);
	}
	return -ETIMEDOUT;
}

static pid_t start(int question_fd, int answer_fd, int names_fd)
{
	static const int to[] = { QUESTION_FD, ANSWER_FD, NAMES_FD };
	const int from[] = { question_fd, answer_fd, names_fd };
	char directory[PATH_MAX - 32], program[PATH_MAX];
	const char *const argv[] = { program, "--parse", NULL };
	int r = child_find_directory(directory, sizeof(directory));
	pid_t pid;

	if (r < 0)
		return r;
	snprintf(program, sizeof(program), "%s/gpu-agent-rules", directory);
	pid = fork();
	if (pid != 0)
		return pid < 0 ? -errno : pid;
	child_place_fds(from, to, ARRAY_SIZE(to));
	child_exec(program, argv, 0);
}

/* @return 0: it has answered; -ETIMEDOUT, -ECHILD. */
static int wait_for(pid_t pid, int names_fd)
{
	const uint64_t deadline_ns = clock_deadline_ms(PARSE_MS);
	int status = -1, r = answer_names(names_fd, deadline_ns);

	if (r == 0)
		r = child_wait(pid, deadline_ns, &status);
	if (r == -ETIMEDOUT) {
		kill(pid, SIGKILL);
		child_wait(pid, clock_deadline_ms(END_MS), &status);
	}
	return r < 0 ? r : status ? -ECHILD : 0;
}

static int run(int question_fd, int answer_fd)
{
	int pair[2], r = fd_socketpair(0, pair);
	pid_t pid;

	if (r < 0)
		return r;
	pid = start(question_fd, answer_fd, pair[1]);
	close(pair[1]);
	r = pid < 0 ? pid : wait_for(pid, pair[0]);
	close(pair[0]);
	return r;
}

/* Nobody else has it any more; it is copied all the same, so that what is checked is what is used. */
static int read_answer(int fd, char **ret, size_t *ret_size)
{
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size <= 0 || (size_t)st.st_size > PARSED_MAX)
		return -EBADMSG;
	*ret = malloc((size_t)st.st_size);
	if (!*ret)
		return -ENOMEM;
	n = fd_pread_all(fd, *ret, (size_t)st.st_size, 0);
	*ret_size = n < 0 ? 0 : (size_t)n;
	return n < 0 ? (int)n : 0;
}

static const char *what_is_wrong(int error)
{
	return error == -ETIMEDOUT ? "it does not answer" :
	       error == -ECHILD	   ? "it has died" :
	       error == -EBADMSG   ? "its answer makes no sense; has the agent been upgraded?" : strerror(-error);
}

int parser_parse_files(struct config *c, const struct config_reading *how, const struct config_files *f, char *error,
		       size_t error_size)
{
	auto_close int question_fd = -1, answer_fd = memfd_create("gpu-agent-parsed", MFD_CLOEXEC);
	auto_free char *answer = NULL;
	auto_out struct out question;
	bool has_answer = false;
	size_t size = 0;
	int r;

	out_init(&question, 0);
	parsed_ask(&question, c, how, f);
	r = answer_fd < 0 ? -errno : out_error(&question);
	if (r == 0)
		r = fd_memfd_sealed("gpu-agent-conf", question.data, question.size, &question_fd);
	if (r == 0)
		r = run(question_fd, answer_fd);
	if (r == 0)
		r = read_answer(answer_fd, &answer, &size);
	if (r == 0) {
		error[0] = '\0';
		r = parsed_read_answer(answer, size, c, how->rules, how->dump, error, error_size);
		has_answer = r != -EBADMSG || error[0];
	}
	if (!has_answer)
		snprintf(error, error_size, "the process that parses agentd.conf: %s", what_is_wrong(r));
	return r;
}
