#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Grids of NVIDIA's devices that wait, by a barrier of the program's own, for blocks which are not on the device."""
import json
import os
import struct
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest

from harness import LONG_STOP, ROOT
from waitscene import CudaWaitScene, culprits

BARRIER = ROOT / "sim/scenes/cuda/spin/barrier-sm_90.cubin"
FLAGS = ROOT / "sim/scenes/cuda/flags-sm_90.cubin"
WORDS = 0x7F5C80000000
SEEN = "blocks of the grid that are not on the device"
# Blocks of the grid, and those that are there.
BLOCKS, THERE = 8, 5
# Of scan: where block 0 polls, with the WARPSYNC behind that and its barrier; where each other block does, and its barrier.
COLLECT, MET, COLLECTED, RELEASE, RELEASED = 0x260, 0x2B0, 0x2C0, 0x160, 0x1C0


def collecting(lanes):
    """Which lanes of block 0 poll: each the word of its block."""
    return [f"gpu warp 0 0 0 pc={COLLECT:#x} idle={MET:#x} active={lanes:#x}"]


def polled(sm, lane, address):
    return [f"gpu register 0 {sm} 0 {lane} 4 {address & 0xFFFFFFFF:#x}", f"gpu register 0 {sm} 0 {lane} 5 {address >> 32:#x}"]


def words(come):
    values = [0] + come * [1] + (BLOCKS - 1 - come) * [0]
    return [f"gpu memory global {WORDS:#x} hex={struct.pack(f'<{BLOCKS}I', *values).hex()}"]


def scan(lanes=0xE0, cubin=BARRIER, there=THERE):
    """A flag for each block: block 0 polls those of 5, 6 and 7, which are not there, and the others poll their own."""
    lines = [f"init; gpu devices 1 sms={there} warps=9; context 0; module {cubin}",
             f"gpu launch scan grid={BLOCKS} block=256 pc={RELEASED:#x} args=p:0,p:0,p:{WORDS:#x}", *words(there - 1),
             f"gpu warp 0 0 0 warps=8 pc={COLLECTED:#x}", *collecting(lanes)]
    lines += [line for lane in range(1, BLOCKS) for line in polled(0, lane, WORDS + 4 * lane)]
    for sm in range(1, there):
        lines += [f"gpu warp 0 {sm} 0 pc={RELEASE:#x} active=1", *polled(sm, 0, WORDS + 4 * sm)]
    return lines


def count(value=THERE, wanted=BLOCKS):
    """A count of all blocks: thread 0 of each polls it, and the others wait for that."""
    return [f"init; gpu devices 1 sms={THERE} warps=4; context 0; module {FLAGS}", f"gpu launch forward grid={BLOCKS} block=128 pc=0xf0",
            f"gpu memory global {WORDS:#x} hex={struct.pack('<I', value).hex()}", f"gpu warp 0 0 0 sms={THERE} pc=0x90 active=1",
            *[line for sm in range(THERE) for line in polled(sm, 0, WORDS)], f"gpu uniform 0 0 0 7 {wanted} sms={THERE}"]


class Absent(CudaWaitScene):
    def __init__(self, script):
        super().__init__(app=None)
        self.script = script

    def __enter__(self):
        super().__enter__()
        self.app = self.start_app("; ".join([*self.script, "listen"]))
        return self


def causes(script, between=()):
    with Absent(script) as s:
        doc = s.twice(between)
    assert doc["complete"], doc["missing"]
    return [c["text"] for c in culprits(doc)], doc


def test_flags_of_blocks_that_are_not_there():
    texts, doc = causes(scan())
    assert texts == ["3 of 8 blocks of scan are not on the device, and have not started or have ended: (5,0,0), (6,0,0), (7,0,0); "
                     "block (0,0,0) of scan polls as many words, at scan+0x260 (barrier.cu:9), and no block goes on: "
                     "if they do not fit, or have ended, the barrier never completes"], texts
    assert doc["causes"][0]["confidence"] == "inferred" and doc["causes"][0]["end"] == "gone", doc["causes"]
    assert all(w["stuck"] for w in doc["waits"]), doc["waits"]


def test_a_count_of_blocks_that_lacks_those_which_are_not_there():
    texts, _ = causes(count())
    assert len(texts) == 1 and "(7,0,0); the others poll a word that lacks as many, at forward+0x90 (flags.cu:9)" in texts[0], texts


def test_one_sample_accuses_nobody_and_says_how_many_are_not_there():
    with Absent(scan()) as s:
        doc = s.rpc.call("why.get", session=s.attach())
    spins = [w for w in doc["waits"] if w["kind"] == "spin"]
    assert len(spins) == 2 and all({"what": SEEN, "value": "3 of 8"} in w["evidence"] for w in spins), spins
    assert not culprits(doc) and not [n for n in doc["nodes"] if n["kind"] == "nobody"], doc


def test_a_core_says_the_same_as_one_sample(tmp_path):
    core = tmp_path / "core"
    with Absent(scan()) as s:
        dumped = s.ctl("dump", s.app.pid, "-o", core, LONG_STOP)
        assert dumped.returncode in (0, 8), dumped.stderr
        doc = json.loads(s.ctl("why", "--core", core, "-j").stdout)
    spins = [w for w in doc["waits"] if w["kind"] == "spin"]
    assert len(spins) == 2 and all({"what": SEEN, "value": "3 of 8"} in w["evidence"] for w in spins) and not culprits(doc), doc


def test_the_place_in_the_loop_is_no_progress():
    """All who poll go round, so that they are elsewhere in it; some lanes apart from the others."""
    texts, _ = causes(scan(), [f"warp 0 0 0 pc={COLLECT + 16:#x} idle={MET:#x} active=0xe0", f"warp 0 2 0 pc={RELEASE + 16:#x} active=1"])
    assert len(texts) == 1, texts


# Of a grid, its script and what changes between the samples, after which the numbers agree as well.
MOVES = {
    "one-has-come": (scan(0xF0), [line[4:] for line in (*words(4), *collecting(0xE0))]),
    "a-warp-of-another-block": (scan(), [f"warp 0 3 2 pc={COLLECTED:#x}"]),
    "lanes-of-another-block": (scan(), [f"warp 0 3 0 pc={RELEASE:#x} active=3"]),
    "stream-k-a-block-has-started": (count(), ["warp 0 4 0 warps=4 valid=0", "place 1 5 4", "warp 0 4 0 warps=4 pc=0xf0"]),
    "stream-k-a-block-has-ended": (scan(0xF0), ["warp 0 4 0 warps=8 valid=0"]),
    "one-more-is-counted": (count(THERE - 1), [f"memory global {WORDS:#x} hex={struct.pack('<I', THERE).hex()}"]),
    "another-kernel-has-ended": ([*scan(), "gpu launch scan grid=1 block=32 pc=0x100 at=2"], ["finish 2"]),
    "a-warp-has-come-to-its-barrier": ([*scan(), "gpu warp 0 2 3 pc=0x10"], [f"warp 0 2 3 pc={RELEASED:#x}"]),
}


@pytest.mark.parametrize("what", MOVES)
def test_who_goes_on_accuses_nobody(what):
    texts, doc = causes(*MOVES[what])
    assert not texts and not [w for w in doc["waits"] if w.get("stuck")], doc
    assert any(e["what"] == SEEN for w in doc["waits"] for e in w.get("evidence", [])), doc["waits"]


# The same of both samples, and what may be healthy for as long as it takes: a flag of the host, of another kernel, of one block.
MAY_LAST = {
    "another-kernel-is-there": [*scan(), "gpu launch scan grid=1 block=32 pc=0x100 at=2"],
    "a-block-works": [*scan(), "gpu warp 0 2 3 pc=0x10"],
    "flags-of-other-threads": [*scan(0x0E), *words(0), *[line for lane in range(1, 4) for line in polled(0, lane, WORDS + 4 * lane)]],
    "memory-of-the-host": [line.replace("memory global", "memory pinned") for line in scan()],
    "a-count-in-memory-of-the-host": [line.replace("memory global", "memory pinned") for line in count()],
    "fewer-flags": scan(0xC0),
    "more-flags": scan(0xF0),
    "one-flag": scan(0x80, there=7),
    "flags-of-two-blocks": [*scan(0xC0), f"gpu warp 0 4 0 pc={COLLECT:#x} idle={RELEASED:#x} active=1", *polled(4, 0, WORDS + 20)],
    "one-word-of-all-lanes": [*scan(), *[line for lane in range(5, 8) for line in polled(0, lane, WORDS + 20)]],
    "a-flag": count(0, 1),
    "a-step": count(6, 7),
    "a-count-of-others": count(THERE, BLOCKS + 1),
    "all-are-there": count(THERE, BLOCKS)[:1] + [line.replace("grid=8", "grid=5") for line in count()[1:]],
}


@pytest.mark.parametrize("what", MAY_LAST)
def test_who_may_be_healthy_is_not_accused(what):
    texts, doc = causes(MAY_LAST[what])
    assert not texts and not [w for w in doc["waits"] if w.get("stuck")], doc


@pytest.mark.parametrize("which", [(0,), (1,), (0, 1)], ids=["who-waits-for-it", "who-collects", "both"])
def test_a_word_of_the_system_may_be_given_by_the_host(tmp_path, which):
    """The same loads, but those that a volatile access makes: of those who wait for the others, of who collects, or of both."""
    code, scope = bytearray(BARRIER.read_bytes()), 0xF << 13
    load = struct.pack("<QQ", 0x404007980, 0xEA8000C10F900)
    places = [at for at in range(len(code)) if code.startswith(load, at)]
    assert len(places) == 2
    for at in (places[i] for i in which):
        code[at:at + 16] = struct.pack("<QQ", 0x404007980, (0xEA8000C10F900 & ~scope) | 10 << 13)
    cubin = tmp_path / "volatile.cubin"
    cubin.write_bytes(code)
    texts, doc = causes(scan(cubin=cubin))
    assert not texts and len([w for w in doc["waits"] if w["kind"] == "spin"]) == 2, doc


def test_a_word_that_was_not_read_accuses_nobody():
    with Absent([line for line in scan() if "memory global" not in line]) as s:
        doc = s.twice(())
    assert not culprits(doc) and len([w for w in doc["waits"] if w["kind"] == "spin"]) == 2, doc


def test_threads_poll_for_every_so_many_blocks():
    """Of more blocks than threads, thread 0 polls the word of block 32, and thread 1 that of block 33."""
    there = 32
    lines = [f"init; gpu devices 1 sms={there} warps=1; context 0; module {BARRIER}",
             f"gpu launch scan grid={there + 2} block=32 pc={RELEASED:#x} args=p:0,p:0,p:{WORDS:#x}",
             f"gpu memory global {WORDS:#x} hex={struct.pack('<34I', 0, *31 * [1], 0, 0).hex()}", *collecting(3)]
    lines += [line for lane in range(2) for line in polled(0, lane, WORDS + 4 * (there + lane))]
    for sm in range(1, there):
        lines += [f"gpu warp 0 {sm} 0 pc={RELEASE:#x} active=1", *polled(sm, 0, WORDS + 4 * sm)]
    texts, _ = causes(lines)
    assert len(texts) == 1 and "(32,0,0), (33,0,0)" in texts[0], texts
