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
from typing import Any, List

from .node import look_at_node

WAIT_S = 15.0
_log = logging.getLogger("gpu_agent.adapters.ray")


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
    for node in filter(answers.get, answers):
        with open(os.path.join(directory, f"{node}.json"), "w") as file:
            file.write(answers[node])
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
