# SPDX-License-Identifier: MIT
"""Another debugger of a GPU process: a child that seizes it and opens a KFD session, on any device.

    with Debugger(pid, "/dev/kfd") as other:
        other.leave_ptrace()
        assert other.query() == errno.EAGAIN
"""
from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import signal
import socket
import struct
from typing import NoReturn

DBG_TRAP = 0xC0204B26
ENABLE, DISABLE, QUERY_DEBUG_EVENT = 0, 1, 11
RUNTIME_MASK = 1 << 47
PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT = 17, 0x4206, 0x4207
WALL = 0x40000000


def _ptrace(request: int, pid: int) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    libc.ptrace.restype = ctypes.c_long
    return ctypes.get_errno() if libc.ptrace(request, pid, None, None) < 0 else 0


class _Child:
    """What runs in the child; each answer is an errno, 0 for none."""

    def __init__(self, pid: int, device: str) -> None:
        self.pid = pid
        self.kfd = os.open(device, os.O_RDWR | os.O_CLOEXEC)
        self.ours, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    def _trap(self, op: int, body: bytes) -> int:
        args = bytearray(struct.pack("<II", self.pid, op) + body.ljust(24, b"\0"))
        try:
            fcntl.ioctl(self.kfd, DBG_TRAP, args, True)
        except OSError as error:
            return error.errno or errno.EIO
        return 0

    def enable(self) -> int:
        return _ptrace(PTRACE_SEIZE, self.pid) or self._trap(
            ENABLE, struct.pack("<QQII", RUNTIME_MASK, 0, 0, self.theirs.fileno()))

    def leave_ptrace(self) -> int:
        error = _ptrace(PTRACE_INTERRUPT, self.pid)
        if not error:
            os.waitpid(self.pid, WALL)
            error = _ptrace(PTRACE_DETACH, self.pid)
        return error

    def query(self) -> int:
        return self._trap(QUERY_DEBUG_EVENT, b"")


def disable(pid: int, device: str) -> int:
    """End whatever session there is on a process, as somebody who has nothing to do with it; errno, 0 for none."""
    child = _Child(pid, device)
    try:
        return child._trap(DISABLE, b"")
    finally:
        os.close(child.kfd)


class Debugger:
    """Seized and enabled until the end of the block, when it is killed."""

    def __init__(self, pid: int, device: str) -> None:
        self.commands, commands = socket.socketpair()
        self.child = os.fork()
        if self.child == 0:
            self._serve(pid, device, commands)
        commands.close()
        self._ask("enable")

    @staticmethod
    def _serve(pid: int, device: str, commands: socket.socket) -> NoReturn:
        try:
            child = _Child(pid, device)
            while word := commands.recv(64).decode():
                commands.sendall(bytes([getattr(child, word)()]))
        finally:
            os._exit(1)

    def _ask(self, word: str, may_fail: bool = False) -> int:
        self.commands.sendall(word.encode())
        answer = self.commands.recv(1)
        assert answer, f"the other debugger died in {word}"
        assert may_fail or answer[0] == 0, f"{word}: {errno.errorcode[answer[0]]}"
        return answer[0]

    def leave_ptrace(self) -> None:
        """The session stays on."""
        self._ask("leave_ptrace")

    def query(self) -> int:
        """errno of a command of that session: EAGAIN when it is on, and ours."""
        return self._ask("query", may_fail=True)

    def kill(self) -> None:
        if self.child:
            os.kill(self.child, signal.SIGKILL)
            os.waitpid(self.child, 0)
            self.child = 0

    def __enter__(self) -> Debugger:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self.commands.close()
