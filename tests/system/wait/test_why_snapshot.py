#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""snapshot --why: a line for each row of waves that wait, in the same document and from the same stop."""
import json
import os
import subprocess
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from harness import BIN, CudaScene
from waitscene import POLLS, WaitScene, block, polling

LATE = "signal flag 3; " + block("gfx90a", f"late-loop=0 {POLLS}")


def words_of(shown):
    return " ".join(shown.stdout.split())


def document(s, *args):
    shown = s.ctl("snapshot", s.app.pid, "-j", *args)
    return shown, json.loads(shown.stdout)


def test_each_row_of_waves_that_wait_has_a_line():
    with WaitScene("gfx90a", block("gfx90a", "last=memory")) as s:
        shown = s.ctl("snapshot", s.app.pid, "--why")
        print(shown.stdout, shown.stderr)
        assert shown.returncode == 0
        # The rows are those of the table: faults first.
        lines = shown.stdout.splitlines()
        assert lines[0].startswith("FAULT  ")
        assert lines[1].startswith("CAUSE  wave 3 of workgroup (0,0,0) of gemm, at gemm+0x80, has stopped")
        assert shown.stdout.count("CAUSE") == 1
        assert "\n2      waves 0-2 of workgroup (0,0,0) of gemm wait at a barrier, at gemm+0x40" in shown.stdout
        assert "so do 2 more workgroups [proven]" in words_of(shown)
        plain = s.ctl("snapshot", s.app.pid)
        assert "CAUSE" not in plain.stdout and "barrier" not in plain.stdout, plain.stdout


def test_the_document_carries_all_of_it():
    """Groups name their waits, and the sample is one that why.get compares with."""
    with WaitScene("gfx90a", block("gfx90a", "last=memory")) as s:
        _, plain = document(s)
        assert "why" not in plain and not any("wait" in g or "waiting" in g for g in plain["groups"])
        shown, doc = document(s, "--why")
        assert shown.returncode == 0 and doc["complete"] and "registers" not in doc
        stopped, waiting = doc["groups"]
        assert "wait" not in stopped and waiting["waiting"] == waiting["waves"] == 9
        wait = doc["why"]["waits"][waiting["wait"]]
        assert wait["kind"] == "barrier" and wait["text"].startswith(wait["who"]) and "missing: wave 3" in wait["text"]
        assert doc["why"]["wave_count"] == doc["wave_count"] and doc["why"]["stopped_us"] == doc["stopped_us"]
        s.attach()
        sample = s.rpc.call("gpu.snapshot", session=s.session, why=True)["why"]["sample"]
        assert s.why(since=sample)["samples"] == 2


def test_of_waves_that_poll_one_at_each_place_is_told():
    with WaitScene("gfx90a", LATE, polling("gfx90a")) as s:
        shown = s.ctl("snapshot", s.app.pid, "--why")
        print(shown.stdout)
        assert shown.returncode == 0 and "CAUSE" not in shown.stdout
        assert "1 of 3 waves: wave 3 of workgroup (0,0,0) of gemm, at gemm+0x80, polls the word at 0x" in words_of(shown)


def test_what_cannot_be_read_is_missing_in_the_snapshot():
    with WaitScene("gfx90a", block("gfx90a", "late-loop=0 s2=0x1000 s3=0 s4=7 v0=0"), polling("gfx90a")) as s:
        shown, doc = document(s, "--why")
        assert shown.returncode == 8 and any(m.startswith("why: memory: ") for m in doc["missing"]), doc["missing"]


def test_a_queue_that_waits_has_a_line():
    script = "runtime ttmp; idle; queues 1; signal host 1; packet 0 0 and host; pending 0 2; spin"
    with WaitScene("gfx90a", script) as s:
        shown = s.ctl("snapshot", s.app.pid, "--why", "--again", "500")
        print(shown.stdout)
        assert "queue  packet " in shown.stdout and "0 of 1 signal given; missing: " in words_of(shown)


def test_a_core_says_the_same():
    with WaitScene("gfx90a", block("gfx90a", "last=memory")) as s:
        core = os.path.join(s.files.name, "core")
        _, live = document(s, "--why")
        assert s.ctl("dump", s.app.pid, "-o", core).returncode in (0, 8)
        doc = json.loads(s.ctl("snapshot", "--core", core, "--why", "-j").stdout)
        assert [w["text"] for w in doc["why"]["waits"]] == [w["text"] for w in live["why"]["waits"]]


def test_a_merged_document_has_none(tmp_path):
    """Positions in one document's list mean nothing in another's."""
    with WaitScene("gfx90a", block("gfx90a", "last=memory")) as s:
        _, doc = document(s, "--why")
        assert any("wait" in g for g in doc["groups"])
        for name in ("a", "b"):
            tmp_path.joinpath(name).write_text(json.dumps(doc))
            doc["process"]["pid"] += 1
        shown = subprocess.run([BIN / "gpu-agentctl", "merge", "-j", *(tmp_path / n for n in "ab")], capture_output=True, text=True,
                               timeout=60)
        doc = json.loads(shown.stdout)
        assert len(doc["ranks"]) == 2 and "why" not in doc and not any("wait" in g or "waiting" in g for g in doc["groups"])


def test_no_registers_of_cuda_devices_are_copied():
    """They take so many calls, in the stop, and nothing is told by them."""
    with CudaScene(release="13.4") as s:
        s.control("fail readRegisterRange 46")
        assert json.loads(s.ctl("snapshot", s.app.pid, "--registers", "-j").stdout)["missing"]
        document = json.loads(s.ctl("snapshot", s.app.pid, "--why", "-j").stdout)
        assert not document["missing"] and document["why"]["vendor"] == "nvidia", document


def test_without_waves_there_is_nothing_to_ask():
    with WaitScene("gfx90a", block("gfx90a")) as s:
        assert s.ctl("snapshot", s.app.pid, "--why", "--queues-only").returncode == 2
        session = s.attach()
        error = s.rpc.error("gpu.snapshot", session=session, why=True, queues_only=True)
        assert error.name == "invalid_params" and "params.why" in str(error)
