#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Is a process hung?  usage: watchdog.py PID [SECONDS]

Takes two snapshots, one second apart if not told otherwise.  A queue is hung when packets wait in it and none was done in between,
while its waves stayed where they were, or when a fault has stopped some of them.

Exit status 10: hung.  0: not.  3: the process is gone.  9: no agent.
"""
from __future__ import annotations

import sys
import time
from typing import Any, Dict, Iterator

import gpu_agent


def hung_queues(before: Dict[str, Any], after: Dict[str, Any]) -> Iterator[Dict[str, Any]]:
    """Queues of the second snapshot that have work and do not go on."""
    earlier = {queue["queue_id"]: queue for queue in before["queues"]}
    for queue in after["queues"]:
        last = earlier.get(queue["queue_id"])
        if last is None or queue.get("read_index") is None or queue["write_index"] == queue["read_index"]:
            continue
        same_place = queue.get("waves_digest") == last.get("waves_digest")
        if queue["read_index"] == last["read_index"] and (same_place or queue.get("faulting_waves")):
            yield queue


def place(group: Dict[str, Any]) -> str:
    """Source line of a group if it is known, else its program counter."""
    frame = group["frames"][0] if group["frames"] else {}
    return f"{frame['file'].rpartition('/')[2]}:{frame['line']}" if frame.get("file") else group["pc"]


def report(queue: Dict[str, Any], groups: list[Dict[str, Any]]) -> None:
    waiting = queue["write_index"] - queue["read_index"]
    print(f"queue {queue['queue_id']} is hung: packets wait: {waiting}")
    for group in groups:
        if group["representative"]["queue_id"] == queue["queue_id"]:
            reasons = ", ".join(group["reasons"]) or "no fault"
            print(f"  {group['waves']} waves of {gpu_agent.kernel_name(group) or '?'} at {place(group)} ({reasons})")


def main() -> int:
    pid, seconds = int(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 1.0
    try:
        # Nothing here may take longer than the watchdog's own patience.
        with gpu_agent.Client(timeout=10) as agent:
            session = agent.session_attach(pid=pid)["session"]
            before = agent.gpu_snapshot(session=session, max_stop_ms=200)
            time.sleep(seconds)
            after = agent.gpu_snapshot(session=session, max_stop_ms=200)
    except gpu_agent.NoSuchProcessError as error:
        print(error, file=sys.stderr)
        return 3
    except OSError as error:
        print(f"no agent: {error}", file=sys.stderr)
        return 9
    hung = list(hung_queues(before, after))
    for queue in hung:
        report(queue, after["groups"])
    return 10 if hung else 0


if __name__ == "__main__":
    sys.exit(main())
