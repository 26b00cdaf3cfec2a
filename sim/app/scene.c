/* SPDX-License-Identifier: MIT */
#include "sim/app/scene.h"

#include <dirent.h>
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/str.h"
#include "paths.h"

#define SUFFIX	  ".scene"
#define SCENE_MAX 65536

/* The directory of a vendor's scenes as an absolute path; NULL if there is none. */
static char *find_directory(const char *vendor, const char *directory)
{
	char program[PATH_MAX] = "", path[PATH_MAX + 64];
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);
	char *found;

	if (directory) {
		snprintf(path, sizeof(path), "%s/%s", directory, vendor);
		return realpath(path, NULL);
	}
	if (n > 0) {
		snprintf(path, sizeof(path), "%s/../share/gpu-agent/scenes/%s", dirname(program), vendor);
		found = realpath(path, NULL);
		if (found)
			return found;
	}
	snprintf(path, sizeof(path), SCENEDIR "/%s", vendor);
	return realpath(path, NULL);
}

/* A file of the user's own; what it names lies beside it. */
static int read_file(const char *path, struct scene *ret)
{
	char *real = realpath(path, NULL);

	*ret = (struct scene){ .path = strdup(path), .directory = real ? strdup(dirname(real)) : NULL };
	free(real);
	if (!ret->directory || !ret->path)
		return ret->path ? -ENOENT : -ENOMEM;
	return fd_read_file(path, SCENE_MAX, &ret->text, &ret->size);
}

int scene_read(const char *vendor, const char *directory, const char *name, struct scene *ret)
{
	char path[PATH_MAX + NAME_MAX];

	if (strchr(name, '/'))
		return read_file(name, ret);
	*ret = (struct scene){ .directory = find_directory(vendor, directory) };
	if (!ret->directory)
		return -ENOENT;
	snprintf(path, sizeof(path), "%s/%s" SUFFIX, ret->directory, name);
	ret->path = strdup(path);
	return ret->path ? fd_read_file(path, SCENE_MAX, &ret->text, &ret->size) : -ENOMEM;
}

void scene_deinit(struct scene *s)
{
	free(s->text);
	free(s->directory);
	free(s->path);
	*s = (struct scene){ 0 };
}

static int is_scene(const struct dirent *d)
{
	size_t n = strlen(d->d_name);

	return n > strlen(SUFFIX) && !strcmp(d->d_name + n - strlen(SUFFIX), SUFFIX);
}

/* Print the name of a scene and its first line, without the "#". */
static void list_one(const char *vendor, const char *directory, char *file, FILE *to)
{
	struct scene s;

	file[strlen(file) - strlen(SUFFIX)] = '\0';
	if (!scene_read(vendor, directory, file, &s)) {
		s.text[strcspn(s.text, "\n")] = '\0';
		fprintf(to, "  %-16s %s\n", file, s.text + strspn(s.text, "# "));
	}
	scene_deinit(&s);
}

void scene_list(const char *vendor, const char *directory, FILE *to)
{
	auto_free char *path = find_directory(vendor, directory);
	struct dirent **list = NULL;
	int n = path ? scandir(path, &list, is_scene, alphasort) : 0;

	for (int i = 0; i < n; i++) {
		list_one(vendor, directory, list[i]->d_name, to);
		free(list[i]);
	}
	free(list);
	if (n <= 0)
		fprintf(to, "  none: there is no directory of scenes; see --scene-dir\n");
}

char *scene_file(const char *directory, const char *path)
{
	char *joined;

	if (!directory || *path == '/')
		return strdup(path);
	return asprintf(&joined, "%s/%s", directory, path) < 0 ? NULL : joined;
}
