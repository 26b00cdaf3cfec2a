/* SPDX-License-Identifier: MIT */
/*
 * stuck_files MOUNTPOINT: a file system that stops answering, for tests/lib/stuckfiles.py.
 *
 *	flush   closing it never returns
 *	read    what is read never comes
 *	write   what was written never arrives; with such pages, the last reference to it never goes
 *
 * Prints "ready" and serves until it is killed, which ends every wait.
 */
#define FUSE_USE_VERSION 34
#include <errno.h>
#include <fuse_lowlevel.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROOT = FUSE_ROOT_ID, FLUSH, READ, WRITE };

static const char *const names[] = { [FLUSH] = "flush", [READ] = "read", [WRITE] = "write" };

static struct stat attributes(fuse_ino_t ino)
{
	return (struct stat){ .st_ino = ino,
			      .st_mode = ino == ROOT ? S_IFDIR | 0755 : S_IFREG | 0666,
			      .st_nlink = 1,
			      .st_size = ino == ROOT ? 0 : 4096 };
}

static void init(void *user, struct fuse_conn_info *conn)
{
	conn->want |= conn->capable & FUSE_CAP_WRITEBACK_CACHE;
}

static void lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	for (fuse_ino_t i = FLUSH; i <= WRITE; i++) {
		const struct fuse_entry_param e = { .ino = i, .attr = attributes(i),
						    .attr_timeout = 3600, .entry_timeout = 3600 };

		if (!strcmp(name, names[i])) {
			fuse_reply_entry(req, &e);
			return;
		}
	}
	fuse_reply_err(req, ENOENT);
}

static void getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	const struct stat st = attributes(ino);

	fuse_reply_attr(req, &st, 3600);
}

static void setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set,
		    struct fuse_file_info *fi)
{
	getattr(req, ino, fi);
}

static void open_file(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	fuse_reply_open(req, fi);
}

static void read_file(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
		      struct fuse_file_info *fi)
{
	if (ino != READ)
		fuse_reply_buf(req, NULL, 0);
}

static void flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	if (ino != FLUSH)
		fuse_reply_err(req, 0);
}

static void write_file(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size, off_t offset,
		       struct fuse_file_info *fi)
{
}

static void release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	fuse_reply_err(req, 0);
}

static const struct fuse_lowlevel_ops ops = {
	.init = init, .lookup = lookup, .getattr = getattr, .setattr = setattr, .open = open_file,
	.read = read_file, .flush = flush, .write = write_file, .release = release,
};

int main(int argc, char **argv)
{
	static char options_text[] = "-oallow_other,fsname=stuck_files";
	char *options[] = { argv[0], options_text };
	struct fuse_args args = FUSE_ARGS_INIT(2, options);
	struct fuse_session *s = argc == 2 ? fuse_session_new(&args, &ops, sizeof(ops), NULL) : NULL;

	if (!s || fuse_session_mount(s, argv[1]) != 0)
		return 1;
	puts("ready");
	fflush(stdout);
	return fuse_session_loop(s) < 0;
}
