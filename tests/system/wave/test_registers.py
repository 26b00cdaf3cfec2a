#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One wave in full: registers, LDS, private memory.  Comes back as planted, stops little, writes nothing."""
import base64
import json
import os
import signal
import struct
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest
from corereader import CoreRpc
from harness import LONG_STOP, ROOT, STOP_MS, Scene, wait_until, unsanitized

PC = 0x7F0000001000
APP = "runtime ttmp; queues 1; spin"
# name: dies, lanes of a planted wave, has accumulation registers, flat_scratch is architected
GENERATIONS = {"gfx90a": (1, 64, True, False), "gfx942": (8, 64, True, True), "gfx1030": (1, 32, False, False),
               "gfx1100": (1, 32, False, True), "gfx1201": (1, 32, False, True), "gfx1250": (1, 32, False, True)}


def plant(s, text, queue=0):
    s.control(f"waves {s.app.pid} {queue} {text}")


def registers(s, wave, **params):
    return s.rpc.call("wave.registers", session=s.session, wave=wave, max_stop_ms=STOP_MS, **params)["registers"]


def snapshot(s, **params):
    return s.rpc.call("gpu.snapshot", session=s.session, **{"max_stop_ms": STOP_MS, **params})


def by_name(bank):
    return {r["name"]: int(r["value"], 16) for r in bank}


def lanes_of(bank):
    return {r["name"]: [int(v, 16) for v in r["lanes"]] for r in bank}


def name(index, unit=0, queue=0):
    return {"queue_id": queue, "unit": unit, "index": index}


def read(s, space, address, size, wave, **params):
    got = s.rpc.call("memory.read", session=s.session, space=space, address=hex(address), size=size, wave=wave,
                     max_stop_ms=STOP_MS, **params)
    data = base64.b64decode(got["data"])
    assert len(data) == got["size"]
    return data


def runs_on(s):
    """No queue is suspended, and all take packets once no planted waves keep them from that."""
    state = s.target_state()
    assert all(q["running"] and not q["suspended"] for q in state["queues"]), state
    for q in state["queues"]:
        plant(s, "clear", q["id"])
    before = {q["id"]: q["packets"] for q in state["queues"]}
    wait_until(lambda: all(q["packets"] > before[q["id"]] for q in s.target_state()["queues"]), "queues run")


class Process:
    """The program's memory, written to as its runtime would have done."""

    def __init__(self, s):
        self.pid = s.app.pid

    def write(self, address, data):
        with open(f"/proc/{self.pid}/mem", "r+b", buffering=0) as mem:
            mem.seek(address)
            assert mem.write(data) == len(data)

    def read(self, address, size):
        with open(f"/proc/{self.pid}/mem", "rb", buffering=0) as mem:
            mem.seek(address)
            return mem.read(size)


@pytest.mark.parametrize("gfx", GENERATIONS)
def test_planted_registers(gfx):
    dies, lanes, has_acc, _ = GENERATIONS[gfx]
    die = dies - 1
    acc = " acc=8 a3.7=0xacc0ffee" if has_acc else ""
    with Scene(app=APP, gpus=gfx) as s:
        plant(s, f"breakpoint 8 {PC:#x} group=4 xcc={die} workgroup=5,6,7 packet=9 vgprs=16 exec=0xf0f0 "
                 f"vcc=0x1234 m0=0x77 s3=0xdeadbeef s40=0x40404040 v2=0x11111111 v2.5=0x22222222 "
                 f"v15.31=0x31{acc}")
        s.session = s.attach()
        got = registers(s, name(6, die))
        special, scalar, vector = by_name(got["special"]), by_name(got["scalar"]), lanes_of(got["vector"])
        wave = got["wave"]
        assert wave["ref"]["index"] == 6 and wave["ref"]["unit"] == die and wave["width"] == lanes, wave
        assert wave["ref"]["workgroup"] == [6, 6, 7] and wave["ref"]["wave_in_group"] == 2, wave
        assert wave["reasons"] == ["breakpoint"], wave
        assert special["pc"] == int(wave["pc"], 16) == PC + 4, special
        assert special["exec"] == int(wave["exec"], 16) == 0xF0F0 and special["vcc"] == 0x1234, special
        assert special["m0"] == 0x77 and special["mode"] & 0x3FF == 0x3F0, special
        assert [r["name"] for r in got["special"]][:4] == ["pc", "exec", "vcc", "m0"], got["special"]
        assert scalar["s3"] == 0xDEADBEEF and scalar["s40"] == 0x40404040, scalar
        assert list(vector) == [f"v{i}" for i in range(16)] and got["vector_count"] == 16, list(vector)
        assert all(len(v) == lanes for v in vector.values())
        assert vector["v2"][5] == 0x22222222 and set(vector["v2"]) == {0x11111111, 0x22222222}, vector["v2"]
        assert vector["v15"][31] == 0x31 and len(set(vector["v15"])) == lanes, vector["v15"]
        assert [r["name"] for r in got["trap"]] == [f"ttmp{i}" for i in (4, 5, 6, 7, 8, 9, 10, 11, 13)]
        if has_acc:
            assert got["accumulator_count"] == 8 and lanes_of(got["accumulator"])["a3"][7] == 0xACC0FFEE
        else:
            assert got["accumulator_count"] == 0 and got["accumulator"] == []
        # Other waves hold other values where nothing was planted.
        assert lanes_of(registers(s, name(5, die))["vector"])["v0"] != vector["v0"]
        runs_on(s)


def test_banks_and_ranges():
    """Only what was asked for; ranges behind the end are empty."""
    with Scene(app=APP, gpus="gfx90a") as s:
        plant(s, f"halted 4 {PC:#x} vgprs=16 acc=8")
        s.session = s.attach()
        full = registers(s, name(0))
        got = registers(s, name(0), banks=["vector", "accumulator"], first=6, count=4)
        assert [r["name"] for r in got["vector"]] == ["v6", "v7", "v8", "v9"]
        assert [r["name"] for r in got["accumulator"]] == ["a6", "a7"]
        assert got["vector"] == full["vector"][6:10] and got["special"] == got["scalar"] == got["trap"] == []
        assert got["vector_count"] == 16 and got["accumulator_count"] == 8
        got = registers(s, name(0), banks=["vector"], first=4294967295, count=4294967295)
        assert got["vector"] == [], got
        assert registers(s, name(0), banks=["special"])["special"] == full["special"]
        runs_on(s)


def test_work_items_follow_the_packet():
    """64 work-items in groups of 64: one wave of 64 lanes; the second wave of a group has none."""
    with Scene(app=APP, gpus="gfx90a") as s:
        plant(s, f"halted 2 {PC:#x} group=2 exec=0xff")
        s.session = s.attach()
        got = registers(s, name(0), banks=["special"], work_items=True)
        assert got["packet"]["workgroup_size"] == [64, 1, 1] and got["packet"]["grid_size"] == [64, 1, 1], got
        assert got["work_items"] == [{"lane": i, "in_group": [i, 0, 0], "global": [i, 0, 0]} for i in range(64)]
        assert registers(s, name(1), banks=["special"], work_items=True)["work_items"] == []
        assert "work_items" not in registers(s, name(0), banks=["special"])
        runs_on(s)


def test_waves_that_are_not_there():
    """Each wrong name is told apart, and costs nothing."""
    with Scene(app=APP, gpus="gfx942") as s:
        plant(s, f"halted 8 {PC:#x} group=4 xcc=1 workgroup=3,0,0")
        s.session = s.attach()
        rows = (({"queue_id": 99, "index": 0}, "no_such_wave", "no queue 99"),
                (name(8, 1), "no_such_wave", "only 8 waves"), (name(0), "no_such_wave", "only 0 waves"),
                (name(0, 8), "no_such_wave", "no die 8"),
                ({"queue_id": 0, "unit": 1}, "invalid_params", "needs index"),
                ({**name(0, 1), "workgroup": [9, 0, 0]}, "no_such_wave", "another one"),
                ({"queue_id": 0, "unit": 1, "dispatch": 4096, "workgroup": [3, 0, 0], "wave_in_group": 0},
                 "no_such_wave", "not there"))
        for wave, code, text in rows:
            error = s.rpc.error("wave.registers", session=s.session, wave=wave, max_stop_ms=STOP_MS)
            assert error.name == code and text in error.message, (wave, error)
        runs_on(s)


def test_a_wave_is_found_where_it_moved_to():
    """What it works on names it, wherever it is saved; the position in the name is not looked at then."""
    with Scene(app=APP, gpus="gfx1100") as s:
        plant(s, f"stopped 8 {PC:#x} group=4 workgroup=5,0,0 s3=1")
        s.session = s.attach()
        group = snapshot(s, waves=True)
        ref = next(w["ref"] for w in group["waves"] if w["ref"]["workgroup"] == [6, 0, 0] and
                   w["ref"]["wave_in_group"] == 2)
        assert ref["index"] == 6 and registers(s, ref)["wave"]["ref"] == ref
        plant(s, f"stopped 12 {PC:#x} group=4 workgroup=4,0,0 s3=2")
        got = registers(s, ref)
        assert got["wave"]["ref"]["index"] == 10 and by_name(got["scalar"])["s3"] == 2, got["wave"]
        # The representative of a group is a name.
        doc = snapshot(s)
        representative = doc["groups"][0]["representative"]
        assert registers(s, representative)["wave"]["ref"] == representative
        runs_on(s)


def test_a_wave_is_found_on_whatever_die_it_is():
    """What it works on names it without the die, and with another one."""
    with Scene(app=APP, gpus="gfx942") as s:
        plant(s, f"stopped 8 {PC:#x} group=4 xcc=1 workgroup=5,0,0 s3=7")
        s.session = s.attach()
        ref = snapshot(s, waves=True)["waves"][5]["ref"]
        assert ref["unit"] == 1, ref
        lasting = {k: ref[k] for k in ("queue_id", "dispatch", "workgroup", "wave_in_group")}
        for wave in (lasting, {**lasting, "unit": 0}, {**lasting, "unit": 5, "index": 99}):
            got = registers(s, wave)
            assert got["wave"]["ref"] == ref and by_name(got["scalar"])["s3"] == 7, (wave, got["wave"])
        error = s.rpc.error("wave.registers", session=s.session, wave={**lasting, "wave_in_group": 4}, max_stop_ms=STOP_MS)
        assert error.name == "no_such_wave" and "queue 0: wave 4 of workgroup" in error.message, error
        runs_on(s)


def test_lds_of_the_workgroup():
    """All waves of a group see the leader's bytes, by offset and by flat address."""
    with Scene(app=APP, gpus="gfx942") as s:
        plant(s, f"halted 8 {PC:#x} group=4 xcc=3 lds=1024 lds0=0x03020100 lds9=0xcafef00d")
        s.session = s.attach()
        first = read(s, "lds", 0, 1024, name(4, 3))
        assert first[:4] == bytes(range(4)) and first[36:40] == struct.pack("<I", 0xCAFEF00D)
        assert read(s, "lds", 0, 1024, name(7, 3)) == first
        assert read(s, "lds", 0, 1024, name(0, 3)) != first
        assert read(s, "lds", 37, 2, name(6, 3)) == first[37:39]
        assert read(s, "lds", 1000, 4096, name(6, 3)) == first[1000:]
        device = s.rpc.call("gpu.devices", session=s.session)["devices"][0]
        assert read(s, "lds", int(device["lds_base"], 16) + 36, 4, name(5, 3)) == first[36:40]
        error = s.rpc.error("memory.read", session=s.session, space="lds", address="0x400", size=4, wave=name(4, 3),
                            max_stop_ms=STOP_MS)
        assert "0x400 bytes of lds" in error.message, error
        runs_on(s)


def prepare_scratch(s, gfx, per_wave_units):
    """Let the runtime's queue structure name the free middle of the save area as scratch."""
    unit = 1024 if GENERATIONS[gfx][1] == 64 or gfx == "gfx1030" else 256
    queue = s.rpc.call("gpu.queues", session=s.session)["queues"][0]
    base = int(queue["save_area"], 16) + queue["save_area_bytes"] - (1 << 20)
    pointer = int(queue["read_pointer"], 16)
    memory = Process(s)
    memory.write(pointer + 12, struct.pack("<I", 96 | per_wave_units << 12))
    memory.write(pointer + 32, struct.pack("<QQ", base, 0))
    return memory, base, per_wave_units * unit


@pytest.mark.parametrize("gfx", GENERATIONS)
def test_private_memory(gfx):
    dies, lanes, _, architected = GENERATIONS[gfx]
    with Scene(app=APP, gpus=gfx) as s:
        s.session = s.attach()
        memory, base, size = prepare_scratch(s, gfx, 32)
        flat = f" flat={base:#x}" if architected else ""
        plant(s, f"halted 2 {PC:#x} group=2 xcc=0 scratch=1{flat}")
        words = [struct.pack("<I", lane << 16 | i) for i in range(size // lanes // 4) for lane in range(lanes)]
        memory.write(base, b"".join(words))
        for lane in (0, 5, lanes - 1):
            want = b"".join(struct.pack("<I", lane << 16 | i) for i in range(size // lanes // 4))
            got = read(s, "scratch", 0, 65536, name(0), lane=lane)
            assert got == want, (lane, len(got), len(want))
            assert read(s, "scratch", 6, 5, name(0), lane=lane) == want[6:11]
        device = s.rpc.call("gpu.devices", session=s.session)["devices"][0]
        assert read(s, "scratch", int(device["scratch_base"], 16) + 8, 4, name(0), lane=3) == \
            struct.pack("<I", 3 << 16 | 2)
        rows = (({"lane": lanes}, "lane"), ({"lane": 0, "address": hex(size)}, "outside"))
        for more, text in rows:
            params = {"session": s.session, "space": "scratch", "address": "0x0", "size": 4, "wave": name(0),
                      "max_stop_ms": STOP_MS, **more}
            error = s.rpc.error("memory.read", **params)
            assert text in error.message, (more, error)
        runs_on(s)


@pytest.mark.parametrize("gfx", ["gfx90a", "gfx942", "gfx1100", "gfx1250"])
def test_a_core_answers_for_every_memory_as_the_process_did(gfx, tmp_path):
    """LDS and private memory, by offset and by flat address, which are no addresses of global memory."""
    with Scene(app=APP, gpus=gfx, app_program=unsanitized("gpu-agent-simapp")) as s:
        s.session = s.attach()
        memory, base, size = prepare_scratch(s, gfx, 32)
        flat = f" flat={base:#x}" if GENERATIONS[gfx][3] else ""
        plant(s, f"halted 2 {PC:#x} group=2 xcc=0 lds=1024 lds9=0xcafef00d scratch=1{flat}")
        memory.write(base, bytes(range(251)) * (size // 251))
        device = s.rpc.call("gpu.devices", session=s.session)["devices"][0]
        lds, private = int(device["lds_base"], 16), int(device["scratch_base"], 16)
        asked = [("lds", 36, {}), ("lds", lds + 36, {}), ("generic", lds + 36, {"lane": 1}),
                 ("scratch", 4, {"lane": 5}), ("scratch", private + 4, {"lane": 5}), ("generic", private + 4, {"lane": 5})]
        refused = [("global", lds + 36, {}), ("global", private, {}), ("lds", 1024, {}), ("generic", lds + 1024, {"lane": 1}),
                   ("generic", lds, {}), ("generic", private, {"lane": 64}), ("generic", 3 << 62, {"lane": 1}),
                   ("generic", private, {"lane": 5, "size": 65537})]

        def answers(rpc, session):
            def params(space, address, more):
                wave = {} if space == "global" else {"wave": name(0), "max_stop_ms": STOP_MS}
                return {"session": session, "space": space, "address": hex(address), "size": 8, **wave, **more}
            return [rpc.call("memory.read", **params(*a))["data"] for a in asked] + \
                [str(rpc.error("memory.read", **params(*a))) for a in refused]

        live = answers(s.rpc, s.session)
        assert live[0] == live[1] == live[2] and live[3] == live[4] == live[5] != live[0], live
        outside, _, _, nowhere, large = live[-5:]
        assert "outside" in outside and "in no aperture" in nowhere and "65536" in large, live
        shown = [s.ctl("memory", s.app.pid, hex(private + 4), "8", *what, "--wave=0:0:0", "--lane=5", LONG_STOP, "-j").stdout
                 for what in (("--space=generic",), ("--space=scratch",))]
        assert shown[0] == shown[1] and live[5] in shown[0], shown
        core = tmp_path / "core"
        run = s.ctl("dump", s.app.pid, LONG_STOP, "--full", "-o", core)
        assert run.returncode in (0, 8), run.stderr  # there is no code object
        with CoreRpc(core) as rpc:
            assert answers(rpc, "core") == live
        runs_on(s)


def test_memory_that_ends_where_a_piece_begins():
    """The verb asks for 48 KiB of private memory at a time: exactly so much there is."""
    with Scene(app=APP, gpus="gfx90a") as s:
        s.session = s.attach()
        queue = s.rpc.call("gpu.queues", session=s.session)["queues"][0]
        memory, base = Process(s), int(queue["save_area"], 16) + queue["save_area_bytes"] - (4 << 20)
        pointer = int(queue["read_pointer"], 16)
        memory.write(pointer + 12, struct.pack("<I", 96 | 3072 << 12))
        memory.write(pointer + 32, struct.pack("<QQ", base, 0))
        plant(s, f"halted 1 {PC:#x} group=1 scratch=1")
        ask = "memory", s.app.pid, "0", "65536", "--space=scratch", "--wave=0:0:0", "--lane=3", LONG_STOP
        run = s.ctl(*ask, "-j")
        assert run.returncode == 8 and json.loads(run.stdout)["size"] == 49152, run
        assert len(base64.b64decode(json.loads(run.stdout)["data"])) == 49152, run
        run = s.ctl(*ask)
        assert run.returncode == 8 and "only 49152 of 65536 bytes" in run.stderr, run
        # Where there is nothing at all, that is an error.
        run = s.ctl("memory", s.app.pid, "49152", *ask[3:], "-j")
        assert run.returncode == 1 and "outside" in run.stderr, run
        runs_on(s)


def test_private_memory_that_cannot_be_had():
    with Scene(app=APP, gpus="gfx1100") as s:
        s.session = s.attach()
        plant(s, f"halted 1 {PC:#x} group=1")
        ask = {"session": s.session, "space": "scratch", "address": "0x0", "size": 4, "wave": name(0), "lane": 0,
               "max_stop_ms": STOP_MS}
        assert "no scratch memory" in s.rpc.error("memory.read", **ask).message
        _, base, _ = prepare_scratch(s, "gfx1100", 4)
        assert "no scratch memory" in s.rpc.error("memory.read", **ask).message
        plant(s, f"halted 1 {PC:#x} group=1 scratch=1 flat={base + 256:#x}")
        assert "flat_scratch" in s.rpc.error("memory.read", **ask).message
        plant(s, f"halted 1 {PC:#x} group=1 scratch=1 flat={base:#x}")
        assert s.rpc.call("memory.read", **ask)["size"] == 4
        runs_on(s)


def test_apertures_are_not_global_memory():
    """An address that each workgroup or lane has of its own is refused with what to pass."""
    with Scene(app=APP, gpus="gfx1100") as s:
        s.session = s.attach()
        device = s.rpc.call("gpu.devices", session=s.session)["devices"][0]
        for key, word in (("lds_base", "lds"), ("lds_limit", "lds"), ("scratch_base", "scratch")):
            error = s.rpc.error("memory.read", session=s.session, address=device[key], size=16)
            assert error.name == "invalid_params" and f'"{word}"' in error.hint, (key, error, error.hint)
        error = s.rpc.error("memory.read", session=s.session, address="0x7fffffffffffffff", size=1)
        assert error.name == "failed", error
        for params, text in (({"space": "lds"}, "wave: missing"), ({"space": "scratch", "wave": name(0)}, "lane"),
                             ({"space": "lds", "wave": name(0), "lane": 1}, "lane"), ({"wave": name(0)}, "wave, lane"),
                             ({"space": "scratch", "wave": name(0), "lane": 1, "size": 65537}, "size")):
            error = s.rpc.error("memory.read", **{"session": s.session, "address": "0x0", "size": 4, **params})
            assert error.name == "invalid_params" and text in error.message, (params, error)


def test_nothing_is_written_and_a_lease_is_kept():
    """Under a lease nothing stops, nothing resumes, positions stay, and not a bit of the area changes."""
    with Scene(app=APP, gpus="gfx90a") as s:
        plant(s, f"breakpoint 16 {PC:#x} group=4 lds=512")
        s.session = s.attach(control=True)
        queue = s.rpc.call("gpu.queues", session=s.session)["queues"][0]
        s.rpc.call("gpu.suspend", session=s.session, lease_ms=60000)
        place = int(queue["save_area"], 16), queue["save_area_bytes"]
        before = Process(s).read(*place)
        for i in range(16):
            reply = s.rpc.call("wave.registers", session=s.session, wave=name(i), work_items=True, max_stop_ms=STOP_MS)
            assert reply["stopped_us"] == 0 and reply["registers"]["wave"]["ref"]["index"] == i
        read(s, "lds", 0, 512, name(3))
        assert Process(s).read(*place) == before
        assert s.target_state()["suspended_queues"] == 1
        assert s.rpc.call("gpu.resume", session=s.session)["resumed"] == 1
        runs_on(s)


def test_other_queues_do_not_stop():
    with Scene(app="runtime on; queues 4; spin", gpus="gfx1100") as s:
        ids = [q["id"] for q in s.target_state()["queues"]]
        for i in ids:
            plant(s, f"halted 4 {PC:#x}", i)
        s.session = s.attach()
        # A queue that cannot be stopped does not matter to the others.
        s.control(f"fail-suspend {s.app.pid} {ids[1]}")
        assert registers(s, name(0, queue=ids[0]))["wave"]["ref"]["queue_id"] == ids[0]
        error = s.rpc.error("wave.registers", session=s.session, wave=name(0, queue=ids[1]), max_stop_ms=STOP_MS)
        assert error.name == "failed" and "did not stop" in error.message, error
        runs_on(s)


def test_budget_used_up():
    with Scene(app=APP, gpus="gfx90a") as s:
        plant(s, f"halted 4 {PC:#x}")
        s.session = s.attach()
        for method, params in (("wave.registers", {}), ("memory.read", {"space": "lds", "address": "0x0", "size": 4})):
            s.control("delay suspend 200")
            error = s.rpc.error(method, session=s.session, wave=name(0), max_stop_ms=50, **params)
            assert error.name == "timeout" and error.data["resumed"] and "50 ms" in error.message, error
        runs_on(s)


def test_without_runtime_or_while_ending():
    with Scene(app="queues 1; spin", gpus="gfx90a") as s:
        s.session = s.attach()
        error = s.rpc.error("wave.registers", session=s.session, wave=name(0))
        assert "runtime" in error.message, error
        os.kill(s.app.pid, signal.SIGKILL)
        s.app.popen.wait(20)
        error = s.rpc.error("wave.registers", session=s.session, wave=name(0))
        assert error.name in ("session_ended", "no_such_session", "no_such_process"), error


def test_hostile_areas():
    """Whatever the program wrote there: an error that says so, and the queue runs."""
    with Scene(app=APP, gpus="gfx90a") as s:
        plant(s, f"halted 8 {PC:#x} group=4")
        s.session = s.attach()
        queue = s.rpc.call("gpu.queues", session=s.session)["queues"][0]
        area, memory = int(queue["save_area"], 16), Process(s)
        s.rpc.call("gpu.suspend", session=s.session, lease_ms=60000)
        header = memory.read(area, 16)
        stack, size = struct.unpack("<II", header[:8])
        for offset, data in ((0, b"\xff" * 16), (4, b"\x03\0\0\0"), (12, bytes(4)), (stack + 8, b"\xff" * 4),
                             (stack + 12, bytes(size - 12))):
            before = memory.read(area + offset, len(data))
            memory.write(area + offset, data)
            error = s.rpc.error("wave.registers", session=s.session, wave=name(0), max_stop_ms=STOP_MS)
            assert error.name == "failed" and "corrupt" in error.message, (offset, error)
            memory.write(area + offset, before)
        assert registers(s, name(0))["wave"]["pc"] == hex(PC)
        s.rpc.call("gpu.resume", session=s.session)
        runs_on(s)


def test_verbs_show_a_wave():
    """waves, registers and memory as text and as JSON."""
    with Scene(app="runtime ttmp; queues 2; spin", gpus="gfx90a") as s:
        def ctl(verb, *rest):
            return s.ctl(verb, s.app.pid, *rest, LONG_STOP)

        plant(s, f"breakpoint 8 {PC:#x} group=4 workgroup=5,0,0 vgprs=16 acc=8 s3=0xdeadbeef v2.5=0x22 lds1=0x61626364")
        plant(s, f"halted 2 {PC + 64:#x} group=2", 1)
        run = ctl("waves")
        assert run.returncode == 0 and len(run.stdout.splitlines()) == 12 and run.stdout.splitlines()[-1].startswith("on GPU 0 ("), run
        run = ctl("waves", "--queue=0", "--state=breakpoint", "--limit=3")
        rows = [line.split() for line in run.stdout.splitlines()]
        assert run.returncode == 0 and [r[0] for r in rows] == ["WAVE", "0:0:0", "0:0:1", "0:0:2", "on"], run
        assert "3 of 8" in run.stderr, run
        run = ctl("waves", "--group=2", "--no-legend")
        assert [line.split()[0] for line in run.stdout.splitlines()] == ["1:0:0", "1:0:1"], run
        doc = json.loads(ctl("waves", "--state=halted", "-j").stdout)
        assert doc["matching"] == 2 and doc["wave_count"] == 10 and doc["complete"], doc
        assert [w["ref"]["queue_id"] for w in doc["waves"]] == [1, 1], doc
        run = ctl("registers", "0:0:6")
        lines = run.stdout.splitlines()
        assert run.returncode == 0 and run.stderr == "", run
        assert f"pc             {PC + 4:016x}" in lines and "trap" in lines, run.stdout
        assert next(line for line in lines if line.startswith("s0 ")).split()[4] == "deadbeef", run.stdout
        assert next(line for line in lines if line.startswith("v2 ")).split()[-3] == "00000022", run.stdout
        run = ctl("registers", "0:0:6", "--bank=vector", "--range=2-3", "--lanes=4-6")
        rows = [line.split() for line in run.stdout.split("\n\n")[1].splitlines()]
        assert [r[0] for r in rows] == ["vector", "v2", "v3"] and rows[1][1] == "4:", run.stdout
        assert rows[1][3] == "00000022" and len(rows[1]) == 5, rows
        doc = json.loads(ctl("registers", "0:0:6", "-j").stdout)["registers"]
        ref = doc["wave"]["ref"]
        lasting = f"0:0:{ref['dispatch']}@{','.join(map(str, ref['workgroup']))}/{ref['wave_in_group']}"
        again = json.loads(ctl("registers", lasting, "-j").stdout)["registers"]
        assert again == doc
        # Rows of a snapshot stand for their examples: faults first.
        row = json.loads(ctl("registers", "1", "-j").stdout)["registers"]["wave"]
        first = json.loads(ctl("snapshot", "-j").stdout)["groups"][0]
        assert row["ref"] == first["representative"] and row["pc"] == first["pc"], (row, first)
        example = "{queue_id}:{unit}:{index}".format(**row["ref"])
        shown = [ctl("memory", "0", "64", "--space=lds", f"--wave={wave}").stdout for wave in ("1", example)]
        assert shown[0] == shown[1] and shown[0], shown
        for argv in (("registers", "9"), ("memory", "0", "4", "--space=lds", "--wave=9"), ("disassemble", "--wave=9"),
                     ("disassemble", "9")):
            run = ctl(*argv)
            assert run.returncode == 3 and "there is no row 9: snapshot shows 2" in run.stderr and not run.stdout, run
        assert run.stderr.endswith("hint: an address begins with 0x\n"), run
        run = ctl("memory", "4", "4", "--space=lds", "--wave=0:0:6")
        assert run.returncode == 0 and "|dcba|" in run.stdout, run
        assert ctl("memory", "4", "4", "--space=lds", f"--wave={lasting}").stdout == run.stdout
        assert ctl("memory", "4", "4", "--space=shared", "--warp=0:0:6").stdout == run.stdout
        lane = ("--wave=0:0:6", "--lane=1")
        private = [ctl("memory", "0", "64", f"--space={name}", *lane) for name in ("scratch", "private", "local")]
        assert len({(p.returncode, p.stdout, p.stderr) for p in private}) == 1 and "none of" not in private[0].stderr, private
        run = ctl("memory", "0", "65536", "--space=lds", "--wave=0:0:6", "-j")
        assert run.returncode == 8 and json.loads(run.stdout)["size"] == 512, run
        runs_on(s)


def test_verbs_refuse_what_is_not_there():
    """3 for a wave that is not there, 2 for a name that is none, 7 for a budget used up."""
    with Scene(app=APP, gpus="gfx90a") as s:
        plant(s, f"halted 2 {PC:#x}")
        rows = (("registers", "0:0:2", 3), ("registers", "9:0:0", 3), ("registers", "0:0:77@1,2,3/4", 3),
                ("registers", "0:0", 2), ("registers", "0:0:1@2", 2), ("registers", "0:0:-1", 2),
                ("memory", "0", "4", "--space=lds", "--wave=0:0:5", 3), ("memory", "0", "4", "--space=lds", 2),
                ("memory", "0", "4", "--wave=0:0:0", 2), ("memory", "0", "4", "--space=heap", 2),
                ("memory", "0", "4", "--space=scratch", "--wave=0:0:0", 2),
                ("memory", "0x1000000000000", "4", 2), ("waves", "--state=idle", 2), ("waves", "--limit=0", 2),
                ("registers", "0:0:0", "--bank=all", 2), ("registers", "0:0:0", "--lanes=9-3", 2),
                ("disassemble", 2), ("disassemble", "0x1000", "--wave=0:0:0", 2), ("disassemble", "0x1000", 1),
                ("disassemble", "0", 2), ("disassemble", "7", 3), ("disassemble", "0:0", 2), ("disassemble", "main", 2),
                ("disassemble", "--wave=0:0:7", 3), ("disassemble", f"{PC:#x}", "--gpu=1", 2))
        for verb, *rest, status in rows:
            run = s.ctl(verb, s.app.pid, *rest, *([LONG_STOP] if status == 3 else []))
            assert run.returncode == status and run.stderr.startswith("gpu-agentctl:") and not run.stdout, (verb, rest, run)
        s.control("delay suspend 200")
        run = s.ctl("registers", s.app.pid, "0:0:0", "--max-stop=50ms")
        assert run.returncode == 7 and "50 ms" in run.stderr, run
        runs_on(s)


# s_nop 0; s_load_dwordx2 s[0:1], s[4:5], 0x0; s_branch to the start; s_endpgm
CODE = struct.pack("<5I", 0xBF800000, 0xC0060002, 0, 0xBF82FFFC, 0xBF810000)


def test_instructions_around_a_wave():
    with Scene(app=APP, gpus="gfx90a") as s:
        s.session = s.attach()
        queue = s.rpc.call("gpu.queues", session=s.session)["queues"][0]
        place = int(queue["save_area"], 16) + queue["save_area_bytes"] - 4096
        Process(s).write(place, CODE)
        plant(s, f"halted 1 {place + 12:#x} group=1")
        run = s.ctl("disassemble", s.app.pid, "--wave=0:0:0", f"--start={place:#x}", "--count=2", LONG_STOP)
        # The wave itself, and the row that it is the example of, are as good as --wave.
        for wave in ("0:0:0", "1"):
            again = s.ctl("disassemble", s.app.pid, wave, f"--start={place:#x}", "--count=2", LONG_STOP)
            assert (again.returncode, again.stdout) == (0, run.stdout), (wave, again)
        lines = run.stdout.splitlines()
        assert run.returncode == 0, run
        current = [i for i, line in enumerate(lines) if line.startswith("=>")]
        assert len(current) == 1 and f"{place + 12:#x}"[2:] in lines[current[0]], run.stdout
        doc = json.loads(s.ctl("disassemble", s.app.pid, f"{place:#x}", "--count=4", "--before=0", "-j").stdout)
        assert doc["pc"] == hex(place) and doc["gfx"] == "gfx90a", doc
        assert "".join(i["bytes"] for i in doc["instructions"])[:40] == CODE.hex()
        if "source" in doc:
            assert [i["text"] for i in doc["instructions"]][:2] == ["s_nop 0", "s_load_dwordx2 s[0:1], s[4:5], 0x0"], doc
            assert doc["instructions"][2]["target"] == hex(place), doc
            assert len(lines) == 4 and lines[2].endswith(f"-> {place:#x}"), lines
        # Without a library there are words, and one line says why.
        os.environ["GPU_AGENT_LLVM"] = "/nonexistent/libLLVM.so"
        try:
            run = s.ctl("disassemble", s.app.pid, f"{place:#x}", "--count=2")
        finally:
            del os.environ["GPU_AGENT_LLVM"]
        assert run.returncode == 0 and run.stdout.splitlines()[0].split()[2:] == [".long", "0xbf800000"], run
        assert run.stderr.count("\n") == 1 and "words" in run.stderr, run
        runs_on(s)


def test_instructions_with_their_function_and_lines():
    """In front of a wave all from the function's beginning on, each under its source line."""
    co = ROOT / "tests/data/codeobj/spin-gfx90a.co"
    # As llvm-objdump shows function "outside", which begins at 0x1800; those of 8 bytes among them.
    begins = (0x1800, 0x1804, 0x1808, 0x180C, 0x1810, 0x1818, 0x1820, 0x1824, 0x1828, 0x182C, 0x1834, 0x1838)
    with Scene(app=f"runtime ttmp; load {co}; queues 1; spin", gpus="gfx90a") as s:
        s.session = s.attach()
        bias = next(int(o["bias"], 16) for o in s.rpc.call("code.list", session=s.session)["objects"]
                    if co.name in o["uri"])
        plant(s, f"halted 1 {bias + 0x1824:#x} group=1")
        ask = ("disassemble", s.app.pid, "--wave=0:0:0", "--before=12", "--count=5", LONG_STOP)
        doc = json.loads(s.ctl(*ask, "-j").stdout)
        assert doc["function"] == "outside" and doc["pc"] == hex(bias + 0x1824), doc
        if "source" in doc:
            assert [int(i["address"], 16) - bias for i in doc["instructions"]] == list(begins), doc
            assert all(i["decoded"] and i["file"].endswith("spin.cl") for i in doc["instructions"]), doc
            assert doc["instructions"][8]["target"] == hex(bias + 0x180C), doc["instructions"][8]
        run = s.ctl(*ask)
        lines = run.stdout.splitlines()
        assert run.returncode == 0 and lines[0] == "outside" and lines[1].endswith("spin.cl:20"), run
        assert [line.split()[1] for line in lines if line.startswith("=>")] == [hex(bias + 0x1824)], run.stdout
        runs_on(s)


def test_snapshots_with_registers():
    """Of each group's representative, in the order of the groups, equal to what wave.registers says."""
    with Scene(app="runtime ttmp; queues 2; spin", gpus="gfx90a,gfx1100") as s:
        plant(s, f"halted 40 {PC:#x} group=4 s3=3")
        plant(s, f"memory 4 {PC + 64:#x} group=4 s3=4", 1)
        s.session = s.attach()
        s.rpc.call("gpu.suspend", session=s.session, lease_ms=60000)
        doc = snapshot(s, registers=True)
        assert doc["complete"] and len(doc["groups"]) == len(doc["registers"]) == 2, doc["missing"]
        for group, got in zip(doc["groups"], doc["registers"]):
            assert got["wave"]["ref"] == group["representative"] and got["wave"]["pc"] == group["pc"]
            assert got == registers(s, group["representative"]), group
        assert [by_name(r["scalar"])["s3"] for r in doc["registers"]] == [4, 3]
        assert "registers" not in snapshot(s)
        error = s.rpc.error("gpu.snapshot", session=s.session, registers=True, queues_only=True)
        assert error.name == "invalid_params" and "params.registers" in error.message, error
        s.rpc.call("gpu.resume", session=s.session)
        s.control("delay suspend 200")
        doc = snapshot(s, registers=True, max_stop_ms=50)
        assert doc["budget_exceeded"] and not doc["complete"] and doc["registers"] == [], doc["missing"]
        runs_on(s)


def test_snapshot_verb_with_registers():
    with Scene(app="runtime ttmp; queues 2; spin", gpus="gfx1100") as s:
        plant(s, f"halted 40 {PC:#x} group=4 s3=0x333")
        plant(s, f"memory 4 {PC + 64:#x} group=4 s3=0x444", 1)
        run = s.ctl("snapshot", s.app.pid, "--registers", LONG_STOP)
        assert run.returncode == 0 and run.stderr == "", run
        scalars = [line.split()[4] for line in run.stdout.splitlines() if line.startswith("s0 ")]
        assert scalars == ["00000444", "00000333"], run.stdout
        doc = json.loads(s.ctl("snapshot", s.app.pid, "--registers", "-j", LONG_STOP).stdout)
        assert [r["wave"]["pc"] for r in doc["registers"]] == [g["pc"] for g in doc["groups"]]
        assert s.ctl("snapshot", s.app.pid, "--registers", "--queues-only").returncode == 2
        runs_on(s)


def test_many_places():
    """Faults come first, however many places there are; what is left out is told."""
    with Scene(app="runtime ttmp; queues 2; spin", gpus="gfx1100") as s:
        plant(s, f"spin 400 {PC:#x} group=4 loop=400")
        plant(s, f"assert 1 {PC + 4096:#x} group=1", 1)
        s.session = s.attach()
        doc = snapshot(s, registers=True)
        assert len(doc["groups"]) == 101 and len(doc["registers"]) == 64, (len(doc["groups"]), len(doc["registers"]))
        assert doc["registers"][0]["wave"]["reasons"] == ["assert"] and not doc["complete"], doc["missing"]
        assert doc["missing"][0].startswith("registers:"), doc["missing"]
        runs_on(s)
