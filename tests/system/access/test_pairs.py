#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Random clients and random targets: whatever the agent's rule allows a client, the kernel allows that same process.

Clients and targets are processes (access_player) with random user and group ids, capabilities and dumpable flags, in
random user and pid namespaces two deep, some of them set-user-id or otherwise special programs, some changing all the
time.  The rule is the one that is linked into the agent (access_judge); the witness is PTRACE_SEIZE by the client itself.

TEST_PAIRS=N asks for N pairs instead of 10000, TEST_SEED=N for others; 40 more of 1000 are pairs of which one is changing.
"""
import array
import collections
import contextlib
import errno
import itertools
import os
import pathlib
import random
import re
import select
import shutil
import socket
import struct
import subprocess
import sys
import tempfile

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from unittest import SkipTest

import pytest

from harness import BIN, PATIENCE, ROOT, need_root, status
from people import yama_scope

PAIRS = int(os.environ.get("TEST_PAIRS", "10000"))
SEED = int(os.environ.get("TEST_SEED", "1"))
# Of one world: its namespaces, and who lives in them.
CLIENTS, TARGETS = 25, 20
# A pair whose one half changes all the time is judged so often.
LOOKS = 8
NEWUSER, NEWPID = 0x10000000, 0x20000000
UIDS, WEIGHTS = (1000, 0, 1001, 100000), (70, 12, 10, 8)
# CAP_SYS_PTRACE, CAP_NET_ADMIN, both, all that a kernel may have.
PTRACE, NET_ADMIN, SETIDS = 1 << 19, 1 << 12, 3 << 6
CAPABILITIES = (0, 0, PTRACE, NET_ADMIN, PTRACE | NET_ADMIN, SETIDS)
_names = itertools.count()


def verdicts():
    """Their names, by number."""
    text = (ROOT / "agentd/ipc/monitor_frontend.h").read_text().partition("enum ipc_verdict {")[2].partition("};")[0]
    return re.findall(r"^\tIPC_VERDICT_(\w+)", text, re.MULTILINE)


class Space:
    """A user or pid namespace; a user namespace has maps as ((first inside, first in the parent, how many), ...)."""

    def __init__(self, pid, kind, parent=None, maps=((0, 0, 2**32 - 1),), made_by=0):
        self.fd = os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC)
        self.parent, self.maps, self.made_by = parent, maps, made_by
        self.depth = parent.depth + 1 if parent else 0

    def __str__(self):
        maps = ",".join(f"{a}:{b}:{n}" for a, b, n in self.maps)
        return f"{self.parent}>{maps} by {self.made_by}" if self.parent else "ours"

    def local(self, uid):
        """How that user is called in here; None: it has no name."""
        if self.parent is None:
            return uid
        above = self.parent.local(uid)
        return next((a + above - b for a, b, n in self.maps if above is not None and b <= above < b + n), None)

    def holds(self, other):
        return other is self or (other.parent is not None and self.holds(other.parent))


class Player:
    """A process that does what it is told."""

    def __init__(self, world, sock, user, pid_space):
        self.world, self.sock, self.user, self.pid_space = world, sock, user, pid_space
        size = struct.calcsize("3i")
        self.pid = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))[0]
        self.client, self.twin = None, None
        self.done = []
        self.cycle = None

    def __str__(self):
        lives = f"user namespace {self.user}" if self.user.parent else ""
        if self.pid_space.depth:
            lives += f" pid namespace {self.pid_space.depth} deep"
        return f"[{lives} {'; '.join(self.done)}{' racing ' + self.cycle if self.cycle else ''}]"

    def ask(self, line, fd=None):
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))] if fd is not None else []
        self.sock.sendmsg([line.encode()], rights)
        if not select.select([self.sock], [], [], PATIENCE)[0]:
            raise AssertionError(f"no answer to {line}: {self}")
        said = self.sock.recv(100).decode()
        assert said, f"it ended at {line}: {self}"
        return said

    def do(self, line, fd=None):
        """Whether that worked; it is part of what the process is."""
        e = int(self.ask(line, fd))
        self.done.append(line.replace(f"{self.world.directory}/", "") + (f" ({errno.errorcode[e]})" if e else ""))
        return e == 0

    def must(self, line, fd=None):
        e = int(self.ask(line, fd))
        assert e == 0, (line, os.strerror(e), str(self))

    def fork(self):
        self.must(f"fork {self.world.name}")
        child = Player(self.world, self.world.listener.accept()[0], self.user, self.pid_space)
        assert child.sock.recv(10) == b"0"  # it has done the same command
        return child

    def enter(self, user, pid_space):
        """It, or its child, in these namespaces."""
        found = self
        if pid_space.parent:
            found.must(f"join {NEWPID:#x}", pid_space.fd)
            found.pid_space = pid_space
            found = found.fork()
            self.close()
        if user.parent:
            found.must(f"join {NEWUSER:#x}", user.fd)
            found.user = user
        return found

    def connect(self):
        self.must(f"connect {self.world.judge_name}")
        self.client, pid = self.world.ask_judge("accept")
        assert pid == self.pid
        self.done.append("connect")

    def ids(self, *uids, gids=None):
        """Real, effective and saved: of the user, and of the group, whose number is the same if nothing is said."""
        names = [self.user.local(number) for number in [*uids, *(gids or uids)]]
        return None not in names and self.do(f"ids {' '.join(map(str, names))}")

    def race(self, steps):
        self.cycle = ";".join(steps)
        self.ask(f"race {self.cycle}")

    def close(self):
        self.sock.close()


class World:
    """Namespaces, and a judge who is outside of them."""

    def __init__(self, random_numbers, directory):
        self.random = random_numbers
        self.directory = directory
        self.name = f"gpu-agent-players-{os.getpid()}-{next(_names)}"
        self.judge_name = f"{self.name}-judge"
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.settimeout(PATIENCE)
        self.listener.bind(f"\0{self.name}")
        self.listener.listen(64)
        self.judge = subprocess.Popen([BIN.parent / "tests/access_judge", self.judge_name], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, text=True, bufsize=1)
        assert self.judge.stdout.readline() == "ready\n"
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.first = subprocess.Popen([directory / "plain", str(theirs.fileno())], pass_fds=[theirs.fileno()])
        theirs.close()
        assert ours.recv(10) == b"0"
        self.players = []
        self.zygote = Player(self, ours, Space("self", "user"), Space("self", "pid"))
        self.users, self.pids = [self.zygote.user], [self.zygote.pid_space]

    def __enter__(self):
        for depth in (0, 0, 0, 1, 1):
            self.users.append(self.make_user_space(self.random.choice([u for u in self.users if u.depth == depth])))
        for parent in (self.pids[0], self.pids[0], None):
            self.pids.append(self.make_pid_space(parent or self.pids[1]))
        return self

    def __exit__(self, *_):
        for player in self.players:
            player.close()
        self.zygote.close()
        self.listener.close()
        self.judge.stdin.close()
        code = self.judge.wait(PATIENCE)
        self.judge.stdout.close()
        self.first.wait(PATIENCE)
        for space in self.users + self.pids:
            os.close(space.fd)
        assert code == 0, code

    def keep(self, player):
        self.players.append(player)
        return player

    def make_user_space(self, parent):
        keeper = self.keep(self.zygote.fork().enter(parent, self.pids[0]))
        known = [uid for uid in UIDS if parent.local(uid) is not None]
        maker = self.random.choice(known)
        names = [parent.local(uid) for uid in known]
        maps = self.random.choice((((0, parent.local(maker), 1),), ((0, names[0], 1),), tuple((n, n, 1) for n in names),
                                   tuple((n + 1, n, 1) for n in names)))
        keeper.ids(maker, maker, maker)
        keeper.must("dumpable 1")
        keeper.must(f"unshare {NEWUSER:#x}")
        scribe = self.zygote.fork().enter(parent, self.pids[0])
        for kind in ("uid", "gid"):
            scribe.must(f"write /proc/{keeper.pid}/{kind}_map " + "".join(f"{a} {b} {n}\n" for a, b, n in maps))
        scribe.close()
        return Space(keeper.pid, "user", parent, maps, maker)

    def make_pid_space(self, parent):
        maker = self.keep(self.zygote.fork().enter(self.users[0], parent))
        maker.must(f"unshare {NEWPID:#x}")
        return Space(self.keep(maker.fork()).pid, "pid", parent)

    # -- who is who ---------------------------------------------------------------------------

    def pick(self, *choices):
        return self.random.choice(choices)

    def likely(self, part):
        return self.random.random() < part

    def someone(self):
        """Somewhere, as somebody."""
        user = self.random.choice(self.users) if self.likely(0.6) else self.users[0]
        space = self.random.choice(self.pids) if self.likely(0.3) else self.pids[0]
        player = self.keep(self.zygote.fork().enter(user, space))
        self.pick(self.plain, self.plain, self.capable, self.special, self.rootless, self.mixed, self.entered)(player)
        if self.likely(0.4):
            player.do(f"dumpable {self.pick(0, 1)}")
        return player

    def uid(self):
        return self.random.choices(UIDS, WEIGHTS)[0]

    def execute(self, player, program="plain"):
        return player.do(f"exec {self.directory / program}")

    def plain(self, player):
        uid = self.uid()
        player.ids(uid, uid, uid)
        self.execute(player)

    def capable(self, player):
        if self.likely(0.5):
            self.execute(player)
        uid = self.uid()
        player.ids(uid, uid, uid)
        permitted = self.pick(*CAPABILITIES)
        player.do(f"caps {permitted:x} {self.pick(permitted, 0):x}")
        player.do(f"dumpable {self.pick(1, 1, 0)}")

    def special(self, player):
        self.plain(player)
        self.execute(player, self.pick("set-user-id", "set-group-id", "with-capabilities", "unreadable"))
        if self.likely(0.5):
            player.do("dumpable 1")

    def rootless(self, player):
        """As a container engine of that user makes it."""
        uid = self.uid()
        if not player.ids(uid, uid, uid):
            return
        player.do("caps 0 0")
        player.must("dumpable 1")
        name = player.user.local(uid)
        player.do(f"unshare {NEWUSER:#x}")
        player.do("write /proc/self/setgroups deny")
        for kind in ("uid", "gid"):
            player.do(f"write /proc/self/{kind}_map {self.pick(0, name)} {name} 1")
        if self.likely(0.5):
            self.execute(player)
        elif self.likely(0.5):
            player.do(f"caps {self.pick(0, PTRACE):x} 0")

    def entered(self, player):
        """From above, as a container engine does for `exec`: with the memory of a program that was executed there."""
        if self.likely(0.5):
            player.do("caps 0 0")
        player.do(f"dumpable {self.pick(0, 1)}")

    def mixed(self, player):
        uid, other = self.uid(), self.pick(*UIDS)
        numbers = [self.pick(uid, other) for _ in range(3)]
        player.ids(*self.pick(numbers, [uid] * 3), gids=self.pick(numbers, [uid] * 3))
        if self.likely(0.7):
            player.do("caps 0 0")
        player.do(f"dumpable {self.pick(1, 1, 0)}")

    def client(self):
        player = self.someone()
        player.connect()
        if self.likely(0.2):
            player.twin = self.keep(player.fork())
            self.pick(lambda: self.execute(player, self.pick("plain", "set-user-id", "set-group-id", "with-capabilities")),
                      lambda: player.do(f"dumpable {self.pick(0, 1)}"), lambda: self.plain(player),
                      lambda: player.do(f"unshare {NEWUSER:#x}"), lambda: player.do("caps 0 0"))()
            if self.likely(0.3):
                player.do("dumpable 1")
        return player

    def cycle(self, player):
        """What the process can do again and again, to be something else each time."""
        here, there = (player.user.local(uid) for uid in (1000, 1001))
        one, other = (f"ids {' '.join(map(str, [uid or 0] * 6))}" for uid in (here, there))
        execute = f"exec {self.directory}/"
        return self.pick(["dumpable 0", "dumpable 1"], [execute + "plain", "dumpable 0"],
                         [execute + "set-user-id", one, "caps 0 0", "dumpable 1", execute + "plain"],
                         [execute + "with-capabilities", "dumpable 1", f"caps {NET_ADMIN:x} 0", "dumpable 0", execute + "plain"],
                         [one, "dumpable 1", other, "dumpable 1", "dumpable 0"],
                         [execute + "set-group-id", "dumpable 1", execute + "plain"])

    # -- questions ----------------------------------------------------------------------------

    def ask_judge(self, line):
        self.judge.stdin.write(line + "\n")
        answer = self.judge.stdout.readline()
        assert answer, "the judge ended"
        return list(map(int, answer.split()))

    def witness(self, client, target):
        """What the kernel answers the client, and one that is still what the client was when it connected."""
        return [self.seize(witness, target) for witness in (client, client.twin) if witness]

    def seize(self, client, target):
        """Errors of the kernel's own answers: by number, and by a pidfd, which needs none."""
        number = 0
        if client.pid_space.holds(target.pid_space):
            number = int(status(target.pid)["NSpid"].split()[client.pid_space.depth])
        pidfd = os.pidfd_open(target.pid)
        try:
            return tuple(map(int, client.ask(f"seize {number}", pidfd).split()))
        finally:
            os.close(pidfd)


def make_programs(directory, player):
    os.chmod(directory, 0o755)
    for name, mode, gid in (("plain", 0o755, 0), ("set-user-id", 0o4755, 0), ("set-group-id", 0o2755, 1001),
                            ("with-capabilities", 0o755, 0), ("unreadable", 0o711, 0)):
        path = directory / name
        shutil.copy(player, path)
        os.chown(path, 0, gid)
        os.chmod(path, mode)
    # VFS_CAP_REVISION_2, effective; no inheritable ones.
    os.setxattr(directory / "with-capabilities", "security.capability",
                struct.pack("<5I", 0x02000001, NET_ADMIN | PTRACE, 0, 0, 0))


@contextlib.contextmanager
def programs():
    need_root()
    if yama_scope() > 0:
        raise SkipTest("the witness asks for more than reading, which Yama restricts")
    directory = pathlib.Path(tempfile.mkdtemp(prefix="gpu-agent-test."))
    try:
        make_programs(directory, BIN.parent / "tests/access_player")
        yield directory
    finally:
        shutil.rmtree(directory)


VERDICTS = verdicts()


def reason(verdict, client, target, near_user):
    """Why the agent refuses what the kernel would allow; gpu-agentd(8) has this list for administrators."""
    if verdict == "PID_NAMESPACE":
        return "the target is outside of the client's pid namespace"
    if not near_user and verdict in ("USER_NAMESPACE", "NOT_DUMPABLE"):
        return "the client is in a user namespace of its own, and nothing is certain about the target"
    if any(len(set(status(client.pid)[ids].split())) > 1 for ids in ("Uid", "Gid")):
        return "the client runs with changed user or group ids, as a set-user-id program does"
    if verdict == "OTHER_USER":
        return "the target has other user ids, and the client a capability for it, or made its user namespace"
    if verdict == "NOT_DUMPABLE" and status(target.pid)["Uid"].split()[1] == "0":
        return "the target is root's and has capabilities, and whether it is dumpable cannot be told"
    if int(status(client.pid)["CapPrm"], 16) and verdict in ("NOT_DUMPABLE", "CAPABILITIES", "OTHER_GROUP", "USER_NAMESPACE"):
        return "the client has a capability for it, and one of the two is not dumpable, or the client has changed its ids"
    return f"not documented: {verdict}"


class Count:
    def __init__(self):
        self.pairs = 0
        self.both, self.neither = 0, 0
        self.stricter = collections.Counter()
        self.looser = []
        self.surprises = []

    def add(self, client, target, said, witnessed):
        """What the agent said, each time: (verdict, namespaces...); the kernel's answers for what they were meanwhile."""
        self.pairs += 1
        allowed = [s for s in said if VERDICTS[s[0]] == "OK"]
        may_seize = any(by_number == 0 for by_number, _ in witnessed)
        may = witnessed[0][1] == errno.EBADF if len(said) == 1 else any(by_pidfd == errno.EBADF for _, by_pidfd in witnessed)
        told = f"client {client}\n  target {target}\n  agent {[VERDICTS[s[0]] for s in said]} kernel {witnessed}"
        if allowed and not may_seize:
            self.looser.append(told)
        elif allowed:
            self.both += 1
        elif not may:
            self.neither += 1
        elif len(said) == 1:
            why = reason(VERDICTS[said[0][0]], client, target, said[0][1])
            self.stricter[why] += 1
            if why.startswith("not documented"):
                self.surprises.append(told)
        else:
            self.stricter["one of the two was changing"] += 1

    def __str__(self):
        lines = [f"{self.pairs} pairs, seed {SEED}: {self.both} allowed by both, {self.neither} refused by both, "
                 f"{len(self.looser)} allowed by the agent only"]
        lines += [f"{n} refused by the agent only: {why}" for why, n in self.stricter.most_common()]
        return "\n".join(lines)


def still(world, count):
    """Everybody of a world with everybody else."""
    clients = [world.client() for _ in range(CLIENTS)]
    targets = [world.someone() for _ in range(TARGETS)]
    for client, target in itertools.product(clients, targets):
        witnessed = world.witness(client, target)
        count.add(client, target, [world.ask_judge(f"judge {client.client} {target.pid}")], witnessed)


def racing(world, count):
    """One of two changes all the time: what the agent allows must be allowed in one of its states."""
    client, target = world.client(), world.someone()
    mover = world.pick(client, target, target)
    steps = world.cycle(mover)
    witnessed = set()
    for turn in range(2):
        for step in steps:
            mover.ask(step)
            if turn:
                witnessed.update(world.witness(client, target))
    mover.race(steps)
    said = [world.ask_judge(f"judge {client.client} {target.pid}") for _ in range(LOOKS)]
    mover.ask("dumpable 0")
    count.add(client, target, said, sorted(witnessed))


def worlds(directory):
    for number in itertools.count():
        with World(random.Random(f"{SEED}/{number}"), directory) as world:
            yield world


def pairs(play, n):
    count = Count()
    with programs() as directory:
        for world in worlds(directory):
            had = count.pairs
            while count.pairs < n and (count.pairs == had or count.pairs - had < CLIENTS and play is racing):
                play(world, count)
            if count.pairs >= n:
                return count
    raise AssertionError("no worlds")


@pytest.mark.parametrize("play,n", ((still, PAIRS), (racing, PAIRS // 25)), ids=("still", "racing"))
def test_the_agent_allows_no_more_than_the_kernel(play, n, capsys):
    count = pairs(play, n)
    with capsys.disabled():
        print(f"{count}")
    assert not count.looser, "\n".join(count.looser[:5])
    assert not count.surprises, "\n".join(count.surprises[:5])
    assert count.both > n // 50 and count.neither > n // 5, "hardly anybody was allowed anything"
