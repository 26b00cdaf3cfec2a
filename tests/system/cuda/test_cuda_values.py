#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Values of CUDA threads, live and from a core."""
import collections
import json
import os
import re
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest

from cudascene import scene
from corereader import CoreRpc
from harness import ROOT, STOP_MS

WAVE = {"queue_id": 0, "unit": 1, "index": 0}


def clusters_in(rpc, session, waves):
    """What is said of the cluster of each wave: by registers, in the list, and by an expression."""
    for name in waves:
        who = {"session": session, "wave": name}
        registers = rpc.call("wave.registers", **who, max_stop_ms=STOP_MS)["registers"]
        listed = {v["name"]: v["value"] for v in rpc.call("wave.variables", **who, scopes=["built_in"], lanes="0,3")["variables"]}
        asked = [{**rpc.call("wave.evaluate", **who, expression=e), "stopped_us": 0} for e in ("clusterIdx", "clusterDim")]
        yield registers["wave"]["ref"]["workgroup"], registers.get("cluster"), listed, asked


@pytest.mark.parametrize("release, grid, told", [
    ("11.8", "8 cluster=2", False), ("12.2", "8 cluster=2", True), ("12.4", "4,4 cluster=2,2", True), ("12.4", "8", False),
    ("12.9", "8 cluster=4", True), ("12.9", "8", False), ("13.4", "8 cluster=2", True), ("13.4", "8", False)])
def test_clusters(release, grid, told, tmp_path):
    """Releases before 12.0 do not tell of them: that is no cluster 0."""
    size = [int(n) for n in (re.search(r"cluster=(.*)", grid) or ["", "1"])[1].split(",")]
    size += [1] * (3 - len(size))
    three = "{{x = {}, y = {}, z = {}}}".format
    with scene(release, app=f"init; context 0; module @CUBIN@; gpu launch spin grid={grid} block=64; listen") as s:
        core = tmp_path / "core"
        session = s.attach()
        waves = [{"queue_id": w["ref"]["queue_id"], "unit": w["ref"]["unit"], "index": w["ref"]["index"]} for w in s.rpc.call(
            "gpu.snapshot", session=session, waves=True, max_stop_ms=STOP_MS)["waves"]]
        live = list(clusters_in(s.rpc, session, waves))
        text = s.ctl("registers", s.app.pid, ":".join(str(waves[-1][k]) for k in ("queue_id", "unit", "index")), "--bank=special")
        s.rpc.call("session.detach", session=session)
        assert s.ctl("dump", s.app.pid, "-o", core).returncode == 0
        with CoreRpc(core) as rpc:
            assert list(clusters_in(rpc, "core", waves)) == live
    assert len(live) > 4 and len({tuple(w) for w, _, _, _ in live}) > 4, live
    for workgroup, cluster, listed, asked in live:
        if not told:
            assert cluster is None and "clusterIdx" not in listed and "clusterDim" not in listed, (cluster, listed)
            assert all((a["state"], a["reason"]) == ("unavailable", "the wave is in no cluster, or nothing tells of one")
                       and "value" not in a for a in asked), asked
            continue
        index = [b // n for b, n in zip(workgroup, size)]
        assert cluster == {"size": size, "index": index}, (workgroup, cluster)
        assert (listed["clusterIdx"], listed["clusterDim"]) == (three(*index), three(*size)), listed
        assert [a["value"] for a in asked] == [three(*index), three(*size)], asked
    assert ("cluster " in text.stdout) == told, text.stdout
    if told:
        index, size = (",".join(map(str, n)) for n in (live[-1][1]["index"], live[-1][1]["size"]))
        assert re.search(rf"^cluster +{index}, {size} blocks$", text.stdout, re.M), text.stdout


FAR, APART = 0x7f5000000000, 0x3000
EACH = f"{{int}} ({FAR:#x} + $R4)"


def plant_far(s, deep=False):
    """Memory of its own for each lane of a warp, so far apart that no two are in one piece; R4 leads to it."""
    for lane in range(32):
        s.control(f"register 0 1 2 {lane} 4 {lane * APART:#x}")
        at = FAR + lane * APART
        s.control(f"memory global {at:#x} hex={(1000 + lane).to_bytes(8, 'little').hex()}{(at + 0x1000).to_bytes(8, 'little').hex()}"
                  + "00" * 48 + " managed=1")
        if deep:
            s.control(f"memory global {at + 0x1000:#x} hex={(2000 + lane).to_bytes(8, 'little').hex()}" + "00" * 56 + " managed=1")


def by_lane(rows):
    found = {}
    for row in rows:
        for part in row["lanes"].split(","):
            first, _, last = part.partition("-")
            found.update({lane: row for lane in range(int(first), int(last or first) + 1)})
    return found


def test_memory_of_all_lanes_takes_one_stop(tmp_path):
    """One for the registers, and one for each step that pointers lead further, however many lanes there are."""
    who = {"wave": {"queue_id": 0, "unit": 1, "index": 2}, "lanes": "all", "max_stop_ms": STOP_MS}
    deep = f"*{{int *}} ({FAR:#x} + $R4 + 8)"
    with scene() as s:
        plant_far(s, deep=True)
        session = s.attach()
        for expression, first, stops in ((EACH, 1000, 2), (deep, 2000, 3)):
            s.rpc.call("wave.evaluate", session=session, expression="1", **who)
            before = s.state()["calls_of"]["suspendDevice"]
            answer = s.rpc.call("wave.evaluate", session=session, expression=expression, **who)
            # Two devices: both stand still for global memory.  What is asked of one lane takes its own stops.
            found = by_lane(answer["lanes"])
            assert {n: row["value"] for n, row in found.items()} == {n: str(first + n) for n in range(32)}, found
            took = s.state()["calls_of"]["suspendDevice"] - before
            assert took <= 2 * (stops + stops - 1), (expression, took)
        s.rpc.call("session.detach", session=session)
        core = tmp_path / "core"
        assert s.ctl("dump", s.app.pid, "--full", "-o", core).returncode == 0
        with CoreRpc(core) as rpc:
            for expression, first in ((EACH, 1000), (deep, 2000)):
                answer = rpc.call("wave.evaluate", session="core", expression=expression, **who)
                assert {n: row["value"] for n, row in by_lane(answer["lanes"]).items()} == {
                    n: str(first + n) for n in range(32)}, answer


def rows_of(text):
    lines = text.splitlines()
    head = next(i for i, line in enumerate(lines) if line.split()[:1] == ["LANE"])
    return lines[head].split(), [line.split() for line in lines[head + 1:] if re.match(r" *\d+  +\d+,", line)], lines[-2:]


def test_columns_of_lanes(tmp_path):
    """Registers and expressions of each lane, as a table and as JSON, live and from a core; the lanes of a row's part."""
    with scene() as s:
        s.control("warp 0 1 2 active=0xf0 pc=0x10 idle=0xc0")
        for lane in range(32):
            s.control(f"register 0 1 2 {lane} 4 {lane % 4:#x}")
        core = tmp_path / "core"
        groups = json.loads(s.ctl("snapshot", "--json", s.app.pid).stdout)["groups"]
        assert s.ctl("dump", s.app.pid, "-o", core).returncode == 0
        rows = {g["lanes_max"]: str(i + 1) for i, g in enumerate(groups) if g.get("parts")}
        assert sorted(rows) == [4, 28], groups
        pages = []
        for of in ((s.app.pid,), ("--core", core)):
            head, lanes, last = rows_of(s.ctl("lanes", *of, "0:1:2", "$R4", "$R4*2+threadIdx.x").stdout)
            assert head == ["LANE", "THREAD", "ACTIVE", "PART", "PC", "$R4", "$R4*2+threadIdx.x"], head
            first = int(lanes[0][1].split(",")[0])
            assert [(r[0], r[2], r[3], r[-1]) for r in lanes] == [
                (str(n), "yes" if 4 <= n < 8 else "no", "1" if 4 <= n < 8 else "2", str(n % 4 * 2 + first + n))
                for n in range(32)], lanes
            assert lanes[4][5] == "0" and lanes[3][5:7] == ["<inactive>", "3"], lanes
            document = json.loads(s.ctl("lanes", *of, "0:1:2", "$R4", "$R4*2+threadIdx.x", "--json").stdout)
            assert [c["expression"] for c in document["columns"]] == ["$R4", "$R4*2+threadIdx.x"], document["columns"]
            for n, row in enumerate(document["lanes"]):
                state = "ok" if 4 <= n < 8 else "inactive"
                assert (row["lane"], row["active"], row["part"]) == (n, 4 <= n < 8, 0 if 4 <= n < 8 else 1), row
                assert [(v["value"], v["state"]) for v in row["values"]] == [
                    (str(n % 4), state), (str(n % 4 * 2 + first + n), state)], row
            document.pop("stopped_us")
            pages.append(document)
            # A row of a snapshot is about the lanes that are at its place.
            for count, wanted in ((4, [4, 5, 6, 7]), (28, [*range(4), *range(8, 32)])):
                _, lanes, last = rows_of(s.ctl("lanes", *of, rows[count], "$R4").stdout)
                assert [int(r[0]) for r in lanes] == wanted and "--lanes=all" in last[1], (lanes, last)
                assert len(rows_of(s.ctl("lanes", *of, rows[count], "--lanes=all").stdout)[1]) == 32
                text = s.ctl("registers", *of, rows[count], "--bank=vector", "--range=4-4").stdout
                assert sum(len(line.split(": ")[1].split()) for line in text.splitlines() if ": " in line) == count, text
            assert len(rows_of(s.ctl("lanes", *of, "0:1:2", "--lanes=part", "--lane=9").stdout)[1]) == 28
        assert pages[0] == pages[1]
        run = s.ctl("lanes", s.app.pid, "0:1:2", "$R4", "no_such")
        assert run.returncode == 2 and "EXPRESSION: the expression at position 2: column 1: " in run.stderr, run.stderr
        run = s.ctl("lanes", s.app.pid, "0:1:2", "1 +")
        assert run.returncode == 2 and "position 1" in run.stderr, run.stderr


MANY = ROOT / "tests/data/cubin/many-sm_90-g.cubin"


def test_a_core_tells_the_same_values_as_the_process(tmp_path):
    """Of every lane of warps that are at several places of a kernel with many variables."""
    app = f"init; context 0; module {MANY}; gpu launch many grid=8 block=96 args=p:0x7f5000000000,p:0x7f5000001000,p:0x123456789; listen"
    places = (0x40, 0x3a0, 0x7d0, 0xc00, 0x1220, 0x1500)
    states = collections.Counter()
    with scene(app=app, sim="devices 1 sms=4 warps=8 registers=64") as s:
        session, core = s.attach(), tmp_path / "core"
        for warp, pc in enumerate(places):
            s.control(f"warp 0 0 {warp} pc={pc:#x}" + (" idle=0x40 active=0xffff" if warp % 2 else ""))
            for lane in range(32):
                s.control(f"register 0 0 {warp} {lane} 1 0xfff000")
                for n in range(4, 16):
                    s.control(f"register 0 0 {warp} {lane} {n} {lane // 2 * n * 0x10001:#x}")
                s.control(f"memory local 0 0 {warp} {lane} 0xfff000 size=4096 fill={lane}")
        waves = [w["ref"] for w in s.rpc.call("gpu.snapshot", session=session, waves=True, max_stop_ms=STOP_MS)["waves"]]
        waves = [{k: ref[k] for k in ("queue_id", "unit", "index")} for ref in waves if ref["unit"] == 0]
        live = [s.rpc.call("wave.variables", session=session, wave=w, lanes="all", max_stop_ms=STOP_MS) for w in waves]
        s.rpc.call("session.detach", session=session)
        assert s.ctl("dump", s.app.pid, "--full", "-o", core).returncode == 0
    with CoreRpc(core) as rpc:
        for wave, told in zip(waves, live, strict=True):
            again = rpc.call("wave.variables", session="core", wave=wave, lanes="all")
            for answer in (told, again):
                # The process ran on between the stops, and says so.
                answer.pop("stopped_us")
                answer["missing"] = [m for m in answer["missing"] if "ran in between" not in m]
                answer.pop("complete")
            for one, other in zip(told["variables"], again["variables"], strict=True):
                assert one == other, (wave, one, other)
            assert told == again, (wave, told["missing"], again["missing"])
            for v in told["variables"]:
                for row in v["lanes"]:
                    states[row["state"]] += len(by_lane([row]))
    print(f"    {dict(states)}")
    assert len(waves) == 6 and states["ok"] > 1000 and states["inactive"] > 100, states
