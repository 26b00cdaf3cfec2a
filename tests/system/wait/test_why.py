#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""gpu-agentctl why: the first line names who does not come, and nobody who is only late."""
import json
import os
import sys
import time

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest

from harness import wait_until
from waitscene import BACK, SLEEP, WaitScene, block, kernel

FAMILIES = ["gfx90a", "gfx942", "gfx1030", "gfx1100"]


def first_line(shown):
    return shown.stdout.splitlines()[0]


@pytest.mark.parametrize("behind", [0, 1])
@pytest.mark.parametrize("gpu", FAMILIES)
def test_a_stopped_wave_keeps_its_workgroup_waiting(gpu, behind):
    """The wave has stopped, so that one sample is enough; the instruction is at the saved pc, or in front of it."""
    with WaitScene(gpu, block(gpu, f"last=memory behind={behind}")) as s:
        shown = s.ctl("why", s.app.pid)
        print(shown.stdout, shown.stderr)
        assert shown.returncode == 10
        assert first_line(shown).startswith("CAUSE  wave 3 of workgroup (0,0,0) of gemm, at gemm+0x80, "
                                            "has stopped (memory_violation)"), shown.stdout
        text = " ".join(shown.stdout.split())
        assert "[proven]" in text and "waves 0-2 of workgroup (0,0,0) of gemm wait at a barrier" in text
        assert "3 workgroups are in this state" in text
        s.attach()
        (wait,) = s.why()["waits"]
        assert wait["kind"] == "barrier" and wait["confidence"] == "proven" and wait["stuck"]
        assert (wait["expects"], wait["has"], wait["alike"], wait["waves"]) == (4, 3, 3, 9)
        assert wait["missing"][0]["ref"]["wave_in_group"] == 3 and wait["missing"][0]["at"]["place"] == "gemm+0x80"


@pytest.mark.parametrize("gpu", FAMILIES)
def test_a_wave_that_does_not_move_is_told_by_two_samples(gpu):
    with WaitScene(gpu, block(gpu, "late-loop=0")) as s:
        shown = s.ctl("why", s.app.pid)
        assert shown.returncode == 0 and first_line(shown).strip().startswith("no culprit found: "), shown.stdout
        assert "CAUSE" not in shown.stdout and "missing: wave 3 of workgroup (0,0,0)" in " ".join(shown.stdout.split())
        # In so short a time it may just not have had its turn.
        assert "CAUSE" not in s.ctl("why", s.app.pid, "--twice=20").stdout
        shown = s.ctl("why", s.app.pid, "--twice=1100")
        print(shown.stdout)
        assert shown.returncode == 10 and first_line(shown).startswith("CAUSE  wave 3 of workgroup (0,0,0) of gemm")
        assert "is the same in both samples" in " ".join(shown.stdout.split()) and "[inferred]" in shown.stdout


@pytest.mark.parametrize("gpu", FAMILIES)
def test_a_wave_that_moves_is_not_accused(gpu):
    with WaitScene(gpu, block(gpu)) as s:
        shown = s.ctl("why", s.app.pid, "--twice=1100")
        print(shown.stdout)
        assert shown.returncode == 0 and "CAUSE" not in shown.stdout


@pytest.mark.parametrize("gpu", FAMILIES)
@pytest.mark.parametrize("words", ["loop", "sleep"])
def test_a_wave_that_may_poll_is_not_accused(gpu, words):
    """The last wave is the same in both samples, as an idle wave of a persistent kernel is."""
    code = kernel(gpu, at_0x8c=BACK[gpu]) if words == "loop" else kernel(gpu, at_0x80=SLEEP[gpu])
    with WaitScene(gpu, block(gpu, "late-loop=0"), code) as s:
        shown = s.ctl("why", s.app.pid, "--twice=1100")
        print(shown.stdout)
        assert shown.returncode == 0 and "CAUSE" not in shown.stdout
        assert "runs in a loop or sleeps" in " ".join(shown.stdout.split())


def test_what_a_client_keeps_suspended_is_not_accused():
    """Nothing moves meanwhile.  The wave that does not move when the queues run is accused as before."""
    with WaitScene("gfx90a", block("gfx90a", "late-loop=0")) as s:
        s.attach(control=True)
        first = s.why()["sample"]
        s.rpc.call("gpu.suspend", session=s.session, lease_ms=60000)
        still = s.why()["sample"]
        time.sleep(1.2)
        for since in (first, still):
            result = s.why(since=since)
            assert not any(c["culprit"] for c in result["causes"]) and int(result["interval_us"]) < 1000000, result["causes"]
            assert any(m.startswith("comparison: queues were suspended") for m in result["missing"]), result["missing"]
        s.rpc.call("gpu.resume", session=s.session)
        time.sleep(1.2)
        assert s.culprits(since=still)[0]["text"].endswith("is the same in both samples")


def test_a_long_look_between_two_samples_is_no_time_in_which_something_moves():
    with WaitScene("gfx90a", block("gfx90a", "late-loop=0")) as s:
        s.attach()
        first = s.why()["sample"]
        s.control("delay resume 1200 1")
        assert int(s.rpc.call("gpu.snapshot", session=s.session, max_stop_ms=7000)["stopped_us"]) > 1200000
        result = s.why(since=first)
        assert not any(c["culprit"] for c in result["causes"]) and int(result["interval_us"]) < 1000000, result["causes"]
        assert any(m.startswith("comparison: queues were suspended") for m in result["missing"]), result["missing"]
        time.sleep(1.2)
        assert s.culprits(since=first)[0]["text"].endswith("is the same in both samples")


@pytest.mark.parametrize("gpu", ["gfx1201", "gfx1250"])
def test_split_barriers_are_told_by_place_and_counts(gpu):
    """gfx12: where the waves are, and that the hardware counts as many arrivals as waves are there."""
    with WaitScene(gpu, block(gpu, "last=memory")) as s:
        shown = s.ctl("why", s.app.pid)
        print(shown.stdout)
        assert shown.returncode == 10 and first_line(shown).startswith("CAUSE  wave 3 of workgroup (0,0,0) of gemm")
        s.attach()
        (wait,) = s.why()["waits"]
        assert wait["confidence"] == "proven" and wait["at"]["instruction"] == "s_barrier_wait"
        assert {"what": "barrier state", "value": "0x30041"} in wait["evidence"]
    # All have arrived: the last wave cannot be the one that is missing for certain.
    with WaitScene(gpu, block(gpu, "last=memory signals=4")) as s:
        s.attach()
        (wait,) = s.why()["waits"]
        assert wait["confidence"] == "inferred"


def test_a_wave_that_has_ended_is_not_waited_for():
    """Wave 1 is gone: wave 3 is the one that is missing, and not wave 1."""
    with WaitScene("gfx90a", block("gfx90a", "last=memory gone=1", 1)) as s:
        s.attach()
        (wait,) = s.why()["waits"]
        assert [m["ref"]["wave_in_group"] for m in wait["missing"]] == [3] and wait["missing_count"] == 1
        assert wait["who"].startswith("waves 0,2 of ")


def test_without_the_instruction_it_is_only_likely():
    with WaitScene("gfx90a", block("gfx90a", "last=memory").replace("gemm+0x40", "gemm+0x60")) as s:
        s.attach()
        result = s.why()
        assert result["waits"][0]["confidence"] == "inferred" and result["causes"][0]["confidence"] == "inferred"


def test_json_is_the_reply():
    with WaitScene("gfx1100", block("gfx1100", "last=illegal")) as s:
        shown = s.ctl("why", s.app.pid, "--json")
        doc = json.loads(shown.stdout)
        assert shown.returncode == 10 and doc["stuck"] and doc["causes"][0]["culprit"] and doc["samples"] == 1
        node = doc["nodes"][doc["causes"][0]["node"]]
        assert node["end"] == "stopped" and node["text"] == doc["causes"][0]["text"]


QUEUES = ("runtime ttmp; idle; queues 2; load CODE; signal done 1; signal other 0; dispatch 0 gemm 256 256; "
          "packet 0 0 kernel completion=done; packet 1 0 and other done; ")
GO = "; pending 0 1; pending 1 2; spin"


def test_a_queue_waits_for_a_kernel_whose_workgroup_is_stuck():
    """From the packet to the signal, the kernel that gives it, its workgroup, and the wave that has stopped."""
    with WaitScene("gfx90a", QUEUES + "waves 0 barrier 4 gemm+0x40 last=memory" + GO) as s:
        shown = s.ctl("why", s.app.pid)
        print(shown.stdout)
        assert shown.returncode == 10
        lines = " ".join(shown.stdout.split()).split(" <- ")
        assert lines[0].startswith("CAUSE wave 3 of workgroup (0,0,0) of gemm, at gemm+0x80, has stopped")
        s.attach()
        result = s.why()
        assert result["causes"][0]["waits"] == 2 and result["causes"][0]["confidence"] == "proven"
        packet = next(w for w in result["waits"] if w["kind"] == "queue")
        assert (packet["expects"], packet["has"], packet["queue_id"], packet["stuck"]) == (2, 1, 1, True)
        assert packet["object"]["value"] == "0x1" and packet["condition"]["op"] == "eq"


def test_a_queue_whose_kernel_runs_is_not_accused():
    with WaitScene("gfx90a", QUEUES + "waves 0 spin 4 gemm+0x40" + GO) as s:
        shown = s.ctl("why", s.app.pid, "--twice=1100")
        print(shown.stdout)
        assert shown.returncode == 0 and "CAUSE" not in shown.stdout
        assert "signal" in shown.stdout


def test_a_signal_that_nobody_gives_is_the_hosts():
    script = "runtime ttmp; idle; queues 1; signal host 1; packet 0 0 and host; pending 0 2; wait-line; signal host 0; spin"
    with WaitScene("gfx942", script) as s:
        shown = s.ctl("why", s.app.pid, "--twice=1100")
        print(shown.stdout)
        assert shown.returncode == 10 and first_line(shown).startswith("CAUSE  the host, a copy engine or another process")
        s.attach()
        first = s.why()
        assert not first["causes"][0]["culprit"]
        s.app.popen.stdin.write(b"\n")
        s.app.popen.stdin.flush()
        wait_until(lambda: not s.why()["waits"], "the packet goes on")


@pytest.mark.parametrize("words, kind", [("or other2 done", True), ("value done eq=5", False)])
def test_other_kinds_of_packets(words, kind):
    """Who waits for one of several accuses nobody."""
    script = QUEUES.replace("signal done 1;", "signal done 1; signal other2 1;").replace("and other done", words)
    with WaitScene("gfx90a", script + "waves 0 barrier 4 gemm+0x40 last=memory" + GO) as s:
        s.attach()
        packet = next(w for w in s.why()["waits"] if w["kind"] == "queue")
        assert packet.get("candidates", False) is kind
        assert packet.get("stuck") is (None if kind else True)
        if not kind:
            assert packet["condition"] == {"op": "eq", "value": "0x5"}


def test_a_place_that_was_not_written():
    with WaitScene("gfx90a", "runtime ttmp; idle; queues 1; packet 0 0 invalid; pending 0 2; spin") as s:
        s.attach()
        result = s.why()
        assert result["waits"][0]["kind"] == "queue" and result["causes"][0]["end"] == "host"
        assert "not written it" in result["causes"][0]["text"] and not result["causes"][0]["culprit"]


def test_a_packet_that_was_taken_accuses_nobody():
    """The device marks it as one that was not written; without waves only what it says tells the two apart."""
    with WaitScene("gfx90a", "runtime ttmp; idle; queues 1; pending 0 2; spin") as s:
        s.attach()
        queue = s.rpc.call("gpu.queues", session=s.session)["queues"][0]
        with open(f"/proc/{s.app.pid}/mem", "r+b") as memory:
            memory.seek(int(queue["ring_base"], 0) + int(queue["read_index"]) % (int(queue["ring_bytes"]) // 64) * 64)
            memory.write(b"\x01")
        before = s.why()
        time.sleep(1.1)
        result = s.why(since=before["sample"])
        assert not result["waits"] and not any(c["culprit"] for c in result["causes"]), result


def test_a_core_says_the_same():
    with WaitScene("gfx90a", block("gfx90a", "last=memory")) as s:
        core = os.path.join(s.files.name, "core")
        live = s.ctl("why", s.app.pid)
        assert s.ctl("dump", s.app.pid, "-o", core).returncode in (0, 8)
        shown = s.ctl("why", "--core", core)
        print(shown.stdout, shown.stderr)
        assert shown.stdout == live.stdout and shown.returncode == 10
        assert s.ctl("why", "--core", core, "--twice").returncode == 2


def test_another_sample_has_to_be_known():
    with WaitScene("gfx90a", block("gfx90a")) as s:
        session = s.attach()
        error = s.rpc.error("why.get", session=session, since=77)
        assert error.name == "invalid_params" and "77" in str(error)
