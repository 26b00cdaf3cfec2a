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
import stuckfiles
from harness import PATIENCE, ROOT, RpcError, Scene, copy_programs, need_root, wait_until

LINGER_S = int(2 * PATIENCE)

# In place of the worker of a session; what only looks is done by the real one.
WORKER = """#!{python}
import os, signal, socket, struct, subprocess, sys, time
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

def lingering():
    "A connection whose last close waits for a peer that does not read."
    with socket.create_server(("127.0.0.1", 0)) as server:
        sock = socket.create_connection(server.getsockname())
        peer, _ = server.accept()
    subprocess.Popen(["sleep", "{LINGER}"], pass_fds=[peer.fileno()])
    sock.setblocking(False)
    try:
        while True:
            sock.send(bytes(65536))
    except BlockingIOError:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, {LINGER}))
    return sock

disarm = struct.pack("<II", {DISARM}, 0)
if what == "broker":
    ours, theirs = full_pair()
    print("tried", file=report)
    socket.send_fds(monitor, [struct.pack("<I", {BROKER})], [ours.fileno()])
elif what == "descriptor":
    print("tried", file=report)
    socket.send_fds(monitor, [disarm], [1])
elif what in ("many", "long"):
    stuck = os.open(os.environ["FALLEN_FILE"], os.O_RDWR)
    print("tried", file=report)
    socket.send_fds(monitor, [disarm * 1000 if what == "long" else disarm], [stuck] * (253 if what == "many" else 2))
elif what == "behind":
    linger = lingering()
    os.kill(os.getppid(), signal.SIGSTOP)
    monitor.send(b"what breaks the protocol")
    socket.send_fds(monitor, [disarm], [linger.fileno()])
    linger.close()
    print("tried", file=report)
    os.kill(os.getppid(), signal.SIGCONT)
elif what in ("used", "nonsense"):
    # For a client whom nobody has let in.
    print("tried", file=report)
    for i in range(5000):
        monitor.send(struct.pack("<IIQI28sQQ", {USED}, 2, 99, 0, b"gpu.suspend" if what == "used" else b"gpu.suspend\\n", 0, 0))
elif what in ("flood", "left behind"):
    # Each message takes longer to read than to send, and there are many who send: another one is always there.
    worker, agent = os.getpid(), os.getppid()
    if what == "left behind":
        os.kill(agent, signal.SIGSTOP)
    for _ in range(4):
        if os.fork() == 0:
            while True:
                socket.send_fds(monitor, [struct.pack("<I", {STORE})], [1])
    if what == "left behind" and os.fork():
        os._exit(0)
    while what == "left behind" and os.getppid() == worker:
        time.sleep(0.01)
    time.sleep(0.3)
    print("tried", file=report)
    os.kill(agent, signal.SIGCONT)
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
    words = {"{python}": sys.executable, "{real!r}": repr(str(real)), "{LINGER}": str(LINGER_S)}
    words.update({f"{{{name}}}": str(numbers()[name]) for name in ("BROKER", "DISARM", "STORE", "USED")})
    text = WORKER
    for word, value in words.items():
        text = text.replace(word, value)
    worker.write_text(text)
    worker.chmod(0o755)
    monkeypatch.setattr(harness, "BIN", tmp_path)
    monkeypatch.setenv("FALLEN_TRIES", what)
    monkeypatch.setenv("FALLEN_REPORT", str(tmp_path / "report"))
    monkeypatch.setenv("FALLEN_FILE", str(tmp_path / "stuck/flush"))
    with stuckfiles.stuck_files(tmp_path / "stuck"), Scene(user_mode=False) as s:
        with contextlib.suppress(RpcError):
            s.attach(timeout_ms=2000)
        wait_until(lambda: (tmp_path / "report").read_text() == "tried\n", "the worker has tried it")
        yield s


@pytest.mark.parametrize("what", ("broker", "descriptor", "many", "long", "behind", "flood", "left behind"))
def test_others_are_served(tmp_path, monkeypatch, what):
    """The monitor starts what they ask for, and ends when it is told to."""
    need_root()
    with fallen(tmp_path, monkeypatch, what) as s:
        for _ in range(3):
            assert "processes" in s.connect().call("process.list")
        s.agentd.popen.terminate()
        assert s.agentd.popen.wait(PATIENCE) in (0, 1)


@pytest.mark.parametrize("what", ("used", "nonsense"))
def test_one_that_tells_too_much_is_killed(tmp_path, monkeypatch, what):
    """It fills no journal, names nobody whom it has not, and its target runs."""
    need_root()
    with fallen(tmp_path, monkeypatch, what) as s:
        wait_until(lambda: "died (status 0x9)" in s.agentd.err(), "the worker is killed")
        lines = s.agentd.err().splitlines()
        named = [line for line in lines if "gpu.suspend on process" in line]
        if what == "used":
            assert any("says too often who uses it" in line for line in lines), lines
            assert 20 <= len(named) <= 40 and all("by uid -1 (pid 0)" in line for line in named), named
        else:
            assert not named, named
        assert s.target_state()["suspended_queues"] == 0 and "processes" in s.connect().call("process.list")
