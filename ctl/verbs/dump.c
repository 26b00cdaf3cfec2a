/* SPDX-License-Identifier: MIT */
/*
 * gpu-agentctl dump: a core file of the process.  The agent has the memory, this program the file:
 * it is made and written with the rights of whoever asked for it, from what the agent sends.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "corefile/file.h"
#include "corefile/sink.h"
#include "corefile/stream.h"
#include "ctl/cli_words.h"
#include "ctl/ctl.h"
#include "ctl/signals.h"
#include "ctl/terminal/text.h"

#define PIECE	    (UINT32_C(4) << 20)
/* How long the agent may be asked to wait for us. */
#define STALL_MIN_MS 100
#define STALL_MAX_MS 60000
#define TELL_NS	    UINT64_C(500000000)
#define FILE_MODE   0600 /* memory of a process is its owner's business */

static bool light, full, unified, estimate, progress;
static const char *compress, *layout;

static const struct argv_option options[] = {
	{ "light", 0, ARGV_FLAG, &light, NULL, "what explains the waves, no bulk memory (default)" },
	{ "full", 0, ARGV_FLAG, &full, NULL, "all memory of the process" },
	{ "unified", 0, ARGV_FLAG, &unified, NULL,
	  "the host's threads and stacks too, each stopped for a moment (AMD)" },
	{ "estimate", 0, ARGV_FLAG, &estimate, NULL, "only say about how large it would be" },
	{ "compress", 0, ARGV_STRING, &compress, "zstd", "compress the file" },
	{ "layout", 0, ARGV_STRING, &layout, "LAYOUT",
	  "records as drivers of an older branch write them (CUDA): r400 for cuda-gdb 11.8" },
	{ "progress", 0, ARGV_FLAG, &progress, NULL, "say how far it is, not only on a terminal" },
	{ 0 },
};

struct dump {
	struct ctl *c;
	char session[65], default_name[32];
	enum rpc_core_layout layout;
	const char *path;
	struct corefile_file file;
	struct corefile_sink *sink;
	struct rpc_core_begin_result core;
	struct out begin; /* that result as the agent sent it */
	uint64_t lost;
	uint64_t disk_bytes; /* that the file takes: less than it holds when compressed, or with holes */

	int signal_fd, signo;
	bool tell, terminal, told;
	uint64_t begun_ns, told_ns;
};

/* ------------------------------------------------------------------ progress ----------------- */

static void tell(struct dump *d, uint64_t done, uint64_t total, uint64_t now)
{
	uint64_t ms = (now - d->begun_ns) / 1000000 + 1, rate = done * 1000 / ms;
	auto_out struct out o = { 0 };

	text_size(&o, done >> 20 << 20);
	out_str(&o, " of ");
	text_size(&o, total);
	out_str(&o, ", ");
	text_size(&o, rate >> 20 << 20);
	out_str(&o, "/s, ");
	text_duration(&o, rate ? (total - done) * 1000 / rate : 0);
	out_str(&o, " left");
	if (!out_error(&o))
		fprintf(stderr, d->terminal ? "\r\033[K%s" : "%s\n", o.data);
	d->told = true;
	d->told_ns = now;
}

static bool on_progress(void *arg, uint64_t done, uint64_t total)
{
	struct dump *d = arg;
	uint64_t now = clock_now_ns();

	if (!d->signo)
		d->signo = signals_read(d->signal_fd);
	if (d->tell && now - d->told_ns >= TELL_NS)
		tell(d, done, total, now);
	return d->signo == 0;
}

/* ------------------------------------------------------------------ the file ----------------- */

static int check_space(struct dump *d)
{
	auto_out struct out o = { 0 };
	uint64_t room;
	int r = corefile_file_space(&d->file, &room);

	if (r < 0)
		return ctl_fail(d->c, -r, d->path);
	if (compress || room >= d->core.bytes)
		return 0;
	text_size(&o, d->core.bytes);
	out_str(&o, ", there are ");
	text_size(&o, room);
	return agent_err_set(&d->c->err, RPC_ERROR_FAILED, ENOSPC, d->path,
			     "name another file system with -o, or try --compress=zstd",
			     "the core needs %s", o.data);
}

/* ------------------------------------------------------------------ bytes -------------------- */

static int bad_reply(struct ctl *c)
{
	return agent_err_set(&c->err, RPC_ERROR_INTERNAL, 0, "core.read", NULL,
			     "the agent's reply holds no such bytes");
}

static int take(struct dump *d, struct rpc_core_read_result *piece)
{
	size_t text_size = strlen(piece->data), size;
	char *text = (char *)piece->data;

	if (!text_size) {
		corefile_sink_pad(d->sink, corefile_sink_position(d->sink) + piece->size);
		return 0;
	}
	/* In place: the result is ours. */
	if (base64_decode(text, text_size, (uint8_t *)text, &size) < 0 || size != piece->size)
		return bad_reply(d->c);
	corefile_sink_write(d->sink, text, size);
	return 0;
}

static int read_piece(struct dump *d, uint64_t offset)
{
	struct ctl *c = d->c;
	uint64_t left = d->core.bytes - offset;
	struct rpc_core_read_params p = { .session = d->session,
					  .offset = offset,
					  .size = left < PIECE ? (uint32_t)left : PIECE };
	struct rpc_core_read_result piece;
	int r;

	rpc_arena_reset(&c->arena);
	r = ctl_called(c, rpc_client_core_read(c->client, &p, &c->arena, &piece, &c->err));
	if (r < 0)
		return r;
	if (piece.size != p.size)
		return bad_reply(c);
	d->lost += piece.lost_bytes;
	return take(d, &piece);
}

/* Piece by piece in replies, where no descriptor comes with one: through a forwarded socket. */
static int copy_pieces(struct dump *d)
{
	int r = 0;

	for (uint64_t at = 0; r == 0 && at < d->core.bytes && !corefile_sink_failed(d->sink);
	     at += PIECE) {
		r = read_piece(d, at);
		/* A piece may be too short for the sink to look. */
		if (!d->signo)
			d->signo = signals_read(d->signal_fd);
		if (d->signo)
			break;
	}
	return r;
}

/* @return 0 when there is something, or a signal; negative. */
static int wait_stream(struct dump *d, int fd)
{
	uint64_t deadline_ns = clock_deadline_ms(d->c->timeout_ms);
	struct pollfd p[] = { { .fd = fd, .events = POLLIN },
			      { .fd = d->signal_fd, .events = POLLIN } };
	int r;

	do
		r = poll(p, ARRAY_SIZE(p), clock_left_ms(deadline_ns));
	while (r < 0 && errno == EINTR);
	if (r < 0)
		return ctl_fail(d->c, errno, "poll");
	if (r == 0)
		return agent_err_set(&d->c->err, RPC_ERROR_TIMEOUT, ETIMEDOUT, "core.write",
				     "allow more time with --timeout",
				     "nothing more of the core came within %" PRIu32 " ms",
				     d->c->timeout_ms);
	if (!d->signo && p[1].revents)
		d->signo = signals_read(d->signal_fd);
	return 0;
}

/* Its end without a word: who is left may say why. */
static int ended_early(struct dump *d)
{
	const struct rpc_core_end_params p = { .session = d->session };
	struct rpc_core_end_result ret;
	struct ctl *c = d->c;
	int r = ctl_called(c, rpc_client_core_end(c->client, &p, &c->arena, &ret, &c->err));

	if (r < 0)
		return r;
	return agent_err_set(&c->err, RPC_ERROR_FAILED, EPIPE, "core.write",
			     "is the file's disk very slow, or was this program stopped?",
			     "the agent has ended the core in the middle");
}

static int stream_failed(struct dump *d, const struct corefile_stream_in *in, int r)
{
	const char *text;
	size_t size;

	if (r == -EPIPE)
		return ended_early(d);
	text = corefile_stream_in_error(in, &size);
	if (r == -EREMOTEIO && agent_err_decode_text(text, size, &d->c->err) == 0)
		return r;
	return agent_err_set(&d->c->err, RPC_ERROR_INTERNAL, -r, "core.write", NULL,
			     "what the agent sends is not the core: %s", strerror(-r));
}

static int copy_stream(struct dump *d, int fd)
{
	struct corefile_stream_in *in;
	int r = corefile_stream_in_create(fd, d->core.bytes, &in);

	if (r < 0)
		return ctl_fail(d->c, -r, "core.write");
	while (r == 0 && !d->signo && !corefile_sink_failed(d->sink)) {
		r = wait_stream(d, fd);
		if (r < 0 || d->signo)
			break;
		r = corefile_stream_in_read(in, d->sink);
		if (r < 0)
			r = stream_failed(d, in, r);
	}
	d->lost = corefile_stream_in_lost(in);
	corefile_stream_in_destroy(in);
	return r < 0 ? r : 0;
}

/* @param ret_fd  -1: the agent, or something before it, gives none. */
static int open_stream(struct dump *d, int *ret_fd)
{
	const uint32_t ms = d->c->timeout_ms;
	const struct rpc_core_write_params p = {
		.session = d->session,
		.has_stall_ms = true,
		.stall_ms = ms < STALL_MIN_MS ? STALL_MIN_MS : ms < STALL_MAX_MS ? ms : STALL_MAX_MS,
	};
	struct rpc_core_write_result ret;
	struct ctl *c = d->c;
	int r;

	rpc_arena_reset(&c->arena);
	r = ctl_called(c, rpc_client_core_write(c->client, &p, &c->arena, &ret, &c->err));
	*ret_fd = rpc_client_take_fd(c->client);
	/* A rule that is busy with a core says so again. */
	if (r < 0 && (c->err.code == RPC_ERROR_METHOD_NOT_FOUND || c->err.code == RPC_ERROR_BUSY)) {
		c->err = (struct agent_err){ 0 };
		out_reset(&c->err_json);
		return 0;
	}
	return r;
}

static int finish_file(struct dump *d)
{
	int r = corefile_sink_finish(d->sink);

	if (r == 0 || r == -ECANCELED)
		return 0;
	return agent_err_set(&d->c->err, RPC_ERROR_FAILED, -r, d->path,
			     r == -ENOSPC ? "name another file system with -o, or try --compress=zstd" : NULL,
			     "the file ends at byte %" PRId64 ": %s",
			     (int64_t)lseek(d->file.fd, 0, SEEK_CUR), strerror(-r));
}

static int copy_core(struct dump *d)
{
	const struct corefile_sink_options o = { .zstd = compress,
						 .total = d->core.bytes,
						 .progress = on_progress,
						 .arg = d };
	auto_close int fd = -1;
	int r = open_stream(d, &fd);

	if (r < 0)
		return r;
	r = corefile_sink_create(d->file.fd, &o, &d->sink);
	if (r < 0)
		return ctl_fail(d->c, -r, d->path);
	r = fd < 0 ? copy_pieces(d) : copy_stream(d, fd);
	return r < 0 || d->signo ? r : finish_file(d);
}

/* Not before everything is on the disk: some file systems find room for it no sooner. */
static void measure(struct dump *d)
{
	struct stat st;

	d->disk_bytes = fstat(d->file.fd, &st) < 0 ? 0 : (uint64_t)st.st_blocks * 512;
}

static int copy(struct dump *d)
{
	int r;

	d->begun_ns = d->told_ns = clock_now_ns();
	r = copy_core(d);
	if (d->told && d->terminal)
		fprintf(stderr, "\r\033[K");
	if (r < 0 || d->signo)
		return r;
	r = corefile_file_commit(&d->file, d->path != d->default_name);
	if (r < 0)
		return ctl_fail(d->c, -r, d->path);
	measure(d);
	return 0;
}

/* ------------------------------------------------------------------ all of it ---------------- */

/* @param size_only  Nothing is kept; devices stop only if that is all that is asked for, and only NVIDIA's. */
static int ask(struct dump *d, bool size_only)
{
	struct ctl *c = d->c;
	struct rpc_core_begin_params p = {
		.session = d->session,
		.has_full = full,
		.full = full,
		.has_unified = unified,
		.unified = unified,
		.has_layout = layout,
		.layout = d->layout,
		.has_estimate = size_only,
		.estimate = size_only,
		.has_count = size_only && estimate && c->session.vendor == RPC_VENDOR_NVIDIA,
		.count = true,
		.has_max_stop_ms = c->max_look_ms,
		.max_stop_ms = c->max_look_ms,
	};
	const char *text;
	size_t size;
	int r = ctl_called(c, rpc_client_core_begin(c->client, &p, &c->arena, &d->core, &c->err));

	if (r < 0)
		return r;
	text = rpc_client_last_result(c->client, &size);
	out_reset(&d->begin);
	out_bytes(&d->begin, text, size);
	for (size_t i = 0; size_only == estimate && i < d->core.n_missing; i++)
		ctl_note(c, "%s", cli_words(c, d->core.missing[i]));
	/* They are in the arena, which is emptied between the pieces. */
	d->core.missing = NULL;
	return 0;
}

/* What cannot be written is no reason to stop the queues: asked before that where the size is known. */
static int make_room(struct dump *d)
{
	int r = ctl_make_file(d->c, d->path, FILE_MODE, d->path != d->default_name, &d->file);

	if (r == 0 && full)
		r = ask(d, true);
	if (r == 0 && full)
		r = check_space(d);
	return r;
}

static int write_file(struct dump *d)
{
	struct ctl *c = d->c;
	int r = make_room(d);

	if (r == 0)
		r = ask(d, false);
	if (r == 0)
		r = check_space(d);
	if (r == 0) {
		d->signal_fd = signals_hold();
		r = d->signal_fd < 0 ? ctl_fail(c, -d->signal_fd, "signalfd") : copy(d);
	}
	corefile_sink_destroy(d->sink);
	ctl_close_file(&d->file);
	if (d->signal_fd >= 0 && !d->signo)
		signals_release(d->signal_fd);
	return r;
}

static int print_json(struct dump *d)
{
	auto_out struct out o = { 0 };

	if (estimate)
		out_json_fmt(&o, "{'file':null");
	else
		out_json_fmt(&o, "{'file':%s,'disk_bytes':%" PRIu64, d->path, d->disk_bytes);
	out_json_fmt(&o, ",'lost_bytes':%" PRIu64 ",'core':", d->lost);
	out_bytes(&o, d->begin.data, d->begin.size);
	out_char(&o, '}');
	return ctl_print_json(d->c, &o);
}

static int print(struct dump *d)
{
	struct out *o = &d->c->output.text;

	if (ctl_is_json(d->c))
		return print_json(d);
	if (!estimate)
		text_put(o, "", d->path, "");
	if (estimate)
		out_str(o, d->core.at_most ? "at most " : "about ");
	else
		out_str(o, ": ");
	text_size(o, d->core.bytes);
	if (!estimate && d->disk_bytes < d->core.bytes) {
		out_str(o, ", ");
		text_size(o, d->disk_bytes);
		out_str(o, " on disk");
	}
	if (!estimate)
		out_fmt(o, ", %u %s, stopped %" PRIu64 ".%" PRIu64 " ms", d->core.wave_count,
			vendor_word(d->c->vendor, d->core.wave_count == 1 ? "wave" : "waves"),
			d->core.stopped_us / 1000, d->core.stopped_us % 1000 / 100);
	if (!estimate && unified)
		out_fmt(o, ", %u threads, each %" PRIu64 ".%" PRIu64 " ms at most", d->core.thread_count,
			d->core.thread_stopped_us / 1000, d->core.thread_stopped_us % 1000 / 100);
	out_char(o, '\n');
	return 0;
}

static int status(const struct dump *d)
{
	/* A whole address space always has pages that nobody can read. */
	bool complete = d->core.complete && !d->core.budget_exceeded && (!d->lost || full);

	return ctl_status(complete, d->core.budget_exceeded);
}

static int dump(struct dump *d)
{
	struct ctl *c = d->c;
	int r = estimate ? ask(d, true) : write_file(d);

	if (r < 0 || d->signo)
		return r;
	if (d->lost)
		ctl_note(c, "%" PRIu64 " bytes of memory are not readable: zeros stand for them",
			 d->lost);
	r = print(d);
	return r < 0 ? r : status(d);
}

static int parse(struct ctl *c, char **argv, struct dump *d)
{
	uint32_t pid;
	int r = args_pid(c, argv[0], &pid);

	if (r < 0)
		return r;
	if (light && full)
		return ctl_usage(c, "--light and --full: choose one");
	if (compress && strcmp(compress, "zstd"))
		return ctl_usage(c, "--compress: \"%.40s\" is not zstd", compress);
	if (layout && rpc_core_layout_parse(layout, &d->layout) < 0)
		return ctl_usage(c, "--layout: \"%.40s\" is none of r346, r400, r525 ... r615", layout);
	snprintf(d->default_name, sizeof(d->default_name), "gpucore.%u%s", pid, compress ? ".zst" : "");
	d->path = c->output.path ? c->output.path : d->default_name;
	/* -o names the core; what is said about it goes to standard output. */
	c->output.path = NULL;
	d->terminal = isatty(STDERR_FILENO);
	d->tell = progress || (d->terminal && !c->quiet);
	return 0;
}

static int run(struct ctl *c, int argc, char **argv)
{
	struct dump d = { .c = c, .file = COREFILE_FILE_NULL, .signal_fd = -1 };
	int r = parse(c, argv, &d);

	if (r == 0)
		r = ctl_attach(c, argv[0], true);
	if (r < 0)
		return r;
	snprintf(d.session, sizeof(d.session), "%s", c->session.session);
	c->session.session = d.session;
	out_init(&d.begin, 0);
	r = dump(&d);
	out_deinit(&d.begin);
	ctl_detach(c);
	return r >= 0 && d.signo ? CTL_EXIT_SIGNAL + d.signo : r;
}

const struct ctl_verb ctl_verb_dump = {
	.name = "dump",
	.args = "PID",
	.summary = "Write a core file of a process, for AMD's debuggers and for later",
	.options = options,
	.min_args = 1,
	.max_args = 1,
	.run = run,
};
