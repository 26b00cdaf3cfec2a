/* SPDX-License-Identifier: MIT */
#ifndef KFDSIM_CONTROL_H
#define KFDSIM_CONTROL_H

/**
 * @file control.h
 * The control file: commands in, JSON state out.
 *
 *	raise PID queue ID CODES | raise PID gpu GPU CODES | raise PID process CODES
 *	    CODES: comma-separated exception codes, or a mask in hex; "never" codes need `never on`
 *	fault PID GPU ADDRESS [not-present] [read-only] [no-execute] [imprecise]
 *	fail-suspend PID QUEUE [N] | fail-suspend gpu GPU [N]      (MES queue, HWS GPU)
 *	fail-resume  PID QUEUE [N] | fail-resume  gpu GPU [N]
 *	fail-activate GPU busy|error|off
 *	errno OP NAME [N] | late OP NAME [N] | delay OP MS [N] | partial OP K [N] | silent OP K [N]
 *	    the next N times (one); `late`: fails although it was done; `partial`: only the first K
 *	    GPUs of the process are done; `silent`: so, too, and suspend and resume cannot copy their
 *	    verdicts back, which no kernel reports
 *	block OP [after] [hard] [skip=N]  next OP, after N others of it, hangs (before or after its
 *	                             effects); `hard`: even when its caller is killed
 *	release [OP]
 *	waves PID QUEUE KIND N [PC] [KEY=VALUE...] | waves PID QUEUE script FILE | waves PID QUEUE clear
 *	    what is in the queue's save area when it is suspended; see waves.h
 *	dispatch PID complete|hold [GPU]
 *	    kernels are not executed: they end at once (so it begins), or not until told so; copies
 *	    are always done
 *	reset GPU on|off | lost GPU on|off
 *	progress on|off|MS
 *	memory-info real|fixed | permissions thread|process | efault old|new | never on|off
 *	scheduler hws|none
 *
 * GPU is a gpu_id or `#N`, the Nth GPU.  OP is one of: enable disable send exceptions override
 * launch-mode suspend resume watch unwatch flags query info queues devices runtime create-queue
 * destroy-queue update-queue cu-mask gws.
 */

#include "base/out.h"
#include "sim/kfd/device/sim.h"

/**
 * Run every line of @p text, up to the first that fails.
 * @return 0, -EINVAL (not understood), -ESRCH (no such process), -ENODEV (no such GPU or queue),
 * -ENOMEM.
 */
int control_run(struct sim *s, const char *text, size_t size);
/** Append the whole state as one JSON document with a final newline. */
void control_status(const struct sim *s, struct out *o);

#endif /* KFDSIM_CONTROL_H */
