# SPDX-License-Identifier: MIT
"""A CUDA process, the simulated GPUs below it and the daemon; and how the process must be left."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cudasim"))
from harness import CudaScene, status, wait_until
from debugger import get, say

SMALL = "devices 2 sms=3 warps=8"
VARIABLES = ("cudbgIpcFlag", "cudbgRpcEnabled", "cudbgApiClientPid", "cudbgApiClientRevision", "cudbgSessionId",
             "cudbgDebuggerCapabilities", "cudbgUseExternalDebugger", "cudbgDebuggerInitialized")


def scene(release="12.4", sim=SMALL, **kwargs):
    kwargs.setdefault("user_mode", False)
    return CudaScene(release=release, sim=sim, **kwargs)


def assert_alive(s):
    before = s.app_status().beats
    assert say(s, "ready") is not None
    wait_until(lambda: s.app_status().beats > before, "heartbeat")


def assert_untouched(s):
    """As if never debugged, and alive."""
    def clean():
        state = s.state()
        return (status(s.app.pid).get("TracerPid") == "0" and not any(get(s, name) for name in VARIABLES)
                and not (state and any(d["suspended"] for d in state["devices"])))
    wait_until(clean, "everything undone")
    assert_alive(s)
