#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Named barriers and barriers of clusters of gfx12.5, from the words that are saved to what `why` says."""
import json
import os
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest

from demo import Traces
from harness import LONG_STOP, ROOT, Scene
from waitscene import culprits

CODE = ROOT / "sim/scenes/amd/barriers/barriers-gfx1250.co"
NAMED, CLUSTER = "stages+0x48", "halo+0x48"


def scene(kernel, waves, groups=1, group=4):
    size = 32 * group
    dispatch = f"dispatch 0 {kernel} {size * groups} {size}"
    return Scene(gpus="gfx1250", app=f"runtime ttmp; queues 1; load {CODE}; {dispatch}; waves 0 {waves}; spin")


def why(s, *args, status=0):
    shown = s.ctl("why", s.app.pid, *args)
    print(shown.stdout, shown.stderr)
    assert shown.returncode == status, shown.stdout
    return json.loads(s.ctl("why", s.app.pid, "-j").stdout), shown.stdout


def state(wait):
    return [e["value"] for e in wait["evidence"] if e["what"] == "barrier state"]


@pytest.mark.parametrize("banks", [0, 42, 63])
@pytest.mark.parametrize("number", [1, 2, 16])
def test_the_one_named_barrier_that_is_open_is_counted(number, banks):
    """Whatever the banks of the vector registers, which are saved above the pc."""
    with scene("stages", f"barrier 4 {NAMED} group=4 late=0x38 late-loop=16 named={number},4,3 banks={banks}") as s:
        doc, shown = why(s, "--twice=1050")
    (wait,) = doc["waits"]
    assert wait["kind"] == "named_barrier" and (wait["has"], wait["expects"]) == (3, 4), wait
    assert state(wait) == ["0x30041"] and wait["at"]["place"] == NAMED, wait
    assert [m["ref"]["wave_in_group"] for m in wait["missing"]] == [3] and "CAUSE" not in shown, wait


def test_several_that_are_open_are_not_counted():
    with scene("stages", f"barrier 4 {NAMED} group=4 late=0x38 late-loop=0 named=1,4,3 named=2,8,1") as s:
        doc, shown = why(s, "--twice=1050")
    (wait,) = doc["waits"]
    assert "expects" not in wait and "have come" not in wait["text"] and "CAUSE" not in shown, wait
    assert state(wait) == ["not known: not one named barrier alone is incomplete"], wait


def test_four_barriers_come_around_to_sixteen_numbers():
    words = " ".join(f"named={n},4,3" for n in (2, 6, 10, 14))
    with scene("stages", f"barrier 4 {NAMED} group=4 late=0x38 late-loop=16 {words}") as s:
        doc, _ = why(s)
    (wait,) = doc["waits"]
    assert (wait["has"], wait["expects"]) == (3, 4), wait


@pytest.mark.parametrize(("kernel", "place", "word"), [("stages", NAMED, "named=1,4,3"), ("halo", CLUSTER, "cluster=4,3")])
def test_who_is_through_waits_no_more(kernel, place, word):
    with scene(kernel, f"spin 4 {place} loop=0 group=4 {word} through=1") as s:
        doc, shown = why(s, "--twice=1050")
    assert not doc["waits"] and "CAUSE" not in shown, doc["waits"]


def test_outside_of_a_cluster_nobody_waits_for_one():
    with scene("halo", f"spin 4 {CLUSTER} loop=0 group=4") as s:
        doc, shown = why(s, "--twice=1050")
    assert not doc["waits"] and "CAUSE" not in shown, doc["waits"]


def test_who_is_late_for_a_cluster_is_not_accused():
    """Even where it has faulted: which workgroups a cluster has is not known."""
    with scene("halo", f"spin 12 {CLUSTER} loop=0 group=4 cluster=4,3 and memory 4 halo+0x80 group=4 workgroup=3,0,0 cluster=4,3", 4) as s:
        doc, shown = why(s, "--twice=1050")
    (wait,) = doc["waits"]
    assert wait["kind"] == "cluster" and (wait["has"], wait["expects"], wait["alike"]) == (3, 4, 3), wait
    assert not wait["missing"] and not culprits(doc) and "CAUSE" not in shown, doc["causes"]


def test_a_core_has_the_same_waits(tmp_path):
    core = tmp_path / "core"
    with scene("stages", f"spin 12 {NAMED} loop=0 group=4 gone=3 named=1,4,3 vgprs=1024 banks=21", 3) as s:
        live, _ = why(s)
        dumped = s.ctl("dump", s.app.pid, "-o", core, LONG_STOP)
        assert dumped.returncode in (0, 8), dumped.stderr
        of_core = json.loads(s.ctl("why", "--core", core, "-j").stdout)
        shown = json.loads(s.ctl("analyze", core, "-j").stdout)
    told = [[(w["who"], w["at"]["place"], w["alike"], w["has"], w["expects"], w["missing_count"], state(w)) for w in doc["waits"]]
            for doc in (live, of_core)]
    assert told[0] and told[0] == told[1] and not culprits(of_core), told
    assert [d["arch"] for d in shown["devices"]] == ["gfx1250"] and sum(g["waves"] for g in shown["groups"]) == 9, shown


def test_the_demo_starts_the_device_of_the_scene():
    with Traces() as t:
        run = t.demo("--scene", "ended-at-named", "why", "PID", "--twice=1100")
        assert run.returncode == 10 and run.stdout.startswith("CAUSE  wave 3 of workgroup (0,0,0) of stages, which has ended"), run
        t.check()
