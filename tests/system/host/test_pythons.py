#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Frames of Debian's newer interpreters, which this release does not have: as the program itself tells them, and as CPython's own
profiler does.  Each comes with all libraries below it into a tree of its own (scripts/fetch-peers)."""
import ast
import collections
import os
import re
import shutil
import signal
import subprocess
import sys
from unittest import SkipTest

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest

from harness import ROOT, Scene, wait_until
from peers import fetch, linker
from pystacks import PLACE, compare_at_rest, compare_running, read_at_rest

MANY = ROOT / "tests/system/host/many.py"
TASKS = ROOT / "tests/system/host/tasks.py"
ALTERNATE = ROOT / "tests/system/host/alternate.py"
VERSIONS = ["3.13", "3.14", "3.15"]
FREE_THREADED = ["3.13t", "3.14t", "3.15t"]


def interpreter(version):
    """The command line of that interpreter, and its environment."""
    if os.uname().machine != "x86_64":
        raise SkipTest("the interpreters are fetched for x86-64 only")
    tree = fetch(f"python{version}")
    return [*linker(tree), tree / f"usr/bin/python{version}"], {"PYTHONHOME": str(tree / "usr")}


def free_threaded(version):
    """The command line of one that was built to run without a lock."""
    program = shutil.which(f"python{version}")
    if not program:
        raise SkipTest(f"no python{version} in PATH: Debian has none; CPython's configure --disable-gil and make install make one")
    return [program]


def told_by_profiler(text):
    """{thread: its frames, innermost first}"""
    stacks = {}
    for line in text.split("\n"):
        begin, place = re.match(r"Stack dump.*, thread (\d+)", line), PLACE.match(line)
        if begin:
            frames = stacks.setdefault(int(begin[1]), [])
        elif place:
            frames.insert(0, (place[3], place[1], int(place[2])))
    return stacks


@pytest.mark.parametrize("version", VERSIONS)
def test_frames_are_those_that_the_program_tells(version):
    argv, env = interpreter(version)
    with Scene(app=None) as s:
        compare_at_rest(s, argv, env, version)


@pytest.mark.parametrize("version", VERSIONS)
def test_two_call_chains_are_never_mixed_unsaid(version):
    argv, env = interpreter(version)
    with Scene(app=None) as s:
        compare_running(s, argv, env, version)


def test_frames_are_those_that_cpythons_profiler_tells():
    """It reads the same memory with a reader of its own, of 3.15 only, and prints the outermost frame first."""
    argv, env = interpreter("3.15")
    with Scene(app=None) as s:
        process = s.start("python", [*argv, MANY, "5"], env=env)
        process.wait_line()
        doc = read_at_rest(s, process.pid)
        run = subprocess.run([*argv, "-m", "profiling.sampling", "dump", "-a", str(process.pid)], env={**os.environ, **env},
                             capture_output=True, text=True, timeout=60)
        if run.returncode or "File" not in run.stdout:
            raise SkipTest(f"profiling.sampling does not answer: {(run.stderr or run.stdout).strip()[-200:]}")
        theirs = told_by_profiler(run.stdout)
        ours = {g["representative"]["tid"]: [(f["function"], f["file"], f["line"]) for f in g["frames"]]
                for g in doc["groups"] if g["frames"] and g["threads"] == 1}
        assert theirs.keys() >= ours.keys() and len(ours) > 10, (theirs.keys(), ours.keys())
        for tid, frames in ours.items():
            assert [(name, line) for name, _, line in frames] == [(name, line) for name, _, line in theirs[tid]], tid
            # It leaves out the beginning of a path.
            assert all(mine[1].endswith(file) for mine, (_, file, _) in zip(frames, theirs[tid])), (frames, theirs[tid])


def tasks_of_program(process):
    """[(name, chain of coroutines)] as the program itself has them, sorted."""
    os.kill(process.pid, signal.SIGUSR1)
    wait_until(lambda: "told" in process.err().split("\n"), "the program tells its tasks")
    return sorted(ast.literal_eval(line[5:]) for line in process.err().split("\n") if line.startswith("task "))


def chains(doc):
    """{(chain of coroutines): how many tasks}"""
    found = collections.Counter()
    for g in doc["tasks"]:
        found[tuple((f["function"], f["file"], f["line"]) for f in g["frames"])] += g["tasks"]
    return found


def compare_tasks(s, argv, env):
    process = s.start("python", [*argv, TASKS], env=env)
    process.wait_line()
    doc = read_at_rest(s, process.pid)
    assert doc["python"][0]["asyncio"] == "read" and all(g["consistent"] for g in doc["tasks"]), doc
    assert not any("task" in m for m in doc["missing"]), doc["missing"]
    told = tasks_of_program(process)
    assert len(told) == 2 * 11 and chains(doc) == collections.Counter(tuple(chain) for _, chain in told), (chains(doc), told)
    assert {n for g in doc["tasks"] for n in g["names"]} <= {name for name, _ in told}
    assert {g["thread"] for g in doc["tasks"]} <= {t for g in doc["groups"] for t in g["tids"]}
    threads = {g["thread"] for g in doc["tasks"]}
    assert len(threads) == 2
    for tid in threads:
        mine = {n: g for g in doc["tasks"] if g["thread"] == tid for n in g["names"]}
        # They wait at one place; who awaits them is told of all.
        assert mine["Größe-0"] is mine["alone"] and mine["Größe-0"]["tasks"] == 4, mine
        assert sorted(mine["alone"]["awaited_by"]) == sorted(["gather", *mine["gather"]["awaited_by"]]), mine
        assert [f["function"] for f in mine["Größe-0"]["frames"]][-3:] == ["inner", "middle", "outer"], mine
    text = " ".join(s.ctl("stacks", process.pid).stdout.split())
    assert "4 tasks wait: " in text and "awaited by " in text and "Event.wait" in text, text


@pytest.mark.parametrize("version", ["3.14", "3.15"])
def test_tasks_of_asyncio_are_those_that_the_program_tells(version):
    argv, env = interpreter(version)
    with Scene(app=None) as s:
        compare_tasks(s, argv, env)


def compare_subinterpreters(s, argv, env, is_free):
    """One has a lock of its own, the other one shares the main interpreter's; their frames are the inner ones of their threads."""
    code = ("import os, threading, time, _interpreters\n"
            "def run(kind):\n"
            "    _interpreters.exec(_interpreters.create(kind), 'import time\\ndef within():\\n    time.sleep(100000)\\nwithin()')\n"
            "for kind in ('isolated', 'legacy'):\n    threading.Thread(target=run, args=(kind,), daemon=True).start()\n"
            "print(os.getpid(), flush=True)\ntime.sleep(100000)\n")
    process = s.start("python", [*argv, "-c", code], env=env)
    process.wait_line()

    def stacks():
        doc = read_at_rest(s, process.pid)
        inner = [[(f["function"], f.get("interpreter")) for f in g["frames"]] for g in doc["groups"] if len(g["frames"]) > 1]
        return (doc, inner) if sum(stack[0][0] == "within" for stack in inner) == 2 else None
    doc, inner = wait_until(stacks, "both are inside")
    outer = [(name, None) for name in ("run", "Thread.run", "Thread._bootstrap_inner", "Thread._bootstrap")]
    assert sorted(inner) == [[("within", n), ("<module>", n), *outer] for n in (1, 2)], inner
    assert doc["python"][0]["interpreters"] == 3 and doc["python"][0]["free_threaded"] == is_free, doc["python"]
    assert all(g["consistent"] for g in doc["groups"]), doc["groups"]


@pytest.mark.parametrize("version", VERSIONS)
def test_threads_of_subinterpreters(version):
    argv, env = interpreter(version)
    with Scene(app=None) as s:
        compare_subinterpreters(s, argv, env, False)


@pytest.mark.parametrize("waiters", [16, 17])
def test_task_that_many_await(waiters):
    """So many names are told; that there are more is said."""
    argv, env = interpreter("3.14")
    code = (f"import asyncio, os\nasync def wait(task):\n    await task\nasync def main():\n"
            f"    task = asyncio.create_task(asyncio.sleep(100000), name='awaited')\n"
            f"    tasks = [asyncio.create_task(wait(task), name=f'w{{i}}') for i in range({waiters})]\n    await asyncio.sleep(0.1)\n"
            "    print(os.getpid(), flush=True)\n    await asyncio.gather(*tasks)\nasyncio.run(main())\n")
    with Scene(app=None) as s:
        process = s.start("python", [*argv, "-c", code], env=env)
        process.wait_line()
        doc = read_at_rest(s, process.pid)
        awaited = next(g for g in doc["tasks"] if "awaited" in g["names"])
        assert len(awaited["awaited_by"]) == 16 and {n[0] for n in awaited["awaited_by"]} == {"w"}, awaited
        told = [m for m in doc["missing"] if "more than 16 tasks await 1 of " in m]
        assert len(told) == (waiters > 16) and (doc["complete"] or waiters > 16 or doc["missing"]), doc["missing"]


def test_threads_do_not_wait_for_thousands_of_tasks():
    """So many, and so deep, that there is no time for all of them: those that were read are told, and all frames of the threads."""
    argv, env = interpreter("3.14")
    code = ("import asyncio, os\nasync def deep(event, n):\n    await (deep(event, n - 1) if n else event.wait())\n"
            "async def main():\n    event = asyncio.Event()\n"
            "    tasks = [asyncio.create_task(deep(event, 50)) for _ in range(4000)]\n    await asyncio.sleep(0)\n"
            "    print(os.getpid(), flush=True)\n    await asyncio.gather(*tasks)\nasyncio.run(main())\n")
    with Scene(app=None) as s:
        process = s.start("python", [*argv, "-c", code], env=env)
        process.wait_line()
        doc = read_at_rest(s, process.pid)
        thread, = doc["groups"]
        assert thread["native_end"] == "outermost" and thread["native_frames"] and thread["frames"], thread
        told = sum(g["tasks"] for g in doc["tasks"])
        assert told == 4001 or told and any(m.startswith("tasks: those not read yet") for m in doc["missing"]), (told, doc["missing"])


def test_tasks_that_run_are_never_called_consistent():
    """A loop that starts and ends tasks without pause."""
    argv, env = interpreter("3.14")
    code = ("import asyncio, os\nasync def leaf():\n    await asyncio.sleep(0)\nasync def main():\n"
            "    print(os.getpid(), flush=True)\n    while True:\n        await asyncio.gather(*(leaf() for _ in range(20)))\n"
            "asyncio.run(main())\n")
    with Scene(app=None) as s:
        process = s.start("python", [*argv, "-c", code], env=env)
        process.wait_line()
        unsure = 0
        for _ in range(100):
            doc = s.rpc.call("host.stacks", pid=process.pid, native=False)
            for g in doc.get("tasks", []):
                names = [f["function"] for f in g["frames"]]
                if g["consistent"]:
                    assert names[-1:] in ([], ["leaf"], ["main"]) and "Task" in g["names"][0], g
                else:
                    assert any(m.startswith("tasks of thread") for m in doc["missing"]), doc["missing"]
            unsure += any("it ran meanwhile" in m for m in doc["missing"])
        assert unsure, "the loop never waits"


@pytest.mark.parametrize("version", FREE_THREADED)
def test_free_threaded_interpreter(version):
    """All of the above, with threads that run at one time."""
    argv, env, number = free_threaded(version), {"PYTHON_GIL": "0"}, version.rstrip("t")
    with Scene(app=None) as s:
        compare_at_rest(s, argv, env, number)
        compare_running(s, argv, env, version)
        compare_running(s, argv, env, version, threads=3)
        if number != "3.13":
            compare_tasks(s, argv, env)
        compare_subinterpreters(s, argv, env, True)


@pytest.mark.parametrize("version", FREE_THREADED)
def test_lock_of_a_free_threaded_interpreter(version):
    """It has one where it is asked for it; without one nobody is said to hold it."""
    argv = free_threaded(version)
    for gil in "01":
        with Scene(app=None) as s:
            process = s.start("python", [*argv, ALTERNATE, "1", "3"], env={"PYTHON_GIL": gil})
            process.wait_line()
            docs = [s.rpc.call("host.stacks", pid=process.pid) for _ in range(40)]
            assert all(doc["python"][0]["free_threaded"] for doc in docs), docs[0]["python"]
            holders = {doc["python"][0].get("lock_holder") for doc in docs}
            roles = {g.get("role") for doc in docs for g in doc["groups"]}
            assert bool(holders - {None}) == (gil == "1"), holders
            assert holders - {None} <= {tid for doc in docs for g in doc["groups"] for tid in g["tids"]}, holders
            assert gil == "1" or "lock_wait" not in roles, roles
            text = s.ctl("stacks", process.pid).stdout
            assert ", free-threaded" in text and (gil == "1" or "lock held" not in text), text
