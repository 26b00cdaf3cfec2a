#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Variables outside of functions in expressions: which one a name means, and its bytes, of a process."""
import os
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from harness import STOP_MS, ROOT, CudaScene

CUBIN = ROOT / "tests/data/cubin/globals-sm_90-g.cubin"
APP = (f"init; context 0; module {CUBIN}; gpu launch globals_a grid=2 block=32; gpu launch globals_b grid=1 block=32; "
       "listen")


def waves(s, session):
    """A wave of each kernel."""
    doc = s.rpc.call("gpu.snapshot", session=session, max_stop_ms=STOP_MS)
    found = {g["kernel"]["name"]: g["representative"] for g in doc["groups"]}
    return {name: {k: ref[k] for k in ("queue_id", "unit", "index")} for name, ref in found.items()}


def test_what_a_name_means_depends_on_the_function():
    with CudaScene(app=APP, sim="devices 1 sms=3 warps=8", release="12.4") as s:
        s.control("memory shared 0 0 0 0x400 hex=" + "01000000" * 32)
        session = s.attach()
        of = waves(s, session)

        def value(kernel, expression):
            answer = s.rpc.call("wave.evaluate", session=session, wave=of[kernel], expression=expression, max_stop_ms=STOP_MS)
            return answer["state"], answer.get("value", answer.get("reason")), answer["type"]

        for kernel, expression, want in (
                ("globals_a", "shared_by_both", ("ok", "7", "long")),
                ("globals_b", "shared_by_both", ("ok", "7", "long")),
                ("globals_a", "own", ("ok", "3", "short")),
                ("globals_b", "own", ("ok", "11", "int")),
                ("globals_a", "ns::table", ("ok", "{1, 2, 3, 4}", "int [4]")),
                ("globals_b", "ns::table[2] * of_a", ("ok", "3", "int")),
                ("globals_a", "ns::shared_by_both", ("ok", "8", "int")),
                ("globals_a", "nameless", ("ok", "5", "int")),
                # Constant memory: by the symbol, in bank 3.
                ("globals_a", "ns::in::scale", ("ok", "2.5", "float")),
                ("globals_b", "banked", ("ok", "{0, 0, 0, 0, 0, 0, 0, 0}", "int [8]"))):
            assert value(kernel, expression) == want, (kernel, expression, value(kernel, expression))


def test_the_verb():
    with CudaScene(app=APP, sim="devices 1 sms=3 warps=8", release="12.4") as s:
        run = s.ctl("print", s.app.pid, "1", "ns::table")
        assert run.returncode == 0 and "{1, 2, 3, 4}" in run.stdout, (run.stdout, run.stderr)
        run = s.ctl("print", s.app.pid, "1", "no_such")
        assert run.returncode == 2 and "there is no no_such here" in run.stderr, (run.returncode, run.stderr)
