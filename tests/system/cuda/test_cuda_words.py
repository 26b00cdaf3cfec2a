#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""CUDA processes at a terminal: NVIDIA's words in pages and errors, and what a verb says that it did."""
import json
import os
import signal
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest

from harness import BIN, LONG_STOP
from cudascene import assert_untouched, scene


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
