#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Descriptors that clients send, whose last close never returns: nobody else may notice."""
import array
import contextlib
import ctypes
import json
import os
import platform
import select
import signal
import socket
import statistics
import struct
import sys
import time
from unittest import SkipTest

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest
import stuckfiles

from harness import Rpc, Scene, as_user, agent_children, children, children_named, need_root, status, wait_until

SO_PASSRIGHTS = 83
LINGER_S = 20
USER = 1000
HUNG_S = 1  # whoever has not returned by then, hangs
CLOSERS_MAX = 8  # CLOSING_PER_USER_MAX


class SockFilter(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint16), ("jt", ctypes.c_uint8), ("jf", ctypes.c_uint8), ("k", ctypes.c_uint32)]


class SockFprog(ctypes.Structure):
    _fields_ = [("len", ctypes.c_uint16), ("filter", ctypes.POINTER(SockFilter))]


def on_an_old_kernel():
    """Before exec: from now on the kernel does not know SO_PASSRIGHTS, as none before 6.16 does."""
    load, equal, ret = 0x20, 0x15, 0x06
    number = {"x86_64": 54, "aarch64": 208}[platform.machine()]
    allow, unknown = 0x7FFF0000, 0x00050000 | 92  # ENOPROTOOPT
    program = [(load, 0, 0, 0), (equal, 0, 5, number), (load, 0, 0, 24), (equal, 0, 3, socket.SOL_SOCKET),
               (load, 0, 0, 32), (equal, 0, 1, SO_PASSRIGHTS), (ret, 0, 0, unknown), (ret, 0, 0, allow)]
    filters = (SockFilter * len(program))(*program)
    fprog = SockFprog(len(program), filters)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(22, 2, ctypes.byref(fprog), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "seccomp")


def kernel_refuses():
    """Does this kernel refuse descriptors for a socket?"""
    a, b = socket.socketpair()
    with a, b:
        try:
            b.setsockopt(socket.SOL_SOCKET, SO_PASSRIGHTS, 0)
        except OSError:
            return False
        return True


KERNELS = {"this": None, "old": on_an_old_kernel}


# -- descriptors ----------------------------------------------------------------------------------

def fill(sock):
    """Until the kernel takes no more of it, now and a little later."""
    sock.setblocking(False)
    still = 0
    while still < 3:
        try:
            sock.send(bytes(65536))
            still = 0
        except BlockingIOError:
            still += 1
            time.sleep(0.02)


def lingering():
    """A connection whose last close waits for a peer that does not read, and that peer."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        sock.connect(server.getsockname())
        peer, _ = server.accept()
    fill(sock)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, LINGER_S))
    return sock, peer


def send_fds(sock, data, fds, flags=0):
    sock.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))], flags)


# Open until the process ends: a close here would wait as well.
KEPT = []


class Lent:
    """A descriptor to be sent, and closed here before the agent can have dropped it: here it would hang as well."""

    def __init__(self, fd, close=lambda: None):
        self.fd, self.close = fd, close

    def send(self, sock, data, n=1, flags=0, last=True):
        send_fds(sock, data, [self.fd] * n, flags)
        if last:
            self.close()


class Linger:
    """The last reference waits, in whoever gives it up without exiting."""

    def __init__(self, directory):
        pass

    def lend(self):
        sock, peer = lingering()
        # Without its peer the connection is reset, and nothing lingers; the other is one that was not sent.
        KEPT.extend((peer, sock))
        return Lent(sock.fileno(), sock.close)


class Flush:
    """Each close waits, of whatever reference."""

    def __init__(self, directory):
        self.fd = os.open(directory / "flush", os.O_RDONLY)

    def lend(self):
        return Lent(self.fd)


class Write:
    """The last reference waits, also in a process that ends, and then SIGKILL is no help."""

    def __init__(self, directory, n=1):
        path = directory / "write"
        self.ready = []
        for _ in range(n):
            a, b = socket.socketpair()
            fd = os.open(path, os.O_RDWR)
            send_fds(a, b"x", [fd])
            os.close(fd)  # as long as nothing has been written this does not wait
            a.close()
            self.ready.append(b)
        self.writer = os.open(path, os.O_RDWR)
        os.pwrite(self.writer, bytes(4096), 0)

    def lend(self):
        sock = self.ready.pop()
        return Lent(sock.fileno(), sock.close)


KINDS = {"linger": Linger, "flush": Flush, "write": Write}


# -- what clients do with them --------------------------------------------------------------------

LINE = b'{"jsonrpc":"2.0","id":1,"method":"agent.hello","params":{}}\n'
BODY = b'{"seq":1,"type":"request","command":"initialize","arguments":{"adapterID":"x"}}'
EDITOR = b"Content-Length: %d\r\n\r\n%s" % (len(BODY), BODY)
PLAIN, RIGHT, URGENT, MANY, WAIT = range(5)


def positions(request):
    first, middle, last = request[:1], request[len(request) // 2:len(request) // 2 + 1], request[-1:]
    before, after = request[:len(request) // 2], request[len(request) // 2 + 1:]
    return {
        "whole": [(request, RIGHT)],
        "first byte": [(first, RIGHT), (request[1:], PLAIN)],
        "middle": [(before, PLAIN), (middle, RIGHT), (after, PLAIN)],
        "last byte": [(request[:-1], PLAIN), (last, RIGHT)],
        "behind": [(request, PLAIN), (b"\n", RIGHT)],
        "behind an answer": [(request, PLAIN), (b"", WAIT), (b"\n", RIGHT)],
        "alone": [(b"\n", RIGHT)],
        "urgent alone": [(b"\n", URGENT)],
        "urgent first": [(first, URGENT), (request[1:], PLAIN)],
        "urgent between": [(before, PLAIN), (middle, URGENT), (after, PLAIN)],
        "urgent last": [(request[:-1], PLAIN), (last, URGENT)],
        "urgent behind": [(request, PLAIN), (b"\n", URGENT), (b"\n", PLAIN)],
        "urgent twice": [(b"\n", URGENT), (b"\n", URGENT), (request, PLAIN)],
        "urgent and not": [(b"\n", URGENT), (b"\n", RIGHT), (request, PLAIN)],
        "253 at once": [(request, MANY)],
    }


def play(sock, parts, lent):
    """True when the kernel refused to send the descriptor."""
    last = max(i for i, (_, what) in enumerate(parts) if what in (RIGHT, URGENT, MANY))
    for i, (data, what) in enumerate(parts):
        try:
            if what == PLAIN:
                sock.sendall(data)
            elif what == WAIT:
                sock.recv(1)
            else:
                lent.send(sock, data, 253 if what == MANY else 1, socket.MSG_OOB if what == URGENT else 0, i == last)
        except PermissionError:
            return True
        except (BrokenPipeError, ConnectionResetError):
            return False  # it is over already
    return False


def connect(path):
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.connect(str(path))
    sock.settimeout(10)
    return sock


def wait_for_the_end(sock):
    with contextlib.suppress(ConnectionResetError):
        while sock.recv(65536):
            pass


def attack(path, kind, request, refused):
    """Everything once with the connection left to the agent, and once closed at once."""
    for name, parts in positions(request).items():
        for closed in (False, True):
            with connect(path) as sock:
                was_refused = play(sock, parts, kind.lend())
                assert was_refused == refused, (name, was_refused)
                if not closed and not refused:
                    wait_for_the_end(sock)


def in_child(function):
    """Start function() in a process that stays afterwards; (its pid, a descriptor that tells the end)."""
    tell, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(tell)
            os.setgroups([])
            os.setresgid(USER, USER, USER)
            os.setresuid(USER, USER, USER)
            result = function() or "done"
        except BaseException as error:  # everything must end in _exit
            result = f"{type(error).__name__}: {error} (line {error.__traceback__.tb_next.tb_lineno})"
        os.write(told, str(result).encode())
        while True:
            signal.pause()
    os.close(told)
    return pid, tell


class Attackers:
    """Processes that are sure to be gone afterwards."""

    def __init__(self):
        self.pids = []

    def start(self, function):
        pid, tell = in_child(function)
        self.pids.append(pid)
        return tell

    def hangs(self, function):
        """The control: this must not return."""
        tell = self.start(function)
        hung = not select.select([tell], [], [], HUNG_S)[0]
        os.close(tell)
        return hung

    def end(self):
        for pid in self.pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def reap(self):
        for pid in self.pids:
            os.waitpid(pid, 0)


def close_plainly(kind):
    def run():
        os.close(kind.lend().fd)
        return "closed"
    return run


def receive_plainly(kind):
    def run():
        a, b = socket.socketpair()
        kind.lend().send(a, b"x")
        b.recv(1)
        return "received"
    return run


def controls_hang(attackers, kinds):
    """What the agent does not do hangs here and now."""
    assert attackers.hangs(close_plainly(kinds["flush"])), "closing the file returned"
    assert attackers.hangs(close_plainly(kinds["linger"])), "closing the connection returned"
    assert attackers.hangs(receive_plainly(kinds["linger"])), "receiving the connection returned"
    assert attackers.hangs(receive_plainly(kinds["write"])), "receiving the unwritten file returned"


class Others:
    """Round trips of somebody else, beside those to a process that does nothing but answer.

    The second tell what the machine has left for anybody; they are the measure where that is little.
    """

    def __init__(self, client, attackers):
        self.client, self.times, self.quiet = client, [], []
        self.sock, theirs = socket.socketpair()

        def echo():
            self.sock.close()
            while data := theirs.recv(4096):
                theirs.send(data)

        attackers.start(echo)
        theirs.close()

    def call_until(self, told):
        """Until `told` is readable."""
        while len(self.times) < 100 or not select.select([told], [], [], 0)[0]:
            begin = time.monotonic()
            self.client.call("agent.status")
            middle = time.monotonic()
            self.sock.send(b"x")
            self.sock.recv(1)
            self.times.append(middle - begin)
            self.quiet.append(time.monotonic() - middle)
            time.sleep(0.002)

    def check(self):
        p99, quiet = (sorted(times)[len(times) * 99 // 100] for times in (self.times, self.quiet))
        print(f"  others: {len(self.times)} calls, median {statistics.median(self.times) * 1e3:.2f}, p99 {p99 * 1e3:.2f}, "
              f"max {max(self.times) * 1e3:.1f} ms; echo: p99 {quiet * 1e3:.2f}, max {max(self.quiet) * 1e3:.1f} ms")
        assert p99 < max(0.05, 3 * quiet), (p99, quiet)
        # What hangs does so for that long at least.
        assert max(self.times) < LINGER_S / 2, max(self.times)


def own_processes(s):
    own = agent_children(s.agentd.pid)
    return {p: status(p) for p in (s.agentd.pid, *own, *(grandchild for p in own for grandchild in children(p)))}


def stops_in_time(s, code=0):
    begin = time.monotonic()
    s.agentd.popen.send_signal(signal.SIGTERM)
    returned = s.agentd.popen.wait(30)
    took = time.monotonic() - begin
    assert took < 5, took
    assert returned == code, returned


@contextlib.contextmanager
def field(kernel, config=""):
    """The daemon on that kernel, the files, and room for attackers."""
    need_root()
    if not stuckfiles.PROGRAM.exists():
        raise SkipTest("no stuck_files")
    attackers = Attackers()
    with Scene(app=None, start_agent=False) as s:
        (s.directory / "agentd.conf").write_text(f"[agent]\nuser = nobody\nsocket_group =\n{config}")
        try:
            with stuckfiles.stuck_files(s.directory / "stuck") as directory:
                try:
                    s.start_agentd(user_mode=False, preexec_fn=KERNELS[kernel])
                    yield s, attackers, directory
                finally:
                    attackers.end()
        finally:
            attackers.reap()


def run_attack(kernel, request):
    refused = kernel == "this" and kernel_refuses()
    with field(kernel) as (s, attackers, directory):
        others = Others(s.rpc, attackers)
        for name, make in KINDS.items():
            if name == "write":
                continue  # its closers stay: see test_users_with_stuck_closers_are_refused()
            told = attackers.start(lambda make=make: attack(s.socket, make(directory), request, refused))
            others.call_until(told)
            result = os.read(told, 4096).decode()
            os.close(told)
            assert result == "done", (name, result)
        others.check()
        controls_hang(attackers, {name: Lazy(make, directory) for name, make in KINDS.items()})
        wait_until(lambda: s.rpc.call("agent.status")["connections"] == 1, "the others are gone")
        wait_until(lambda: not [p for p, f in own_processes(s).items() if f.get("Name") == "gpu-agent-close"],
                   "nothing is left to close")
        stops_in_time(s)


class Lazy:
    """A kind that is made where it is used: its files must not be closed in the test itself."""

    def __init__(self, make, directory):
        self.make, self.directory = make, directory

    def lend(self):
        self.kind = self.make(self.directory)
        return self.kind.lend()


def test_no_descriptor_of_a_client_delays_another():
    run_attack("this", LINE)


def test_no_descriptor_delays_another_where_the_kernel_lets_it_in():
    run_attack("old", LINE)


def test_no_descriptor_of_an_editor_delays_another():
    run_attack("old", EDITOR)


def test_those_who_send_descriptors_are_told_why():
    with field("old") as (s, attackers, directory):
        read_end, write_end = os.pipe()
        with connect(s.socket) as sock:
            send_fds(sock, LINE, [read_end])
            os.close(read_end)
            data = b""
            with contextlib.suppress(ConnectionResetError):
                while piece := sock.recv(4096):
                    data += piece
        assert "descriptor" in json.loads(data)["error"]["message"], data

        def is_gone():
            try:
                os.write(write_end, b"x")
            except BrokenPipeError:
                return True
            return False

        wait_until(is_gone, "nobody has the descriptor")
        os.close(write_end)


def test_refused_connections_delay_nobody():
    """They bring a descriptor before they are looked at, and are sent away unread."""
    with field("old", "[limits]\nconnections_per_user = 3\n") as (s, attackers, directory):
        def crowd():
            kind = Linger(directory)
            stay = [connect(s.socket) for _ in range(3)]
            for sock in stay:
                sock.sendall(LINE)
                sock.recv(1)
            for _ in range(20):
                lent = kind.lend()
                with connect(s.socket) as sock:
                    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                        lent.send(sock, LINE)
                    wait_for_the_end(sock)

        others = Others(s.rpc, attackers)
        told = attackers.start(crowd)
        others.call_until(told)
        result = os.read(told, 4096).decode()
        assert result == "done", result
        others.check()
        controls_hang(attackers, {name: Lazy(make, directory) for name, make in KINDS.items()})
        stops_in_time(s)


def test_users_with_stuck_closers_are_refused():
    """What even SIGKILL cannot end belongs to nobody, and there is a limit to how much of it there is."""
    with field("old") as (s, attackers, directory):
        def pile_up():
            kind = Write(directory, CLOSERS_MAX)
            stay = [connect(s.socket) for _ in range(CLOSERS_MAX)]
            for sock in stay:
                kind.lend().send(sock, LINE)
                wait_for_the_end(sock)

        others = Others(s.rpc, attackers)
        told = attackers.start(pile_up)
        others.call_until(told)
        result = os.read(told, 4096).decode()
        assert result == "done", result

        def stuck():
            return [p for p, f in own_processes(s).items() if f.get("Name") == "gpu-agent-close"]

        wait_until(lambda: len(stuck()) == CLOSERS_MAX, "all of them are there")
        for p in stuck():
            os.kill(p, signal.SIGKILL)
        time.sleep(0.2)
        assert len(stuck()) == CLOSERS_MAX, "SIGKILL ended them: they prove nothing"

        def is_refused():
            with contextlib.closing(Rpc(s.socket)) as client:
                error = client.read_message()["error"]
                assert error["data"]["name"] == "limit" and "descriptors" in error["message"], error

        as_user(USER, is_refused)
        with contextlib.closing(Rpc(s.socket)) as client:
            client.call("agent.hello")  # somebody else is not
        others.check()
        stops_in_time(s)


# -- a front that does not answer -----------------------------------------------------------------

class Manager:
    """What systemd would hear."""

    def __init__(self, s):
        self.path = s.directory / "notify"
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.bind(str(self.path))

    def heard(self, seconds):
        """Lines that come within that time."""
        lines, deadline = [], time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if select.select([self.sock], [], [], left)[0]:
                lines += self.sock.recv(4096).decode().split("\n")
        return lines


@contextlib.contextmanager
def watched(interval_s):
    with Scene(start_agent=False) as s:
        manager = Manager(s)
        s.start_agentd(env={"NOTIFY_SOCKET": str(manager.path), "WATCHDOG_USEC": str(interval_s * 1000000)})
        yield s, manager


def test_the_watchdog_is_fed_while_front_answers():
    with watched(2) as (s, manager):
        assert manager.heard(4.5).count("WATCHDOG=1") >= 3


@pytest.mark.parametrize("who", ("gpu-agent-front", "gpu-agent-judge"))
def test_a_front_or_judge_that_hangs_ends_the_agent(who):
    """Not fed any more, killed, and the target runs again, before the manager's own time is over."""
    interval = 9
    with watched(interval) as (s, manager):
        session = s.attach()
        s.rpc.call("gpu.suspend", session=session)
        assert s.target_state()["suspended_queues"]
        wait_until(lambda: "WATCHDOG=1" in manager.heard(0.1), "fed once")
        (pid,) = children_named(s.agentd.pid, who)
        os.kill(pid, signal.SIGSTOP)
        begin = time.monotonic()
        manager.heard(0.2)  # an answer that was on its way
        lines = manager.heard(interval - 1)
        assert "WATCHDOG=1" not in lines, lines
        assert s.agentd.popen.wait(10) == 1
        assert time.monotonic() - begin < interval + 2
        assert not s.target_state()["suspended_queues"]
        assert "front does not answer" in s.agentd.err()
