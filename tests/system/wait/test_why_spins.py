#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Warps of NVIDIA's devices that poll memory: the word, what is in it, what it has to be; and nobody is accused."""
import json
import os
import struct
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest

from harness import BIN, ROOT, CudaScene
from waitscene import culprits

CUBIN = ROOT / "sim/scenes/cuda/flags-sm_90.cubin"
# The same kernels for a device on which lanes that go on meet at the end of the loop.
OLD = ROOT / "sim/scenes/cuda/flags-sm_75.cubin"
FLAG = 0x7F5C80000000
# Loops of the kernels, and the warp that is in one.
FORWARD, CONSUME, APPEND, STAGE = 0x90, 0xC0, 0x70, 0x190


def registers(**values):
    return [f"gpu register 0 0 0 0 {name[1:]} {value:#x}" if name[0] == "r" else f"gpu uniform 0 0 0 {name[1:]} {value:#x}"
            for name, value in values.items()]


def address(first, value):
    return {f"r{first}": value & 0xFFFFFFFF, f"r{first + 1}": value >> 32}


def forward(value="06000000", at=FLAG, wanted=7, pc=FORWARD):
    return ["gpu launch forward grid=1 block=128 pc=0xf0", *([f"gpu memory global {at:#x} hex={value}"] if value else []),
            f"gpu warp 0 0 0 pc={pc:#x} active=1", *registers(**address(4, at), u7=wanted)]


class Flags(CudaScene):
    """A kernel of flags.cu, as the script has it."""

    def __init__(self, script, cubin=CUBIN):
        super().__init__(app=None)
        self.script, self.cubin = script, cubin
        self.device = f"sm={cubin.stem[-5:]}" if "-sm_" in cubin.stem else ""

    def __enter__(self):
        super().__enter__()
        lines = [f"init; gpu devices 1 sms=132 warps=64 {self.device}; context 0; module {self.cubin}", *self.script]
        self.app = self.start_app("; ".join(lines) + "; listen")
        return self

    def why(self, **more):
        if not hasattr(self, "session"):
            self.session = self.attach()
        doc = self.rpc.call("why.get", session=self.session, **more)
        print(json.dumps(doc))
        return doc


def spins(doc):
    return [w for w in doc["waits"] if w["kind"] in ("spin", "lock")]


@pytest.mark.parametrize("pc", range(FORWARD, FORWARD + 80, 16))
def test_a_warp_that_polls_is_told_with_its_word(pc):
    """Wherever in the loop it is; and the block's barrier waits for it."""
    with Flags(forward(pc=pc)) as s:
        doc = s.why()
    spin, = spins(doc)
    assert spin["kind"] == "spin" and spin["confidence"] == "inferred" and "stuck" not in spin, spin
    assert spin["object"] == {"address": hex(FLAG), "bytes": 4, "value": "0x6"}, spin
    assert spin["condition"] == {"op": "eq", "value": "0x7"}, spin
    assert "polls the word at 0x7f5c80000000 (value 0x6) until it is 0x7" in spin["who"], spin
    assert {"what": "value", "value": "read in the same stop"} in spin["evidence"], spin
    names = [n["text"] for n in doc["nodes"]]
    edges = {(names[e["from"]].split(" of block")[0], names[e["to"]].split(" ")[0]) for e in doc["edges"]}
    assert edges == {("warps 1-3 and lanes 1-31 of warp 0", "lane"), ("lane 0 of warp 0", "whoever")}, edges
    assert not culprits(doc) and doc["complete"], doc


def test_a_word_in_memory_of_the_host_is_read():
    """A flag that the host sets is mostly there, and the driver reads it by another call: nothing is missing."""
    with Flags([*forward(value=None), f"gpu memory pinned {FLAG:#x} hex=06000000"]) as s:
        doc = s.why()
    spin, = spins(doc)
    assert spin["object"] == {"address": hex(FLAG), "bytes": 4, "value": "0x6"} and doc["complete"], doc
    with Flags(forward(value=None)) as s:
        doc = s.why()
    spin, = spins(doc)
    assert "value" not in spin["object"] and not doc["complete"], doc
    assert any("memory does not give all of their values" in m for m in doc["missing"]), doc["missing"]


@pytest.mark.parametrize("pc", range(0x60, 0x100, 16))
def test_older_devices_are_understood(pc):
    """The loop of sm_75 has a branch out of it, and two votes; what the word has to be is an argument."""
    script = ["gpu launch forward grid=1 block=128 pc=0x130 args=p:0,p:0,p:0,i:7", f"gpu memory global {FLAG:#x} hex=06000000",
              f"gpu warp 0 0 0 pc={pc:#x} active=1", *registers(**address(2, FLAG))]
    with Flags(script, OLD) as s:
        doc = s.why()
        s.control(f"memory global {FLAG:#x} hex=07000000")
        set_ = s.why()
    spin, = spins(doc)
    assert spin["object"] == {"address": hex(FLAG), "bytes": 4, "value": "0x6"} and spin["confidence"] == "inferred", spin
    assert spin["condition"] == {"op": "eq", "value": "0x7"} and not culprits(doc), spin
    assert not spins(set_), set_


@pytest.mark.parametrize("pc", [0x50, 0x100])
def test_who_is_beside_the_loop_of_an_older_device_does_not_poll(pc):
    with Flags(["gpu launch forward grid=1 block=128 pc=0x130 args=p:0,p:0,p:0,i:7", f"gpu memory global {FLAG:#x} hex=06000000",
                f"gpu warp 0 0 0 pc={pc:#x} active=1", *registers(**address(2, FLAG))], OLD) as s:
        assert not spins(s.why())


def test_a_lock_of_an_older_device_has_its_address_from_the_arguments():
    """Each round loads it anew, and the registers are overwritten."""
    with Flags([f"gpu launch append grid=1 block=32 pc=0x90 args=p:0,p:{FLAG:#x},p:0",
                f"gpu memory global {FLAG:#x} hex=09000000"], OLD) as s:
        spin, = spins(s.why())
    assert spin["kind"] == "lock" and spin["object"]["address"] == hex(FLAG) and spin["condition"] == {"op": "eq", "value": "0x0"}, spin


def test_where_the_word_is_as_it_should_be_nobody_waits():
    with Flags(forward("07000000")) as s:
        doc = s.why()
    assert not spins(doc), doc


@pytest.mark.parametrize("pc", [FORWARD - 16, FORWARD + 80])
def test_who_is_beside_the_loop_does_not_poll(pc):
    with Flags(forward(pc=pc)) as s:
        assert not spins(s.why())


@pytest.mark.parametrize("value, moves", [("06000000", None), ("05000000", False)])
def test_a_word_that_moves_is_told_to_move(value, moves):
    with Flags(forward()) as s:
        first = s.why()
        s.control(f"memory global {FLAG:#x} hex={value}")
        second = s.why(since=first["sample"])
    spin, = spins(second)
    assert spin.get("stuck") is moves and not culprits(second), second
    # Others may count it on to what is waited for.
    assert all(e["what"] != "starving" for e in spin["evidence"]), spin
    assert spin["object"]["value"] == f"0x{value[1]}", spin


HOSTILE = {"unmapped": dict(value=None), "null": dict(value=None, at=0), "odd": dict(value=None, at=FLAG + 2),
           "last": dict(value=None, at=0xFFFFFFFFFFFFFFFC), "wide": dict(value=None, at=1 << 63)}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_word_that_cannot_be_read_is_told_so(what):
    with Flags(forward(**HOSTILE[what])) as s:
        doc = s.why()
        again = s.why(since=doc["sample"])
    for each in (doc, again):
        spin, = spins(each)
        assert "value" not in spin["object"] and spin["confidence"] == "unknown" and "not readable" in spin["text"], spin
        assert not culprits(each), each


def resized(tmp_path, size):
    """forward() with a load of another size."""
    code = bytearray(CUBIN.read_bytes())
    at = code.index((0x0000000404067980).to_bytes(8, "little")) + 8
    high = int.from_bytes(code[at:at + 8], "little")
    assert high >> 9 & 7 == 4
    code[at:at + 8] = (high & ~(7 << 9) | size << 9).to_bytes(8, "little")
    cubin = tmp_path / "sized-sm_90.cubin"
    cubin.write_bytes(code)
    return cubin


@pytest.mark.parametrize("size, bytes_, at, wanted, told, value", [
    (0, 1, FLAG + 3, 0xFE, "0xfe", "0x6"), (1, 1, FLAG + 1, 0xFFFFFFFE, "0xfe", "0x6"), (2, 2, FLAG + 2, 0xFFFE, "0xfffe", "0x806"),
    (3, 2, FLAG, 0xFFFFFFFE, "0xfffe", "0x806")], ids=["u8", "s8", "u16", "s16"])
def test_a_small_word_is_told_as_one(tmp_path, size, bytes_, at, wanted, told, value):
    """And nothing beside it is read: there is none."""
    with Flags(forward("0608"[:2 * bytes_], at, wanted), resized(tmp_path, size)) as s:
        doc = s.why()
        s.control(f"memory global {at:#x} hex={'feff'[:2 * bytes_]}")
        ends = s.why()
    spin, = spins(doc)
    assert spin["object"] == {"address": hex(at), "bytes": bytes_, "value": value} and not culprits(doc), spin
    assert spin["condition"] == {"op": "eq", "value": told} and f"until it is {told}" in spin["who"], spin
    assert not spins(ends), ends


@pytest.mark.parametrize("size, at, value, wanted", [(0, FLAG, "06", 0x1FE), (1, FLAG, "06", 0xFE), (3, FLAG, "0608", 0xFFFE)])
def test_what_no_small_word_can_be_is_not_told(tmp_path, size, at, value, wanted):
    with Flags(forward(value, at, wanted), resized(tmp_path, size)) as s:
        doc = s.why()
    assert not spins(doc) and not culprits(doc) and doc["undecoded"], doc


@pytest.mark.parametrize("at", [FLAG + 1, 0xFFFFFFFFFFFFFFFF, 0])
def test_a_small_word_that_cannot_be_read_is_told_so(tmp_path, at):
    with Flags(forward(None, at), resized(tmp_path, 2)) as s:
        spin, = spins(s.why())
    assert "value" not in spin["object"] and spin["confidence"] == "unknown", spin


def test_half_a_word_is_none():
    """64 bits, of which memory has 32."""
    with Flags(["gpu launch consume grid=1 block=32 pc=0xc0", f"gpu memory global {FLAG:#x} size=4",
                *registers(**address(2, FLAG), u6=5, u7=0)]) as s:
        spin, = spins(s.why())
    assert spin["object"] == {"address": hex(FLAG), "bytes": 8}, spin


def test_a_place_in_a_ring_has_64_bits():
    with Flags(["gpu launch consume grid=1 block=32 pc=0xc0", f"gpu memory global {FLAG:#x} hex=ffffffff00000000",
                *registers(**address(2, FLAG), u6=0, u7=1)]) as s:
        spin, = spins(s.why())
    assert spin["object"]["value"] == "0xffffffff" and spin["condition"] == {"op": "gte", "value": "0x100000000"}, spin
    assert {"what": "the loop", "value": "sleeps"} in spin["evidence"], spin


def test_a_lock_is_told_as_one():
    with Flags(["gpu launch append grid=1 block=32 pc=0x70", f"gpu memory global {FLAG:#x} hex=09000000",
                *registers(**address(2, FLAG))]) as s:
        spin, = spins(s.why())
    assert spin["kind"] == "lock", spin
    assert "tries to take the lock in the word at 0x7f5c80000000 (value 0x9) until it is 0x0" in spin["who"], spin


def test_a_loop_that_any_word_ends_is_no_wait():
    """The word cannot be read: of at least 5 nobody knows whether it is so, and at least 0 is every number without sign."""
    for low, told in ((5, True), (0, False)):
        with Flags(["gpu launch consume grid=1 block=32 pc=0xc0", *registers(**address(2, FLAG), u6=low, u7=0)]) as s:
            doc = s.why()
        assert bool(spins(doc)) == told and doc["complete"] != told, doc


def test_a_word_of_shared_memory():
    with Flags(["gpu launch stage grid=1 block=32 shared=1024 pc=0x190", "gpu memory shared 0 0 0 0x100 hex=0000000000000000030000000400",
                *registers(u4=0x100, u5=4)]) as s:
        spin, = spins(s.why())
    assert spin["object"] == {"address": "0x108", "bytes": 4, "value": "0x3"} and spin["condition"]["op"] == "gte", spin
    assert "the word at shared 0x108" in spin["who"] and {"what": "memory", "value": "shared"} in spin["evidence"], spin


def test_a_loop_that_stores_is_not_told(tmp_path):
    """The YIELD of the loop is a store here."""
    code = CUBIN.read_bytes()
    loop = code.index((0x0000000404067980).to_bytes(8, "little"))
    at = code.index((0x7946).to_bytes(8, "little"), loop)
    assert at - loop == 32
    cubin = tmp_path / "stores.cubin"
    cubin.write_bytes(code[:at] + (0x0000000604007986).to_bytes(8, "little") + code[at + 8:])
    with Flags(forward(), cubin) as s:
        assert not spins(s.why())


STOP = FLAG + 0x100


def drain(flag="06000000", stop="00000000", pc=0x50):
    return [f"gpu launch drain grid=1 block=32 pc={pc:#x}", *([f"gpu memory global {FLAG:#x} hex={flag}"] if flag else []),
            *([f"gpu memory global {STOP:#x} hex={stop}"] if stop else []), *registers(**address(2, FLAG), **address(4, STOP), u6=7)]


@pytest.mark.parametrize("pc", range(0x50, 0xD0, 16))
def test_a_loop_that_any_of_two_words_ends_is_told_with_both(pc):
    with Flags(drain(pc=pc)) as s:
        doc = s.why()
    spin, = spins(doc)
    assert spin["object"] == {"address": hex(FLAG), "bytes": 4, "value": "0x6"} and spin["condition"] == {"op": "gte", "value": "0x7"}, spin
    assert spin["alternatives"] == [{"object": {"address": hex(STOP), "bytes": 4, "value": "0x0"},
                                     "condition": {"op": "ne", "value": "0x0"}}], spin
    assert ("polls the word at 0x7f5c80000000 (value 0x6) until it is at least 0x7, "
            "or the word at 0x7f5c80000100 (value 0x0) until it is not 0x0") in spin["who"], spin
    assert spin["confidence"] == "inferred" and spin["candidates"] and spin["missing_count"] == 1 and len(spin["missing"]) == 2, spin
    assert [e["any"] for e in doc["edges"]] == [True, True] and not culprits(doc) and doc["complete"], doc


@pytest.mark.parametrize("which", [dict(flag="07000000"), dict(stop="01000000"), dict(flag="07000000", stop=None)])
def test_where_one_of_two_words_is_as_it_should_be_nobody_waits(which):
    with Flags(drain(**which)) as s:
        assert not spins(s.why())


@pytest.mark.parametrize("which", [dict(flag=None), dict(stop=None)])
def test_where_one_of_two_words_cannot_be_read_it_is_not_known_whether_it_waits(which):
    with Flags(drain(**which)) as s:
        spin, = spins(s.why())
    assert spin["confidence"] == "unknown" and "not readable" in spin["who"], spin


@pytest.mark.parametrize("script, moves", [("memory global {flag:#x} hex=05000000", False), (None, None)])
def test_one_of_two_words_that_moves_is_told_to_move(script, moves):
    with Flags(drain()) as s:
        first = s.why()
        if script:
            s.control(script.format(flag=FLAG))
        second = s.why(since=first["sample"])
    spin, = spins(second)
    assert spin.get("stuck") is moves and not culprits(second), second


@pytest.mark.parametrize("pc", [0x40, 0xD0])
def test_who_is_beside_a_loop_of_two_words_does_not_poll(pc):
    with Flags(drain(pc=pc)) as s:
        assert not spins(s.why())


NOT_ZERO = (0x000000FF0000720C, 0x000FDA0003F05270)  # ISETP.NE.AND P0, PT, R0, RZ, PT


def branch(at, to, guard=7):
    """BRA of sm_90; it counts words of 4 bytes."""
    words = (to - at - 16) // 4
    sign = (1 << 30) - 1 << 34 if words < 0 else 0
    return sign | (words & 0xFF) << 16 | guard << 12 | 0x947, 0x000FEA0003800000 | (0x3FFFF if words < 0 else 0)


def made(path, at, *words):
    """The same kernels, but for these instructions of drain()."""
    data = bytearray(CUBIN.read_bytes())
    table, = struct.unpack_from("<Q", data, 40)
    size, count, names = struct.unpack_from("<HHH", data, 58)
    strings, = struct.unpack_from("<Q", data, table + names * size + 24)
    for section in range(table, table + count * size, size):
        if data[strings + struct.unpack_from("<I", data, section)[0]:].startswith(b".text.drain\0"):
            offset, length = struct.unpack_from("<QQ", data, section + 24)
    assert at + 16 * len(words) < length, length
    for i, w in enumerate(words):
        struct.pack_into("<QQ", data, offset + at + 16 * i, *w)
    path.write_bytes(data)
    return path


def test_four_words_of_shared_memory_are_told_with_all_their_evidence(tmp_path):
    end = 0x50 + 13 * 16
    words = [(0x000000640000795D, 0x000FEA0003800000)]  # NANOSLEEP
    for i in range(4):
        words += [(0x00000004FF007984 | 4 * i << 40, 0x003E240008000800), NOT_ZERO]  # LDS R0, [UR4 + 4 * i]
        at = 0x50 + 16 * len(words)
        words.append(branch(at, end, 0) if i < 3 else branch(at, 0x50, 8))
    cubin = made(tmp_path / "four-sm_90.cubin", 0x50, *words)
    with Flags(["gpu launch drain grid=2 block=32 shared=1024 pc=0x50", f"gpu memory shared 0 0 0 0x100 hex={bytes(16).hex()}",
                *registers(u4=0x100)], cubin) as s:
        spin, = spins(s.why())
    said = [e["value"] for e in spin["evidence"] if e["what"] == "memory"]
    assert said == [f"shared, of the word at {0x100 + 4 * i:#x}" for i in range(4)], spin
    assert len([e for e in spin["evidence"] if e["what"] == "load"]) == 4 and len(spin["missing"]) == 4, spin
    for last in ({"what": "lanes", "value": "32"}, {"what": "the loop", "value": "sleeps"},
                 {"what": "warps in this loop, of which this is one", "value": "2"}, {"what": "value", "value": "read in the same stop"}):
        assert last in spin["evidence"], (last, spin)


def test_a_word_that_is_compared_twice_has_one_writer(tmp_path):
    """LD.E.STRONG.GPU; ISETP.GE.U32.AND P0, PT, R0, UR6, PT; and then it is compared with 0."""
    cubin = made(tmp_path / "twice-sm_90.cubin", 0x50, (0x0000000402007980, 0x001EA8000C10F900), (0x0000000600007C0C, 0x000FDA000BF06070),
                 branch(0x70, 0xD0, 0), NOT_ZERO, branch(0x90, 0x50, 8))
    with Flags(drain("00000000"), cubin) as s:
        doc = s.why()
    spin, = spins(doc)
    assert spin["condition"] == {"op": "gte", "value": "0x7"} and spin["alternatives"][0]["condition"] == {"op": "ne", "value": "0x0"}, spin
    assert spin["alternatives"][0]["object"] == spin["object"], spin
    assert len(spin["missing"]) == 1 and "candidates" not in spin and [e.get("any") for e in doc["edges"]] == [None], doc


ENTERED = [(0xD0, 0x60, False), (0xD0, 0xC0, False), (0xE0, 0x90, False), (0xD0, 0x40, True), (0xD0, 0x50, True), (0xD0, 0xD0, True)]


@pytest.mark.parametrize("at, to, told", ENTERED)
def test_a_loop_that_is_entered_from_behind_is_not_told(tmp_path, at, to, told):
    """Who leaves it early comes back: that word has not ended it.  Who begins it anew waits again."""
    with Flags(drain(), made(tmp_path / "entered-sm_90.cubin", at, branch(at, to))) as s:
        assert bool(spins(s.why())) is told


def test_warps_of_one_loop_are_told_with_the_first():
    with Flags(["gpu launch forward grid=70 block=32 pc=0x90", f"gpu memory global {FLAG:#x} hex=06000000",
                *registers(**address(4, FLAG), u7=7)]) as s:
        spin, = spins(s.why())
    assert {"what": "warps in this loop, of which this is one", "value": "70"} in spin["evidence"], spin


def test_the_scene_names_the_flag(tmp_path):
    """In words; and a core has the same."""
    core = tmp_path / "core"
    with CudaScene(app=None) as s:
        s.app = s.start("app", [BIN / "gpu-agent-cuda-simapp", "--scene", "unset-flag"], env={"LD_LIBRARY_PATH": str(s.libraries)})
        s.app.wait_line()
        shown = s.ctl("why", s.app.pid, "--twice=1100")
        print(shown.stdout)
        text = " ".join(shown.stdout.split())
        assert shown.returncode == 0 and "CAUSE" not in text and "STUCK" not in text, text
        assert "at forward+0x90 (flags.cu:9), polls the word at 0x7f5c80000000 (value 0x6) until it is 0x7" in text, text
        dumped = s.ctl("dump", s.app.pid, "-o", core, "--full", "--max-stop=60s")
        assert dumped.returncode in (0, 8), dumped.stderr
        of_core = json.loads(s.ctl("why", "--core", core, "-j").stdout)
    spin, = spins(of_core)
    assert spin["object"]["address"] == hex(FLAG) and spin["condition"] == {"op": "eq", "value": "0x7"}, spin


def test_where_the_flag_is_set_the_scene_waits_for_nothing():
    with CudaScene(app=None) as s:
        s.app = s.start("app", [BIN / "gpu-agent-cuda-simapp", "--scene", "unset-flag", "--set", "value=07000000"],
                        env={"LD_LIBRARY_PATH": str(s.libraries)})
        s.app.wait_line()
        doc = json.loads(s.ctl("why", s.app.pid, "-j").stdout)
    assert not spins(doc) and not culprits(doc), doc
