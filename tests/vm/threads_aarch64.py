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
    run = subprocess.run([BUILD / "bin/gpu-agentctl", *map(str, argv)], capture_output=True, text=True, timeout=400)
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


REGISTERS = """
import gdb
names = [f"x{i}" for i in range(31)] + ["sp", "pc", "cpsr", "fpsr", "fpcr", "tpidr"] + [f"v{i}" for i in range(32)]
for thread in gdb.selected_inferior().threads():
    thread.switch()
    frame = gdb.newest_frame()
    for name in names:
        try:
            print("register", thread.ptid[1], name, frame.read_register(name).format_string(format="x").replace(" ", ""))
        except (ValueError, gdb.error) as e:
            print("# no", name, e)
"""


def registers(*target):
    """{thread: {register: value}} as gdb has them."""
    with tempfile.NamedTemporaryFile("w", suffix=".py") as script:
        script.write(REGISTERS)
        script.flush()
        told = subprocess.run(["gdb", "-nx", "-batch", *map(str, target), "-x", script.name], capture_output=True, text=True, timeout=400)
    found = {}
    for line in told.stdout.split("\n"):
        if line.startswith("register "):
            _, tid, name, value = line.split()
            found.setdefault(int(tid), {})[name] = value
    assert found, told.stderr
    return found


def same(before, after):
    """What did not change between two reads of the live process."""
    return {tid: {name: value for name, value in before[tid].items() if after[tid].get(name) == value} for tid in before}


def check_registers(file, program, still, live):
    """gdb's of the core are those that it saw live, of all that stood still; and so are its frames."""
    theirs = registers(program, file)
    assert sorted(theirs) == sorted(still), (sorted(theirs), sorted(still))
    for tid, values in still.items():
        assert len(values) >= 50 and {"pc", "sp", "x29", "x30", "tpidr"} <= set(values), (tid, sorted(values))
        differ = {name: (value, theirs[tid].get(name)) for name, value in values.items() if theirs[tid].get(name) != value}
        assert not differ, (tid, differ)
    frames = told_by_gdb(program, file)
    assert frames == live, (frames, live)
    print(f"# {sum(map(len, still.values()))} registers and {sum(map(len, frames.values()))} frames of {len(still)} threads")


def core():
    pid = os.environ["PID"]
    with tempfile.TemporaryDirectory() as directory:
        file = pathlib.Path(directory) / "core"
        program = os.readlink(f"/proc/{pid}/exe")
        before, live = registers("-p", pid), told_by_gdb("-p", pid)
        ctl("dump", pid, "--unified", "-o", file)
        check_registers(file, program, same(before, registers("-p", pid)), live)
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
