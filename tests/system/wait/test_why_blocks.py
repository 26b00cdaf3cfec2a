#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Blocks of a cooperative launch that wait for each other: who has come, who has not, and that nobody is accused who may come."""
import json
import os
import random
import struct
import sys
import time

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest

from harness import BIN, ROOT, CudaScene

CUBIN = ROOT / "sim/scenes/cuda/grid-sm_90.cubin"
SPACE = 0x7F5CC0000000
ILLEGAL_ADDRESS = 14
# Of each kernel: in part(), at the barrier in front of a sync, in its loop, behind the loop; what is in the loop's registers.
REDUCE = {"kernel": "reduce", "work": 0x2F0, "before": 0x430, "loop": 0x650, "end": 0x6B0, "behind": 0x6C0, "base": 6, "old": 0}
APART = {"kernel": "reduce_apart", "work": 0x340, "loop": 0x980, "end": 0x9E0, "behind": 0x9F0, "base": 2, "old": 12}
AGAIN = {"kernel": "reduce_apart", "loop": 0xC60, "end": 0xCC0, "behind": 0xCD0, "base": 2, "old": 0}
OWN = {"kernel": "reduce_own", "work": 0x2F0, "loop": 0x7D0, "end": 0x830, "behind": 0x840, "base": 6, "old": 8}


def word(come, blocks=8, first=True, phase=0):
    """What blocks have added: the first one among them or not."""
    return (phase + come + (0x80000000 - blocks if first else 0)) & 0xFFFFFFFF


def poll(block, at=REDUCE, old=0, space=SPACE, pc=None):
    """Thread 0 of a block polls, and the others wait for it."""
    base, values = at["base"], [(at["old"], old)]
    if base is None:
        return [f"gpu warp 0 {block} 0 pc={pc or at['loop']:#x} active=1", f"gpu register 0 {block} 0 0 {at['old']} {old:#x}",
                f"gpu uniform 0 {block} 0 4 {space & 0xffffffff:#x}", f"gpu uniform 0 {block} 0 5 {space >> 32:#x}"]
    values += [(base, space & 0xFFFFFFFF), (base + 1, space >> 32)]
    assert base % 2 == 0
    return [f"gpu warp 0 {block} 0 pc={pc or at['loop']:#x} active=1", *(f"gpu register 0 {block} 0 0 {n} {v:#x}" for n, v in values)]


def memory(value, space=SPACE):
    return f"gpu memory global {space:#x} hex=08000000{value.to_bytes(4, 'little').hex()}"


def gone(block, n=1):
    return f"gpu warp 0 {block} 0 sms={n} warps=8 valid=0"


# For sm_75: the first one loads the address of the word from the launch's constants in each round.
OLD = ROOT / "sim/scenes/cuda/grid-sm_75.cubin"
OLD_REDUCE = {"kernel": "reduce", "loop": 0x600, "end": 0x6D0, "behind": 0x720, "base": 6, "old": 4, "cubin": OLD}
OLD_APART = {"kernel": "reduce_apart", "loop": 0x900, "end": 0x9B0, "behind": 0xA00, "base": None, "old": 6, "cubin": OLD}


class Grid(CudaScene):
    """Blocks, in the order of their SMs; those that have come poll, and a script says what others do."""

    def __init__(self, come, *script, value=None, blocks=8, kernel=REDUCE, grid=None, sms="sms=132 warps=64", space=SPACE, old=0):
        super().__init__(app=None)
        value = word(len(come), blocks, 0 in come) if value is None else value
        cubin = kernel.get("cubin", CUBIN)
        self.script = [f"init; gpu devices 1 {sms} sm={cubin.stem[-5:]}; context 0; module {cubin}",
                       f"gpu launch {kernel['kernel']} grid={grid or blocks} block=256 pc={kernel['behind']:#x}",
                       memory(value, space), *(line for b in come for line in poll(b, kernel, old, space)), *script, "listen"]

    def __enter__(self):
        super().__enter__()
        self.app = self.start_app("; ".join(self.script))
        return self

    def why(self, **more):
        if not hasattr(self, "session"):
            self.session = self.attach()
        doc = self.rpc.call("why.get", session=self.session, **more)
        print(json.dumps(doc))
        return doc

    def twice(self, between=(), pause=1.05):
        first = self.why()
        for command in between:
            self.control(command.removeprefix("gpu "))
        time.sleep(pause)
        return self.why(since=first["sample"])


def bank(space=SPACE):
    """Constant bank 0 of a launch, with the workspace's address where sm_75 has it: its upper half comes first."""
    words = [space >> 32, space & 0xFFFFFFFF]
    passed = bytes(0x8C) + b"".join(w.to_bytes(4, "little") for w in words) + bytes(0x100)
    return f"gpu memory const 0 0x7f5cd0000000 hex={passed.hex()}"


def late(*blocks, pc=REDUCE["work"]):
    return [f"gpu warp 0 {b} 0 warps=8 pc={pc:#x}" for b in blocks]


def grids(doc):
    return [w for w in doc["waits"] if w["kind"] == "grid"]


def culprits(doc):
    return [c for c in doc["causes"] if c["culprit"]]


@pytest.mark.parametrize("kernel", [OLD_REDUCE, OLD_APART], ids=lambda k: k["kernel"])
def test_older_devices_are_understood(kernel):
    """Wherever in the loop the first block is: in the votes as well."""
    for pc in range(kernel["loop"], kernel["end"], 16):
        with Grid([0, 1, 2, 3, 4, 6], *late(5, 7, pc=0x10), *poll(0, kernel, pc=pc), bank(), kernel=kernel) as s:
            doc = s.why()
        wait, = grids(doc)
        assert (wait["has"], wait["expects"], wait["waves"], wait["missing_count"]) == (6, 8, 6, 2), wait
        assert wait["object"] == {"address": hex(SPACE + 4), "bytes": 4, "value": "0x7ffffffe"}, wait
        assert [party["ref"]["workgroup"] for party in wait["missing"]] == [[5, 0, 0], [7, 0, 0]] and not culprits(doc), wait


# R6 and R7 are the address of the workspace, as ptxas has it: ULDC and IMAD.U32, two of each.
WORKSPACE = b"".join(w.to_bytes(8, "little") for w in (0x0000120000067AB9, 0x000FC60000000800, 0x0000110000077AB9, 0x000FE20000000800,
                                                       0x00000007FF077E24, 0x000FE2000F8E00FF, 0x00000006FF067E24, 0x000FC8000F8E00FF))


def with_loops(path, n, to="reduce_own", head=b""):
    """The same kernels, and behind the code of one of them so many loops that poll as blocks of a grid do."""
    data = bytearray(CUBIN.read_bytes())
    table, = struct.unpack_from("<Q", data, 40)
    size, count, names = struct.unpack_from("<HHH", data, 58)
    at = [table + i * size for i in range(count)]
    strings, = struct.unpack_from("<Q", data, at[names] + 24)
    sections = {data[strings + struct.unpack_from("<I", data, s)[0]:].split(b"\0")[0].decode(): s for s in at}
    (own, own_size), (last, _) = (struct.unpack_from("<QQ", data, sections[f".text.{name}"] + 24) for name in (to, "reduce"))
    assert to == "reduce" or own < last, "the loop of reduce() is behind the others"
    loop = data[last + REDUCE["loop"]:last + REDUCE["end"]]
    code = data[own:own + own_size] + (head + loop) * n
    data += bytes(-len(data) % 128)
    struct.pack_into("<QQ", data, sections[f".text.{to}"] + 24, len(data), len(code))
    end = own_size
    data += code + bytes(-len(code) % 64)
    # An image ends with its tables: those of its sections, and then of its segments.
    segments, entry, number = *struct.unpack_from("<Q", data, 32), *struct.unpack_from("<HH", data, 54)
    tables = data[table:table + count * size], data[segments:segments + number * entry]
    struct.pack_into("<QQ", data, 32, len(data) + len(tables[0]), len(data))
    path.write_bytes(data + tables[0] + tables[1])
    return path, end


@pytest.mark.parametrize("n, told", [(1019, True), (1020, False)])
def test_a_grid_beyond_the_loops_that_are_followed_is_told_to_be_missing(tmp_path, n, told):
    """A cubin may have any number of them, and each is followed back: four are there besides, and that of reduce() is the last."""
    kernel = {**REDUCE, "cubin": with_loops(tmp_path / "many-sm_90.cubin", n)[0]}
    with Grid([0, 1, 2, 3, 4, 6], *late(5, 7), kernel=kernel) as s:
        doc = s.why()
        again = s.twice()
    assert bool(grids(doc)) is told and bool([w for w in doc["waits"] if w["kind"] == "spin"]) is not told, doc
    assert not culprits(doc) and not culprits(again) and doc["complete"] is told, doc
    assert [m for m in doc["missing"] if "6 warps poll as blocks of a grid do" in m] == doc["missing"] and bool(doc["missing"]) is not told


def test_what_else_is_missing_does_not_hide_the_grids(tmp_path):
    """More loops than are kept, and warps in one that is not followed."""
    cubin, end = with_loops(tmp_path / "cut-sm_90.cubin", 17000)
    kernel = {**REDUCE, "cubin": cubin, "kernel": "reduce_own"}
    unfollowed = end + 2000 * (REDUCE["end"] - REDUCE["loop"])
    come = [0, 1, 2, 3, 4, 6]
    with Grid(come, *(line for b in come for line in poll(b, kernel, pc=unfollowed)), kernel=kernel) as s:
        doc = s.why(max_stop_ms=7000)
        dumped = s.ctl("dump", s.app.pid, "-o", tmp_path / "core", "--full", "--max-stop=60s")
        assert dumped.returncode in (0, 8), dumped.stderr
        of_core = json.loads(s.ctl("why", "--core", tmp_path / "core", "-j").stdout)
    assert len(doc["missing"]) == 2, doc["missing"]
    for each in (doc, of_core):
        missing = [m for m in each["missing"] if "loops" in m]
        assert len(missing) == 2 and not each["complete"] and not culprits(each), each["missing"]
        assert missing[0] == "words that are polled: loops of a code object that has too many", missing
        assert missing[1].startswith("barriers of grids: 6 warps poll as blocks of a grid do"), missing


def test_blocks_in_a_fifth_loop_of_their_grid_are_told_to_poll(tmp_path):
    """Four are looked at: who is in another one has come all the same, so that nobody is accused."""
    cubin, end = with_loops(tmp_path / "five-sm_90.cubin", 4, "reduce", WORKSPACE)
    kernel = {**REDUCE, "cubin": cubin}
    pitch = len(WORKSPACE) + REDUCE["end"] - REDUCE["loop"]
    loops = [REDUCE["loop"], *(end + len(WORKSPACE) + i * pitch for i in range(4))]
    in_loops = [line for b in range(5) for line in poll(b, kernel, pc=loops[b])]
    with Grid([0, 1, 2, 3, 4], *in_loops, gone(5, 3), kernel=kernel) as s:
        first, second = s.why(), s.twice()
    for doc in (first, second):
        wait, = grids(doc)
        assert (wait["has"], wait["expects"], wait["waves"]) == (5, 8, 4) and wait["candidates"], wait
        spin, = (w for w in doc["waits"] if w["kind"] == "spin")
        assert spin["object"]["address"] == wait["object"]["address"] and spin["workgroup"] == [4, 0, 0], spin
        assert not culprits(doc), doc["causes"]


def test_where_an_older_device_does_not_show_its_constants_nothing_is_said():
    with Grid([0, 1, 2, 3, 4, 6], *late(5, 7, pc=0x10), kernel=OLD_REDUCE) as s:
        doc = s.why()
    assert not grids(doc) and not culprits(doc) and not [w for w in doc["waits"] if w["kind"] == "spin"], doc
    assert {"reason": "the word that they poll, or what it is compared with, is not known", "waves": 6} in \
        [{"reason": u["reason"], "waves": u["waves"]} for u in doc["undecoded"]], doc["undecoded"]


@pytest.mark.parametrize("pc", range(REDUCE["loop"], REDUCE["end"], 16))
def test_who_has_come_and_who_has_not(pc):
    """Wherever in the loop the first block is."""
    with Grid([0, 1, 2, 3, 4, 6], *late(5, 7), *poll(0, pc=pc)) as s:
        doc = s.why()
    wait, = grids(doc)
    assert (wait["has"], wait["expects"], wait["waves"], wait["missing_count"]) == (6, 8, 6, 2), wait
    assert wait["who"] == "block (0,0,0) of reduce and 5 more" and wait["confidence"] == "inferred" and "candidates" not in wait, wait
    assert wait["object"] == {"address": hex(SPACE + 4), "bytes": 4, "value": "0x7ffffffe"}, wait
    assert wait["condition"] == {"op": "ne", "value": "0x0", "mask": "0x80000000"}, wait
    assert [party["ref"]["workgroup"] for party in wait["missing"]] == [[5, 0, 0], [7, 0, 0]], wait
    assert all("at reduce+0x2f0 (grid.cu:12)" in party["what"] and party["state"] == "runs" for party in wait["missing"]), wait
    assert {"what": "blocks of the grid", "value": "8 x 1 x 1"} in wait["evidence"], wait
    assert {"what": "block (0,0,0), by the word", "value": "has come"} in wait["evidence"], wait
    assert not [w for w in doc["waits"] if w["kind"] == "spin"] and not culprits(doc) and doc["complete"], doc
    barrier = [w for w in doc["waits"] if w["kind"] == "barrier"][-1]
    assert sum(w["alike"] for w in doc["waits"] if w["kind"] == "barrier") == 6, doc
    assert pc != REDUCE["loop"] or "lane 0 of warp 0 of block (0,0,0) of reduce, which waits at reduce+0x6" in barrier["text"], barrier
    kinds = {(doc["nodes"][e["from"]]["kind"], doc["nodes"][e["to"]]["kind"]) for e in doc["edges"]}
    assert kinds == {("workgroup", "dispatch"), ("dispatch", "wave")}, doc["edges"]


@pytest.mark.parametrize("come, first, phase", [(1, False, 0), (1, False, 0x80000000), (7, False, 0), (1, True, 0x80000000)])
def test_the_word_is_counted_with_and_without_the_first_block(come, first, phase):
    blocks = range(come) if first else range(1, come + 1)
    with Grid([*blocks], *late(*set(range(8)) - {*blocks}), value=word(come, first=first, phase=phase),
              old=phase) as s:
        wait, = grids(s.why())
    assert (wait["has"], wait["expects"]) == (come, 8) and "candidates" not in wait, wait
    assert {"what": "block (0,0,0), by the word", "value": "has come" if first else "has not come"} in wait["evidence"], wait


def test_blocks_that_are_not_there_are_the_cause_when_none_comes():
    """One sample accuses nobody, nor do two right after each other."""
    with Grid([0, 1, 2, 3, 4, 7], gone(5, 2)) as s:
        first = s.why()
        soon = s.why(since=first["sample"])
        for doc in (first, soon):
            assert not culprits(doc) and "stuck" not in grids(doc)[0], doc
        doc = s.twice()
        shown = s.ctl("why", s.app.pid, "--twice=1100")
    cause, = culprits(doc)
    assert cause["text"] == "2 of 8 blocks of reduce are not there: (5,0,0), (6,0,0); ended without coming, or never started", cause
    assert cause["confidence"] == "inferred" and cause["end"] == "gone" and grids(doc)[0]["stuck"], doc
    assert shown.returncode == 10 and shown.stdout.startswith("CAUSE  2 of 8 blocks of reduce are not there"), shown.stdout


def test_blocks_are_named_by_their_place_in_the_grid():
    with Grid(range(6), gone(6, 6), blocks=12, grid="3,2,2") as s:
        wait, = grids(s.why())
    text = wait["missing"][0]["what"]
    assert text.startswith("6 of 12 blocks of reduce are not there: (0,0,1), (1,0,1), (2,0,1), (0,1,1) and 2 more;"), text
    assert {"what": "blocks of the grid", "value": "3 x 2 x 2"} in wait["evidence"], wait


def test_a_grid_that_is_larger_than_the_device_lacks_the_rest():
    with Grid(range(6), blocks=11, sms="sms=6 warps=8") as s:
        doc = s.twice()
    cause, = culprits(doc)
    assert cause["text"].startswith("5 of 11 blocks of reduce are not there: (6,0,0), (7,0,0), (8,0,0), (9,0,0) and 1 more;"), cause


@pytest.mark.parametrize("script, between", [
    # One more has come, or all have, and the barrier has opened; or a block was there until now.
    ([gone(6)], memory(word(7))), ([gone(6)], memory(word(0, first=False, phase=0x80000000))), (late(6), gone(6))],
    ids=["more", "all", "ended"])
def test_nobody_is_accused_where_something_has_moved(script, between):
    with Grid([0, 1, 2, 3, 4, 7], gone(5), *script) as s:
        doc = s.twice([between])
    assert not culprits(doc) and not any(w.get("stuck") for w in doc["waits"]), doc


@pytest.mark.parametrize("value", [word(5), word(7), word(6, first=False)])
def test_nobody_is_accused_where_the_word_says_something_else(value):
    """Blocks may arrive and wait later, and those in the loop may be about to leave it."""
    with Grid([0, 1, 2, 3, 4, 7], gone(5), *late(6), value=value) as s:
        doc = s.twice()
    wait, = grids(doc)
    assert wait["has"] == (7 if value == word(7) else 5 if value == word(5) else 6), wait
    if wait["has"] != 6:
        assert wait["candidates"] and all(e["any"] for e in doc["edges"] if doc["nodes"][e["from"]]["kind"] == "dispatch"), doc
        assert not culprits(doc), doc


def test_a_block_that_has_stopped_is_no_cause_where_it_may_have_come():
    stopped = [*late(7), f"gpu raise 0 7 3 {ILLEGAL_ADDRESS} errorpc={REDUCE['work']:#x}"]
    with Grid(range(7), *stopped) as s:
        doc = s.why()
        assert culprits(doc)[0]["text"].startswith("warp 3 of block (7,0,0) of reduce, at reduce+0x2f0 (grid.cu:12), has stopped"), doc
        assert grids(doc)[0]["stuck"], doc
    # Of two that do not poll, one has come: which one is not known.
    with Grid(range(6), gone(6), f"gpu warp 0 7 0 warps=8 pc={APART['work']:#x}",
              f"gpu raise 0 7 3 {ILLEGAL_ADDRESS} errorpc={APART['work']:#x}", kernel=APART, value=word(7)) as s:
        doc = s.twice()
    assert grids(doc)[0]["has"] == 7 and grids(doc)[0]["candidates"] and not grids(doc)[0].get("stuck"), doc


def test_places_of_one_launch_are_one_wait():
    """Some blocks are at the second place already: the word has changed since."""
    with Grid([0, 1], *late(4, 5, 6, 7, pc=APART["work"]), *poll(2, AGAIN), *poll(3, AGAIN), kernel=APART, value=word(4)) as s:
        doc = s.why()
    wait, = grids(doc)
    assert (wait["has"], wait["waves"], wait["missing_count"]) == (4, 4, 4), wait
    assert wait["who"] == "block (0,0,0) of reduce_apart and 3 more", wait


def test_blocks_that_leave_are_not_told():
    """The word has changed since they came."""
    with Grid([0, 1, 2], *late(3, 4, 5, 6, 7), value=word(0, first=False, phase=0x80000000)) as s:
        doc = s.why()
    assert not grids(doc) and not [w for w in doc["waits"] if w["kind"] == "spin"], doc


@pytest.mark.parametrize("come, grid", [(range(8), OWN), ([0, 3], OWN)])
def test_a_barrier_of_the_program_s_own_is_a_word_that_is_polled(come, grid):
    """The same algorithm, at the same offset behind the same registers, in a kernel that has synchronised its grid."""
    with Grid([*come], *late(*set(range(8)) - {*come}), kernel=grid, value=0x7FFFFFFF) as s:
        doc = s.twice()
    spin, = [w for w in doc["waits"] if w["kind"] == "spin"]
    assert spin["object"]["address"] == hex(SPACE + 4) and not grids(doc) and not culprits(doc), doc


@pytest.mark.parametrize("value", [0, 8, 0x7FFFFFF8, 0x40000000])
def test_a_word_that_is_never_so_is_one_that_is_polled(value):
    with Grid([0, 1], *late(2, 3, 4, 5, 6, 7), value=value) as s:
        doc = s.twice()
    spin, = [w for w in doc["waits"] if w["kind"] == "spin"]
    assert spin["object"]["value"] == hex(value) and not grids(doc) and not culprits(doc), doc


def test_where_the_word_cannot_be_read_nobody_is_accused():
    """Who polls has come, and of others that is not known."""
    with Grid([], *poll(0, space=0x7F0000000000), *late(*range(1, 7)), gone(7),
              f"gpu raise 0 6 3 {ILLEGAL_ADDRESS} errorpc={REDUCE['work']:#x}") as s:
        doc = s.twice()
    wait, = grids(doc)
    assert "value" not in wait["object"] and "has" not in wait and wait["expects"] == 8 and wait["candidates"], wait
    assert wait["confidence"] == "unknown" and wait["missing_count"] == 7 and not wait.get("stuck"), wait
    assert not [c for c in culprits(doc) if "stopped" not in c["text"]], doc


@pytest.mark.parametrize("seed", range(6))
def test_nobody_is_accused_in_a_grid_that_goes_on(seed):
    """Some have come, and all others are on their way."""
    r = random.Random(seed)
    come = sorted(r.sample(range(8), r.randint(1, 7)))
    with Grid(come, *late(*set(range(8)) - {*come}, pc=r.choice([REDUCE["work"], REDUCE["before"]]))) as s:
        shown = s.ctl("why", s.app.pid, "--twice=1100")
    assert shown.returncode == 0 and "CAUSE" not in shown.stdout and "STUCK" not in shown.stdout, shown.stdout


def test_a_core_says_the_same(tmp_path):
    core = tmp_path / "core"
    with CudaScene(app=None) as s:
        s.app = s.start("app", [BIN / "gpu-agent-cuda-simapp", "--scene", "exited-before-grid"], env={"LD_LIBRARY_PATH": str(s.libraries)})
        s.app.wait_line()
        live = json.loads(s.ctl("why", s.app.pid, "-j").stdout)
        dumped = s.ctl("dump", s.app.pid, "-o", core, "--full", "--max-stop=60s")
        assert dumped.returncode in (0, 8), dumped.stderr
        of_core = json.loads(s.ctl("why", "--core", core, "-j").stdout)
    (one,), (other,) = grids(live), grids(of_core)
    # Its memory is in no core of the simulator.
    assert (one["has"], one["expects"], other["expects"]) == (7, 8, 8) and "has" not in other, other
    assert one["missing"] == other["missing"] and other["candidates"], (one, other)
