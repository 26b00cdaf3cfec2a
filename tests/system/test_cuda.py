#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""CUDA processes on simulated GPUs: the same verbs, the same documents, as on AMD."""
import base64
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cudasim"))
from harness import BIN, CudaScene, Skip, children, kill_agent, main, need_root, status, test, wait_until  # noqa: E402
from debugger import get, say  # noqa: E402

RELEASES = ("11.8", "12.2", "12.4", "12.9", "13.1", "13.4")
SMALL = "devices 2 sms=3 warps=8"
DIVERGE = "_Z7divergeIfEvPT_i"
USER = 1000
VARIABLES = ("cudbgIpcFlag", "cudbgRpcEnabled", "cudbgApiClientPid", "cudbgApiClientRevision", "cudbgSessionId",
             "cudbgDebuggerCapabilities", "cudbgUseExternalDebugger", "cudbgDebuggerInitialized")


def scene(release="12.4", sim=SMALL, **kwargs):
    kwargs.setdefault("user_mode", False)
    return CudaScene(release=release, sim=sim, **kwargs)


def assert_alive(s):
    before = s.app_status().beats
    assert say(s, "ready") is not None
    wait_until(lambda: s.app_status().beats > before, "heartbeat")


def assert_untouched(s):
    """As if never debugged, and alive."""
    def clean():
        state = s.state()
        return (status(s.app.pid).get("TracerPid") == "0" and not any(get(s, name) for name in VARIABLES)
                and not (state and any(d["suspended"] for d in state["devices"])))
    wait_until(clean, "everything undone")
    assert_alive(s)


def function(s, name):
    """Where a function was loaded."""
    return next(f for m in s.state()["modules"] for f in m["functions"] if f["name"] == name)


def number(value):
    return int(value, 16) if isinstance(value, str) else value


def refused(s, name, exit_code, *words, pid=None):
    pid = pid or s.app.pid
    error = s.rpc.error("session.attach", pid=pid)
    assert error.name == name, (error, error.data)
    assert error.hint, error.data
    for word in words:
        assert word in f"{error.message} {error.hint}", (word, error.message, error.hint)
    run = s.ctl("snapshot", pid)
    assert run.returncode == exit_code and run.stdout == "" and error.hint in run.stderr, run


# -- what a snapshot says -------------------------------------------------------------------------


@test
def snapshot_says_the_same_in_every_release():
    documents = []
    for release in RELEASES:
        with scene(release) as s:
            doc = json.loads(s.ctl("snapshot", "--waves", "--json", s.app.pid).stdout)
            assert doc["complete"] and doc["process"]["vendor"] == "nvidia", doc["missing"]
            assert doc["interface_version"].startswith(release + "."), doc["interface_version"]
            assert [d["arch"] for d in doc["devices"]] == ["sm_90", "sm_90"]
            assert [q["type"] for q in doc["queues"]] == ["context"]
            assert doc["wave_count"] == 8 * 4 - 8, doc["wave_count"]  # 24 places for 32 warps
            (group,) = doc["groups"]
            assert group["kernel"]["name"] == "spin" and group["waves"] == 24, group
            assert (group["frames"][0]["function"], group["frames"][0]["line"]) == ("spin", 15), group["frames"]
            documents.append([(w["ref"], w["pc"], w["exec"]) for w in doc["waves"]])
            assert_untouched(s)
    assert all(d == documents[0] for d in documents)


@test
def groups_are_what_was_planted():
    with scene() as s:
        spin, diverge = function(s, "spin"), function(s, DIVERGE)
        s.control("warp 0 1 2 pc=0xc0")
        s.control("warp 0 2 0 pc=0x10 active=0xff")
        s.control("warp 0 0 3 pc=0xc0 active=0x1")
        doc = s.rpc.call("gpu.snapshot", session=s.attach())
        rows = {(g["frames"][0]["function"], g["frames"][0]["line"], len(g["frames"])): g for g in doc["groups"]}
        assert set(rows) == {("spin", 15, 1), ("weigh(float)", 12, 2), ("spin", 19, 1)}, rows.keys()
        inlined = rows["weigh(float)", 12, 2]
        assert inlined["waves"] == 2 and (inlined["lanes_min"], inlined["lanes_max"]) == (1, 32), inlined
        assert inlined["frames"][0]["inlined"] and inlined["frames"][1]["line"] == 20, inlined["frames"]
        assert number(inlined["pc"]) == number(spin["address"]) + 0xc0
        assert rows["spin", 19, 1]["lanes_median"] == 8
        assert number(diverge["address"]) != number(spin["address"])


@test
def exceptions_lead_and_are_named():
    with scene() as s:
        session = s.attach()
        s.control("raise 0 1 2 14 errorpc=0x50")
        s.control("raise 0 2 1 12")
        doc = s.rpc.call("gpu.snapshot", session=session)
        first, second, rest = doc["groups"]
        assert [g["waves"] for g in (first, second, rest)] == [1, 1, 22]
        found = {g["exception"]: (g["reasons"], g["state"]) for g in (first, second)}
        assert found == {"CUDA_EXCEPTION_14: warp illegal address": (["memory_violation"], "stopped"),
                         "CUDA_EXCEPTION_12: warp assert": (["assert"], "stopped")}, found
        memory = next(g for g in (first, second) if "illegal" in g["exception"])
        assert memory["representative"]["unit"] == 1 and memory["representative"]["index"] == 2
        assert number(memory["pc"]) == number(function(s, "spin")["address"]) + 0x50
        text = s.ctl("snapshot", s.app.pid).stdout
        assert "CUDA_EXCEPTION_14: warp illegal address" in text, text


@test
def lane_exceptions_separate_groups():
    with scene("12.4") as s:
        session = s.attach()
        s.control("raise 0 0 0 1 lanes=0x4")
        s.control("raise 0 0 1 11 lanes=0x8")
        doc = s.rpc.call("gpu.snapshot", session=session)
        names = sorted(g["exception"] for g in doc["groups"] if "exception" in g)
        assert names == ["CUDA_EXCEPTION_11: lane misaligned address", "CUDA_EXCEPTION_1: lane illegal address"], names
        registers = s.rpc.call("wave.registers", session=session, work_items=True,
                               wave={"queue_id": 0, "unit": 0, "index": 0})["registers"]
        lanes = {i["lane"]: i.get("exception") for i in registers["work_items"]}
        assert lanes[2] == "CUDA_EXCEPTION_1: lane illegal address" and lanes[3] is None, lanes


@test
def full_gpu_in_time():
    app = "init; context 0; module @CUBIN@; gpu launch spin grid=264 block=1024 spread=5; listen"
    with scene(sim="devices 1 sms=132 warps=64", app=app) as s:
        s.ctl("snapshot", s.app.pid)
        took = []
        for _ in range(5):
            start = time.monotonic()
            run = s.ctl("snapshot", "--json", "--max-stop=7000", s.app.pid)
            took.append(time.monotonic() - start)
            doc = json.loads(run.stdout)
            assert run.returncode == 0 and doc["wave_count"] == 8448 and doc["complete"], (run.stdout[:400], run.stderr)
        print(f"  attach, snapshot of 8448 warps, detach: {min(took) * 1000:.0f} to {max(took) * 1000:.0f} ms, "
              f"stopped {doc['stopped_us']} us")
        assert_untouched(s)


@test
def call_stacks_are_shown():
    """Read level by level up to 12.4, in one call from 12.5 on."""
    for release in ("11.8", "12.4", "13.4"):
        with scene(release) as s:
            s.control("warp 0 1 2 pc=0x10")
            s.control("stack 0 1 2 0xffffffff 0x20 0xd0 0x70000000 syscall=1")
            spin = number(function(s, "spin")["address"])
            session = s.attach()
            want = s.rpc.call("code.locate", session=session, addresses=[hex(spin + 0x1f), hex(spin + 0xcf)])["places"]
            doc = s.rpc.call("gpu.snapshot", session=session)
            (group,) = [g for g in doc["groups"] if "callers" in g]
            assert group["representative"]["unit"] == 1 and group["representative"]["index"] == 2 and doc["complete"], group
            assert [number(c["address"]) for c in group["callers"]][:2] == [spin + 0x20, spin + 0xd0], group["callers"]
            assert [c["frames"] for c in group["callers"]] == [p["frames"] for p in want] + [[]], (group["callers"], want)
            assert [f["line"] for f in group["callers"][1]["frames"]] == [12, 20], group["callers"]
            wave = {"queue_id": 0, "unit": 1, "index": 2}
            registers = s.rpc.call("wave.registers", session=session, wave=wave, banks=["special"])["registers"]
            assert registers["callers"] == group["callers"], registers
            other = s.rpc.call("wave.registers", session=session, wave={**wave, "index": 3}, banks=["special"])
            assert "callers" not in other["registers"]
            text = s.ctl("snapshot", s.app.pid).stdout
            assert re.search(r"spin.cu:\d+ spin <- spin.cu:\d+ spin <- spin.cu:12 weigh <- spin <- 0x[0-9a-f]+", text), text
            assert "callers\n0 " in s.ctl("registers", s.app.pid, "0:1:2", "--bank=special").stdout
            # What is told of an exception has them, too.
            s.rpc.call("session.detach", session=session)
            session = s.attach(control=True)
            s.rpc.call("exception.subscribe", session=session, exceptions=["wave_memory_violation"], look_ms=1000)
            s.control("raise 0 1 2 14 errorpc=0x10")
            assert s.rpc.notification("exception.raised")["groups"][0]["callers"] == group["callers"]


# -- one warp -------------------------------------------------------------------------------------


@test
def registers_are_what_was_planted():
    for release in ("12.2", "12.9", "13.4"):
        with scene(release) as s:
            s.control("register 0 1 2 7 2 0xcafe")
            s.control("uniform 0 1 2 3 0xbeef")
            s.control("predicate 0 1 2 7 1 1")
            s.control("warp 0 1 2 active=0xf0")
            session = s.attach()
            wave = {"queue_id": 0, "unit": 1, "index": 2}
            r = s.rpc.call("wave.registers", session=session, wave=wave, work_items=True)["registers"]
            vector = {v["name"]: v["lanes"] for v in r["vector"]}
            scalar = {v["name"]: number(v["value"]) for v in r["scalar"]}
            special = {v["name"]: number(v["value"]) for v in r["special"]}
            assert number(vector["R2"][7]) == 0xcafe, vector["R2"]
            assert number(vector["R2"][6]) == 1 << 20 | 2 << 14 | 6 << 8 | 2, vector["R2"]
            assert scalar["UR3"] == 0xbeef and special["active_lanes"] == 0xf0, (scalar, special)
            assert "P1" in vector, vector.keys()
            assert len(r["work_items"]) == 32 and r["packet"]["workgroup_size"] == [128, 1, 1]
            # The same warp by what it works on.
            ref = {k: v for k, v in r["wave"]["ref"].items() if k not in ("unit", "index")}
            assert s.rpc.call("wave.registers", session=session, wave=ref)["registers"]["wave"]["ref"]["index"] == 2
            error = s.rpc.error("wave.registers", session=session, wave={**wave, "index": 60})
            assert error.name == "no_such_wave", error


@test
def registers_that_the_driver_does_not_give():
    """From 13.2 on it says how many it gave."""
    with scene("13.4") as s:
        session = s.attach()
        wave = {"queue_id": 0, "unit": 1, "index": 2}
        whole = s.rpc.call("wave.registers", session=session, wave=wave)["registers"]
        assert whole["vector_count"] > 4 and "missing" not in whole, whole["vector_count"]
        s.control("few-registers 4")
        got = s.rpc.call("wave.registers", session=session, wave=wave)["registers"]
        words = "vector registers from R4 on, of lanes 0xffffffff: the driver does not give them"
        assert got["missing"] == [words] and got["vector_count"] == whole["vector_count"], got["missing"]
        assert got["vector"] == whole["vector"][:4] + [v for v in whole["vector"] if v["name"][0] == "P"], got["vector"]
        assert words in s.ctl("registers", s.app.pid, "0:1:2").stdout
        doc = s.rpc.call("gpu.snapshot", session=session, registers=True)
        assert doc["missing"] == [words] and not doc["complete"] and len(doc["registers"]) == 1, doc["missing"]
        # What the kernel uses is not known: then these are all.
        s.control("fail readWarpResources 46")
        got = s.rpc.call("wave.registers", session=session, wave=wave)["registers"]
        assert got["vector_count"] == 4 and "missing" not in got, got
        s.control("fail readRegisterRange 46")
        doc = s.rpc.call("gpu.snapshot", session=session, registers=True)
        assert doc["missing"] == ["registers of a wave: the driver does not give them"], doc["missing"]


@test
def memory_of_every_space():
    with scene() as s:
        s.control("memory global 0x7f1000000000 hex=0102030405060708")
        s.control("memory shared 0 1 2 0x10 hex=a1a2a3a4")
        s.control("memory local 0 1 2 7 0x20 hex=b1b2b3b4")
        session = s.attach()
        wave = {"queue_id": 0, "unit": 1, "index": 2}

        def read(address, size, **where):
            answer = s.rpc.call("memory.read", session=session, address=hex(address), size=size, **where)
            return base64.b64decode(answer["data"]).hex()
        assert read(0x7f1000000002, 4) == "03040506"
        assert read(0x10, 4, space="lds", wave=wave) == "a1a2a3a4"
        assert read(0x20, 4, space="scratch", wave=wave, lane=7) == "b1b2b3b4"
        s.control("memory param 0 1 2 0x160 hex=c1c2c3c4")
        s.control("memory const 0 0x7f3000000000 hex=d1d2d3d4d5")
        assert read(0x160, 4, space="param", wave=wave) == "c1c2c3c4"
        assert read(0x1, 8, space="constant", wave=wave) == "d2d3d4d5", "as far as the bank goes"
        assert read(0x7d0000000020, 4, space="generic", wave=wave, lane=7) == "b1b2b3b4"
        spin = function(s, "spin")
        sections = subprocess.run(["readelf", "-SW", s.CUBIN], capture_output=True, text=True, check=True).stdout
        at = int(re.search(r" \.text\.spin +PROGBITS +[0-9a-f]+ ([0-9a-f]+)", sections).group(1), 16)
        assert read(number(spin["address"]), 64, space="code", wave=wave) == s.CUBIN.read_bytes()[at:at + 64].hex()
        for params, word in (({"space": "param"}, "wave"), ({"space": "generic", "wave": wave}, "lane"),
                             ({"space": "code", "wave": wave, "lane": 1}, "lane"),
                             ({"space": "param", "wave": wave, "bank": 1}, "bank"), ({"bank": 0}, "bank")):
            error = s.rpc.error("memory.read", session=session, address="0x0", size=4, **params)
            assert error.name == "invalid_params" and word in error.message, (params, error)
        assert s.rpc.error("memory.read", session=session, address="0x0", size=4, space="constant", bank=5,
                           wave=wave).name == "failed"
        ref = "0:1:2"
        run = s.ctl("memory", s.app.pid, "0x160", "4", "--space=param", "--wave", ref, "--json")
        assert base64.b64decode(json.loads(run.stdout)["data"]).hex() == "c1c2c3c4", run
        assert read(host_address(s.app.pid), 4) == b"\x7fELF".hex()
        # Instructions, as they lie in the program's cubin, and no further than the function goes.
        code = bytes.fromhex(read(number(function(s, "spin")["address"]), 1 << 16))
        assert 64 <= len(code) < 1 << 16 and len(code) % 16 == 0 and code in s.CUBIN.read_bytes(), len(code)
        assert s.rpc.error("memory.read", session=session, address="0x10", size=4).name == "failed"
        assert s.rpc.error("memory.read", session=session, address="0x0", size=4, space="lds",
                           wave={**wave, "index": 60}).name == "no_such_wave"
        s.rpc.call("session.detach", session=session)
        assert_untouched(s)


def host_address(pid):
    """Where its own program file begins."""
    return int(pathlib.Path(f"/proc/{pid}/maps").read_text().split("-", 1)[0], 16)


@test
def snapshot_with_registers():
    with scene() as s:
        doc = s.rpc.call("gpu.snapshot", session=s.attach(), registers=True)
        (registers,) = doc["registers"]
        assert registers["wave"]["ref"] == doc["groups"][0]["representative"]
        assert registers["vector"][0]["name"] == "R0"


# -- control and events ---------------------------------------------------------------------------


@test
def suspend_and_resume():
    with scene() as s:
        session = s.attach(control=True)
        assert s.rpc.call("gpu.suspend", session=session, lease_ms=60000)["suspended"] == 1
        assert s.state()["devices"][0]["suspended"]
        # A look does not let them go.
        assert s.rpc.call("gpu.snapshot", session=session)["wave_count"] == 24
        assert s.state()["devices"][0]["suspended"]
        assert_alive(s)
        assert s.rpc.call("gpu.resume", session=session)["resumed"] == 1
        assert not s.state()["devices"][0]["suspended"]
        s.rpc.call("gpu.suspend", session=session, lease_ms=50)
        s.rpc.notification("gpu.resumed")
        assert not s.state()["devices"][0]["suspended"]
        s.rpc.call("gpu.suspend", session=session, lease_ms=60000)
        s.rpc.call("session.detach", session=session)
        assert_untouched(s)


@test
def sessions_and_the_next_debugger_are_of_this_vendor():
    with scene() as s:
        s.attach()
        listed, = s.rpc.call("session.list")["sessions"]
        assert listed["vendor"] == "nvidia", listed
        assert " nvidia " in s.ctl("status").stdout
        s.rpc.call("session.detach", session=listed["session"])
        handed = s.ctl("attach", s.app.pid, "--hand-over")
        assert handed.returncode == 0 and handed.stdout == f"cuda-gdb -p {s.app.pid}\n", handed
        assert_untouched(s)


@test
def exceptions_are_announced():
    for release in ("12.4", "12.9"):
        with scene(release) as s:
            session = s.attach(control=True)
            s.rpc.call("exception.subscribe", session=session, exceptions=["wave_memory_violation"], look_ms=1000)
            s.control("raise 0 1 2 14 errorpc=0x50")
            event = s.rpc.notification("exception.raised")
            assert event["exceptions"] == ["wave_memory_violation"] and event["gpu_id"] == 0, event
            (group,) = event["groups"]
            assert event["waves"] == 1 and group["exception"] == "CUDA_EXCEPTION_14: warp illegal address", event
            assert group["kernel"]["name"] == "spin" and group["frames"][0]["line"], group
            assert number(group["pc"]) == number(function(s, "spin")["address"]) + 0x50, group
            assert {k: group["representative"][k] for k in ("unit", "index")} == {"unit": 1, "index": 2}, group
            wait_until(lambda: not s.state()["devices"][0]["suspended"], "the device runs on")
            assert s.rpc.error("exception.subscribe", session=session, exceptions=["wave_trap"],
                               hold=True).name == "unsupported"
    with scene() as s:
        session = s.attach(control=True)
        # One that no other name fits is told with its warps, too.
        s.rpc.call("exception.subscribe", session=session, exceptions=["wave_fault"], look_ms=1000)
        s.control("raise 0 2 1 9")
        event = s.rpc.notification("exception.raised")
        assert event["exceptions"] == ["wave_fault"], event
        assert [g["exception"] for g in event["groups"]] == ["CUDA_EXCEPTION_9: warp hardware stack overflow"], event


class Stopped:
    """Nothing is heard by the worker until all of it has happened."""

    def __init__(self, s):
        (self.worker,) = s.worker_pids()

    def __enter__(self):
        os.kill(self.worker, signal.SIGSTOP)
        wait_until(lambda: status(self.worker)["State"][0] == "T", "the worker stands")

    def __exit__(self, *_):
        os.kill(self.worker, signal.SIGCONT)


def running(s):
    return not any(d["suspended"] for d in s.state()["devices"])


@test
def stop_is_seen_beside_other_news():
    """One notification for both: before 12.5 no event tells of the stop, and nobody else lets the devices run."""
    for release in ("12.2", "12.4", "12.9"):
        for subscribed in (False, True):
            with scene(release) as s:
                session = s.attach(control=True)
                if subscribed:
                    s.rpc.call("exception.subscribe", session=session, exceptions=["wave_memory_violation"], look_ms=1000)
                with Stopped(s):
                    s.control("event ctx-push")
                    s.control("raise 0 1 2 14 errorpc=0x50")
                if subscribed:
                    assert s.rpc.notification("exception.raised")["groups"][0]["waves"] == 1
                wait_until(lambda: running(s), f"{release}: the devices run on")
                assert_alive(s)


@test
def fault_before_a_look_is_told_after_it():
    """The engine stopped the devices, and a look comes first: it shows the fault and must not let it go."""
    wave = {"queue_id": 0, "unit": 1, "index": 2}
    for release in ("12.4", "12.9", "13.4"):
        for method, params in (("gpu.snapshot", {}), ("wave.registers", {"wave": wave}), ("core.begin", {})):
            with scene(release) as s:
                session = s.attach(control=True)
                s.rpc.call("exception.subscribe", session=session, exceptions=["wave_memory_violation"], look_ms=1000)
                with Stopped(s):
                    s.rpc.send(method, session=session, **params)
                    time.sleep(0.05)  # where the notification is heard first, there is nothing to see
                    s.control("raise 0 1 2 14 errorpc=0x50")
                messages = [s.rpc.read_message() for _ in range(2)]
                (reply,) = [m for m in messages if "id" in m]
                (told,) = [m for m in messages if "id" not in m]
                assert "result" in reply and told["method"] == "exception.raised", messages
                assert told["params"]["groups"][0]["waves"] == 1, told
                wait_until(lambda: running(s), f"{release}, {method}: the devices run on")
                s.rpc.call("session.detach", session=session)
                assert_untouched(s)


@test
def context_of_a_device_that_is_not_counted():
    with scene() as s:
        session = s.attach(control=True)
        s.control("event ctx-create hex=3f000000010000000100000066000000")
        s.control("event ctx-push hex=00000000010000000100000077000000")
        queues = wait_until(lambda: [q for q in [s.rpc.call("gpu.queues", session=session)["queues"]] if len(q) == 2],
                            "the second event is heard")[0]
        assert [(q["queue_id"], q["gpu_id"]) for q in queues] == [(0, 0), (2, 0)], queues
        assert s.rpc.call("gpu.snapshot", session=session)["wave_count"] == 24
        error = s.rpc.error("wave.registers", session=session, wave={"queue_id": 1, "unit": 1, "index": 2})
        assert error.name == "no_such_wave", error
        s.rpc.call("session.detach", session=session)
        assert_untouched(s)


@test
def event_that_makes_no_sense():
    """The thread that caused it waits as for any other, and what is queued behind it counts."""
    with scene() as s:
        session = s.attach(control=True)
        with Stopped(s):
            s.control("event ctx-create hex=40000000010000000100000066000000")
            s.control("event ctx-push hex=00000000010000000100000077000000")
        wait_until(lambda: len(s.rpc.call("gpu.queues", session=session)["queues"]) == 2, "the second event is heard")
        wait_until(lambda: not s.state()["owes_ack"], "the thread runs on")
        s.rpc.call("session.detach", session=session)
        assert_untouched(s)


@test
def context_that_ends_while_its_device_is_suspended():
    """Nobody can name the device any more; it runs again with whatever is asked for next, and when the lease ends."""
    for lease, method in ((60000, "gpu.resume"), (60000, "gpu.suspend"), (500, None)):
        with scene() as s:
            session = s.attach(control=True)
            (context,) = s.state()["contexts"]
            assert s.rpc.call("gpu.suspend", session=session, lease_ms=lease)["suspended"] == 1
            s.control(f"context-destroy {context['handle']}")
            wait_until(lambda: not s.rpc.call("gpu.queues", session=session)["queues"], "the end is heard")
            if method:
                s.rpc.call(method, session=session)
                assert running(s), method
            wait_until(lambda: running(s), f"{method}: the device runs on")
            s.rpc.call("session.detach", session=session)
            assert_untouched(s)


@test
def memory_of_a_bank_lets_the_device_run_on():
    with scene() as s:
        s.control("memory const 0 0x7f3000000000 hex=d1d2d3d4d5")
        session = s.attach()
        s.rpc.call("memory.read", session=session, address="0x1", size=4, space="constant",
                   wave={"queue_id": 0, "unit": 1, "index": 2})
        assert running(s), "before the answer"


@test
def grid_that_the_driver_does_not_know():
    """Its own code runs as such: the warps are shown, without what only the grid tells."""
    for release in RELEASES:
        with scene(release) as s:
            for slot in ("getGridInfo", "getGridInfo120", "getGridInfo55", "getClusterDim", "getClusterDim120"):
                s.control(f"fail {slot} 21")
            doc = json.loads(s.ctl("snapshot", "--json", s.app.pid).stdout)
            assert doc["wave_count"] == 24, (release, doc["missing"])
            assert doc["missing"] == ["device 0: grid 1 is not known to the driver"], (release, doc["missing"])
            assert_untouched(s)


@test
def facts_that_the_driver_keeps_to_itself():
    """No bus, no names, no predicates: of a chip or a slice of one that is not like others."""
    with scene("12.9") as s:
        for slot in ("getDevicePCIBusInfo", "getDeviceName", "getDeviceType", "getSmType", "getNumPredicates",
                     "getNumUniformRegisters", "getNumUniformPredicates"):
            s.control(f"fail {slot} 46")
        run = s.ctl("snapshot", "--json", s.app.pid)
        assert run.returncode == 0, run
        doc = json.loads(run.stdout)
        assert doc["complete"] and doc["wave_count"] == 24, doc["missing"]
        assert [(d["name"], d["arch"], d["pci"]) for d in doc["devices"]] == [("", "", "")] * 2, doc["devices"]
        run = s.ctl("registers", s.app.pid, "0:1:2")
        assert run.returncode == 0 and "R2" in run.stdout and "UR" not in run.stdout, run
        assert_untouched(s)


@test
def code_loaded_again_in_the_same_place_of_the_driver():
    """A module goes, another comes and has its handles: lines are of the new one."""
    with scene() as s:
        session = s.attach()
        lines = set()

        def seen():
            # A real program waits until its module's event was heard, the simulated one does not.
            (group,) = s.rpc.call("gpu.snapshot", session=session)["groups"]
            return group if group["kernel"].get("name") == "spin" else None
        for _ in range(3):
            (module,) = s.state()["modules"]
            group = wait_until(seen, "a kernel with a name")
            lines.add((group["frames"][0].get("function"), group["frames"][0].get("line"), module["handle"]))
            before = number(function(s, "spin")["address"])
            s.control(f"module-unload {module['handle']}")
            s.control(f"module last file={s.directory / s.CUBIN.name}")
            s.control("launch spin grid=8 block=128")
            assert number(function(s, "spin")["address"]) != before
        assert len(lines) == 1 and lines.pop()[:2] == ("spin", 15), lines
        s.rpc.call("session.detach", session=session)


# -- who uses CUDA, and what stands in the way ----------------------------------------------------


@test
def list_and_doctor():
    with scene() as s:
        (process,) = [p for p in s.rpc.call("process.list")["processes"] if p["pid"] == s.app.pid]
        assert process["vendor"] == "nvidia" and process["debuggable"], process
        doctor = s.rpc.call("process.doctor", pid=s.app.pid)
        checks = {c["name"]: c["verdict"] for c in doctor["checks"]}
        assert doctor["ok"] and checks["cuda_driver"] == "pass" and "kfd_device" not in checks, checks
        session = s.attach()
        doctor = s.rpc.call("process.doctor", pid=s.app.pid)
        checks = {c["name"]: (c["verdict"], c["detail"]) for c in doctor["checks"]}
        assert doctor["ok"] and all(checks[name][0] == "pass" and f"session {session} " in checks[name][1]
                                    for name in ("cuda_debugger", "tracer")), checks
        # The worker has the library too, but is nobody's process to debug.
        listed = {p["pid"]: p for p in s.rpc.call("process.list")["processes"]}
        assert listed[s.app.pid]["session"] == session and not set(s.worker_pids()) & set(listed), listed
        s.rpc.call("session.detach", session=session)
        assert_untouched(s)
        say(s, "set cudbgDebuggerInitialized 1")
        checks = {c["name"]: c["verdict"] for c in s.rpc.call("process.doctor", pid=s.app.pid)["checks"]}
        assert checks["cuda_debugger"] == "fail", checks


@contextlib.contextmanager
def python_process(s, code):
    """An interpreter that has loaded libcuda, then does this."""
    head = f"import ctypes, os, time\nctypes.CDLL({str(s.libcuda)!r})\n"
    process = subprocess.Popen([sys.executable, "-c", f"{head}{code}\nprint(flush=True)\ntime.sleep(600)"],
                               stdout=subprocess.PIPE, env={**os.environ, "LD_LIBRARY_PATH": str(s.libraries)})
    try:
        assert process.stdout.readline() == b"\n", process.poll()
        yield process.pid
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


MANY = """
c = ctypes.CDLL(None)
c.mmap.restype = ctypes.c_void_p
c.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
fd = os.open(PATH, os.O_RDONLY)
for i in range(40000):
    assert c.mmap(None, 4096, 1 + i % 2 * 2, 2, fd, 0) != 2 ** 64 - 1"""


@test
def process_with_many_mappings():
    """Frameworks have tens of thousands, of files with long names."""
    if int(pathlib.Path("/proc/sys/vm/max_map_count").read_text()) < 50000:
        raise Skip("vm.max_map_count is below its default")
    with scene(app=None) as s:
        path = s.directory / ("m" * 240)
        path.write_bytes(bytes(4096))
        with python_process(s, MANY.replace("PATH", repr(str(path)))) as pid:
            assert len(pathlib.Path(f"/proc/{pid}/maps").read_bytes()) > 10 << 20
            assert pid in [p["pid"] for p in s.rpc.call("process.list")["processes"]]
            checks = {c["name"]: c["verdict"] for c in s.rpc.call("process.doctor", pid=pid)["checks"]}
            assert checks["cuda_driver"] == "pass", checks
            run = s.ctl("snapshot", pid)
            assert run.returncode == 0, run


@test
def library_of_stubs_beside_the_driver():
    """Attaching takes the copy that is the driver; the doctor speaks of the same."""
    with scene(app=None) as s:
        stubs = s.directory / "libcuda.so"
        # Any library that is not the driver's.
        shutil.copy(re.search(r" (/\S*/libm\S*\.so\S*)", pathlib.Path("/proc/self/maps").read_text()).group(1), stubs)
        with python_process(s, f"ctypes.CDLL({str(stubs)!r})") as pid:
            checks = {c["name"]: (c["verdict"], c["detail"]) for c in s.rpc.call("process.doctor", pid=pid)["checks"]}
            assert checks["cuda_driver"][0] == "pass" and checks["cuda_engine"][0] == "pass", checks
            run = s.ctl("snapshot", pid)
            assert run.returncode == 0, run


@test
def process_without_libcuda():
    with scene(app=None) as s:
        idle = subprocess.Popen(["sleep", "60"])
        try:
            refused(s, "not_debuggable", 5, "has not loaded libcuda", pid=idle.pid)
        finally:
            idle.kill()
            idle.wait()


@test
def libcuda_without_context():
    for release in ("12.4", "13.4"):
        with scene(release, app="listen") as s:
            doc = json.loads(s.ctl("snapshot", "--json", s.app.pid).stdout)
            assert doc["wave_count"] == 0 and doc["queues"] == [] and doc["complete"], doc
            assert_untouched(s)


@test
def session_begins_with_cuinit():
    with scene("13.4", app="listen") as s:
        session = s.attach()
        assert s.rpc.call("runtime.info", session=session)["runtime"]["state"] == "disabled"
        say(s, "init")
        s.rpc.notification("runtime.changed")
        assert s.rpc.call("runtime.info", session=session)["runtime"]["state"] == "enabled"
        assert len(s.rpc.call("gpu.devices", session=session)["devices"]) == 2
        s.rpc.call("session.detach", session=session)
        assert_untouched(s)


@test
def under_mps():
    with scene() as s:
        s.control("mps on")
        before = time.monotonic()
        error = s.rpc.error("session.attach", pid=s.app.pid)
        assert error.name == "not_debuggable" and "MPS" in error.hint, (error, error.data)
        assert time.monotonic() - before < 15
        run = s.ctl("snapshot", s.app.pid)
        assert run.returncode == 5 and run.stdout == "" and error.hint in run.stderr, run
        s.control("mps off")
        assert s.ctl("snapshot", s.app.pid).returncode == 0
        assert_untouched(s)
    with scene(app=None) as s:
        # Where its daemon can be seen, the driver is not asked for four seconds, twice.
        s.directory.joinpath("mps").mkdir()
        s.directory.joinpath("mps/control").touch()
        s.app = start_through(s, f"CUDA_MPS_PIPE_DIRECTORY={s.directory}/mps exec")
        s.control("mps on")
        before = time.monotonic()
        refused(s, "not_debuggable", 5, "it is a client of MPS")
        assert time.monotonic() - before < 8
        (check,) = [c for c in s.rpc.call("process.doctor", pid=s.app.pid)["checks"] if c["name"] == "cuda_mps"]
        assert check["verdict"] == "unknown" and f"{s.directory}/mps/control" in check["detail"], check
        assert_untouched(s)


@test
def device_nodes_that_the_agent_lacks():
    """As a container has them and the agent does not."""
    need_root()
    if os.path.exists("/dev/nvidiactl"):
        raise Skip("this machine has an NVIDIA driver")
    with scene(app=None) as s:
        s.app = start_through(s, "exec unshare --mount sh -c 'mount -t tmpfs none /dev && "
                              "mknod -m 666 /dev/null c 1 3 && touch /dev/nvidiactl && exec \"$@\" 9</dev/nvidiactl' sh")
        refused(s, "not_debuggable", 5, "/dev/nvidiactl, which is not there for the agent", "pass the devices in")
        (check,) = [c for c in s.rpc.call("process.doctor", pid=s.app.pid)["checks"] if c["name"] == "cuda_device"]
        assert check["verdict"] == "fail", check
        assert_alive(s)
    assert not os.path.exists("/dev/nvidiactl")


@test
def driver_without_unified_debugger():
    with scene("8.0") as s:
        refused(s, "not_debuggable", 5, "no unified debugger", "520")
        assert_alive(s)


@test
def already_debugged():
    with scene() as s:
        say(s, "set cudbgDebuggerInitialized 1")
        refused(s, "busy", 6, "another debugger")
        say(s, "set cudbgDebuggerInitialized 0")
        tracer = subprocess.Popen([sys.executable, "-c", "import ctypes, sys, time\n"
                                   "c = ctypes.CDLL(None)\n"
                                   f"assert c.ptrace(0x4206, {s.app.pid}, None, None) == 0\n"
                                   "print(flush=True); time.sleep(60)"], stdout=subprocess.PIPE)
        try:
            tracer.stdout.readline()
            refused(s, "busy", 6, "traced by")
        finally:
            tracer.kill()
            tracer.wait()
        assert s.ctl("snapshot", s.app.pid).returncode == 0
        assert_untouched(s)


@test
def our_own_driver_is_missing():
    with scene() as s:
        s.libcuda.rename(s.libraries / "elsewhere")
        refused(s, "not_debuggable", 5, "libcuda")
        assert_alive(s)


@test
def engine_missing_in_the_target():
    with scene() as s:
        s.libraries.joinpath("libcudadebugger.so.1").unlink()
        refused(s, "not_debuggable", 5, "libcudadebugger")
        assert_alive(s)


@test
def target_dies_during_a_call():
    for slot in ("getDeviceInfo", "getGridInfo120", "suspendDevice", "initialize"):
        with scene() as s:
            s.control(f"kill-target {slot}")
            run = s.ctl("snapshot", s.app.pid)
            # The simulated GPU outlives the process by a moment: what was read may be all (0) or lack a part (8).
            assert run.returncode in ((3, 8) if slot == "initialize" else (0, 3, 8)), (slot, run)
            assert ("complete  yes" in run.stdout) == (run.returncode == 0), (slot, run)
            wait_until(lambda: not s.worker_pids(), "the worker leaves")


@test
def long_budget_ends_before_the_guard_does():
    """Whatever is asked for, a look returns what it has after seven seconds: at ten the worker would be killed."""
    with scene() as s:
        session = s.attach()
        for i in range(24):
            s.control(f"warp 0 {i // 8} {i % 8} pc={16 * i:#x}")
        s.control("delay readCallDepth 310")  # of 24 groups: more than seven seconds, and seen soon after these
        doc = s.rpc.call("gpu.snapshot", session=session, max_stop_ms=60000)
        assert doc["missing"] == ["call stacks: the stop budget was used up"], doc["missing"]
        assert doc["stopped_us"] >= 7_000_000, doc["stopped_us"]
        assert doc["wave_count"] == 24 and not doc["complete"], doc
        assert_alive(s)


@test
def driver_that_hangs_is_given_up():
    with scene() as s:
        session = s.attach()
        s.control("hang getDeviceInfo")
        # Not less: what stops the devices must come to this call before.
        error = s.rpc.error("gpu.snapshot", session=session, max_stop_ms=3000)
        assert error.name in ("session_ended", "timeout"), error
        wait_until(lambda: not s.worker_pids(), "the worker is gone")
        assert_untouched(s)


@test
def processes_of_others():
    need_root()
    with scene(app_user=USER) as s:
        assert s.ctl("snapshot", s.app.pid).returncode == 0
        session = s.attach()
        (worker,) = s.worker_pids()
        assert status(worker)["Uid"].split()[0] == str(USER), status(worker)["Uid"]
        s.rpc.call("session.detach", session=session)
        assert_untouched(s)


@test
def target_in_other_namespaces():
    need_root()
    with scene(app=None) as s:
        s.app = start_unshared(s, "--mount")
        assert s.ctl("snapshot", s.app.pid).returncode == 0
        assert_untouched(s)
    with scene(app=None) as s:
        # The process that is debugged is a child of unshare(1), and pid 1 of its own namespace.
        app = start_unshared(s, "--pid", "--fork", "--kill-child")
        (pid,) = children(app.pid)
        doc = json.loads(s.ctl("snapshot", "--json", pid).stdout)
        assert doc["complete"] and doc["wave_count"] == 24 and doc["process"]["pid"] == pid, doc
        assert doc["process"]["ns_pid"] == 1, doc["process"]
        wait_until(lambda: status(pid)["TracerPid"] == "0" and not s.worker_pids(), "the worker leaves")
        assert app.popen.poll() is None
        os.kill(pid, signal.SIGKILL)  # unshare(1) itself does not listen
    with scene(app=None) as s:
        s.app = start_unshared(s, "--net")
        refused(s, "not_debuggable", 5, "network namespace")
        assert_alive(s)


def start_through(s, words):
    """The program, executed by a line of shell."""
    program = s.directory / "program"
    program.write_text(f"#!/bin/sh\n{words} {BIN}/gpu-agent-cuda-simapp \"$@\"\n")
    program.chmod(0o755)
    return s.start_app(s.APP, program=program)


def start_unshared(s, *flags):
    """The program in namespaces of its own; unshare(1) executes it."""
    return start_through(s, f"exec unshare {' '.join(flags)}")


# -- who holds what -------------------------------------------------------------------------------


def maps_vendor(pid):
    return any(name in pathlib.Path(f"/proc/{pid}/maps").read_text() for name in ("libcuda.so", "libcudadebugger"))


@test
def vendor_code_is_in_the_worker_alone():
    with scene() as s:
        s.attach()
        (worker,) = s.worker_pids()
        assert maps_vendor(worker)
        assert not maps_vendor(s.front_pid()) and not maps_vendor(s.agentd.pid)
        assert status(worker)["NoNewPrivs"] == "1" and status(worker)["Seccomp"] == "2"
        assert int(status(worker)["CapEff"], 16) & 1 << 27 == 0, "CAP_MKNOD"
        assert status(worker)["TracerPid"] == "0"
        assert status(s.app.pid)["TracerPid"] == "0", "no thread is held"
        # An inspect worker reads, and loads nothing.
        s.rpc.call("process.doctor", pid=s.app.pid)
        assert all(not maps_vendor(p) for p in s.worker_pids() if p != worker)
    assert not os.path.exists("/dev/nvidiactl")


@test
def worker_does_not_have_the_environment_of_a_shell():
    """What somebody has set for programs would hide devices, or choose another engine, from here."""
    shell = {"CUDA_VISIBLE_DEVICES": "", "CUDBG_USE_LEGACY_DEBUGGER": "1", "CUDA_MPS_PIPE_DIRECTORY": "/nowhere",
             "NVLOG_CONFIG_FILE": "/nowhere"}
    kept = {"TMPDIR": "/tmp", "HOME": "/nowhere", "OF_A_PRELOADED_EMULATOR": "1"}
    for user_mode in (False, True):
        with scene(user_mode=user_mode, start_agent=False) as s:
            s.start_agentd(user_mode=user_mode, env={**shell, **kept})
            s.attach()
            (worker,) = s.worker_pids()
            words = pathlib.Path(f"/proc/{worker}/environ").read_text().split("\0")
            found = dict(w.split("=", 1) for w in words if w)
            assert not set(found) & set(shell) and kept.items() <= found.items(), found
            assert found["LD_LIBRARY_PATH"] == str(s.libraries), found


@test
def driver_makes_no_device_file():
    """On a machine without the kernel module, initialize() as root would make /dev/nvidiactl and leave it there."""
    need_root()
    for user_mode in (False, True):
        with scene(user_mode=user_mode) as s:
            made = s.directory / "nvidiactl"
            with open(s.libraries / "cudasim.conf", "a", encoding="ascii") as f:
                f.write(f"mknod {made}\n")
            assert s.ctl("snapshot", s.app.pid).returncode == 0
            assert not made.exists()
            assert_untouched(s)


# -- kill -9 --------------------------------------------------------------------------------------


def attached(s):
    s.session = s.attach(control=True)


def looked(s):
    attached(s)
    s.rpc.call("gpu.snapshot", session=s.session)


def suspended(s):
    attached(s)
    s.rpc.call("gpu.suspend", session=s.session, lease_ms=60000)


def looking(s):
    attached(s)
    s.control("hang getDeviceInfo")
    s.rpc.send("gpu.snapshot", session=s.session)
    wait_until(lambda: s.state()["devices"][0]["suspended"], "the devices stop")


def looking_at_registers(s):
    attached(s)
    s.control("hang readRegisterRange60")
    s.rpc.send("core.begin", session=s.session)
    wait_until(lambda: s.state()["devices"][0]["suspended"], "the devices stop")


def of_threads(s, name):
    """That file of each thread, of those that do not end meanwhile."""
    for thread in pathlib.Path(f"/proc/{s.app.pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            yield (thread / name).read_text()


def is_traced(s):
    return any("TracerPid:\t0\n" not in text for text in of_threads(s, "status"))


def calling(s):
    """A thread of the program is in cudbgApiAttach() for the debugger."""
    s.control("attach 0 delay=600000")
    s.rpc.send("session.attach", pid=s.app.pid)
    wait_until(lambda: s.state()["engagements"], "the driver was called")
    assert is_traced(s), "a thread is borrowed"


def detaching(slot):
    def step(s):
        attached(s)
        s.control(f"hang {slot}")
        s.rpc.send("session.detach", session=s.session)
        wait_until(lambda: get(s, "cudbgUseExternalDebugger") == 0, "cudbgApiDetach was called")
    step.__name__ = f"out_{slot}"
    return step


def of_13_4(step):
    """Of a driver that is asked through a descriptor."""
    def newer(s):
        step(s)
    newer.release = "13.4"
    newer.__name__ = f"{step.__name__}_of_13_4"
    return newer


def attaching(slot):
    def step(s):
        s.control(f"hang {slot}")
        s.rpc.send("session.attach", pid=s.app.pid)
        wait_until(s.worker_pids, "a worker")
        wait_until(lambda: get(s, "cudbgUseExternalDebugger") == 1, "the engine runs")
    step.__name__ = f"in_{slot}"
    return step


STEPS = (attached, looked, suspended, looking, looking_at_registers, calling, attaching("initialize"),
         attaching("getNextEvent"), detaching("requestCleanupOnDetach"), detaching("getNextEvent"),
         detaching("finalize"), of_13_4(suspended), of_13_4(attaching("initialize")),
         of_13_4(detaching("requestCleanupOnDetach")))


def has_engine(s):
    return "cuda-engine\n" in of_threads(s, "comm")


def kill_at(step, victim):
    with scene(getattr(step, "release", "12.4")) as s:
        step(s)
        pid = {"worker": s.worker_pids()[0], "front": s.front_pid(), "spawn": s.agentd.pid}[victim]
        os.kill(pid, signal.SIGKILL)
        if step is calling:
            time.sleep(0.5)  # what undoes finds the call under way
            s.control("attach 0")
            wait_until(lambda: has_engine(s), "the call goes on and does what it was made for")
        elif victim != "spawn":  # without spawn, its heir ends a worker that hangs on
            s.control("heal")
        try:
            assert_untouched(s)
        except Exception:
            print(f"  {victim} killed when {step.__name__}")
            raise


for victim_ in ("worker", "front", "spawn"):
    for step_ in STEPS:
        def case(step=step_, victim=victim_):
            kill_at(step, victim)
        case.__name__ = f"{victim_}_killed_{step_.__name__}"
        test(case)


def given_up(s):
    """The client's time ends when the driver has been asked for its engine, and before that is there."""
    s.control("attach 0 delay=600000")
    for timeout in (1000, 4000, 16000):
        error = s.rpc.error("session.attach", pid=s.app.pid, timeout_ms=timeout)
        assert error.name in ("timeout", "session_ended", "busy"), error
        wait_until(lambda: s.state()["engagements"] or not s.worker_pids(), "the worker is gone")
        if s.state()["engagements"]:
            return
    raise AssertionError("the driver was never asked")


@test
def engine_that_comes_after_all_the_same():
    """Nobody is killed; the driver takes longer than the client wants to wait, then the process counts as debugged."""
    for release in ("12.4", "13.4"):
        with scene(release) as s:
            given_up(s)
            s.control("attach 0")
            wait_until(lambda: has_engine(s), "the driver does what it was asked for")
            assert_untouched(s)
            wait_until(lambda: s.ctl("snapshot", s.app.pid).returncode == 0, "the next session")
            assert_untouched(s)


@test
def killed_altogether_the_next_start_undoes():
    for step in (suspended, attaching("initialize")):
        with scene() as s:
            step(s)
            kill_agent(s.agentd.pid)
            assert get(s, "cudbgUseExternalDebugger") == 1
            s.control("heal")
            s.start_agentd(user_mode=False)
            assert_untouched(s)
            assert s.ctl("snapshot", s.app.pid).returncode == 0
            assert not list(s.directory.glob("*.undo/*")), "no record stays"


@test
def worker_killed_at_any_moment():
    """The steps that are too short to aim at."""
    with scene() as s:
        for delay in range(0, 24, 2):
            run = subprocess.Popen([BIN / "gpu-agentctl", "snapshot", str(s.app.pid)], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, env={**os.environ, "GPU_AGENT_SOCKET": str(s.socket)})
            wait_until(lambda: s.worker_pids() or run.poll() is not None, "a worker")
            time.sleep(delay / 1000)
            for pid in s.worker_pids():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            run.wait(60)
            assert_untouched(s)


if __name__ == "__main__":
    main(__file__)
