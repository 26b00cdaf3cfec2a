#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Core files, looked at: the same as the process showed, whoever wrote the file, and never more than the file deserves."""
import base64
import contextlib
import gzip
import itertools
import json
import os
import pathlib
import random
import re
import shutil
import signal
import struct
import subprocess
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest
from harness import BIN, EXCEPTIONS, LONG_STOP, ROOT, STOP_MS, CudaScene, Scene, need_root, rss_kib, status, unsanitized, wait_until
from corereader import CoreRpc

CODE = ROOT / "tests/data/codeobj"
KERNELS = {"gfx90a": "spin-gfx90a.co", "gfx942": None, "gfx1030": "spin-gfx1030-z.co", "gfx1100": None, "gfx1250": None}
PC = 0x7F0000001000
FAILURE, NO_MATCH, PARTIAL = 1, 3, 8
LAYOUTS = ("r346", "r400", "r525", "r550", "r555", "r565", "r570", "r575", "r580", "r590", "r615")
SANITIZED = "asan" in os.environ.get("BIN", "")
LEASE_MS = 60000


def ctl(*argv, patience=120, environ=None, **kwargs):
    """gpu-agentctl without any agent to talk to."""
    env = {**os.environ, "GPU_AGENT_SOCKET": "/nonexistent", **(environ or {})}
    return subprocess.run([str(BIN / "gpu-agentctl"), *map(str, argv)], env=env, text=True, capture_output=True,
                          timeout=patience, stdin=subprocess.DEVNULL, **kwargs)


def document(run, want=0):
    assert run.returncode == want, (run.returncode, run.stdout[-500:], run.stderr)
    return json.loads(run.stdout)


def fetch(s, **params):
    """The core, through the connection that has the lease."""
    s.rpc.call("gpu.renew", session=s.session, lease_ms=LEASE_MS)
    begun = s.rpc.call("core.begin", session=s.session, max_stop_ms=STOP_MS, **params)
    data = b""
    while len(data) < begun["bytes"]:
        piece = s.rpc.call("core.read", session=s.session, offset=len(data), size=1 << 20)
        data += base64.b64decode(piece["data"]) or bytes(piece["size"])
    s.rpc.call("core.end", session=s.session)
    path = s.directory / "core"
    path.write_bytes(data)
    return path


def snapshot(s, **params):
    return s.rpc.call("gpu.snapshot", session=s.session, waves=True, max_stop_ms=STOP_MS, **params)


def timeless(doc):
    """What a core cannot and need not repeat: where the document is from, when, and how long queues stood still."""
    doc = json.loads(json.dumps(doc))
    for name in ("source", "time_us", "stopped_us", "agent_us", "record"):
        doc.pop(name, None)
    for queue in doc["queues"]:
        queue.pop("stopped_us", None)
    return doc


def program(gfx):
    code = KERNELS[gfx]
    work = f"load {CODE / code}; queues 2; dispatch 0 scale 4096 64; dispatch 1 scale 4096 64" if code else "queues 2"
    return f"runtime ttmp; {work}; spin"


def line_of(s):
    """An address of device code that has a source line and an inlined call."""
    objects = s.rpc.call("code.list", session=s.session)["objects"]
    if not objects:
        return None
    first = int(objects[0]["address"], 16)
    places = s.rpc.call("code.locate", session=s.session,
                        addresses=[hex(first + i) for i in range(0, objects[0]["size"], 4)][:4096])["places"]
    return next(int(p["address"], 16) for p in places if len(p.get("frames", [])) > 1)


def plant(s):
    """Waves on both queues: a fault, and some that stand at two places."""
    pc = line_of(s) or PC
    ids = [q["id"] for q in s.target_state()["queues"]]
    s.control(f"waves {s.app.pid} {ids[1]} memory 6 {pc:#x} group=2 vgprs=16 s3=0xdeadbeef v2.5=0x22222222")
    s.control(f"waves {s.app.pid} {ids[0]} halted 8 {pc + 64:#x} group=4 vgprs=48 lds=1024 lds9=0xcafef00d")
    return pc


def held(gfx):
    s = Scene(app=program(gfx), gpus=gfx)
    s.__enter__()
    try:
        s.session = s.attach(control=True)
        s.pc = plant(s)
        s.rpc.call("gpu.suspend", session=s.session, lease_ms=LEASE_MS)
    except BaseException:
        s.__exit__(*sys.exc_info())
        raise
    return s


def leave(s):
    """The process is gone when its core is looked at."""
    s.app.popen.kill()
    s.app.popen.wait()


# -- what it shows --------------------------------------------------------------------------------


@pytest.mark.parametrize("gfx", KERNELS)
def test_a_core_shows_what_the_process_showed(gfx):
    s = held(gfx)
    try:
        live = snapshot(s, registers=True)
        core = fetch(s)
        leave(s)
        seen = document(ctl("analyze", core, "--waves", "--registers", "-j"))
        assert seen["source"] == {"kind": "core", "host": live["source"]["host"], "agent": live["source"]["agent"],
                                  "file": str(core), "format": "amdgpu",
                                  "writer": f"gpu-agent {live['source']['agent']}"}, seen["source"]
        assert timeless(seen) == timeless(live), (timeless(seen), timeless(live))
        assert json.dumps(timeless(seen)) == json.dumps(timeless(live)), "members in another order"
        assert seen["stopped_us"] == 0 and live["time_us"] <= seen["time_us"]
        assert seen["wave_count"] == 14 and len(seen["groups"]) == 2
        text = ctl("analyze", core)
        place = r"of scale\(data=0x(5a)+, n=1515870810\), spin.cl:8" if KERNELS[gfx] else "at 0x[0-9a-f]+"
        assert text.returncode == 0, text
        assert re.match(rf"FAULT  memory violation: 6 waves {place}, GPU 0, queue \d+\n", text.stdout), text.stdout
        assert str(s.app.pid) in text.stdout and "gpu-agent-sim" in text.stdout
    finally:
        s.__exit__(*sys.exc_info())


def test_every_way_of_writing_shows_the_same():
    """Of two devices, with exceptions of a queue and of a device: split, full, unified and compressed."""
    need_root()
    # Of a user without capabilities: the kernel lets the worker, which has none, see its threads.
    with Scene(app=program("gfx90a"), gpus="gfx90a,gfx1030", app_user=65534, user_mode=False) as s:
        s.session = s.attach(control=True)
        plant(s)
        s.control(f"raise {s.app.pid} queue {s.target_state()['queues'][1]['id']} {EXCEPTIONS['wave_memory_violation']}")
        gpu_id = s.rpc.call("gpu.devices", session=s.session)["devices"][1]["gpu_id"]
        s.control(f"raise {s.app.pid} gpu {gpu_id} {EXCEPTIONS['device_memory_violation']}")
        s.rpc.call("gpu.suspend", session=s.session, lease_ms=LEASE_MS)
        live = snapshot(s, registers=True)
        assert len(live["devices"]) == 2 and all(any(x["exceptions"] for x in live[k]) for k in ("devices", "queues")), live
        cores = {"split": fetch(s).rename(s.directory / "split")}
        for name, params in (("full", {"full": True}), ("unified", {"unified": True})):
            # A sanitizer reserves terabytes for its shadow.
            if name != "full" or not SANITIZED:
                cores[name] = fetch(s, **params).rename(s.directory / name)
        cores["compressed"] = s.directory / "compressed"
        packed = subprocess.run(["zstd", "-q", cores["unified"], "-o", cores["compressed"]])
        leave(s)
        for name, core in cores.items():
            if not core.exists():
                assert packed.returncode, name
                continue
            seen = document(ctl("analyze", core, "--waves", "--registers", "-j"))
            assert json.dumps(timeless(seen)) == json.dumps(timeless(live)), (name, timeless(seen), timeless(live))


def test_every_verb_takes_a_core_for_a_process():
    s = held("gfx90a")
    try:
        pid = s.app.pid
        verbs = (["waves", pid, "-j"], ["waves", pid, "--state", "halted"], ["registers", pid, "1:0:3", "-j"],
                 ["registers", pid, "1:0:2", "--bank=vector", "--lanes=4-6"],
                 ["memory", pid, hex(s.pc & ~0xfff), "64"],
                 ["memory", pid, "0", "64", "--space=lds", "--wave=0:0:1"], ["disassemble", pid, hex(s.pc)],
                 ["disassemble", pid, "--wave=0:0:0"], ["devices", pid], ["queues", pid, "-j"])
        live = [s.ctl(*argv, LONG_STOP) for argv in verbs]
        saved = s.directory / "live.json"
        assert s.ctl("snapshot", pid, LONG_STOP, "-j", "-o", saved).returncode == 0
        core = fetch(s)
        leave(s)
        for argv, was in zip(verbs, live):
            verb, _, *rest = argv
            now = ctl(verb, "--core", core, *rest)
            assert was.returncode == 0 and now.returncode == 0, (argv, was, now)
            if argv[-1] == "-j":
                was, now = (json.loads(r.stdout) for r in (was, now))
                was.pop("stopped_us", None), now.pop("stopped_us", None)
                assert was == now, argv
            else:
                assert was.stdout == now.stdout and was.stdout, (argv, was.stdout, now.stdout)
        # Documents and cores may be mixed.
        earlier = json.loads(saved.read_text())
        earlier["time_us"] -= 2000000
        saved.write_text(json.dumps(earlier))
        verdict = document(ctl("diff", saved, core, "-j"), PARTIAL)
        assert verdict["verdict"] == "unknown" and "suspended under a lease" in verdict["evidence"], verdict
        assert verdict["after"]["file"] == str(core) and all(g["change"] == "same" for g in verdict["groups"])
        merged = document(ctl("merge", core, "-j"))
        assert merged["wave_count"] == 14 and merged["ranks"][0]["pid"] == pid, merged
        assert "in core already" in document(ctl("merge", core, saved, "-j"), PARTIAL)["missing"][0]
        # The number of a wave, and what needs a process.
        assert ctl("registers", "--core", core, "1:0:99").returncode == NO_MATCH
        for argv in (["snapshot", "--core", core, "--again", "10"], ["snapshot", "--core", core, "--record"],
                     ["suspend", "--core", core], ["snapshot", "--core", core, "1"], ["analyze"]):
            assert ctl(*argv).returncode == 2, argv
    finally:
        s.__exit__(*sys.exc_info())


def test_code_objects_can_be_saved():
    s = held("gfx90a")
    try:
        core = fetch(s)
        out = s.directory / "saved.co"
        with open(CODE / KERNELS["gfx90a"], "rb") as f:
            want = f.read()
        run = ctl("analyze", core, "--extract-code", "0", out)
        assert run.returncode == 0 and out.read_bytes() == want, run
        assert f"file://{CODE}" in ctl("analyze", core).stdout
        assert ctl("analyze", core, "--extract-code", "1", out).returncode == FAILURE
        assert ctl("analyze", core, "--extract-code", "0").returncode == 2
        os.mkfifo(s.directory / "fifo")
        run = ctl("analyze", core, "--extract-code", "0", s.directory / "fifo")
        assert run.returncode == FAILURE and "not a regular file" in run.stderr and (s.directory / "fifo").is_fifo(), run
        assert out.read_bytes() == want
        # The same of the process.
        uri = s.rpc.call("code.list", session=s.session)["objects"][0]["uri"]
        piece = s.rpc.call("code.read", session=s.session, uri=uri, offset=8, size=1 << 20)
        assert piece["total"] == len(want) and base64.b64decode(piece["data"]) == want[8:]
        assert s.rpc.call("code.read", session=s.session, uri=uri, offset=1 << 40, size=4)["size"] == 0
        assert s.rpc.error("code.read", session=s.session, uri="file:///etc/passwd", offset=0, size=4).name == "failed"
    finally:
        s.__exit__(*sys.exc_info())


def start_elsewhere(s, files, used="", times=1):
    """A process that has loaded these files so often, name -> bytes, from a place that has nothing of that name for others;
    waves are in those whose name ends so."""
    place, hidden = s.directory / "place", s.directory / "hidden"
    for d in (place, hidden):
        d.mkdir()
    for name, data in files.items():
        (hidden / name).write_bytes(data)
    loads = "; ".join(f"load {place}/{name}" for name in files for _ in range(times))
    s.app = s.start("app", ["unshare", "--mount", "--propagation", "private", "sh", "-c",
                            f"mount --bind {hidden} {place} && exec {unsanitized('gpu-agent-simapp')} --kfd {s.mount}/kfd "
                            f"--status-file {s.directory}/status -e 'runtime ttmp; {loads}; queues 1; spin'"])
    s.app.wait_line()
    s.session = s.attach(control=True)
    objects = s.rpc.call("code.list", session=s.session)["objects"]
    script = s.directory / "waves"
    at = int(re.search(r"(0x\w+)\nspin\n", (CODE / "spin-gfx90a.expect").read_text())[1], 16)
    script.write_text("".join(f"halted n=4 pc={int(o['bias'], 16) + at:#x}\n" for o in objects
                              if o["uri"].endswith(used)))
    s.control(f"waves {s.app.pid} 0 script {script}")


@pytest.mark.parametrize("full", [False, True])
def test_code_of_another_root_is_in_the_core(full):
    need_root()
    data = (CODE / KERNELS["gfx90a"]).read_bytes()
    with Scene(app=None, gpus="gfx90a") as s:
        start_elsewhere(s, {"kernel.co": data})
        # One of the same name here is another one, whoever asks.
        (s.directory / "place/kernel.co").write_bytes((CODE / KERNELS["gfx1030"]).read_bytes())
        most = s.rpc.call("core.begin", session=s.session, estimate=True, full=full)["bytes"]
        core = fetch(s, full=full)
        assert core.stat().st_size <= most
        live, seen = snapshot(s), document(ctl("analyze", core, "-j"))
        assert seen["complete"] and seen["groups"] == live["groups"], (seen, live)
        group, = seen["groups"]
        assert group["kernel"]["name"] == "spin" and group["frames"][0]["file"].endswith("spin.cl"), group
        out = s.directory / "saved.co"
        assert ctl("analyze", core, "--extract-code", "0", out).returncode == 0 and out.read_bytes() == data


SECRET = b"what nobody asked for"


def spoil(file):
    """kind -> what the process makes of its file after it has loaded it"""
    def with_fifo():
        file.unlink()
        os.mkfifo(file)

    def with_link():
        (file.parent / "other").write_bytes(SECRET)
        file.unlink()
        file.symlink_to("other")

    return {"fifo": with_fifo, "another build": lambda: file.write_bytes((CODE / KERNELS["gfx1030"]).read_bytes() + SECRET),
            "link": with_link, "shorter": lambda: os.truncate(file, 100), "sparse": lambda: os.truncate(file, 1 << 40)}


@pytest.mark.parametrize("kind", ["fifo", "another build", "link", "shorter", "sparse"])
def test_only_what_was_loaded_is_in_the_core(kind):
    need_root()
    data = (CODE / KERNELS["gfx90a"]).read_bytes()
    with Scene(app=None, gpus="gfx90a") as s:
        start_elsewhere(s, {"kernel.co": data})
        spoil(s.directory / "hidden/kernel.co")[kind]()
        core = fetch(s)
        assert SECRET not in core.read_bytes()
        missing, = document(ctl("analyze", core, "-j"), PARTIAL)["missing"]
        assert "kernel.co: its file is gone" in missing, missing
        missing = s.rpc.call("core.begin", session=s.session, max_stop_ms=STOP_MS)["missing"]
        assert (len(missing) == 1 and "its file is not in the core" in missing[0]) == (kind == "sparse"), missing


def test_code_that_everybody_finds_is_not_in_the_core():
    with Scene(app=None, gpus="gfx90a") as s:
        s.app = s.start_app(f"runtime ttmp; load {CODE}/{KERNELS['gfx90a']}; queues 1; spin")
        s.session = s.attach(control=True)
        pc = (int(s.rpc.call("code.list", session=s.session)["objects"][0]["address"], 16) + 0x200) & ~3
        s.control(f"waves {s.app.pid} 0 halted 4 {pc:#x}")
        assert b".debug_line" not in fetch(s).read_bytes()


def test_code_is_in_the_core_once_and_only_where_waves_are():
    need_root()
    data = (CODE / KERNELS["gfx90a"]).read_bytes()
    with Scene(app=None, gpus="gfx90a") as s:
        start_elsewhere(s, {"a.co": data, "b.co": data}, used="a.co", times=2)
        core = fetch(s)
        assert core.read_bytes().count(b"\0.debug_line\0") == 1
        assert document(ctl("analyze", core, "-j"))["groups"] == snapshot(s)["groups"]


def test_more_code_of_another_root_than_a_core_has_room_for():
    need_root()
    data = (CODE / KERNELS["gfx90a"]).read_bytes()
    with Scene(app=None, gpus="gfx90a") as s:
        start_elsewhere(s, {name: data + name[:1].encode() * (40 << 20) for name in ("a.co", "b.co")})
        path = s.directory / "core"
        s.rpc.call("session.detach", session=s.session)
        run = s.ctl("dump", s.app.pid, LONG_STOP, "-o", path)
        assert run.returncode == PARTIAL and "b.co: its file is not in the core" in run.stderr, run
        assert "a.co: " not in run.stderr, run.stderr
        seen = document(ctl("analyze", path, "-j"), PARTIAL)
        assert len(seen["missing"]) == 1 and "b.co: its file is gone" in seen["missing"][0], seen["missing"]


def test_a_file_that_was_built_again_gives_no_lines():
    with Scene(app=None, gpus="gfx90a") as s:
        copy = s.directory / "kernel.co"
        shutil.copy(CODE / KERNELS["gfx90a"], copy)
        s.app = s.start_app(f"runtime ttmp; load {copy}; queues 1; spin")
        s.session = s.attach(control=True)
        pc = (int(s.rpc.call("code.list", session=s.session)["objects"][0]["address"], 16) + 0x200) & ~3
        s.control(f"waves {s.app.pid} 0 halted 4 {pc:#x}")
        core = fetch(s)
        assert document(ctl("analyze", core, "-j"))["complete"]
        shutil.copy(CODE / KERNELS["gfx1030"], copy)
        seen = document(ctl("analyze", core, "-j"), PARTIAL)
        assert len(seen["missing"]) == 1 and "not the one that was loaded" in seen["missing"][0], seen["missing"]
        copy.unlink()
        seen = document(ctl("analyze", core, "-j"), PARTIAL)
        assert "its file is gone" in seen["missing"][0] and seen["wave_count"] == 4, seen["missing"]


def cuda_core(release="12.4", full=False, **kwargs):
    """A CUDA process with two kinds of faults, held; its live document, its core, and then it is gone."""
    s = CudaScene(app="init; context 0; module @CUBIN@; gpu launch spin grid=6 block=128 shared=256; listen", release=release,
                  user_mode=False, sim=kwargs.pop("sim", "devices 1 sms=3 warps=8"), **kwargs)
    s.__enter__()
    try:
        s.control("raise 0 1 2 14 errorpc=0x50")
        s.control("raise 0 0 0 1 lanes=0x4")
        s.control("stack 0 1 2 0xffffffff 0x20 0xd0 0x70000000 syscall=1")
        s.control("stack 0 0 0 0x4 " + " ".join(hex(0x10 * i) for i in range(1, 9)))
        # Its first lane stands elsewhere than the one with the exception.
        s.control("warp 0 2 3 pc=0x10 idle=0x60 active=0xfffffff0")
        s.control("raise 0 2 3 1 lanes=0x10")
        # Here it is the first, which is not active any more.
        s.control("warp 0 1 3 pc=0x10 idle=0x60 active=0xfffffff0")
        s.control("raise 0 1 3 12 lanes=0x1 errorpc=0x30")
        rng = random.Random(7)
        for sm, warp in itertools.product(range(3), range(8)):
            if (sm, warp) not in ((0, 0), (1, 2)):
                offsets = [hex(rng.randrange(1, 0x200)) for _ in range(rng.randrange(16))]
                s.control(f"stack 0 {sm} {warp} {rng.getrandbits(32):#x} {' '.join(offsets)} syscall={rng.randrange(len(offsets) + 1)}")
        for sm, warp in itertools.product(range(3), range(8)):
            s.control(f"memory shared 0 {sm} {warp} 0 hex=" + "a5" * 256)
        s.session = s.attach(control=True)
        s.rpc.call("gpu.suspend", session=s.session, lease_ms=LEASE_MS)
        s.live = snapshot(s, registers=True)
        s.core = fetch(s, full=full)
    except BaseException:
        s.__exit__(*sys.exc_info())
        raise
    return s


def test_cuda_cores_show_what_the_process_showed():
    for release in ("11.8", "12.4", "12.9", "13.4"):
        s = cuda_core(release)
        try:
            leave(s)
            seen = document(ctl("analyze", s.core, "--waves", "--registers", "-j"))
            assert seen["source"]["format"] == "cuda" and seen["source"]["kind"] == "core", seen["source"]
            was, now = timeless(s.live), timeless(seen)
            # Faults come first: of a warp whose lanes are at several places, that of the lane with the exception.
            at = {(g["representative"]["unit"], g["representative"]["index"]): g for g in reversed(now["groups"])}
            assert now["diverged_waves"] == 2 and at[2, 3]["lane"] == 4 and at[1, 3]["lane"] == 0, now["groups"]
            assert len(at[0, 0]["callers"]) == 8 and len(at[1, 2]["callers"]) == 3, now["groups"]
            assert int(at[2, 3]["pc"], 16) == int(at[2, 3]["kernel"]["address"], 16) + 0x10, at[2, 3]
            for name in was:
                if name != "registers":
                    assert was[name] == now.get(name), (release, name, was[name], now.get(name))
            assert len(was["registers"]) == len(now["registers"]) >= 3
            for a, b in zip(was["registers"], now["registers"]):
                assert registers_of(a) == registers_of(b), (release, registers_of(a), registers_of(b))
            assert list(was) == list(now), "members in another order"
        finally:
            s.__exit__(*sys.exc_info())


def test_cuda_cores_of_every_layout_show_the_same():
    """Of two devices, compressed too; what old records have no place for is not in the document."""
    s = cuda_core("12.9", sim="devices 2 sms=3 warps=8")
    try:
        cores = {layout: fetch(s, layout=layout).rename(s.directory / layout) for layout in LAYOUTS}
        cores["full"] = fetch(s, full=True).rename(s.directory / "full")
        if shutil.which("zstd"):
            cores["compressed"] = s.directory / "compressed"
            subprocess.run(["zstd", "-q", cores["full"], "-o", cores["compressed"]], check=True)
        leave(s)
        was = timeless(s.live)
        assert len(was["devices"]) == 2
        for name, core in cores.items():
            now = timeless(document(ctl("analyze", core, "--waves", "--registers", "-j")))
            assert list(was) == list(now), name
            for member in was:
                if member != "registers":
                    assert was[member] == now[member], (name, member, was[member], now[member])
            for a, b in zip(was["registers"], now["registers"], strict=True):
                # The oldest records know no uniform registers.
                want = registers_of(a) | ({"scalar": []} if name == "r346" else {})
                got = registers_of(b)
                different = {k: (want[k], got.get(k)) for k in want if want[k] != got.get(k)}
                assert not different and len(want) == len(got), (name, different)
    finally:
        s.__exit__(*sys.exc_info())


def registers_of(r):
    """Which lanes are in a system call a core always tells, a driver only since 12.5."""
    r = json.loads(json.dumps(r))
    r["special"] = [x for x in r["special"] if x["name"] != "syscall_lanes"]
    return r


def test_every_verb_takes_a_cuda_core():
    s = cuda_core("12.9", full=True)
    try:
        pid = s.app.pid
        first = next(w["ref"] for w in s.live["waves"] if w["reasons"])
        wave = f"{first['queue_id']}:{first['unit']}:{first['index']}"
        pc = s.live["groups"][0]["pc"]
        verbs = (["waves", pid, "-j"], ["registers", pid, wave, "--bank=vector", "--range=0-9"],
                 ["registers", pid, wave, "-j"], ["memory", pid, "0", "64", "--space=lds", f"--wave={wave}"],
                 ["devices", pid], ["queues", pid, "-j"])
        live = [s.ctl(*argv, LONG_STOP) for argv in verbs]
        leave(s)
        for argv, was in zip(verbs, live):
            verb, _, *rest = argv
            now = ctl(verb, "--core", s.core, *rest)
            assert was.returncode == 0 and now.returncode == 0, (argv, was, now)
            if argv[-1] == "-j":
                was, now = (json.loads(r.stdout) for r in (was, now))
                was.pop("stopped_us", None), now.pop("stopped_us", None)
                assert was == now, (argv, was, now)
            else:
                assert was.stdout == now.stdout and was.stdout, (argv, was.stdout, now.stdout)
        text = ctl("analyze", s.core)
        assert text.returncode == 0 and re.match(r"FAULT  [a-z ]+ \(CUDA_EXCEPTION_\d+\): \d+ warps? ", text.stdout), text
        assert "cuda://device/0/module/" in text.stdout and pc, text.stdout
        image = s.directory / "image"
        assert ctl("analyze", s.core, "--extract-code", "0", image).returncode == 0
        assert image.read_bytes()[:4] == b"\x7fELF"
    finally:
        s.__exit__(*sys.exc_info())


def test_some_waves_of_a_core_are_listed_when_asked_for():
    """A page of those of some groups, or one by its name, of a core of either vendor, also through the command."""
    for make in (lambda: held("gfx90a"), cuda_core):
        s = make()
        try:
            live = snapshot(s)
            core = getattr(s, "core", None) or fetch(s)
            leave(s)
            with CoreRpc(core) as rpc:
                def waves(rpc=rpc, **select):
                    doc = rpc.call("gpu.snapshot", session="core", waves=True, select=select)
                    assert [g["waves"] for g in doc["groups"]] == [g["waves"] for g in live["groups"]], doc["groups"]
                    return doc["waves"]

                for groups, first, most in (([0], 0, 99), ([1, 0], 3, 4), ([1], 99, 1), ([99], 0, 9)):
                    want = [w for w in live["waves"] if w["group"] in groups]
                    assert waves(groups=groups, first=first, max=most) == want[first:first + most], (groups, first, most)
                w = live["waves"][3]
                lasting = {k: w["ref"][k] for k in ("queue_id", "dispatch", "workgroup", "wave_in_group")}
                for name in (w["ref"], lasting, {k: w["ref"][k] for k in ("queue_id", "unit", "index")}):
                    assert waves(groups=[w["group"]], wave=name) == [w] and waves(groups=[w["group"] + 1], wave=name) == [], name
                assert waves(groups=[w["group"]], wave={**lasting, "dispatch": 999}) == []
                error = rpc.error("gpu.snapshot", session="core", select={"groups": [0]})
                assert error.name == "invalid_params" and "only together with waves" in error.message, error
            assert ctl("waves", "--core", core, "--group=99", "-j").returncode == 3
            for n in (1, 2):
                run = document(ctl("waves", "--core", core, f"--group={n}", "--limit=2", "-j"))
                want = [w for w in live["waves"] if w["group"] == n - 1]
                assert run["waves"] == want[:2] and run["matching"] == len(want), (n, run)
                assert run["wave_count"] == live["wave_count"], (n, run)
        finally:
            s.__exit__(*sys.exc_info())


def test_broken_cuda_cores_are_errors_or_partial():
    s = cuda_core()
    try:
        leave(s)
        n = 12 if SANITIZED else 40
        data = s.core.read_bytes()
        got = never_worse_than_an_error(s.directory / "broken", data, random.Random(11), n, n)
        assert FAILURE in got, got
        # The table of sections lies last: bits flipped there, too.
        broken = s.directory / "broken"
        rng = random.Random(3)
        table, = struct.unpack_from("<Q", data, 40)
        for _ in range(n):
            bad = bytearray(data)
            at = rng.randrange(table, len(data))
            bad[at] ^= 1 << rng.randrange(8)
            broken.write_bytes(bad)
            check_one(broken, at)
    finally:
        s.__exit__(*sys.exc_info())


# -- files as they come ---------------------------------------------------------------------------


def program_headers(data):
    at, = struct.unpack_from("<Q", data, 32)
    size, n = struct.unpack_from("<HH", data, 54)
    return [at + i * size for i in range(n)]


def without_our_note(data):
    """As another program would have written it: the note is there under a name that nobody knows."""
    return data.replace(b"gpu-agent\0", b"gpu-other\0")


def test_cores_of_others_say_what_they_can():
    s = held("gfx90a")
    try:
        core = fetch(s)
        live = snapshot(s)
        foreign = s.directory / "foreign"
        foreign.write_bytes(without_our_note(core.read_bytes()))
        seen = document(ctl("analyze", foreign, "--waves", "-j"))
        assert seen["waves"] == live["waves"] and seen["groups"] == live["groups"]
        assert seen["process"]["pid"] == 0 and "writer" not in seen["source"], seen["process"]
        assert abs(seen["time_us"] - os.stat(foreign).st_mtime_ns // 1000) < 10
        assert "\nunknown process  " in ctl("analyze", foreign).stdout
    finally:
        s.__exit__(*sys.exc_info())


def test_what_is_no_core_is_refused_with_the_reason():
    s = held("gfx90a")
    try:
        core = fetch(s)
        data = core.read_bytes()
        bad = s.directory / "bad"
        for content, words in ((b"", "empty"), (b"GPU", "not an ELF file"), (gzip.compress(data)[:-9], "damaged or cut short"),
                               (gzip.compress(data) + b"\0\0\1", "damaged or cut short"),
                               (b"\x1f\x8b" + bytes(40), "damaged or cut short"),
                               (data[:40], "offset 0x28: the file ends inside the ELF header"),
                               (b"\x28\xb5\x2f\xfd" + bytes(40), "zstd"),
                               (pathlib.Path("/bin/true").read_bytes(), "core"),
                               (data[:120], "offset 0x")):
            bad.write_bytes(content)
            run = ctl("analyze", bad)
            assert run.returncode == FAILURE and words in run.stderr and str(bad) in run.stderr, (words, run)
            error = json.loads(ctl("analyze", bad, "-j").stdout)["error"]
            assert words in error["message"], error
        assert "No such file" in ctl("analyze", s.directory / "none").stderr
        assert "not a regular file" in ctl("analyze", s.directory).stderr
        os.mkfifo(s.directory / "fifo")
        assert ctl("analyze", s.directory / "fifo", patience=20).returncode == FAILURE
        # Compressed by dump, or by hand.
        packed = s.directory / "packed"
        pid = s.app.pid
        s.rpc.call("gpu.resume", session=s.session)
        s.rpc.call("session.detach", session=s.session)
        assert s.ctl("dump", pid, LONG_STOP, "--compress=zstd", "-o", packed).returncode == 0
        assert document(ctl("analyze", packed, "-j"))["wave_count"] == 14
        # Behind something to skip, as pzstd does it, and where there is no place to expand it.
        bad.write_bytes(struct.pack("<II", 0x184d2a50, 4) + bytes(4) + packed.read_bytes())
        assert document(ctl("analyze", bad, "-j"))["wave_count"] == 14
        for place, words in (("/nonexistent", "can be made in /nonexistent: No such file"),
                             ("/bin/true", "can be made in /bin/true: Not a directory")):
            run = ctl("analyze", bad, environ={"TMPDIR": place})
            assert run.returncode == FAILURE and words in run.stderr and "TMPDIR" in run.stderr, run
        # Cut off inside its memory: what is left is shown.
        loads = [struct.unpack_from("<IIQQQQ", data, at) for at in program_headers(data)]
        bad.write_bytes(data[:max(p[2] for p in loads if p[0] == 1)])
        seen = document(ctl("analyze", bad, "-j"), PARTIAL)
        assert not seen["complete"] and "offset 0x" in seen["missing"][0], seen["missing"]
    finally:
        s.__exit__(*sys.exc_info())


@contextlib.contextmanager
def file_system(place, size):
    """Memory as a file system: of so many bytes, or of so many as there are, which it does not tell."""
    need_root()
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=1777", "none", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


def test_compressed_cores_have_room_or_say_where_there_is_none():
    """A part of the file system is left to others; one that tells no size is not full."""
    with CudaScene(sim="devices 1 sms=3 warps=8") as s:
        s.session = s.attach(control=True)
        whole, packed, bomb = fetch(s), s.directory / "packed.gz", s.directory / "bomb.gz"
        packed.write_bytes(gzip.compress(whole.read_bytes()))
        bomb.write_bytes(gzip.compress(bytes(64 << 20), 1))
        with file_system(s.directory / "small", 32 << 20) as small:
            environ = {"TMPDIR": str(small)}
            assert ctl("analyze", packed, environ=environ).returncode == 0
            run = ctl("analyze", bomb, environ=environ)
            assert run.returncode == FAILURE and f"{bomb}: compressed, and there is no room to expand it in {small}" in run.stderr, run
            (small / "rest").write_bytes(bytes((32 << 20) - (64 << 10)))
            run = ctl("analyze", packed, environ=environ)
            assert run.returncode == FAILURE and "there is no room" in run.stderr, run
        with file_system(s.directory / "endless", 0) as endless:
            assert os.statvfs(endless).f_blocks == 0
            assert ctl("analyze", packed, environ={"TMPDIR": str(endless)}).returncode == 0
            s.rpc.call("session.detach", session=s.session)
            run = s.ctl("dump", s.app.pid, LONG_STOP, "-o", endless / "core")
            assert run.returncode == 0 and (endless / "core").stat().st_size, run
        # Where it is damaged: far into it.
        data = packed.read_bytes()
        packed.write_bytes(data[:-9])
        run = ctl("analyze", packed)
        assert run.returncode == FAILURE and f"{packed}: offset {len(data) - 9:#x}: its compression" in run.stderr, run


def never_worse_than_an_error(path, data, rng, cuts, flips):
    """Cut at multiples of 64 bytes, and with bits flipped, through the whole path."""
    results = set()
    points = range(0, len(data), 64)
    # One of them behind the ELF header, of which nothing can be shown.
    for at in sorted({64, *rng.sample(points, min(cuts, len(points)))}):
        path.write_bytes(data[:at])
        results.add(check_one(path, ("cut", at)))
    head = min(len(data), 16384)
    for _ in range(flips):
        broken = bytearray(data)
        where = [(rng.randrange(head if rng.random() < 0.7 else len(data)), rng.randrange(8)) for _ in range(4)]
        for byte, bit in where:
            broken[byte] ^= 1 << bit
        path.write_bytes(broken)
        results.add(check_one(path, where))
    return results


def check_one(path, what):
    run = ctl("analyze", path, "--waves", "--registers", "-j")
    assert run.returncode in (0, FAILURE, PARTIAL), (what, run)
    assert "signal" not in run.stderr and "Sanitizer" not in run.stderr and "runtime error" not in run.stderr, (what, run)
    json.loads(run.stdout)
    return run.returncode


def test_broken_amdgpu_cores_are_errors_or_partial():
    s = held("gfx1030")
    try:
        core = fetch(s)
        n = 12 if SANITIZED else 40
        got = never_worse_than_an_error(s.directory / "broken", core.read_bytes(), random.Random(7), n, n)
        assert FAILURE in got and PARTIAL in got, got
    finally:
        s.__exit__(*sys.exc_info())


def test_a_ring_of_an_impossible_size_is_told():
    s = held("gfx1030")
    try:
        ring = int(s.rpc.call("gpu.queues", session=s.session)["queues"][0]["ring_base"], 16)
        core = fetch(s)
        data = bytearray(core.read_bytes())
        # struct kfd_queue_snapshot_entry of the kernel's kfd_ioctl.h
        size = data.index(struct.pack("<Q", ring), data.index(b"AMDGPU\0")) + 40
        assert struct.unpack_from("<I", data, size) == (65536,)
        struct.pack_into("<I", data, size, 65536 - 64)
        core.write_bytes(data)
        missing = document(ctl("analyze", core, "-j"), PARTIAL)["missing"]
        assert missing == ["queue 0: the dispatch of 8 waves is unknown: impossible ring size"], missing
    finally:
        s.__exit__(*sys.exc_info())


def test_a_core_of_a_later_interface_is_told():
    s = held("gfx1030")
    try:
        core = fetch(s)
        data = bytearray(core.read_bytes())
        major = data.index(b"AMDGPU\0") + 8 + 8  # behind name and version of the note
        assert struct.unpack_from("<Q", data, major - 8) == (1,) and struct.unpack_from("<I", data, major) == (1,)
        struct.pack_into("<I", data, major, 2)
        core.write_bytes(data)
        run = ctl("analyze", core, "-j")
        want = f"core file, offset {major:#x}: the kernel interface has a version that is not known; what is shown may be wrong"
        assert want in document(run, PARTIAL)["missing"], run.stdout
    finally:
        s.__exit__(*sys.exc_info())


# -- who reads it ---------------------------------------------------------------------------------


def test_the_reader_can_do_nothing_else():
    s = held("gfx90a")
    try:
        core = fetch(s)
        with CoreRpc(core) as rpc:
            attached = rpc.call("session.attach", pid=1)
            assert attached["vendor"] == "amd" and attached["pid"] == s.app.pid, attached
            facts = status(rpc.program.pid)
            assert facts["Seccomp"] == "2" and facts["NoNewPrivs"] == "1" and int(facts["CapEff"], 16) == 0, facts
            session = attached["session"]
            for method, params in (("gpu.suspend", {}), ("gpu.resume", {}), ("gpu.flags", {"flags": []}),
                                   ("exception.subscribe", {"exceptions": []}), ("core.begin", {}),
                                   ("watchpoint.list", {})):
                assert rpc.error(method, session=session, **params).name == "unsupported", method
            for method in ("agent.status", "process.list", "cores.list"):
                assert rpc.error(method).name == "unsupported", method
            assert rpc.call("gpu.snapshot", session=session)["wave_count"] == 14
            assert rpc.call("runtime.info", session=session)["runtime"]["state"] == "enabled"
            error = rpc.error("memory.read", session=session, address="0x10", size=4)
            assert error.name == "failed" and "core" in error.message, error
            assert rpc.call("session.detach", session=session) == {"ended": True}
    finally:
        s.__exit__(*sys.exc_info())


def with_endless_lines(image, n):
    """A code object whose first line program has @n rows more: a byte each in the file, 60 in memory."""
    data = bytearray(image)
    table, = struct.unpack_from("<Q", data, 40)
    count, names = struct.unpack_from("<HH", data, 60)
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, table + 64 * i) for i in range(count)]
    start = headers[names][4]
    found = next(i for i, h in enumerate(headers) if data[start + h[0]:].startswith(b".debug_line\0"))
    header = list(headers[found])
    lines = bytes(data[header[4]:header[4] + header[5]])
    unit_size, version, _, _, header_size = struct.unpack_from("<IHBBI", lines)
    assert version == 5
    _, _, _, base, span, first_special = struct.unpack_from("<BBBbBB", lines, 12)
    at = lines.index(b"\0\x09\x02", 12 + header_size) + 11  # behind the first DW_LNE_set_address
    body = lines[4:at] + bytes([first_special - base + span]) * n + lines[at:4 + unit_size]
    header[4] = len(data)
    data += struct.pack("<I", len(body)) + body + lines[4 + unit_size:]
    header[5] = len(data) - header[4]
    struct.pack_into("<IIQQQQIIQQ", data, table + 64 * found, *header)
    return bytes(data)


def test_memory_for_a_hostile_image_is_given_back():
    """Of a process that lives on: of a session, or of whoever looks at a core for long."""
    with Scene(app=None, gpus="gfx90a") as s:
        code = s.directory / "hostile.co"
        code.write_bytes(with_endless_lines((CODE / KERNELS["gfx90a"]).read_bytes(), 3000000))
        s.app = s.start_app(f"runtime ttmp; load {code}; queues 1; spin")
        s.session = s.attach(control=True)
        first = s.rpc.call("code.list", session=s.session)["objects"][0]
        addresses = [hex(int(first["address"], 16) + i) for i in range(0, first["size"], 4)][:4096]
        core = fetch(s)
        with CoreRpc(core) as rpc:
            for ask, session, pid in ((s.rpc, s.session, s.worker_pids()[0]), (rpc, "core", rpc.program.pid)):
                before = rss_kib(pid)
                places = ask.call("code.locate", session=session, addresses=addresses)["places"]
                assert any(p["frames"] for p in places)
                most, now = int(status(pid)["VmHWM"].split()[0]), rss_kib(pid)
                if not SANITIZED:
                    assert most > before + (100 << 10) and now < before + (24 << 10), (before, most, now)


def test_its_death_is_an_error():
    """Programs in its place that die, hang, or are not there: found beside gpu-agentctl, as after installation."""
    with Scene(app=None, start_agent=False) as s:
        tool, reader, core = s.directory / "gpu-agentctl", s.directory / "gpu-agent-worker", s.directory / "core"
        shutil.copy(BIN / "gpu-agentctl", tool)
        core.write_bytes(b"any")

        def run(script, *argv):
            reader.write_text(f"#!/bin/sh\n{script}\n")
            reader.chmod(0o755)
            return subprocess.run([tool, *argv], text=True, capture_output=True, timeout=60, stdin=subprocess.DEVNULL)

        for number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGKILL):
            got = run(f"kill -{int(number)} $$", "analyze", core)
            assert got.returncode == FAILURE and f"ended by signal {int(number)}" in got.stderr, got
        got = run("exit 0", "analyze", core)
        assert got.returncode == FAILURE and "ended early" in got.stderr, got
        got = run("exit 127", "snapshot", "--core", core)
        assert got.returncode == FAILURE and "cannot run" in got.stderr, got
        mark = s.directory / "pid"

        def hangs():
            """Its number, if it came so far in that second."""
            got = run(f"echo $$ >{mark}; exec sleep 600", "analyze", core, "--timeout=1s")
            assert got.returncode == 7, got
            return mark.exists() and mark.read_text()

        hung = int(wait_until(hangs, "a program in its place begins"))
        assert not os.path.exists(f"/proc/{hung}"), "it outlives whoever asked"


# Section types of a CUDA core, and what lies below each in the tree.
TABLES = {"contexts": 10, "SMs": 11, "grids": 12, "blocks": 13, "warps": 14, "lanes": 15, "modules": 16}
BELOW = {10: (16,), 11: (13,), 12: (18, 21), 13: (4, 14), 14: (15, 19, 20, 23), 15: (3, 5, 8, 17),
         16: (6, 7)}


def without_table(data, kind):
    """The same core, its section types made such that no reader knows that table, nor what is below it."""
    data, gone = bytearray(data), {kind}
    while more := {c for k in gone for c in BELOW.get(k, ())} - gone:
        gone |= more
    table, = struct.unpack_from("<Q", data, 40)
    first = struct.unpack_from("<10Q", data, table)
    n = struct.unpack_from("<H", data, 60)[0] or first[4]
    for at in range(table, table + 64 * n, 64):
        if struct.unpack_from("<I", data, at + 4)[0] - 0x80000000 in gone:
            struct.pack_into("<I", data, at + 4, 1)
    return bytes(data)


def test_a_core_without_one_of_its_tables_is_not_complete():
    """Whichever is missing: said in a sentence, exit status 8, and no wave of queue 4294967295."""
    said = {
        "contexts": "core file: grid 1: no context ",
        "SMs": "core file: device 0 has 3 SMs but 0 rows for them, and 1 more like it",
        "grids": "core file: block of grid 1, which is not there, and 5 more like it",
        "blocks": "core file: grid 1 is active, but has no block",
        "warps": "core file: block 0,0,0 of grid 1 without warps, and 5 more like it",
        "lanes": "core file: warp 0: valid lanes 0xffffffff, but rows for 0x0, and 23 more like it",
        "modules": "core file: grid 1: no module ",
    }
    with CudaScene(sim="devices 2 sms=3 warps=8") as s:
        s.session = s.attach(control=True)
        whole = fetch(s).read_bytes()
        path = s.directory / "less"
        path.write_bytes(whole)
        assert document(ctl("analyze", path, "-j"))["missing"] == []
        for name, sentence in said.items():
            path.write_bytes(without_table(whole, TABLES[name]))
            run = ctl("analyze", path, "-j", "--waves")
            d = document(run, PARTIAL)
            assert not d["complete"] and any(m.startswith(sentence) for m in d["missing"]), (name, d["missing"])
            queues = {q["queue_id"] for q in d["queues"]}
            assert {w["ref"]["queue_id"] for w in d["waves"]} <= queues <= {0}, (name, queues, d["waves"][:1])
            if name == "contexts":
                assert len(d["waves"]) == 24 and "context" not in d["queues"][0], d["queues"]
                assert ctl("registers", "--core", path, "0:1:2").returncode == 0


def test_a_core_in_gzip_is_read():
    """As drivers from CUDA 13.1 on write them; also in several members."""
    with CudaScene(sim="devices 1 sms=3 warps=8") as s:
        s.session = s.attach(control=True)
        path = fetch(s)
        data, packed = path.read_bytes(), s.directory / "packed.gz"
        want = document(ctl("analyze", path, "-j", "--registers"))
        whole = gzip.compress(data)
        # What a tape or a block device adds is zeros.
        for content in (whole, gzip.compress(data[:1000]) + gzip.compress(data[1000:]), whole + b"\0" * 300000):
            packed.write_bytes(content)
            got = document(ctl("analyze", packed, "-j", "--registers"))
            want["source"]["file"] = got["source"]["file"]
            assert got == want


def test_the_pc_of_a_warp_is_not_where_its_exception_was():
    """Both are registers, live and in a core; and uniform predicates are not the next uniform registers."""
    with CudaScene(release="12.9", sim="devices 1 sms=3 warps=8") as s:
        s.control("warp 0 1 2 pc=0x80 idle=0xc0 active=0xff")
        s.control("raise 0 1 2 14 lanes=0x4 errorpc=0x50")
        (spin,) = (f for m in s.state()["modules"] for f in m["functions"] if f["name"] == "spin")
        base = int(spin["address"], 16)
        s.session = s.attach(control=True)
        path = fetch(s)
        for run in (s.ctl("registers", s.app.pid, "0:1:2", LONG_STOP), ctl("registers", "--core", path, "0:1:2")):
            values = dict(line.split(None, 1) for line in run.stdout.splitlines() if line[:1].isalpha() and " " in line)
            assert run.returncode == 0 and int(values["pc"], 16) == base + 0x80, run.stdout
            assert int(values["error_pc"], 16) == base + 0x50, run.stdout
            assert len(values["UR56"].split()) == 7 and len(values["UP0"].split()) == 7, run.stdout


def test_tables_of_nvidia_devices_have_no_columns_of_amd():
    with CudaScene(sim="devices 1 sms=3 warps=8") as s:
        s.session = s.attach(control=True)
        path = fetch(s)
        heads = [line.split() for line in ctl("analyze", path).stdout.splitlines()]
        assert ["CONTEXT", "WARPS"] in heads, heads
        heads = [line.split() for line in ctl("analyze", path, "-v").stdout.splitlines()]
        assert ["CONTEXT", "WARPS", "ADDRESS"] in heads, heads
        assert ["GPU", "NAME", "ARCH", "SMs", "WARPS", "DEBUG", "PCI"] in [[w for w in h if w != "MEMORY"] for h in heads], heads


def fault_of_exited_warps(s):
    """Raised on a multiprocessor of its own and on one whose warp 2 has another exception; where."""
    (spin,) = (f for m in s.state()["modules"] for f in m["functions"] if f["name"] == "spin")
    pc = int(spin["address"], 16) + 0xc0
    s.control("raise 0 1 2 14 lanes=0x1")
    for sm in (1, 2):
        s.control(f"raise-sm 0 {sm} 6 errorpc={pc:#x}")
    return pc


def test_exceptions_of_warps_that_have_exited_are_named():
    """Live, in the core that is made of that, and in words; the warp that is still there keeps its own."""
    with CudaScene(release="12.9", sim="devices 2 sms=3 warps=8") as s:
        pc = fault_of_exited_warps(s)
        live = s.ctl("snapshot", s.app.pid, LONG_STOP)
        s.session = s.attach(control=True)
        path = fetch(s)
        documents = [snapshot(s), document(ctl("analyze", path, "-j"))]
        for d in documents:
            (exited,) = d["exited"]
            assert (exited["gpu_id"], exited["unit"], exited["units"]) == (0, 1, 2), exited
            assert exited["exception"] == "CUDA_EXCEPTION_6: warp misaligned address", exited
            assert exited["reasons"] == ["address_error"] and int(exited["pc"], 16) == pc, exited
            assert [f["function"] for f in exited["frames"]] == ["weigh(float)", "spin"], exited
            assert exited["kernel"]["name"] == "spin", exited
            assert d["groups"][0]["exception"] == "CUDA_EXCEPTION_14: warp illegal address" and d["complete"], d
            assert sum(g["waves"] for g in d["groups"]) == d["wave_count"] == 24, d["groups"]
        analyzed = ctl("analyze", path)
        assert live.returncode == 0, live
        for run in (live, analyzed):
            assert re.match(r"FAULT  warp illegal address \(CUDA_EXCEPTION_14\): 1 warp of spin\(arg0=0x0, arg1=0x0\), "
                            r".*, GPU 0, context 0\n"
                            r"FAULT  warp misaligned address \(CUDA_EXCEPTION_6\): warps that have exited of spin, "
                            r"spin.cu:12, SM 1 and 1 more of GPU 0\n", run.stdout), run.stdout


def test_drivers_that_cannot_name_the_exception_of_exited_warps():
    """Before 12.5 all that is known is that there is one: said, not left out."""
    with CudaScene(release="12.4", sim="devices 1 sms=3 warps=8") as s:
        s.control("raise-sm 0 1 6")
        run = s.ctl("snapshot", s.app.pid, LONG_STOP, "-j")
        d = document(run, PARTIAL)
        assert d["missing"] == ["1 multiprocessor, 1 of device 0, has an exception that no warp shows: the driver does "
                                "not say which"], d["missing"]
