#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""CUDA processes at a terminal: NVIDIA's words in pages and errors, and what a verb says that it did."""
import json
import os
import re
import signal
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest

from harness import BIN, LONG_STOP, ROOT
from cudascene import assert_untouched, scene

# Words of the protocol, of which NVIDIA has others; none of them is a name in the scene.
NEUTRAL = re.compile(r"\b(waves?|wavefronts?|workgroups?|queues?|dispatch(es)?|packets?|units?|lds|scratch|scalar|vector|kernel object)\b",
                     re.I)


def neutral(text):
    return sorted({m[0] for m in NEUTRAL.finditer(text)})


def test_pages_have_the_vendors_words():
    """Those that other tests compare with what is printed; command lines may have the protocol's words."""
    pages = [*(ROOT / "tests/data/pages").glob("cuda-*.txt"), *(ROOT / "tests/data/pages/parts").glob("cuda-*.txt"),
             *(ROOT / "tests/data/pages/verbs").glob("nvidia-*.txt")]
    assert len(pages) >= 8, pages
    for page in pages:
        lines = [line for line in page.read_text().splitlines() if not line.startswith("$ ")]
        assert not neutral("\n".join(lines)), (page.name, neutral("\n".join(lines)))


def test_registers_are_called_as_nvidia_does():
    with scene() as s:
        run = s.ctl("registers", s.app.pid, "0:0:0")
        assert run.returncode == 0 and not neutral(run.stdout), (neutral(run.stdout), run.stdout)
        assert re.search(r"^grid +kernel at 0x7f0a\w+, 1024,1,1 threads in blocks of 128,1,1$", run.stdout, re.M), run.stdout
        assert re.search(r"^uniform\nUR0 .*^of each thread\nR0 ", run.stdout, re.M | re.S), run.stdout
        run = s.ctl("registers", s.app.pid, "0:0:0", "--bank=uniform")
        assert run.returncode == 0 and "\nuniform\nUR0 " in run.stdout and "special" not in run.stdout, run
        # A grid that the driver does not know has no kernel and no size, but its warps have registers.
        for slot in ("getGridInfo", "getGridInfo120", "getGridInfo55"):
            s.control(f"fail {slot} 21")
        for warp in ("1", "0:0:0"):
            run = s.ctl("registers", s.app.pid, warp)
            assert run.returncode == 0 and "of each thread\nR0 " in run.stdout and "\ngrid " not in run.stdout, run


def test_verdicts_are_told_in_words_of_the_vendor():
    """The hung and the idle: grids, warps and contexts, and no packets."""
    with scene(app="init; context 0; context 1; module @CUBIN@; gpu launch spin grid=8 block=128; listen") as s:
        run = s.ctl("snapshot", s.app.pid, "--again", "600", "-v")
        assert run.returncode == 10 and not neutral(run.stdout + run.stderr), (neutral(run.stdout + run.stderr), run.stdout)
        assert re.search(r"^context 0 idle: no warps$", run.stdout, re.M), run.stdout
        assert re.search(r"^context 1 hung: grid 1 of context 1: 24 warps at the same line for ", run.stdout, re.M), run.stdout
        run = s.ctl("snapshot", s.app.pid, "--again", "600", "--queues-only", "-v")
        assert run.returncode == 8 and not neutral(run.stdout), run.stdout


@pytest.mark.parametrize(("argv", "status", "message"), [
    (["registers", "PID", "0:0:9"], 3, "context 0, SM 0 has no such warp now"),
    (["registers", "PID", "0:0:1@0,0,0/99"], 3, "context 0, SM 0 has no such warp now"),
    (["registers", "PID", "9:0:0"], 3, "there is no context 9"),
    (["memory", "PID", "0x0", "16", "--space=shared", "--warp=0:2:9"], 3, "context 0, SM 2 has no such warp now"),
    (["memory", "PID", "0x0", "16", "--space=lds", "--wave=9:2:7"], 3, "there is no context 9"),
    (["memory", "PID", "0x0", "16", "--space=local", "--warp=0:0:1", "--thread=32"], 2, "--lane: the warp has only 32 threads"),
])
def test_errors_have_the_vendors_words(argv, status, message):
    """The same of a live process and of its core file."""
    verb, _, *rest = argv
    with scene() as s:
        core = s.directory / "core"
        assert s.ctl("dump", s.app.pid, "-o", core).returncode == 0
        for target, words in ((str(s.app.pid), r"\d+"), (f"--core={core}", f"--core {core}")):
            run = s.ctl(verb, target, *rest)
            said = message if target.isdigit() else message.removesuffix(" now")
            assert run.returncode == status and f"error: {said}\n" in run.stderr, run
            assert not neutral(run.stderr), run.stderr
            assert status == 2 or re.search(rf"hint: `gpu-agentctl (warps|contexts) {words}` lists those there are\n", run.stderr), run


def test_resume_tells_what_it_resumed():
    """Contexts that nobody has suspended are not said to run again; those of one device do so together."""
    with scene(app="init; context 0; context 0; context 1; module @CUBIN@; gpu launch spin grid=8 block=128; listen") as s:
        run = s.ctl("resume", s.app.pid)
        assert run.returncode == 0 and not run.stdout and "nothing to resume: contexts stay stopped" in run.stderr, run
        session = s.attach(control=True)

        def verdicts(answer):
            return {q["queue_id"]: q["verdict"] for q in answer["queues"]}
        assert s.rpc.call("gpu.resume", session=session) == {"queues": [], "resumed": 0, "stopped_us": 0}
        s.rpc.call("gpu.suspend", session=session, queues=[2], lease_ms=60000)
        assert verdicts(s.rpc.call("gpu.resume", session=session)) == {2: "resumed"}
        s.rpc.call("gpu.suspend", session=session, queues=[0], lease_ms=60000)
        answer = s.rpc.call("gpu.resume", session=session, queues=[0, 1, 2, 7])
        assert verdicts(answer) == {0: "resumed", 1: "resumed", 2: "skipped", 7: "skipped"}, answer
        s.rpc.call("session.detach", session=session)
        assert_untouched(s)


@pytest.mark.parametrize("options", [[], ["-j"]])
def test_the_end_of_the_process_is_told(options):
    """Between the two snapshots; that is no mistake of the user, who gets no advice."""
    with scene() as s:
        ctl = s.start("ctl", [BIN / "gpu-agentctl", "snapshot", s.app.pid, "--again", "2000", LONG_STOP, *options],
                      env={"GPU_AGENT_SOCKET": str(s.socket)})
        ctl.wait_line("err", "the second snapshot follows")
        s.app.stop(signal.SIGKILL)
        assert ctl.popen.wait(60) == 3, ctl.err()
        assert ctl.err().endswith(f"error: process {s.app.pid} has ended\n"), ctl.err()
        if options:
            error = json.loads(ctl.out())["error"]
            assert (error["data"]["name"], error["message"]) == ("session_ended", f"process {s.app.pid} has ended"), error
