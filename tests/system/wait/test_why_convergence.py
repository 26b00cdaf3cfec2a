#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Lanes that wait for lanes of their own warp, of which the hardware says who is blocked, and for whom."""
import json
import os
import sys
import time

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest

from harness import BIN, ROOT, CudaScene
from waitscene import culprits

# The first release whose driver tells the state of convergence barriers, one that does not, and the newest one.
TOLD, UNTOLD, NEWEST = "12.9", "12.4", "13.4"
CUBIN = ROOT / "sim/scenes/cuda/convergence/convergence-sm_90.cubin"
INVALID_DEVICE = 12
CIRCLE = ("a circle: lanes 1-31 of warp 0 of block (0,0,0) of merge, at merge+0x110 (convergence.cu:20), wait for lane 0 of warp 0 of "
          "block (0,0,0) of merge, at merge+0x1b0 (convergence.cu:14), which waits for the first")
# Sound states in which somebody goes on, or did when it was read.
GOES_ON = {"lane-0": {"lane0": "1"}, "the-others": {"others": "1"}, "all": {"lane0": "1", "others": "1"}, "one-sleeps": {"lane0": "3"}}
# States that contradict themselves, or the rest: who is blocked executes, or takes no part; states that no release has.
CONTRADICTIONS = {"executes": {"active": "1"}, "takes-no-part": {"all": "0xfffffffe"}, "nobody-takes-part": {"all": "0"},
                  "exited": {"lane0": "0"}, "unknown-state": {"others": "25"}, "not-filled-in": {"lane0": "0xffffffff"},
                  "blocked-at-no-barrier": {"lane0": "9"}}


class Lanes(CudaScene):
    """A scene of sim/scenes/cuda/convergence with parameters of its own."""

    def __init__(self, name, release=TOLD, **parameters):
        super().__init__(app=None, release=release)
        self.scene, self.parameters = name, parameters

    def __enter__(self):
        super().__enter__()
        sets = [word for pair in self.parameters.items() for word in ("--set", "=".join(pair))]
        self.app = self.start("app", [BIN / "gpu-agent-cuda-simapp", "--scene", self.scene, *sets],
                              env={"LD_LIBRARY_PATH": str(self.libraries)})
        self.app.wait_line()
        return self

    def why(self, **more):
        if not hasattr(self, "session"):
            self.session = self.attach()
        doc = self.rpc.call("why.get", session=self.session, **more)
        print(json.dumps(doc))
        return doc


def syncs(doc):
    return [w for w in doc["waits"] if w["kind"] == "warp_sync"]


def evidence(wait, what="convergence barriers"):
    return [e["value"] for e in wait["evidence"] if e["what"] == what]


def later(s, first):
    """A second sample, so long after the first that what is the same in both stands still."""
    time.sleep(1.1)
    return s.why(since=first["sample"])


@pytest.mark.parametrize("release", [TOLD, NEWEST])
def test_lanes_that_stay_at_two_barriers_of_their_warp_are_the_cause(release):
    """All have come, and none goes on: neither barrier opens."""
    with Lanes("two-barriers", release) as s:
        shown = s.ctl("why", s.app.pid, "--twice=1100")
        doc = later(s, s.why())
    lines = shown.stdout.splitlines()
    assert shown.returncode == 10 and lines[0] == f"CAUSE  {CIRCLE}  [proven]", shown.stdout
    assert [w["confidence"] for w in doc["waits"]] == ["proven", "proven"] and doc["complete"] and doc["stuck"], doc
    assert [evidence(w) for w in syncs(doc)] == [["blocked with lanes 0xffffffff"]] * 2, doc["waits"]


@pytest.mark.parametrize("release", [TOLD, NEWEST])
def test_one_sample_accuses_nobody(release):
    """Between the last that comes and the release of all, a warp that is well looks the same."""
    with Lanes("two-barriers", release) as s:
        shown = s.ctl("why", s.app.pid)
        first = s.why()
        soon = s.why(since=first["sample"])
    assert shown.returncode == 0 and shown.stdout.startswith("       no culprit found: 2 waits"), shown.stdout
    assert "proven" not in shown.stdout, shown.stdout
    for doc in (first, soon):
        assert not culprits(doc) and [w["confidence"] for w in doc["waits"]] == ["inferred", "inferred"], doc
        assert [evidence(w) for w in syncs(doc)] == [["blocked with lanes 0xffffffff"]] * 2, doc["waits"]


@pytest.mark.parametrize("change", ["b3=0x1", "b3=0xffffffff"])
def test_a_word_that_changed_between_the_samples_accuses_nobody(change):
    """The hardware did something for the warp meanwhile, be it elsewhere."""
    with Lanes("two-barriers") as s:
        first = s.why()
        s.control(f"convergence 0 0 0 1:8 0xfffffffe:8 active=0 collective=0xffffffff {change}")
        doc = later(s, first)
    assert not culprits(doc) and [w["confidence"] for w in syncs(doc)] == ["inferred", "inferred"], doc


def test_without_that_state_it_is_inferred():
    """An older driver has no such call, which is no gap, and nobody is accused."""
    with Lanes("two-barriers", UNTOLD) as s:
        shown = s.ctl("why", s.app.pid, "--twice=1100")
        doc = s.why()
        assert not s.state()["calls_of"].get("getCbuWarpState")
    assert shown.returncode == 0 and shown.stdout.startswith(f"MAYBE  {CIRCLE}  [inferred]"), shown.stdout
    assert [w["confidence"] for w in doc["waits"]] == ["inferred", "inferred"] and doc["complete"], doc
    assert not culprits(doc) and not any(evidence(w) for w in syncs(doc)), doc


def test_a_driver_that_refuses_is_told_once():
    with Lanes("two-barriers") as s:
        s.control(f"fail getCbuWarpState {INVALID_DEVICE} count=1000")
        doc = s.why()
    assert doc["missing"] == ["convergence barriers of 1 warp: the driver does not tell their state"], doc["missing"]
    assert [w["confidence"] for w in doc["waits"]] == ["inferred", "inferred"] and not culprits(doc), doc


@pytest.mark.parametrize("name", GOES_ON)
def test_whoever_may_go_on_is_accused_by_nobody(name):
    """Lanes that were let go are still at their barrier until they execute again."""
    with Lanes("two-barriers", **GOES_ON[name]) as s:
        first = s.why()
        doc = later(s, first)
    assert not culprits(first) and not culprits(doc), doc["causes"]
    assert [w["confidence"] for w in syncs(doc)] == ["inferred", "inferred"], doc["waits"]


@pytest.mark.parametrize("lane", [1, 2, 3])
def test_a_lane_that_goes_on_leaves_the_others_at_their_barrier(lane):
    with Lanes("two-barriers") as s:
        s.control(f"convergence 0 0 0 1:8 2:{lane} 0xfffffffc:8 active=0 collective=0xffffffff")
        doc = later(s, s.why())
    assert [evidence(w) for w in syncs(doc)] == [["blocked with lanes 0xffffffff"]] * 2, doc["waits"]
    assert [w for w in syncs(doc) if w["who"].startswith("lanes 2-31 of warp 0")], doc["waits"]
    assert not culprits(doc) and [w["confidence"] for w in syncs(doc)] == ["inferred", "inferred"], doc["waits"]


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_a_state_that_contradicts_itself_proves_nothing(name):
    with Lanes("two-barriers", **CONTRADICTIONS[name]) as s:
        doc = later(s, s.why())
    assert not culprits(doc) and not doc.get("stuck"), doc["causes"]
    assert {w["confidence"] for w in syncs(doc)} == {"unknown"}, doc["waits"]
    assert all(evidence(w) == ["what the driver tells of them contradicts itself"] for w in syncs(doc)), doc["waits"]


def test_a_lane_with_a_lock_waits_for_those_that_try_to_take_it():
    """It has left the loop and meets the others behind it: which lanes lack, and that they try to take the lock, is told."""
    with Lanes("held-lock") as s:
        doc = s.why()
        shown = s.ctl("why", s.app.pid)
    sync, = syncs(doc)
    assert sync["confidence"] == "proven" and sync["at"]["instruction"] == "BSYNC", sync
    assert sync["at"]["place"] == "push+0x130" and sync["who"].startswith("lane 0 of warp 0 of block (0,0,0) of push"), sync
    assert evidence(sync) == ["blocked at B1 for lanes 0xfffffffe"], sync
    missing, = sync["missing"]
    assert missing["what"].startswith("lanes 1-31 of warp 0 of block (0,0,0) of push, at push+0x110 ("), missing
    assert "try to take the lock in the word at 0x7f5c80000000 (value 0x1)" in missing["what"], missing
    # Who has the lock is in no memory: nobody is accused.
    assert [w["kind"] for w in doc["waits"] if w != sync] == ["lock"] and not culprits(doc), doc["waits"]
    ways = {(doc["nodes"][e["from"]]["kind"], doc["nodes"][e["to"]]["kind"], e["confidence"]) for e in doc["edges"]}
    assert ("lanes", "wave", "proven") in ways, doc["edges"]
    assert shown.returncode == 0 and "; missing: lanes 1-31 of warp 0" in shown.stdout, shown.stdout


@pytest.mark.parametrize("parameters", [{"word": "00000000"}, {"rest": "0x1a0"}, {"rest": "0x1a0", "lane0": "1"}, {"all": "1"},
                                        {"lane0": "9"}, {"lane0": "11"}, {"all": "0xfffffffe"}, {"lane0": "1"}, {"lane0": "2"}])
def test_lanes_that_come_one_after_the_other_wait_for_nobody_in_particular(parameters):
    """Divergence is nothing wrong as long as those that lack go on; and a state that contradicts itself is not believed."""
    with Lanes("held-lock", **parameters) as s:
        first = s.why()
        doc = s.why(since=first["sample"])
    assert not syncs(doc) and not culprits(doc) and not culprits(first), doc["waits"]


@pytest.mark.parametrize(("outer", "stuck"), [("6", False), ("3", True)])
def test_lanes_may_wait_where_two_ways_meet(outer, stuck):
    """Lane 0 waits at the inner place for lane 1, and that at the outer one: for lane 2, which goes on, or for lane 0."""
    with CudaScene(app=None, release=TOLD) as s:
        s.app = s.start_app(f"init; gpu devices 1 sms=132 warps=64; context 0; module {CUBIN}; gpu launch push grid=1 block=3 pc=0x160 "
                            "idle=0x130 active=4; gpu warp 0 0 0 apart=32; "
                            f"gpu convergence 0 0 0 1:10 2:9 4:1 b1=3 b0={outer}; listen")
        session = s.attach()
        first = s.rpc.call("why.get", session=session)
        time.sleep(1.1)
        doc = s.rpc.call("why.get", session=session, since=first["sample"])
    print(json.dumps(doc))
    assert len(syncs(doc)) == 2 * stuck and len(culprits(doc)) == stuck and not culprits(first), doc["waits"]
    if stuck:
        cause, = culprits(doc)
        assert cause["end"] == "circle" and cause["confidence"] == "proven", cause
        assert {w["at"]["place"] for w in syncs(doc)} == {"push+0x130", "push+0x150"}, doc["waits"]


def test_halves_that_meet_each_for_itself_accuse_nobody():
    """Which lanes have to come is in a register, and the hardware has one mask for all collective operations."""
    with CudaScene(app=None, release=TOLD) as s:
        s.app = s.start_app(f"init; gpu devices 1 sms=132 warps=64; context 0; module {CUBIN}; gpu launch merge grid=1 block=32 pc=0x240 "
                            "idle=0x290 active=1; gpu convergence 0 0 0 0xffffffff:8 active=0 collective=0xffffffff; listen")
        session = s.attach()
        first = s.rpc.call("why.get", session=session)
        time.sleep(1.1)
        doc = s.rpc.call("why.get", session=session, since=first["sample"])
    print(json.dumps(doc))
    assert [w["confidence"] for w in syncs(doc)] == ["proven", "proven"] and all(w["candidates"] for w in syncs(doc)), doc["waits"]
    assert not culprits(doc) and not [c for c in doc["causes"] if c["end"] == "circle"], doc["causes"]


@pytest.mark.parametrize("name", ["two-barriers", "held-lock"])
def test_a_core_has_it_too(name, tmp_path):
    path = tmp_path / "core"
    with Lanes(name) as s:
        live = s.why()
        assert s.ctl("dump", s.app.pid, "-o", path).returncode in (0, 8)
        shown = s.ctl("why", "--core", path, "-j")
    doc = json.loads(shown.stdout)
    print(shown.stdout, shown.stderr)
    assert [(w["kind"], w["confidence"], evidence(w)) for w in syncs(doc)] == \
        [(w["kind"], w["confidence"], evidence(w)) for w in syncs(live)], doc["waits"]
    circles, before = ([c["text"] for c in d["causes"] if c["end"] == "circle"] for d in (doc, live))
    assert circles == before and len(circles) == (name == "two-barriers") and not culprits(doc), doc["causes"]


def test_a_core_of_an_older_driver_has_none(tmp_path):
    path = tmp_path / "core"
    with Lanes("two-barriers", UNTOLD) as s:
        assert s.ctl("dump", s.app.pid, "-o", path).returncode in (0, 8)
        doc = json.loads(s.ctl("why", "--core", path, "-j").stdout)
    assert [w["confidence"] for w in syncs(doc)] == ["inferred", "inferred"] and not culprits(doc), doc["waits"]
