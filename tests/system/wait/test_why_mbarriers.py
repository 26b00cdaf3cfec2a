#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Barriers in shared memory of NVIDIA's devices: what is told of them, and that what moves or may come accuses nobody."""
import json
import os
import random
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest

from harness import ROOT
from waitscene import CudaWaitScene, culprits

CUBIN = ROOT / "sim/scenes/cuda/pipeline-sm_90.cubin"
ALL = 1 << 20
# Where the loading warp, those that hand tiles out and those that compute wait, with the registers of address and phase.
LOAD, RING, FULL = (0xB40, 9, 6), (0xB00, 10, 5), (0xAC0, 9, 8)
COMPUTES = 0x400
EMPTY_AT, FULL_AT, RING_AT = 0x700, 0x730, 0x760


def word(phase, expected, pending, tx=0):
    """An object as the device writes it."""
    return (phase << 63 | (ALL - pending) % ALL << 43 | (tx & 0x3FFFFF) << 21 | (ALL - expected) % ALL << 1).to_bytes(8, "little").hex()


def at(where, address, parity, warps, blocks=2):
    """Commands by which warps wait for an object, in each block."""
    pc, base, phase = where
    first, n = warps
    return [f"gpu warp 0 0 {first} sms={blocks} warps={n} pc={pc:#x}",
            f"gpu register 0 0 {first} 0 {base} {address:#x} sms={blocks} warps={n}",
            f"gpu register 0 0 {first} 0 {phase} {parity << 31:#x} sms={blocks} warps={n}"]


def shared(address, value, blocks=2):
    return [f"gpu memory shared 0 0 0 {address:#x} hex={value} sms={blocks}"]


def gone(warps, blocks=2):
    return [f"gpu warp 0 0 {warps[0]} sms={blocks} warps={warps[1]} valid=0"]


def retired(empty=word(0, 1, 1), ring=word(1, 12, 8), exits=7, blocks=2, **kwargs):
    """Warps 5 to 11 have exited, and all others wait."""
    return (at(LOAD, EMPTY_AT, 0, (0, 1), blocks) + at(RING, RING_AT, 1, (1, 4), blocks) + shared(EMPTY_AT, empty, blocks) +
            shared(RING_AT, ring, blocks) + gone((12 - exits, exits), blocks) * (exits > 0))


class Pipeline(CudaWaitScene):
    """Blocks of grouped_gemm, in clusters of two, whose warps compute where the script says nothing else."""

    def __init__(self, script, blocks=2, cluster=2, cubin=CUBIN, **kwargs):
        super().__init__(app=None, **kwargs)
        self.script, self.blocks, self.cluster, self.cubin = script, blocks, cluster, cubin

    def __enter__(self):
        super().__enter__()
        lines = [f"init; gpu devices 1 sms=132 warps=64; context 0; module {self.cubin}",
                 f"gpu launch grouped_gemm grid={self.blocks} block=384 cluster={self.cluster} shared=2048 pc={COMPUTES:#x}", *self.script]
        self.app = self.start_app("; ".join(lines) + "; listen")
        return self


def evidence(wait):
    return {e["what"]: e["value"] for e in wait["evidence"]}


def test_one_lane_of_a_warp_that_waits_is_told_as_one():
    """The others of its warp are elsewhere: the warp does not wait."""
    script = [f"gpu warp 0 0 0 sms=2 pc={LOAD[0]:#x} active=1", f"gpu register 0 0 0 0 {LOAD[1]} {EMPTY_AT:#x} sms=2",
              f"gpu register 0 0 0 0 {LOAD[2]} 0 sms=2"]
    with Pipeline(at(RING, RING_AT, 1, (1, 4)) + script + shared(EMPTY_AT, word(0, 1, 1)) + shared(RING_AT, word(1, 12, 8))) as s:
        doc = s.twice()
    one, = (w for w in doc["waits"] if w["object"]["address"] == hex(EMPTY_AT))
    assert one["who"] == "lane 0 of warp 0 of block (0,0,0) of grouped_gemm", one
    assert one["text"].startswith(f"{one['who']} waits on mbarrier 0x700 (phase 0)") and not culprits(doc), one


def test_an_object_is_told_with_what_it_is_known_by():
    with Pipeline(retired()) as s:
        doc = s.twice()
    by_who = {w["who"]: w for w in doc["waits"]}
    load, ring = by_who["warp 0 of block (0,0,0) of grouped_gemm"], by_who["warps 1-4 of block (0,0,0) of grouped_gemm"]
    assert load["kind"] == "mbarrier" and load["alike"] == 2 and load["waves"] == 2 and load["stuck"], load
    assert load["object"] == {"address": "0x700", "bytes": 8, "value": "0x7ffff800001ffffe"}, load
    assert load["condition"] == {"op": "ne", "value": "0x0", "mask": "0x8000000000000000"}, load
    assert (load["has"], load["expects"], load["at"]["instruction"]) == (0, 1, "SYNCS.PHASECHK.TRYWAIT"), load
    assert evidence(load)["parity waited for"] == "0" and evidence(load)["arrivals pending"] == "1 of 1", load
    assert evidence(load)["instruction"].startswith("a775000906") and evidence(load)["bytes of copies pending"] == "0", load
    assert (ring["has"], ring["expects"], ring["waves"], ring["confidence"]) == (4, 12, 8, "inferred"), ring
    assert ring["condition"]["value"] == "0x8000000000000000", ring
    assert [c["end"] for c in culprits(doc)] == ["gone"] and doc["complete"], doc["causes"]


def test_whoever_looks_at_the_answer_waits_as_well():
    """The branch behind the wait, which leads back to it."""
    with Pipeline(retired() + [f"gpu warp 0 0 0 sms=2 pc={LOAD[0] + 16:#x}"]) as s:
        doc = s.twice()
    assert culprits(doc) and "warp 0 waits on mbarrier 0x700" in culprits(doc)[0]["text"], doc["causes"]


CHANGES = {
    "phase": f"memory shared 0 0 0 {EMPTY_AT:#x} hex={word(1, 1, 1)}",
    "arrival": f"memory shared 0 0 0 {RING_AT:#x} hex={word(1, 12, 7)}",
    "other-block": f"memory shared 0 1 0 {RING_AT:#x} hex={word(1, 12, 7)}",
    "copy": f"memory shared 0 0 0 {EMPTY_AT:#x} hex={word(0, 1, 1, 4096)}",
    "parity": "register 0 0 0 0 6 0x80000000",
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_moves_between_the_samples_accuses_nobody(change):
    with Pipeline(retired()) as s:
        doc = s.twice([CHANGES[change]])
    assert not culprits(doc) and not doc.get("stuck"), doc["causes"]


def test_who_exits_between_the_samples_may_have_arrived():
    with Pipeline(retired(exits=6)) as s:
        doc = s.twice(["warp 0 0 5 sms=2 warps=1 valid=0"])
    assert not culprits(doc), doc["causes"]


MAY_COME = {
    "warp": ["gpu warp 0 0 4 pc=0x400"],
    "cluster": ["gpu warp 0 1 4 pc=0x400"],
    "copy-alone": shared(EMPTY_AT, word(0, 1, 0, 2048)),
    "early-copy": shared(RING_AT, word(1, 12, 8, -16)),
}


@pytest.mark.parametrize("who", MAY_COME)
def test_who_may_come_is_waited_for(who):
    """Also in the same place in both samples: it is not known what such a warp does."""
    with Pipeline(retired() + MAY_COME[who]) as s:
        doc = s.twice()
        text = s.ctl("why", s.app.pid, "--twice=1050").stdout
    assert not culprits(doc) and "CAUSE" not in text, (doc["causes"], text)


@pytest.mark.parametrize("cluster,others", [(1, []), (2, ["warps of the other block of its cluster"]),
                                            (4, ["warps of the other blocks of its cluster"])])
def test_other_blocks_of_the_cluster_may_arrive(cluster, others):
    with Pipeline(retired(exits=0, blocks=4), blocks=4, cluster=cluster) as s:
        doc = s.twice()
    assert len(doc["waits"]) == 2 and not culprits(doc), doc["waits"]
    for wait in doc["waits"]:
        said = wait["missing"]
        assert wait["candidates"] and [m["what"] for m in said if "cluster" in m["what"]] == others, said
        assert others == [] or said[0] == {"what": others[0], "state": "unknown"}, said


def test_who_waits_at_the_barrier_of_the_block_is_nobody_who_comes():
    with Pipeline(retired() + ["gpu warp 0 0 4 sms=2 pc=0x2c0"]) as s:
        doc = s.twice()
    assert "warps 1-3 wait on mbarrier 0x760" in culprits(doc)[0]["text"] and culprits(doc)[0]["waits"] == 3, doc["causes"]


def test_a_block_of_another_cluster_is_nobody_who_may_come():
    with Pipeline(retired(blocks=2), blocks=4) as s:
        doc = s.twice()
    assert "block (0,0,0) of grouped_gemm and 1 more" in culprits(doc)[0]["text"], doc["causes"]


NO_OBJECTS = {
    "zero": "00" * 8, "ones": "ff" * 8, "floats": "0000803f0000803f", "pointer": (0x7F5C00000000).to_bytes(8, "little").hex(),
    "nobody": word(0, 0, 0), "too-few": word(0, 1, 2), "ending": word(0, 4, 0),
    "too-many": word(0, 16385, 1), "too-large": word(0, 1, 1, 1 << 20),
}


@pytest.mark.parametrize("value", NO_OBJECTS)
def test_what_is_no_object_accuses_nobody(value):
    with Pipeline(retired(empty=NO_OBJECTS[value])) as s:
        doc = s.twice()
    assert not culprits(doc) and not doc["complete"], doc
    assert [u for u in doc["undecoded"] if "mbarrier" in u["reason"]] == [{"reason": doc["undecoded"][0]["reason"], "waves": 2}], doc


@pytest.mark.parametrize("address", [0x704, 0xFFFFF8, 0x500])
def test_what_cannot_be_read_is_said(address):
    """Not a multiple of 8; and where the block has no memory."""
    with Pipeline(retired() + [f"gpu register 0 0 0 0 {LOAD[1]} {address:#x} sms=2"]) as s:
        doc = s.twice()
    assert not culprits(doc) and not doc["complete"], doc
    assert any("mbarrier that they wait for could not be read" in m for m in doc["missing"]), doc["missing"]


def test_the_number_of_the_block_in_its_cluster_is_no_part_of_the_place():
    with Pipeline(retired() + [f"gpu register 0 1 0 0 {LOAD[1]} {0x01000000 | EMPTY_AT:#x}"]) as s:
        doc = s.twice()
    assert culprits(doc) and {w["object"]["address"] for w in doc["waits"]} == {"0x700", "0x760"}, doc


def test_copies_that_arrive_by_themselves_may_come(tmp_path):
    """The kernel has an ARRIVES.LDGSTSBAR."""
    nop, arrives = (0x00007918).to_bytes(8, "little"), (0x00000800FF0079B0).to_bytes(8, "little")
    code = CUBIN.read_bytes()
    assert nop in code
    cubin = tmp_path / "copies.cubin"
    cubin.write_bytes(code.replace(nop, arrives))
    with Pipeline(retired(), cubin=cubin) as s:
        doc = s.twice()
    assert not culprits(doc) and doc["waits"], doc


@pytest.mark.parametrize("expected, tx, words", [(32, 4096, "all 32 arrivals have come, and 4096 bytes of copies have not"),
                                                 (1, 16, "the one arrival has come, and 16 bytes of copies have not")])
def test_only_copies_are_missing(expected, tx, words):
    with Pipeline(retired(empty=word(0, expected, 0, tx))) as s:
        texts = [w["text"] for w in s.twice()["waits"] if w["object"]["address"] == hex(EMPTY_AT)]
    assert len(texts) == 1 and f": {words}" in texts[0] and " of " + str(expected) not in texts[0], texts


def test_more_than_are_read_are_said_to_be_missing():
    with Pipeline(retired(blocks=40), blocks=40) as s:
        doc = s.twice()
    assert any(m.startswith("barriers in memory and of clusters: 72 warps") for m in doc["missing"]), doc["missing"]
    assert "block (0,0,0) of grouped_gemm and 23 more: " in culprits(doc)[0]["text"], doc["causes"]


def pipeline(r, blocks):
    """A healthy pipeline at any moment: somebody computes, or a copy is under way, in each cluster."""
    script = []
    for sm in range(0, blocks, 2):
        for block in (sm, sm + 1):
            busy = r.randrange(12) if block == sm and r.random() < 0.7 else None
            tx = 0 if busy is not None else r.choice([16, 4096, 65536])
            first = r.randrange(12)
            for warp in range(12):
                if warp == busy:
                    continue
                if warp >= first and r.random() < 0.3 and warp > 5:
                    script.append(f"gpu warp 0 {block} {warp} valid=0")
                    continue
                pc, base, phase = LOAD if warp == 0 else RING if warp < 5 else FULL
                address = EMPTY_AT if warp == 0 else RING_AT if warp < 5 else FULL_AT
                script += [f"gpu warp 0 {block} {warp} pc={pc:#x}", f"gpu register 0 {block} {warp} 0 {base} {address:#x}",
                           f"gpu register 0 {block} {warp} 0 {phase} 0"]
            pending = r.randint(1, 12)
            script += [f"gpu memory shared 0 {block} 0 {EMPTY_AT:#x} hex={word(r.randint(0, 1) if tx == 0 else 0, 1, 1, tx)}",
                       f"gpu memory shared 0 {block} 0 {FULL_AT:#x} hex={word(0, 32, r.randint(1, 32), tx)}",
                       f"gpu memory shared 0 {block} 0 {RING_AT:#x} hex={word(0, 12, pending, tx)}"]
    return script


@pytest.mark.parametrize("seed", range(20))
def test_a_healthy_pipeline_accuses_nobody(seed):
    r = random.Random(seed)
    blocks = 2 * r.randint(1, 4)
    script = pipeline(r, blocks)
    # A step of one warp, or none: by chance a pipeline may look the same twice.
    step = r.choice([[], [f"memory shared 0 0 0 {RING_AT:#x} hex={word(1, 12, 12)}"], ["warp 0 0 0 pc=0x990"]])
    with Pipeline(script, blocks) as s:
        doc = s.twice(step)
    assert not culprits(doc) and not doc.get("stuck"), doc["causes"]


def test_a_core_tells_the_same(tmp_path):
    """Shared memory of a block begins at 0, there as well."""
    core = tmp_path / "core"
    with Pipeline(["gpu memory shared 0 0 0 0 size=2048 sms=2"] + retired()) as s:
        live = s.rpc.call("why.get", session=s.attach())
        dumped = s.ctl("dump", s.app.pid, "-o", core, "--max-stop=60s")
        assert dumped.returncode in (0, 8), dumped.stderr
        shown = s.ctl("why", "--core", core, "-j")
    of_core = json.loads(shown.stdout)
    told = [[(w["who"], w["kind"], w["object"], w["has"], w["expects"], w["alike"]) for w in doc["waits"]] for doc in (live, of_core)]
    assert {w[1] for w in told[0]} == {"mbarrier"} and told[0] == told[1], told
    # Of one moment nothing is known to stand still.
    assert not culprits(of_core), of_core["causes"]
