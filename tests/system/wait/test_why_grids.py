#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Workgroups that wait for all of their grid: who has come, who has not, and that nobody is accused who may come."""
import json
import os
import random
import re
import sys
import time

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest

from harness import ROOT, Scene

CODE = ROOT / "sim/scenes/amd/grid-gfx90a.co"
RECORD = 0x7F6000000000
# Wave 0 of each workgroup polls, and the others wait for it at the barrier behind the loop.
COME = "group=4 wave=0 early=0x20 late-loop=0 exec=1 s4=0 s5=0x7f60 s8=0xffff v0=0x20005 v1=0"

OTHER = "dispatch 1 reduce 256 256; waves 1 spin 1 reduce+0x50; packet 1 0 kernel; pending 1 1; "


def script(come, rest="", word=0x20027, groups=40, pointer=RECORD, then="", queues="1 0"):
    """A kernel of 40 workgroups, of which so many have come, and the rest is elsewhere."""
    more = f" and {rest}" if rest else ""
    return (f"runtime ttmp; idle; queues {queues}; load {CODE}; memory {RECORD:#x} l:0,i:0,i:1,l:0,l:0,i:{word:#x},i:0,i:{groups}; "
            f"dispatch 0 reduce 10240 256 args=p:0x7f6c00000000,p:0x7f6c40000000,i:1024,l:0,l:0,l:0,l:0,l:0,l:0,p:{pointer:#x}; "
            f"waves 0 barrier {4 * come} reduce+0x170 {COME}{more}; packet 0 0 kernel; pending 0 1; {then}spin")


class Grid(Scene):
    def __init__(self, *args, gpus="gfx90a", **kwargs):
        super().__init__(app=None, gpus=gpus)
        self.script = script(*args, **kwargs)

    def __enter__(self):
        super().__enter__()
        self.app = self.start_app(self.script)
        return self

    def why(self, *args):
        shown = self.ctl("why", self.app.pid, *args)
        print(shown.stdout, shown.stderr)
        return shown


def wait_of(doc, kind):
    (wait,) = (w for w in doc["waits"] if w["kind"] == kind)
    return wait


def second_look(s):
    """What the second of two samples says, a second apart, between which the program goes on."""
    session = s.attach()
    first = s.rpc.call("why.get", session=session)
    s.app.popen.stdin.write(b"\n")
    s.app.popen.stdin.flush()
    time.sleep(1.1)
    return s.rpc.call("why.get", session=session, since=first["sample"])


def test_who_has_come_and_who_has_not():
    with Grid(38, "spin 8 reduce+0x50 loop=0x24 group=4 workgroup=38,0,0", word=0x20026) as s:
        doc = json.loads(s.why("-j").stdout)
        wait = wait_of(doc, "grid")
        assert (wait["has"], wait["expects"], wait["waves"], wait["missing_count"]) == (38, 40, 38, 2), wait
        assert wait["who"] == "workgroup (0,0,0) of reduce and 37 more" and wait["confidence"] == "inferred", wait
        assert wait["object"] == {"address": hex(RECORD + 32), "bytes": 4, "value": "0x20026"}, wait
        assert [party["ref"]["workgroup"] for party in wait["missing"]] == [[38, 0, 0], [39, 0, 0]], wait
        # The loop that they are in is of two lines.
        assert all(re.search(r"\(grid\.hip:4[78]\)", party["what"]) and party["state"] == "runs" for party in wait["missing"]), wait
        barrier = wait_of(doc, "barrier")
        assert barrier["alike"] == 38 and "missing: wave 0 of workgroup (0,0,0) of reduce, at reduce+0x150 (grid.hip:24), " \
            "waits at a barrier of the grid" in barrier["text"], barrier
        kinds = {(doc["nodes"][e["from"]]["kind"], doc["nodes"][e["to"]]["kind"]) for e in doc["edges"]}
        assert kinds == {("workgroup", "dispatch"), ("dispatch", "wave")}, doc["edges"]
        assert s.why("--twice=1100").returncode == 0
        groups = s.ctl("snapshot", s.app.pid, "--why").stdout
        assert "a barrier of the grid" in groups, groups


def test_workgroups_that_are_not_there_are_the_cause_when_none_comes():
    with Grid(38, word=0x20026) as s:
        shown = s.why()
        assert shown.returncode == 0 and "CAUSE" not in shown.stdout, shown.stdout
        shown = s.why("--twice=1100")
        assert shown.returncode == 10 and shown.stdout.startswith(
            "CAUSE  2 of 40 workgroups of reduce are not there: ended without coming, or never started"), shown.stdout


@pytest.mark.parametrize("other", [
    # Another dispatch on the device: the workgroups may wait for its room.
    OTHER,
    # A wave of which it is not known what it works on.
    "waves 1 spin 1 reduce+0x50 packet=7; "], ids=["other", "unknown"])
def test_workgroups_that_may_still_start_are_not_the_cause(other):
    with Grid(38, word=0x20026, queues="2 0", then=other) as s:
        shown = s.why("--twice=1100")
        assert "CAUSE" not in shown.stdout and "2 of 40 workgroups of reduce are not there" in shown.stdout, shown.stdout


@pytest.mark.parametrize("samples", [1, 2])
def test_what_was_not_read_is_not_absent(samples):
    """Waves are not known, in the first sample or in both: those of another device, so that the grid is seen."""
    with Grid(38, word=0x20026, gpus="gfx90a,gfx90a", queues="2", then=OTHER) as s:
        assert "CAUSE" in s.why("--twice=1100").stdout
        s.control(f"fail-suspend gpu {s.target_state()['queues'][1]['gpu_id']} {samples}")
        shown = s.why("--twice=1100")
        assert "CAUSE" not in shown.stdout and "2 of 40 workgroups of reduce are not there" in shown.stdout, shown.stdout


@pytest.mark.parametrize("word", [0x20025, 0x20027, 0x20000])
def test_workgroups_are_not_the_cause_where_memory_says_something_else(word):
    with Grid(38, word=word) as s:
        shown = s.why("--twice=1100")
        assert "CAUSE" not in shown.stdout and f"{word & 0xffff} of 40 have come" in shown.stdout, shown.stdout


def test_a_workgroup_of_which_a_wave_has_stopped_in_the_loop_has_come():
    stopped = "memory 1 reduce+0x150 group=1 workgroup=38,0,0"
    with Grid(38, stopped, word=0x20027) as s:
        wait = wait_of(json.loads(s.why("-j").stdout), "grid")
        assert wait["missing_count"] == 1, wait
        assert [party["what"][:30] for party in wait["missing"]] == ["1 of 40 workgroups of reduce i"], wait


def test_who_waits_for_a_wave_of_its_own_workgroup_is_not_the_cause():
    late = "barrier 4 reduce+0xa0 group=4 workgroup=39,0,0 early=0x50 last=memory"
    with Grid(39, late) as s:
        shown = s.why()
        first = shown.stdout.splitlines()[0]
        assert shown.returncode == 10 and "CAUSE  wave 3 of workgroup (39,0,0) of reduce, at reduce+0x50 (grid.hip:48)" in first, first
        doc = json.loads(s.why("-j").stdout)
        assert [party["what"] for party in wait_of(doc, "grid")["missing"]] == ["workgroup (39,0,0) of reduce"], doc["waits"]


GWS = ROOT / "sim/scenes/amd/gws/gws-gfx90a.co"


class Gws(Scene):
    """A kernel of 8 workgroups that meet at a barrier which the device counts: so many stand at it, and the rest is elsewhere."""

    def __init__(self, come, rest="", at="early=0x10", then=""):
        super().__init__(app=None, gpus="gfx90a")
        more = f" and {rest}" if rest else ""
        self.script = (f"runtime ttmp; idle; queues 1; load {GWS}; dispatch 0 reduce 2048 256; "
                       f"waves 0 barrier {4 * come} reduce+0x50 group=4 wave=0 {at} late-loop=0{more}; "
                       f"packet 0 0 kernel; pending 0 1; {then}spin")

    def __enter__(self):
        super().__enter__()
        self.app = self.start_app(self.script)
        return self


@pytest.mark.parametrize("at", ["early=0x10", "early=0x8"], ids=["at", "behind"])
def test_who_waits_where_the_device_counts(at):
    with Gws(7, "spin 4 reduce+0x80 loop=8 group=4 workgroup=7,0,0", at) as s:
        doc = json.loads(s.ctl("why", s.app.pid, "-j").stdout)
        wait = wait_of(doc, "grid")
        assert (wait["expects"], wait["waves"], wait["missing_count"], wait["candidates"]) == (8, 7, 1, True), wait
        assert "has" not in wait and "object" not in wait and wait["confidence"] == "inferred", wait
        assert wait["at"]["instruction"] == "ds_gws_barrier", wait
        assert [party["ref"]["workgroup"] for party in wait["missing"]] == [[7, 0, 0]], wait
        assert any("nobody can read it" in e["value"] for e in wait["evidence"]), wait
        barrier = wait_of(doc, "barrier")
        assert barrier["alike"] == 7 and "waits at a barrier of the grid" in barrier["text"], barrier
        shown = s.ctl("why", s.app.pid, "--twice=1100")
        assert shown.returncode == 0 and "CAUSE" not in shown.stdout, shown.stdout


def test_who_has_stopped_is_the_cause_of_what_the_device_counts_in_two_samples():
    with Gws(7, "memory 4 reduce+0x80 group=4 workgroup=7,0,0") as s:
        shown = s.ctl("why", s.app.pid)
        assert "CAUSE" not in shown.stdout, shown.stdout
        shown = s.ctl("why", s.app.pid, "--twice=1100")
        assert shown.returncode == 10 and shown.stdout.startswith(
            "CAUSE  wave 0 of workgroup (7,0,0) of reduce, at reduce+0x80, has stopped (memory_violation)"), shown.stdout


def test_who_is_not_there_may_come_where_the_device_counts():
    """Whether so many are waited for is not known: another kernel has written that."""
    with Gws(7) as s:
        shown = s.ctl("why", s.app.pid, "--twice=1100")
        assert "CAUSE" not in shown.stdout and "1 of 8 workgroups of reduce is not there" in shown.stdout, shown.stdout


def test_a_barrier_that_has_opened_between_the_samples_accuses_nobody():
    """As many as before do not stand there: one of them has gone on, and stopped."""
    goes = ("wait-line; waves 0 barrier 24 reduce+0x50 group=4 wave=0 early=0x10 late-loop=0 "
            "and memory 8 reduce+0x80 group=4 workgroup=6,0,0; ")
    with Gws(7, "memory 4 reduce+0x80 group=4 workgroup=7,0,0", then=goes) as s:
        second = second_look(s)
        assert wait_of(second, "grid")["waves"] == 6 and not any(c["culprit"] for c in second["causes"]), second


def test_others_than_before_stand_where_the_device_counts():
    """As many as before: the one that has stopped had come, and has gone on."""
    goes = ("wait-line; waves 0 memory 4 reduce+0x80 group=4 workgroup=0,0,0 "
            "and barrier 28 reduce+0x50 group=4 workgroup=1,0,0 wave=0 early=0x10 late-loop=0; ")
    with Gws(7, "spin 4 reduce+0x80 loop=8 group=4 workgroup=7,0,0", then=goes) as s:
        second = second_look(s)
        assert wait_of(second, "grid")["waves"] == 7 and not any(c["culprit"] for c in second["causes"]), second


def test_nobody_is_accused_where_one_more_has_come():
    """Between the samples; the others may be on their way, although none of them is there."""
    moves = f"wait-line; memory {RECORD + 32:#x} i:0x20027; "
    with Grid(38, word=0x20026, then=moves) as s:
        second = second_look(s)
        assert wait_of(second, "grid")["has"] == 39, second
        assert not [c for c in second["causes"] if c["culprit"]] and wait_of(second, "grid")["stuck"] is False, second


@pytest.mark.parametrize("what", [{"pointer": RECORD + 64}, {"pointer": 0x1000}, {"groups": 0}, {"groups": 38, "word": 0x20027},
                                  # More, or fewer, than the packet of the dispatch says.
                                  {"groups": 41}, {"groups": 39}, {"groups": 0x10028}, {"groups": 0xFFFFFFFF}],
                         ids=["elsewhere", "unmapped", "none", "too-many-come", "one-more", "one-less", "too-many", "all-ones"])
def test_what_is_no_record_is_a_word_that_is_polled(what):
    """What the argument leads to was written by the process."""
    with Grid(39, **what) as s:
        doc = json.loads(s.why("-j").stdout)
        wait = wait_of(doc, "spin")
        assert wait["object"]["address"] == hex(RECORD + 32) and not [w for w in doc["waits"] if w["kind"] == "grid"], doc["waits"]
        assert "CAUSE" not in s.why("--twice=1100").stdout


@pytest.mark.parametrize("seed", range(6))
def test_nobody_is_accused_in_a_grid_that_goes_on(seed):
    """Some have come, and all others are on their way."""
    r = random.Random(seed)
    come = r.randint(1, 39)
    kind, loop = r.choice(["spin", "progress"]), r.choice(["0x24", "4", "8"])
    late = f"{kind} {4 * (40 - come)} reduce+0x50 loop={loop} group=4 workgroup={come},0,0"
    with Grid(come, late, word=0x20000 | come) as s:
        shown = s.why("--twice=1100")
        assert shown.returncode == 0 and "CAUSE" not in shown.stdout and "STUCK" not in shown.stdout, shown.stdout
