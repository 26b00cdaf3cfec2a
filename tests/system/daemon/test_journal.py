#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Journal records: their fixed ids, and the fields that gpu-agentd(8) promises, as journald receives them.

A socket in a mount namespace of its own stands where journald's is."""
import contextlib
import ctypes
import functools
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from unittest import SkipTest

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from harness import ROOT, Scene, as_user, children_named, ids_of, need_root, wait_until

CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 1 << 18
DATA = ROOT / "tests/data/codeobj"
WAVES = f"runtime ttmp; load {DATA}/spin-gfx90a.co; queues 4; waves 1 memory 2 spin+16; spin"
IDS = dict(re.findall(r'^#define LOG_MESSAGE_(\w+)\s+"([0-9a-f]{32})"', (ROOT / "lib/base/log.h").read_text(), re.M))
OWNER, OBSERVER = 54301, 54302
COMMON = {"MESSAGE", "PRIORITY", "MESSAGE_ID", "SYSLOG_IDENTIFIER"}


def promised():
    """{message id: its fields}, of the manual."""
    section = (ROOT / "docs/man/gpu-agentd.8").read_text().split(".Sh JOURNAL")[1].split(".Sh EXIT STATUS")[0]
    items = re.split(r"^\.It ([0-9a-f]{32})\n", section, flags=re.M)[1:]
    return {items[i]: set(re.findall(r"^\.Li (\w+)", items[i + 1].split(".El")[0], re.M))
            for i in range(0, len(items), 2)}


def catalog():
    """{message id: its entry}, as journalctl -x shows it."""
    entries = re.split(r"^-- ([0-9a-f]{32})\n", (ROOT / "systemd/gpu-agent.catalog").read_text(), flags=re.M)[1:]
    assert len(set(entries[::2])) == len(entries) / 2, "an id has two entries"
    return dict(zip(entries[::2], entries[1::2]))


def parse(datagram):
    """Native protocol: NAME, newline, 64-bit little endian size, bytes, newline."""
    fields = {}
    while datagram:
        name, _, rest = datagram.partition(b"\n")
        size, = struct.unpack_from("<Q", rest)
        assert rest[8 + size:9 + size] == b"\n" and re.fullmatch(rb"[A-Z][A-Z0-9_]*", name), datagram
        assert name.decode() not in fields, f"{name} twice"
        fields[name.decode()] = rest[8:8 + size].decode()
        datagram = rest[9 + size:]
    return fields


class Journal:
    def __init__(self):
        pathlib.Path("/run/systemd/journal").mkdir(parents=True)
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.bind("/run/systemd/journal/socket")
        os.chmod("/run/systemd/journal/socket", 0o666)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.sock.setblocking(False)
        self.records = []

    def drain(self):
        with contextlib.suppress(BlockingIOError):
            while True:
                text, aside, _, _ = self.sock.recvmsg(1 << 17, socket.CMSG_SPACE(12))
                # As journald does it: who writes cannot choose this one.
                pid, = struct.unpack_from("i", aside[0][2])
                self.records.append({**parse(text), "_PID": str(pid)})
        return self.records

    def wait(self, kind, behind=0, **fields):
        """The first record of that kind with these fields; not one of the first so many."""
        def found():
            return next((r for r in self.drain()[behind:] if r["MESSAGE_ID"] == IDS[kind] and
                         all(r.get(k) == str(v) for k, v in fields.items())), None)
        try:
            return wait_until(found, f"{kind} {fields}")
        except AssertionError:
            print(*self.records, sep="\n")
            raise


@contextlib.contextmanager
def journaled(rules="", agent=""):
    journal = Journal()
    with Scene(app=None, gpus="gfx90a", start_agent=False, user_mode=False) as s:
        # Of the process that comes next; the agent believes in a journal that its standard error leads to.
        err = s.directory / f"agentd{len(s.processes)}.err"
        err.touch()
        stat = err.stat()
        (s.directory / "agentd.conf").write_text(f"[agent]\nuser = nobody\nsocket_group =\n{agent}{rules}")
        s.start_agentd(user_mode=False, env={"JOURNAL_STREAM": f"{stat.st_dev}:{stat.st_ino}"})
        yield s, journal
        for record in journal.drain():
            check(record)


def check(record):
    """Nothing that the manual does not promise."""
    allowed = promised()[record["MESSAGE_ID"]] | COMMON | {"OBJECT_PID", "_PID"}
    if record["MESSAGE_ID"] == IDS["HOOK"]:
        allowed |= {n for n in record if n.startswith("GPU_AGENT_")}
    assert COMMON <= set(record) and record["PRIORITY"] in "3456" and "\n" not in record["MESSAGE"], record
    assert set(record) <= allowed, set(record) - allowed
    # journalctl -x shows the name of a field that is not there.
    named = set(re.findall(r"@(\w+)@", catalog()[record["MESSAGE_ID"]]))
    assert named <= set(record), (record, named - set(record))


def is_subscribed(s):
    """Held by the rule is not enough: to a fault before this the kernel listens for nobody."""
    process = next(p for p in s.state()["processes"] if p["pid"] == s.app.pid)
    return process["debugged"] and int(process["enabled_mask"], 16) & ~(1 << 47)


def located_fault(s, journal):
    """The record of a fault: a look has its time, and where the machine stands still in it, another one has the place."""
    for _ in range(6):
        n = len(journal.drain())
        s.raise_queue(s.target_state()["queues"][1]["id"], "wave_memory_violation")
        got = journal.wait("RECORD", n, OBJECT_PID=s.app.pid, GPU_AGENT_RULE="all", GPU_AGENT_REASON="exception")
        if "GPU_AGENT_LOCATION" in got:
            break
        time.sleep(3)  # a look is allowed again
    return got


def in_namespace(function):
    """Where /run is empty, for this test only."""
    @functools.wraps(function)
    def run():
        need_root()

        def child():
            libc = ctypes.CDLL(None, use_errno=True)
            assert libc.unshare(CLONE_NEWNS) == 0, os.strerror(ctypes.get_errno())
            assert libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None) == 0
            assert libc.mount(b"tmpfs", b"/run", b"tmpfs", 0, b"mode=755") == 0
            function()

        as_user(0, child)
    return run


@in_namespace
def test_who_does_what_is_recorded():
    with journaled() as (s, journal):
        s.app = s.start_app(WAVES)
        me = {"GPU_AGENT_PEER_UID": 0, "GPU_AGENT_PEER_PID": os.getpid()}
        session = s.attach()
        got = journal.wait("ATTACH", OBJECT_PID=s.app.pid, GPU_AGENT_VERDICT="allowed", _PID=s.monitor_pid(), **me)
        assert got["SYSLOG_IDENTIFIER"] == "gpu-agentd" and got["PRIORITY"] == "6", got
        joined = s.connect()
        s.attach(rpc=joined)
        wait_until(lambda: sum("joins the open session" in r["MESSAGE"] for r in journal.drain()) == 1, "one has joined")
        joined.close()
        s.rpc.call("gpu.suspend", session=session)
        (judge,) = children_named(s.agentd.pid, "gpu-agent-judge")
        got = journal.wait("CONTROL", OBJECT_PID=s.app.pid, GPU_AGENT_METHOD="gpu.suspend", GPU_AGENT_SESSION=session,
                           GPU_AGENT_COUNT=1, _PID=judge, **me)
        assert got["SYSLOG_IDENTIFIER"] == "gpu-agentd" and got["PRIORITY"] == "6", got
        s.rpc.call("gpu.resume", session=session)
        taker = s.connect()
        s.attach(rpc=taker, force=True)
        got = journal.wait("TAKEN", OBJECT_PID=s.app.pid, GPU_AGENT_SESSION=session, GPU_AGENT_FROM_UID=0,
                           GPU_AGENT_FROM_PID=os.getpid(), GPU_AGENT_REASON="forced", _PID=judge, **me)
        assert got["SYSLOG_IDENTIFIER"] == "gpu-agentd" and got["PRIORITY"] == "6", got
        assert int(got["GPU_AGENT_IDLE_MS"]) < 60000 and got["GPU_AGENT_METHOD"] == "session.attach", got
        taker.call("session.detach", session=session)
        name = s.rpc.call("gpu.snapshot", session=session, record=True)["record"]
        got = journal.wait("RECORD", OBJECT_PID=s.app.pid, GPU_AGENT_RECORD=name, GPU_AGENT_PID=s.app.pid, GPU_AGENT_UID=0)
        assert got["SYSLOG_IDENTIFIER"] == "gpu-agent-store" and got["GPU_AGENT_VENDOR"] == "amd", got
        assert got["GPU_AGENT_REASON"] == "requested" and got["GPU_AGENT_COUNT"] == "1", got
        assert got["GPU_AGENT_KERNEL"].startswith("spin") and got["GPU_AGENT_COMM"] and got["GPU_AGENT_EXE"], got
        s.rpc.call("session.detach", session=session)
        journal.wait("END", OBJECT_PID=s.app.pid, GPU_AGENT_SESSION=session, GPU_AGENT_REASON="detached")
        # Nothing of that is printed as well.
        assert "attach to" not in s.agentd.err() and " is over" not in s.agentd.err(), s.agentd.err()


def attached(s, uid, groups=()):
    """(client, session) of a user."""
    with ids_of(uid, groups):
        rpc = s.connect()
        return rpc, s.attach(rpc=rpc)


def peer(uid):
    return {"GPU_AGENT_PEER_UID": uid, "GPU_AGENT_PEER_PID": os.getpid()}


def sum_of(records, kind, **fields):
    """Calls that they stand for."""
    return sum(int(r["GPU_AGENT_COUNT"]) for r in records
               if r["MESSAGE_ID"] == IDS[kind] and all(r.get(k) == str(v) for k, v in fields.items()))


@in_namespace
def test_reads_of_others_are_recorded():
    """Of each client and method the first at once, and how many there were; nobody's of his own process."""
    with journaled(agent="observer_group = daemon\n") as (s, journal):
        s.app = s.start_app("runtime on; queues 2; spin", user=OWNER)
        owner, session = attached(s, OWNER)
        begin = pathlib.Path(f"/proc/{s.app.pid}/maps").read_text().partition("-")[0]
        memory = {"session": session, "address": f"0x{begin}", "size": 4}
        owner.call("gpu.snapshot", session=session)
        owner.call("memory.read", **memory)
        owner.call("gpu.suspend", session=session)
        owner.call("gpu.resume", session=session)
        (judge,) = children_named(s.agentd.pid, "gpu-agent-judge")
        journal.wait("CONTROL", OBJECT_PID=s.app.pid, GPU_AGENT_METHOD="gpu.suspend", _PID=judge, **peer(OWNER))
        for uid, groups in ((OBSERVER, [1]), (0, [])):
            about = {"OBJECT_PID": s.app.pid, "GPU_AGENT_SESSION": session, "GPU_AGENT_UID": OWNER, "_PID": judge, **peer(uid)}
            reader, _ = attached(s, uid, groups)
            reader.call("gpu.devices", session=session)
            reader.call("gpu.snapshot", session=session)
            journal.wait("READ", GPU_AGENT_METHOD="gpu.snapshot", **about)
            for _ in range(5):
                reader.call("memory.read", **memory)
            got = journal.wait("READ", GPU_AGENT_METHOD="memory.read", **about)
            assert got["PRIORITY"] == "6" and got["SYSLOG_IDENTIFIER"] == "gpu-agentd", got
            # The others are told when it leaves.
            reader.call("session.detach", session=session)
            journal.wait("READ", GPU_AGENT_METHOD="memory.read", GPU_AGENT_COUNT=4, **about)
            assert sum_of(journal.drain(), "READ", **peer(uid)) == 6, journal.records
        assert not [r for r in journal.drain() if r["MESSAGE_ID"] == IDS["READ"] and r["GPU_AGENT_PEER_UID"] == str(OWNER)]


def taken(journal):
    return [r for r in journal.drain() if r["MESSAGE_ID"] == IDS["TAKEN"]]


@in_namespace
def test_each_way_to_take_control_is_recorded():
    """Once each; nobody's who gets what nobody has."""
    with journaled() as (s, journal):
        s.app = s.start_app(WAVES)
        first, second = s.connect(), s.connect()
        session = s.attach(rpc=first)
        s.attach(rpc=second)
        first.call("gpu.suspend", session=session)
        first.call("gpu.resume", session=session)
        first.call("session.control", session=session, take=False)
        second.call("gpu.suspend", session=session)
        second.call("gpu.resume", session=session)
        assert not taken(journal), journal.records
        n = 0
        for rpc, method, more in ((first, "session.control", {"take": True, "force": True}),
                                  (second, "gpu.resume", {"force": True})):
            rpc.call(method, session=session, **more)
            n += 1
            journal.wait("TAKEN", GPU_AGENT_METHOD=method, GPU_AGENT_REASON="forced", OBJECT_PID=s.app.pid)
            assert len(taken(journal)) == n, journal.records
        # It leaves the session, and stays connected.
        second.call("session.detach", session=session)
        first.call("gpu.suspend", session=session)
        journal.wait("TAKEN", GPU_AGENT_METHOD="gpu.suspend", GPU_AGENT_REASON="left")
        # A worker that hangs tells nothing.
        s.attach(rpc=second)
        os.kill(s.worker_pids()[0], signal.SIGSTOP)
        assert second.call("gpu.resume", session=session, force=True)["taken"]["worker_killed"]
        (judge,) = children_named(s.agentd.pid, "gpu-agent-judge")
        journal.wait("TAKEN", GPU_AGENT_REASON="forced", GPU_AGENT_METHOD="session.control", _PID=judge,
                     behind=journal.records.index(taken(journal)[n]) + 1)


@in_namespace
def test_uses_of_records_of_others_are_recorded():
    """Of the owner nothing; of others who reads, lists, pins and removes, by what the judge knows of them."""
    with journaled(agent="observer_group = daemon\n") as (s, journal):
        s.app = s.start_app("runtime on; queues 2; spin", user=OWNER)
        owner, session = attached(s, OWNER)
        names = [owner.call("gpu.snapshot", session=session, record=True)["record"] for _ in range(2)]
        (judge,) = children_named(s.agentd.pid, "gpu-agent-judge")

        def use(rpc):
            rpc.call("cores.list")
            for _ in range(3):
                rpc.call("cores.info", record=names[0])
            rpc.call("cores.info", record=names[1])
        use(owner)
        owner.call("cores.pin", record=names[0])
        with ids_of(OBSERVER, [1]):
            observer = s.connect()
        use(observer)
        about = {"GPU_AGENT_UID": OWNER, "_PID": judge}
        journal.wait("RECORD_USED", GPU_AGENT_METHOD="cores.list", GPU_AGENT_RECORD="several", **about, **peer(OBSERVER))
        journal.wait("RECORD_USED", GPU_AGENT_METHOD="cores.info", GPU_AGENT_RECORD=names[0], GPU_AGENT_COUNT=1, **about,
                     **peer(OBSERVER))
        journal.wait("RECORD_USED", GPU_AGENT_METHOD="cores.info", GPU_AGENT_RECORD=names[1], GPU_AGENT_COUNT=3, **about,
                     **peer(OBSERVER))
        assert observer.error("cores.remove", record=names[1]).name == "not_permitted"
        admin = s.connect()
        admin.call("cores.pin", record=names[0], pinned=False)
        admin.call("cores.remove", record=names[0])
        for method in ("cores.pin", "cores.remove"):
            journal.wait("RECORD_USED", GPU_AGENT_METHOD=method, GPU_AGENT_RECORD=names[0], **about, **peer(0))
        for uid, methods in ((OWNER, set()), (OBSERVER, {"cores.list", "cores.info"}), (0, {"cores.pin", "cores.remove"})):
            got = {r["GPU_AGENT_METHOD"] for r in journal.drain() if r["MESSAGE_ID"] == IDS["RECORD_USED"] and
                   r["GPU_AGENT_PEER_UID"] == str(uid)}
            assert got == methods, (uid, got)


@in_namespace
def test_a_flood_of_reads_hides_no_change():
    """Nor what is called again and again another method: all of it by one user, to a process of another one."""
    with journaled() as (s, journal):
        s.app = s.start_app("runtime on; queues 2; spin", user=OWNER)
        admin = s.connect()
        session = s.attach(rpc=admin)
        others = [s.connect() for _ in range(30)]
        for rpc in others:
            s.attach(rpc=rpc)
        for rpc in others:
            rpc.error("memory.read", session=session, address="0x10", size=4)
            rpc.call("code.list", session=session)
            journal.drain()
        admin.call("gpu.suspend", session=session)
        journal.wait("CONTROL", GPU_AGENT_METHOD="gpu.suspend", GPU_AGENT_COUNT=1, **peer(0))
        for i in range(400):
            admin.call("gpu.renew", session=session, lease_ms=5000)
            journal.drain()
        admin.call("gpu.resume", session=session)
        s.agentd.popen.terminate()
        s.agentd.popen.wait(60)
        assert any("gpu.resume" in r.get("GPU_AGENT_METHOD", "") + r.get("GPU_AGENT_METHODS", "") for r in journal.drain())


@in_namespace
def test_a_flood_of_own_calls_hides_no_reads_by_others():
    calls = 2000
    with journaled(agent="observer_group = daemon\n") as (s, journal):
        s.app = s.start_app("runtime on; queues 2; spin", user=OWNER)
        owner, session = attached(s, OWNER)
        reader, _ = attached(s, OBSERVER, [1])
        owner.call("gpu.suspend", session=session)
        for i in range(calls):
            owner.call("gpu.renew", session=session, lease_ms=5000)
            if i == calls // 2:
                reader.call("code.list", session=session)
            journal.drain()  # its socket holds ten
        journal.wait("READ", OBJECT_PID=s.app.pid, GPU_AGENT_METHOD="code.list", GPU_AGENT_COUNT=1, **peer(OBSERVER))
        written = [r for r in journal.drain() if r["MESSAGE_ID"] == IDS["CONTROL"]]
        assert 20 <= len(written) <= 100, len(written)
        for rpc in (owner, reader):
            rpc.close()
        journal.wait("END", OBJECT_PID=s.app.pid)
        s.agentd.popen.terminate()
        s.agentd.popen.wait(60)
        told = sum_of(journal.drain(), "CONTROL", **peer(OWNER)) + sum_of(journal.records, "USES", GPU_AGENT_PEER_UID=OWNER,
                                                                          GPU_AGENT_WHOSE="own")
        assert told == calls + 1, told


@in_namespace
def test_faults_and_their_hooks_are_recorded():
    pathlib.Path("/run/hook").write_text("#!/bin/sh\necho seen; echo \"$GPU_AGENT_RECORD\" >&2; exit 5\n")
    os.chmod("/run/hook", 0o755)
    rule = "[rule all]\ndevice = amd\ndeduplicate = none\nhook = /run/hook\nhook_user = daemon\n"
    with journaled(rule) as (s, journal):
        s.app = s.start_app(WAVES)
        wait_until(lambda: is_subscribed(s), "the rule listens")
        got = located_fault(s, journal)
        assert "wave_memory_violation" in got["GPU_AGENT_EXCEPTION"], got
        same = {k: got[k] for k in ("GPU_AGENT_EXCEPTION", "GPU_AGENT_COMM", "GPU_AGENT_EXE", "GPU_AGENT_VENDOR",
                                    "GPU_AGENT_KERNEL", "GPU_AGENT_LOCATION")}
        hook = journal.wait("HOOK", OBJECT_PID=s.app.pid, GPU_AGENT_RULE="all", GPU_AGENT_PID=s.app.pid, **same)
        want = {"GPU_AGENT_HOOK": "/run/hook", "GPU_AGENT_HOOK_END": "exit", "GPU_AGENT_HOOK_STATUS": "5",
                "GPU_AGENT_HOOK_UID": "1", "GPU_AGENT_RECORD": got["GPU_AGENT_RECORD"], "PRIORITY": "4",
                "GPU_AGENT_HOOK_OUTPUT": f"seen\n{got['GPU_AGENT_RECORD']}\n", "SYSLOG_IDENTIFIER": "gpu-agentd"}
        assert {k: hook.get(k) for k in want} == want, hook
        assert int(hook["GPU_AGENT_HOOK_DURATION_US"]) > 0 and hook["GPU_AGENT_HOOK_OUTPUT_BYTES"] == "30", hook


def test_the_manual_names_every_record():
    assert set(promised()) == set(IDS.values()), set(promised()) ^ set(IDS.values())
    assert all(promised().values())


def test_the_catalog_explains_every_record():
    assert set(catalog()) == set(IDS.values()), set(catalog()) ^ set(IDS.values())
    for number, entry in catalog().items():
        head, _, text = entry.partition("\n\n")
        keys = [line.partition(": ")[0] for line in head.splitlines()]
        assert keys == ["Subject", "Defined-By", "Documentation"] and text.strip(), entry
        assert "Defined-By: gpu-agent\n" in head and len(head.splitlines()[0]) < 100, head
        named = set(re.findall(r"@(\w+)@", entry))
        assert named and named <= promised()[number] | {"OBJECT_PID"}, named - promised()[number]
        assert max(map(len, text.splitlines())) <= 110, entry


@contextlib.contextmanager
def catalog_root():
    """A directory whose catalog is ours, compiled."""
    if not shutil.which("journalctl"):
        raise SkipTest("journalctl is not installed")
    with tempfile.TemporaryDirectory(prefix="gpu-agent-catalog.") as name:
        root = pathlib.Path(name)
        for place in ("usr/lib/systemd/catalog", "var/lib/systemd/catalog"):
            (root / place).mkdir(parents=True)
        shutil.copy(ROOT / "systemd/gpu-agent.catalog", root / "usr/lib/systemd/catalog")
        done = subprocess.run(["journalctl", f"--root={root}", "--update-catalog"], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 and not re.search("gpu-agent.catalog:\\d", done.stderr), done
        yield root


def test_systemd_understands_the_catalog():
    with catalog_root() as root:
        done = subprocess.run(["journalctl", f"--root={root}", "--list-catalog"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done
    listed = dict(re.findall(r"^([0-9a-f]{32}) gpu-agent: (.*)$", done.stdout, re.M))
    assert listed == {k: re.match("Subject: (.*)", v)[1] for k, v in catalog().items()}, done.stdout


def write_journal(path, remote, fields):
    """A journal file with one record."""
    export = "".join(f"{k}={v}\n" for k, v in {"__REALTIME_TIMESTAMP": 1795414690000000, "__MONOTONIC_TIMESTAMP": 1,
                                               "_BOOT_ID": "0" * 31 + "1", **fields}.items())
    done = subprocess.run([remote, "-o", path, "-"], input=export + "\n", text=True, capture_output=True, timeout=60)
    assert done.returncode == 0 and path.exists(), done


def test_journalctl_shows_the_explanation():
    need_root()
    remote = os.environ.get("JOURNAL_REMOTE") or shutil.which("systemd-journal-remote", path="/lib/systemd:/usr/lib/systemd")
    if not remote:
        raise SkipTest("systemd-journal-remote, which makes a journal file, is not installed")
    fields = {"MESSAGE": "attach to process 42", "MESSAGE_ID": IDS["ATTACH"], "PRIORITY": 6, "OBJECT_PID": 42,
              "GPU_AGENT_VERDICT": "refused", "GPU_AGENT_PEER_UID": 1000, "GPU_AGENT_PEER_PID": 77}
    with catalog_root() as root:
        write_journal(root / "x.journal", remote, fields)
        # journalctl reads no other catalog than that of the system, so ours is put there for this one run.
        run = ('mount --bind "$1/var/lib/systemd/catalog" /var/lib/systemd/catalog && '
               'exec journalctl --no-pager --file "$1/x.journal" -x')
        done = subprocess.run(["unshare", "-m", "sh", "-c", run, "sh", str(root)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done
    assert "Subject: A client asked to attach to process 42: refused" in done.stdout, done.stdout
    assert "Process 77 of user 1000 asked the GPU debug agent" in done.stdout and "@" not in done.stdout, done.stdout
