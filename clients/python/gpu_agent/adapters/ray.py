# SPDX-License-Identifier: MIT
"""Ray Train v2: when a worker fails, all nodes are looked at before the controller goes on.

    RunConfig(callbacks=[gpu_agent.adapters.ray.callback("/logs/hang")])

It runs in the controller.  The actor of a rank that hangs answers nothing, so each node gets a new task.  A file of JSON for
each node is left in the directory; `gpu-agentctl report DIRECTORY` makes one page of them.
"""
from __future__ import annotations

import contextlib
import importlib
import logging
import os
import subprocess
from typing import Any, List

WAIT_S = 15.0
_log = logging.getLogger("gpu_agent.adapters.ray")


def look_at_node(deadline_ms: int) -> str:
    """What a task runs on a node: the user's GPU processes there, as one document; "" where none could be seen."""
    try:
        done = subprocess.run(["gpu-agentctl", "job", "--all", "--json=short", "--quiet", f"--deadline={deadline_ms}ms"],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=deadline_ms / 1000 + 2)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout if done.returncode in (0, 7, 8) else ""


def look(directory: str, seconds: float = WAIT_S) -> List[str]:
    """@return the nodes that have answered, of which DIRECTORY has a file each."""
    ray: Any = importlib.import_module("ray")
    strategy: Any = importlib.import_module("ray.util.scheduling_strategies").NodeAffinitySchedulingStrategy
    task = ray.remote(num_cpus=0)(look_at_node)
    asked = {task.options(scheduling_strategy=strategy(node_id=node["NodeID"], soft=False)).remote(int(seconds * 700)): node["NodeID"]
             for node in ray.nodes() if node["Alive"]}
    done, late = ray.wait(list(asked), num_returns=len(asked), timeout=seconds) if asked else ([], [])
    answers = {}
    for reference in late:
        with contextlib.suppress(Exception):
            ray.cancel(reference, force=True)
    for reference in done:
        # The task of a node that dies meanwhile has an error in place of an answer.
        with contextlib.suppress(Exception):
            answers[asked[reference]] = ray.get(reference, timeout=5)
    os.makedirs(directory, exist_ok=True)
    for node, text in answers.items():
        if text:
            with open(os.path.join(directory, f"{node}.json"), "w") as file:
                file.write(text)
    missing = [node for node in asked.values() if not answers.get(node)]
    if missing:
        _log.warning("gpu-agent: %s lacks nodes that did not answer: %s", directory, ", ".join(missing))
    return [node for node, text in answers.items() if text]


def callback(directory: str) -> Any:
    base: Any = importlib.import_module("ray.train.v2.api.callback").UserCallback

    class GpuAgentCallback(base):  # type: ignore[misc]
        def after_exception(self, run_context: Any, worker_exceptions: Any) -> None:
            # The controller goes on to restart the job, whatever becomes of the report.
            try:
                look(directory)
            except Exception as error:
                _log.warning("gpu-agent: no report: %s: %s", type(error).__name__, error)

    return GpuAgentCallback()
