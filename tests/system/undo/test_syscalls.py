#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Each system call of the monitor and of a worker fails once, while a client attaches, looks, dumps and detaches.

strace(1) lets the Nth call of a name fail, in the monitor and in everybody whom it starts from then on.  The judge is the
simulator and the kernel: when the client has gone, the target is free, nobody has crashed, and the agent serves the next
client, unless it has said why it ends.  SYSCALLS=all tries every call; the check tries a sample that is spread over all.
"""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import cudascene
import debugger
import harness
import pytest
import schema
from harness import LONG_STOP, PATIENCE, ROOT, Rpc, RpcError, Scene, need_root, status, wait_until

USER = 1000
SAMPLES = {"amd": 120, "cuda": 60}
APP = "runtime on; queues 2; spin"
# How a call fails that is well made; those that cannot fail then are not here, nor those that have an effect all the same.
FAILURES = {
    "clone": "EAGAIN", "clone3": "EAGAIN", "dup2": "EBUSY", "eventfd2": "EMFILE", "execve": "ENOMEM", "fallocate": "ENOSPC",
    "fcntl": "EMFILE", "flock": "ENOLCK", "fork": "EAGAIN", "fstat": "ENOMEM", "ftruncate": "EIO", "getdents64": "EIO",
    "ioctl": "EIO", "kcmp": "ENOMEM", "link": "ENOSPC", "linkat": "ENOSPC", "lseek": "EIO",
    "memfd_create": "EMFILE", "mkdir": "ENOSPC", "mmap": "ENOMEM", "newfstatat": "ENOMEM", "openat": "EMFILE",
    "pidfd_open": "EMFILE", "pipe2": "EMFILE", "poll": "ENOMEM", "ppoll": "ENOMEM", "prctl": "EINVAL", "pread64": "EIO",
    "process_vm_readv": "ENOMEM", "ptrace": "ESRCH", "pwrite64": "EIO", "read": "EIO", "readlink": "ENOMEM", "readlinkat": "ENOMEM",
    "recvfrom": "ENOMEM", "recvmsg": "ENOMEM", "renameat2": "EIO", "seccomp": "ENOMEM", "sendmsg": "ENOBUFS",
    "sendto": "ENOBUFS", "setgroups": "EPERM", "setitimer": "EINVAL", "setresgid": "EAGAIN", "setresuid": "EAGAIN",
    "setsockopt": "ENOMEM", "signalfd4": "EMFILE", "socketpair": "EMFILE", "statx": "ENOMEM", "timerfd_create": "EMFILE",
    "unlinkat": "EIO", "write": "ENOSPC",
}
CRASHES = ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL")
LINE = re.compile(r"^(\d+) +(\w+)\(")


@pytest.fixture(autouse=True)
def as_shipped(monkeypatch):
    """A sanitizer's runtime has calls of its own, and gives up when one fails."""
    monkeypatch.setattr(harness, "BIN", pathlib.Path(os.environ.get("PRODUCT_BIN", ROOT / "build/bin")))


@contextlib.contextmanager
def strace(s, *argv):
    """Around the monitor and what it starts from now on; yields the file with what it saw."""
    log = s.directory / "strace"
    log.unlink(missing_ok=True)
    with subprocess.Popen(["strace", "-f", "-o", log, "-p", str(harness.monitor_of(s.agentd.pid)), *argv], stderr=subprocess.PIPE,
                          text=True) as tracer:
        try:
            assert "attached" in tracer.stderr.readline(), tracer.stderr.read()
            yield log
        finally:
            tracer.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                tracer.communicate(timeout=PATIENCE)
            tracer.kill()


def use(s):
    """What a client does.  Whatever fails is told as an error, or by the end of the connection; nothing hangs."""
    with contextlib.suppress(RpcError, OSError, EOFError):
        with contextlib.closing(Rpc(s.socket)) as rpc:
            session = s.attach(rpc=rpc)
            for call, params in (("gpu.suspend", {"lease_ms": 2000}), ("gpu.snapshot", {"waves": True}), ("gpu.resume", {})):
                with contextlib.suppress(RpcError):
                    rpc.call(call, session=session, **params)
            s.ctl("dump", s.app.pid, LONG_STOP, "-o", s.directory / "core", patience=PATIENCE)
            rpc.call("session.detach", session=session)


def calls_made(s):
    """What the scenario takes: {name: the most times that one process made it}."""
    with strace(s, "-e", "signal=none") as log:
        use(s)
        wait_until(lambda: not s.worker_pids(), "the workers have gone")
    counts = {}
    for line in log.read_text(errors="replace").splitlines():
        found = LINE.match(line)
        if found and found[2] in FAILURES:
            counts.setdefault(found[2], {}).setdefault(found[1], 0)
            counts[found[2]][found[1]] += 1
    return {name: max(by_process.values()) for name, by_process in counts.items()}


def rows_of(counts, sample):
    # Without the first mapping of a new program glibc's loader crashes, before ours begins.
    rows = [(name, n) for name in sorted(counts) for n in range(1, counts[name] + 1) if (name, n) != ("mmap", 1)]
    if os.environ.get("SYSCALLS") == "all":
        return rows
    # The first of each name, and others spread over the rest.
    first, rest = [r for r in rows if r[1] == 1], [r for r in rows if r[1] > 1]
    wanted = max(sample - len(first), 1)
    return first + rest[::max(len(rest) // wanted, 1)]


def amd():
    return Scene(app=APP, user_mode=False, app_user=USER)


def is_amd_free(s):
    state = s.target_state()
    return status(s.app.pid)["TracerPid"] == "0" and not state["enabled"] and not state["suspended_queues"]


def cuda():
    return cudascene.scene(app_user=USER)


def is_cuda_free(s):
    """Not traced, not stopped, and the variables in it are as they were."""
    state = s.state()
    return (status(s.app.pid)["TracerPid"] == "0" and not any(debugger.get(s, name) for name in cudascene.VARIABLES)
            and not (state and any(d["suspended"] for d in state["devices"])))


VENDORS = {"amd": (amd, is_amd_free), "cuda": (cuda, is_cuda_free)}


def wait_for(condition, seconds=5.0):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def has_ended(s):
    return s.agentd.popen.poll() is not None


def serves(s):
    """The agent lives, and a client gets what it asks for."""
    with contextlib.suppress(RpcError, OSError, EOFError), contextlib.closing(Rpc(s.socket)) as rpc:
        session = s.attach(rpc=rpc)
        rpc.call("gpu.snapshot", session=session)
        rpc.call("session.detach", session=session)
        return True
    # It may be about to end.
    time.sleep(0.1)
    return False


def judge(s, log, is_free):
    """@return what is wrong, or None."""
    if not wait_for(lambda: is_free(s)):
        return f"the target is not free: tracer {status(s.app.pid)['TracerPid']}, {s.state()}"
    text = log.read_text(errors="replace")
    crashed = [line for line in text.splitlines() if any(f"killed by {name}" in line for name in CRASHES)]
    if crashed:
        return f"crashed: {crashed}"
    if not wait_for(lambda: has_ended(s) or serves(s), PATIENCE):
        return "serves nobody any more"
    said = s.agentd.err().strip().splitlines()
    # A manager starts it again.
    return f"ended with {s.agentd.popen.returncode} and {said[-3:]}" if has_ended(s) and s.agentd.popen.returncode != 1 else None


def try_row(s, name, n, is_free):
    with strace(s, "-e", f"trace={name}", "-e", f"inject={name}:error={FAILURES[name]}:when={n}") as log:
        try:
            use(s)
        except schema.Mismatch as e:
            return True, f"the answer is not what the schema says: {e}"
        if not has_ended(s):
            wait_for(lambda: not s.worker_pids(), 2)
    return "INJECTED" in log.read_text(errors="replace"), judge(s, log, is_free)


def restart(s):
    with contextlib.suppress(ProcessLookupError):
        s.agentd.stop()
    s.start_agentd(user_mode=False)


def try_rows(s, left, is_free):
    """Take rows from the list until one leaves something behind.  @return a line for each that does, or was not reached."""
    told = []
    while left:
        name, n = left.pop(0)
        hit, problem = try_row(s, name, n, is_free)
        if problem:
            told.append(f"{name} {n} ({FAILURES[name]}): {problem}")
            print("  |", told[-1][:400], flush=True)
            return told
        if not hit:
            told.append(f"{name} {n} not reached")
        if has_ended(s):
            restart(s)
    return told


@pytest.mark.parametrize("vendor", VENDORS)
def test_each_system_call_fails_once(vendor):
    need_root()
    scene, is_free = VENDORS[vendor]
    if not shutil.which("strace"):
        pytest.skip("strace is not installed")
    with scene() as s:
        counts = calls_made(s)
    assert counts.get("ptrace") and counts.get("sendmsg") and counts.get("openat"), counts
    rows = rows_of(counts, SAMPLES[vendor])
    wrong, left = [], list(rows)
    while left:
        with scene() as s:
            wrong += try_rows(s, left, is_free)
    injected = len(rows) - sum(row.endswith("not reached") for row in wrong)
    print(f"  {len(rows)} calls of {sum(counts.values())}, {injected} were made to fail")
    wrong = [row for row in wrong if not row.endswith("not reached")]
    assert injected > len(rows) * 3 // 4, f"only {injected} of {len(rows)} were made to fail"
    assert not wrong, "\n".join(wrong)
