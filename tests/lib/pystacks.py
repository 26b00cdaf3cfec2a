# SPDX-License-Identifier: MIT
"""Random Python programs of which it is known where their threads are, compared with what host.stacks tells of them.

With GPU_AGENT_PYTHON_PROGRAMS=N, N of each kind for each interpreter instead of some, from the seed GPU_AGENT_PYTHON_FIRST on.
"""
from __future__ import annotations

import os
import re
import signal
from typing import Any, Dict, Iterable, List, Optional, Tuple

from harness import ROOT, Json, Process, Scene, wait_until

HERE = ROOT / "tests/system/host"
COUNT = int(os.environ.get("GPU_AGENT_PYTHON_PROGRAMS", "0"))
FIRST = int(os.environ.get("GPU_AGENT_PYTHON_FIRST", "0"))
THREADS = 25
PLACE = re.compile(r'  File "(.*)", line (\d+),? in (.*)')
# Outermost functions of a thread that threading has started, and of the first one.
OUTERMOST = ("_bootstrap", "<module>")

Stacks = List[List[Tuple[str, str, int]]]


def seeds(some: int) -> range:
    return range(FIRST, FIRST + (COUNT or some))


def start(s: Scene, argv: Iterable[Any], env: Optional[Dict[str, str]] = None) -> Process:
    """Start a program that prints a line when it is ready."""
    process = s.start("python", argv, env=env)
    process.wait_line()
    return process


def told_by_program(process: Process) -> Stacks:
    """The stacks as faulthandler has them, innermost first."""
    def stacks() -> Stacks:
        found: Stacks = []
        for line in process.err().split("\n")[:-1]:
            place = PLACE.match(line)
            if re.match(r"(Current t|T)hread 0x", line):
                found.append([])
            elif place:
                found[-1].append((place[3].encode().decode("unicode_escape"), place[1], int(place[2])))
        is_whole = len(found) == THREADS and all(f and f[-1][0] in OUTERMOST for f in found)
        return sorted(found) if is_whole else []

    os.kill(process.pid, signal.SIGUSR1)
    return wait_until(stacks, "faulthandler tells all threads")


def told_by_agent(doc: Json) -> Stacks:
    return sorted([(f["function"].split(".")[-1], f["file"], f["line"]) for f in g["frames"]]
                  for g in doc["groups"] if g["frames"] for _ in range(g["threads"]))


def read_at_rest(s: Scene, pid: int, whole: bool = False) -> Json:
    def rests() -> Json:
        doc = s.rpc.call("host.stacks", pid=pid)
        return doc if (doc["complete"] or not whole) and all(g.get("proof") == "not_scheduled" for g in doc["groups"]) else {}
    return wait_until(rests, "all threads stand still")


def compare_at_rest(s: Scene, argv: List[Any], env: Optional[Dict[str, str]], version: str) -> None:
    """Programs whose threads wait in many ways: their frames are those that they tell."""
    threads = frames = 0
    for seed in seeds(3):
        process = start(s, [*argv, HERE / "many.py", seed], env)
        # A library of Debian's younger suites may have no table that is known.
        doc = read_at_rest(s, process.pid, whole=not env)
        assert doc["threads"] == THREADS and doc["stopped_us"] == 0, doc
        told = doc["python"][0]
        assert f"{told['version']}.".startswith(f"{version}.") and told["interpreters"] == 1, doc["python"]
        assert not any("python" in m or m.startswith("frames") for m in doc["missing"]), doc["missing"]
        assert env or doc["missing"] == [], doc["missing"]
        assert any("mäßig" in f["function"] for g in doc["groups"] for f in g["frames"])
        ours, theirs = told_by_agent(doc), told_by_program(process)
        assert ours == theirs, seed
        threads += len(ours)
        frames += sum(map(len, ours))
        process.stop(signal.SIGKILL)
    print(f"  {version}: {len(seeds(3))} programs at rest, {threads} threads, {frames} frames as the program tells them")


def compare_running(s: Scene, argv: List[Any], env: Optional[Dict[str, str]], version: str, threads: int = 1) -> None:
    """Programs that run one of two chains of calls without pause: what is told as consistent is of two moments in less than
    one of a hundred cases, and never where it is called proven."""
    told = mixed = 0
    readings = 20 if COUNT else 150
    # As clients ask by themselves, where that is not a thousand times.
    options = {"native": False} if COUNT or env else {}
    for seed in seeds(1):
        process = start(s, [*argv, HERE / "alternate.py", *([seed, threads] if COUNT or threads > 1 else [])], env)
        for _ in range(readings):
            doc = s.rpc.call("host.stacks", pid=process.pid, **options)
            for g in doc["groups"]:
                chains = {f["function"].split(".")[-1][:2] for f in g["frames"]} & {"a_", "b_"}
                if g["consistent"]:
                    told += 1
                    mixed += len(chains) > 1
                    assert len(chains) < 2 or g["proof"] != "not_scheduled", (seed, g)
                else:
                    assert not doc["complete"] and "different moments" in doc["missing"][0], doc
        process.stop(signal.SIGKILL)
    print(f"  {version}: {len(seeds(1))} programs that run, {told} of {len(seeds(1)) * readings * threads} consistent, "
          f"{mixed} of these mixed")
    assert mixed <= told // 100
