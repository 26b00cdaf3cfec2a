#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Core files: whole or not there, written with the client's rights, and the target runs on."""
import base64
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from harness import BIN, Rpc, Scene, Skip, main, need_root, test, wait_until  # noqa: E402

APP = "runtime ttmp; queues 2; spin"
FAILURE = 1


def scene(gpus="gfx942", **kwargs):
    return Scene(app=APP, gpus=gpus, **kwargs)


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


def fetch(s, size=1 << 20):
    """The file, through the socket."""
    begun = s.rpc.call("core.begin", session=s.session)
    data, at = b"", 0
    while at < begun["bytes"]:
        piece = s.rpc.call("core.read", session=s.session, offset=at, size=size)
        bytes_ = base64.b64decode(piece["data"]) or bytes(piece["size"])
        assert len(bytes_) == piece["size"] and piece["lost_bytes"] == 0
        data += bytes_
        at += piece["size"]
    assert s.rpc.call("core.read", session=s.session, offset=at, size=1)["size"] == 0
    return begun, data


def need_small(s):
    """A sanitizer reserves terabytes for its shadow."""
    s.session = s.attach()
    whole = s.rpc.call("core.begin", session=s.session, estimate=True, full=True)["bytes"]
    assert s.rpc.call("session.detach", session=s.session) == {"ended": True}
    if whole > 1 << 40:
        raise Skip("the program's address space is larger than any disk")


@test
def the_save_area_is_that_of_the_process():
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
        for tool in ("readelf", "eu-readelf"):
            if shutil.which(tool):
                run = subprocess.run([tool, "-h", "-l", "-n", path], capture_output=True, text=True, timeout=60)
                assert run.returncode == 0 and "warning" not in run.stderr.lower(), run.stderr
                assert run.stdout.count("LOAD") == len(found)
        runs_on(s)


@test
def what_was_not_begun_cannot_be_read():
    with scene() as s:
        s.session = s.attach()
        error = s.rpc.error("core.read", session=s.session, offset=0, size=1)
        assert error.name == "failed" and "core.begin" in error.hint, error
        s.rpc.call("core.begin", session=s.session)
        assert s.rpc.call("core.end", session=s.session) == {}
        assert s.rpc.error("core.read", session=s.session, offset=0, size=1).name == "failed"


@test
def one_writer_at_a_time():
    with scene() as s:
        s.session = s.attach()
        s.rpc.call("core.begin", session=s.session)
        other = Rpc(s.socket)
        session = s.attach(rpc=other)
        assert other.error("core.begin", session=session).name == "busy"
        assert other.error("core.end", session=session).name == "busy"
        s.rpc.close()

        def forgotten():
            reply = other.call_raw("core.read", {"session": session, "offset": 0, "size": 1})
            return "error" in reply
        wait_until(forgotten, "the core is forgotten with its writer")
        assert other.call("core.begin", session=session)["complete"]
        other.close()


@test
def an_estimate_stops_nothing():
    with scene() as s:
        plant(s)
        run = s.ctl("dump", s.app.pid, "--estimate")
        assert run.returncode == 0 and run.stdout.startswith("at most "), run.stderr
        s.session = s.attach()
        most = s.rpc.call("core.begin", session=s.session, estimate=True)
        assert most["stopped_us"] == 0 and most["copied_bytes"] == 0, most
        real = s.rpc.call("core.begin", session=s.session)
        assert real["bytes"] <= most["bytes"], (real, most)
        whole = s.rpc.call("core.begin", session=s.session, estimate=True, full=True)
        assert whole["bytes"] >= most["bytes"]


@test
def the_file_is_whole_and_private():
    with scene() as s:
        plant(s)
        path = s.directory / "out" / "core"
        path.parent.mkdir()
        run = s.ctl("dump", s.app.pid, "-o", path, "-j")
        assert run.returncode == 0, run.stderr
        told = json.loads(run.stdout)
        assert told["file"] == str(path) and told["lost_bytes"] == 0 and told["core"]["complete"], told
        data = path.read_bytes()
        assert len(data) == told["core"]["bytes"] and segments(data)[0] == 224
        assert path.stat().st_mode & 0o777 == 0o600
        # -o replaces; the name chosen by the program does not.
        assert s.ctl("dump", s.app.pid, "-o", path).returncode == 0
        for want in (0, FAILURE):
            run = s.ctl("dump", s.app.pid, cwd=path.parent)
            assert run.returncode == want, run.stderr
        assert sorted(p.name for p in path.parent.iterdir()) == ["core", f"gpucore.{s.app.pid}"]
        runs_on(s)


@test
def compressed_is_the_same_file():
    with scene() as s:
        plant(s)
        run = s.ctl("dump", s.app.pid, "-o", s.directory / "core.zst", "--compress=zstd")
        assert run.returncode == 0, run.stderr
        if not shutil.which("zstd"):
            raise Skip("no zstd program to expand it with")
        data = subprocess.run(["zstd", "-dc", s.directory / "core.zst"], capture_output=True, check=True,
                              timeout=60).stdout
        assert segments(data)[0] == 224


@test
def everything_is_in_a_full_core():
    with scene(gpus="gfx90a") as s:
        need_small(s)
        path = s.directory / "core"
        run = s.ctl("dump", s.app.pid, "--full", "-o", path)
        assert run.returncode == 0, run.stderr
        _, found = segments(path.read_bytes())
        # The program's stack is nobody's idea of what explains a wave.
        maps = pathlib.Path(f"/proc/{s.app.pid}/maps").read_text().splitlines()
        stack = int(next(line for line in maps if line.endswith("[stack]")).split("-")[0], 16)
        assert any(a <= stack < a + len(d) for a, d in found)
        assert path.stat().st_blocks * 512 < path.stat().st_size, "zeros became holes"
        runs_on(s)


@test
def an_interrupted_dump_leaves_nothing():
    with scene(gpus="gfx90a") as s:
        need_small(s)
        directory = s.directory / "out"
        directory.mkdir()
        ended = set()
        for delay in (0.01, 0.03, 0.06, 0.1, 0.15, 0.2):
            env = {**os.environ, "GPU_AGENT_SOCKET": str(s.socket)}
            run = subprocess.Popen([BIN / "gpu-agentctl", "dump", str(s.app.pid), "--full", "-o", directory / "core"],
                                   env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
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
        runs_on(s)


@test
def where_there_is_no_room():
    need_root()
    with scene() as s:
        small = s.directory / "small"
        small.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", small], check=True)
        try:
            run = s.ctl("dump", s.app.pid, "-o", small / "core")
            assert run.returncode == FAILURE and "the core needs" in run.stderr, run.stderr
            assert list(small.iterdir()) == []
        finally:
            subprocess.run(["umount", small], check=True)
        run = s.ctl("dump", s.app.pid, "-o", s.directory / "nowhere" / "core")
        assert run.returncode == FAILURE and "No such file" in run.stderr, run.stderr
        for bad in (["--light", "--full"], ["--compress=gzip"]):
            assert s.ctl("dump", s.app.pid, *bad).returncode == 2
        runs_on(s)


if __name__ == "__main__":
    main(__file__)
