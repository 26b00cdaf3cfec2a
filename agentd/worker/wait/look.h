/* SPDX-License-Identifier: MIT */
#ifndef WORKER_WAIT_LOOK_H
#define WORKER_WAIT_LOOK_H

/** @file look.h  One look for waits, as the files of this directory share it. */

#include "agentd/worker/snapshot/locations.h"
#include "agentd/worker/snapshot/snapshot.h"
#include "agentd/worker/wait/history.h"
#include "waits/barrier.h"
#include "waits/graph.h"
#include "waits/poll.h"

struct wait_threads;

/** Most waits that are told apart, and parties of one that are named. */
#define LOOK_WAITS_MAX	 256u
#define LOOK_PARTIES_MAX 64u
#define LOOK_GRIDS_MAX	 16u
#define LOOK_NONE	 UINT32_MAX
/** What stands still for less may only have been waiting for its turn on the hardware, or for memory. */
#define LOOK_STILL_NS UINT64_C(1000000000)

/** A node, and what the reply says of it. */
struct look_node {
	struct waits_node node;
	struct rpc_wait_node rpc;
	const struct wave *wave; /**< Of one wave. */
	bool may_come; /**< Who it is is not known, but may come: what waits for nobody else need not be stuck. */
	uint64_t word; /**< Where a word that is polled lies; 0: of another node, or it is memory of a workgroup. */
};

/** Workgroups of a dispatch that wait for all of it. */
struct look_grid {
	const struct wave *first; /**< One of the waves that poll. */
	size_t wait;
	struct look_loop {
		uint64_t begin, end;
	} loops[4]; /**< Where they do. */
	uint32_t n_loops;
	uint32_t expects, has; /**< Workgroups of the grid, and those that the word says have come. */
	uint32_t size[3]; /**< Workgroups in each direction; 0: not known. */
	bool is_open;	  /**< Who is not in a loop may have come all the same, or the other way round. */
	bool is_uncounted; /**< How many have come is in hardware, which nobody can read. */
};

/** A wait, and its node. */
struct look_wait {
	struct rpc_wait rpc;
	uint32_t node;
	bool changed; /**< It was not so in the look before. */
	const struct wave *first; /**< Of a workgroup: its first wave. */
	uint64_t shape; /**< Of a workgroup: that of all that are alike. */
	const char *over; /**< Why nobody can come to it, told of node @c nobody; NULL: it is no such wait. */
	uint32_t nobody;
};

/** The code in front of a place and at it. */
struct look_code {
	uint8_t bytes[16], n;
	bool known;
	bool is_judged, may_poll; /**< Whether a wave there may be in a loop. */
	bool may_arrive;	  /**< NVIDIA: whether its kernel may come to the barrier and go on. */
	const char *not_judged;	  /**< Why it may be, although none was seen; NULL: one was. */
	bool is_searched, polls;  /**< Whether it is in a loop that polls, which is `poll` and begins at `loop`. */
	struct waits_poll poll;
	uint64_t loop;
};

struct look {
	struct target *target;
	struct rpc_arena *arena;
	const struct snapshot *seen;
	struct code_set code;
	struct locations places;
	struct look_code *sites; /**< By wave.site. */

	struct late_memory *memory; /**< NULL: of a core, or there is no thread. */
	const struct wait_threads *threads; /**< NULL: nobody reads those of the process. */
	bool has_ranges;
	struct look_range {
		uint64_t begin, end;
	} *ranges; /**< Ascending: what may be read. */
	size_t n_ranges, ranges_capacity;
	struct past *now;
	const struct past *before; /**< NULL: there is only this look. */
	uint64_t apart_ns;	   /**< Time between the two. */

	struct look_wait *waits;
	size_t n_waits, waits_capacity;
	struct look_node *nodes;
	size_t n_nodes, nodes_capacity;
	struct waits_edge *edges;
	size_t n_edges, edges_capacity;
	struct look_over { /* Blocks of which no warp can come to any barrier in memory. */
		const struct wave *waves;
		bool is_old; /* It was so in the look before. */
	} *over;
	size_t n_over;
	struct look_cluster { /* A wait of blocks for their cluster: the first of them. */
		const struct wave *waves;
		size_t wait;
		uint32_t size[3];
		bool may_arrive; /* Its kernel may come to the barrier and go on. */
	} *clusters; /**< Room for target_waves.n_clusters. */
	size_t n_clusters;
	struct block *neighbour; /**< Of such a cluster, read again; NULL: none was. */
	uint32_t n_unknown_clusters; /**< Waits for those. */
	struct look_grid *grids; /**< Room for LOOK_GRIDS_MAX. */
	size_t n_grids;
	struct rpc_wait_undecoded undecoded[8];
	size_t n_undecoded;
	const char **missing; /**< What could not be read; room for LOOK_MISSING_MAX. */
	size_t n_missing;
	const char **threads_missing; /**< Of threads alone; room for LOOK_MISSING_MAX. */
	size_t n_threads_missing;
	bool no_registers; /**< Those of a wave that others wait for are not known. */
	uint32_t *of_wave; /**< The wait of each wave that was seen, or WAIT_NONE. */
	bool *is_collective; /**< Of each of them: its kernel is one of a collective operation, told or not. */
	bool failed; /**< There was no memory. */
};

#define LOOK_MISSING_MAX 64u

struct look_lines;

/* look.c */

/** @return the position of a new node; LOOK_NONE without memory. */
uint32_t look_add_node(struct look *l, enum rpc_wait_node_kind kind, enum waits_end end, const char *text);
void look_add_edge(struct look *l, uint32_t from, uint32_t to, enum waits_confidence c, bool any);
/**
 * Add a wait with a node of its own.
 * @param name, state  Of the wait in history.h.
 * @return NULL: there are too many, or there is no memory.
 */
struct look_wait *look_add_wait(struct look *l, enum rpc_wait_kind kind, enum rpc_wait_node_kind node,
				const char *who, uint64_t name, uint64_t state);
void look_add_evidence(struct look *l, struct rpc_wait *w, const char *what, const char *value);
void look_undecoded(struct look *l, const char *reason, uint32_t waves);
void look_missing(struct look *l, const char *text);
/** What is not known of threads, told once and as "threads: ...": the rest of the answer is as complete as without. */
void look_missing_thread(struct look *l, const char *text);

/** Tell what all waits come to: causes, what is stuck, and the graph.  @return 0, -ENOMEM. */
int look_solve(struct look *l, struct rpc_why_get_result *ret);

/** @return whether something was in this state in the look before; notes it for the next one. */
bool look_is_same(struct look *l, uint64_t name, uint64_t state);

/** @return the kernel of a wave, for people; never NULL. */
const char *look_kernel(const struct look *l, const struct wave *w);
/** Where a wave is. */
struct rpc_wait_at look_at(struct look *l, const struct wave *w);
/** Which wave it is that waits, and where. */
void look_tell_wave(struct look *l, struct rpc_wait *to, const struct wave *w);
/** @return the same as text: "gemm+0x40 (train.hip:61)". */
const char *look_place(struct look *l, const struct rpc_wait_at *at);
/** @return whether the devices are NVIDIA's. */
bool look_is_nvidia(const struct look *l);
/** @return whether no wave is missing: one that is not there has ended, or was never started. */
bool look_has_all_waves(const struct look *l);
/** @return the architecture of a wave's device, such as "sm_90"; NULL: it is not known. */
const char *look_arch(const struct look *l, const struct wave *w);
/** @return which generation a wave's device is of. */
enum waits_family look_family(const struct look *l, const struct wave *w);

/** Note that a wave that was seen is in a wait. */
void look_note(struct look *l, const struct wave *w, size_t wait);

/* memory.c */

/** Read all of what is at an address that the target chose.  @return whether that is possible, in a short time. */
bool look_read(struct look *l, uint64_t address, void *buf, size_t size);

/* blocks.c */

/** Find the node of a wave, or add it, with what is known of the wave.  @return as look_add_node(). */
uint32_t look_add_wave(struct look *l, const struct wave *w, const struct rpc_wait_at *at);

/** A name for a wave in history.h.  @return whether its place in the dispatch is known, and so the name is its own. */
bool look_wave_name(const struct wave *w, uint64_t *ret);
/**
 * Is an AMD wave the same in both samples, with all its registers, and in no loop?  Notes it for the next one.
 * @return false also where that is not known.
 */
bool look_is_still(struct look *l, const struct wave *w);

/** @return "wave 3 of workgroup (0,0,0) of gemm", in the words of the vendor. */
const char *look_wave_text(struct look *l, const struct wave *w);
/** @return "workgroup (0,0,0) of gemm", likewise. */
const char *look_workgroup_text(struct look *l, const struct wave *w);

/** Find the barriers of workgroups; those who poll are known. */
void look_at_blocks(struct look *l);

/* warps.c */

/** Find warps of NVIDIA's devices that wait for their block, or for lanes of their own. */
void look_at_warps(struct look *l);

/** @return whether warps wait for others by the instruction that a warp, or a part of one, is at. */
bool look_is_at_barrier(struct look *l, const struct wave *w);

/* clusters.c */

/** Tell of blocks that wait for their cluster who is missing; all that warps wait for is known. */
void look_at_clusters(struct look *l);

/* polls.c */

/** Find waves that poll memory. */
void look_at_polls(struct look *l);
/** @return whether an AMD wave is in a loop that polls. */
bool look_polls(struct look *l, const struct wave *w);
/** @return the waves that run at the place of this one, of the same dispatch. */
uint32_t look_count_at(const struct look *l, const struct wave *w);
/** Tell the word that a wave polls, and what it has to become. */
void look_tell_word(struct rpc_wait *to, const struct waits_word *word, bool is_known, uint64_t value);

/** The evidence that a wave waits in both samples for words that have changed between them. */
#define LOOK_STARVING "starving"

/* grids.c */

/**
 * Note a wave that polls, if it polls for the workgroups of its grid.
 * @param r  Its registers, with the packet of its dispatch.
 * @param c  The loop.
 * @return whether it does.
 */
bool look_add_grid(struct look *l, const struct rpc_wave_registers *r, const struct wave *w, const struct look_code *c,
		   const struct waits_word *word);
/** As look_add_grid(), of a wave that waits for its grid by the device's global wave sync.  @return whether it does. */
bool look_add_gws(struct look *l, const struct rpc_wave_registers *r, const struct wave *w);
/** @return whether a wave waits for its grid so, whether or not that is told. */
bool look_is_at_gws(struct look *l, const struct wave *w);
/**
 * Note lanes of NVIDIA's devices that poll, if they poll for the blocks of their grid.
 * @param w  Of the warp's parts, the one that is in the loop.
 * @return whether they do.
 */
bool look_add_blocks(struct look *l, const struct target_spin *s, const struct wave *w, const struct waits_word *word);
/** @return the wait of the grid that a wave polls for; LOOK_NONE: it polls for none. */
uint32_t look_grid_of(const struct look *l, const struct wave *w);
/** @return whether a wave is one of a grid's dispatch. */
bool look_is_of_grid(const struct look_grid *g, const struct wave *w);
/** @return the workgroups of which a wave is there. */
uint32_t look_count_groups(const struct look *l, const struct look_grid *g);
/** @return whether others, or who is not known, are on the device: workgroups may wait for the room they take. */
bool look_has_others(const struct look *l, const struct look_grid *g);
/**
 * @return which workgroups of the grid have a wave that is there, by their position; release with free().  NULL: their
 * number is not known, or too large.
 */
bool *look_seen_groups(const struct look *l, const struct look_grid *g);
/** @return which are not there, the first of @p n: " (2,0,0), (3,0,0) and 5 more;", or "" where that is not known. */
const char *look_absent_text(struct look *l, const struct look_grid *g, uint32_t n);
/** Tell of grids who has come, and who has not; the barriers of workgroups, or all that warps wait for, are known. */
void look_at_grids(struct look *l);

/* absent.c */

/** Tell of grids of NVIDIA's devices that wait for blocks which are not there, by a barrier of the program's own. */
void look_at_absent(struct look *l);

/* hostcalls.c */

/** Find calls of the host that it has not answered. */
void look_at_hostcalls(struct look *l);

/* spins.c */

/** Find warps of NVIDIA's devices that poll memory. */
void look_at_spins(struct look *l);

/* alone.c */

/** @return the instruction at the pc of an AMD wave, if that waits for the wave's own memory; NULL: it does not. */
const char *look_memory_wait(const struct look *l, const struct wave *w);
/** Tell of waves that wait for nobody else; all other waits are known, and collective operations. */
void look_at_alone(struct look *l, struct rpc_why_get_result *ret);

/* collectives.c */

/** Tell which collective operations are executed. */
void look_at_collectives(struct look *l, struct rpc_why_get_result *ret);

/** A connection by which nothing has come. */
struct look_awaited {
	uint64_t workgroup, from, connection, arrived, taken;
	uint64_t word; /**< Where what has come is counted; 0: flags of buffers say it. */
};

/** Those of a dispatch. */
struct look_awaits {
	struct look_awaited *list;
	size_t n;
	uint64_t wall_us; /**< Wall clock in front of the first read. */
};

/* nccl.c */

/**
 * Tell of a dispatch of NCCL's what was read of its communicator.
 * @param ret  Zeroed.
 * @return 0, -EINVAL (another layout), -EIO.
 */
int look_at_nccl(struct look *l, const struct wave *first, struct rpc_collective *to, struct look_awaits *ret);

/* receives.c */

struct waits_rccl_launch;
struct waits_rccl_comm;

/** Of a workgroup of a collective operation: which waves were seen, and where; a bit for each. */
struct look_workgroup {
	uint8_t seen, pair, ring;
};

/** Tell of whom a dispatch has received nothing, and since when. */
void look_tell_awaited(struct look *l, const struct look_awaits *a, struct rpc_collective *to);
/**
 * Find the connections by which a dispatch waits for data.
 * @param work    What its workgroups execute, WAITS_RCCL_WORK bytes of each.
 * @param groups  Its workgroups.
 * @param ret     Zeroed.
 */
void look_at_receives(struct look *l, const struct waits_rccl_launch *launch, const struct waits_rccl_comm *comm,
		      const uint8_t *work, const struct look_workgroup *groups, struct look_awaits *ret);

/* ranks.c */

/**
 * Add the wait of a dispatch for ranks of its communicator; the waits of waves are known.
 * @param first  One of its waves.
 * @param of     What was told of it, waits_for included.
 */
void look_add_ranks(struct look *l, const struct wave *first, const struct look_awaits *a,
		    const struct rpc_collective *of);

/* queues.c */

/** Find the queues that wait; the waits of waves are known.  @return what was read, in the arena; NULL: no memory. */
struct look_lines *look_at_queues(struct look *l);
/** Find the threads that wait for packets; all else is known, as this may take all of the time that it is given. */
void look_at_threads(struct look_lines *s, struct rpc_why_get_result *ret);

/* threads.c */

/** A thread that waits for a packet. */
struct look_waiter {
	uint32_t tid;
	const char *name; /**< As the process chose it, and printable; NULL: not known. */
	uint32_t queue_id, gpu_id;
	uint64_t dispatch;
};

/**
 * Find the threads that wait for packets of these queues.
 * @param ret  In the arena.
 * @return how many there are.
 */
size_t look_find_waiters(struct look *l, const struct rpc_queue *queues, size_t n, struct look_waiter **ret);

/* text.c */

/** Of a barrier object in shared memory: the evidence that counts bytes, in decimal. */
#define LOOK_COPIES "bytes of copies pending"

/** @return "wait" for lanes, waves and warps, also where one and others do, "waits" for one of them and for everything else. */
const char *look_verb(const char *who);
/** @return a wait in one line; never NULL. */
const char *look_wait_text(struct look *l, const struct rpc_wait *w);

#endif /* WORKER_WAIT_LOOK_H */
