/* SPDX-License-Identifier: MIT */
/*
 * FUSE: requests in, replies out.  All runs in one thread; a call that waits keeps its request, and
 * is answered when it completes.
 */
#define FUSE_USE_VERSION 312
#include "front.h"

#include <errno.h>
#include <fcntl.h>
#include <fuse3/fuse_lowlevel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "control.h"
#include "passthrough.h"
#include "store.h"
#include "sim/kfd/device/drm.h"
#include "sim/kfd/device/topology.h"

/* Requests served before the loop looks at timers again. */
#define SERVE_BURST 64
/* Seconds for which the kernel need not ask again about what is there as long as the mount. */
#define LASTING_S 86400.0

/* One ioctl in flight. */
struct front_call {
	struct sim_call call; /* It must be first. */
	TAILQ_ENTRY(front_call) link;
	struct front *front;
	fuse_req_t req;
	size_t out_size;
	bool interrupted;
	bool *done; /* Flag in the frame that submitted it, while that exists. */
};

/* An open file or directory; text shows its content at the time of the first read. */
struct open_file {
	TAILQ_ENTRY(open_file) link;
	struct sim_file kfd;
	char *data;
	size_t size;
};

struct front {
	struct sim *sim;
	struct fuse_session *session;
	struct fuse_buf buf;
	bool mounted;
	unsigned int kfd_mode;
	int32_t backing; /**< The store's number, if the kernel maps it. */
	TAILQ_HEAD(, front_call) calls;
	TAILQ_HEAD(, open_file) files; /* All of them: the kernel may never release some. */
};

static struct front *front_of(fuse_req_t req)
{
	return fuse_req_userdata(req);
}

static struct open_file *file_of(const struct fuse_file_info *fi)
{
	return (struct open_file *)(uintptr_t)fi->fh;
}

static struct open_file *file_new(struct front *f, struct fuse_file_info *fi)
{
	struct open_file *file = calloc(1, sizeof(*file));

	if (file)
		TAILQ_INSERT_TAIL(&f->files, file, link);
	fi->fh = (uint64_t)(uintptr_t)file;
	return file;
}

static void file_free(struct front *f, struct open_file *file)
{
	sim_close(f->sim, &file->kfd);
	TAILQ_REMOVE(&f->files, file, link);
	free(file->data);
	free(file);
}

/* ---- attributes and directories ---- */

/* Fill in the attributes of a file; false if it has gone. */
static bool fill_attr(struct front *f, uint64_t ino, struct stat *st)
{
	*st = (struct stat){ .st_ino = ino, .st_nlink = 1, .st_uid = geteuid(), .st_gid = getegid() };
	switch (tree_kind_of(f->sim, ino)) {
	case TREE_NONE:
		return false;
	case TREE_ROOT:
	case TREE_DIR:
		st->st_mode = S_IFDIR | 0755;
		st->st_nlink = 2;
		break;
	case TREE_KFD:
	case TREE_RENDER:
		st->st_mode = S_IFREG | f->kfd_mode;
		break;
	case TREE_CONTROL:
		st->st_mode = S_IFREG | 0660;
		break;
	case TREE_FILE:
		st->st_mode = S_IFREG | 0444;
		st->st_size = 4096;
		break;
	}
	return true;
}

/* As for files of the kernel's own, which asks nobody who looks at one. */
static double timeout_of(uint64_t ino)
{
	return tree_is_lasting(ino) ? LASTING_S : 0;
}

static void do_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct front *f = front_of(req);
	struct fuse_entry_param e = { 0 };

	e.ino = tree_lookup(f->sim, parent, name);
	e.attr_timeout = e.entry_timeout = timeout_of(e.ino);
	if (!e.ino || !fill_attr(f, e.ino, &e.attr))
		fuse_reply_err(req, ENOENT);
	else
		fuse_reply_entry(req, &e);
}

static void do_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct stat st;

	if (fill_attr(front_of(req), ino, &st))
		fuse_reply_attr(req, &st, timeout_of(ino));
	else
		fuse_reply_err(req, ENOENT);
}

/* Answer a change of attributes: opening the control file with O_TRUNC ends here. */
static void do_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set,
		       struct fuse_file_info *fi)
{
	bool is_device = tree_kind_of(front_of(req)->sim, ino) == TREE_KFD;

	/* ftruncate() names a file; open() with O_TRUNC does not, and devices ignore it. */
	if (is_device && fi && to_set & FUSE_SET_ATTR_SIZE)
		fuse_reply_err(req, EINVAL);
	else if (to_set & ~(FUSE_SET_ATTR_SIZE | FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_CTIME |
		       FUSE_SET_ATTR_MTIME_NOW | FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_ATIME_NOW))
		fuse_reply_err(req, EPERM);
	else
		do_getattr(req, ino, fi);
}

/* A directory that is being listed. */
struct listing {
	struct front *front;
	fuse_req_t req;
	struct open_file *dir;
	int error;
};

static void listing_add(void *data, const char *name, uint64_t ino)
{
	struct listing *l = data;
	struct stat st = { .st_ino = ino };
	size_t entry = fuse_add_direntry(l->req, NULL, 0, name, NULL, 0);
	char *grown = realloc(l->dir->data, l->dir->size + entry);

	if (!grown) {
		l->error = ENOMEM;
		return;
	}
	fill_attr(l->front, ino, &st);
	l->dir->data = grown;
	fuse_add_direntry(l->req, grown + l->dir->size, entry, name, &st,
			  (off_t)(l->dir->size + entry));
	l->dir->size += entry;
}

/* The whole directory is listed at once, so that reading it is not disturbed by changes. */
static void do_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct front *f = front_of(req);
	struct open_file *dir = file_new(f, fi);
	struct listing l = { f, req, dir, 0 };

	fi->cache_readdir = fi->keep_cache = tree_is_lasting(ino);
	if (dir)
		tree_list(f->sim, ino, listing_add, &l);
	else
		l.error = ENOMEM;
	if (l.error)
		fuse_reply_err(req, l.error);
	if ((l.error || fuse_reply_open(req, fi) < 0) && dir)
		file_free(f, dir);
}

/* Answer with a part of a text. */
static void reply_part(fuse_req_t req, const struct open_file *t, size_t size, off_t off)
{
	size_t start = (uint64_t)off < t->size ? (size_t)off : t->size;

	fuse_reply_buf(req, t->data ? t->data + start : NULL,
		       t->size - start < size ? t->size - start : size);
}

/*
 * Answer with whole entries.  Entries never straddle a reply: the offset of each is where the next
 * one begins.
 */
static void do_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		       struct fuse_file_info *fi)
{
	const struct open_file *dir = file_of(fi);
	size_t start = (uint64_t)off < dir->size ? (size_t)off : dir->size, end = start;

	while (end < dir->size) {
		/*
		 * The layout of struct fuse_dirent: ino, off, namelen, type, name; padded to eight
		 * bytes.
		 */
		uint32_t name_size;
		size_t entry;

		memcpy(&name_size, dir->data + end + 16, sizeof(name_size));
		entry = (24 + name_size + 7) & ~(size_t)7;
		if (end + entry - start > size)
			break;
		end += entry;
	}
	fuse_reply_buf(req, dir->data ? dir->data + start : NULL, end - start);
}

static void do_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	file_free(front_of(req), file_of(fi));
	fuse_reply_err(req, 0);
}

/* ---- files ---- */

/* @return 0 or -errno. */
static int open_kfd(struct front *f, int tid, struct sim_file *file)
{
	int tgid, r;

	if (tid <= 0)
		return -EPERM; /* The caller's pid namespace cannot be seen from here. */
	r = f->sim->os->tgid_of(tid, &tgid);
	return r ? r : sim_open(f->sim, tgid, file);
}

static void do_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct front *f = front_of(req);
	enum tree_kind kind = tree_kind_of(f->sim, ino);
	bool is_device = kind == TREE_KFD || kind == TREE_RENDER;
	struct open_file *file = file_new(f, fi);
	int r = file ? 0 : -ENOMEM;

	/* Without it the kernel would cut texts to the size in the attributes. */
	fi->direct_io = 1;
	fi->nonseekable = is_device;
	if (!r && kind == TREE_KFD)
		r = open_kfd(f, fuse_req_ctx(req)->pid, &file->kfd);
	if (r)
		fuse_reply_err(req, -r);
	else
		r = is_device && f->backing ? passthrough_reply_open(req, fi->fh, f->backing)
					    : fuse_reply_open(req, fi);
	if (r < 0 && file)
		file_free(f, file);
}

/* Make the text of a file anew. */
static int file_load(struct front *f, uint64_t ino, struct open_file *t)
{
	auto_out struct out o;

	out_init(&o, 0);
	if (tree_kind_of(f->sim, ino) == TREE_CONTROL)
		control_status(f->sim, &o);
	else
		tree_render(f->sim, ino, &o);
	free(t->data);
	t->data = NULL;
	t->size = 0;
	return o.size ? out_steal(&o, &t->data, &t->size) : out_error(&o);
}

static void do_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		    struct fuse_file_info *fi)
{
	struct front *f = front_of(req);
	struct open_file *t = file_of(fi);

	if (tree_kind_of(f->sim, ino) == TREE_KFD || tree_kind_of(f->sim, ino) == TREE_RENDER)
		fuse_reply_err(req, EINVAL);
	else if (!off && file_load(f, ino, t))
		fuse_reply_err(req, ENOMEM);
	else
		reply_part(req, t, size, off);
}

static void do_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t off,
		     struct fuse_file_info *fi)
{
	struct front *f = front_of(req);
	int r = -EINVAL;

	if (tree_kind_of(f->sim, ino) == TREE_CONTROL)
		r = control_run(f->sim, buf, size);
	if (r)
		fuse_reply_err(req, -r);
	else
		fuse_reply_write(req, size);
}

/* ---- ioctl ---- */

/* Reply to an ioctl and free its call. */
static void call_complete(struct sim_call *call, int result)
{
	struct front_call *c = (struct front_call *)call;

	TAILQ_REMOVE(&c->front->calls, c, link);
	if (c->done)
		*c->done = true;
	fuse_reply_ioctl(c->req, result, c->out_size ? call->arg : NULL, c->out_size);
	free(call->arg);
	free(c);
}

/* libfuse runs this with locks held: it only takes a note. */
static void call_interrupted(fuse_req_t req, void *data)
{
	struct front_call *c = data;

	c->interrupted = true;
}

static size_t max_size(size_t a, size_t b)
{
	return a > b ? a : b;
}

static struct front_call *call_new(fuse_req_t req, struct sim_file *file, unsigned int cmd,
				   const void *in, size_t in_size, size_t out_size)
{
	struct front *f = front_of(req);
	struct front_call *c = calloc(1, sizeof(*c));
	size_t room = max_size(max_size(in_size, out_size), sim_command_size(f->sim, cmd));

	/* The driver's own argument may be larger than what this caller passed. */
	if (c)
		c->call.arg = calloc(1, max_size(room, sizeof(struct kfdabi_create_queue_args)));
	if (!c || !c->call.arg) {
		free(c);
		return NULL;
	}
	if (in_size)
		memcpy(c->call.arg, in, in_size);
	c->call.file = file;
	c->call.tid = fuse_req_ctx(req)->pid;
	c->call.command = cmd;
	c->call.arg_size = in_size;
	c->call.complete = call_complete;
	c->front = f;
	c->req = req;
	c->out_size = out_size;
	return c;
}

/* Answer an ioctl of a render node, which never waits. */
static void render_ioctl(fuse_req_t req, const struct sim_gpu *gpu, unsigned int cmd, const void *in,
			 size_t in_size, size_t out_size)
{
	struct sim *s = front_of(req)->sim;
	uint8_t arg[SIM_DRM_ARG_MAX] = { 0 };
	int r;

	if (in_size > sizeof(arg) || out_size > sizeof(arg)) {
		fuse_reply_err(req, EINVAL);
		return;
	}
	if (in_size)
		memcpy(arg, in, in_size);
	r = sim_drm_ioctl(s, gpu, fuse_req_ctx(req)->pid, cmd, arg, max_size(in_size, out_size));
	if (r)
		fuse_reply_err(req, -r);
	else
		fuse_reply_ioctl(req, 0, out_size ? arg : NULL, out_size);
}

static void do_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned int cmd, void *arg,
		     struct fuse_file_info *fi, unsigned int flags, const void *in, size_t in_size,
		     size_t out_size)
{
	struct front *f = front_of(req);
	struct front_call *c;
	bool done = false;

	if (tree_kind_of(f->sim, ino) == TREE_RENDER) {
		render_ioctl(req, tree_gpu(f->sim, ino), cmd, in, in_size, out_size);
		return;
	}
	if (tree_kind_of(f->sim, ino) != TREE_KFD) {
		fuse_reply_err(req, ENOTTY);
		return;
	}
	/* The driver refuses 32-bit processes, too (kfd_chardev.c:kfd_open). */
	if (flags & FUSE_IOCTL_COMPAT) {
		fuse_reply_err(req, EPERM);
		return;
	}
	c = call_new(req, &file_of(fi)->kfd, cmd, in, in_size, out_size);
	if (!c) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	TAILQ_INSERT_TAIL(&f->calls, c, link);
	if (f->sim->os->tgid_of(c->call.tid, &c->call.tgid)) {
		call_complete(&c->call, -EBADF);
		return;
	}
	fuse_req_interrupt_func(req, call_interrupted, c);
	c->done = &done;
	sim_submit(f->sim, &c->call);
	/* The call is still there and waits. */
	if (!done)
		c->done = NULL;
}

void front_check_interrupts(struct front *f)
{
	struct front_call *c, *next;

	/*
	 * An interrupt may complete other calls too, so the search starts again after each
	 * completion.
	 */
	for (c = TAILQ_FIRST(&f->calls); c; c = next) {
		bool done = false;

		next = TAILQ_NEXT(c, link);
		if (!c->interrupted)
			continue;
		c->done = &done;
		sim_interrupt(f->sim, &c->call);
		if (done)
			next = TAILQ_FIRST(&f->calls);
		else
			c->done = NULL;
	}
}

/*
 * There is no flush operation on purpose: it would make an exec wait for the simulator while it
 * holds the lock that reading its memory needs.
 */
static const struct fuse_lowlevel_ops front_ops = {
	.lookup = do_lookup,
	.getattr = do_getattr,
	.setattr = do_setattr,
	.opendir = do_opendir,
	.readdir = do_readdir,
	.releasedir = do_release,
	.open = do_open,
	.release = do_release,
	.read = do_read,
	.write = do_write,
	.ioctl = do_ioctl,
};

/* Serve one request.  @return 0, -EAGAIN (there is none), -ENODEV (the mount is gone). */
static int front_serve_one(struct front *f)
{
	int r = fuse_session_receive_buf(f->session, &f->buf);

	if (r == -EAGAIN || r == -EINTR)
		return -EAGAIN;
	if (r <= 0)
		return -ENODEV;
	fuse_session_process_buf(f->session, &f->buf);
	return 0;
}

/* ---- mount ---- */

/*
 * The device number of the mount, found without asking the file system, which is the simulator
 * itself.
 */
static uint64_t mount_device(const char *dir)
{
	char line[1024], where[512];
	unsigned int major_no, minor_no;
	uint64_t device = 0;
	FILE *f = fopen("/proc/self/mountinfo", "re");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%*d %*d %u:%u %*s %511s", &major_no, &minor_no, where) == 3 &&
		    !strcmp(where, dir))
			device = makedev(major_no, minor_no);
	if (f)
		fclose(f);
	return device;
}

static int session_new(struct front *f)
{
	static const char *const argv[] = { "gpu-agent-sim", "-o", "fsname=gpu-agent-sim", "-o",
					    "default_permissions" };
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(argv); i++)
		r |= fuse_opt_add_arg(&args, argv[i]);
	/* Only root may let other users in without a change of /etc/fuse.conf. */
	if (geteuid() == 0)
		r |= fuse_opt_add_arg(&args, "-oallow_other");
	if (!r)
		f->session = fuse_session_new(&args, &front_ops, sizeof(front_ops), f);
	fuse_opt_free_args(&args);
	return f->session ? 0 : -ENOMEM;
}

/*
 * Serve the kernel's first request, and find out whether processes can map memory of GPUs.  Without
 * that the device works, but has no memory.
 */
static void set_up_store(struct front *f)
{
	int fd = store_fd();

	if (front_serve_one(f) || fd < 0)
		return;
	f->sim->has_store = !passthrough_add(f->session, fd, &f->backing);
}

int front_create(struct sim *s, const char *dir, unsigned int mode, struct front **ret)
{
	struct front *f;
	int r;

	if (access("/dev/fuse", R_OK | W_OK))
		return errno == EACCES ? -EPERM : -ENODEV;
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->sim = s;
	f->kfd_mode = mode & 0777;
	TAILQ_INIT(&f->calls);
	TAILQ_INIT(&f->files);
	r = session_new(f);
	if (!r && fuse_session_mount(f->session, dir))
		r = -EIO;
	if (r) {
		front_destroy(f);
		return r;
	}
	f->mounted = true;
	sim_os_linux_own_device(mount_device(dir));
	if (!passthrough_ask(f->session))
		set_up_store(f);
	fcntl(front_fd(f), F_SETFL, O_NONBLOCK);
	*ret = f;
	return 0;
}

void front_destroy(struct front *f)
{
	if (!f)
		return;
	if (f->mounted)
		fuse_session_unmount(f->session);
	if (f->session)
		fuse_session_destroy(f->session);
	while (!TAILQ_EMPTY(&f->files))
		file_free(f, TAILQ_FIRST(&f->files));
	free(f->buf.mem);
	free(f);
}

int front_fd(const struct front *f)
{
	return fuse_session_fd(f->session);
}

int front_serve(struct front *f)
{
	int r = 0;

	for (int i = 0; i < SERVE_BURST && !r; i++)
		r = front_serve_one(f);
	return r == -EAGAIN ? 0 : r;
}
