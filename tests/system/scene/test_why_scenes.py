#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Scenes in which something waits: the first line of `why` names what is wrong, and nobody is accused where it is not."""
import json
import os
import re
import sys
import time

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest

from harness import BIN, LONG_STOP, ROOT, CudaScene, Scene

WAITS = ROOT / "sim/scenes/cuda/waits-sm_90.cubin"
FAULT = "wave 3 of workgroup (0,0,0) of gemm, at gemm+0x70 (train.hip:61), has stopped (memory_violation)"
# Of each scene: what the first line says, how sure that is, whether one sample is enough, and how the scene goes on.
NO_ANSWER = "the host, which has not answered 3 calls (printf) by check (packet 0 of queue 0), and has no thread named Hostcall Listen"
AMD = {
    "absent-from-grid": ("wave 0 of workgroup (39,0,0) of reduce, at reduce+0x50 (grid.hip:48), has stopped (memory_violation)", "inferred",
                         True, "last=spin"),
    "fault-at-barrier": (FAULT, "proven", True, "last=spin"),
    "behind-a-fault": (FAULT, "proven", True, "last=spin"),
    "late-at-barrier": ("wave 3 of workgroup (0,0,0) of gemm, at gemm+0xc4 (train.hip:72), is the same in both samples", "inferred", False,
                        "early=0x58,loop=24"),
    "ended-at-named": ("wave 3 of workgroup (0,0,0) of stages, which has ended", "inferred", False, "members=3"),
    "fault-before-gws": ("wave 0 of workgroup (7,0,0) of reduce, at reduce+0x80, has stopped (memory_violation)", "inferred", False,
                         "last=spin"),
    "own-stream": ("a circle: packet 1 of queue 0 (gemm) waits for signal 0x", "proven", True, "left=0"),
    "two-streams": ("a circle: packet 1 of queue ", "proven", True, "left=0"),
    "no-signal": ("the host, a copy engine or another process: no packet in the queues of this process gives signal 0x", "inferred", False,
                  "left=0"),
    "no-answer": (NO_ANSWER, "inferred", False, "mark=0"),
    "no-answer-phases": (NO_ANSWER, "inferred", False, "phase=1"),
    "no-packet": ("the host, whose thread ", "inferred", False, "mark=0,ready=0"),
}
CUDA = {
    "exited-at-barrier": ("block (3,0,0) of sparse_prefill: named barrier 1, at sparse_prefill+0xd0 (waits.cu:28), needs 384 threads, "
                          "and only 128 are left: warps 0-7 have exited", "inferred", False, "exits=0"),
    "exited-before-grid": ("1 of 8 blocks of reduce is not there: (5,0,0); ended without coming, or never started", "inferred", False,
                           "exits=0"),
    "two-places": ("a circle: lanes 1-31 of warp 0 of block (0,0,0) of reduce, at reduce+0x170 (sm_30_intrinsics.hpp:110), wait for lane 0 "
                   "of warp 0 of block (0,0,0) of reduce, at reduce+0x1b0 (waits.cu:40), which waits for the first",
                   "inferred", False, "rest=0x100"),
    "crossed-barriers": ("a circle: warps 4-7 of block (0,0,0) of exchange, at exchange+0x1e0 (waits.cu:54), wait for warps 0-3 of "
                         "block (0,0,0) of exchange, at exchange+0xa0 (waits.cu:58), which wait for the first",
                         "inferred", False, "second=0x220"),
    "retired-consumers": ("block (0,0,0) of grouped_gemm and 23 more: warp 0 waits on mbarrier 0x700 (phase 0, 1 of 1 arrival missing), "
                          "warps 1-4 wait on mbarrier 0x760 (phase 1, 8 of 12 arrivals missing); "
                          "warps 5-11 have exited, and nobody is left "
                          "who could arrive", "inferred", False, "exits=0"),
    "grid-barrier": ("16 of 128 blocks of scan are not on the device, and have not started or have ended: (112,0,0), (113,0,0), (114,0,0), "
                     "(115,0,0) and 12 more; block (0,0,0) of scan polls as many words, at scan+0x260 (barrier.cu:9), and no block goes "
                     "on: if they do not fit, or have ended, the barrier never completes", "inferred", False, "late=01000000"),
    "fault-at-barrier": ("warp 3 of block (2,0,0) of gemm, at gemm+0x440 (train.cu:62), has stopped (memory_violation)", "inferred", True,
                         "code=0"),
    "fault-before-cluster": ("warp 5 of block (5,0,0) of halo, at halo+0x160 (clusters.cu:12), has stopped (memory_violation)", "inferred",
                             True, "code=0"),
}
SCENES = {("amd", name): row for name, row in AMD.items()} | {("cuda", name): row for name, row in CUDA.items()}
# Warps that go round through these barriers would look alike, so that a circle of them is told and nobody is accused.
CIRCLES = {("cuda", "two-places"), ("cuda", "crossed-barriers")}
# Ranks that wait for others: who keeps those is to be found elsewhere.
RANKS = {("amd", "crossed-collectives"): "rank 0 waits for ranks 6, 7, which were",
         ("cuda", "crossed-pairs"): "rank 0 waits for ranks 6, 7, which were",
         ("cuda", "crossed-collectives"): "rank 0 waits for rank 3, which was", ("cuda", "late-leaf"): "rank 1 waits for rank 3, which was",
         ("cuda", "late-rank"): "rank 2 waits for rank 1, which was"}
NOT_SURE = "       it need not be the cause: {} waits, and it is not known whether they last"
EACH = pytest.mark.parametrize(("vendor", "name"), SCENES)


# Scenes that are not of gfx90a.
GPUS = {"ended-at-named": "gfx1250"}


def why(vendor, name, *args, values=None, gpus="gfx90a", verb="why"):
    with Scene(app=None, gpus=GPUS.get(name, gpus)) if vendor == "amd" else CudaScene(app=None) as s:
        more = ["--set", values] if values else []
        device = ["--kfd", s.mount / "kfd"] if vendor == "amd" else []
        env = {} if vendor == "amd" else {"LD_LIBRARY_PATH": str(s.libraries)}
        program = "gpu-agent-simapp" if vendor == "amd" else "gpu-agent-cuda-simapp"
        s.app = s.start("app", [BIN / program, *device, "--scene", name, *more], env=env)
        s.app.wait_line()
        shown = s.ctl(verb, s.app.pid, *args)
        print(shown.stdout, shown.stderr)
        return shown


@EACH
def test_the_first_line_names_the_cause(vendor, name):
    text, confidence, _, _ = SCENES[vendor, name]
    if (vendor, name) in CIRCLES:
        shown = why(vendor, name, "--twice=1100")
        lines = shown.stdout.splitlines()
        assert shown.returncode == 0 and "CAUSE" not in shown.stdout and "for what runs" not in shown.stdout, shown.stdout
        assert lines[0].startswith(f"MAYBE  {text}") and lines[0].endswith(f"[{confidence}]"), shown.stdout
        assert NOT_SURE.format(2) in lines and "no culprit found" not in shown.stdout, shown.stdout
        doc = json.loads(why(vendor, name, "--twice=1100", "-j").stdout)
        first = doc["causes"][0]
        assert first["text"].startswith(text) and first["confidence"] == confidence and not first["culprit"], doc["causes"]
        assert not doc.get("stuck") and not any(w.get("stuck") for w in doc["waits"]), doc
        return
    shown = why(vendor, name, "--twice=1100")
    first = shown.stdout.splitlines()[0]
    assert shown.returncode == 10 and first.startswith(f"CAUSE  {text}") and first.endswith(f"[{confidence}]"), shown.stdout


def test_a_circle_of_packets_reads_as_a_sentence():
    shown = re.sub("0x[0-9a-f]+", "0x0", why("amd", "own-stream").stdout).splitlines()
    assert shown == [
        "CAUSE  a circle: packet 1 of queue 0 (gemm) waits for signal 0x0 (value 1), "
        "which waits for packet 0 of queue 0 (a barrier-value), which waits for the first  [proven]",
        "       <- signal 0x0 (value 1)  [proven]",
        "       <- packet 0 of queue 0 (a barrier-value) waits  [proven]",
        "       <- packet 1 of queue 0 (gemm) waits  [proven]",
        "STUCK  packet 0 of queue 0 (a barrier-value) waits: 0 of 1 signal given; missing: signal 0x0 (value 1)  [proven]"], shown


@pytest.mark.parametrize(("vendor", "name"), RANKS)
def test_the_first_line_says_that_a_rank_waits_for_another_one(vendor, name):
    for twice in (), ("--twice=1100",):
        shown = why(vendor, name, *twice)
        words = f"no culprit found in this process: {RANKS[vendor, name]} not looked at (job and merge compare ranks)"
        assert shown.returncode == 0 and shown.stdout.splitlines()[0].strip() == words, shown.stdout
        assert "nothing waits" not in shown.stdout and "CAUSE" not in shown.stdout and "MAYBE" not in shown.stdout, shown.stdout


def test_a_snapshot_begins_with_the_cause():
    shown = why("amd", "own-stream", "--why", verb="snapshot").stdout
    assert shown.startswith("CAUSE  a circle: packet 1 of queue 0 (gemm) waits for signal 0x"), shown
    assert "No fault" not in shown and shown.count("CAUSE") == 1, shown


@pytest.mark.parametrize(("vendor", "name"), [("amd", "crossed-collectives"), ("cuda", "late-rank")])
def test_a_snapshot_says_for_whom_a_rank_waits(vendor, name):
    shown = why(vendor, name, "--why", verb="snapshot")
    awaited = "waits for ranks 6, 7 (not seen) [inferred]" if vendor == "amd" else "waits for rank 1 (not seen) [inferred]"
    assert "\nRANK   " in shown.stdout and awaited in " ".join(shown.stdout.split()), shown.stdout
    assert "is known to wait" not in shown.stdout, shown.stdout


@EACH
def test_one_sample_accuses_only_what_cannot_go_on(vendor, name):
    text, _, one_is_enough, _ = SCENES[vendor, name]
    shown = why(vendor, name)
    assert (shown.returncode == 10) == one_is_enough and ("CAUSE" in shown.stdout) == one_is_enough, shown.stdout


@EACH
def test_where_it_goes_on_nobody_is_accused(vendor, name):
    shown = why(vendor, name, "--twice=1100", values=SCENES[vendor, name][3])
    assert shown.returncode == 0 and "CAUSE" not in shown.stdout, shown.stdout


# Scenes in which words are polled that nobody sets, which is what idle kernels do as well: who waits, and how it goes on.
LOCK = "tries to take the lock in the word at 0x0 (value 0x1) until it is 0x0"
SPINS = {
    ("amd", "unset-flag"): ("wave 0 of workgroup (0,0,0) of forward, at forward+0x48 (flags.hip:12), polls the word at 0x0 (value 0x6) "
                            "until it is 0x7", "flag=7"),
    ("amd", "lock"): (f"wave 0 of workgroup (1,0,0) of append, at append+0x20 (flags.hip:23), {LOCK}", "lock=0"),
    ("cuda", "unset-flag"): ("lane 0 of warp 0 of block (0,0,0) of forward, at forward+0x90 (flags.cu:9), polls the word at 0x0 "
                             "(value 0x6) until it is 0x7", "value=07000000"),
    ("cuda", "lock"): (f"warp 0 of block (0,0,0) of append, at append+0x70 (device_atomic_functions.hpp:207), {LOCK}", "word=00000000"),
}


@pytest.mark.parametrize(("vendor", "name"), SPINS)
def test_who_polls_is_told_and_nobody_is_accused(vendor, name):
    text, values = SPINS[vendor, name]
    line = f"WAITS  {text}  [inferred]"
    for more in None, values:
        shown = why(vendor, name, "--twice=1100", values=more)
        lines = re.sub("word at 0x[0-9a-f]+", "word at 0x0", shown.stdout).splitlines()
        assert shown.returncode == 0 and "CAUSE" not in shown.stdout and "STUCK" not in shown.stdout, shown.stdout
        assert lines[0].startswith("       no culprit found: ") and (line in lines) == (more is None), shown.stdout


# The demo's scenes: who waits in them polls a word, which nobody can be accused of.
POLLS = {"amd": "wave 0 of workgroup (0,0,0) of all_reduce, at all_reduce+0xc4 (train.hip:37), polls",
         "cuda": "warp 0 of block (0,0,0) of all_reduce, at all_reduce+0x130 (train.cu:37), polls"}


@pytest.mark.parametrize("name", ["hang", "fault-and-hang"])
@pytest.mark.parametrize("vendor", POLLS)
def test_the_scenes_that_hang_name_the_word(vendor, name):
    gpus = "gfx90a,gfx90a"
    shown = why(vendor, name, "--twice=1100", gpus=gpus)
    waits = [line for line in shown.stdout.splitlines() if not line.startswith(" ")]
    text = f"{POLLS[vendor]} the word at 0x7f5c80000000 (value 0x0) until it is at least 0x1"
    assert shown.returncode == 0 and waits[0] == f"WAITS  {text}  [inferred]", shown.stdout
    doc = json.loads(why(vendor, name, "--twice=1100", "-j", gpus=gpus).stdout)
    spin, = doc["waits"]
    assert spin["kind"] == "spin" and spin["condition"] == {"op": "gte", "value": "0x1", "is_signed": True}, spin
    here = "waves at this place" if vendor == "amd" else "warps in this loop"
    assert {"what": f"{here}, of which this is one", "value": "384" if vendor == "amd" else "192"} in spin["evidence"], spin
    assert doc["complete"] and not [c for c in doc["causes"] if c["culprit"]], doc


def test_who_has_exited_between_the_samples_may_have_let_the_others_go():
    with CudaScene(app=None) as s:
        s.app = s.start("app", [BIN / "gpu-agent-cuda-simapp", "--scene", "exited-at-barrier", "--set", "exits=0"],
                        env={"LD_LIBRARY_PATH": str(s.libraries)})
        s.app.wait_line()
        session = s.attach()
        first = s.rpc.call("why.get", session=session)
        s.control("warp 0 3 0 warps=8 valid=0")
        time.sleep(1.1)
        second = s.rpc.call("why.get", session=session, since=first["sample"])
        assert not [c for c in second["causes"] if c["culprit"]], second["causes"]
        time.sleep(1.1)
        third = s.rpc.call("why.get", session=session, since=second["sample"])
        assert [c for c in third["causes"] if c["culprit"]][0]["text"].startswith(SCENES["cuda", "exited-at-barrier"][0]), third["causes"]


# Of scenes whose missing parties have exited: each wait with its counts, who is missing, and what is known of them.
EXITED = {
    "exited-at-barrier": [("warps 8-11 of block (3,0,0) of sparse_prefill", 4, 12, 8, [("warps 0-7, which have exited", "gone")])],
    "retired-consumers": [("warps 1-4 of block (0,0,0) of grouped_gemm", 4, 12, 8,
                           [("warps 5-11, which have exited", "gone"),
                            ("warp 0, which waits at grouped_gemm+0xb40 (pipeline.cu:27)", "unknown")]),
                          ("warp 0 of block (0,0,0) of grouped_gemm", 0, 1, 1,
                           [("warps 5-11, which have exited", "gone"),
                            ("warps 1-4, which wait at grouped_gemm+0xb00 (pipeline.cu:27)", "unknown")])],
}


@pytest.mark.parametrize("name", EXITED)
def test_who_has_exited_is_told_as_missing(name):
    doc = json.loads(why("cuda", name, "--twice=1100", "-j").stdout)
    stuck = [w for w in doc["waits"] if w.get("stuck")]
    assert [(w["who"], w["has"], w["expects"], w["missing_count"], [(m["what"], m["state"]) for m in w["missing"]])
            for w in stuck] == EXITED[name], stuck
    shown = why("cuda", name, "--twice=1100").stdout
    lines = [line for line in shown.splitlines() if line.startswith("STUCK")]
    # The chain is one way to the cause, and says how many more waits lead there.
    assert len(lines) == len(EXITED[name]) and ("       1 more wait leads there\n" in shown) == (len(lines) == 2), shown
    for line, (who, has, expects, _, missing) in zip(lines, EXITED[name]):
        # Who would have arrived on an object in shared memory is written nowhere.
        word = "missing may be" if name == "retired-consumers" else "missing"
        assert f"{who} wait" in line and f": {has} of {expects} have come; {word}: {'; '.join(m[0] for m in missing)}" in line, line


# Warps of a block, commands, and of the wait at a barrier that needs 12 warps: its counts, who is missing, and whether only some are.
LEFT = {
    "elsewhere": (12, "gpu warp 0 0 0 warps=7 valid=0; gpu warp 0 0 7 pc=0x240", (4, 12, 8),
                  ["warps 0-6, which have exited", "warp 7 of block"], False),
    "more-than-have-to-come": (16, "gpu warp 0 0 0 warps=11 valid=0; gpu warp 0 0 11 pc=0x240", (4, 12, 8),
                               ["warps 0-10, which have exited", "warp 11 of block"], True),
    "never-launched": (8, "gpu warp 0 0 0 warps=7 valid=0", (1, 12, 11),
                       ["warps 0-6, which have exited", "4 warps, which its block was not launched with"], False),
    "none-has-exited": (8, "", (8, 12, 4), ["4 warps, which its block was not launched with"], False),
}


@pytest.mark.parametrize("case", LEFT)
def test_each_who_is_missing_at_a_barrier_with_too_few_left_is_told(case):
    warps, script, counts, missing, candidates = LEFT[case]
    with CudaScene(app=None) as s:
        s.app = s.start_app(f"init; gpu devices 1 sms=132 warps=64; context 0; module {WAITS}; "
                            f"gpu launch sparse_prefill grid=1 block={32 * warps} pc=0xd0; {script}; listen")
        once = json.loads(s.ctl("why", s.app.pid, "-j").stdout)
        doc = json.loads(s.ctl("why", s.app.pid, "--twice=1100", "-j").stdout)
    # A barrier that has just opened looks like this in one sample.
    wait, = once["waits"]
    assert wait["candidates"] and "stuck" not in wait and not [c for c in once["causes"] if c["culprit"]], once
    wait, = doc["waits"]
    assert (wait["has"], wait["expects"], wait["missing_count"]) == counts and wait.get("candidates", False) is candidates, wait
    assert len(wait["missing"]) == len(missing) and all(m["what"].startswith(t) for m, t in zip(wait["missing"], missing)), wait
    assert wait["stuck"] and [c["end"] for c in doc["causes"] if c["culprit"]] == ["gone"], doc["causes"]


def blocks(cubin, launch):
    """The waits of blocks that are launched so, as document and as text."""
    with CudaScene(app=None) as s:
        s.app = s.start_app(f"init; gpu devices 1 sms=132 warps=64; context 0; module {cubin}; gpu launch {launch}; listen")
        doc = json.loads(s.ctl("why", s.app.pid, "--twice=1100", "-j").stdout)
        print(json.dumps(doc))
        assert not [c for c in doc["causes"] if c["culprit"]], doc["causes"]
        return doc, s.ctl("why", s.app.pid, "--twice=1100").stdout


def test_of_threads_that_may_have_come_without_waiting_it_is_said(tmp_path):
    """A call by a register may lead to a BAR.ARV: nobody is accused."""
    cubin = tmp_path / "called.cubin"
    nop, call = (0x7918).to_bytes(8, "little"), (0x7344).to_bytes(8, "little")
    code = WAITS.read_bytes()
    assert nop in code
    cubin.write_bytes(code.replace(nop, call))
    doc, shown = blocks(cubin, "sparse_prefill grid=1 block=384 pc=0xd0; gpu warp 0 0 0 warps=8 valid=0")
    text = doc["causes"][0]["text"]
    assert text.endswith("128 are left: warps 0-7 have exited, unless some came without waiting and exited then"), text
    wait, = doc["waits"]
    assert wait["candidates"] and wait["text"].endswith("4 of 12 have come; missing may be: warps 0-7, which have exited"), wait
    assert re.match(r"MAYBE  block \(0,0,0\) of sparse_prefill: .*unless some came", shown), shown
    assert "       it need not be the cause: 1 wait, and it is not known whether it lasts" in shown.splitlines(), shown


def test_of_several_that_may_be_the_cause_none_comes_first():
    two_places = "gpu launch reduce grid=1 block=32 pc=0x1b0 idle=0x170 active=1"
    doc, shown = blocks(WAITS, f"exchange grid=1 block=256 pc=0xa0; gpu warp 0 0 4 warps=4 pc=0x1e0; {two_places}")
    assert [c["end"] for c in doc["causes"]] == ["circle", "circle"], doc["causes"]
    assert shown.splitlines()[0].strip() == "no culprit found: 4 waits, and it is not known whether they last", shown
    assert len(re.findall("^MAYBE  a circle: ", shown, re.M)) == 2, shown


def test_no_more_have_come_than_are_expected():
    doc, _ = blocks(WAITS, "exchange grid=1 block=512 pc=0xa0")
    wait, = doc["waits"]
    assert wait["who"] == "warps 0-15 of block (0,0,0) of exchange" and "expects" not in wait and "have come" not in wait["text"], wait


# A core with the registers of all 3,584 warps of grid-barrier takes longer than they may stand still: see test_why_absent.py.
@pytest.mark.parametrize("name", [name for name in CUDA if name != "grid-barrier"])
def test_a_core_has_the_same_waits(name, tmp_path):
    """Of one moment: only what has stopped is accused."""
    core = tmp_path / "core"
    with CudaScene(app=None) as s:
        s.app = s.start("app", [BIN / "gpu-agent-cuda-simapp", "--scene", name], env={"LD_LIBRARY_PATH": str(s.libraries)})
        s.app.wait_line()
        live = json.loads(s.ctl("why", s.app.pid, "-j").stdout)
        dumped = s.ctl("dump", s.app.pid, "-o", core, LONG_STOP)
        assert dumped.returncode in (0, 8), dumped.stderr
        shown = s.ctl("why", "--core", core, "-j")
    of_core = json.loads(shown.stdout)
    # Those that run are somewhere else by then, and how many have come to a grid's barrier is in memory that the core has not.
    told = [[(w["who"], w["kind"], w["at"]["place"], w["alike"], w.get("has") if w["kind"] != "grid" else None, w.get("expects"),
              w["missing_count"]) for w in doc["waits"]] for doc in (live, of_core)]
    assert told[0] and told[0] == told[1], told
    assert bool([c for c in of_core["causes"] if c["culprit"]]) == SCENES["cuda", name][2], of_core["causes"]
