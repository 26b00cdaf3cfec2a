#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Barriers of clusters of NVIDIA's devices: who is missing there, and that who may have come, or has exited, accuses nobody."""
import json
import os
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest

from harness import ROOT
from waitscene import CudaWaitScene, culprits

CUBIN = ROOT / "sim/scenes/cuda/clusters-sm_90.cubin"
# Of halo: in work() and at its first wait.  Of halo_apart, which works between arrival and wait, likewise.
HALO, APART = {"work": 0x160, "wait": 0x210}, {"work": 0x290, "wait": 0x2F0}
# Of halo_block, whose warps meet before that.
BLOCK = {"work": 0xD0, "barrier": 0x1D0, "wait": 0x280}
ILLEGAL_ADDRESS = 14


class Clusters(CudaWaitScene):
    """Blocks of a kernel, in clusters of two, whose warps wait for their cluster where the script says nothing else."""

    def __init__(self, *script, kernel="halo", blocks=4, pc=HALO["wait"], cluster="cluster=2", cubin=CUBIN, **kwargs):
        super().__init__(app=None, **kwargs)
        self.script = [f"init; gpu devices 1 sms=132 warps=64; context 0; module {cubin}",
                       f"gpu launch {kernel} grid={blocks} block=256 {cluster} pc={pc:#x}", *script, "listen"]

    def __enter__(self):
        super().__enter__()
        self.app = self.start_app("; ".join(self.script))
        return self


def by_who(doc):
    return {w["who"]: w for w in doc["waits"]}


def late(block, warp=5, pc=HALO["work"]):
    return f"gpu warp 0 {block} {warp} pc={pc:#x}"


def test_the_warp_that_all_wait_for_is_told_of_each_block():
    with Clusters(late(1), f"gpu raise 0 1 5 {ILLEGAL_ADDRESS} errorpc={HALO['work']:#x}", blocks=2) as s:
        doc = s.twice()
        shown = s.ctl("why", s.app.pid, "--twice=1100")
    first, second = by_who(doc)["warps 0-7 of block (0,0,0) of halo"], by_who(doc)["warps 0-4,6-7 of block (1,0,0) of halo"]
    for wait, waves in ((first, 8), (second, 7)):
        assert (wait["kind"], wait["has"], wait["expects"], wait["waves"]) == ("cluster", 15, 16, waves), wait
        assert wait["at"]["instruction"] == "UCGABAR_WAIT" and wait["confidence"] == "inferred" and wait["stuck"], wait
        assert wait["missing_count"] == 1 and "candidates" not in wait, wait
        missing = wait["missing"][0]
        assert missing["state"] == "stopped" and missing["ref"]["workgroup"] == [1, 0, 0] and missing["ref"]["wave_in_group"] == 5, missing
        assert {"what": "blocks of the cluster", "value": "2 x 1 x 1"} in wait["evidence"], wait
    assert culprits(doc)[0]["text"].startswith("warp 5 of block (1,0,0) of halo, at halo+0x160") and doc["complete"], doc
    assert "wait at a barrier of the cluster, at halo+0x210: 15 of 16 have come; missing: warp 5 of block (1,0,0) of halo" in shown.stdout


def test_blocks_of_other_clusters_are_not_waited_for():
    """And blocks are alike only if their clusters are."""
    with Clusters(late(3), blocks=6) as s:
        doc = s.twice()
    together = by_who(doc)["warps 0-7 of block (0,0,0) of halo"]
    assert together["alike"] == 4 and together["confidence"] == "unknown" and not together.get("missing"), together
    waits = by_who(doc)["warps 0-7 of block (2,0,0) of halo"]
    assert waits["alike"] == 1 and [m["ref"]["workgroup"] for m in waits["missing"]] == [[3, 0, 0]], waits
    assert not culprits(doc), doc["causes"]


def test_the_warps_of_its_own_block_are_waited_for_as_well():
    with Clusters(late(0), late(1), blocks=2) as s:
        doc = s.twice()
    wait = by_who(doc)["warps 0-4,6-7 of block (0,0,0) of halo"]
    assert sorted(m["ref"]["workgroup"][0] for m in wait["missing"]) == [0, 1] and wait["has"] == 14, wait


def test_who_has_exited_is_not_waited_for():
    """PTX: the barrier is for all threads of the cluster that have not exited."""
    with Clusters("gpu warp 0 1 0 warps=8 valid=0", blocks=2) as s:
        doc = s.twice()
    wait = by_who(doc)["warps 0-7 of block (0,0,0) of halo"]
    assert wait["confidence"] == "unknown" and not wait.get("missing") and (wait["has"], wait["expects"]) == (8, 8), wait
    assert not culprits(doc), doc["causes"]


def test_who_may_have_come_before_is_a_candidate_and_never_accused():
    """The kernel works between arrival and wait: the one that has faulted may have arrived before."""
    with Clusters(late(1, pc=APART["work"]), f"gpu raise 0 1 5 {ILLEGAL_ADDRESS} errorpc={APART['work']:#x}", kernel="halo_apart",
                  pc=APART["wait"], blocks=2) as s:
        doc = s.twice()
    wait = by_who(doc)["warps 0-7 of block (0,0,0) of halo_apart"]
    assert wait["candidates"] and wait["missing"][0]["state"] == "stopped" and not wait.get("stuck"), wait
    assert f"missing may be: {wait['missing'][0]['what']}" in wait["text"], wait["text"]
    assert not [c for c in culprits(doc) if c.get("waits")], doc["causes"]


@pytest.mark.parametrize("instruction", ["a call by a register", "a jump"])
def test_code_elsewhere_may_have_come_as_well(instruction, tmp_path):
    nop, word = (0x7918).to_bytes(8, "little"), {"a call by a register": 0x7344, "a jump": 0x794A}[instruction].to_bytes(8, "little")
    code = CUBIN.read_bytes()
    assert nop in code
    cubin = tmp_path / "calls.cubin"
    cubin.write_bytes(code.replace(nop, word))
    with Clusters(late(1), cubin=cubin, blocks=2) as s:
        doc = s.twice()
    assert by_who(doc)["warps 0-7 of block (0,0,0) of halo"]["candidates"], doc["waits"]


def test_who_waits_elsewhere_leads_on():
    """A warp of the cluster's other block waits for its own block, where one has stopped."""
    with Clusters(f"gpu warp 0 1 0 warps=8 pc={BLOCK['barrier']:#x}", late(1, pc=BLOCK["work"]),
                  f"gpu raise 0 1 5 {ILLEGAL_ADDRESS} errorpc={BLOCK['work']:#x}", kernel="halo_block", pc=BLOCK["wait"], blocks=2) as s:
        doc = s.twice()
    cluster, barrier = by_who(doc)["warps 0-7 of block (0,0,0) of halo_block"], by_who(doc)["warps 0-4,6-7 of block (1,0,0) of halo_block"]
    assert (cluster["kind"], barrier["kind"], cluster["has"], cluster["expects"]) == ("cluster", "barrier", 8, 16), doc["waits"]
    assert cluster["missing_count"] == 8 and cluster["missing"][0]["state"] == "stopped", cluster
    assert cluster["missing"][1]["what"].endswith("waits itself") and cluster["missing"][1]["state"] == "unknown", cluster
    assert cluster["stuck"] and barrier["stuck"] and culprits(doc)[0]["waits"] == 2, doc["causes"]


def test_without_clusters_a_block_is_one_by_itself():
    with Clusters(late(1), blocks=2, cluster="") as s:
        doc = s.twice()
    alone, waits = by_who(doc)["warps 0-7 of block (0,0,0) of halo"], by_who(doc)["warps 0-4,6-7 of block (1,0,0) of halo"]
    assert alone["confidence"] == "unknown" and (waits["has"], waits["expects"]) == (7, 8), doc["waits"]


def test_a_cluster_of_unknown_size_is_said_to_be_missing():
    with Clusters(late(1), blocks=2) as s:
        session = s.attach()
        s.control("fail getGridInfo120 10 count=100000")
        doc = s.rpc.call("why.get", session=session)
    # Without the grid's facts warps have no numbers either.
    wait = by_who(doc)["warps of block (0,0,0) of halo"]
    assert wait["kind"] == "cluster" and wait["confidence"] == "unknown" and not wait.get("missing") and "has" not in wait, wait
    assert any(m.startswith("clusters: for whom blocks wait is not known in 2 waits") for m in doc["missing"]), doc["missing"]


def test_blocks_beyond_those_that_are_asked_for_are_said_to_be_missing():
    """The size of a cluster is asked for once for each of 1024 blocks that wait for one, and of the other 32 nothing is said."""
    with Clusters(late(1), late(131, 61), f"gpu raise 0 131 61 {ILLEGAL_ADDRESS} errorpc={HALO['work']:#x}", blocks=1056) as s:
        doc = s.twice()
    assert any(m.startswith("barriers in memory and of clusters: 255 warps stand at one that was not read") for m in doc["missing"]), doc
    waits = [w for w in doc["waits"] if w["kind"] == "cluster"]
    told = sum(w["alike"] for w in waits if w["confidence"] != "unknown" or "has" in w)
    assert not doc["complete"] and told == 1024, [(w["who"], w["alike"], w["confidence"]) for w in waits]
    # It is not known that block 1054 waits for the one with the warp that has stopped.
    assert not any(m["ref"]["workgroup"] == [1055, 0, 0] for w in waits for m in w.get("missing", [])), waits


def test_what_moves_between_the_samples_accuses_nobody():
    with Clusters(late(1), blocks=2) as s:
        doc = s.twice([f"warp 0 1 5 pc={HALO['work'] + 16:#x}"])
    assert not culprits(doc) and not any(w.get("stuck") for w in doc["waits"]), doc


def test_a_core_tells_the_same(tmp_path):
    core = tmp_path / "core"
    with Clusters(late(1), blocks=4) as s:
        live = s.rpc.call("why.get", session=s.attach())
        dumped = s.ctl("dump", s.app.pid, "-o", core, "--max-stop=60s")
        assert dumped.returncode in (0, 8), dumped.stderr
        shown = s.ctl("why", "--core", core, "-j")
    told = [[(w["who"], w["kind"], w["has"], w["expects"], w["alike"], w.get("missing_count")) for w in doc["waits"]]
            for doc in (live, json.loads(shown.stdout))]
    assert {w[1] for w in told[0]} == {"cluster"} and told[0] == told[1], told
