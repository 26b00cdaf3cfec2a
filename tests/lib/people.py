# SPDX-License-Identifier: MIT
"""Processes of other users, in namespaces and with capabilities of their own: clients and targets for tests of who may what."""
import contextlib
import ctypes
import functools
import os
import pathlib
import select
import signal
import subprocess
import sys
import traceback
from typing import Any, Callable, Iterator, Optional, Tuple
from unittest import SkipTest

from harness import PATIENCE

USER = 1000
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long] * 4
NEWUSER, NEWPID, NEWNS = 0x10000000, 0x20000000, 0x20000
MS_REC, MS_PRIVATE = 0x4000, 1 << 18
PR_SET_DUMPABLE, PR_SET_PDEATHSIG = 4, 1
SEIZE = 0x4206
# The user of these tests as root of a user namespace.
MAPPED = f"0 {USER} 1\n"
# What a process does: with how to tell something, and how to wait for its next step.
Play = Callable[[Callable[[bytes], Any], Callable[[], Any]], None]


YAMA = pathlib.Path("/proc/sys/kernel/yama/ptrace_scope")


def yama_scope() -> int:
    """0: the kernel adds nothing of its own, or has no Yama."""
    return int(YAMA.read_text(encoding="ascii")) if YAMA.exists() else 0


def unshare(flags: int) -> None:
    if libc.unshare(flags) < 0:
        raise OSError(ctypes.get_errno(), "unshare")


def set_capabilities(bits: int) -> None:
    """Effective, permitted and inheritable: these and no others."""
    header, half = (ctypes.c_uint32 * 2)(0x20080522, 0), [bits & 0xffffffff] * 3
    assert libc.capset(header, (ctypes.c_uint32 * 6)(*half, *[bits >> 32] * 3)) == 0, ctypes.get_errno()


def drop_capabilities() -> None:
    set_capabilities(0)


def become(uid: int, gid: Optional[int] = None) -> None:
    gid = uid if gid is None else gid
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)


go_on = {}  # what lets such a process take its next step, by its number


@contextlib.contextmanager
def talk(function: Play, maps: Optional[str] = None) -> Iterator[Tuple[int, Callable[[], bytes]]]:
    """
    A process that runs function(tell, wait): tell(bytes) answers, wait() waits for the next step.  With `maps`, it
    has first a user namespace of its own, with those lines as its maps.  Yields (pid, what waits for its next answer).
    """
    answers, answer = os.pipe()
    steps, step = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(answers)
            os.close(step)
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if maps:
                unshare(NEWUSER)
                os.write(answer, b"unshared")
                assert os.read(steps, 1)
            function(lambda text: os.write(answer, text), lambda: os.read(steps, 1))
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    os.close(answer)
    os.close(steps)

    def listen() -> bytes:
        assert select.select([answers], [], [], PATIENCE)[0], "no answer"
        said = os.read(answers, 4096)
        assert said, "it failed: see above"
        return said

    go_on[pid] = lambda: os.write(step, b"1")
    try:
        if maps:
            assert listen() == b"unshared"
            for kind in ("uid", "gid"):
                pathlib.Path(f"/proc/{pid}/{kind}_map").write_text(maps)
            os.write(step, b"1")
        yield pid, listen
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(answers)
        os.close(step)


@contextlib.contextmanager
def child(function: Play, maps: Optional[str] = None) -> Iterator[Tuple[int, bytes]]:
    """The same; yields (pid, its first answer)."""
    with talk(function, maps) as (pid, listen):
        yield pid, listen()


def run(function: Callable[[], str], maps: Optional[str] = None) -> str:
    """What function() returns there."""
    def play(tell: Callable[[bytes], Any], _: Callable[[], Any]) -> None:
        tell(function().encode())

    with child(play, maps) as (_, answer):
        return answer.decode()


# -- targets --------------------------------------------------------------------------------------

TARGET = "import ctypes, os, sys\nc = ctypes.CDLL(None)\n"


def python() -> str:
    """An interpreter that every user can start."""
    for program in ("/usr/bin/python3", sys.executable):
        if os.path.exists(program) and run(functools.partial(executable_for, program)) == "yes":
            return program
    raise SkipTest("no Python that other users can start")


def executable_for(program: str) -> str:
    become(USER)
    return "yes" if subprocess.run([program, "-c", "import ctypes"], capture_output=True).returncode == 0 else "no"


def execute(program: str, code: str) -> None:
    """Of a new program the kernel remembers in which user namespace it was started."""
    os.execv(program, [program, "-c", code])


READY = "os.write(1, b'ready')\nimport time\ntime.sleep(60)\n"
NODUMP = "c.prctl(4, 0, 0, 0, 0)\n"
DUMP = "c.prctl(4, 1, 0, 0, 0)\n"
NOCAPS = "c.capset((ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)())\n"


def target(program: str, code: str, uid: Optional[int] = USER, gid: Optional[int] = None,
           before: Optional[Callable[[], None]] = None) -> Play:
    def start(tell: Callable[[bytes], Any], wait: Callable[[], Any]) -> None:
        if before:
            before()
        if uid is not None:
            become(uid, gid)
        read, write = os.pipe()
        os.dup2(write, 1)
        grandchild = os.fork()
        if grandchild == 0:
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            execute(program, TARGET + code + READY)
        try:
            assert os.read(read, 5) == b"ready"
            tell(str(grandchild).encode())
            wait()
        finally:
            os.kill(grandchild, signal.SIGKILL)
    return start


def own_namespace() -> None:
    """Rootless, as a container engine of the user makes it."""
    become(USER)
    libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
    unshare(NEWUSER)
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {USER} 1"), ("gid_map", f"0 {USER} 1")):
        pathlib.Path(f"/proc/self/{name}").write_text(text)


def mapped_root() -> None:
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)


def in_pid_namespace(function: Callable[[], str]) -> str:
    """Run function() as the first process of a pid namespace; its answer."""
    read, write = os.pipe()
    unshare(NEWPID)
    pid = os.fork()
    if pid == 0:
        try:
            os.write(write, function().encode())
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(write)
    answer = os.read(read, 4096).decode()
    os.waitpid(pid, 0)
    return answer
