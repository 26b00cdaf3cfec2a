#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The record store: what is stored is found, by whom it may be; limits, full disks, killed processes."""
import base64
import contextlib
import ctypes
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
from unittest import SkipTest

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from harness import BIN, STOP_MS, Rpc, Scene, as_user, children_named, need_root, status, wait_until

USER = 1000
OTHER = 1001
LIBC = ctypes.CDLL(None, use_errno=True)


def store_pids(s):
    return children_named(s.agentd.pid, "gpu-agent-store")


def record(s, session=None, **params):
    """Store a snapshot; its id."""
    result = s.rpc.call("gpu.snapshot", session=session or s.attach(), record=True, max_stop_ms=STOP_MS, **params)
    assert result["complete"] and not result["missing"], result["missing"]
    return result["record"]


def listed(rpc, **params):
    return rpc.call("cores.list", **params)["records"]


def stem(s, name):
    return next(p for p in s.cores.iterdir() if p.name.startswith(name) and p.suffix == ".record").name[:-len(".record")]


def put_body(s, name, data, suffix="core"):
    """A body as the writer of one leaves it."""
    path = s.cores / f"{stem(s, name)}.{suffix}"
    path.write_bytes(data)
    path.chmod(0o600)
    owner = s.cores.stat()
    os.chown(path, owner.st_uid, owner.st_gid)
    return path


def test_snapshot_becomes_a_record():
    with Scene() as s:
        session = s.attach()
        assert listed(s.rpc) == []
        name = record(s, session, waves=True)
        found = listed(s.rpc)
        assert [r["record"] for r in found] == [name], found
        assert found[0]["pid"] == s.app.pid and found[0]["reason"] == "requested" and found[0]["vendor"] == "amd"
        assert found[0]["body"] == "none" and not found[0]["pinned"] and found[0]["disk_bytes"] > 0
        assert found[0]["boot_id"] == pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", "")
        info = s.rpc.call("cores.info", record=name[:20])
        assert info["snapshot"]["process"]["pid"] == s.app.pid and info["snapshot"]["queues"]
        assert "waves" not in info["snapshot"], "the list of waves is not kept"
        assert (s.cores / f"{stem(s, name)}.record").stat().st_mode & 0o777 == 0o600
        usage = s.rpc.call("cores.usage")
        assert usage["records"] == 1 and usage["disk_bytes"] == found[0]["disk_bytes"], usage


def test_records_are_chosen():
    with Scene() as s:
        names = [record(s) for _ in range(3)]
        assert len(set(names)) == 3

        def find(*matches, **params):
            return [r["record"] for r in listed(s.rpc, matches=list(matches), **params)]

        assert sorted(find(f"PID={s.app.pid}")) == sorted(names)
        assert find("PID=1") == [] and sorted(find("PID=1", f"pid={s.app.pid}")) == sorted(names)
        assert sorted(find("NAME=gpu-agent-simap")) == sorted(names)
        assert find(f"RECORD={names[1]}") == [names[1]]
        assert len(find(limit=2)) == 2
        times = [r["time_us"] for r in listed(s.rpc)]
        assert times == sorted(times)
        assert len(find(since_us=times[1])) == 2 and len(find(until_us=times[1])) == 2
        assert len(find(since_us=0)) == 3 and find(until_us=0) == []
        assert s.ctl("cores", "list", "--until", "@0").stdout.count(str(s.app.pid)) == 0
        assert s.rpc.error("cores.list", matches=["COLOR=red"]).name == "invalid_params"
        for method in ("info", "pin", "remove"):
            assert s.rpc.error(f"cores.{method}", record="nothing").name == "no_such_record"
            assert s.rpc.error(f"cores.{method}", record=names[0][:4]).name == "no_such_record"
        assert s.rpc.error("cores.read", record=names[0], offset=0, size=10).name == "no_such_record"


def test_bodies_are_read_in_pieces():
    with Scene() as s:
        name = record(s)
        data = os.urandom(300_000)
        put_body(s, name, data)
        info = s.rpc.call("cores.info", record=name)["record"]
        assert info["body"] == "present" and info["body_bytes"] == len(data)
        got = b""
        while True:
            piece = s.rpc.call("cores.read", record=name, offset=len(got), size=65536)
            assert piece["body_bytes"] == len(data)
            if not piece["size"]:
                break
            got += base64.b64decode(piece["data"])
        assert got == data
        # Another client cannot take it away meanwhile; the reader himself can.
        assert s.connect().error("cores.remove", record=name).name == "busy"
        assert s.rpc.call("cores.remove", record=name)["record"] == name
        assert listed(s.rpc) == []
        assert not any(p.name.startswith(name) for p in s.cores.iterdir())


def test_pinned_records_are_not_removed():
    with Scene() as s:
        name = record(s)
        assert s.rpc.call("cores.pin", record=name) == {"record": name, "pinned": True}
        assert listed(s.rpc)[0]["pinned"]
        error = s.rpc.error("cores.remove", record=name)
        assert error.name == "failed" and "pinned" in error.message and error.hint
        s.rpc.call("cores.pin", record=name, pinned=False)
        s.rpc.call("cores.remove", record=name)


def test_owners_see_their_own():
    """Root and administrators see all, the owner his, a stranger nothing at all."""
    need_root()
    with Scene(app=None, user_mode=False) as s:
        mine = s.start_app("runtime on; queues 1; spin", user=USER)
        roots = s.start_app("runtime on; queues 1; spin", name="root")
        name = record(s, s.attach(pid=mine.pid))
        secret = record(s, s.attach(pid=roots.pid))
        put_body(s, name, b"core of the user")
        put_body(s, secret, b"core of root")
        assert {r["uid"] for r in listed(s.rpc)} == {0, USER}
        assert s.cores.stat().st_uid != 0, "the store belongs to the agent's user"

        def owner():
            rpc = Rpc(s.socket)
            assert [r["record"] for r in listed(rpc)] == [name]
            assert rpc.call("cores.info", record=name)["record"]["uid"] == USER
            assert base64.b64decode(rpc.call("cores.read", record=name, offset=0, size=100)["data"]) == b"core of the user"
            for method in ("info", "pin", "remove"):
                assert rpc.error(f"cores.{method}", record=secret).name == "no_such_record"
            assert rpc.error("cores.read", record=secret, offset=0, size=1).name == "no_such_record"
            # He may record his own process.
            session = rpc.call("session.attach", pid=mine.pid)["session"]
            again = rpc.call("gpu.snapshot", session=session, record=True)["record"]
            assert rpc.call("cores.info", record=again)["record"]["uid"] == USER
            rpc.call("cores.pin", record=again)
            rpc.call("cores.pin", record=again, pinned=False)
            rpc.call("cores.remove", record=again)

        def stranger():
            rpc = Rpc(s.socket)
            assert listed(rpc) == []
            for record_id in (name, secret):
                for method in ("info", "pin", "remove"):
                    assert rpc.error(f"cores.{method}", record=record_id).name == "no_such_record"
                assert rpc.error("cores.read", record=record_id, offset=0, size=1).name == "no_such_record"
            for path in (s.cores, s.cores / "x"):
                try:
                    os.listdir(path)
                    raise AssertionError("the directory is open to everybody")
                except PermissionError:
                    pass

        as_user(USER, owner)
        as_user(OTHER, stranger)


def test_store_processes_have_no_rights():
    need_root()
    with Scene(user_mode=False) as s:
        s.rpc.call("cores.usage")
        pid, = store_pids(s)
        facts = status(pid)
        assert facts["CapEff"] == facts["CapPrm"] == "0" * 16 and facts["NoNewPrivs"] == "1" and facts["Seccomp"] == "2"
        assert set(facts["Uid"].split()) == {str(s.cores.stat().st_uid)}
        s.rpc.call("cores.usage")
        assert store_pids(s) == [pid], "one process serves the connection"
        s.clients.pop().close()
        wait_until(lambda: not store_pids(s), "the store process leaves with its client")


def test_killed_store_is_replaced():
    with Scene() as s:
        name = record(s)
        s.rpc.call("cores.usage")
        for pid in store_pids(s):
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not store_pids(s), "the killed process is reaped")
        assert [r["record"] for r in listed(s.rpc)] == [name]


def test_killed_while_it_writes():
    """SIGKILL to store processes during adds: what was answered is there, nothing is half."""
    with Scene() as s:
        session = s.attach()
        stop = threading.Event()

        def killer():
            while not stop.wait(0.003):
                for pid in store_pids(s):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)

        thread = threading.Thread(target=killer)
        thread.start()
        stored, lost = [], 0
        try:
            for _ in range(40):
                result = s.rpc.call("gpu.snapshot", session=session, record=True)
                if "record" in result:
                    stored.append(result["record"])
                else:
                    lost += 1
                    assert not result["complete"] and any("record" in m for m in result["missing"])
        finally:
            stop.set()
            thread.join()
        found = listed(s.connect())
        assert not [r for r in found if "broken" in r]
        assert set(stored) <= {r["record"] for r in found}, (stored, lost)
        assert not [p for p in s.cores.iterdir() if p.name.startswith(".") and p.name != ".index"]
        assert s.state() and s.app_status().beats


def test_records_survive_the_daemon():
    with Scene() as s:
        name = record(s)
        s.clients.pop().close()
        s.agentd.stop(signal.SIGKILL)
        s.socket.unlink(missing_ok=True)
        s.start_agentd()
        assert [r["record"] for r in listed(s.rpc)] == [name]


def test_full_disk_loses_nothing_but_the_new_record():
    need_root()
    with Scene(start_agent=False) as s:
        s.cores.mkdir()
        if LIBC.mount(b"tmpfs", str(s.cores).encode(), b"tmpfs", 0, b"size=256k,mode=700"):
            raise SkipTest("cannot mount a tmpfs")
        try:
            config = s.directory / "user.conf"
            config.write_text("[store]\nmax_use = 10M\nkeep_free = 0\n")
            s.start_agentd("--config", config)
            session = s.attach()
            name = record(s, session)
            with contextlib.suppress(OSError):
                (s.cores / "filler").write_bytes(bytes(1 << 20))
            result = s.rpc.call("gpu.snapshot", session=session, record=True)
            assert "record" not in result and not result["complete"], result["missing"]
            assert any("No space" in m or "quota" in m for m in result["missing"]), result["missing"]
            assert result["queues"], "the snapshot itself is there"
            assert [r["record"] for r in listed(s.rpc)] == [name]
            assert s.rpc.call("cores.usage")["foreign"] == 1
            (s.cores / "filler").unlink()
            record(s, session)
        finally:
            LIBC.umount2(str(s.cores).encode(), 2)


def test_unusable_directories_are_named():
    with Scene(start_agent=False) as s:
        s.cores.mkdir()
        s.cores.chmod(0o777)
        s.start_agentd()
        error = s.rpc.error("cores.list")
        assert error.name == "failed" and str(s.cores) in error.message and error.hint, error.message
        result = s.rpc.call("gpu.snapshot", session=s.attach(), record=True)
        assert "record" not in result and result["missing"] and result["queues"]


def test_missing_directory_is_named():
    need_root()
    with Scene(user_mode=False) as s:
        s.cores.rmdir()
        error = s.rpc.error("cores.list")
        assert error.name == "failed" and "systemd-tmpfiles" in error.hint
        result = s.rpc.call("gpu.snapshot", session=s.attach(), record=True)
        assert "record" not in result and result["missing"]


def test_broken_records_are_told():
    with Scene() as s:
        name, other = record(s), record(s)
        path = s.cores / f"{stem(s, name)}.record"
        path.write_bytes(b"garbage\n{}")
        found = {r["record"]: r for r in listed(s.rpc)}
        assert found[name]["broken"] and found[name]["pid"] == s.app.pid and "broken" not in found[other]
        assert s.rpc.error("cores.info", record=name).name == "failed"
        put_body(s, name, b"core")
        path.unlink()
        assert next(r for r in listed(s.rpc) if r["record"] == name)["broken"]
        error = s.rpc.error("cores.info", record=name)
        assert error.name == "failed" and "broken" in str(error), "it is there"
        assert base64.b64decode(s.rpc.call("cores.read", record=name, offset=0, size=100)["data"]) == b"core"
        (s.cores / f"{stem(s, other)}.record").write_bytes(
            (s.cores / f"{stem(s, other)}.record").read_bytes().split(b"\n")[0] + b"\n{not json")
        assert s.rpc.error("cores.info", record=other).name == "failed"


def test_a_burst_stays_within_the_limits():
    """A thousand records over four connections: all are stored, the oldest go, the disk stays bounded."""
    with Scene(start_agent=False) as s:
        config = s.directory / "user.conf"
        config.write_text("[store]\nmax_use = 100M\nkeep_free = 0\nmax_records = 600\n")
        s.start_agentd("--config", config)
        stored, problems = [], []

        def client():
            try:
                rpc = Rpc(s.socket)
                session = rpc.call("session.attach", pid=s.app.pid)["session"]
                for _ in range(250):
                    stored.append(rpc.call("gpu.snapshot", session=session, queues_only=True, record=True)["record"])
                rpc.close()
            except Exception as error:  # told in the main thread
                problems.append(error)

        threads = [threading.Thread(target=client) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not problems, problems
        assert len(set(stored)) == 1000
        usage = s.rpc.call("cores.usage")
        assert 600 <= usage["records"] <= 601 and usage["disk_bytes"] <= usage["max_use_bytes"], usage
        kept = {r["record"] for r in listed(s.rpc)}
        assert max(stored) in kept and min(stored) not in kept


def test_verb_finds_what_is_stored():
    with Scene() as s:
        run = s.ctl("cores", "list")
        assert (run.returncode, run.stdout, run.stderr) == (3, "", "the store has no records that you may see\n"), run
        run = s.ctl("snapshot", "--record", "-j", s.app.pid)
        name = json.loads(run.stdout)["record"]
        assert run.returncode == 0, run.stderr
        second = record(s)
        rows = s.ctl("cores", "list", "--no-legend").stdout.splitlines()
        assert len(rows) == 2 and name in rows[0] and second in rows[1], rows
        rows = s.ctl("cores", "list", "-r", "--no-legend", "-S", "-1h", s.app.pid).stdout.splitlines()
        assert len(rows) == 2 and second in rows[0], rows
        assert len(s.ctl("cores", "list", "-1", "--no-legend").stdout.splitlines()) == 1
        assert s.ctl("cores", "-n", "1", "list", "--no-legend").stdout.count("\n") == 1
        assert s.ctl("cores", "list", "-F", "PID").stdout == f"{s.app.pid}\n"
        assert json.loads(s.ctl("cores", "list", "-j", "-F", "PID").stdout) == {"field": "PID", "values": [str(s.app.pid)]}
        assert json.loads(s.ctl("cores", "list", "-j", "-F", "RULE").stdout)["values"] == []
        ids = [r["record"] for r in json.loads(s.ctl("cores", "list", "-j").stdout)["records"]]
        assert [r["record"] for r in json.loads(s.ctl("cores", "list", "-j", "-r").stdout)["records"]] == ids[::-1]
        assert len(s.ctl("cores", "list", "--no-legend", ids[0][:8]).stdout.splitlines()) >= 1, "a date is no process"
        # A script's variable without a value, and a name that every record without a kernel would have.
        for argv in (["rm", ""], ["pin", ""], ["info", ids[0], ""], ["list", ""]):
            assert s.ctl("cores", *argv).returncode == 2, argv
        for argv in (["rm", "NAME="], ["list", "RECORD="]):
            assert s.ctl("cores", *argv).returncode == 3, argv
        assert s.ctl("cores", "list", "-U", "yesterday").returncode == 3
        # A short number is a process; who meant the beginning of an id is told how to write that.
        year = ids[0][:4]
        for argv in (["list", year], ["info", year], ["export", year, "-o", s.directory / "x"], ["rm", year]):
            run = s.ctl("cores", *argv)
            assert run.returncode == 3 and not run.stdout and f"{year} is taken for a process" in run.stderr, run
            assert f"RECORD={year}" in run.stderr, run
        assert len(s.ctl("cores", "list", "--no-legend", f"RECORD={year}").stdout.splitlines()) == 2
        # Of nothing, words on standard error; data is empty.
        run = s.ctl("cores", "list", "-F", "RULE")
        assert (run.returncode, run.stdout, run.stderr) == (0, "", "no record has the field RULE\n"), run
        run = s.ctl("cores", "list", "-F", "RULE", "-U", "yesterday")
        assert (run.returncode, run.stdout) == (3, "") and run.stderr.startswith("no record matches"), run
        assert s.ctl("cores", "list", "REASON=other").returncode == 3
        assert len(json.loads(s.ctl("cores", "list", "-j").stdout)["records"]) == 2
        text = s.ctl("cores", "info", "-v", name).stdout
        assert name in text and str(s.app.pid) in text and "requested" in text and "gfx942" in text, text
        assert json.loads(s.ctl("cores", "info", "-j", name).stdout)["snapshot"]["process"]["pid"] == s.app.pid
        for wrong in (["-S", "soon"], ["-F", "COLOR"], ["COLOR=red"], ["-n", "0"]):
            assert s.ctl("cores", "list", *wrong).returncode == 2, wrong
        assert s.ctl("cores", "move").returncode == 2 and s.ctl("cores", "rm").returncode == 2
        assert s.ctl("cores", "info", "nobody").returncode == 3


def test_verb_exports_pins_and_removes():
    with Scene() as s:
        name = record(s)
        run = s.ctl("cores", "export", name, "-o", s.directory / "none")
        assert run.returncode == 3 and f"record {name} has no core file" in run.stderr, run
        assert "`gpu-agentctl cores info` shows whether there was one" in run.stderr, run
        assert not (s.directory / "none").exists()
        data = os.urandom(7_000_001)
        put_body(s, name, data)
        run = s.ctl("cores", "export", name, "-o", s.directory / "core")
        assert run.returncode == 0 and (s.directory / "core").read_bytes() == data, run.stderr
        piped = subprocess.run([BIN / "gpu-agentctl", "--socket", s.socket, "cores", "export", name], check=True,
                               capture_output=True, timeout=60)
        assert piped.stdout == data
        assert s.ctl("cores", "pin", name).returncode == 0
        run = s.ctl("cores", "rm", name)
        assert run.returncode == 1 and "pinned" in run.stderr and "unpin" in run.stderr, run.stderr
        text = s.ctl("cores", "du").stdout
        assert "used" in text and "pinned" in text, text
        assert json.loads(s.ctl("cores", "du", "-j").stdout)["pinned"] == 1
        assert s.ctl("cores", "unpin", name).returncode == 0
        # Whoever exported it is gone; what read the body for him may still be going.
        wait_until(lambda: s.ctl("cores", "rm", name).returncode == 0, "it is removed")
        assert s.ctl("cores", "list").returncode == 3
