# SPDX-License-Identifier: MIT
"""PyTorch 2.10 and newer: its debug server has a handler gpu_agent.  NVIDIA Resiliency Extension: an Abort that asks for a report.

    gpu_agent.adapters.torch.register(watchdog)         # in each rank, before start_debug_server()
    inprocess.Wrapper(abort=Compose(AbortTorchDistributed(), gpu_agent.adapters.torch.abort(watchdog)))

Compose calls the last one first.  PyTorch calls the debug server experimental: what it lacks is told by False.
"""
from __future__ import annotations

import importlib
from typing import Any

from ..watchdog import Watchdog

WAIT_S = 12.0


def _answer(watchdog: Watchdog) -> str:
    if not watchdog.watching:
        return f"no report: {watchdog.reason or 'nobody watches'}\n"
    return f"{'written' if watchdog.report(WAIT_S) else 'not written in time'}: {watchdog.out}\n"


def register(watchdog: Watchdog) -> bool:
    """@return whether this PyTorch has the worker's half of the debug server."""
    try:
        bindings: Any = importlib.import_module("torch._C._distributed_c10d")
        add = bindings._register_handler
    except (ImportError, AttributeError):
        return False

    def handle(_request: Any, response: Any) -> None:
        response.set_content(_answer(watchdog).encode(errors="replace"), "text/plain; charset=utf-8")
        response.set_status(200)

    add("gpu_agent", handle)
    return True


def abort(watchdog: Watchdog) -> Any:
    """An Abort of nvidia_resiliency_ext.inprocess, which asks for a report and changes nothing."""
    base: Any = importlib.import_module("nvidia_resiliency_ext.inprocess.abort").Abort

    class GpuAgentReport(base):  # type: ignore[misc]
        def __call__(self, state: Any) -> Any:
            _answer(watchdog)
            return state

    return GpuAgentReport()
