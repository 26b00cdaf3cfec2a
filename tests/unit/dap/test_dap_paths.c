/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dap/adapter.h"
#include "testlib.h"

/* A folder with one file in it, and one beside it. */
struct place {
	char base[32], folder[64], inside[80], outside[80];
};

static void make_file(const char *path)
{
	FILE *f = fopen(path, "w");

	TEST_EQ(!f, 0);
	fclose(f);
}

static void make_place(struct place *p)
{
	snprintf(p->base, sizeof(p->base), "/tmp/test-paths.XXXXXX");
	TEST_EQ(!mkdtemp(p->base), 0);
	snprintf(p->folder, sizeof(p->folder), "%s/folder", p->base);
	snprintf(p->inside, sizeof(p->inside), "%s/in.cl", p->folder);
	snprintf(p->outside, sizeof(p->outside), "%s/out.cl", p->base);
	TEST_EQ(mkdir(p->folder, 0700), 0);
	make_file(p->inside);
	make_file(p->outside);
}

static void remove_place(const struct place *p)
{
	unlink(p->inside);
	unlink(p->outside);
	rmdir(p->folder);
	rmdir(p->base);
}

/* What debug information names may lead out of the folders in which a user has sources looked for. */
static void stays_in_its_folders(void)
{
	struct place p;
	struct dap d = { .sources.n_folders = 1 };
	struct rpc_arena arena;

	make_place(&p);
	d.sources.folders[0] = p.folder;
	rpc_arena_init(&arena, 0);
	TEST_STR(dap_source_path(&d, &arena, "/nonexistent/in.cl"), p.inside);
	TEST_STR(dap_source_path(&d, &arena, "/nonexistent/../in.cl"), p.inside);
	TEST_EQ(!dap_source_path(&d, &arena, "/../out.cl"), 1);
	TEST_EQ(!dap_source_path(&d, &arena, "../out.cl"), 1);
	TEST_EQ(!dap_source_path(&d, &arena, "/nonexistent/../out.cl"), 1);
	TEST_EQ(!dap_source_path(&d, &arena, ""), 1);
	rpc_arena_deinit(&arena);
	remove_place(&p);
}

TEST_SUITE(dap_paths, TEST(stays_in_its_folders));
