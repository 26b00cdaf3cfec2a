#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""CUDA processes at a terminal: NVIDIA's words in pages and errors, and what a verb says that it did."""
import os
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

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
