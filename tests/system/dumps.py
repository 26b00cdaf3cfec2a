# SPDX-License-Identifier: MIT
"""What tests of core files of both vendors do alike."""
import base64
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from harness import BIN, LONG_STOP, STOP_MS, Scene  # noqa: E402

APP = "runtime ttmp; queues 2; spin"
FAILURE, BUDGET, PARTIAL = 1, 7, 8


def scene(gpus="gfx942", app=APP, **kwargs):
    return Scene(app=app, gpus=gpus, **kwargs)


def dump(s, *argv, **kwargs):
    return s.ctl("dump", s.app.pid, LONG_STOP, *argv, **kwargs)


def start_dump(s, *argv):
    """In the background, saying nothing."""
    return subprocess.Popen([BIN / "gpu-agentctl", "dump", str(s.app.pid), LONG_STOP, *map(str, argv)],
                            env={**os.environ, "GPU_AGENT_SOCKET": str(s.socket)}, stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL)


def begin(s, **params):
    return s.rpc.call("core.begin", session=s.session, max_stop_ms=STOP_MS, **params)


def fetch(s, size=1 << 20):
    """The file, through the socket."""
    begun = begin(s)
    data, at = b"", 0
    while at < begun["bytes"]:
        piece = s.rpc.call("core.read", session=s.session, offset=at, size=size)
        bytes_ = base64.b64decode(piece["data"]) or bytes(piece["size"])
        assert len(bytes_) == piece["size"] and piece["lost_bytes"] == 0
        data += bytes_
        at += piece["size"]
    assert s.rpc.call("core.read", session=s.session, offset=at, size=1)["size"] == 0
    return begun, data
