#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A worker that runs somebody else's code: whatever it sends to the monitor, others are served."""
import contextlib
import os
import re
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import harness
import pytest
from harness import PATIENCE, ROOT, RpcError, Scene, copy_programs, need_root, wait_until

# In place of the worker of a session; what only looks is done by the real one.
WORKER = """#!{python}
import os, socket, struct, sys, time
if "session" not in sys.argv:
    os.execv({real!r}, sys.argv)
monitor = socket.socket(fileno=4)
monitor.setblocking(True)
what, report = os.environ["FALLEN_TRIES"], open(os.environ["FALLEN_REPORT"], "w", buffering=1)

def full_pair():
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    ours.setblocking(False)
    try:
        while True:
            ours.send(b"x" * 4096)
    except BlockingIOError:
        ours.setblocking(True)
    return ours, theirs

if what == "broker":
    ours, theirs = full_pair()
    print("tried", file=report)
    socket.send_fds(monitor, [struct.pack("<I", {BROKER})], [ours.fileno()])
elif what == "descriptor":
    print("tried", file=report)
    socket.send_fds(monitor, [struct.pack("<II", {DISARM}, 0)], [1])
time.sleep(600)
"""


def numbers():
    """The messages of a child to the monitor, as the header counts them."""
    text = (ROOT / "agentd/ipc/monitor_worker.h").read_text().split("enum ipc_monitor_worker_type {")[1].split("};")[0]
    names = re.findall(r"^\tIPC_(\w+)\b", text, re.M)
    return {name: 0x301 + i for i, name in enumerate(names)}


@contextlib.contextmanager
def fallen(tmp_path, monkeypatch, what):
    real = harness.BIN / "gpu-agent-worker"
    copy_programs(tmp_path)
    worker = tmp_path / "gpu-agent-worker"
    worker.unlink()
    worker.write_text(WORKER.replace("{python}", sys.executable).replace("{real!r}", repr(str(real)))
                      .replace("{DISARM}", str(numbers()["DISARM"])).replace("{BROKER}", str(numbers()["BROKER"])))
    worker.chmod(0o755)
    monkeypatch.setattr(harness, "BIN", tmp_path)
    monkeypatch.setenv("FALLEN_TRIES", what)
    monkeypatch.setenv("FALLEN_REPORT", str(tmp_path / "report"))
    with Scene(user_mode=False) as s:
        with contextlib.suppress(RpcError):
            s.attach(timeout_ms=2000)
        wait_until(lambda: (tmp_path / "report").read_text() == "tried\n", "the worker has tried it")
        yield s


@pytest.mark.parametrize("what", ("broker", "descriptor"))
def test_others_are_served(tmp_path, monkeypatch, what):
    """The monitor starts what they ask for, and ends when it is told to."""
    need_root()
    with fallen(tmp_path, monkeypatch, what) as s:
        for _ in range(3):
            assert "processes" in s.connect().call("process.list")
        s.agentd.popen.terminate()
        assert s.agentd.popen.wait(PATIENCE) in (0, 1)
