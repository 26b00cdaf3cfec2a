#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Native frames of threads that wait, without a stop: they are those that gdb finds afterwards, no thread notices, and
what the program writes over its own tables neither fools nor hangs the reader."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
from unittest import SkipTest

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest

from harness import BIN, Scene, need_root
from nativestacks import addresses, read, start, told_by_gdb

TESTS = BIN.parent / "tests"


def functions(group):
    return [f.get("function") for f in group["native_frames"]]


def switches(pid):
    return {tid: pathlib.Path(f"/proc/{pid}/task/{tid}/schedstat").read_text().split()[2]
            for tid in os.listdir(f"/proc/{pid}/task")}


@pytest.mark.parametrize("program", ["waits", "waits_frame_pointer"])
def test_frames_are_those_of_gdb(program):
    with Scene(app=None) as s:
        process = start(s, [TESTS / program])
        doc = read(s, process.pid)
        before = switches(process.pid)
        for _ in range(20):
            assert read(s, process.pid)["threads"] == 8
        assert switches(process.pid) == before
        assert "TracerPid:\t0" in pathlib.Path(f"/proc/{process.pid}/status").read_text()
        calls = {g["waits_in"] for g in doc["groups"]}
        assert {"read", "futex", "clock_nanosleep", "poll", "epoll_wait", "pause"} <= calls, calls
        ours, theirs = addresses(doc, process.pid), told_by_gdb("-p", process.pid)
        assert ours.keys() == theirs.keys()
        certain = whole = 0
        for g in doc["groups"]:
            for tid in g["tids"]:
                is_guess = any(f.get("guessed") for f in g["native_frames"])
                assert ours[tid] == theirs[tid][:len(ours[tid])], (g, [hex(pc) for pc in theirs[tid]])
                assert g["native_end"] != "outermost" or len(ours[tid]) == len(theirs[tid]), (g, theirs[tid])
                certain += not is_guess
                whole += g["native_end"] == "outermost"
        print(f"  {program}: {whole} of 8 whole, {certain} without a guess")
        assert whole == 8 if program == "waits" else whole >= 7
        reader = next(g for g in doc["groups"] if g["waits_in"] == "read")
        assert "read" in functions(reader)[0] and functions(reader)[2:5] == ["inner_call", "middle_call", "outer_call"]
        assert all(f["module"].endswith(program) for f in reader["native_frames"][1:5])


def by_name(doc):
    return {g["representative"]["name"]: g for g in doc["groups"]}


def test_frames_that_are_hard_to_unwind():
    """Frames that only %rbp or %rbx finds, below functions that use it for something else, and signals in odd places."""
    with Scene(app=None) as s:
        process = start(s, [TESTS / "frames"])
        doc = read(s, process.pid)
        groups = by_name(doc)
        assert groups.keys() == {"frames", "general", "moved", "itself", "first", "elsewhere", "linkage", "clock"}
        ours, theirs = addresses(doc, process.pid), told_by_gdb("-p", process.pid)
        for name, g in groups.items():
            tid = g["representative"]["tid"]
            assert ours[tid] == theirs[tid], (name, g, [hex(pc) for pc in theirs[tid]])
            assert g["native_end"] == "outermost" and not any("guessed" in f for f in g["native_frames"]), (name, g)
        assert doc["complete"] and doc["missing"] == [], doc["missing"]
        assert functions(groups["general"])[:4] == ["leaf", "general", "keeps", "framed_general"]
        assert functions(groups["first"])[0] == "handler" and "first" in functions(groups["first"])
        assert any(f["module"] == "[vdso]" for f in groups["clock"]["native_frames"]), groups["clock"]


def test_stack_that_ends_early():
    """Why is told for each thread, and the document says that it is not complete."""
    with Scene(app=None) as s:
        process = start(s, [TESTS / "frames", "ends"])
        doc = read(s, process.pid)
        assert not doc["complete"] and len(doc["missing"]) == 5, doc["missing"]
        for name, why in (("register", "a register that is not known"), ("ambiguous", "found in several ways"),
                          ("table", "no unwind table"), ("memory", "the stack cannot be read"), ("depth", "too many")):
            assert by_name(doc)[name]["native_end"] == name, (name, by_name(doc)[name])
            assert any(m.startswith("native frames: outer ones of 1 of 6 threads: ") and why in m for m in doc["missing"]), doc
        assert len(by_name(doc)["depth"]["native_frames"]) == 256
        assert functions(by_name(doc)["ambiguous"]) == ["itself"]
        ours, theirs = addresses(doc, process.pid), told_by_gdb("-p", process.pid)
        assert all(ours[tid] == theirs[tid][:len(ours[tid])] for tid in ours)
        shown = s.ctl("stacks", process.pid)
        assert shown.returncode == 8 and "missing: native frames: outer ones of 1 of 6" in shown.stderr, shown


def test_build_id_and_names_of_a_library():
    with Scene(app=None) as s:
        process = start(s, [TESTS / "waits"])
        frame = next(f for g in read(s, process.pid)["groups"] for f in g["native_frames"] if f.get("function") == "inner_call")
        notes = subprocess.run(["readelf", "-n", TESTS / "waits"], capture_output=True, text=True, check=True).stdout
        assert re.search(r"Build ID: (\w+)", notes)[1] == frame["build_id"]
        assert int(frame["offset"]) > 0
        text = s.ctl("stacks", process.pid).stdout
        assert re.search(r"inner_call\+0x[0-9a-f]+ .*/waits$", text, re.M), text


def test_files_that_were_replaced():
    """Another file lies where the program's and the C library's were: all is read from memory."""
    with Scene(app=None) as s:
        program, library = s.directory / "program", s.directory / "libc.so.6"
        shutil.copy(TESTS / "waits", program)
        shutil.copy("/lib/x86_64-linux-gnu/libc.so.6", library)
        process = start(s, [program], env={**os.environ, "LD_LIBRARY_PATH": str(s.directory)})
        before = addresses(read(s, process.pid), process.pid)
        for path in (program, library):
            other = s.directory / "other"
            other.write_bytes(b"no ELF")
            other.rename(path)
        doc = read(s, process.pid)
        assert addresses(doc, process.pid) == before and all(len(frames) > 4 for frames in before.values())
        assert any(f["module"].endswith("libc.so.6 (deleted)") for g in doc["groups"] for f in g["native_frames"]), doc
        assert any("inner_call" in functions(g) for g in doc["groups"])


MAPPED = """
import mmap, os, sys, time
def wait():
    time.sleep(100000)
file = os.open(sys.argv[1], os.O_RDONLY) if len(sys.argv) > 1 else os.memfd_create("tensor")
if len(sys.argv) == 1:
    os.truncate(file, 4096)
kept = [mmap.mmap(-1 if len(sys.argv) == 1 and i % 2 else file, 4096, prot=mmap.PROT_READ) for i in range(9000)]
print(1, flush=True)
wait()
"""


def test_shared_memory_is_no_code():
    """Tensors that processes hand on are thousands of mappings with a path, below all libraries."""
    with Scene(app=None) as s, tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        # The interpreter's own file lies in shared memory as well, and has code.
        python = shutil.copy("/usr/bin/python3", directory)
        process = start(s, [python, "-c", MAPPED])
        doc = read(s, process.pid)
        (group,) = doc["groups"]
        assert [f["function"] for f in group["frames"]] == ["wait", "<module>"] and doc["missing"] == [], doc
        assert group["native_frames"][0]["module"].endswith("/libc.so.6") and group["native_end"] == "outermost", group
        assert group["native_frames"][-1]["module"] == f"{python}", group


def test_more_files_than_are_looked_at(tmp_path):
    """Code that has no names for that has no wrong ones, and why is told."""
    (tmp_path / "file").write_bytes(bytes(4096))
    with Scene(app=None) as s:
        process = start(s, ["/usr/bin/python3", "-c", MAPPED, tmp_path / "file"])
        doc = read(s, process.pid)
        assert any(m.startswith("files: more than 8192 are mapped") for m in doc["missing"]) and not doc["complete"], doc
        assert s.ctl("stacks", process.pid).returncode == 8


@pytest.mark.parametrize("seed", range(1, 25))
def test_hostile_tables(seed):
    with Scene(app=None) as s:
        process = start(s, [TESTS / "waits", str(seed)])
        begun = time.monotonic()
        doc = s.rpc.call("host.stacks", pid=process.pid)
        assert time.monotonic() - begun < 4
        assert doc["threads"] == 8 and sum(g["threads"] for g in doc["groups"]) == 8
        assert s.ctl("stacks", process.pid).returncode in (0, 8)


def test_two_call_chains_are_never_mixed():
    """The thread wakes all the time: frames that are told are of one moment."""
    need_root()
    with Scene(app=None, user_mode=False) as s:
        # Of a process with root's rights the kernel tells nothing new to a worker that has none.
        program = pathlib.Path(shutil.copy(TESTS / "waits", s.directory))
        process = start(s, [program, "0"], user=65534, group=65534, extra_groups=[])
        told = 0
        for _ in range(400):
            (g,) = s.rpc.call("host.stacks", pid=process.pid)["groups"]
            chains = {name[:2] for name in functions(g) if name} & {"a_", "b_"}
            assert len(chains) < 2, functions(g)
            told += len(chains)
            assert g["native_frames"] or g["native_end"] in ("running", "unproven"), g
        print(f"  {told} of 400 told")
        assert told


def test_running_thread_says_so():
    need_root()
    with Scene(app=None, user_mode=False) as s:
        process = s.start("spin", ["/usr/bin/python3", "-c", "import os\nprint(os.getpid(), flush=True)\nwhile True: pass"],
                          user=65534, group=65534, extra_groups=[])
        process.wait_line()
        (g,) = s.rpc.call("host.stacks", pid=process.pid)["groups"]
        assert g["native_frames"] == [] and g["native_end"] == "running" and g["frames"], g
        shown = s.ctl("stacks", process.pid)
        # Nobody could have them without a stop: nothing is missing but what was not consistent.
        assert "no native frames: it is running" in shown.stdout and "native frames" not in shown.stderr, shown
        assert shown.returncode == 0 or "different moments" in shown.stderr, shown


def test_thread_of_root_that_runs():
    """The kernel tells the worker nothing of it once it has run: that is said, and not that it runs."""
    need_root()
    with Scene(app=None) as s:
        process = start(s, [TESTS / "waits", "0"])
        doc = read(s, process.pid)
        (g,) = doc["groups"]
        assert g["native_frames"] == [] and g["native_end"] == "refused", g
        assert not doc["complete"] and "the kernel does not tell" in doc["missing"][0], doc["missing"]


def test_python_stands_in_its_place():
    """Calls of the evaluation function are told with the frames that they run: a list of both, in order."""
    code = ("import os, time\n"
            "def key(x):\n    time.sleep(100000)\n"
            "def outer():\n    sorted([1], key=key)\n"
            "print(os.getpid(), flush=True)\n"
            "outer()\n")
    with Scene(app=None) as s:
        process = s.start("python", ["/usr/bin/python3.11", "-c", code])
        process.wait_line()
        (g,) = read(s, process.pid)["groups"]
        if "_PyEval_EvalFrameDefault" not in functions(g):
            raise SkipTest("this interpreter does not export its evaluation function")
        # key() was called by C code, outer() by Python's own.
        assert [f["python_frames"] for f in g["native_frames"] if "python_frames" in f] == [1, 2], g
        text = s.ctl("stacks", process.pid, "--verbose").stdout
        order = [text.index(name) for name in ("clock_nanosleep+", " key ", " outer ", " <module> ", "_start+")]
        assert order == sorted(order) and "EvalFrame" not in text, text
