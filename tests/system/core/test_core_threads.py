#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Threads of the processors in a core file: they are what elfutils finds in the same core and what the process showed while it
ran, cores that the agent wrote say which frames may be of a later moment, and what a core or this machine lacks is told."""
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
from unittest import SkipTest

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest

from harness import BIN, LONG_STOP, SLACK_S, Scene, need_root, wait_until

TESTS = BIN.parent / "tests"
MANY = pathlib.Path(__file__).parent.parent / "host/many.py"
USER = 65534
PARTIAL, FAILURE = 8, 1


def need_x86():
    if os.uname().machine != "x86_64":
        raise SkipTest("frames were compared on x86-64 alone")


def ctl(*argv, **kwargs):
    """gpu-agentctl without any agent to talk to."""
    return subprocess.run([BIN / "gpu-agentctl", *map(str, argv)], text=True, capture_output=True, timeout=120,
                          env={**os.environ, "GPU_AGENT_SOCKET": "/nonexistent"}, stdin=subprocess.DEVNULL, **kwargs)


def stacks(core, want=0):
    run = ctl("stacks", "--core", core, "-j")
    assert run.returncode == want, (run.returncode, run.stdout[-2000:], run.stderr)
    return json.loads(run.stdout)


def start(s, argv, **options):
    process = s.start("program", argv, **options)
    process.wait_line()
    return process


def gcore(s, process):
    """A core of one moment, as a debugger writes it."""
    if not shutil.which("gcore"):
        raise SkipTest("no gcore (gdb) here")
    subprocess.run(["gcore", "-o", s.directory / "core", str(process.pid)], check=True, capture_output=True, timeout=120)
    return s.directory / f"core.{process.pid}"


def by_kernel(s, argv):
    """A core of the kernel's; it comes into the program's directory, if at all."""
    if pathlib.Path("/proc/sys/kernel/core_pattern").read_text().strip() not in ("core", "core.%p"):
        raise SkipTest("this kernel writes cores elsewhere")
    there = s.directory / "dumped"
    there.mkdir()
    limit = lambda: resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2)  # noqa: E731
    popen = subprocess.Popen(list(map(str, argv)), cwd=there, preexec_fn=limit, stdout=subprocess.PIPE)
    popen.stdout.readline()
    doc = wait_until(lambda: rests(s.rpc.call("host.stacks", pid=popen.pid)), "all threads wait")
    popen.send_signal(signal.SIGABRT)
    popen.wait()
    return doc, next(there.iterdir())


def rests(doc):
    return doc if not any(g["native_end"] in ("running", "unproven") for g in doc["groups"]) else None


def mapped(core):
    """Where each file begins, by the core's own note."""
    text = subprocess.run(["eu-readelf", "-n", core], capture_output=True, text=True, timeout=60).stdout
    found = {}
    for begin, offset, path in re.findall(r"^\s+([0-9a-f]+)-[0-9a-f]+ ([0-9a-f]+) \d+\s+(/.*)$", text, re.M):
        if int(offset, 16) == 0:
            found.setdefault(path, int(begin, 16))
    vdso = re.search(r"SYSINFO_EHDR: (0x[0-9a-f]+)", text)
    return {**found, "[vdso]": int(vdso[1], 16) if vdso else 0}


def link_base(path):
    """Programs that are loaded where they were linked have these addresses in their file."""
    if not path.startswith("/"):
        return 0
    with open(path, "rb") as f:
        return 0x400000 if struct.unpack("<H", f.read(18)[16:])[0] == 2 else 0


def ours(doc, core):
    base = mapped(core)
    return {tid: [int(f["address"], 16) + (base[f["module"]] - link_base(f["module"]) if "module" in f else 0)
                  for f in g["native_frames"]] for g in doc["groups"] for tid in g["tids"]}


def theirs(core):
    """{thread: its pcs} as eu-stack has them."""
    if not shutil.which("eu-stack"):
        raise SkipTest("no eu-stack here")
    text = subprocess.run(["eu-stack", "--core", core], capture_output=True, text=True, timeout=120).stdout
    found = {}
    for line in text.split("\n"):
        begin, frame = re.match(r"TID (\d+):", line), re.match(r"#\d+\s+(0x[0-9a-f]+)", line)
        if begin:
            pcs = found.setdefault(int(begin[1]), [])
        elif frame:
            pcs.append(int(frame[1], 16))
    return found


def is_same(doc, core):
    mine, other = ours(doc, core), theirs(core)
    assert mine.keys() == other.keys(), (mine.keys(), other.keys())
    for g in doc["groups"]:
        assert g["native_end"] == "outermost", g
        for tid in g["tids"]:
            # Its frame outside of all tables, behind the outermost function, is address 0 or none.
            assert mine[tid] == other[tid][:len(mine[tid])] and len(other[tid]) <= len(mine[tid]) + 1, (g, [hex(a) for a in other[tid]])


def timeless(doc):
    """What a thread did, by thread, as the process and its core both tell it."""
    keep = ("state", "waits_in", "role", "frames", "native_frames", "native_end", "consistent")
    frames = [f for g in doc["groups"] for f in g["native_frames"]]
    for f in frames:
        # What has to be guessed of a process is known of a core.
        f.pop("guessed", None)
    return {tid: {k: g[k] for k in keep if k in g} for g in doc["groups"] for tid in g["tids"]}


@pytest.mark.parametrize("program", ["waits", "waits_frame_pointer", "frames"])
def test_frames_are_those_of_elfutils_and_of_the_process(program):
    need_x86()
    with Scene(app=None) as s:
        process = start(s, [TESTS / program])
        live = wait_until(lambda: rests(s.rpc.call("host.stacks", pid=process.pid)), "all threads wait")
        core = gcore(s, process)
        process.stop(signal.SIGKILL)
        doc = stacks(core)
        assert doc["pid"] == process.pid and doc["comm"].startswith(program[:15]) and doc["complete"] and doc["stopped_us"] == 0, doc
        assert doc["threads"] == live["threads"] and doc["running"] == 0, doc
        if program != "frames":
            is_same(doc, core)
        # In a core all registers are there: nothing is guessed, and nothing ends early.
        assert all(g["native_end"] == "outermost" and not any("guessed" in f for f in g["native_frames"]) for g in doc["groups"]), doc
        if program != "waits_frame_pointer":
            assert timeless(doc) == timeless(live)
        text = ctl("stacks", "--core", core).stdout
        assert f"pid {process.pid}" in text and "stopped" not in text, text


def test_core_of_the_kernel():
    """It leaves out all that lies in files, but for their first pages."""
    need_x86()
    with Scene(app=None) as s:
        live, core = by_kernel(s, [TESTS / "waits"])
        doc = stacks(core)
        is_same(doc, core)
        was, now = timeless(live), timeless(doc)
        assert was == now and len(now) == 8, (was, now)
        packed = s.directory / "packed"
        if subprocess.run(["zstd", "-q", core, "-o", packed]).returncode == 0:
            assert stacks(packed)["groups"] == doc["groups"]


def as_own(core):
    """The same core with the note of one that the agent has written."""
    data = bytearray(core.read_bytes())
    table, = struct.unpack_from("<Q", data, 32)
    count, = struct.unpack_from("<H", data, 56)
    note = struct.pack("<III", 10, 2, 1) + b"gpu-agent\0\0\0" + b"{}\0\0"
    for at in range(table, table + 56 * count, 56):
        kind, _, offset, _, _, size, _, _ = struct.unpack_from("<IIQQQQQQ", data, at)
        if kind == 4:
            moved = bytes(data[offset:offset + size]) + note
            struct.pack_into("<IIQQQQQQ", data, at, 4, 0, len(data), 0, 0, len(moved), 0, 4)
            data += moved
            break
    path = core.with_suffix(".own")
    path.write_bytes(data)
    return path


def test_frames_of_python():
    """They are those that the process told; where memory is of a later moment than threads, that is told."""
    need_x86()
    with Scene(app=None) as s:
        process = start(s, [sys.executable, MANY, "4"])

        def still():
            doc = s.rpc.call("host.stacks", pid=process.pid)
            return doc if all(g.get("proof") == "not_scheduled" for g in doc["groups"]) else None
        live = wait_until(still, "all threads stand still")
        core = gcore(s, process)
        process.stop(signal.SIGKILL)
        doc = stacks(core)
        assert timeless(doc) == timeless(live) and any(g["frames"] for g in doc["groups"])
        assert doc["python"][0]["version"] == live["python"][0]["version"] and doc["complete"], doc["missing"]
        assert any("python_frames" in f for g in doc["groups"] for f in g["native_frames"])
        mixed = stacks(as_own(core), PARTIAL)
        assert not any(g["consistent"] for g in mixed["groups"] if g["frames"]), mixed
        assert any("ran while the core was written" in m for m in mixed["missing"]), mixed["missing"]
        assert not any("python_frames" in f for g in mixed["groups"] for f in g["native_frames"])
        frames = lambda doc: {t: g["frames"] for g in doc["groups"] for t in g["tids"]}  # noqa: E731
        assert frames(mixed) == frames(doc)


def test_thread_that_runs():
    """Its registers are in the core, which nobody has of a process that is not stopped."""
    need_x86()
    with Scene(app=None) as s:
        process = start(s, [sys.executable, "-c", "print(1, flush=True)\nwhile True: pass"])
        doc = stacks(gcore(s, process))
        process.stop(signal.SIGKILL)
        group, = doc["groups"]
        assert group["state"] == "running" and doc["running"] == 1 and "waits_in" not in group, group
        assert group["native_end"] == "outermost" and group["frames"][0]["line"] == 2 and group["consistent"], group
        assert group["holds_lock"] and doc["complete"], doc


def test_file_of_another_build_is_not_believed():
    need_x86()
    with Scene(app=None) as s:
        program = pathlib.Path(shutil.copy(TESTS / "waits", s.directory / "program"))
        _, core = by_kernel(s, [program])
        whole = stacks(core)
        data = bytearray(program.read_bytes())
        data[0x300] ^= 1
        program.unlink()
        program.write_bytes(data)
        other = stacks(core, PARTIAL)
        assert [m for m in other["missing"] if m.startswith("files: 1 was") and "not the one that was loaded" in m], other["missing"]
        for tid, frames in ours(other, core).items():
            assert frames == ours(whole, core)[tid][:len(frames)]
        assert {g["native_end"] for g in other["groups"]} == {"table"}, other
        program.unlink()
        assert any("No such file" in m for m in stacks(core, PARTIAL)["missing"])
        # Whatever lies in its place is neither opened nor waited for.
        os.mkfifo(program)
        assert stacks(core, PARTIAL)["groups"] == other["groups"]


def files_inside_segments(core):
    """Where first pages of files are in a core and no segment begins: debuggers do not look for libraries' headers there."""
    said = subprocess.run(["eu-readelf", "-l", "-n", core], capture_output=True, text=True, check=True).stdout
    segments = [(int(a, 16), int(n, 16)) for a, n in re.findall(r"^ +LOAD +\S+ (0x\w+) \S+ \S+ (0x\w+)", said, re.M)]
    files = [int(a, 16) for a in re.findall(r"^ +(\w+)-\w+ 0{8} ", said, re.M)]
    begins = {a for a, _ in segments}
    assert segments and len(files) > 3, said
    return [hex(f) for f in files if f not in begins and any(a <= f < a + n for a, n in segments)]


def queues_of_events(doc):
    """{event that threads wait for: queue of the packet, None}"""
    waits = [g["waits_for"] for g in doc["groups"] if g.get("role") == "gpu_wait"]
    return {event: w.get("queue_id") for w in waits for event in w["events"]}


def test_unified_core_of_the_agent():
    """The waves and the threads of one process, on one page and in one document; which thread waits for which packet."""
    need_root()
    need_x86()
    app = "runtime on; queues 2; idle; wait 0 1000000; wait 1 1000000; threads 20; spin"
    with Scene(app=app, gpus="gfx90a", app_user=USER, user_mode=False) as s:
        core = s.directory / "core"

        def whole():
            run = s.ctl("dump", s.app.pid, "--unified", "-o", core)
            assert run.returncode in (0, PARTIAL), run.stderr
            core.chmod(0o644)
            return run.returncode == 0
        wait_until(whole, "a core with all threads", 60)
        assert not files_inside_segments(core)
        if not SLACK_S:  # A sanitizer's memory has more bytes than any disk.
            everything = s.directory / "everything"
            assert s.ctl("dump", s.app.pid, "--unified", "--full", "-o", everything).returncode in (0, PARTIAL)
            assert not files_inside_segments(everything)
        threads = len(os.listdir(f"/proc/{s.app.pid}/task"))
        live = queues_of_events(json.loads(s.ctl("snapshot", s.app.pid, "--host", LONG_STOP, "-j").stdout)["host"])
        s.app.popen.kill()
        s.app.popen.wait()
        run = ctl("snapshot", "--core", core, "--host", "-j")
        assert run.returncode in (0, PARTIAL), run.stderr
        doc = json.loads(run.stdout)
        host = doc["host"]
        assert host["pid"] == doc["process"]["pid"] == s.app.pid and host["threads"] == threads > 20, host
        assert not any("frames" in m or "files" in m for m in host["missing"]), host["missing"]
        is_same(host, core)
        # A light core has a signal where that lies beside something else that it has: a sanitizer's memory does by chance.
        waiting = queues_of_events(host)
        assert {0, 1} == set(live.values()) and waiting.keys() == live.keys(), (live, waiting)
        assert all(queue == live[event] or (SLACK_S and queue is None) for event, queue in waiting.items()), (live, waiting)
        assert not any(g["waits_for"].get("done") for g in host["groups"] if "waits_for" in g)
        text = ctl("snapshot", "--core", core, "--host").stdout
        assert "GPU wait" in " ".join(text.split()) and "blocked in pause" in text, text


def test_cores_without_threads():
    need_root()
    with Scene(app="runtime on; queues 1; spin", gpus="gfx90a") as s:
        core = s.directory / "core"
        assert s.ctl("dump", s.app.pid, "-o", core).returncode == 0
        run = ctl("stacks", "--core", core, "-j")
        assert run.returncode == FAILURE and "has no threads of the processors" in run.stdout, run
        run = ctl("snapshot", "--core", core, "--host", "-j")
        assert run.returncode == PARTIAL and any("no threads" in m for m in json.loads(run.stdout)["missing"]), run
        for argv in (["--tree"], ["--again", "500"]):
            assert ctl("stacks", "--core", core, *argv).returncode == 2
        text = s.directory / "text"
        text.write_text("no core\n")
        assert ctl("stacks", "--core", text).returncode == FAILURE


def core_of_aarch64(path, call, code=None):
    """One thread in front of a system call, with its code or without."""
    address = 0x400000
    words = [3, 4, 5] + [0] * 5 + [call] + [0] * 22 + [0x7ffffff000, address, 0]
    status = bytes(32) + struct.pack("<I", 4242) + bytes(76) + struct.pack("<34Q", *words) + bytes(8)
    note = struct.pack("<3I8s", 5, len(status), 1, b"CORE") + status
    loads = [(1, 5, address - 4, code)] if code else []
    at = 64 + 56 * (1 + len(loads))
    heads = struct.pack("<2I6Q", 4, 4, at, 0, 0, len(note), len(note), 4)
    for kind, flags, begin, data in loads:
        heads += struct.pack("<2I6Q", kind, flags, at + len(note), begin, 0, len(data), len(data), 4)
    head = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<2HI3QI6H", 4, 183, 1, 0, 64, 0, 0, 64, 56, 1 + len(loads), 0, 0, 0)
    path.write_bytes(head + heads + note + (code or b""))


def test_thread_whose_code_is_not_there(tmp_path):
    """On aarch64 only the code says whether it waited."""
    core = tmp_path / "core"
    core_of_aarch64(core, 29, bytes(4) + bytes.fromhex("010000d4"))
    doc = stacks(core, 8)
    assert doc["groups"][0]["state"] == "blocked" and doc["groups"][0]["waits_in"] == "ioctl", doc
    assert not [m for m in doc["missing"] if "not known, for want" in m], doc
    core_of_aarch64(core, 29)
    doc = stacks(core, 8)
    assert "threads: whether 1 of 1 waited is not known, for want of their code" in doc["missing"], doc


def test_damaged_cores_are_read_in_bounds():
    """Cut short, or with bits flipped in headers and notes."""
    need_x86()
    with Scene(app=None) as s:
        _, core = by_kernel(s, [TESTS / "waits"])
        data, rng = core.read_bytes(), random.Random(23)
        notes = struct.unpack_from("<Q", data, 64 + 8)[0]
        broken = s.directory / "broken"
        for i in range(30):
            piece = bytearray(data if i % 3 else data[:rng.randrange(64, len(data))])
            for _ in range(rng.randrange(1, 20)):
                at = rng.randrange(64, min(len(piece), notes + 8000))
                piece[at] ^= 1 << rng.randrange(8)
            broken.write_bytes(piece)
            run = ctl("stacks", "--core", broken, "-j")
            assert run.returncode in (0, FAILURE, PARTIAL), (i, run.returncode, run.stderr)
            assert json.loads(run.stdout), i
