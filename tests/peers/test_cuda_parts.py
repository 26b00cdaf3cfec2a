#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Which lanes of a warp are where: the parts that snapshots tell, beside NVIDIA's debugger on the same core.

cuda-gdb 12.4 opens the core that `gpu-agentctl dump` makes of a simulated process, and lists the lanes of each warp.  Our
parts are those lanes put together, of the process as well as of the core.
"""
import json
import os
import random
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from cudagdb import Debugger
from harness import LONG_STOP, ROOT, CudaScene

SMS, WARPS, LANES, STEP = 3, 8, 32, 16
APP = f"init; context 0; module {ROOT}/tests/data/cudacore/plant-sm90.cubin; gpu launch planted grid=8 block=96; listen"
ILLEGAL = "CUDA_EXCEPTION_1: lane illegal address"


def plant(s, rng):
    """Warps of every kind: whole, in two parts, each lane for itself; some lanes have exited, some have an exception."""
    for sm in range(SMS):
        for warp in range(6):
            valid = rng.choice((0xffffffff, 0xffffffff, rng.getrandbits(32) | 1 << 31))
            active = (rng.choice((valid, rng.getrandbits(32))) & valid) or valid
            where = rng.choice(("", f"pc={STEP * rng.randrange(8):#x} idle={STEP * rng.randrange(8):#x}",
                                f"pc=0 apart={rng.choice((4, 16))}"))
            s.control(f"warp 0 {sm} {warp} valid={valid:#x} active={active:#x} {where}")
            if rng.random() < 0.3:
                s.control(f"raise 0 {sm} {warp} 1 lanes={1 << rng.choice([i for i in range(LANES) if valid >> i & 1]):#x}")


def parts_of_lanes(rows):
    """{(pc, active): lanes} of the rows of a debugger, and those lanes that have an exception."""
    parts, faulty = {}, 0
    for row in rows:
        # Of 12.4 the only pc is the virtual one, under this name.
        key = int(row["physical_pc"], 16), row["state"] == "active"
        parts[key] = parts.get(key, 0) | 1 << int(row["lane"])
        faulty |= (row["exception"] not in ("None", "No exception")) << int(row["lane"])
    return parts, faulty


def check_warp(wave, rows):
    """@return whether it has diverged."""
    parts, faulty = parts_of_lanes(rows)
    if len({pc for pc, _ in parts}) == 1:
        assert "parts" not in wave and int(wave["pc"], 16) == next(iter(parts))[0], (wave, parts)
        return False
    ours = {(int(p["pc"], 16), p["active"]): int(p["exec"], 16) for p in wave["parts"]}
    assert ours == parts and len(wave["parts"]) == len(parts), (wave, parts)
    first = wave["parts"][0]
    assert first["pc"] == wave["pc"] and all(p["lanes"] == bin(int(p["exec"], 16)).count("1") for p in wave["parts"]), wave
    assert wave.get("exception") == (ILLEGAL if faulty else None), (wave, faulty)
    assert bool(int(first["exec"], 16) & faulty) if faulty else first["active"], (wave, faulty)
    return True


def check(doc, tables):
    diverged = 0
    for wave in doc["waves"]:
        at = wave["ref"]["unit"], wave["ref"]["index"]
        diverged += check_warp(wave, tables[at])
        group = doc["groups"][wave.get("parts", [wave])[0]["group"]]
        assert group.get("exception") == wave.get("exception"), (wave, group)
    assert doc["diverged_waves"] == diverged >= 5, (doc["diverged_waves"], diverged)
    assert doc["complete"] and len(tables) == len(doc["waves"]) == 18, doc["missing"]


def test_parts_are_the_lanes_of_cuda_gdb():
    debugger, rng = Debugger("cuda-gdb"), random.Random(5)
    for release in ("11.8", "12.4", "13.4"):
        with CudaScene(app=APP, sim=f"devices 1 sms={SMS} warps={WARPS}", release=release) as s:
            plant(s, rng)
            core = s.directory / "core"
            run = s.ctl("dump", s.app.pid, LONG_STOP, "-o", core)
            assert run.returncode == 0, (run.returncode, run.stderr)
            live = json.loads(s.ctl("snapshot", s.app.pid, LONG_STOP, "--waves", "-j").stdout)
            assert "waves" in live, live
            saved = json.loads(s.ctl("analyze", core, "--waves", "-j").stdout)
            places = [(w["ref"]["unit"], w["ref"]["index"]) for w in saved["waves"]]
            rows = debugger.table(core, *(f"lanes device 0 sm {sm} warp {warp}" for sm, warp in places))
            tables = dict(zip(places, rows))
            check(live, tables)
            check(saved, tables)
