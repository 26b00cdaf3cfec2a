/* SPDX-License-Identifier: MIT */
#ifndef SIMAPP_SCENE_H
#define SIMAPP_SCENE_H

/**
 * @file scene.h
 * Scenes: scripts that are installed with the simulators and have a name.
 *
 * A scene is the file VENDOR/NAME.scene, or NAME.scene in a directory in VENDOR, and its first line is a comment
 * that says what it shows.  Paths of files that the script names begin where it lies.  VENDOR is looked for in
 * ../share/gpu-agent/scenes, seen from the directory of the running program, which is right in the build tree and
 * wherever an installed tree was moved to; then in the directory that the Makefile calls scenedir.
 */

#include <stdio.h>

/** A scene that was read. */
struct scene {
	char *text;	 /**< Its script. */
	size_t size;
	char *directory; /**< Absolute path of the directory where it lies. */
	char *path;	 /**< The file; NULL: it was given by itself. */
};

/**
 * Read a scene.
 * @param vendor     The simulator's own: "amd" or "cuda".
 * @param directory  What lies in it is searched instead of the places above; NULL for those.
 * @param ret        Released with scene_deinit(), also after a failure; its path is then what could not be read.
 * @param name       Of a scene; or, with a slash in it, the path of a file.
 * @return 0, -ENOENT (no scene of that name), or what reading the file met.
 */
int scene_read(const char *vendor, const char *directory, const char *name, struct scene *ret);
/** Print the names of all scenes of a vendor, each with what it shows; those in a directory follow its name. */
void scene_list(const char *vendor, const char *directory, FILE *to);
/** Release a scene; a zeroed one is accepted. */
void scene_deinit(struct scene *s);

/**
 * The path of a file that a script names.
 * @param directory  Where the script's scene lies; NULL if it is no scene, and @p path is as the user meant it.
 * @return the path, to be freed; NULL if there is no memory.
 */
char *scene_file(const char *directory, const char *path);

#endif /* SIMAPP_SCENE_H */
