#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""In a guest of scripts/check-aarch64, beside a demo ($PID) and its daemon: frames of threads, live and in a core, are those of
gdb.  usage: BUILD=DIR SHELL=tests/vm/threads_aarch64.py scripts/demo --shell"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from nativestacks import bases, told_by_gdb  # noqa: E402

BUILD = pathlib.Path(os.environ["BUILD"])


def ctl(*argv, want=(0,)):
    run = subprocess.run([BUILD / "bin/gpu-agentctl", *map(str, argv)], capture_output=True, text=True, timeout=120)
    assert run.returncode in want, (argv, run.returncode, run.stdout[-1000:], run.stderr)
    return run.stdout


def compare(doc, base, theirs, may_end):
    """Each of our frames is gdb's, and all of them where we say so.  @return how many threads are whole."""
    whole = 0
    for g in doc["groups"]:
        ours = [int(f["address"], 16) + base.get(f.get("module"), 0) for f in g["native_frames"]]
        if g["native_end"] != "outermost":
            print("#", g["native_end"], g.get("waits_in"), [f.get("function", f["address"]) for f in g["native_frames"]])
        for tid in g["tids"]:
            # A stop has put the thread in front of its call again.
            if theirs[tid][0] == ours[0] - 4:
                theirs[tid][0] = ours[0]
            assert ours == theirs[tid][:len(ours)], (g, [hex(pc) for pc in theirs[tid]])
            is_whole = g["native_end"] == "outermost" and len(ours) == len(theirs[tid])
            assert is_whole or may_end, (g, [hex(pc) for pc in theirs[tid]])
            whole += is_whole
    return whole


def live():
    process = subprocess.Popen([BUILD / "tests/waits"], stdout=subprocess.PIPE, stdin=subprocess.PIPE)
    process.stdout.readline()
    end = time.monotonic() + 60
    while True:
        doc = json.loads(ctl("stacks", process.pid, "-j", want=(0, 8)))
        if not any(g["native_end"] in ("running", "unproven") for g in doc["groups"]) or time.monotonic() > end:
            break
    calls = {g.get("waits_in") for g in doc["groups"]}
    assert {"read", "futex", "clock_nanosleep", "ppoll", "epoll_pwait"} <= calls, calls
    print("# ends:", sorted(g["native_end"] for g in doc["groups"]))
    whole = compare(doc, bases(process.pid), told_by_gdb("-p", process.pid), True)
    print(f"# {whole} of {doc['threads']} threads to the outermost frame")
    assert whole >= 4, doc
    process.kill()
    process.wait()


def core():
    pid = os.environ["PID"]
    with tempfile.TemporaryDirectory() as directory:
        file = pathlib.Path(directory) / "core"
        ctl("dump", pid, "--unified", "-o", file)
        program = os.readlink(f"/proc/{pid}/exe")
        doc = json.loads(ctl("stacks", "--core", file, "-j", want=(0, 8)))
        theirs = told_by_gdb(program, file)
        assert sorted(theirs) == sorted(t for g in doc["groups"] for t in g["tids"]), (theirs, doc)
        whole = compare(doc, bases(pid), theirs, False)
        print(f"# {whole} threads, which wait in {sorted(g.get('waits_in', '-') for g in doc['groups'])}")
        notes = subprocess.run(["gdb", "-nx", "-batch", program, file, "-ex", "info auxv", "-ex", "p $tpidr", "-ex", "p $pauth_cmask"],
                               capture_output=True, text=True).stdout
        assert "AT_PAGESZ" in notes and "$1 = 0x" in notes.replace("$1 = (void *) ", "$1 = ") and "$2 = " in notes, notes
        keep = os.environ.get("KEEP")
        if keep:
            pathlib.Path(keep).write_bytes(file.read_bytes())


def main():
    status = 0
    for test in live, core:
        try:
            test()
            print(f"PASS threads.{test.__name__}")
        except Exception as e:  # pylint: disable=broad-except
            print(f"FAIL threads.{test.__name__}: {type(e).__name__} {e}".replace("\n", " "))
            status = 1
    sys.exit(status)


main()
