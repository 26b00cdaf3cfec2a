#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Recordings, as the tools read them that their files are for: pprof, speedscope's schema, and Perfetto's trace processor.

No package of Debian or npm has the last one: GPU_AGENT_TRACE_PROCESSOR names one that was built from Perfetto's sources, of 2026 or later.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
from unittest import SkipTest

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest

import npm
from harness import ROOT, Scene
from peers import fetch

HERE = pathlib.Path(__file__).resolve().parent
CODE = ROOT / "sim/scenes/amd/train-gfx90a.co"
# A quarter of the waves is in train.hip:29 of embedding(), the others are in train.hip:61, dot() <- gemm().
APP = (f"name a<b>&\"'; runtime ttmp; queues 2; load {CODE}; dispatch 0 embedding 16384 256; "
       "dispatch 1 gemm 1048576 256; waves 0 halted 64 embedding+0x74; waves 1 halted 192 gemm+0x70; listen")
BUILD_SECONDS = 240


def record(s, *argv):
    run = s.ctl("record", s.app.pid, "-d", "1s", "--overhead", "20%", *argv)
    assert run.returncode == 0, (run.stdout, run.stderr)


def build_pprof():
    """Debian has its source only."""
    tree = fetch("pprof")
    program = tree / "pprof"
    go = tree / "usr/lib/go-1.19"
    if not program.exists():
        new = program.with_suffix(f".{os.getpid()}")
        env = {**os.environ, "GOROOT": str(go), "GOPATH": str(tree / "usr/share/gocode"), "GO111MODULE": "off",
               "GOFLAGS": "", "GOCACHE": str(tree / "cache"), "CGO_ENABLED": "0"}
        subprocess.run([go / "bin/go", "build", "-o", new, "github.com/google/pprof"], env=env, check=True,
                       timeout=BUILD_SECONDS)
        new.rename(program)
        shutil.rmtree(tree / "cache", ignore_errors=True)
    return program


def top(program, path, *argv):
    """{function: percent of its own}"""
    run = subprocess.run([program, "-top", *argv, path], check=True, capture_output=True, text=True, timeout=60,
                         env={**os.environ, "HOME": str(path.parent)})
    rows = re.findall(r"^ *\S+ +([\d.]+)% +[\d.]+% +\S+ +[\d.]+% +(.*)$", run.stdout, re.M)
    assert rows, run.stdout
    return {name: float(percent) for percent, name in rows}, run.stdout


def test_pprof_shows_the_shares():
    program = build_pprof()
    with Scene(app=APP, gpus="gfx90a") as s:
        path = s.directory / "x.pb"
        record(s, "--pprof", path)
        found, text = top(program, path)
        assert found["dot(float const*, float const*, int)"] == 75 and found["embedding"] == 25, text
        assert "captures in 1.0 s" in text and "Type: time" in text, text
        lines, text = top(program, path, "-lines", "-sample_index=captures")
        assert lines["dot(float const*, float const*, int) /src/train.hip:61"] == 75, text
        record(s, "--host", "--pprof", path)
        found, text = top(program, path)
        assert found["embedding"] == 25, text
        found, text = top(program, path, "-sample_index=thread_time")
        assert abs(sum(found.values()) - 100) < 0.5 and "embedding" not in found, text


# Frames of each stack from its root on, and what the samples count there.
STACKS = """
WITH RECURSIVE stack(callsite, parent, names) AS (
  SELECT c.id, c.parent_id, f.name FROM stack_profile_callsite c JOIN stack_profile_frame f ON f.id = c.frame_id
  UNION ALL
  SELECT s.callsite, c.parent_id, f.name || ';' || s.names FROM stack s
  JOIN stack_profile_callsite c ON c.id = s.parent JOIN stack_profile_frame f ON f.id = c.frame_id)
SELECT p.sample_type_type, s.names, a.value FROM stack s JOIN __intrinsic_aggregate_sample a ON a.callsite_id = s.callsite
JOIN __intrinsic_aggregate_profile p ON p.id = a.aggregate_profile_id WHERE s.parent IS NULL
"""


def perfetto(path):
    """{what is counted: {stack: share of it}}"""
    program = os.environ.get("GPU_AGENT_TRACE_PROCESSOR") or shutil.which("trace_processor_shell")
    if not program:
        raise SkipTest("not installed: trace_processor_shell of Perfetto (GPU_AGENT_TRACE_PROCESSOR)")
    run = subprocess.run([program, "query", path, STACKS], check=True, capture_output=True, text=True, timeout=60)
    found = {}
    # It does not double the quotation marks of a name.
    for kind, stack, value in re.findall(r'^"(\w+)","(.*)",([\d.]+)$', run.stdout, re.M):
        found.setdefault(kind, {})[stack] = float(value)
    assert found, (run.stdout, run.stderr)
    return {kind: {stack: value / sum(values.values()) for stack, value in values.items()} for kind, values in found.items()}


def test_perfetto_shows_the_shares():
    with Scene(app=APP, gpus="gfx90a") as s:
        pprof, collapsed = s.directory / "x.pb", s.directory / "x.txt"
        record(s, "--pprof", pprof, "--collapsed", collapsed)
        name = f"a<b>&\"' {s.app.pid}"
        dot = f"{name};gemm;dot(float const*, float const*, int)"
        assert perfetto(collapsed) == {"samples": {f"{name};embedding;train.hip:29": 0.25, f"{dot};train.hip:61": 0.75}}
        # It keeps lines of a profile in a table of their own.
        found = perfetto(pprof)
        assert found["captures"] == {f"{name};embedding": 0.25, dot: 0.75}, found
        assert set(found) == {"captures", "time"} and found["time"] == pytest.approx(found["captures"], abs=0.01), found


def test_speedscope_finds_nothing_wrong():
    modules = npm.install(HERE, lambda place: npm.run_npm(["install", "--ignore-scripts"], place))
    script = modules.parent / "check.cjs"
    shutil.copy(HERE / "check.cjs", script)
    with Scene(app=APP, gpus="gfx90a") as s:
        path = s.directory / "x.json"
        for argv in ((), ("--host",)):
            record(s, *argv, "--speedscope", path)
            run = subprocess.run(["node", script, path], check=True, capture_output=True, text=True, timeout=60)
            assert json.loads(run.stdout) == [], run.stdout
        # What the schema is for.
        path.write_text(path.read_text().replace('"sampled"', '"sampld"'))
        run = subprocess.run(["node", script, path], check=True, capture_output=True, text=True, timeout=60)
        assert json.loads(run.stdout), run.stdout
