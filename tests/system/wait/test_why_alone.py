#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Waves that sleep, or wait for their own memory: they are described, are no waits, and accuse nobody."""
import json
import os
import sys
import time

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest

from harness import ROOT, CudaScene
from waitscene import BACK, NEW, OLD, POLL, POLLS, SLEEP, WIDTH, WaitScene, block, culprits, kernel, polling

GPUS = sorted(POLL)
# Wait until no load is outstanding.
WAITCNT = {**dict.fromkeys(["gfx90a", "gfx942"], (0xBF8C0F70, "s_waitcnt")), "gfx1030": (0xBF8C3F70, "s_waitcnt"),
           "gfx1100": (0xBF8903F7, "s_waitcnt"), **dict.fromkeys(["gfx1201", "gfx1250"], (0xBFC00000, "s_wait_loadcnt"))}
SLEEPS = [*((gpu, SLEEP[gpu], "s_sleep") for gpu in OLD + NEW), ("gfx1201", 0xBE805801, "s_sleep_var"),
          ("gfx1250", 0xBF840001, "s_monitor_sleep")]
CUBIN = ROOT / "sim/scenes/cuda/flags-sm_90.cubin"
FORWARD = 0x90


def words_of(shown):
    return " ".join(shown.stdout.split())


def running(gpu, waves=6):
    """A script: waves of a kernel run, all at gemm+0x80."""
    return (f"runtime ttmp; queues 1; load CODE; dispatch 0 gemm {waves * WIDTH[gpu]} {waves * WIDTH[gpu]}; "
            f"waves 0 spin {waves} gemm+0x80 group={waves} loop=0; spin")


@pytest.mark.parametrize("behind", [0, 4])
@pytest.mark.parametrize("gpu, word, name", SLEEPS)
def test_waves_that_sleep_are_described(gpu, word, name, behind):
    """At the instruction or behind it, in one sample and in two: the first line and the exit status say that nothing waits."""
    with WaitScene(gpu, running(gpu), kernel(gpu, **{f"at_{0x80 - behind:#x}": word})) as s:
        for more in ([], ["--twice=1050"]):
            shown = s.ctl("why", s.app.pid, *more)
            print(shown.stdout, shown.stderr)
            assert shown.returncode == 0 and shown.stdout.splitlines()[0].strip() == "no culprit found: nothing waits", shown.stdout
            assert words_of(shown).endswith(f"NOTE 6 waves of gemm, at gemm+0x80, sleep ({name}) [inferred]"), shown.stdout
        doc = json.loads(s.ctl("why", s.app.pid, "-j").stdout)
        snapshot, plain = s.ctl("snapshot", s.app.pid, "--why"), s.ctl("snapshot", s.app.pid)
    sleep, = doc["alone"]
    assert (sleep["kind"], sleep["waves"], sleep["at"]["instruction"]) == ("sleep", 6, name), sleep
    assert not sleep.get("workgroup"), sleep
    assert words_of(snapshot).endswith(f"NOTE 6 waves of gemm, at gemm+0x80, sleep ({name}) [inferred]"), snapshot.stdout
    assert "NOTE" not in plain.stdout, plain.stdout
    assert sleep["evidence"] == [{"what": name, "value": hex(int(sleep["at"]["pc"], 0) - behind)}], sleep
    assert not sleep["missing"] and sleep["missing_count"] == 0 and "stuck" not in sleep, sleep
    assert not doc["waits"] and not doc["nodes"] and not doc["edges"] and not doc["causes"] and doc["complete"], doc


def test_one_wave_is_named():
    with WaitScene("gfx90a", running("gfx90a", 1), kernel("gfx90a", at_0x80=SLEEP["gfx90a"])) as s:
        assert "NOTE wave 0 of workgroup (0,0,0) of gemm, at gemm+0x80, sleeps (s_sleep) [inferred]" in words_of(s.ctl("why", s.app.pid))


@pytest.mark.parametrize("gpu", GPUS)
def test_who_waits_for_a_sleeper_accuses_nobody(gpu):
    """An idle wave of a persistent kernel: the barrier of its workgroup is the one wait, in both samples."""
    with WaitScene(gpu, block(gpu, "late-loop=0"), kernel(gpu, at_0x80=SLEEP[gpu])) as s:
        s.attach()
        first = s.why()
        time.sleep(1.05)
        second = s.why(since=first["sample"])
        shown = s.ctl("why", s.app.pid, "--twice=1050")
        print(shown.stdout)
    for doc in (first, second):
        assert [w["kind"] for w in doc["waits"]] == ["barrier"] and not culprits(doc) and not doc.get("stuck"), doc
        assert [(w["kind"], w["waves"]) for w in doc["alone"]] == [("sleep", 3)], doc
    assert shown.returncode == 0 and "CAUSE" not in shown.stdout and "1 wait for what runs" in shown.stdout


@pytest.mark.parametrize("gpu", GPUS)
def test_who_polls_is_not_told_to_sleep(gpu):
    """A loop that polls and sleeps is told by its word; the waves of which no registers were read are in the same one."""
    words = POLL[gpu]
    # The sleep is in front of the load, and the branch leads back to it.
    code = [SLEEP[gpu], *words[:-1], words[-1] - 1]
    code = kernel(gpu, **{f"at_{0x80 + 4 * i:#x}": word for i, word in enumerate(code)})
    with WaitScene(gpu, "signal flag 3; " + block(gpu, f"late-loop=0 {POLLS}"), code) as s:
        s.attach()
        doc = s.why()
    assert [w["kind"] for w in doc["waits"] if w["kind"] != "barrier"] == ["spin"] and "alone" not in doc, doc


@pytest.mark.parametrize("gpu", GPUS)
def test_a_wave_waits_for_its_memory_in_two_samples(gpu):
    word, name = WAITCNT[gpu]
    with WaitScene(gpu, running(gpu), kernel(gpu, at_0x80=word)) as s:
        one = s.ctl("why", s.app.pid)
        # It may only have been about to go on.
        short = s.ctl("why", s.app.pid, "--twice=20")
        two = s.ctl("why", s.app.pid, "--twice=1050")
        print(one.stdout, two.stdout)
        s.attach()
        first = s.why()
        time.sleep(1.05)
        doc = s.why(since=first["sample"])
    for shown in (one, short, two):
        assert shown.returncode == 0 and shown.stdout.splitlines()[0].strip() == "no culprit found: nothing waits", shown.stdout
    assert "NOTE" not in one.stdout + short.stdout and "alone" not in first
    assert words_of(two).endswith("NOTE wave 0 of workgroup (0,0,0) of gemm, at gemm+0x80, waits for its own loads and stores "
                                  f"({name}) [inferred]"), two.stdout
    memory, = doc["alone"]
    assert (memory["kind"], memory["waves"], memory["confidence"]) == ("memory", 1, "inferred") and not doc["waits"], memory
    assert {"what": "waves at this place, of which this is one", "value": "6"} in memory["evidence"], memory


def test_who_has_slept_may_wait_for_its_memory():
    """Behind the one and at the other it may be in either: neither is told."""
    code = kernel("gfx90a", at_0x7c=SLEEP["gfx90a"], at_0x80=WAITCNT["gfx90a"][0])
    with WaitScene("gfx90a", running("gfx90a"), code) as s:
        one = s.ctl("why", s.app.pid)
        two = s.ctl("why", s.app.pid, "--twice=1050")
        print(one.stdout, two.stdout)
    assert one.returncode == 0 and "NOTE" not in one.stdout, one.stdout
    assert two.returncode == 0 and "NOTE" not in two.stdout, two.stdout


@pytest.mark.parametrize("gpu", GPUS)
def test_a_wave_that_waits_for_its_memory_is_a_cause_as_before(gpu):
    word, name = WAITCNT[gpu]
    with WaitScene(gpu, block(gpu, "late-loop=0"), kernel(gpu, at_0x80=word)) as s:
        shown = s.ctl("why", s.app.pid, "--twice=1050")
        print(shown.stdout)
    assert shown.returncode == 10 and words_of(shown).startswith(
        "CAUSE wave 3 of workgroup (0,0,0) of gemm, at gemm+0x80, is the same in both samples, "
        f"at {name}: it waits for its own loads and stores [inferred]"), shown.stdout


@pytest.mark.parametrize("gpu", GPUS)
def test_in_two_samples_a_moment_apart_it_may_go_on(gpu):
    with WaitScene(gpu, block(gpu, "late-loop=0"), kernel(gpu, at_0x80=WAITCNT[gpu][0])) as s:
        shown = s.ctl("why", s.app.pid, "--twice=20")
        print(shown.stdout)
    assert "is the same in both samples" in words_of(shown) and "loads and stores" not in words_of(shown), shown.stdout


@pytest.mark.parametrize("gpu", GPUS)
def test_a_loop_around_the_wait_may_poll(gpu):
    """An idle wave is the same at the wait of its loop whenever it is looked at."""
    with WaitScene(gpu, running(gpu), kernel(gpu, at_0x80=WAITCNT[gpu][0], at_0x8c=BACK[gpu])) as s:
        shown = s.ctl("why", s.app.pid, "--twice=1050")
        print(shown.stdout)
    assert shown.returncode == 0 and "NOTE" not in shown.stdout


def test_a_wave_that_moves_waits_for_nothing():
    with WaitScene("gfx90a", running("gfx90a").replace("loop=0", "loop=16"), kernel("gfx90a", at_0x80=WAITCNT["gfx90a"][0])) as s:
        s.attach()
        before = s.why()["sample"]
        for _ in range(4):
            time.sleep(1.05)
            doc = s.why(since=before)
            before = doc["sample"]
            assert "alone" not in doc, doc


def evidence(wait):
    return {e["what"]: e["value"] for e in wait["evidence"]}


@pytest.mark.parametrize("loop, where", [(0, "at the same place of the loop"), (20, "elsewhere in the loop")])
def test_two_samples_tell_whether_a_wave_goes_round_its_loop(loop, where):
    script = "signal flag 3; " + block("gfx90a", f"late-loop={loop} {POLLS}", 1)
    seen, before = set(), None
    with WaitScene("gfx90a", script, polling("gfx90a")) as s:
        s.attach()
        for _ in range(40):
            doc = s.why(**({"since": before} if before else {}))
            before = doc["sample"]
            # The simulator also stops waves in the middle of an instruction, where they are in no loop that is known.
            for spin in (w for w in doc["waits"] if w["kind"] == "spin"):
                assert evidence(spin)["size of the loop"] == "20 bytes", spin
                seen.add(evidence(spin).get("in the sample before"))
            assert not culprits(doc), doc
            if where in seen:
                break
    assert where in seen and ("elsewhere in the loop" in seen) is bool(loop), seen


# ------------------------------------------------------------------ NVIDIA ------------------------

# ptxas 12.4, sm_90: NANOSLEEP 0x64, and one that a predicate guards.
NANOSLEEP = (0x000000640000795D, 0x000FEA0003800000)
GUARDED = (0x000000640000895D, 0x000FEA0003800000)


def cubin_with(path, word, at):
    """forward(), with an instruction of its own so many bytes in front of its loop's load or behind."""
    code = bytearray(CUBIN.read_bytes())
    place = code.index((0x0000000404067980).to_bytes(8, "little")) + at
    code[place:place + 16] = word[0].to_bytes(8, "little") + word[1].to_bytes(8, "little")
    path.write_bytes(code)
    return path


class Forward(CudaScene):
    """forward(), of which one block of four warps is at a place, as the script has it."""

    def __init__(self, cubin, *script):
        super().__init__(app=None)
        self.cubin, self.script = cubin, script

    def __enter__(self):
        super().__enter__()
        self.app = self.start_app("; ".join(["init; gpu devices 1 sms=132 warps=64; context 0", f"module {self.cubin}",
                                             *self.script, "listen"]))
        return self

    def twice(self):
        session = self.attach()
        first = self.rpc.call("why.get", session=session)
        time.sleep(1.05)
        second = self.rpc.call("why.get", session=session, since=first["sample"])
        print(json.dumps(second))
        return first, second


def test_warps_that_sleep_are_described(tmp_path):
    cubin = cubin_with(tmp_path / "sleep-sm_90.cubin", NANOSLEEP, -16)
    with Forward(cubin, f"gpu launch forward grid=2 block=128 pc={FORWARD - 16:#x}") as s:
        shown = s.ctl("why", s.app.pid, "--twice=1050")
        print(shown.stdout, shown.stderr)
        docs = s.twice()
    assert shown.returncode == 0 and shown.stdout.splitlines()[0].strip() == "no culprit found: nothing waits", shown.stdout
    assert "NOTE 8 warps of forward, at forward+0x80 (flags.cu:9), sleep (NANOSLEEP) [inferred]" in words_of(shown)
    for doc in docs:
        sleep, = doc["alone"]
        assert (sleep["kind"], sleep["waves"], sleep["at"]["instruction"]) == ("sleep", 8, "NANOSLEEP"), sleep
        assert not doc["waits"] and not doc["causes"] and doc["complete"], doc


def test_who_waits_for_lanes_that_sleep_accuses_nobody(tmp_path):
    """One lane sleeps, and the rest of the block waits for it at the barrier behind the loop."""
    cubin = cubin_with(tmp_path / "sleep-sm_90.cubin", NANOSLEEP, -16)
    with Forward(cubin, "gpu launch forward grid=1 block=128 pc=0xf0",
                 f"gpu warp 0 0 0 pc={FORWARD - 16:#x} active=1") as s:
        shown = s.ctl("why", s.app.pid, "--twice=1050")
        print(shown.stdout)
        docs = s.twice()
    assert shown.returncode == 0 and "CAUSE" not in shown.stdout and "STUCK" not in shown.stdout
    for doc in docs:
        assert [w["kind"] for w in doc["waits"]] == ["barrier"] and not culprits(doc), doc
        assert [w["text"] for w in doc["alone"]] == [
            "lane 0 of warp 0 of block (0,0,0) of forward, at forward+0x80 (flags.cu:9), sleeps (NANOSLEEP)"], doc["alone"]


def test_a_sleep_that_need_not_be_executed_is_none(tmp_path):
    cubin = cubin_with(tmp_path / "guarded-sm_90.cubin", GUARDED, -16)
    with Forward(cubin, f"gpu launch forward grid=1 block=128 pc={FORWARD - 16:#x}") as s:
        for doc in s.twice():
            assert "alone" not in doc and not doc["waits"], doc


def test_warps_of_a_loop_that_polls_are_not_told_to_sleep(tmp_path):
    """Its YIELD is a NANOSLEEP here."""
    cubin = cubin_with(tmp_path / "polls-sm_90.cubin", NANOSLEEP, 32)
    flag = 0x7F5C80000000
    with Forward(cubin, f"gpu launch forward grid=1 block=128 pc={FORWARD + 32:#x}", f"gpu memory global {flag:#x} hex=06000000",
                 f"gpu register 0 0 0 0 4 {flag & 0xFFFFFFFF:#x}", f"gpu register 0 0 0 0 5 {flag >> 32:#x}",
                 "gpu uniform 0 0 0 7 7") as s:
        first, second = s.twice()
    for doc in (first, second):
        spin, = doc["waits"]
        assert spin["kind"] == "spin" and "alone" not in doc, doc
    assert evidence(spin)["in the sample before"] == "at the same place of the loop", spin
    assert evidence(spin)["size of the loop"] == "80 bytes", spin
