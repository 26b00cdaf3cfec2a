#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Waves planted in the simulator: what a suspend leaves in the target's save areas."""
import base64
import os
import struct
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from harness import Scene, need_root, wait_until

KERNEL = 0x7f1122330000
XCCS = 8  # of a gfx942
APP = "runtime on; queues 1; spin"


class Area:
    """The save area of the only queue, read through the agent."""

    def __init__(self, s, xccs=XCCS):
        self.s = s
        self.session = s.attach()
        self.queue = self.queues()[0]
        self.base = int(self.queue["save_area"], 16)
        self.size = self.queue["save_area_bytes"]
        self.xccs = xccs

    def queues(self):
        return self.s.rpc.call("gpu.queues", session=self.session)["queues"]

    def read(self, address, size):
        data = b""
        while len(data) < size:
            got = self.s.rpc.call("memory.read", session=self.session, address=hex(address + len(data)),
                                  size=min(size - len(data), 1 << 20))
            data += base64.b64decode(got["data"])
        return data

    def header(self, xcc):
        return struct.unpack("<IIII", self.read(self.base + xcc * self.size, 16))

    def headers(self):
        return [self.header(xcc) for xcc in range(self.xccs)]

    def stack(self, xcc):
        offset, size, _, _ = self.header(xcc)
        return struct.unpack(f"<{size // 4}I", self.read(self.base + xcc * self.size + offset, size))

    def content(self, xcc):
        """Everything that was saved."""
        offset, _, end, _ = self.header(xcc)
        return self.read(self.base + xcc * self.size + offset, end - offset)

    def suspend(self):
        got = self.s.rpc.call("gpu.suspend", session=self.session, lease_ms=30000)
        assert got["suspended"] == 1, got

    def resume(self):
        self.s.rpc.call("gpu.resume", session=self.session)


def plant(s, text, queue=0):
    s.control(f"waves {s.app.pid} {queue} {text}")


def refused(s, text):
    try:
        plant(s, text)
    except OSError as error:
        return error.errno
    raise AssertionError(f"{text}: accepted")


def check_header(header, area):
    """The sum that a reader checks, and both ranges inside the area."""
    stack, stack_size, end, size = header
    assert stack + stack_size == end - size, header
    assert stack_size % 4 == 0 and 40 <= stack and end <= area.size, header


def gfx9_waves(stack):
    """Wave words of a control stack of one state word per state."""
    return [word for word in stack[2:] if not word >> 30]


def test_waves_are_saved_on_every_xcc():
    with Scene(app=APP, gpus="gfx942") as s:
        plant(s, f"spin 100 {KERNEL:#x} group=4")
        area = Area(s)
        assert area.headers() == [(0, 0, 0, 0)] * XCCS  # never suspended
        area.suspend()
        counts = []
        for xcc, header in enumerate(area.headers()):
            check_header(header, area)
            waves = gfx9_waves(area.stack(xcc))
            assert [bool(w & 1 << 17) for w in waves] == [True, False, False, False] * (len(waves) // 4), waves
            assert [bool(w & 1 << 16) for w in waves] == [False, False, False, True] * (len(waves) // 4), waves
            # 8 + 8 vector registers, 64 scalar ones, TTMPs and their unused room; 512 bytes of LDS a group.
            assert header[3] == len(waves) * (16 * 256 + 256 + 128 + 64) + len(waves) // 4 * 512
            counts.append(len(waves))
        assert counts == [16] + [12] * 7, counts
        assert s.target_state()["queues"][0]["waves"] == 100


def test_looking_writes_nothing():
    with Scene(app=APP, gpus="gfx942") as s:
        plant(s, f"spin 10 {KERNEL:#x} loop=0")
        area = Area(s)
        s.rpc.call("gpu.snapshot", session=area.session, queues_only=True)
        assert area.headers() == [(0, 0, 0, 0)] * XCCS  # nothing was suspended
        area.suspend()
        area.resume()
        before = [area.content(xcc) for xcc in range(XCCS)]
        area.s.rpc.call("gpu.snapshot", session=area.session)
        area.queues()
        assert area.headers()[0][1] and [area.content(xcc) for xcc in range(XCCS)] == before


def first_wave_pc(area, lds=512):
    """pc of the first wave of XCC 0, from the worked example of the layout."""
    end = area.header(0)[2]
    low, high = struct.unpack("<II", area.read(area.base + end - 64 - lds - 128 + 4, 8))
    return high << 32 | low


def test_spinning_waves_move_when_the_queue_ran():
    with Scene(app=APP, gpus="gfx942") as s:
        plant(s, f"spin 1 {KERNEL:#x} loop=64")
        area = Area(s)
        seen = set()
        for _ in range(4):
            area.suspend()
            pc = first_wave_pc(area)
            area.suspend()  # again: it did not run
            assert first_wave_pc(area) == pc
            seen.add(pc)
            area.resume()
        assert len(seen) > 1 and all(KERNEL <= pc < KERNEL + 64 and pc % 4 == 0 for pc in seen), seen
        plant(s, f"spin 1 {KERNEL:#x} loop=0")
        for _ in range(3):
            area.suspend()
            assert first_wave_pc(area) == KERNEL
            area.resume()


def test_a_trapped_wave_stands_behind_its_trap():
    with Scene(app=APP, gpus="gfx942") as s:
        area = Area(s)
        for kind, behind in (("assert", 4), ("breakpoint", 4), ("memory", 0), ("illegal", 0), ("halted", 0)):
            plant(s, f"{kind} 1 {KERNEL:#x}")
            area.suspend()
            assert first_wave_pc(area) == KERNEL + behind, kind
            area.resume()


def test_what_a_debugger_writes_stays_while_suspended():
    need_root()
    with Scene(app=APP, gpus="gfx942") as s:
        plant(s, f"spin 4 {KERNEL:#x}")
        area = Area(s)
        area.suspend()
        place = area.base + area.header(0)[2] - 64 - 512 - 128 + 5 * 4
        with open(f"/proc/{s.app.pid}/mem", "r+b", buffering=0) as mem:
            mem.seek(place)
            mem.write(b"\x55" * 4)
        area.suspend()
        assert area.read(place, 4) == b"\x55" * 4


def test_spinning_waves_hold_their_packet():
    with Scene(app=APP, gpus="gfx942") as s:
        def index():
            return s.target_state()["queues"][0]["packets"]

        start = index()
        wait_until(lambda: index() > start, "packets without waves")
        plant(s, f"progress 8 {KERNEL:#x}")
        start = index()
        wait_until(lambda: index() > start + 2, "packets of progressing waves")
        plant(s, f"spin 8 {KERNEL:#x}")
        start = index()
        s.control("progress 1")
        area = Area(s)
        for _ in range(10):
            area.suspend()
            area.resume()
        assert index() == start


def test_scripts_choose_registers():
    with Scene(app=APP, gpus="gfx90a") as s:
        script = s.directory / "waves.script"
        script.write_text(f"# two kinds\nspin n=4 pc={KERNEL:#x} v3.7=0xdeadbeef\n\n"
                          f"assert n=2 group=1 pc={KERNEL:#x} vgprs=16 acc=0 workgroup=5,1,0 s4=77 lds=0\n")
        plant(s, f"script {script}")
        area = Area(s, xccs=1)
        area.suspend()
        _, _, end, _ = area.header(0)
        check_header(area.header(0), area)
        stack = area.stack(0)
        assert len(gfx9_waves(stack)) == 6 and sum(w >> 31 for w in stack[2:] if not w >> 30 & 1) == 2, stack
        record = 16 * 256 + 256 + 128 + 64
        v0 = area.base + end - record - 512
        assert area.read(v0 + 3 * 256 + 7 * 4, 4) == bytes.fromhex("efbeadde")
        last = area.base + area.header(0)[0] + area.header(0)[1]
        assert area.read(last + 16 * 256 + 4 * 4, 4) == struct.pack("<I", 77)
        area.resume()
        plant(s, "clear")
        area.suspend()
        check_header(area.header(0), area)
        assert area.header(0)[1] == 0 and area.header(0)[3] == 0


def test_every_generation_and_kind_is_saved():
    kinds = ("spin", "progress", "memory", "address", "illegal", "math", "breakpoint", "assert", "debugtrap",
             "stopped", "halted", "barrier", "divergence")
    for gpu in ("gfx906", "gfx90a", "gfx942", "gfx950", "gfx1030", "gfx1100", "gfx1201", "gfx1250"):
        with Scene(app=APP, gpus=gpu) as s:
            script = s.directory / "waves.script"
            script.write_text("".join(f"{kind} n=7 group=3 junk=1\n" for kind in kinds))
            plant(s, f"script {script}")
            area = Area(s, xccs=XCCS if gpu in ("gfx942", "gfx950") else 1)
            area.suspend()
            for header in area.headers():
                check_header(header, area)
                assert header[1] > 0 and header[3] > 0, (gpu, header)


def test_ten_thousand_waves_fit_on_a_large_gpu():
    with Scene(app=APP, gpus="gfx942") as s:
        plant(s, f"spin 10000 {KERNEL:#x}")
        area = Area(s)
        area.suspend()
        assert sum(len(gfx9_waves(area.stack(xcc))) for xcc in range(XCCS)) == 10000
        for header in area.headers():
            check_header(header, area)


def test_impossible_populations_are_refused():
    einval, enospc, enodev, esrch = 22, 28, 19, 3
    with Scene(app="runtime on; queues 1; sdma; spin", gpus="gfx1100", start_agent=False) as s:
        plant(s, "spin 3")
        for text in ("dance 3", "spin", "spin 0", "spin 3 12 34", "spin 3 pc=2", "spin 3 vgprs=7", "spin 3 acc=8",
                     "spin 3 xcc=1", "spin 3 nonsense=1", "spin 3 v1.64=1", "spin 3 group=0", "spin 3 exec=x"):
            assert refused(s, text) == einval, text
        assert refused(s, "spin 100000") == enospc
        assert refused(s, "script /nonexistent") == 2
        assert s.target_state()["queues"][0]["waves"] == 3
        for line, want in ((f"waves {s.app.pid} 1 spin 3", einval), (f"waves {s.app.pid} 7 spin 3", enodev),
                           ("waves 1 0 spin 3", esrch)):
            try:
                s.control(line)
            except OSError as error:
                assert error.errno == want, line
            else:
                raise AssertionError(line)


def test_a_program_plants_its_own():
    with Scene(app=f"runtime on; queues 2; waves 1 barrier 8 {KERNEL:#x} group=8; spin", gpus="gfx1100",
               start_agent=False) as s:
        assert [q["waves"] for q in s.target_state()["queues"]] == [0, 8]
