/* SPDX-License-Identifier: MIT */
/*
 * gpu-agentctl: look at GPU processes through the agent.  This file knows the verbs and the options
 * that all of them share; each verb is in its own file.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/nearest.h"
#include "base/str.h"
#include "ctl/complete.h"
#include "ctl/ctl.h"
#include "ctl/signals.h"
#include "paths.h"

#define TIME_MAX_MS 86400000
/* The column of help from which on verbs are explained. */
#define VERB_COLUMN 14
/* The longest stop that the agent accepts for one look. */
#define LOOK_MAX_MS 60000u

/* The options below point into it, and so does the signal handler. */
static struct ctl ctl;

static const struct argv_option common[] = {
	{ "json", 'j', ARGV_OPTIONAL, &ctl.json_option, "pretty|short|off",
	  "print one JSON document (one a line for streams)" },
	{ "output", 'o', ARGV_STRING, &ctl.output.path, "FILE", "write data to FILE" },
	{ "socket", 0, ARGV_STRING, &ctl.socket_option, "PATH",
	  "socket of the agent (default: $GPU_AGENT_SOCKET)" },
	{ "timeout", 0, ARGV_STRING, &ctl.timeout_option, "TIME",
	  "give up when a request takes longer (default 30s)" },
	{ "max-stop", 0, ARGV_STRING, &ctl.max_stop_option, "TIME",
	  "never keep queues stopped for longer" },
	{ "color", 0, ARGV_STRING, &ctl.color_option, "WHEN", "auto, always or never" },
	{ "no-pager", 0, ARGV_FLAG, &ctl.no_pager, NULL, "do not page long output" },
	{ "no-legend", 0, ARGV_FLAG, &ctl.no_legend, NULL, "leave out column titles" },
	{ "quiet", 'q', ARGV_FLAG, &ctl.quiet, NULL, "print data and errors only" },
	{ "verbose", 'v', ARGV_FLAG, &ctl.verbose, NULL, "say what is being done" },
	{ "help", 'h', ARGV_FLAG, &ctl.help, NULL, "print help and exit" },
	{ "version", 0, ARGV_FLAG, &ctl.version, NULL, "print the version and exit" },
	{ 0 },
};

/* The option of verbs that can look into a core file. */
static const struct argv_option core_options[] = {
	{ "core", 0, ARGV_STRING, &ctl.core, "FILE", "look into a core file instead of a process" },
	{ 0 },
};

static const struct argv_option no_options[] = { { 0 } };

#define VERB(name) &ctl_verb_##name,
static const struct ctl_verb *const verbs[] = { CTL_VERBS(VERB) };
#undef VERB

static const struct ctl_verb *find_verb(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (!strcmp(verbs[i]->name, name) ||
		    (verbs[i]->alias && !strcmp(verbs[i]->alias, name)))
			return verbs[i];
	return NULL;
}

/* Whether the option of that name, without its dashes, has its value in the next argument. */
static bool long_takes_next(const struct argv_option *o, const char *name)
{
	for (; o && o->name; o++)
		if (o->kind == ARGV_STRING && argv_option_is(o, name, strlen(name)))
			return true;
	return false;
}

/* Whether the option of that letter takes a value. */
static bool letter_takes_next(const struct argv_option *o, char letter)
{
	for (; o && o->name; o++)
		if (o->letter == letter && o->kind == ARGV_STRING)
			return true;
	return false;
}

/* Whether the letter takes a value in any verb: the verb is not known yet when this is asked. */
static bool letter_takes_value(char letter)
{
	bool takes = letter_takes_next(common, letter);

	for (size_t i = 0; i < ARRAY_SIZE(verbs) && !takes; i++)
		takes = letter_takes_next(verbs[i]->options, letter);
	return takes;
}

/*
 * Letters may be joined.  The value of the first one that has a value is the rest of the argument,
 * or the next argument if there is no rest.
 */
static bool letters_take_next(const char *letters)
{
	for (; *letters; letters++)
		if (letter_takes_value(*letters))
			return !letters[1];
	return false;
}

/* Whether a letter is among joined ones, and not part of the value of another. */
static bool letters_have(const char *letters, char letter)
{
	for (; *letters && !letter_takes_value(*letters); letters++)
		if (*letters == letter)
			return true;
	return false;
}

/* Whether the argument behind an option is its value. */
static bool option_takes_next(const char *arg)
{
	if (arg[1] != '-')
		return letters_take_next(arg + 1);
	if (long_takes_next(common, arg + 2) || long_takes_next(core_options, arg + 2))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (long_takes_next(verbs[i]->options, arg + 2))
			return true;
	return false;
}

/* The verb is the first argument that is neither an option nor the value of one. */
static const char *verb_argument(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (argv[i][0] != '-' || !argv[i][1])
			return argv[i];
		if (!strcmp(argv[i], "--"))
			return i + 1 < argc ? argv[i + 1] : NULL;
		i += option_takes_next(argv[i]);
	}
	return NULL;
}

/* Remember a verb's name if it is nearer to the text than the best one so far. */
static void try_name(const char *text, const char *name, const char **best, size_t *least)
{
	size_t d = nearest_distance(text, name);

	/* A beginning of a name is as near as one wrong letter. */
	if (strlen(text) >= 3 && str_starts_with(name, text))
		d = 1;
	if (d < *least && nearest_is_near(d, strlen(name))) {
		*least = d;
		*best = name;
	}
}

/* The verb that was probably meant, or NULL. */
static const char *similar_verb(const char *text)
{
	const char *best = NULL;
	size_t least = 3;

	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		try_name(text, verbs[i]->name, &best, &least);
		if (verbs[i]->alias)
			try_name(text, verbs[i]->alias, &best, &least);
	}
	return best;
}

static int unknown_verb(const char *name)
{
	const char *similar = similar_verb(name);

	if (similar)
		return ctl_usage(&ctl, "unknown verb \"%.40s\"; did you mean \"%s\"?", name,
				 similar);
	return ctl_usage(&ctl, "unknown verb \"%.40s\"", name);
}

const struct ctl_verb *ctl_find_verb(struct ctl *c, const char *name)
{
	const struct ctl_verb *verb = find_verb(name);

	if (!verb)
		unknown_verb(name);
	return verb;
}

static void print_verb(const struct ctl_verb *v)
{
	char text[200];

	snprintf(text, sizeof(text), "%s%s%s%s", v->summary, v->alias ? " (alias: " : "",
		 v->alias ? v->alias : "", v->alias ? ")" : "");
	argv_print_item(v->name, VERB_COLUMN, text);
}

void ctl_print_help(const struct ctl_verb *verb)
{
	if (verb) {
		printf("usage: gpu-agentctl %s%s%s [OPTIONS]\n\n%s.\n", verb->name,
		       verb->args[0] ? " " : "", verb->args, verb->summary);
		if (verb->alias)
			printf("Alias: %s\n", verb->alias);
		if (verb->options || verb->takes_core)
			printf("\nOptions of this verb:\n");
		if (verb->options)
			argv_print_options(verb->options);
		if (verb->takes_core)
			argv_print_options(core_options);
	} else {
		printf("usage: gpu-agentctl VERB [ARGUMENTS] [OPTIONS]\n\nVerbs:\n");
		for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
			print_verb(verbs[i]);
	}
	printf("\nOptions of every verb:\n");
	argv_print_options(common);
	printf("\nSee gpu-agentctl(1).\n");
}

/*
 * The value of --json, found before options are parsed: a mistake in them is to be reported in the
 * right way as well.  The last one counts.
 */
static const char *early_json(int argc, char **argv)
{
	const char *mode = NULL;

	for (int i = 1; i < argc && strcmp(argv[i], "--"); i++) {
		if (!strcmp(argv[i], "--json") ||
		    (argv[i][0] == '-' && argv[i][1] != '-' && letters_have(argv[i] + 1, 'j')))
			mode = "";
		else if (str_starts_with(argv[i], "--json="))
			mode = argv[i] + strlen("--json=");
	}
	return mode;
}

/*
 * Choose the socket: what was given, or that of the system's agent, or else of this user's agent.
 */
static int choose_socket(void)
{
	static const char system_socket[] = RUNSTATEDIR "/gpu-agent/agentd.sock";
	const char *path = ctl.socket_option, *dir = getenv("XDG_RUNTIME_DIR");
	char own[sizeof(ctl.socket)];
	struct stat st;

	if (!path && !str_is_empty(getenv("GPU_AGENT_SOCKET")))
		path = getenv("GPU_AGENT_SOCKET");
	if (!path)
		path = system_socket;
	if (path == system_socket && stat(path, &st) < 0 && !str_is_empty(dir) &&
	    (size_t)snprintf(own, sizeof(own), "%s/gpu-agent/agentd.sock", dir) < sizeof(own) &&
	    stat(own, &st) == 0)
		path = own;
	if (!path[0] || strlen(path) >= sizeof(ctl.socket))
		return ctl_usage(&ctl, "--socket: the path must have 1 to %zu bytes",
				 sizeof(ctl.socket) - 1);
	str_copy(ctl.socket, sizeof(ctl.socket), path);
	return 0;
}

static int apply_options(void)
{
	int r = 0;

	if (ctl.json_option && output_set_json(&ctl.output, ctl.json_option) < 0)
		return ctl_usage(&ctl, "--json: \"%.40s\" is none of pretty, short, off",
				 ctl.json_option);
	if (color_decide(ctl.color_option, !ctl.output.path && isatty(STDOUT_FILENO),
			 &ctl.output.color) < 0)
		return ctl_usage(&ctl, "--color: \"%.40s\" is none of auto, always, never",
				 ctl.color_option);
	color_decide(ctl.color_option, isatty(STDERR_FILENO), &ctl.color_messages);
	if (ctl.output.path && !ctl.output.path[0])
		return ctl_usage(&ctl, "--output: needs the name of a file");
	ctl.timeout_ms = CTL_TIMEOUT_MS;
	if (ctl.timeout_option)
		r = args_duration(&ctl, "--timeout", ctl.timeout_option, TIME_MAX_MS,
				  &ctl.timeout_ms);
	if (r == 0 && ctl.max_stop_option)
		r = args_duration(&ctl, "--max-stop", ctl.max_stop_option, TIME_MAX_MS,
				  &ctl.max_stop_ms);
	ctl.max_look_ms = ctl.max_stop_ms < LOOK_MAX_MS ? ctl.max_stop_ms : LOOK_MAX_MS;
	ctl.output.pager = !ctl.no_pager;
	ctl.output.legend = !ctl.no_legend;
	output_set_width(&ctl.output);
	return r < 0 ? r : choose_socket();
}

static int run_verb(const struct ctl_verb *verb, int argc, char **argv)
{
	int status, r;

	/*
	 * The slot of the verb in argv is free: the core file takes it and stands for the process.
	 */
	if (ctl.core) {
		argc++;
		argv--;
		argv[0] = (char *)ctl.core;
	}
	if (argc < verb->min_args)
		return ctl_usage(&ctl, "%s needs %s", verb->name, verb->args);
	if (argc > verb->max_args)
		return ctl_usage(&ctl, "%s: unexpected argument \"%.40s\"", verb->name,
				 argv[verb->max_args]);
	status = verb->run(&ctl, argc, argv);
	if (status < 0)
		return status;
	r = output_finish(&ctl.output);
	/*
	 * A reader that has closed its end is no failure: the status is that of a signal, as in a
	 * shell.
	 */
	if (r == -EPIPE)
		return CTL_EXIT_SIGNAL + SIGPIPE;
	if (r < 0)
		return ctl_fail(&ctl, -r, ctl.output.path ? ctl.output.path : "standard output");
	return status;
}

static int start(int argc, char **argv)
{
	const char *name = verb_argument(argc, argv), *early = early_json(argc, argv);
	const struct ctl_verb *verb = name ? find_verb(name) : NULL;
	const struct argv_option *const tables[] = {
		common, verb && verb->options ? verb->options : no_options,
		verb && verb->takes_core ? core_options : no_options, NULL
	};
	char error[160];
	int n, r;

	ctl.verb = verb ? verb->name : NULL;
	/* A mistake in the value of --json is reported as JSON too. */
	if (early && output_set_json(&ctl.output, early) < 0)
		ctl.output.json = OUTPUT_JSON_SHORT;
	if (name && !verb)
		return unknown_verb(name);
	n = argv_parse(argc, argv, tables, error, sizeof(error));
	if (n < 0)
		return ctl_usage(&ctl, "%s", error);
	if (ctl.help) {
		ctl_print_help(verb);
		return 0;
	}
	if (ctl.version) {
		printf("gpu-agentctl " GPU_AGENT_VERSION "\n");
		return 0;
	}
	r = apply_options();
	if (r < 0)
		return r;
	if (!verb)
		return ctl_usage(&ctl, "no verb given");
	return run_verb(verb, n - 1, argv + 1);
}

/* `gpu-agentctl __complete -- WORD...`, which the files for shells call. */
static bool asks_for_completion(int argc, char **argv)
{
	static const struct complete_program program = {
		.verbs = verbs, .n_verbs = ARRAY_SIZE(verbs), .common = common, .core = core_options,
		.find_verb = find_verb, .takes_next = option_takes_next, .choose_socket = choose_socket,
	};

	if (argc < 3 || strcmp(argv[1], "__complete") || strcmp(argv[2], "--"))
		return false;
	complete_print(&ctl, &program, argc - 3, argv + 3);
	return true;
}

/* What is written to a standard output that somebody has closed is lost: it has to fail, and not to go to /dev/null. */
static void reserve_stdio(void)
{
	const bool is_closed = fcntl(STDOUT_FILENO, F_GETFD) < 0;
	int fd;

	fd_reserve_stdio();
	fd = is_closed ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;
	if (fd >= 0) {
		dup2(fd, STDOUT_FILENO);
		close(fd);
	}
}

int main(int argc, char **argv)
{
	int status;

	reserve_stdio();
	output_init(&ctl.output);
	signals_init(&ctl.output);
	rpc_arena_init(&ctl.arena, 0);
	out_init(&ctl.err_json, 0);
	status = asks_for_completion(argc, argv) ? 0 : start(argc, argv);
	if (status < 0) {
		ctl_report(&ctl);
		status = agent_err_exit(&ctl.err);
	}
	if (ctl.core)
		source_core_close(&ctl.source);
	else
		rpc_client_close(ctl.client);
	output_deinit(&ctl.output);
	rpc_arena_deinit(&ctl.arena);
	out_deinit(&ctl.err_json);
	return status;
}
