#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""gpu-agentctl why of waves that poll memory: the word, what is in it, what it has to be; and nobody is accused."""
import os
import sys
import time

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest

from harness import need_root, wait_until
from silentfile import silent_file
from waitscene import POLL, POLLS, WaitScene, block, kernel, polling

GPUS = sorted(POLL)


def words_of(shown):
    return " ".join(shown.stdout.split())


@pytest.mark.parametrize("gpu", GPUS)
def test_a_wave_that_polls_is_told_with_its_word(gpu):
    script = "signal flag 3; " + block(gpu, f"late-loop=0 {POLLS}").replace("; spin", "; wait-line; signal flag 7; spin")
    with WaitScene(gpu, script, polling(gpu)) as s:
        shown = s.ctl("why", s.app.pid, "--twice=1100")
        print(shown.stdout, shown.stderr)
        # Whoever writes the word may come: an idle wave of a persistent kernel looks the same.
        assert shown.returncode == 0 and "CAUSE" not in shown.stdout and "STUCK" not in shown.stdout
        assert "wave 3 of workgroup (0,0,0) of gemm, at gemm+0x80, polls the word at 0x" in words_of(shown)
        assert "(value 0x3) until it is 0x7 [inferred]" in words_of(shown)
        s.attach()
        result = s.why()
        spin = next(w for w in result["waits"] if w["kind"] == "spin")
        assert spin["object"]["value"] == "0x3" and spin["object"]["bytes"] == 4 and spin["waves"] == 1
        assert spin["condition"] == {"op": "eq", "value": "0x7"}
        assert {"what": "waves at this place, of which this is one", "value": "3"} in spin["evidence"]
        # The barrier waits for the wave, and the wave for the word.
        names = [n["text"] for n in result["nodes"]]
        edges = {(names[e["from"]].split(" of ")[0], names[e["to"]].split(" ")[0]) for e in result["edges"]}
        assert ("waves 0-2", "wave") in edges and ("wave 3", "whoever") in edges
        s.app.popen.stdin.write(b"\n")
        s.app.popen.stdin.flush()
        wait_until(lambda: all(w["kind"] != "spin" for w in s.why()["waits"]), "the word is there")


def test_a_word_that_moves_is_told_to_move():
    """It is another one in the second sample, and still not as it has to be."""
    script = "signal flag 3; " + block("gfx90a", f"late-loop=0 {POLLS}").replace("; spin", "; wait-line; signal flag 4; spin")
    with WaitScene("gfx90a", script, polling("gfx90a")) as s:
        s.attach()
        first = s.why()
        assert "stuck" not in next(w for w in first["waits"] if w["kind"] == "spin")
        s.app.popen.stdin.write(b"\n")
        s.app.popen.stdin.flush()
        wait_until(lambda: next(w for w in s.why(since=first["sample"])["waits"] if w["kind"] == "spin").get("stuck") is False,
                   "the word has moved")


def test_a_word_that_cannot_be_read_is_told_so():
    with WaitScene("gfx90a", block("gfx90a", "late-loop=0 s2=0x1000 s3=0 s4=7 v0=0"), polling("gfx90a")) as s:
        shown = s.ctl("why", s.app.pid)
        print(shown.stdout)
        assert shown.returncode == 8 and "polls the word at 0x1000 (value not readable) until it is 0x7 [unknown]" in words_of(shown)


def test_memory_that_does_not_answer_costs_its_word(tmp_path):
    """A page of a file that does not answer, at an address that the program chose: it is not read, and that is said."""
    need_root()
    tmp_path.joinpath("file").write_bytes(b"")
    script = f"map 0x7e0000000000 {tmp_path}/file; " + block("gfx90a", "late-loop=0 s2=0 s3=0x7e00 s4=7 v0=0")
    with silent_file(f"{tmp_path}/file"), WaitScene("gfx90a", script, polling("gfx90a")) as s:
        s.attach()
        for _ in range(2):
            result = s.why()
            spin = next(w for w in result["waits"] if w["kind"] == "spin")
            assert spin["object"] == {"address": "0x7e0000000000", "bytes": 4} and spin["confidence"] == "unknown"
            assert not result["complete"] and any("in a file, which is not read" in m for m in result["missing"]), result["missing"]
        # The session goes on, and ends.
        assert s.rpc.call("gpu.queues", session=s.session)["queues"]
        s.rpc.call("session.detach", session=s.session)


def test_lanes_that_poll_words_of_their_own():
    """Each lane leaves when its word is there; only those that are left wait."""
    loop = [0xDC518000, 0x027F0000, 0xBF8C0F70, 0x7D940402, 0x8780006A, 0x89FE007E, 0xBF89FFF9]
    words = {f"at_{0x80 + 4 * i:#x}": word for i, word in enumerate(loop)}
    script = ("runtime ttmp; queues 1; load CODE; signal flag 3; signal other 4; dispatch 0 gemm 64 64; "
              "waves 0 spin 1 gemm+0x80 loop=0 exec=0x30 s2=7 v0=@flag; spin")
    with WaitScene("gfx90a", script, kernel("gfx90a", **words)) as s:
        s.attach()
        (wait,) = s.why()["waits"]
        print(wait)
        assert wait["kind"] == "spin" and wait["object"]["value"] == "0x3"
        assert {"what": "lanes", "value": "2"} in wait["evidence"]


def test_a_lock_is_told_as_one():
    loop = [0xDD058000, 0x02000001, 0xBF8C0F70, 0xE0FC0000, 0x00000000, 0x7D940480, 0x8782026A, 0x89FE027E, 0xBF89FFF7]
    words = {f"at_{0x80 + 4 * i:#x}": word for i, word in enumerate(loop)}
    script = ("runtime ttmp; queues 1; load CODE; signal flag 9; dispatch 0 gemm 64 64; "
              "waves 0 spin 1 gemm+0x80 loop=0 s0=@flag v1=0; spin")
    with WaitScene("gfx90a", script, kernel("gfx90a", **words)) as s:
        shown = s.ctl("why", s.app.pid, "--twice=1100")
        print(shown.stdout)
        assert shown.returncode == 0
        assert "tries to take the lock in the word at 0x" in words_of(shown) and "(value 0x9) until it is 0x0" in words_of(shown)


@pytest.mark.parametrize("then, starves", [
    ("signal flag 10", True), ("signal flag 9", False),
    # Another wave tries it now.
    ("signal flag 10; waves 0 spin 1 gemm+0x80 loop=0 workgroup=1,0,0 s0=@flag v1=0", False)], ids=["moves", "stays", "another-wave"])
def test_who_tries_a_lock_in_both_samples_while_it_goes_round_may_starve(then, starves):
    loop = [0xDD058000, 0x02000001, 0xBF8C0F70, 0xE0FC0000, 0x00000000, 0x7D940480, 0x8782026A, 0x89FE027E, 0xBF89FFF7]
    words = {f"at_{0x80 + 4 * i:#x}": word for i, word in enumerate(loop)}
    script = ("runtime ttmp; queues 1; load CODE; signal flag 9; dispatch 0 gemm 128 64; "
              f"waves 0 spin 1 gemm+0x80 loop=0 s0=@flag v1=0; ready; wait-line; {then}; ready; spin")
    with WaitScene("gfx90a", script, kernel("gfx90a", **words)) as s:
        s.attach()
        first = s.why()
        s.app.popen.stdin.write(b"\n")
        s.app.popen.stdin.flush()
        s.app.wait_line()
        soon, = s.why(since=first["sample"])["waits"]
        assert all(e["what"] != "starving" for e in soon["evidence"]), soon
        time.sleep(1.05)
        lock, = s.why(since=first["sample"])["waits"]
        assert lock["kind"] == "lock" and lock["object"]["value"] == ("0x9" if "flag 9" in then else "0xa"), lock
        assert (lock["text"].endswith("; in the sample before as well, and the word has changed since")) is starves, lock
        assert any(e["what"] == "starving" for e in lock["evidence"]) is starves, lock


@pytest.mark.parametrize("why, words", [("with a jump to where a register says", kernel("gfx90a", at_0xc0=0xBE801D02)),
                                        ("in more than 32 KiB of code", kernel("gfx90a") + [0xBF800000] * 9000)])
def test_code_that_is_not_analysed_accuses_nobody(why, words):
    """The wave is the same in both samples, and may all the same be in a loop."""
    with WaitScene("gfx90a", block("gfx90a", "late-loop=0"), words) as s:
        shown = s.ctl("why", s.app.pid, "--twice=1100")
        print(shown.stdout)
        assert shown.returncode == 0 and "CAUSE" not in shown.stdout
        assert why in words_of(shown) and "which is not analysed" in words_of(shown)
