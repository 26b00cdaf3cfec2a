#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The simulated CUDA stack by itself: what the single calls say about what was planted."""
import ctypes
import os
import struct
import sys
import time

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from harness import CudaScene, wait_until
import debugger
from debugger import (ALL_SUSPENDED, DIVERGE, Debugger, FULL, INVALID_ARGS, INVALID_DEVICE,
                      INVALID_LANE, INVALID_SM, INVALID_WARP, NOT_SUPPORTED, RUNNING, SUCCESS,
                      in_child, scene, small, u32, u64)


def attached(release, check, **kwargs):
    with small(release, **kwargs) as s:
        def session():
            d = Debugger(s)
            d.attach()
            for dev in range(2):
                d.ok(2, dev)
            check(s, d)
        in_child(session)


def test_coordinates_are_checked():
    def check(s, d):
        word = ctypes.byref(u64())
        assert d.call(22, 2, 0, 0, 0, word) == INVALID_DEVICE
        assert d.call(22, 0, 3, 0, 0, word) == INVALID_SM
        assert d.call(22, 0, 0, 8, 0, word) == INVALID_WARP
        assert d.call(22, 1, 0, 0, 0, word) == INVALID_WARP  # not resident
        assert d.call(22, 0, 0, 0, 32, word) == INVALID_LANE
        assert d.call(22, 0, 0, 3, 20, word) in (INVALID_LANE, INVALID_WARP, SUCCESS)
        assert d.call(22, 0, 0, 0, 0, None) == INVALID_ARGS
        assert d.call(2, 0) == 15
        d.ok(3, 0)
        assert d.call(3, 0) == RUNNING
        assert d.call(22, 0, 0, 0, 0, word) == RUNNING
    attached("12.4", check)


def test_registers_memory_and_stacks_as_planted():
    def check(s, d):
        place = (0, 1, 0, 3)
        assert d.number(20, *place, 7) == 1 << 20 | 3 << 8 | 7
        s.control("register 0 1 0 3 7 0xdeadbeef; uniform 0 1 0 5 77; predicate 0 1 0 3 2 1")
        assert struct.unpack("<3I", d.bytes(98, 12, *place, 6, 3)) == (1 << 20 | 3 << 8 | 6, 0xdeadbeef,
                                                                       1 << 20 | 3 << 8 | 8)
        d.ok(28, *place, 8, 99)
        assert d.number(20, *place, 8) == 99
        assert struct.unpack("<I", d.bytes(115, 4, 0, 1, 0, 5, 1))[0] == 77
        # Of many lanes at a time, from one on; what is planted or written later counts.
        s.control("register 0 0 0 2 9 5 sms=2 warps=1 lanes=3")
        for at, number in (((0, 0, 0, 2), 5), ((0, 1, 0, 4), 5), ((0, 1, 0, 5), 1 << 20 | 5 << 8 | 9), ((0, 0, 0, 1), 1 << 8 | 9),
                           ((0, 0, 1, 2), 1 << 14 | 2 << 8 | 9)):
            assert d.number(20, *at, 9) == number, (at, hex(d.number(20, *at, 9)))
        s.control("register 0 1 0 3 9 6")
        d.ok(28, 0, 1, 0, 4, 9, 7)
        assert [d.number(20, 0, 1, 0, lane, 9) for lane in (2, 3, 4)] == [5, 6, 7]
        assert struct.unpack("<7I", d.bytes(106, 28, *place, 7))[2] == 1
        s.control("memory global 0x700000000000 hex=0123456789abcdef; memory shared 0 1 0 16 size=8 fill=7;"
                  "memory local 0 1 0 3 0 hex=aabb; memory param 0 1 0 0x160 hex=11223344;"
                  "memory const 0 0x9000 size=4")
        d.ok(101, u64(0x700000000002), (b := ctypes.create_string_buffer(4)), u32(4))
        assert b.raw == bytes.fromhex("456789ab")
        d.ok(102, u64(0x700000000000), ctypes.create_string_buffer(b"\x55", 1), u32(1))
        for slot, args, want in ((18, (0, 1, 0, 16), b"\7" * 8), (19, (*place, 0), b"\xaa\xbb"),
                                 (17, (0, 1, 0, 0x160), b"\x11\x22\x33\x44"), (15, (0, 0x9000), bytes(4)),
                                 (99, (*place, 0x7e0000000010), b"\7\7"), (99, (*place, 0x7d0000000000), b"\xaa"),
                                 (99, (*place, 0x700000000000), b"\x55")):
            assert d.bytes(slot, len(want), *args, after=(u32(len(want)),)) == want, (slot, args)
        assert d.call(101, u64(0x1234), b, u32(4)) == 30
        assert d.call(18, 0, 1, 0, u64(17), ctypes.create_string_buffer(8), u32(8)) == 8
        s.control("stack 0 1 0 0xff 0x30 0x50 syscall=1")
        assert d.number(67, *place) == 2 and d.number(74, *place) == 1
        addresses = {f["name"]: int(f["address"], 16) for m in s.state()["modules"] for f in m["functions"]}
        assert d.number(69, *place, 1, kind=u64) == addresses["spin"] + 0x50
        assert d.call(69, *place, 2, ctypes.byref(u64())) == 27
        assert d.call(69, 0, 1, 0, 9, 0, ctypes.byref(u64())) == 26
    attached("12.4", check)


def test_images_functions_and_code():
    def check(s, d):
        module = s.state()["modules"][0]
        image = d.bytes(95, module["size"], 0, int(module["handle"], 16) + 0x10, 0, after=(u64(module["size"]),))
        assert image == CudaScene.CUBIN.read_bytes()
        relocated = d.bytes(95, module["size"], 0, int(module["handle"], 16) + 0x10, 1, after=(u64(module["size"]),))
        addresses = {f["name"]: int(f["address"], 16) for f in module["functions"]}
        for name in ("spin", "fault", DIVERGE):
            assert struct.pack("<Q", addresses[name]) in relocated and struct.pack("<Q", addresses[name]) not in image
        functions = d.bytes(126, 64, 0, int(module["handle"], 16), after=(u32(0), u32(4)))
        found = {struct.unpack_from("<QQ", functions, 16 * i)[1] for i in range(4)}
        assert found == set(addresses.values())
        assert d.bytes(14, 16, 0, addresses["spin"], after=(u32(16),)) in image
        assert d.call(14, 0, u64(4), ctypes.create_string_buffer(4), u32(4)) == 8
        assert d.call(95, 0, 1, 1, ctypes.create_string_buffer(4), u64(4)) == 33
    attached("12.4", check)


def plain_state(d, dev, n_sms, slot, size):
    """The same as getDeviceInfo, one warp at a time."""
    found = {}
    for sm in range(n_sms):
        valid = d.number(11, dev, sm, kind=u64)
        broken = d.number(10, dev, sm, kind=u64)
        for warp in range(64):
            if valid >> warp & 1:
                found[sm, warp] = d.bytes(slot, size, dev, sm, warp), broken >> warp & 1
    return found


def compare(batched, plain):
    assert set(batched) == set(plain)
    for key, (fields, more, broken, pcs) in batched.items():
        state, plain_broken = plain[key]
        grid, error_pc, bx, by, bz, valid, active, error_valid = struct.unpack_from("<QQ3IIII", state)
        assert (grid, bx, by, bz, valid, active, plain_broken) == (fields[0], *fields[1:4], *fields[7:9], broken), key
        assert error_valid == (3 in more) and (not error_valid or struct.unpack("<Q", more[3])[0] == error_pc)
        for lane in range(32):
            pc, x, y, z, exception = struct.unpack_from("<Q3II", state, 40 + 24 * lane)
            assert pcs.get(lane, 0) == pc, (key, lane)
            if lane == 0:
                assert fields[4:7] == (x, y, z)
            if valid >> lane & 1:
                assert exception == (struct.unpack("<I", more[2])[0] if 2 in more else 0)


def test_batched_and_plain_state_agree_full_and_updated():
    for release, slot, size in (("12.4", 123, 820), ("12.7", 139, 848), ("12.9", 143, 852), ("13.4", 143, 852)):
        for grow in ("", "batched device=4 sm=12 warp=8 lane=16 unknown=24"):
            def check(s, d):
                def ask(query, known):
                    sizes = d.bytes(129, 532, 0)
                    room = struct.unpack_from("<I", sizes)[0]
                    buffer, used = ctypes.create_string_buffer(room), u32()
                    d.ok(130, 0, query, buffer, u32(room), ctypes.byref(used))
                    return debugger.decode(sizes, buffer.raw[:used.value], known)
                if grow:
                    s.control(grow)
                s.control("raise 0 0 0 14 errorpc=0x20")
                response, state = ask(1, {})
                assert response == 0  # the first answer is always full
                compare(state, plain_state(d, 0, 3, slot, size))
                d.ok(3, 0)
                d.ok(2, 0)  # the second kernel moved
                s.control("finish 1")
                response, state = ask(1, state)
                assert response == 1
                compare(state, plain_state(d, 0, 3, slot, size))
                response, again = ask(1, state)
                assert response == 1 and again == state
                assert ask(0, {})[0] == 0
                assert d.call(130, 0, 0, ctypes.create_string_buffer(16), u32(16), ctypes.byref(u32())) == 2
            attached(release, check)


def test_all_fixtures_load_and_go_with_their_context():
    def check(s, d):
        for name in ("spin-sm_80.cubin", "spin-sm_90-g.cubin"):
            s.control(f"module last file={CudaScene.CUBIN.parent / name}")
        modules = s.state()["modules"]
        assert len({f["address"] for m in modules for f in m["functions"]}) == sum(len(m["functions"]) for m in modules)
        for module in modules:
            assert {"spin", "fault", DIVERGE} <= {f["name"] for f in module["functions"]}
        s.control(f"context-destroy {s.state()['contexts'][0]['handle']}")
        assert not s.state()["modules"] and not s.state()["grids"] and s.state()["devices"][0]["warps"] == 0
        d.ok(79)
    attached("12.4", check)


def test_the_debuggers_process_writes_the_dump():
    def check(s, d):
        path = s.directory / "dump"
        d.ok(127, ctypes.create_string_buffer(str(path).encode()), 1)
        assert path.read_bytes()[:4] == b"\x7fELF" and path.stat().st_mode & 0o777 == 0o600
        assert d.call(127, ctypes.create_string_buffer(str(path).encode()), 1) == 37
        assert d.call(127, ctypes.create_string_buffer(b"/x"), 16) == INVALID_ARGS
    attached("12.5", check)


def test_grids_and_blocks():
    def check(s, d):
        info = d.bytes(137, 112, 0, 2)
        dev, grid = struct.unpack_from("<IQ", info)
        assert (dev, grid) == (0, 2) and struct.unpack_from("<6I", info, 48) == (2, 1, 1, 40, 1, 1)
        assert d.number(88, 0, 2) == 2 and d.number(88, 0, 1) == 2
        assert d.call(88, 0, 99, ctypes.byref(u32())) == 21
        s.control("finish 2")
        assert d.number(88, 0, 2) == 4
        assert int(s.control("launch spin grid=4 block=8,4,2 cluster=2 at=2")) == 3
        blocks = {}
        for sm in range(3):
            for warp in range(8):
                if d.number(11, 0, sm, kind=u64) >> warp & 1 and d.number(87, 0, sm, warp, kind=u64) == 3:
                    place = (0, sm, warp)
                    block = struct.unpack("<3I", d.bytes(65, 12, *place))
                    assert struct.unpack("<3I", d.bytes(124, 12, *place)) == (block[0] // 2, 0, 0)
                    assert struct.unpack("<3I", d.bytes(138, 12, *place)) == (2, 1, 1)
                    blocks.setdefault(block, set()).add(struct.unpack("<3I", d.bytes(9, 12, *place, 9)))
        assert blocks == {(n, 0, 0): {(1, 1, 0), (1, 1, 1)} for n in range(4)}, blocks
    attached("13.4", check)


def test_a_grid_that_repeats():
    """It ends while its GPU runs, and only then; one with a fault never does."""
    def check(s, d):
        def grid():
            return d.number(87, 0, 2, 0, kind=u64)

        def run_for(seconds):
            d.ok(3, 0)
            time.sleep(seconds)
            d.ok(2, 0)
        assert int(s.control("launch spin block=32 at=2 repeat=20")) == 3
        time.sleep(0.1)
        assert grid() == 3
        run_for(0.1)
        later = grid()
        assert later >= 8 and d.number(88, 0, 3) == 4 and d.number(88, 0, later) == 2, later
        time.sleep(0.1)
        assert grid() == later
        s.control("raise 0 2 0 14")
        run_for(0.1)
        assert grid() == later
        assert int(s.control("launch spin block=32 at=2")) == later + 1
    attached("12.9", check)


def test_exceptions_stop_everything_with_and_without_the_suspend_event():
    for release, capabilities, expected in (("12.4", 3, None), ("12.5", 1, None), ("12.5", 3, ALL_SUSPENDED)):
        with small(release) as s:
            def session():
                d = Debugger(s)
                d.attach(capabilities)
                before = d.callbacks
                s.control("raise 0 0 1 14 lanes=0x10 errorpc=0x30")
                wait_until(lambda: d.callbacks > before, "callback")
                event = d.event()
                assert (event and event[0]) == expected, event
                if event:
                    assert struct.unpack_from("<QQ", event[1], 4) == (1, 1)
                d.ok(79)
                assert all(x["suspended"] for x in s.state()["devices"])
                assert d.number(10, 0, 0, kind=u64) == 2
                assert [d.number(50, 0, 0, 1, lane) for lane in (3, 4)] == [0, 14]
                assert struct.unpack("<Q", d.bytes(113, 8, 0, after=(u32(1),)))[0] == 1
            in_child(session)


def test_breakpoints_are_hit_by_what_runs():
    def check(s, d):
        addresses = {f["name"]: int(f["address"], 16) for m in s.state()["modules"] for f in m["functions"]}
        handle = u64()
        assert d.call(150, 0, 4096, ctypes.byref(handle)) == 18
        d.ok(150, 0, addresses[DIVERGE] + 0x80, ctypes.byref(handle))
        before = d.callbacks
        d.ok(158)
        # A callback alone may be a late one of the attach.
        wait_until(lambda: all(x["suspended"] for x in s.state()["devices"]), "the breakpoint is hit")
        wait_until(lambda: d.callbacks > before, "callback")
        hit = [(sm, w) for sm in range(3) for w in range(8) if d.number(10, 0, sm, kind=u64) >> w & 1]
        assert len(hit) == 4, hit
        assert d.number(155, 0, *hit[0], kind=u64) == handle.value
        assert d.number(22, 0, *hit[0], 0, kind=u64) == addresses[DIVERGE] + 0x80
        d.ok(132, 0, *hit[0], 0, 2, 0, ctypes.byref(u64()))
        assert d.number(22, 0, *hit[0], 0, kind=u64) == addresses[DIVERGE] + 0xa0
        assert d.call(152, handle) == 47
        d.ok(153, handle)
        assert d.number(154, handle) == 0
        d.ok(151, handle)
        assert s.state()["breakpoints"] == 0
    attached("13.2", check)


def rooms(n, size=65536):
    """Buffers whose addresses are out of every range where they are taken for numbers or sizes."""
    mmap = ctypes.CDLL(None).mmap
    mmap.restype, mmap.argtypes = ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long)
    # PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE
    at = mmap(0x6e00f0000000, n * size, 3, 0x100022, -1, 0)
    assert at == 0x6e00f0000000
    return [ctypes.c_void_p(at + i * size) for i in range(n)]


def test_every_slot_answers_after_attach():
    def check(s, d):
        room = rooms(10)
        for slot in range(2, 164):
            if slot in (44, 62, 73, 147):
                continue
            assert d.call(slot, *room) in range(48), slot  # pointers as numbers: out of every range
            assert d.call(slot, *[0] * 10) in range(48), slot
        assert d.number(35) == 2
        assert d.call(41, 0, 0, None, None, 0) in (INVALID_ARGS, NOT_SUPPORTED)
    attached("13.4", check)


def test_a_request_that_cannot_be_sent_whole_ends_the_connection():
    def check(s, d):
        at = rooms(1)[0].value
        # A mebibyte, of which 64 KiB are there.
        assert d.call(24, 0, u64(0x700000000000), ctypes.c_void_p(at), u32(1 << 20)) == 28
        assert d.call(35, ctypes.byref(u32())) == 28
    attached("13.4", check)


def test_a_full_gpu_is_read_quickly():
    with scene("12.9", app=FULL) as s:
        def session():
            d = Debugger(s)
            d.attach()
            start = time.monotonic()
            d.ok(2, 0)
            sizes = d.bytes(129, 532, 0)
            room = struct.unpack_from("<I", sizes)[0]
            buffer, used = ctypes.create_string_buffer(room), u32()
            d.ok(130, 0, 0, buffer, u32(room), ctypes.byref(used))
            d.ok(3, 0)
            taken = time.monotonic() - start
            state = debugger.decode(sizes, buffer.raw[:used.value], {})[1]
            assert len(state) == 8448, len(state)
            print(f"  8448 warps, {used.value} bytes: {taken * 1000:.0f} ms")
        in_child(session)
