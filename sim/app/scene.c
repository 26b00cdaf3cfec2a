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

/* Read DIRECTORY/NAME.scene.  @param directory  Taken over.  @return 0, -ENOENT, or what reading met. */
static int read_named(char *directory, const char *name, struct scene *ret)
{
	int r;

	*ret = (struct scene){ .directory = directory };
	if (!directory || asprintf(&ret->path, "%s/%s" SUFFIX, directory, name) < 0) {
		ret->path = NULL;
		return -ENOMEM;
	}
	r = fd_read_file(ret->path, SCENE_MAX, &ret->text, &ret->size);
	return r == -ENOTDIR ? -ENOENT : r;
}

/* The path of what lies in a directory; NULL if there is no memory. */
static char *path_in(const char *directory, const char *name)
{
	char *path;

	return asprintf(&path, "%s/%s", directory, name) < 0 ? NULL : path;
}

/*
 * Directories in that of the vendor, and links to some.  Of a link, and where the kind of a file is not told, a scene
 * that is looked for in it tells what it is.
 */
static int is_directory(const struct dirent *d)
{
	return d->d_name[0] != '.' && (d->d_type == DT_DIR || d->d_type == DT_LNK || d->d_type == DT_UNKNOWN);
}

/*
 * Look for a scene in the directories inside @p directory.  One that cannot be read does not hide one that can.
 * @param r    What reading it in @p directory itself met, not 0.
 * @param ret  Of that; without any, it is the first one that could not be read.
 */
static int read_inside(const char *directory, const char *name, int r, struct scene *ret)
{
	struct dirent **list = NULL;
	int n = scandir(directory, &list, is_directory, alphasort);

	for (int i = 0; i < n; i++) {
		struct scene s = { 0 };
		int e = r ? read_named(path_in(directory, list[i]->d_name), name, &s) : -ENOENT;

		if (e == 0 || (r == -ENOENT && e != -ENOENT)) {
			scene_deinit(ret);
			*ret = s;
			r = e;
		} else {
			scene_deinit(&s);
		}
		free(list[i]);
	}
	free(list);
	return r;
}

int scene_read(const char *vendor, const char *directory, const char *name, struct scene *ret)
{
	auto_free char *found = NULL;
	int r;

	if (strchr(name, '/'))
		return read_file(name, ret);
	*ret = (struct scene){ 0 };
	found = find_directory(vendor, directory);
	if (!found)
		return -ENOENT;
	r = read_named(strdup(found), name, ret);
	return r < 0 ? read_inside(found, name, r, ret) : r;
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

/* Print the name of a scene and its first line, without the "#", or why it cannot be read. */
static void list_one(const char *directory, char *file, FILE *to)
{
	struct scene s;
	int r;

	file[strlen(file) - strlen(SUFFIX)] = '\0';
	r = read_named(strdup(directory), file, &s);
	if (r == 0) {
		s.text[strcspn(s.text, "\n")] = '\0';
		fprintf(to, "  %-16s %s\n", file, s.text + strspn(s.text, "# "));
	} else {
		fprintf(to, "  %-16s cannot be read: %s\n", file, strerror(-r));
	}
	scene_deinit(&s);
}

/* Print the scenes that lie in a directory.  @param heading  A line above them, or NULL.  @return how many. */
static int list_directory(const char *directory, const char *heading, FILE *to)
{
	struct dirent **list = NULL;
	int n = scandir(directory, &list, is_scene, alphasort);

	if (n > 0 && heading)
		fprintf(to, "%s:\n", heading);
	for (int i = 0; i < n; i++) {
		list_one(directory, list[i]->d_name, to);
		free(list[i]);
	}
	free(list);
	return n > 0 ? n : 0;
}

void scene_list(const char *vendor, const char *directory, FILE *to)
{
	auto_free char *path = find_directory(vendor, directory);
	struct dirent **list = NULL;
	int n = path ? scandir(path, &list, is_directory, alphasort) : 0;
	int shown = path ? list_directory(path, NULL, to) : 0;

	for (int i = 0; i < n; i++) {
		auto_free char *inside = path_in(path, list[i]->d_name);

		shown += inside ? list_directory(inside, list[i]->d_name, to) : 0;
		free(list[i]);
	}
	free(list);
	if (!shown)
		fprintf(to, "  none: there is no directory of scenes; see --scene-dir\n");
}

char *scene_file(const char *directory, const char *path)
{
	return !directory || *path == '/' ? strdup(path) : path_in(directory, path);
}
