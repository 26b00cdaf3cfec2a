/* SPDX-License-Identifier: MIT */
#ifndef KFDSIM_WAVES_H
#define KFDSIM_WAVES_H

/**
 * @file waves.h
 * Waves planted on a queue: what is in its save area whenever it is suspended.
 *
 * A population is text, one line per kind of wave:
 *
 *	KIND [KEY=VALUE...]
 *
 *	spin        moves within LOOP bytes from PC each time the queue ran
 *	progress    the same with a larger loop; the queue goes on to the next packets
 *	memory, address, illegal, math    stopped by such an exception at PC
 *	watch       stopped by watch point 0
 *	breakpoint, assert, debugtrap     stopped by an s_trap at PC
 *	stopped     stopped by a debugger
 *	halted      halted by the program itself
 *	barrier     all but each group's last wave wait at a barrier at PC, that one spins behind it
 *	divergence  waves differ in their active lanes
 *
 *	n=1 group=4            waves, and how many make a workgroup
 *	pc=ADDR loop=BYTES     exec=MASK
 *	wave32=0|1 vgprs=N acc=N shared=N sgprs=N lds=BYTES
 *	workgroup=X,Y,Z        of the first group; X counts on
 *	grid=X,Y,Z             workgroups along each axis: from the last X it goes on in the next Y
 *	size=X,Y,Z items=X,Y,Z    of a workgroup, and of the grid: lanes beyond its edges are off, and waves without
 *	                       a lane are not there
 *	packet=SLOT            of the ring; without it, the oldest packet that is not done
 *	xcc=N                  without it, groups go around all XCCs
 *	scratch=0|1            whether it has private memory
 *	late=BYTES early=BYTES late-loop=BYTES last=KIND
 *	                       barrier: the last wave of each group is so far behind PC, or in front of it, moves so,
 *	                       is of that kind
 *	wave=N                 barrier: it is wave N that is, and not the last one
 *	behind=0|1 bit=0|1     barrier: those that wait are behind the instruction; STATUS says that they wait
 *	gone=N                 wave N of each group is not there
 *	signals=N              gfx12: how many have arrived at the barrier; without it, all but one
 *	named=N,MEMBERS,SIGNALS    gfx12.5: of named barrier N of each workgroup, 1 to 16
 *	cluster=MEMBERS,SIGNALS    gfx12.5: of the barrier of the cluster; without it, there is no cluster
 *	through=0|1            gfx12: STATE_PRIV says that the barrier is complete, as it may for waves still at it
 *	banks=N                gfx12.5: what MODE selects among more than 256 vector registers, six bits
 *	trap=N halt=0|1 m0= mode= vcc= flat= xnack= junk=0|1
 *	sN=VALUE  vN[.LANE]=VALUE  aN[.LANE]=  hN[.LANE]= (shared)  ldsN= (word)
 *
 * Registers that are not named hold wave_pattern().  Empty lines and lines with # are skipped.
 */

#include <stddef.h>
#include <stdint.h>

#include "sim.h"

/**
 * Replace the population of a queue.
 * @return 0, -EINVAL (not understood, impossible, not a compute queue with a save area),
 *         -ENOSPC (save area too small), -ENOMEM; the old population stays on failure.
 */
int sim_waves_plant(struct sim_process *p, struct sim_queue *q, const char *text);
/** Forget the population, also when the queue goes; it is fine if none was planted. */
void sim_waves_clear(struct sim_queue *q);
/** How many waves were planted on a queue. */
size_t sim_waves_count(const struct sim_queue *q);

/**
 * Write the area if the queue is off the hardware and was not saved since; otherwise repeat its
 * headers.  The first time it becomes what the population says; from then on the area is where its
 * waves are.
 */
void sim_waves_save(struct sim *s, struct sim_process *p, struct sim_queue *q);
/**
 * Let the queue run again, with what is in the area now.  Nothing is executed: a wave that is not
 * halted moves on in its loop, up to an s_trap in it, or steps over one instruction of four bytes
 * if that is what it is told; then it is stopped, and the debugger hears of it.
 */
void sim_waves_run(struct sim *s, struct sim_process *p, struct sim_queue *q);
/** Whether waves keep the oldest packet from being done. */
bool sim_waves_hold_packet(const struct sim_queue *q);
/** How many bytes the last save uses, over all XCCs. */
void sim_waves_used(const struct sim_queue *q, uint32_t *ret_stack, uint32_t *ret_data);

#endif /* KFDSIM_WAVES_H */
