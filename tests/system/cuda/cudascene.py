# SPDX-License-Identifier: MIT
"""A CUDA process, the simulated GPUs below it and the daemon; and how the process must be left."""
from harness import LONG_STOP, CudaScene, PatientRpc, status, wait_until
from debugger import get, say

SMALL = "devices 2 sms=3 warps=8"
VARIABLES = ("cudbgIpcFlag", "cudbgRpcEnabled", "cudbgApiClientPid", "cudbgApiClientRevision", "cudbgSessionId",
             "cudbgDebuggerCapabilities", "cudbgUseExternalDebugger", "cudbgDebuggerInitialized")
VERBS = ("snapshot", "lanes", "registers", "memory", "dump")


class PatientScene(CudaScene):
    def connect(self):
        self.clients.append(PatientRpc(self.socket))
        return self.clients[-1]

    def ctl(self, verb, *argv, **kwargs):
        return super().ctl(verb, *([LONG_STOP] if verb in VERBS else []), *argv, **kwargs)


def scene(release="12.4", sim=SMALL, **kwargs):
    kwargs.setdefault("user_mode", False)
    return PatientScene(release=release, sim=sim, **kwargs)


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
