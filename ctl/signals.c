/* SPDX-License-Identifier: MIT */
/*
 * Signals of the terminal.  The program has one thread; what the handler looks at is set before the
 * handler is installed, or through volatile pointers.
 */
#include "ctl/signals.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "corefile/file.h"
#include "ctl/ctl.h"

static const int handled[] = { SIGINT, SIGTERM, SIGHUP };
/* What the handler looks at: the output, a function of the verb, a file that is being made. */
static const struct output *watched;
static void (*volatile at_exit)(void);
static const struct corefile_file *volatile file_made;

/* The error document of JSON mode, for which no memory may be allocated now. */
static const char interrupted[] =
	"{\"error\":{\"code\":-32000,\"message\":\"interrupted by a signal\"}}\n";

/* The handler makes only async-signal-safe calls, and ends the program. */
static void on_signal(int signo)
{
	if (at_exit)
		at_exit();
	if (watched->temp[0])
		unlink(watched->temp);
	if (file_made && file_made->hidden[0])
		unlinkat(file_made->dir_fd, file_made->hidden, 0);
	/*
	 * When part of a document has left already, an error document behind it would be no JSON.
	 */
	if (watched->json != OUTPUT_JSON_OFF && !watched->delivered &&
	    write(STDOUT_FILENO, interrupted, sizeof(interrupted) - 1) < 0)
		_exit(CTL_EXIT_SIGNAL + signo);
	_exit(CTL_EXIT_SIGNAL + signo);
}

static void signal_set(sigset_t *set)
{
	sigemptyset(set);
	for (size_t i = 0; i < ARRAY_SIZE(handled); i++)
		sigaddset(set, handled[i]);
}

void signals_init(const struct output *output)
{
	struct sigaction sa = { .sa_handler = on_signal }, old;

	watched = output;
	signal_set(&sa.sa_mask);
	for (size_t i = 0; i < ARRAY_SIZE(handled); i++) {
		/* nohup and background jobs of a shell want these signals ignored: they stay so. */
		if (sigaction(handled[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			sigaction(handled[i], &sa, NULL);
	}
	signal(SIGPIPE, SIG_IGN);
}

void signals_at_exit(void (*fn)(void))
{
	at_exit = fn;
}

void signals_watch_file(const struct corefile_file *file)
{
	file_made = file;
}

int signals_hold(void)
{
	sigset_t set;
	int fd;

	signal_set(&set);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0) {
		fd = -errno;
		sigprocmask(SIG_UNBLOCK, &set, NULL);
	}
	return fd;
}

void signals_release(int fd)
{
	sigset_t set;

	close(fd);
	signal_set(&set);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

int signals_read(int fd)
{
	struct signalfd_siginfo info;

	if (read(fd, &info, sizeof(info)) != sizeof(info))
		return 0;
	return (int)info.ssi_signo;
}
