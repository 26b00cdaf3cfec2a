#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""CUDA processes on simulated GPUs: the same verbs, the same documents, as on AMD."""
import base64
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from harness import status, wait_until
from cudascene import assert_alive, assert_untouched, scene

RELEASES = ("11.8", "12.2", "12.4", "12.9", "13.1", "13.4")
DIVERGE = "_Z7divergeIfEvPT_i"


def function(s, name):
    """Where a function was loaded."""
    return next(f for m in s.state()["modules"] for f in m["functions"] if f["name"] == name)


def number(value):
    return int(value, 16) if isinstance(value, str) else value


# -- what a snapshot says -------------------------------------------------------------------------


def test_snapshot_says_the_same_in_every_release():
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


def test_groups_are_what_was_planted():
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


def test_some_warps_are_listed_when_asked_for():
    """A page of those of some groups, or one by its name; a warp without a grid has a name, too."""
    with scene() as s:
        s.control("warp 0 1 2 pc=0xc0")
        s.control("warp 0 2 0 pc=0x10")
        session = s.attach()

        def waves(**select):
            return s.rpc.call("gpu.snapshot", session=session, waves=True, select=select)["waves"]

        whole = s.rpc.call("gpu.snapshot", session=session, waves=True)
        assert sorted(g["waves"] for g in whole["groups"])[:2] == [1, 1], whole["groups"]
        for groups, first, most in (([0], 0, 99), ([0], 3, 4), ([1, 2], 1, 1), ([2, 0], 5, 64), ([0], 99, 1), ([9], 0, 9)):
            want = [w for w in whole["waves"] if w["group"] in groups]
            assert waves(groups=groups, first=first, max=most) == want[first:first + most], (groups, first, most)
        for w in whole["waves"][::7]:
            lasting = {k: w["ref"][k] for k in ("queue_id", "dispatch", "workgroup", "wave_in_group")}
            position = {k: w["ref"][k] for k in ("queue_id", "unit", "index")}
            for name in (w["ref"], lasting, position, {**lasting, "unit": 99, "index": 99}):
                assert waves(groups=[w["group"]], wave=name) == [w] and waves(groups=[w["group"] + 1], wave=name) == [], name
                got = s.rpc.call("wave.registers", session=session, wave=name, banks=["special"])["registers"]["wave"]
                assert got["ref"] == w["ref"], (name, got)
            for name in ({**position, "index": 63}, {**position, "queue_id": 77}, {**lasting, "dispatch": 999},
                         {**position, "workgroup": [99]}):
                assert waves(groups=[0, 1, 2], wave=name) == [], name
                assert s.rpc.error("wave.registers", session=session, wave=name).name == "no_such_wave", name
        s.rpc.call("session.detach", session=session)
        assert_untouched(s)


def test_a_warp_of_a_grid_that_is_not_known_has_a_name():
    with scene(app="init; context 0; context 1; module @CUBIN@; gpu launch spin grid=8 block=128; listen") as s:
        session = s.attach()
        for slot in ("getGridInfo", "getGridInfo120", "getGridInfo55", "getClusterDim", "getClusterDim120"):
            s.control(f"fail {slot} 21")
        w = s.rpc.call("gpu.snapshot", session=session, waves=True)["waves"][-1]
        got = s.rpc.call("wave.registers", session=session, wave=w["ref"], banks=["special"])["registers"]["wave"]
        assert got["ref"] == w["ref"], (got, w)


def test_exceptions_lead_and_are_named():
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
        for words in (r"illegal address \(CUDA_EXCEPTION_14\)", r"assert \(CUDA_EXCEPTION_12\)"):
            line = rf"^FAULT  warp {words}: 1 warp of spin\(arg0=0x0, arg1=0x0\), spin.cu:\d+, .*GPU 0, context 0$"
            assert re.search(line, text, re.M), text
        # Whose fault the first one is: the lane, and its thread in the block.
        assert re.match(r"FAULT  warp .*, lane \d+, thread \(\d+,\d+,\d+\), GPU 0", text), text


def test_lane_exceptions_separate_groups():
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


def lanes_of(text):
    """Rows of gpu-agentctl lanes without the part: lane, thread, active, pc, exception."""
    rows = re.findall(r"^ *(\d+)  +(\d+,\d+,\d+)  +(yes|no) +(?:\d+ +)?0x([0-9a-f]+) *(.*)$", text, re.M)
    return {int(lane): (thread, active, int(pc, 16), exception) for lane, thread, active, pc, exception in rows}


def test_lanes_are_shown_one_by_one(tmp_path):
    """Live and from the core: who is active, where each is, and who has raised the exception."""
    with scene("12.4") as s:
        s.control("warp 0 1 2 active=0xf0 pc=0x50 idle=0x20")
        s.control("raise 0 1 2 1 lanes=0x20")
        session = s.attach()
        base = number(function(s, "spin")["address"])
        core = tmp_path / "core"
        pages = [s.ctl("lanes", s.app.pid, "0:1:2").stdout]
        assert s.ctl("dump", s.app.pid, "-o", core).returncode == 0
        pages.append(s.ctl("lanes", "--core", core, "0:1:2").stdout)
        for page in pages:
            lanes = lanes_of(page)
            assert len(lanes) == 32, page
            for lane, (thread, active, pc, exception) in lanes.items():
                inside = 4 <= lane < 8
                assert active == ("yes" if inside else "no") and pc == base + (0x50 if inside else 0x20), page
                assert thread.endswith(",0,0") and int(thread.split(",")[0]) % 32 == lane, page
                assert ("CUDA_EXCEPTION_1: lane illegal address" == exception) == (lane == 5), page
            assert "4 of 32 lanes active; 2 parts" in page, page
        s.rpc.call("session.detach", session=session)


def test_each_lane_may_be_somewhere_else():
    with scene("12.4") as s:
        s.control("warp 0 1 2 active=0xffffffff pc=0x10 apart=16")
        base = number(function(s, "spin")["address"])
        page = s.ctl("lanes", s.app.pid, "0:1:2").stdout
        assert {lane: pc for lane, (_, _, pc, _) in lanes_of(page).items()} == {
            lane: base + 0x10 + 16 * lane for lane in range(32)}, page
        assert "32 of 32 lanes active; 32 parts" in page, page


def test_full_gpu_in_time():
    app = "init; context 0; module @CUBIN@; gpu launch spin grid=264 block=1024 spread=5; listen"
    with scene(sim="devices 1 sms=132 warps=64", app=app) as s:
        s.ctl("snapshot", s.app.pid)
        took = []
        for _ in range(5):
            start = time.monotonic()
            run = s.ctl("snapshot", "--json", s.app.pid)
            took.append(time.monotonic() - start)
            doc = json.loads(run.stdout)
            assert run.returncode == 0 and doc["wave_count"] == 8448 and doc["complete"], (run.stdout[:400], run.stderr)
        print(f"  attach, snapshot of 8448 warps, detach: {min(took) * 1000:.0f} to {max(took) * 1000:.0f} ms, "
              f"stopped {doc['stopped_us']} us")
        assert_untouched(s)


def test_call_stacks_are_shown():
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


def test_registers_are_what_was_planted():
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


def test_registers_that_the_driver_does_not_give():
    """From 13.2 on it says how many it gave."""
    with scene("13.4") as s:
        session = s.attach()
        wave = {"queue_id": 0, "unit": 1, "index": 2}
        whole = s.rpc.call("wave.registers", session=session, wave=wave)["registers"]
        assert whole["vector_count"] > 4 and "missing" not in whole, whole["vector_count"]
        s.control("few-registers 4")
        got = s.rpc.call("wave.registers", session=session, wave=wave)["registers"]
        words = "registers from R4 on, of lanes 0xffffffff: the driver does not give them"
        assert got["missing"] == [words] and got["vector_count"] == whole["vector_count"], got["missing"]
        assert got["vector"] == whole["vector"][:4] + [v for v in whole["vector"] if v["name"][0] == "P"], got["vector"]
        assert words.replace("lanes", "threads") in s.ctl("registers", s.app.pid, "0:1:2").stdout
        doc = s.rpc.call("gpu.snapshot", session=session, registers=True)
        assert doc["missing"] == [words] and not doc["complete"] and len(doc["registers"]) == 1, doc["missing"]
        # What the kernel uses is not known: then these are all.
        s.control("fail readWarpResources 46")
        got = s.rpc.call("wave.registers", session=session, wave=wave)["registers"]
        assert got["vector_count"] == 4 and "missing" not in got, got
        s.control("fail readRegisterRange 46")
        doc = s.rpc.call("gpu.snapshot", session=session, registers=True)
        assert doc["missing"] == ["registers of a wave: the driver does not give them"], doc["missing"]


def test_memory_of_every_space():
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


def test_snapshot_with_registers():
    with scene() as s:
        doc = s.rpc.call("gpu.snapshot", session=s.attach(), registers=True)
        (registers,) = doc["registers"]
        assert registers["wave"]["ref"] == doc["groups"][0]["representative"]
        assert registers["vector"][0]["name"] == "R0"


# -- control and events ---------------------------------------------------------------------------


def test_suspend_and_resume():
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


def test_sessions_and_the_next_debugger_are_of_this_vendor():
    with scene() as s:
        s.attach()
        listed, = s.rpc.call("session.list")["sessions"]
        assert listed["vendor"] == "nvidia", listed
        assert " nvidia " in s.ctl("status").stdout
        s.rpc.call("session.detach", session=listed["session"])
        handed = s.ctl("attach", s.app.pid, "--hand-over")
        assert handed.returncode == 0 and handed.stdout == f"cuda-gdb -p {s.app.pid}\n", handed
        assert_untouched(s)


def test_exceptions_are_announced():
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


def test_stop_is_seen_beside_other_news():
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


def test_fault_before_a_look_is_told_after_it():
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


def test_context_of_a_device_that_is_not_counted():
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


def test_event_that_makes_no_sense():
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


def test_context_that_ends_while_its_device_is_suspended():
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


def test_memory_of_a_bank_lets_the_device_run_on():
    with scene() as s:
        s.control("memory const 0 0x7f3000000000 hex=d1d2d3d4d5")
        session = s.attach()
        s.rpc.call("memory.read", session=session, address="0x1", size=4, space="constant",
                   wave={"queue_id": 0, "unit": 1, "index": 2})
        assert running(s), "before the answer"


def test_grid_that_the_driver_does_not_know():
    """Its own code runs as such: the warps are shown, without what only the grid tells."""
    for release in RELEASES:
        with scene(release) as s:
            for slot in ("getGridInfo", "getGridInfo120", "getGridInfo55", "getClusterDim", "getClusterDim120"):
                s.control(f"fail {slot} 21")
            doc = json.loads(s.ctl("snapshot", "--json", s.app.pid).stdout)
            assert doc["wave_count"] == 24, (release, doc["missing"])
            assert doc["missing"] == ["device 0: grid 1 is not known to the driver"], (release, doc["missing"])
            assert_untouched(s)


def test_facts_that_the_driver_keeps_to_itself():
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


def test_code_loaded_again_in_the_same_place_of_the_driver():
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


def test_instructions_are_nvdisasms_or_words():
    """One line says why there are words; the program is looked for in PATH."""
    with scene() as s:
        start = number(function(s, "spin")["address"])
        ask = ("disassemble", s.app.pid, f"{start:#x}", "--count=3", "--before=0")
        run = s.ctl(*ask)
        assert run.returncode == 0 and run.stdout.count(".quad 0x") == 3, run
        assert run.stderr.count("\n") == 1 and "nvdisasm of NVIDIA's toolkit" in run.stderr, run
        program, before = s.directory / "nvdisasm", os.environ["PATH"]
        os.environ["PATH"] = f"{s.directory}:{before}"
        try:
            for script, said, text in (('echo "/*${4#0x}*/ MOV R1, R2 ;"', "", "MOV R1, R2"),
                                       ("echo 'no such device' >&2; exit 1", f"{program} fails: no such device", None)):
                program.write_text(f"#!/bin/sh\n{script}\n")
                program.chmod(0o755)
                run = s.ctl(*ask)
                lines = [line[19:] for line in run.stdout.splitlines() if line[3:5] == "0x"]
                assert run.returncode == 0 and len(lines) == 3 and said in run.stderr, run
                assert bool(run.stderr) == bool(said) and (lines[0] == text or not text), (lines, run.stderr)
                assert all(line.startswith(".quad 0x") for line in lines[bool(text):]), lines
                doc = json.loads(s.ctl(*ask, "-j").stdout)
                assert doc.get("source") == (str(program) if text else None) and ("note" in doc) == bool(said), doc
                assert [i["decoded"] for i in doc["instructions"]] == [bool(text), False, False], doc
        finally:
            os.environ["PATH"] = before
        assert_alive(s)
