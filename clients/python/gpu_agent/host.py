# SPDX-License-Identifier: MIT
"""Threads on the processors beside the waves of a snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Iterable, List

if TYPE_CHECKING:
    from .protocol import GpuSnapshotResult, HostStacksResult, Queue, QueuePlace

__all__ = ["add_threads", "queue_places"]

_PLACE = ("ring_base", "ring_bytes", "read_pointer", "write_pointer")


def queue_places(queues: Iterable[Queue]) -> List[QueuePlace]:
    """What host_stacks(queues=...) needs to tell which packet a thread waits for; empty where no queue has it."""
    found: List[QueuePlace] = []
    for q in queues:
        if q.get("type") == "compute_aql" and all(member in q for member in _PLACE):
            found.append({"queue_id": q["queue_id"], "gpu_id": q["gpu_id"], "ring_base": q["ring_base"],
                          "ring_bytes": q["ring_bytes"], "read_pointer": q["read_pointer"],
                          "write_pointer": q["write_pointer"]})
    return found[:1024]


def add_threads(snapshot: GpuSnapshotResult, threads: HostStacksResult) -> None:
    """Make both one document, as `gpu-agentctl snapshot --host` does: what the threads lack, it lacks then."""
    snapshot["host"] = threads
    snapshot["missing"] = [*snapshot["missing"], *(f"host: {m}" for m in threads["missing"])]
    snapshot["complete"] = snapshot["complete"] and threads["complete"]
