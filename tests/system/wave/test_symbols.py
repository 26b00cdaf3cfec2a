#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Kernels, source lines and inline chains of waves, out of real code objects; and what hostile ones do to that."""
import contextlib
import hashlib
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest
from harness import BIN, LONG_STOP, ROOT, STOP_MS, Scene, need_root, wait_until

DATA = ROOT / "tests/data/codeobj"
KERNELS = {"spin-gfx90a": ["scale", "spin"], "spin-gfx1030-z": ["scale", "spin"],
           "shapes-gfx90a": ["_ZN3app5shapeIiEEvNS_3vecIT_EEi", "_ZN3app5shapeImEEvNS_3vecIT_EEi"]}


@contextlib.contextmanager
def code_objects():
    """Compiled now where this machine's clang can, else those that lie here."""
    with tempfile.TemporaryDirectory(prefix="gpu-agent-test.") as directory:
        os.chmod(directory, 0o755)
        tools = all(shutil.which(t) for t in ("clang", "ld.lld", "llvm-nm", "llvm-symbolizer"))
        if tools and subprocess.run([DATA / "make-fixtures", directory], capture_output=True).returncode == 0:
            yield pathlib.Path(directory)
        else:
            yield DATA


class Expected:
    """What LLVM says of each instruction of a code object: ELF address -> [(function, file, line), ...]."""

    def __init__(self, path):
        self.frames = {}
        for block in path.with_suffix(".expect").read_text().split("\n\n"):
            lines = block.split("\n")
            if len(lines) > 2:
                places = [p.rsplit(":", 2) for p in lines[2::2]]
                self.frames[int(lines[0], 16)] = [(f, p[0], int(p[1])) for f, p in zip(lines[1::2], places)]

    def chains(self):
        """One address of each different chain with known lines."""
        seen = {}
        for address, frames in self.frames.items():
            if all(f[2] for f in frames):
                seen.setdefault(tuple(frames), address)
        return seen


def frames_of(doc):
    """As in Expected, of a group or a place."""
    return [(f["function"], f.get("file"), f.get("line", 0)) for f in doc["frames"]]


def snapshot(s, **params):
    """With the longest stop; and again where there was no time to read a file: what was read is there the next time."""
    def ask():
        doc = s.rpc.call("gpu.snapshot", session=s.session, max_stop_ms=STOP_MS, **params)
        return None if any("no time" in m for m in doc["missing"]) else doc

    return wait_until(ask, "a snapshot in time")


def plant(s, queue, text):
    s.control(f"waves {s.app.pid} {queue} {text}")


def scene(script, gpus="gfx90a", **kwargs):
    return Scene(app=f"runtime ttmp; {script}; spin", gpus=gpus, **kwargs)


def bias_of(s, name):
    objects = s.rpc.call("code.list", session=s.session)["objects"]
    return next(int(o["bias"], 16) for o in objects if name in o["uri"])


def runs_on(s):
    state = s.target_state()
    assert all(q["running"] and not q["suspended"] for q in state["queues"]), state
    before = {q["id"]: q["packets"] for q in state["queues"]}
    for i in before:
        plant(s, i, "clear")
    wait_until(lambda: all(q["packets"] > before[q["id"]] for q in s.target_state()["queues"]), "queues run")


@pytest.mark.parametrize("name,kernels", KERNELS.items(), ids=KERNELS)
def test_line_and_chain_of(name, kernels):
    with code_objects() as directory:
        expected = Expected(directory / f"{name}.co")
        chains = expected.chains()
        assert max(map(len, chains)) >= 3 and len(chains) > 10, chains
        with scene(f"load {directory}/{name}.co; queues 1", gpus=name.split("-")[1]) as s:
            s.session = s.attach()
            bias = bias_of(s, name)
            script = s.directory / "waves"
            script.write_text("".join(f"halted n=4 group=2 pc={bias + a:#x}\n" for a in chains.values()))
            plant(s, s.target_state()["queues"][0]["id"], f"script {script}")
            doc = snapshot(s, waves=True)
            assert doc["complete"], doc["missing"]
            groups = {tuple(frames_of(g)): g for g in doc["groups"]}
            assert set(groups) == set(chains), set(groups) ^ set(chains)
            for frames, g in groups.items():
                assert g["pc"] == hex(bias + chains[frames]) and g["waves"] == 4 and g["pcs"] == 1, g
                assert [f["inlined"] for f in g["frames"]] == [True] * (len(frames) - 1) + [False], g
            for w in doc["waves"]:
                assert doc["groups"][w["group"]]["pc"] == w["pc"], w
            # No dispatch says it, so it is the symbol around the pc, where that is a kernel.
            assert {g["kernel"]["raw"] for g in doc["groups"] if "kernel" in g} == {f"{k}.kd" for k in kernels}
            # The other way to the same answers, for every instruction.
            addresses = list(expected.frames)
            places = s.rpc.call("code.locate", session=s.session, addresses=[hex(bias + a) for a in addresses])
            assert places["complete"], places["missing"]
            for a, place in zip(addresses, places["places"]):
                assert frames_of(place) == expected.frames[a], (place, expected.frames[a])
                start, size = int(place["symbol"]["address"], 16), place["symbol"]["size"]
                assert start <= bias + a < start + size and name in place["uri"], place


def test_names_are_for_people():
    kernel = KERNELS["shapes-gfx90a"][0]
    with scene(f"load {DATA}/shapes-gfx90a.co; queues 1; waves 0 halted 4 {kernel}+16") as s:
        s.session = s.attach()
        group, = snapshot(s)["groups"]
        assert group["kernel"]["name"] == "void app::shape<int>(app::vec<int>, int)", group
        assert group["kernel"]["raw"] == f"{kernel}.kd", group


def test_the_dispatch_names_the_kernel():
    """Waves in a function that kernels call: who called it is in the packets; two kernels, two groups."""
    expected = Expected(DATA / "spin-gfx90a.co")
    outside = next(a for a, f in expected.frames.items() if f[-1][0] == "outside" and len(f) == 3)
    with scene(f"load {DATA}/spin-gfx90a.co; queues 4; dispatch 0 scale 4096 64; dispatch 1 spin; dispatch 2 scale") as s:
        s.session = s.attach()
        bias = bias_of(s, "spin-gfx90a")
        for i, n in enumerate((4, 8, 12, 2)):
            plant(s, i, f"halted {n} {bias + outside:#x}")
        doc = snapshot(s)
        assert doc["complete"], doc["missing"]
        found = {g.get("kernel", {}).get("name"): g["waves"] for g in doc["groups"]}
        # No packet of the last queue names a kernel, and the function around the pc is none.
        assert found == {"scale": 4 + 12, "spin": 8, None: 2}, doc["groups"]
        assert {tuple(frames_of(g)) for g in doc["groups"]} == {tuple(expected.frames[outside])}
        bias_kernels = {g["kernel"]["raw"]: int(g["kernel"]["address"], 16) for g in doc["groups"] if "kernel" in g}
        assert set(bias_kernels) == {"scale.kd", "spin.kd"} and all(a > bias for a in bias_kernels.values())


def test_a_kernel_without_code_object_keeps_its_address():
    with Scene(app=f"runtime ttmp; load {DATA}/spin-gfx90a.co; queues 1; dispatch 0 spin; list gone; spin", gpus="gfx90a") as s:
        s.session = s.attach()
        plant(s, 0, "halted 4 0x1000")
        doc = snapshot(s)
        group, = doc["groups"]
        assert doc["complete"] and set(group["kernel"]) == {"address"} and group["frames"] == [], doc
        row = next(line for line in s.ctl("snapshot", s.app.pid, LONG_STOP).stdout.splitlines() if line.endswith(" halted"))
        assert group["kernel"]["address"] in row and "0x1000" in row, row


def test_without_dispatches_the_pc_names_the_kernel():
    """As AMD's runtime has it unless it is told otherwise: nothing that was asked for is missing, but arguments."""
    for code, runtime, carried in (("gfx90a", "on", False), ("gfx90a", "ttmp", True), ("gfx1030-z", "on", True)):
        with Scene(app=f"runtime {runtime}; load {DATA}/spin-{code}.co; queues 1; waves 0 halted 4 spin+16; spin",
                   gpus=code.split("-")[0]) as s:
            s.session = s.attach()
            doc = snapshot(s)
            assert doc["complete"], doc["missing"]
            group, = doc["groups"]
            assert group["kernel"]["name"] == "spin" and group["frames"][0]["line"], group
            assert ("dispatch" in group["representative"]) == carried, group
            s.rpc.call("session.detach", session=s.session)
            run = s.ctl("snapshot", s.app.pid, LONG_STOP)
            assert run.returncode == 0 and ("HSA_ENABLE_DEBUG=1" in run.stdout) != carried, run.stdout
            run = s.ctl("snapshot", s.app.pid, LONG_STOP, "--arguments")
            told = [line for line in run.stdout.split("\n") if line.startswith("missing  arguments of kernels: the waves do not")]
            assert (run.returncode == 8 and len(told) == 1) != carried, run.stdout


def test_waves_of_one_line_are_one_group():
    """Two addresses of the same line and chain; a third of another line; a fourth without any line."""
    expected = Expected(DATA / "spin-gfx90a.co")
    by_chain = {}
    for address, frames in expected.frames.items():
        if all(f[2] for f in frames):
            by_chain.setdefault(tuple(frames), []).append(address)
    same = max(by_chain.values(), key=len)
    other = next(a for a in by_chain.values() if a is not same)
    with scene(f"load {DATA}/spin-gfx90a.co; queues 1") as s:
        s.session = s.attach()
        bias = bias_of(s, "spin-gfx90a")
        script = s.directory / "waves"
        script.write_text("".join(f"halted n=8 group=4 workgroup={i},2,0 pc={bias + a:#x}\n"
                                  for i, a in ((5, same[0]), (30, same[1]), (60, other[0])))
                          + "halted n=4 pc=0x1000\nhalted n=4 pc=0x1004\n")
        plant(s, 0, f"script {script}")
        doc = snapshot(s)
        assert doc["complete"] and len(doc["groups"]) == 4, doc
        large, small, *unknown = doc["groups"]
        assert large["waves"] == 16 and large["pcs"] == 2 and large["pc"] == hex(bias + same[0]), large
        assert large["first_workgroup"] == [5, 2, 0] and large["last_workgroup"] == [31, 2, 0], large
        assert small["waves"] == 8 and small["pcs"] == 1, small
        assert [(g["frames"], g["pc"], g["waves"]) for g in unknown] == [([], "0x1000", 4), ([], "0x1004", 4)], unknown


def test_a_wave_behind_its_trap_is_at_its_line():
    """The pc is behind the s_trap; line and chain are those of the s_trap."""
    expected = Expected(DATA / "spin-gfx90a.co")
    address = next(a for a, f in expected.frames.items() if len(f) == 3 and f != expected.frames.get(a + 4))
    with scene(f"load {DATA}/spin-gfx90a.co; queues 2") as s:
        s.session = s.attach()
        bias = bias_of(s, "spin-gfx90a")
        plant(s, 0, f"assert 4 {bias + address:#x}")
        plant(s, 1, f"halted 4 {bias + address:#x}")
        trap, halted = snapshot(s)["groups"]
        assert trap["reasons"] == ["assert"] and trap["pc"] == hex(bias + address + 4), trap
        assert halted["pc"] == hex(bias + address), halted
        assert frames_of(trap) == frames_of(halted) == expected.frames[address], (trap, halted)


def test_objects_in_memory_and_in_parts_of_files():
    with tempfile.TemporaryDirectory(prefix="gpu-agent-test.") as directory:
        fat = pathlib.Path(directory) / "fat binary#1.so"
        first, second = ((DATA / f"{n}.co").read_bytes() for n in ("spin-gfx90a", "shapes-gfx90a"))
        # A script's words end at blanks.
        fat = fat.with_name("fat%binary#1.so")
        fat.write_bytes(b"\0" * 4096 + first + b"\0" * 512 + second)
        offset = 4096 + len(first) + 512
        with scene(f"load {fat} offset=4096 size={len(first)}; load {fat} offset={offset} size={len(second)};"
                   f"load {DATA}/spin-gfx90a.co memory; queues 1") as s:
            s.session = s.attach()
            listed = s.rpc.call("code.list", session=s.session)
            assert listed["complete"] and len(listed["objects"]) == 3, listed
            assert sorted(o["uri"].split(":")[0] for o in listed["objects"]) == ["file", "file", "memory"], listed
            assert sum("fat%25binary%231.so#offset=" in o["uri"] for o in listed["objects"]) == 2, listed
            for o in listed["objects"]:
                assert o["has_dwarf"] and o["symbols"] >= 4 and o["size"] > 4096 and "problem" not in o, o
            expected = {n: Expected(DATA / f"{n}.co").frames for n in ("spin-gfx90a", "shapes-gfx90a")}
            for o in listed["objects"]:
                want = expected["shapes-gfx90a" if f"offset={offset}" in o["uri"] else "spin-gfx90a"]
                addresses = list(want)[::5]
                places = s.rpc.call("code.locate", session=s.session,
                                    addresses=[hex(int(o["bias"], 16) + a) for a in addresses])["places"]
                assert [frames_of(p) for p in places] == [want[a] for a in addresses]
                assert {p["uri"] for p in places} == {o["uri"]}


def test_the_list_is_read_anew():
    """Loaded and replaced between snapshots; caches notice."""
    with tempfile.TemporaryDirectory(prefix="gpu-agent-test.") as directory:
        path = pathlib.Path(directory) / "x.co"
        shutil.copy(DATA / "spin-gfx1030-z.co", path)
        with Scene(app=f"runtime ttmp; load {path}; queues 1; listen", gpus="gfx1030") as s:
            def run(line):
                done = len(s.app.out().splitlines())
                s.app.popen.stdin.write(f"{line}\n".encode())
                s.app.popen.stdin.flush()
                wait_until(lambda: len(s.app.out().splitlines()) > done, "command done")

            s.session = s.attach()
            bias = bias_of(s, "x.co")
            address = next(a for a, f in Expected(DATA / "spin-gfx1030-z.co").frames.items() if f[0][2])
            plant(s, 0, f"halted 4 {bias + address:#x}")
            group, = snapshot(s)["groups"]
            assert group["frames"][0]["file"].endswith("spin.cl"), group
            # Built again while the process runs: lines of the new one would be wrong.
            path.unlink()
            shutil.copy(DATA / "shapes-gfx90a.co", path)
            doc = snapshot(s)
            assert not doc["complete"] and "not the one that was loaded" in doc["missing"][0], doc["missing"]
            assert doc["wave_count"] == 4 and doc["groups"][0]["frames"] == [], doc["groups"]
            uri = s.rpc.call("code.list", session=s.session)["objects"][0]["uri"]
            error = s.rpc.error("code.read", session=s.session, uri=uri, offset=0, size=64)
            assert "not the one that was loaded" in error.message, error
            shutil.copy(DATA / "spin-gfx1030-z.co", path)
            assert snapshot(s)["groups"][0]["frames"] == group["frames"]
            run(f"load {DATA}/spin-gfx1030-z.co memory")
            assert len(s.rpc.call("code.list", session=s.session)["objects"]) == 2
            run("list busy")
            doc = snapshot(s)
            assert not doc["complete"] and "changing the list" in doc["missing"][0], doc["missing"]
            assert doc["groups"][0]["waves"] == 4 and doc["groups"][0]["frames"] == [], doc["groups"]
            run("list whole")
            assert snapshot(s)["groups"][0]["frames"] == group["frames"]


def test_files_are_those_of_the_target():
    """In a mount namespace of its own, where the host has something else under that name."""
    need_root()
    with tempfile.TemporaryDirectory(prefix="gpu-agent-test.") as directory, Scene(app=None, gpus="gfx90a") as s:
        seen, hidden = pathlib.Path(directory) / "seen", pathlib.Path(directory) / "hidden"
        for d, source in ((seen, "shapes-gfx90a"), (hidden, "spin-gfx90a")):
            d.mkdir()
            shutil.copy(DATA / f"{source}.co", d / "code.co")
        (hidden / "link.co").symlink_to(seen / "code.co")  # absolute: means the target's file as well
        script = f"runtime ttmp; load {seen}/link.co; queues 1; waves 0 halted 4 spin+16; spin"
        status = s.directory / "status"
        s.app = s.start("app", ["unshare", "--mount", "--propagation", "private", "sh", "-c",
                                f"mount --bind {hidden} {seen} && exec {BIN}/gpu-agent-simapp --kfd {s.mount}/kfd "
                                f"--status-file {status} -e '{script}'"])
        s.app.wait_line()
        s.session = s.attach()
        doc = snapshot(s)
        assert doc["complete"], doc["missing"]
        group, = doc["groups"]
        assert group["kernel"]["name"] == "spin" and group["frames"][0]["function"] == "spin", group


def elf_sections(data):
    """name -> (offset of its header, offset, size)"""
    shoff, = struct.unpack_from("<Q", data, 40)
    shentsize, shnum, shstrndx = struct.unpack_from("<HHH", data, 58)
    heads = [struct.unpack_from("<IIQQQQ", data, shoff + i * shentsize) for i in range(shnum)]
    names = heads[shstrndx][4]
    return {data[names + h[0]:data.index(b"\0", names + h[0])].decode(): (shoff + i * shentsize, h[4], h[5])
            for i, h in enumerate(heads)}


def with_line_table(data, size):
    """The same object with a line program of @size bytes, each of which makes a row."""
    head, offset, _ = elf_sections(data)[".debug_line"]
    header_length, = struct.unpack_from("<I", data, offset + 8)  # version 5: behind length, version, sizes
    program = data[offset:offset + 12 + header_length] + b"\x80" * size
    program = struct.pack("<I", len(program) - 4) + program[4:]
    out = bytearray(data + program)
    struct.pack_into("<QQ", out, head + 24, len(data), len(program))
    return bytes(out)


def with_more_lines(data, size):
    """The same object with line programs of @size bytes, of which its unit has the first: as of a library with many units."""
    head, offset, length = elf_sections(data)[".debug_line"]
    program = data[offset:offset + length]
    programs = program * (size // length + 1)
    out = bytearray(data + programs)
    struct.pack_into("<QQ", out, head + 24, len(data), len(programs))
    return bytes(out)


def spoiled(directory):
    """name -> (script line that loads a good and a bad object, what is said of the bad one)"""
    # Without build-id: an object with the build-id of one that is in the cache is not even read.
    good = (DATA / "shapes-gfx90a.co").read_bytes()
    made = {
        "truncated": good[:len(good) // 2],
        "no_elf": b"#!/bin/sh\n" * 50,
        "empty": b"",
        "lines_too_many": with_line_table(good, 5 << 20),
        "lines_many": with_line_table(good, 500 * 1000),
        "other_byte_order": good[:5] + b"\x02" + good[6:],
    }
    for name, data in made.items():
        (directory / name).write_bytes(data)
    os.mkfifo(directory / "fifo")
    (directory / "loop").symlink_to(directory / "loop")
    return {
        "truncated": (f"file://{directory}/truncated", "no symbols"),
        "no_elf": (f"file://{directory}/no_elf", "not an ELF"),
        "empty": (f"file://{directory}/empty", "not an ELF"),
        "other_byte_order": (f"file://{directory}/other_byte_order", "not an ELF"),
        "lines_too_many": (f"file://{directory}/lines_too_many", "too large"),
        "lines_many": (f"file://{directory}/lines_many", None),
        "gone": (f"file://{directory}/gone", "gone"),
        "fifo": (f"file://{directory}/fifo", "not a regular file"),
        "device": ("file:///dev/zero", "not a regular file"),
        "directory": (f"file://{directory}", "not a regular file"),
        "loop": (f"file://{directory}/loop", "path cannot be followed"),
        "short": (f"file://{directory}/empty#offset=0&size=4096", "shorter"),
        "far": (f"file://{directory}/no_elf#offset=0x7fffffffffff&size=4096", "shorter"),
        "text": ("http://example.org/", "unknown kind"),
        "nonsense": ("file://%zz", "not understood"),
        "other_process": ("memory://1#offset=0x1000&size=4096", "another process"),
    }


def test_broken_objects_do_not_hide_the_others():
    """Each beside a good object, at the same place as a wave; the target runs on and the save areas stay as they are."""
    with tempfile.TemporaryDirectory(prefix="gpu-agent-test.") as directory:
        os.chmod(directory, 0o755)
        bad = spoiled(pathlib.Path(directory))
        script = "; ".join(f"object {uri} {0x100000 * (i + 1):#x}" for i, (uri, _) in enumerate(bad.values()))
        with scene(f"load {DATA}/spin-gfx90a.co; {script}; queues 2; waves 0 halted 4 spin+16") as s:
            s.session = s.attach()
            # Nobody asks for them: nothing that matters is missing.
            doc = snapshot(s)
            assert doc["complete"] and doc["groups"][0]["kernel"]["name"] == "spin", doc
            listed = s.rpc.call("code.list", session=s.session)
            assert not listed["complete"] and len(listed["objects"]) == len(bad) + 1, listed
            for uri, why in bad.values():
                found = next(o for o in listed["objects"] if o["uri"] == uri)
                # lines_many is only hard work, which starts when a line is asked for.
                assert why is None or why == "too large" or why in found.get("problem", ""), found
            waves = s.directory / "waves"
            address = next(a for a, f in Expected(DATA / "shapes-gfx90a.co").frames.items() if len(f) == 3)
            waves.write_text("".join(f"halted n=4 pc={0x100000 * (i + 1) + address:#x}\n" for i in range(len(bad))))
            plant(s, 1, f"script {waves}")
            s.rpc.call("gpu.suspend", session=s.session, lease_ms=60000)
            areas = checksum(s)
            doc = snapshot(s)
            assert checksum(s) == areas, "a snapshot has written to a save area"
            s.rpc.call("gpu.resume", session=s.session)
            assert not doc["complete"] and doc["wave_count"] == 4 + 4 * len(bad), doc
            for uri, why in bad.values():
                said = [m for m in doc["missing"] if f"{uri}: " in m]
                assert (why is None and not said) or (said and why in said[0]), (uri, why, doc["missing"])
            by_pc = {int(g["pc"], 16): g for g in doc["groups"]}
            names = list(bad)
            many = by_pc[0x100000 * (names.index("lines_many") + 1) + address]
            assert len(many["frames"]) == 3, many
            too_many = by_pc[0x100000 * (names.index("lines_too_many") + 1) + address]
            assert len(too_many["frames"]) == 3 and "line" not in too_many["frames"][0], too_many
            assert any(g.get("kernel", {}).get("name") == "spin" for g in doc["groups"])
            # In the session that has read them.
            run = s.ctl("snapshot", s.app.pid, LONG_STOP)
            assert run.returncode == 8 and "spin" in run.stdout and "its file is gone" in run.stdout, run
            s.rpc.call("session.detach", session=s.session)
            runs_on(s)


def test_a_large_object_has_lines():
    """What is read is bounded, not how much there is: one unit of 24 MiB of line programs is wanted."""
    with tempfile.TemporaryDirectory(prefix="gpu-agent-test.") as directory:
        os.chmod(directory, 0o755)
        path = pathlib.Path(directory) / "large.co"
        path.write_bytes(with_more_lines((DATA / "shapes-gfx90a.co").read_bytes(), 24 << 20))
        chain, address = next((c, a) for c, a in Expected(DATA / "shapes-gfx90a.co").chains().items() if len(c) == 3)
        with scene(f"object file://{path} 0x100000; queues 1") as s:
            s.session = s.attach()
            waves = s.directory / "waves"
            waves.write_text(f"halted n=4 pc={0x100000 + address:#x}\n")
            plant(s, 0, f"script {waves}")
            doc = snapshot(s)
            assert doc["complete"], doc["missing"]
            group, = doc["groups"]
            assert frames_of(group) == list(chain) and "app::shape<" in group["kernel"]["name"], group
            runs_on(s)


def test_an_object_that_is_loaded_twice_is_complained_about_once():
    with tempfile.TemporaryDirectory(prefix="gpu-agent-test.") as directory:
        os.chmod(directory, 0o755)
        path = pathlib.Path(directory) / "large.co"
        path.write_bytes(with_line_table((DATA / "spin-gfx90a.co").read_bytes(), 5 << 20))
        with scene(f"object file://{path} 0x100000; object file://{path} 0x200000; queues 1") as s:
            s.session = s.attach()
            address = next(iter(Expected(DATA / "spin-gfx90a.co").frames))
            waves = s.directory / "waves"
            waves.write_text("".join(f"halted n=4 pc={at + address:#x}\n" for at in (0x100000, 0x200000)))
            plant(s, 0, f"script {waves}")
            doc = snapshot(s)
            assert len(doc["missing"]) == 1 and "too large" in doc["missing"][0], doc["missing"]
            assert len(doc["groups"]) == 2, doc["groups"]
            runs_on(s)


def checksum(s):
    digest = hashlib.blake2b()
    dies = {d["gpu_id"]: d["units"] for d in s.rpc.call("gpu.devices", session=s.session)["devices"]}
    with open(f"/proc/{s.app.pid}/mem", "rb", buffering=0) as mem:
        for q in s.rpc.call("gpu.queues", session=s.session)["queues"]:
            mem.seek(int(q["save_area"], 16))
            digest.update(mem.read(q["save_area_bytes"] * dies[q["gpu_id"]]))
    return digest.digest()


def test_a_list_without_end_ends():
    with scene(f"load {DATA}/spin-gfx90a.co; load {DATA}/shapes-gfx90a.co; list cycle; queues 1;"
               "waves 0 halted 4 spin+16") as s:
        s.session = s.attach()
        doc = snapshot(s)
        assert not doc["complete"] and "back into itself after 2 entries" in doc["missing"][0], doc["missing"]
        assert doc["groups"][0]["kernel"]["name"] == "spin", doc["groups"]
        assert s.ctl("snapshot", s.app.pid, LONG_STOP).returncode == 8
        runs_on(s)


def test_a_file_that_only_root_may_read():
    """The worker reads with the rights of the target, not with the daemon's."""
    need_root()
    with tempfile.TemporaryDirectory(prefix="gpu-agent-test.") as directory:
        os.chmod(directory, 0o755)
        for name, mode in (("open.co", 0o644), ("closed.co", 0o600)):
            shutil.copy(DATA / "spin-gfx90a.co", pathlib.Path(directory) / name)
            os.chmod(pathlib.Path(directory) / name, mode)
        with scene(f"load {directory}/open.co; object file://{directory}/closed.co 0x100000; queues 1", user_mode=False,
                   app_user=1234) as s:
            s.session = s.attach()
            plant(s, 0, f"halted 4 {bias_of(s, 'open.co') + 0x1b10:#x}")
            listed = s.rpc.call("code.list", session=s.session)
            problems = {o["uri"].rsplit("/", 1)[1]: o.get("problem") for o in listed["objects"]}
            assert problems == {"open.co": None, "closed.co": "its file may not be read"}, listed
            assert snapshot(s)["groups"][0]["kernel"]["name"] == "spin"


def test_waves_name_their_group():
    """The flat list names a group for each wave instead of repeating where it is."""
    with scene(f"load {DATA}/spin-gfx90a.co; queues 4; waves 0 spin 4000 spin+0 loop=64", gpus="gfx942") as s:
        s.session = s.attach()
        doc = snapshot(s, waves=True)
        assert doc["complete"] and doc["wave_count"] == 4000, doc["missing"]
        assert sum(g["waves"] for g in doc["groups"]) == 4000 and len(doc["groups"]) < 16, doc["groups"]
        counted = [0] * len(doc["groups"])
        for w in doc["waves"]:
            counted[w["group"]] += 1
        assert counted == [g["waves"] for g in doc["groups"]]
        assert len(json.dumps(doc["waves"])) < 400 * 4000
