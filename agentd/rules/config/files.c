/* SPDX-License-Identifier: MIT */
/* The files of the configuration, read and not looked into. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agentd/rules/config/config.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/vec.h"
#include "paths.h"

/* Of root, or of whoever runs a daemon for himself; and nobody else may change it. */
static bool is_trusted(const struct config_files *f, int fd)
{
	struct stat st;

	return !f->rules_need_root ||
	       (fstat(fd, &st) == 0 && st.st_uid == 0 && !(st.st_mode & (S_IWGRP | S_IWOTH)));
}

/* @return what was added, without a text; NULL: there is no memory. */
static struct config_file *add(struct config_files *f, const char *path, int status)
{
	char *copy = strdup(path);

	if (!copy || vec_reserve(&f->list, f->n, 1, &f->capacity, sizeof(*f->list)) < 0) {
		free(copy);
		f->no_memory = true;
		return NULL;
	}
	f->list[f->n] = (struct config_file){ .path = copy, .status = status };
	return &f->list[f->n++];
}

void config_files_read(struct config_files *f, const char *path)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct config_file *file = add(f, path, fd < 0 ? -errno : 0);
	char opened[32];

	if (!file || file->status < 0)
		return;
	/* What was judged is what is read, whatever the name stands for by then. */
	snprintf(opened, sizeof(opened), "/proc/self/fd/%d", fd);
	file->status = fd_read_file(opened, CONFIG_FILE_MAX, &file->text, &file->size);
	file->trusted = is_trusted(f, fd);
}

static void read_if_there(struct config_files *f, const char *path)
{
	if (access(path, F_OK) == 0 || errno != ENOENT)
		config_files_read(f, path);
}

static int is_fragment(const struct dirent *d)
{
	size_t n = strlen(d->d_name);

	return d->d_name[0] != '.' && n > 5 && !strcmp(d->d_name + n - 5, ".conf");
}

static void read_fragments(struct config_files *f, const char *dir)
{
	struct dirent **names;
	int n = scandir(dir, &names, is_fragment, alphasort);

	if (n < 0 && errno != ENOENT)
		add(f, dir, -errno);
	for (int i = 0; i < n; i++) {
		char path[PATH_MAX + 300];

		snprintf(path, sizeof(path), "%s/%s", dir, names[i]->d_name);
		config_files_read(f, path);
		free(names[i]);
	}
	if (n >= 0)
		free(names);
}

void config_files_read_default(struct config_files *f)
{
	static const char *const dirs[] = { VENDORCONFDIR, SYSCONFDIR "/gpu-agent" };

	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		char path[PATH_MAX];

		snprintf(path, sizeof(path), "%s/agentd.conf", dirs[i]);
		read_if_there(f, path);
		snprintf(path, sizeof(path), "%s/agentd.conf.d", dirs[i]);
		read_fragments(f, path);
	}
}

void config_files_deinit(struct config_files *f)
{
	for (size_t i = 0; i < f->n; i++) {
		free(f->list[i].path);
		free(f->list[i].text);
	}
	free(f->list);
	*f = (struct config_files){ 0 };
}
