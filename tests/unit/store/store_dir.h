/* SPDX-License-Identifier: MIT */
#ifndef STORE_DIR_H
#define STORE_DIR_H

/** @file store_dir.h  A directory for a store, a clock that stands, and system calls that fail. */

#include "store/store.h"
#include "testlib.h"

struct fixture {
	char path[64];
	int dir_fd;
	struct store store;
};

/** What the next system calls do. */
struct faults {
	uint64_t now_us;
	uint64_t free_bytes; /**< 0: what the file system says. */
	int fail_at;	     /**< This call, counted from 1, fails; 0: none. */
	int fail_errno;
	bool dead;	     /**< All calls after that one fail, too: the process is gone. */
	int n_calls;
};
extern struct faults faults;
extern const struct store_sys store_dir_sys;

/** Limits: 1 MiB, nothing kept free; the ones given come instead.  @return 0 when it is open. */
int fixture_open(struct fixture *f, const struct store_limits_text *limits);
/** The same directory again, as after a restart. */
int fixture_reopen(struct fixture *f, const struct store_limits_text *limits);
void fixture_close(struct fixture *f);
#define auto_fixture __attribute__((cleanup(fixture_close))) struct fixture

/** Add a record of uid 1000 with a body of that many random bytes, -1: none; a second later each. */
int fixture_add(struct fixture *f, const char *key, int body_size, struct store_added *ret);
int fixture_add_for(struct fixture *f, uint32_t uid, const char *key, int body_size,
		    struct store_added *ret);
/** Descriptor at the start of a file with that many random bytes. */
int body_file(size_t size);

enum { HAS_RECORD = 1, HAS_BODY = 2, IS_PINNED = 4 };
/** What is there of a record. */
int fixture_state(struct fixture *f, const char *id);
struct store_usage fixture_usage(struct fixture *f);
unsigned files_in(struct fixture *f);

#endif /* STORE_DIR_H */
