#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Core files: whole or not there, written with the client's rights, and the target runs on."""
import contextlib
import ctypes
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from unittest import SkipTest

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from dumps import (BUDGET, CODE, FAILURE, LOAD, PARTIAL, STOP_MS, begin, dump, fetch, read_begun, scene,
                   start_dump)
from harness import BIN, Rpc, Scene, need_root, status, unsanitized, wait_until
from largecode import enlarge

# A full core of it is more than a GiB: save areas, mostly.
LARGE = f"runtime ttmp; {LOAD}; queues 8; spin"


def plant(s, text="breakpoint 64 0x7f0000001000 group=4 vgprs=16"):
    s.control(f"waves {s.app.pid} 0 {text}")


def runs_on(s):
    state = s.target_state()
    assert all(q["running"] and not q["suspended"] for q in state["queues"]), state
    before = {q["id"]: q["packets"] for q in state["queues"]}
    for i in before:
        s.control(f"waves {s.app.pid} {i} clear")
    wait_until(lambda: all(q["packets"] > before[q["id"]] for q in s.target_state()["queues"]), "queues run")


def segments(data):
    """[(address, bytes)] of an ELF file, and its machine."""
    machine, = struct.unpack_from("<H", data, 18)
    offset, = struct.unpack_from("<Q", data, 32)
    size, n = struct.unpack_from("<HH", data, 54)
    found = []
    for i in range(n):
        kind, _, at, address, _, length, _, _ = struct.unpack_from("<IIQQQQQQ", data, offset + i * size)
        if kind == 1:
            found.append((address, data[at:at + length]))
    return machine, found


def need_small(s):
    """A sanitizer reserves terabytes for its shadow."""
    s.session = s.attach()
    whole = s.rpc.call("core.begin", session=s.session, estimate=True, full=True)["bytes"]
    assert s.rpc.call("session.detach", session=s.session) == {"ended": True}
    if whole > 1 << 40:
        raise SkipTest("the program's address space is larger than any disk")


def tools_have_no_complaint(path, n_segments):
    for tool in ("readelf", "eu-readelf"):
        if shutil.which(tool):
            run = subprocess.run([tool, "-h", "-l", "-n", path], capture_output=True, text=True, timeout=60)
            assert run.returncode == 0 and not run.stderr, (tool, run.stderr)
            assert run.stdout.count("LOAD") == n_segments and not re.search("warning|error", run.stdout, re.I), run.stdout


def test_the_save_area_is_that_of_the_process():
    """Byte for byte, in whatever pieces the file is fetched; tools for ELF have no complaint."""
    with scene() as s:
        plant(s)
        s.session = s.attach()
        begun, data = fetch(s, 5000)
        assert begun["complete"] and begun["wave_count"] == 64 and begun["stopped_us"] > 0, begun
        assert len(data) == begun["bytes"]
        machine, found = segments(data)
        assert machine == 224 and len(found) == begun["segments"]
        queue = next(q for q in s.rpc.call("gpu.queues", session=s.session)["queues"] if q["queue_id"] == 0)
        area = int(queue["save_area"], 16)
        with open(f"/proc/{s.app.pid}/mem", "rb", buffering=0) as mem:
            for die in range(8):
                start = area + die * queue["save_area_bytes"]
                mem.seek(start)
                stack, _, end = struct.unpack("<III", mem.read(12))
                inside = [d[:max(0, start + end - a)] for a, d in found if start + stack - 4096 < a < start + end]
                assert end == stack or inside, die
                for a, d in found:
                    if start <= a < start + end:
                        mem.seek(a)
                        length = min(len(d), start + end - a)
                        assert mem.read(length) == d[:length], hex(a)
        path = s.directory / "core"
        path.write_bytes(data)
        tools_have_no_complaint(path, len(found))
        runs_on(s)


def holds(found, address, size):
    return any(a <= address and address + size <= a + len(d) for a, d in found)


def test_a_light_core_has_what_every_wave_is_at():
    """However large its code object: instruction, descriptor, entry, arguments; and the rest is told."""
    with tempfile.TemporaryDirectory(prefix="gpu-agent-test.") as d:
        path = enlarge(CODE / "spin-gfx90a.co", pathlib.Path(d) / "large.co", 80 << 20)
        app = f"runtime ttmp; load {path}; queues 1; dispatch 0 scale 4096 64; spin"
        with scene(gpus="gfx90a", app=app) as s:
            s.session = s.attach()
            bias = int(s.rpc.call("code.list", session=s.session)["objects"][0]["bias"], 16)
            # Not only in the kernel: in the last page, too.
            far = bias + (80 << 20)
            plant(s, f"spin 8 {far:#x} group=4 loop=8")
            begun, data = fetch(s)
            assert begun["wave_count"] == 8 and not begun["complete"], begun
            assert [m for m in begun["missing"] if "large.co" in m and "80 MiB" in m] == begun["missing"], begun
            _, found = segments(data)
            assert begun["bytes"] < 64 << 20, begun
            queue, = s.rpc.call("gpu.queues", session=s.session)["queues"]
            with open(f"/proc/{s.app.pid}/mem", "rb", buffering=0) as mem:
                def word(address, form="<Q"):
                    mem.seek(address)
                    return struct.unpack(form, mem.read(struct.calcsize(form)))[0]
                ring = int(queue["ring_base"], 16)
                descriptor, arguments = word(ring + 32), word(ring + 40)
                entry = descriptor + word(descriptor + 16, "<q")
                assert word(descriptor + 8, "<I") and arguments
                for address, size in ((descriptor, 64), (entry, 64), (far, 8), (arguments, word(descriptor + 8, "<I"))):
                    assert holds(found, address, size), hex(address)
                # Which build it was can be seen in the first page of it.
                assert holds(found, bias, 4096) and not holds(found, bias + (40 << 20), 1)
            # A full core has it all.
            assert s.rpc.call("core.begin", session=s.session, full=True, max_stop_ms=STOP_MS)["complete"]
            runs_on(s)


def test_arguments_are_those_of_the_stop():
    """Who waits for the kernel uses their memory again before the core is fetched."""
    app = f"runtime ttmp; {LOAD}; queues 1; dispatch 0 scale 4096 64; spin"
    with scene(gpus="gfx90a", app=app) as s:
        plant(s, "spin 1 0x7f0000001000 loop=8")
        s.session = s.attach()
        queue, = s.rpc.call("gpu.queues", session=s.session)["queues"]
        begun = begin(s)
        assert begun["complete"], begun
        with open(f"/proc/{s.app.pid}/mem", "r+b", buffering=0) as mem:
            mem.seek(int(queue["ring_base"], 16) + 40)
            arguments, = struct.unpack("<Q", mem.read(8))
            mem.seek(arguments)
            before = mem.read(64)
            mem.seek(arguments)
            mem.write(bytes(64))
        assert before != bytes(64)
        _, found = segments(read_begun(s, begun))
        address, data = next((a, d) for a, d in found if a <= arguments < a + len(d))
        assert data[arguments - address:][:64] == before


def test_a_list_of_code_objects_that_is_not_whole_is_missing():
    want = {"busy": "code objects: the runtime is changing the list; try again",
            "gone": "code objects: the list is empty although there are waves",
            "cycle": "code objects: the list leads back into itself after 1 entries"}
    for state, text in want.items():
        with scene(app=f"runtime ttmp; {LOAD}; queues 1; list {state}; spin") as s:
            plant(s)
            run = dump(s, "-o", s.directory / "core")
            assert run.returncode == PARTIAL and text in run.stderr, (state, run.stderr)
            s.session = s.attach()
            for full in (False, True):
                assert begin(s, full=full)["missing"] == [text], state


def test_a_runtime_of_a_later_version_is_told():
    """Whether its lists and its trap handler's notes are what they were is not known."""
    with scene(app=f"runtime ttmp; {LOAD}; queues 1; list newer; spin") as s:
        plant(s)
        run = dump(s, "-o", s.directory / "core")
        assert run.returncode == PARTIAL and run.stderr.count("version 1000") == 2, run.stderr
        # Whoever looks at the core is told as well.
        run = s.ctl("analyze", s.directory / "core")
        assert run.returncode == PARTIAL and "version 1000" in run.stdout + run.stderr, run
        run = s.ctl("snapshot", s.app.pid, "--waves")
        assert run.returncode == PARTIAL and "version 1000" in run.stdout + run.stderr, run
        s.session = s.attach()
        assert "version 1000" in str(s.rpc.call("code.list", session=s.session)["missing"])


def code_list(found, r_debug):
    """Biases of the code objects in the list of a core."""
    def words(address, n):
        base, data = next((a, d) for a, d in found if a <= address and address + 8 * n <= a + len(d))
        return struct.unpack_from(f"<{n}Q", data, address - base)
    biases, entry = [], words(r_debug, 2)[1]
    while entry:
        bias, _, _, entry = words(entry, 4)
        biases.append(bias)
    return biases


def test_the_list_of_code_objects_is_of_one_moment():
    """What is loaded while the core is fetched is not in it, and the list in it does not lead there."""
    path = CODE / "spin-gfx90a.co"
    with scene(app=f"runtime ttmp; load {path}; queues 1; listen") as s:
        s.session = s.attach()
        bias = [int(o["bias"], 16) for o in s.rpc.call("code.list", session=s.session)["objects"]]
        r_debug = int(s.rpc.call("gpu.snapshot", session=s.session)["runtime"]["r_debug"], 16)
        begun = begin(s)
        done = len(s.app.out().splitlines())
        s.app.popen.stdin.write(f"load {path}\n".encode() * 20)
        s.app.popen.stdin.flush()
        wait_until(lambda: len(s.app.out().splitlines()) >= done + 20, "all are loaded")
        _, found = segments(read_begun(s, begun))
        assert code_list(found, r_debug) == bias, (code_list(found, r_debug), bias)


def test_a_code_object_is_no_larger_than_its_memory():
    """Whatever its name in the list says, which the process writes."""
    app = "runtime ttmp; queues 1; object memory://1#offset=0x1000&size=0x100000000000 0x1000; spin"
    with scene(app=app, app_program=unsanitized("gpu-agent-simapp")) as s:
        run = dump(s, "--compress=zstd", "-o", s.directory / "core")
        assert run.returncode == 0, run.stderr
        s.session = s.attach()
        begun = begin(s)
        assert begun["complete"] and begun["bytes"] < 1 << 20, begun


def test_code_objects_of_endless_memory_are_cut_off():
    app = "runtime ttmp; queues 40; object memory://1#offset=0x1000&size=0x7fffffffe000 0x1000; spin"
    with scene(app=app, app_program=unsanitized("gpu-agent-simapp")) as s:
        plant(s)
        s.session = s.attach()
        begun = begin(s)
        assert begun["missing"] == ["code objects: more than 4 GiB in all"], begun
        assert 4 << 30 <= begun["bytes"] < 5 << 30 and begun["wave_count"] == 64, begun


def test_what_was_not_begun_cannot_be_read():
    with scene() as s:
        s.session = s.attach()
        error = s.rpc.error("core.read", session=s.session, offset=0, size=1)
        assert error.name == "failed" and "core.begin" in error.hint, error
        begin(s)
        assert s.rpc.call("core.end", session=s.session) == {}
        assert s.rpc.error("core.read", session=s.session, offset=0, size=1).name == "failed"


def test_one_writer_at_a_time():
    with scene() as s:
        s.session = s.attach()
        begin(s)
        other = Rpc(s.socket)
        session = s.attach(rpc=other)
        assert other.error("core.begin", session=session).name == "busy"
        assert other.error("core.end", session=session).name == "busy"
        s.rpc.close()

        def forgotten():
            reply = other.call_raw("core.read", {"session": session, "offset": 0, "size": 1})
            return "error" in reply
        wait_until(forgotten, "the core is forgotten with its writer")
        assert other.call("core.begin", session=session, max_stop_ms=STOP_MS)["complete"]
        other.close()


def test_an_estimate_stops_nothing():
    with scene() as s:
        plant(s)
        run = dump(s, "--estimate")
        assert run.returncode == 0 and run.stdout.startswith("about "), run.stderr
        s.session = s.attach()
        most = s.rpc.call("core.begin", session=s.session, estimate=True)
        assert most["stopped_us"] == 0 and most["copied_bytes"] == 0, most
        real = begin(s)
        assert real["bytes"] <= most["bytes"], (real, most)
        whole = s.rpc.call("core.begin", session=s.session, estimate=True, full=True)
        assert whole["bytes"] >= most["bytes"]


def test_an_estimate_is_near_the_truth():
    with scene(gpus="gfx1100", app="runtime on; queues 4; spin") as s:
        plant(s)
        s.session = s.attach()
        # Waves of all queues have one device's registers to share, and nobody has seen how much they take.
        first = s.rpc.call("core.begin", session=s.session, estimate=True)["bytes"]
        area = max(q["save_area_bytes"] for q in s.rpc.call("gpu.queues", session=s.session)["queues"])
        real = begin(s)["bytes"]
        assert real <= first < area + 2 * real, (real, first, area)
        s.rpc.call("core.end", session=s.session)
        again = s.rpc.call("core.begin", session=s.session, estimate=True)
        assert again["stopped_us"] == 0 and real / 2 <= again["bytes"] <= real * 2, (real, again["bytes"])


def test_a_full_core_is_no_larger_than_its_estimate():
    """What is copied while the queues stand still cuts the memory around it into pieces, each with a header."""
    with scene(gpus="gfx90a", app="runtime ttmp; queues 40; spin", app_program=unsanitized("gpu-agent-simapp")) as s:
        need_small(s)
        s.session = s.attach()
        most = s.rpc.call("core.begin", session=s.session, estimate=True, full=True)["bytes"]
        assert begin(s, full=True)["bytes"] <= most


def test_the_file_is_whole_and_private():
    with scene() as s:
        plant(s)
        path = s.directory / "out" / "core"
        path.parent.mkdir()
        run = dump(s, "-o", path, "-j")
        assert run.returncode == 0, run.stderr
        told = json.loads(run.stdout)
        assert told["file"] == str(path) and told["lost_bytes"] == 0 and told["core"]["complete"], told
        data = path.read_bytes()
        assert len(data) == told["core"]["bytes"] and segments(data)[0] == 224
        assert path.stat().st_mode & 0o777 == 0o600
        # -o replaces; the name chosen by the program does not.
        assert dump(s, "-o", path).returncode == 0
        for want in (0, FAILURE):
            run = dump(s, cwd=path.parent)
            assert run.returncode == want, run.stderr
        assert sorted(p.name for p in path.parent.iterdir()) == ["core", f"gpucore.{s.app.pid}"]
        runs_on(s)


def test_compressed_is_the_same_file():
    with scene() as s:
        plant(s)
        run = dump(s, "-o", s.directory / "core.zst", "--compress=zstd")
        assert run.returncode == 0, run.stderr
        size = (s.directory / "core.zst").stat().st_size
        on_disk = re.search(r": [0-9.]+ [KM]iB, ([0-9.]+) ([KM]iB) on disk, ", run.stdout)
        assert on_disk, run.stdout
        told = float(on_disk[1]) * {"KiB": 1024, "MiB": 1 << 20}[on_disk[2]]
        assert size <= told + 1024 and told <= size + 65536, (size, run.stdout)
        run = dump(s, "-o", s.directory / "json.zst", "--compress=zstd", "-j")
        told = json.loads(run.stdout)
        assert told["disk_bytes"] == (s.directory / "json.zst").stat().st_blocks * 512 < told["core"]["bytes"], told
        if not shutil.which("zstd"):
            raise SkipTest("no zstd program to expand it with")
        data = subprocess.run(["zstd", "-dc", s.directory / "core.zst"], capture_output=True, check=True,
                              timeout=60).stdout
        assert segments(data)[0] == 224


def test_everything_is_in_a_full_core():
    with scene(gpus="gfx90a", app_program=unsanitized("gpu-agent-simapp")) as s:
        need_small(s)
        path = s.directory / "core"
        run = dump(s, "--full", "-o", path)
        assert run.returncode == 0, run.stderr
        _, found = segments(path.read_bytes())
        # The program's stack is nobody's idea of what explains a wave.
        maps = pathlib.Path(f"/proc/{s.app.pid}/maps").read_text()
        stack = int(re.search(r"-(\w+) .*\[stack\]$", maps, re.M)[1], 16) - 1  # it grows at the other end
        assert any(a <= stack < a + len(d) for a, d in found)
        assert path.stat().st_blocks * 512 < path.stat().st_size, "zeros became holes"
        runs_on(s)


def test_an_interrupted_dump_leaves_nothing():
    with scene(app=LARGE, app_program=unsanitized("gpu-agent-simapp")) as s:
        need_small(s)
        directory = s.directory / "out"
        directory.mkdir()
        ended = set()
        for delay in (0.01, 0.03, 0.06, 0.1, 0.15, 0.2):
            run = start_dump(s, "--full", "-o", directory / "core")
            time.sleep(delay)
            run.send_signal(signal.SIGINT)
            status = run.wait(60)
            ended.add(status)
            # Python reports a death by the signal itself as its negative number.
            assert status in (0, 128 + signal.SIGINT, -signal.SIGINT), status
            left = [p.name for p in directory.iterdir()]
            assert left in ([], ["core"]), left
            assert status == 0 or not left, (status, left)
            for p in directory.iterdir():
                p.unlink()
        assert ended != {0}, "none of them came in time"
        # The worker may be in the last step of a dump that nobody waits for.
        wait_until(lambda: s.target_state()["suspended_queues"] == 0, "queues are resumed")
        runs_on(s)


def test_an_interrupted_dump_leaves_no_hidden_name():
    """Where there are no files without a name, and while the agent is still copying."""
    need_root()
    with scene() as s:
        old = s.directory / "old"
        old.mkdir()
        if subprocess.run(["mount", "-t", "mqueue", "none", old], check=False, capture_output=True).returncode:
            raise SkipTest("no file system without nameless files")
        try:
            name = f"core-{s.app.pid}"  # others may use that file system

            def left():
                return [p.name for p in old.iterdir() if name in p.name]

            def interrupted():
                """Before the queues are stopped, which takes three seconds; a dump that ended earlier leaves nothing either."""
                s.control("delay suspend 3000 1")
                run = start_dump(s, "-o", old / name)
                wait_until(lambda: left() or run.poll() is not None, "the file is made")
                run.terminate()  # background jobs of a shell ignore Ctrl-C
                code = run.wait(60)
                assert left() == []
                return code == 128 + signal.SIGTERM
            wait_until(interrupted, "a dump that is interrupted in time", 120)
        finally:
            subprocess.run(["umount", old], check=True)
        wait_until(lambda: not s.worker_pids(), "its session is over")
        runs_on(s)


def let_alone(s):
    """What somebody who is dead had asked for may begin later than that."""
    state = s.target_state()
    return not (s.worker_pids() or s.rpc.call("session.list")["sessions"] or state["enabled"] or state["suspended_queues"])


def test_a_killed_dump_leaves_nothing_and_nobody_stopped():
    """By SIGKILL, at any moment: no file, no name, no suspended queue, no session."""
    with scene(app=LARGE, app_program=unsanitized("gpu-agent-simapp")) as s:
        need_small(s)
        directory = s.directory / "out"
        directory.mkdir()
        for delay in (0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2):
            run = start_dump(s, "--full", "-o", directory / "core")
            time.sleep(delay)
            run.kill()
            killed = run.wait(60) == -signal.SIGKILL
            wait_until(lambda: let_alone(s), "its session is over")
            left = [p.name for p in directory.iterdir()]
            # A file system without nameless files keeps a hidden one.
            assert killed and all(name.startswith(".core.") for name in left) or left == ["core"], (delay, left)
            for p in directory.iterdir():
                p.unlink()
        wait_until(lambda: let_alone(s), "nobody is there any more")
        runs_on(s)


def test_progress_says_how_fast_and_how_long():
    """Compressed, so that it takes a while; on standard error, and not when nobody asked for it."""
    with scene(app=LARGE, app_program=unsanitized("gpu-agent-simapp")) as s:
        need_small(s)
        for q in s.target_state()["queues"]:
            s.control(f"waves {s.app.pid} {q['id']} spin 1000 0x7f0000001000 group=4 vgprs=64")
        argv = ["--full", "--compress=zstd", "-o", s.directory / "core"]
        line = r"^\d[\d.]* [KMGT]?i?B of \d[\d.]* [KMG]iB, \d[\d.]* [KMGT]?i?B/s, \S+.* left$"

        def told():
            run = dump(s, *argv, "--progress", patience=200)
            assert run.returncode in (0, BUDGET), run.stderr  # it is not about the stop
            return re.search(line, run.stderr, re.M)
        wait_until(told, "a dump that takes longer than half a second", 60)
        assert " left" not in dump(s, *argv, patience=200).stderr


def test_where_there_is_no_room():
    need_root()
    with scene() as s:
        small = s.directory / "small"
        small.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", small], check=True)
        try:
            run = dump(s, "-o", small / "core")
            assert run.returncode == FAILURE and "the core needs" in run.stderr, run.stderr
            # Now the simulator would refuse the first suspend, and say so.
            s.control("errno suspend EIO 1")
            run = dump(s, "--full", "-o", small / "core")
            assert run.returncode == FAILURE and "the core needs" in run.stderr, run.stderr
            assert list(small.iterdir()) == []
        finally:
            subprocess.run(["umount", small], check=True)
        run = dump(s, "-o", s.directory / "nowhere" / "core")
        assert run.returncode == FAILURE and "No such file" in run.stderr, run.stderr
        assert s.ctl("snapshot", s.app.pid).returncode != 0, "no dump has tried to suspend"
        for bad in (["--light", "--full"], ["--compress=gzip"]):
            assert dump(s, *bad).returncode == 2
        runs_on(s)


def test_what_is_no_file_stays_what_it_is():
    """A pipe or device is not replaced by a core, a link is followed; nothing stops for what cannot be made."""
    with scene() as s:
        plant(s)
        out = s.directory / "out"
        out.mkdir()
        os.mkfifo(out / "fifo")
        (out / "null").symlink_to("/dev/null")
        (out / "nowhere").symlink_to("missing")
        (out / "file").write_bytes(b"x")
        (out / "link").symlink_to("file")
        (out / f"gpucore.{s.app.pid}").write_bytes(b"mine")
        # Now the simulator would refuse the first suspend, and say so.
        s.control("errno suspend EIO 1")
        for name, why in (("fifo", "not a regular file"), ("null", "not a regular file"), ("nowhere", "No such file"),
                          ("../out", "Is a directory"), ("", "Is a directory")):
            run = dump(s, "-o", f"{out}/{name}")
            assert run.returncode == FAILURE and why in run.stderr, (name, run.stderr)
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as cat:
            run = subprocess.run([BIN / "gpu-agentctl", "dump", str(s.app.pid), "-o", f"/proc/self/fd/{cat.stdin.fileno()}"],
                                 env={**os.environ, "GPU_AGENT_SOCKET": str(s.socket)}, capture_output=True, text=True,
                                 pass_fds=[cat.stdin.fileno()], check=False, timeout=60)
        assert run.returncode == FAILURE and "not a regular file" in run.stderr, run.stderr
        run = dump(s, cwd=out)
        assert run.returncode == FAILURE and "File exists" in run.stderr and "-o FILE" in run.stderr, run.stderr
        assert s.ctl("snapshot", s.app.pid).returncode != 0, "no dump has tried to suspend"
        assert dump(s, "-o", out / "link").returncode == 0
        assert (out / "link").is_symlink() and segments((out / "file").read_bytes())[0] == 224
        assert (out / "fifo").is_fifo() and pathlib.Path("/dev/null").is_char_device()
        assert (out / f"gpucore.{s.app.pid}").read_bytes() == b"mine"
        assert len(list(out.iterdir())) == 6
        runs_on(s)


def test_output_goes_where_a_link_leads():
    """Of any verb: also to a file without a name, and to one that is not there yet."""
    with scene() as s, tempfile.TemporaryFile() as unnamed:
        out, new = s.directory / "out", s.directory / "new"
        out.symlink_to("/proc/self/fd/1")
        new.symlink_to("later")
        env = {**os.environ, "GPU_AGENT_SOCKET": str(s.socket)}
        subprocess.run([BIN / "gpu-agentctl", "list", "-j", "-o", out], env=env, stdout=unnamed, check=True, timeout=60)
        unnamed.seek(0)
        assert out.is_symlink() and json.loads(unnamed.read())["processes"]
        assert s.ctl("list", "-j", "-o", new).returncode == 0
        assert new.is_symlink() and json.loads((s.directory / "later").read_text())["processes"]


def test_a_full_disk_is_told_with_the_place():
    """It is the program's own file: what the agent has sent then goes nowhere, and the session ends as always."""
    need_root()
    with scene() as s:
        plant(s)
        small = s.directory / "small"
        small.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k", "none", small], check=True)
        try:
            # Nobody knows beforehand how large a compressed one becomes.
            run = dump(s, "-o", small / "core", "--compress=zstd")
            assert run.returncode == FAILURE and "No space left on device" in run.stderr, run.stderr
            assert re.search(r"the file ends at byte \d+:", run.stderr) and "another file system" in run.stderr, run.stderr
            assert list(small.iterdir()) == []
        finally:
            subprocess.run(["umount", small], check=True)
        wait_until(lambda: let_alone(s), "its session is over")
        runs_on(s)


def test_quota_ends_a_dump_and_nothing_else():
    """In the middle of a file that has got its room: no name, no hidden name."""
    with scene() as s:
        plant(s, "spin 500 0x7f0000001000 group=4 vgprs=64")
        out = s.directory / "out"
        out.mkdir()

        def limited():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        run = dump(s, "-o", out / "core", preexec_fn=limited)
        assert run.returncode == FAILURE and re.search(r"ends at byte \d+: File too large", run.stderr), run.stderr
        assert list(out.iterdir()) == []
        wait_until(lambda: let_alone(s), "its session is over")
        runs_on(s)


def test_a_file_in_memory_is_the_program_s_own():
    if not os.access("/dev/shm", os.W_OK):
        raise SkipTest("no /dev/shm")
    with scene() as s, tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        plant(s)
        run = dump(s, "-o", f"{directory}/core", "-j")
        assert run.returncode == 0, run.stderr
        assert os.path.getsize(f"{directory}/core") == json.loads(run.stdout)["core"]["bytes"]
        runs_on(s)


# -- the host's half ------------------------------------------------------------------------------

USER = 65534


def unified_scene(app=f"runtime ttmp; {LOAD}; queues 2; threads 20; spin", **kwargs):
    # Of a user without capabilities: the kernel lets the worker, which has none, see those threads.
    need_root()
    return Scene(app=app, gpus="gfx90a", app_user=USER, user_mode=False, **kwargs)


def thread_notes(data):
    """{tid: (stack pointer, pc)} and the kinds of notes."""
    at, _, size = next((e[2], e[3], e[5]) for e in struct.iter_unpack("<IIQQQQQQ", data[64:64 + 56]) if e[0] == 4)
    end, threads, kinds = at + size, {}, []
    while at < end:
        name_size, size, kind = struct.unpack_from("<III", data, at)
        at += 12 + (name_size + 3 & ~3)
        kinds.append(kind)
        if kind == 1 and size == 336:
            tid, = struct.unpack_from("<I", data, at + 32)
            registers = struct.unpack_from("<27Q", data, at + 112)
            threads[tid] = registers[19], registers[16]
        at += size + 3 & ~3
    return threads, kinds


def tasks(s):
    return sorted(int(t) for t in os.listdir(f"/proc/{s.app.pid}/task"))


def untraced(s):
    """No thread is stopped, and none but the main one may still be seized."""
    for tid in tasks(s):
        fields = status(f"{s.app.pid}/task/{tid}")
        assert fields["State"][0] not in "tT", fields
        if tid != s.app.pid:
            assert fields["TracerPid"] == "0", fields
    return True


def waits_at(s, tid):
    """(stack pointer, pc) of a thread that is in a system call."""
    words = pathlib.Path(f"/proc/{s.app.pid}/task/{tid}/syscall").read_text().split()
    return (int(words[-2], 16), int(words[-1], 16)) if len(words) > 2 else None


def test_all_threads_are_in_a_unified_core():
    if os.uname().machine != "x86_64":
        raise SkipTest("registers are looked for as x86-64 has them")
    with unified_scene() as s:
        plant(s)
        path = s.directory / "core"

        def whole():
            """A thread that gets no processor for too long is left out, and that is told."""
            run = dump(s, "--unified", "-o", path, "-j")
            assert run.returncode in (0, PARTIAL), run.stderr
            return run.returncode == 0 and json.loads(run.stdout)["core"]
        told = wait_until(whole, "a core with all threads", 60)
        data = path.read_bytes()
        threads, kinds = thread_notes(data)
        assert sorted(threads) == tasks(s) and told["thread_count"] == len(threads), (threads, tasks(s))
        assert told["wave_count"] == 64 and told["thread_stopped_us"] > 0, told
        # Beside each thread: registers of two more kinds; and the process, its vector, its files, the GPU's half.
        assert {1, 2, 3, 6, 33, 0x46494c45} <= set(kinds), kinds
        machine, found = segments(data)
        assert machine == 62
        tools_have_no_complaint(path, len(found))

        def as_they_wait():
            return all(waits_at(s, tid) in (None, place) for tid, place in threads.items() if tid != s.app.pid)
        wait_until(as_they_wait, "threads sleep where they slept")
        for sp, _ in threads.values():
            assert any(a <= sp < a + len(d) for a, d in found), hex(sp)
        assert untraced(s)
        most = dump(s, "--unified", "--estimate", "-j")
        assert json.loads(most.stdout)["core"]["bytes"] >= told["bytes"], most.stdout
        runs_on(s)


def told_of_threads(s):
    """(threads in a core, threads that are said to be missing)"""
    core = begin(s, unified=True)
    s.rpc.call("core.end", session=s.session)
    found = [re.match(r"registers of (\d+) threads", line) for line in core["missing"]]
    return core["thread_count"], sum(int(m[1]) for m in found if m)


def test_threads_beyond_the_most_are_missing():
    if os.uname().machine != "x86_64":
        raise SkipTest("registers are looked for as x86-64 has them")
    with unified_scene("runtime ttmp; queues 1; sleepers 4200; spin", app_program=unsanitized("gpu-agent-simapp")) as s:
        s.session = s.attach(control=True)
        here, missing = told_of_threads(s)
        assert 0 < here <= 4096 and here + missing == len(tasks(s)) > 4200, (here, missing, len(tasks(s)))


@contextlib.contextmanager
def kept_as_zombie(s, tid):
    """Let a thread end whose debugger does not ask for it."""
    libc = ctypes.CDLL(None, use_errno=True)
    seize, tgkill = 0x4206, 234
    seized, write_end = os.pipe()
    tracer = os.fork()
    if not tracer:
        os.write(write_end, b"ny"[libc.ptrace(seize, tid, None, None) == 0:][:1])
        signal.pause()
    try:
        assert os.read(seized, 1) == b"y", "another debugger"
        assert libc.syscall(tgkill, s.app.pid, tid, signal.SIGUSR2) == 0
        wait_until(lambda: status(f"{s.app.pid}/task/{tid}")["State"][0] == "Z", "the thread has ended")
        yield
    finally:
        os.kill(tracer, signal.SIGKILL)
        os.waitpid(tracer, 0)
        os.close(seized)
        os.close(write_end)


def test_threads_that_end_meanwhile_are_not_missing():
    if os.uname().machine != "x86_64":
        raise SkipTest("registers are looked for as x86-64 has them")
    with unified_scene("runtime ttmp; queues 1; sleepers 1; spin") as s:
        call = lambda tid: pathlib.Path(f"/proc/{s.app.pid}/task/{tid}/syscall").read_text().split()[0]  # noqa: E731
        sleeper, = wait_until(lambda: [t for t in tasks(s) if call(t) == "128"], "the thread in rt_sigtimedwait")
        s.session = s.attach(control=True)
        with kept_as_zombie(s, sleeper):
            wait_until(lambda: told_of_threads(s) == (len(tasks(s)) - 1, 0), "a core of all that run")


def test_threads_run_on_after_a_kill_in_the_middle():
    """Of the worker that stops them, wherever it is."""
    with unified_scene() as s:
        beats = s.app_status().beats
        for i in range(12):
            run = start_dump(s, "--unified", "-o", s.directory / "core")
            workers = wait_until(lambda: s.worker_pids() or run.poll() is not None, "a worker")
            time.sleep(0.003 * i)
            for worker in workers if isinstance(workers, list) else []:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGKILL)
            run.wait(60)
            wait_until(lambda: not s.worker_pids(), "the worker is gone")
            wait_until(lambda: untraced(s), "every thread runs")
        wait_until(lambda: s.app_status().beats > beats + 100, "they beat")
        runs_on(s)
