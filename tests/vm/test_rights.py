#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Who may debug whom on kernels that have Yama, and no SO_PASSRIGHTS; the agent's answer beside the kernel's own."""
import array
import contextlib
import ctypes
import errno
import os
import select
import socket
import subprocess
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest
from vmlib import OTHER, USER, Agent, Target, need_kfd, status, wait_until
from harness import PATIENCE, ROOT, SLOWNESS, Rpc
from people import SEIZE, YAMA, become, libc, run, yama_scope

SO_PASSRIGHTS, SO_PEERPIDFD = 83, 77
KERNEL = tuple(map(int, os.uname().release.split("-")[0].split(".")[:2]))


@contextlib.contextmanager
def scope(level):
    """Of Yama, in this block; 3 could not be taken back."""
    before = yama_scope()
    YAMA.write_text(str(level), encoding="ascii")
    try:
        yield
    finally:
        YAMA.write_text(str(before), encoding="ascii")


def seen_by_kernel(pid, user):
    """What it answers that user: to PTRACE_SEIZE, and to a look, which PTRACE_MODE_READ protects."""
    def ask():
        become(user)
        seized = "yes" if libc.ptrace(SEIZE, pid, 0, 0) == 0 else errno.errorcode[ctypes.get_errno()]
        try:
            os.close(os.open(f"/proc/{pid}/ns/user", os.O_RDONLY))
            return f"{seized} yes"
        except OSError as error:
            return f"{seized} {errno.errorcode[error.errno]}"
    answer = run(ask)
    wait_until(lambda: status(pid)["TracerPid"] == "0", "it let go")
    return answer


def seen_by_agent(agent, pid, user):
    def ask():
        if user:
            become(user)
        rpc = Rpc(agent.socket)
        reply = rpc.call_raw("session.attach", {"pid": pid, "control": True})
        if "error" in reply:
            return reply["error"]["data"]["name"]
        rpc.call("session.detach", session=reply["result"]["session"])
        return "attached"
    return run(ask)


@pytest.mark.parametrize("level", (0, 1, 2))
def test_yama_has_no_say(level, monkeypatch):
    """A worker of an owner needs the agent's capability from level 1 on; whose process it is, that does not change."""
    need_kfd()
    if level == 2:
        # The sanitizer looks for leaks by tracing its own process, which takes a capability now.
        monkeypatch.setenv("ASAN_OPTIONS", f"{os.environ.get('ASAN_OPTIONS', '')}:detect_leaks=0")
    with scope(level), Agent() as agent, Target("open", "on") as plain, Target("nodump", "open") as hidden, \
            Target("open", user=None) as roots:
        assert seen_by_kernel(plain.pid, USER) == ("yes yes" if level == 0 else "EPERM yes")
        assert seen_by_kernel(plain.pid, OTHER) == "EPERM EACCES"
        assert seen_by_kernel(hidden.pid, USER) == "EPERM EACCES"
        told = {(name, user): seen_by_agent(agent, target.pid, user) for user in (USER, OTHER, 0)
                for name, target in (("plain", plain), ("not dumpable", hidden), ("root's", roots))}
        allowed = {who for who, answer in told.items() if answer == "attached"}
        assert allowed == {("plain", USER), ("plain", 0), ("not dumpable", 0), ("root's", 0)}, told
        assert {answer for who, answer in told.items() if who not in allowed} == {"not_permitted"}, told
        assert plain.free() and hidden.free() and roots.free()


def test_random_clients_and_targets():
    """As on the machine itself, with fewer pairs; where Yama is silent, so that the kernel can be the witness."""
    with scope(0):
        done = subprocess.run([ROOT / "tests/system/access/test_pairs.py"], env={**os.environ, "TEST_PAIRS": "500"}, text=True,
                              capture_output=True, timeout=200 * SLOWNESS, check=False)
        print(done.stdout)
        assert done.returncode == 0 and "allowed by the agent only" in done.stdout, (done.stdout, done.stderr)
        assert "FAIL" not in done.stdout and "SKIP" not in done.stdout, done.stdout


def test_a_client_that_was_reaped_is_nobody():
    """Before Linux 6.16 there is no pidfd of it, and no other answer is taken for a proof."""
    need_kfd()
    with Agent() as agent, Target("open", "on") as target:
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            own = Rpc(agent.socket)
            socket.send_fds(theirs, [b"x"], [own.sock.fileno()])
            os._exit(0)
        rpc = agent.connect()
        rpc.sock = socket.socket(fileno=socket.recv_fds(ours, 1, 1)[1][0])
        rpc.sock.settimeout(PATIENCE)
        os.waitpid(pid, 0)
        assert rpc.error("session.attach", pid=target.pid).name == "not_permitted"
        assert agent.connect().call("session.attach", pid=target.pid)["session"], "the control: the same user, alive"


def test_what_the_kernel_says_of_a_client_that_was_reaped(tmp_path):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        listener.listen()
        pid = os.fork()
        if pid == 0:
            socket.socket(socket.AF_UNIX).connect(str(tmp_path / "socket"))
            os._exit(0)
        os.waitpid(pid, 0)
        with listener.accept()[0] as client:
            try:
                fd = client.getsockopt(socket.SOL_SOCKET, SO_PEERPIDFD)
            except OSError as error:
                assert KERNEL < (6, 16) and error.errno in (errno.EINVAL, errno.ESRCH, errno.ENOPROTOOPT), error
            else:
                assert KERNEL >= (6, 16) and select.select([fd], [], [], 0)[0], "it is there, and its process is not"
                os.close(fd)


def test_descriptors_are_no_use_on_a_kernel_that_takes_them():
    """Without SO_PASSRIGHTS the kernel queues them: none stays in the agent, and others are served."""
    need_kfd()
    with Agent() as agent, socket.socket(socket.AF_UNIX) as sock:
        has_option = True
        try:
            sock.setsockopt(socket.SOL_SOCKET, SO_PASSRIGHTS, 1)
        except OSError as error:
            assert error.errno == errno.ENOPROTOOPT, error
            has_option = False
        assert has_option == (KERNEL >= (6, 16))
        agent.connect().call("agent.hello")
        front = agent.front()
        before = sorted(os.listdir(f"/proc/{front}/fd"))
        reader, writer = os.pipe()
        sock.connect(str(agent.socket))
        with contextlib.suppress(OSError):  # a kernel that has the option may refuse them
            sock.sendmsg([b'{"jsonrpc": "2.0", "id": 1, "method": "agent.hello"}\n'],
                         [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [writer]))])
        os.close(writer)
        # The last of them is closed: the other end of the pipe ends.
        assert select.select([reader], [], [], PATIENCE)[0] and os.read(reader, 1) == b"", "it is still open"
        os.close(reader)
        sock.close()
        wait_until(lambda: sorted(os.listdir(f"/proc/{front}/fd")) == before, "nothing is left of it")
        agent.connect().call("agent.hello")
