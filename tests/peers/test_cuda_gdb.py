#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""NVIDIA's own debugger opens our CUDA cores: does it find what was planted?

cuda-gdb 12.5, 12.4 and 11.8 and everything below them come from Debian (scripts/fetch-peers), each into a tree of its
own.  None needs a GPU or a driver to open a core.  cuda_core plants the core (tests/peers/cuda_core.c says what); the code
in it is a real cubin of tests/data/cudacore, relocated here as the driver does when it loads one.
"""
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from cudagdb import Debugger
from harness import BIN, LONG_STOP, STOP_MS, CudaScene

HERE = pathlib.Path(__file__).resolve().parent

DATA = HERE.parent / "data/cudacore"
CODE, VARIABLES, BANK = 0x7f1000001000, 0x7f1100000000, 0x7f2000000000
SHARED_WINDOW, LOCAL_WINDOW = 0x7e0000000000, 0x7d0000000000  # of generic addresses, in the simulator
FAULT, CALL_RETURN, OTHER = 0x300, 0x650, 0xe0  # offsets of the instructions that lanes stand at
FAULT_LINE, CALL_LINE, OTHER_LINE = 10, 20, 18  # and their lines in plant.cu
DEFAULT, R346, R400, R615 = 0, 1, 2, 11         # enum cudacore_layout
FULL_SMS = 40  # 81,920 lanes with a section each
SHT_SYMTAB, SHT_RELA, R_CUDA_64 = 2, 4, 2
EXCEPTIONS = {"None": 0, "Warp Illegal Address": 14}


class Cubin:
    """An image as loaded: code and variables at their addresses, in symbols and debug information as well."""

    def __init__(self, name):
        self.path = DATA / name
        self.image = bytearray(self.path.read_bytes())
        table, = struct.unpack_from("<Q", self.image, 40)
        count, self.names = struct.unpack_from("<HH", self.image, 60)
        self.sections = [struct.unpack_from("<IIQQQQIIQQ", self.image, table + 64 * i) for i in range(count)]
        self.bases = self.place_sections(table)
        self.values, self.symbols = [], {}
        self.place_symbols()
        self.relocate_debug_information()

    def string(self, section, offset):
        start = self.sections[section][4] + offset
        return self.image[start:self.image.index(0, start)].decode()

    def section_name(self, i):
        return self.string(self.names, self.sections[i][0])

    def place_sections(self, table):
        bases, code = {}, CODE
        for i, section in enumerate(self.sections):
            if self.section_name(i).startswith(".text."):
                bases[i], code = code, code + section[5] + 0xff & ~0xff
            elif self.section_name(i) == ".nv.global":
                bases[i] = VARIABLES
            struct.pack_into("<Q", self.image, table + 64 * i + 16, bases.get(i, 0))
        return bases

    def place_symbols(self):
        symtab, = (s for s in self.sections if s[1] == SHT_SYMTAB)
        for at in range(symtab[4], symtab[4] + symtab[5], 24):
            name, _, _, index, value = struct.unpack_from("<IBBHQ", self.image, at)
            value += self.bases.get(index, 0)
            struct.pack_into("<Q", self.image, at + 8, value)
            self.values.append(value)
            self.symbols[self.string(symtab[6], name)] = value

    def relocate_debug_information(self):
        for i, section in enumerate(self.sections):
            if section[1] != SHT_RELA or not self.section_name(i).startswith(".rela.debug_"):
                continue
            for at in range(section[4], section[4] + section[5], 24):
                offset, info, addend = struct.unpack_from("<QQq", self.image, at)
                if info & 0xffffffff == R_CUDA_64:
                    struct.pack_into("<Q", self.image, self.sections[section[7]][4] + offset,
                                     self.values[info >> 32] + addend)


class Core:
    """A planted core and what our reader says of it."""

    def __init__(self, directory, layout=DEFAULT, full=0, cubin="plant-sm90.cubin"):
        self.path = pathlib.Path(directory) / "core"
        cubin = Cubin(cubin)
        relocated = pathlib.Path(directory) / "relocated"
        relocated.write_bytes(cubin.image)
        self.kernel, self.callee = cubin.symbols["planted"], cubin.symbols["_Z6calleePii"]
        run = subprocess.run([BIN.parent / "tests/cuda_core", self.path, str(layout), str(full), relocated, cubin.path,
                              hex(self.kernel), hex(self.callee), hex(cubin.symbols["planted_global"])],
                             text=True, capture_output=True, timeout=120)
        assert run.returncode == 0, run.stderr
        self.lines = [line.split(" ") for line in run.stdout.splitlines()]
        assert not [line for line in self.lines if line[0] == "problem"], run.stdout

    def rows(self, kind, *place):
        """What our reader has below a place (device, SM, warp)."""
        wanted = [str(p) for p in place]
        return [line[1:] for line in self.lines if line[0] == kind and line[1:1 + len(place)] == wanted]


def register(warp, lane, i):
    """What cuda_core puts into R<i>: the warp's position in the file, the lane, the register."""
    return warp << 16 | lane << 8 | i


# The planted warps by position in the file: device, SM, slot.
WARPS = [(0, 1, 0), (0, 1, 1), (0, 1, 4), (0, 1, 5), (0, 2, 63), (0, 2, 0)]
FOCUS = "[Current focus set to CUDA kernel 0, grid 7, block (2,0,0), thread (35,0,0), device 0, sm 1, warp 5, lane 3]"


def is_triggered(text, pc):
    """12.5 names the function as well."""
    return re.search(rf"The exception was triggered at PC {pc:#x} +(callee\(int\*, int\) +)?"
                     rf"\(plant\.cu:{FAULT_LINE}\)", text)


def compare_opening(text, core):
    """Exception line, its source line, and who is in focus."""
    assert "CUDA Exception: Warp Illegal Address" in text, text
    assert is_triggered(text, core.callee + FAULT), text
    assert FOCUS in text, text


def compare_backtrace(text, core):
    frames = re.findall(r"^#(\d+) +(?:(0x[0-9a-f]+) in )?(\w+)(<<<\S+>>>)? .*at plant\.cu:(\d+)$", text, re.M)
    assert frames == [
        ("0", "", "callee", "", str(FAULT_LINE)),
        ("1", f"{core.kernel + CALL_RETURN:#018x}", "planted", "<<<(4,1,1),(48,1,1)>>>", str(CALL_LINE)),
    ], text


def compare_warps(debugger, core, pc_column="physical_pc"):
    """Every SM, warp and lane as our reader has them."""
    sms = sorted({(int(w[0]), int(w[1])) for w in core.rows("warp")})
    warps = debugger.table(core, *(f"warps device {d} sm {s}" for d, s in sms))
    for (d, s), rows in zip(sms, warps):
        got = {int(r["warp"]): r for r in rows}
        want = core.rows("warp", d, s)
        assert sorted(got) == sorted(int(w[2]) for w in want), (rows, want)
        for _, _, slot, _, block, active, divergent in want:
            row = got[int(slot)]
            assert row["blockIdx"] == block, (row, block)
            assert int(row["active_lanes_mask"], 16) == int(active, 16), row
            assert int(row["divergent_lanes_mask"], 16) == int(divergent, 16), row
    places = [tuple(map(int, w[:3])) for w in core.rows("warp")]
    for place, rows in zip(places, debugger.table(core, *("lanes device {} sm {} warp {}".format(*p) for p in places))):
        compare_lanes(core, place, rows, pc_column)


def compare_lanes(core, place, rows, pc_column):
    want = core.rows("lane", *place)
    got = [r for r in rows if r["state"] != "inactive"]
    assert len(got) == len(want) > 0, (place, rows)
    active = int(next(w for w in core.rows("warp", *place))[5], 16)
    for row, (_, _, _, number, pc, thread, exception) in zip(got, want):
        assert row["lane"] == number and row["threadIdx"] == thread, (place, row)
        assert row["state"] == ("active" if active >> int(number) & 1 else "divergent"), (place, row)
        assert EXCEPTIONS[row["exception"]] == int(exception), (place, row)
        if pc_column == "physical_pc":
            assert int(row[pc_column], 16) == int(pc, 16), (place, row)


def compare_registers(debugger, core, uniform=True):
    """All 40 planted registers, those behind them, the pc, and the uniform ones, of a lane of each warp."""
    names = " ".join(f"R{i}" for i in range(41)) + " pc UR0 UR62"
    commands = []
    for position, (device, sm, warp) in enumerate(WARPS):
        commands += [f"cuda device {device} sm {sm} warp {warp} lane {3 + position}", f"info registers {names}"]
    for position, answer in enumerate(debugger.ask(core, *commands)[2::2]):
        values = {n: int(v, 16) for n, v in re.findall(r"^(\w+) +(0x[0-9a-f]+) ", answer, re.M)}
        lane = 3 + position
        want = {f"R{i}": register(position, lane, i) for i in range(40)}
        want["R40"] = 0
        want["pc"] = core.callee + FAULT if position == 3 else core.kernel + OTHER
        want.update({"UR0": 0xaa000000 | position << 8, "UR62": 0xaa000000 | position << 8 | 62} if uniform else {})
        for name, value in want.items():
            assert values.get(name) == value, (position, name, values.get(name), value)


def compare_memory(debugger, core, constants=True):
    commands = {
        "p planted_global": "{1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007}",
        # Two ranges were written; no debugger reads across two sections.
        f"p/x *(@global long*){VARIABLES + 12:#x}": f"{1004 << 32 | 1003:#x}",
        "p/x *(@shared int*)0x4fc": f"{0x5a000000 | 2 << 16 | 0x4fc // 4:#x}",
        "p/x *(@local int*)0xfff010": f"{0x10ca0000 | 3 << 8 | 4:#x}",
        "p/x *(@generic int*)0x7e0000000404": f"{0x5a000000 | 2 << 16 | 0x404 // 4:#x}",
        "p/x *(@generic int*)0x7d0000fff010": f"{0x10ca0000 | 3 << 8 | 4:#x}",
    }
    if constants:
        commands["p/x $_cuda_const_bank(0, 0x218)"] = f"{BANK + 0x218:#x}"
        commands[f"p *(@global int*){BANK + 0x218:#x}"] = "6"
    answers = debugger.ask(core, *commands)[1:]
    for command, answer in zip(commands, answers):
        assert answer.strip().endswith("= " + commands[command]), (command, answer)


def test_cuda_gdb_finds_what_was_planted():
    """Every table of the debugger, registers, memory, frames and lines, in the layout that we write by default."""
    debugger = Debugger("cuda-gdb")
    with tempfile.TemporaryDirectory() as directory:
        core = Core(directory)
        opening, backtrace, lines = debugger.ask(core, "backtrace", "info symbol $pc")
        compare_opening(opening, core)
        compare_backtrace(backtrace, core)
        assert "callee(int*, int) + 768 in section .text._Z6calleePii" in lines, lines
        devices, sms, kernels, contexts, blocks = debugger.table(core, "devices", "sms device 0", "kernels", "contexts",
                                                                 "blocks")
        compare_devices(devices, core)
        assert [(r["sm"], int(r["active_warps_mask"], 16)) for r in sms] == [("1", 0x33), ("2", 1 << 63 | 1)], sms
        assert [(r["kernel"], r["device"], r["grid"], r["status"], r["gridDim"], r["blockDim"]) for r in kernels] == [
            ("0", "0", "7", "Active", "(4,1,1)", "(48,1,1)")], kernels
        assert len(contexts) == 1 and int(contexts[0]["context"], 16) == 0x55aa00, contexts
        assert {(r["device"], r["sm"], r["blockIdx"]) for r in blocks} == {
            (device, sm, block) for device, sm, _, _, block, _, _ in core.rows("warp")}, blocks
        threads, = debugger.table(core, "threads")
        assert sorted((r["device"], r["sm"], r["warp"], r["lane"], int(r["virtual_pc"], 16), r["threadIdx"], r["line"])
                      for r in threads) == sorted(
            (device, sm, warp, lane, int(pc, 16), thread, line_of(core, int(pc, 16)))
            for device, sm, warp, lane, pc, thread, _ in core.rows("lane")), threads[:3]
        compare_warps(debugger, core)
        compare_registers(debugger, core)
        compare_memory(debugger, core)


def line_of(core, pc):
    return str({core.callee + FAULT: FAULT_LINE, core.kernel + OTHER: OTHER_LINE}[pc])


def compare_devices(rows, core):
    want = core.rows("device")
    assert len(rows) == len(want), rows
    for row, (number, pci, sms, warps, lanes, registers, sm_type, kind, *name) in zip(rows, want):
        got = (row["device"], row["pci_bus"], row["num_sms"], row["num_warps"], row["num_lanes"], row["num_regs"],
               row["sm_type"], row["description"], row["name"])
        assert got == (number, pci, sms, warps, lanes, registers, sm_type, kind, " ".join(name)), row


def test_cuda_gdb_reads_every_layout():
    """From the oldest records to larger ones than it knows."""
    debugger = Debugger("cuda-gdb")
    for layout in range(R346, R615 + 1):
        with tempfile.TemporaryDirectory() as directory:
            core = Core(directory, layout)
            opening, backtrace = debugger.ask(core, "backtrace")
            compare_opening(opening, core)
            compare_backtrace(backtrace, core)
            compare_registers(debugger, core, uniform=layout >= R400)


def test_newer_cuda_gdb_reads_them_as_well():
    """12.5: a planted core in the layout that we write by default and in the newest one, and one of a process."""
    debugger = Debugger("cuda-gdb-12.5")
    for layout in (DEFAULT, R615):
        with tempfile.TemporaryDirectory() as directory:
            core = Core(directory, layout)
            opening, backtrace = debugger.ask(core, "backtrace")
            compare_opening(opening, core)
            compare_backtrace(backtrace, core)
            compare_warps(debugger, core)
            compare_registers(debugger, core)
            compare_memory(debugger, core)
    with CudaScene(app=LiveCore.APP, sim="devices 2 sms=3 warps=8", release="12.9") as s:
        compare_live(debugger, LiveCore(s))


def test_old_cuda_gdb_reads_old_layouts():
    """11.8 steps by its own record sizes: only cores in the layouts of its time are for it."""
    debugger = Debugger("cuda-gdb-11")
    for layout in (R346, R400):
        with tempfile.TemporaryDirectory() as directory:
            core = Core(directory, layout)
            opening, backtrace = debugger.ask(core, "backtrace")
            compare_opening(opening, core)
            compare_backtrace(backtrace, core)
            compare_warps(debugger, core, pc_column=None)
            compare_registers(debugger, core, uniform=layout >= R400)
            compare_memory(debugger, core, constants=False)


def test_cubin_of_cuda_13():
    """Its ELF flavour is newer than cuda-gdb 12.4, which warns and shows functions and lines all the same."""
    debugger = Debugger("cuda-gdb")
    with tempfile.TemporaryDirectory() as directory:
        core = Core(directory, cubin="plant-sm90-13.cubin")
        opening, backtrace = debugger.ask(core, "backtrace")
        compare_opening(opening, core)
        compare_backtrace(backtrace, core)


def test_more_sections_than_the_header_counts():
    debugger = Debugger("cuda-gdb")
    with tempfile.TemporaryDirectory() as directory:
        core = Core(directory, full=FULL_SMS)
        header = core.path.read_bytes()[:64]
        assert struct.unpack_from("<HH", header, 60) == (0, 0xffff), header
        opening, backtrace = debugger.ask(core, "backtrace")
        compare_opening(opening, core)
        compare_backtrace(backtrace, core)
        sms, = debugger.table(core, "sms device 0")
        assert len(sms) == 2 + FULL_SMS and int(sms[-1]["active_warps_mask"], 16) == (1 << 64) - 1, sms[-3:]


class LiveCore:
    """What `gpu-agentctl dump` makes of a process, and what was planted in it."""

    APP = f"init; context 0; module {DATA}/plant-sm90.cubin; gpu launch _Z6calleePii grid=8 block=96; listen"

    def __init__(self, s, *options):
        self.path = s.directory / "core"
        functions = {f["name"]: int(f["address"], 16) for m in s.state()["modules"] for f in m["functions"]}
        self.callee, self.kernel = functions["_Z6calleePii"], functions["planted"]
        up = self.kernel - self.callee
        s.control(f"warp 0 1 2 pc={FAULT:#x} idle={up + OTHER:#x} active=0xff")
        s.control(f"stack 0 1 2 0xffffffff {up + CALL_RETURN:#x}")
        s.control(f"raise 0 1 2 14 lanes=0x8 errorpc={FAULT:#x}")
        s.control("register 0 1 2 3 5 0xdeadbeef")
        s.control("register 0 1 2 3 1 0x10")
        s.control("memory shared 0 1 2 0 hex=" + bytes(range(64)).hex())
        s.control("memory local 0 1 2 3 0 hex=" + "a1a2a3a4" * 64)
        bank = bytearray(range(256)) * 3
        bank[0x18:0x28] = struct.pack("<QQ", SHARED_WINDOW, LOCAL_WINDOW)  # where compiled code finds them
        s.control(f"memory const 0 {BANK:#x} hex={bank.hex()}")
        s.control(f"memory global {VARIABLES:#x} managed=1 hex=" + bytes(range(32)).hex())
        self.waves = s.rpc.call("gpu.snapshot", session=s.attach(), waves=True, max_stop_ms=STOP_MS)["waves"]
        run = s.ctl("dump", s.app.pid, LONG_STOP, "-o", self.path, *options)
        assert run.returncode == 0, (run.returncode, run.stderr)


def compare_live(debugger, core, arguments=True, offsets=False):
    """@offsets: the debugger shows physical pcs: offsets in the function that was launched."""
    opening, backtrace, symbol = debugger.ask(core, "backtrace", "info symbol $pc")
    assert "CUDA Exception: Warp Illegal Address" in opening, opening
    assert is_triggered(opening, core.callee + FAULT), opening
    assert "grid 1, block (1,0,0), thread (67,0,0), device 0, sm 1, warp 2, lane 3]" in opening, opening
    assert f"#1  {core.kernel + CALL_RETURN:#018x} in planted<<<(8,1,1),(96,1,1)>>> (" in backtrace, backtrace
    # Its parameters are in the constant bank.
    assert not arguments or f"(out=0x1716151413121110, n={0x1b1a1918}) at plant.cu:{CALL_LINE}" in backtrace, backtrace
    assert "callee(int*, int) + 768" in symbol, symbol
    devices, kernels, *warps = debugger.table(core, "devices", "kernels", *(f"warps device 0 sm {i}" for i in range(3)))
    assert [(r["name"], r["sm_type"], r["num_sms"]) for r in devices] == [("Simulated GPU", "sm_90", "3")] * 2, devices
    assert [(r["grid"], r["status"], r["gridDim"], r["blockDim"]) for r in kernels] == [
        ("1", "Active", "(8,1,1)", "(96,1,1)")], kernels
    got = {(sm, int(r["warp"])): (r["blockIdx"], int(r["active_lanes_mask"], 16)) for sm, rows in enumerate(warps)
           for r in rows}
    want = {(w["ref"]["unit"], w["ref"]["index"]): ("({},{},{})".format(*w["ref"]["workgroup"]), int(w["exec"], 16))
            for w in core.waves}
    assert got == want and len(got) == 18, (got, want)
    compare_live_lanes(debugger, core, sorted(want), offsets)


def compare_live_lanes(debugger, core, places, offsets):
    """Where each lane stands, and its registers as the simulator made them up."""
    tables = debugger.table(core, *(f"lanes device 0 sm {sm} warp {warp}" for sm, warp in places))
    for (sm, warp), lanes in zip(places, tables):
        assert [int(r["lane"]) for r in lanes] == list(range(32)), lanes
        for lane, row in enumerate(lanes):
            special = (sm, warp) == (1, 2)
            pc = core.callee + FAULT if special and lane < 8 else core.kernel + OTHER if special else core.callee
            assert row["state"] == ("divergent" if special and lane >= 8 else "active"), row
            if offsets:
                pc -= core.callee
            assert int(row["virtual_pc"] if "virtual_pc" in row else row["physical_pc"], 16) == pc, row
            assert row["threadIdx"].endswith(",0,0)") and EXCEPTIONS[row["exception"]] == (
                14 if special and lane == 3 else 0), row
    commands = []
    for sm, warp in places:
        commands += [f"cuda device 0 sm {sm} warp {warp} lane 3", "info registers R0 R1 R5 R9 UR7"]
    for (sm, warp), answer in zip(places, debugger.ask(core, *commands)[2::2]):
        values = {n: int(v, 16) for n, v in re.findall(r"^(\w+) +(0x[0-9a-f]+) ", answer, re.M)}
        want = {f"R{i}": sm << 20 | warp << 14 | 3 << 8 | i for i in (0, 1, 5, 9)}
        if (sm, warp) == (1, 2):
            want |= {"R1": 0x10, "R5": 0xdeadbeef}
        assert values == want | {"UR7": 0x80000000 | sm << 16 | warp << 8 | 7}, (sm, warp, values)


def test_live_process():
    """Of a light core; drivers before 12.8 do not say what a kernel uses, those from 12.0 on answer in batches."""
    debugger = Debugger("cuda-gdb")
    for release in ("12.4", "13.4"):
        with CudaScene(app=LiveCore.APP, sim="devices 2 sms=3 warps=8", release=release) as s:
            core = LiveCore(s)
            compare_live(debugger, core)
            answers = debugger.ask(core, "p/x *(@local int*)0x10", "p *(@global int*)" + hex(VARIABLES),
                                   f"p *(@global int*){BANK + 4:#x}", f"p/x *(@generic int*){LOCAL_WINDOW + 0x10:#x}",
                                   f"p/x *(@generic int*){SHARED_WINDOW + 8:#x}")[1:]
            assert "0xa4a3a2a1" in answers[0] and f"= {0x07060504}" in answers[2], answers
            assert "0xa4a3a2a1" in answers[3] and "0xb0a0908" in answers[4], answers
            assert "= " not in answers[1], "a light core has no global memory"


def test_live_process_for_old_cuda_gdb():
    """Drivers of its own time do not say where constant banks are, and so have no arguments."""
    debugger = Debugger("cuda-gdb-11")
    for release in ("11.8", "12.4"):
        with CudaScene(app=LiveCore.APP, sim="devices 2 sms=3 warps=8", release=release) as s:
            core = LiveCore(s, "--layout=r400", "--full")
            compare_live(debugger, core, arguments=release != "11.8", offsets=True)
            answers = debugger.ask(core, "p/x *(@shared int*)8", "p/x *(@local int*)0x10",
                                   f"p/x *(@global int*){VARIABLES + 4:#x}")[1:]
            assert [a.split("= ")[-1].strip() for a in answers] == ["0xb0a0908", "0xa4a3a2a1", "0x7060504"], answers


def test_full_live_process():
    debugger = Debugger("cuda-gdb")
    with CudaScene(app=LiveCore.APP, sim="devices 2 sms=3 warps=8") as s:
        core = LiveCore(s, "--full")
        compare_live(debugger, core)
        answers = debugger.ask(core, "p/x *(@shared int*)8", "p/x *(@global int*)" + hex(VARIABLES + 4))[1:]
        assert "0xb0a0908" in answers[0] and "0x7060504" in answers[1], answers


def test_exceptions_of_warps_that_have_exited():
    """Of our own core: cuda-gdb 12.5 says which exception and where, and so do we; 12.4 does not look."""
    with CudaScene(app=LiveCore.APP, sim="devices 1 sms=3 warps=8", release="12.9") as s:
        (callee,) = (f for m in s.state()["modules"] for f in m["functions"] if f["name"] == "_Z6calleePii")
        pc, path = int(callee["address"], 16) + FAULT, s.directory / "core"
        s.control(f"raise-sm 0 1 14 errorpc={pc:#x}")
        run = s.ctl("dump", s.app.pid, LONG_STOP, "-o", path)
        assert run.returncode == 0, run
        theirs, = Debugger("cuda-gdb-12.5").ask(path)
        assert "CUDA Exception: Warp Illegal Address" in theirs, theirs
        assert f"The exception was triggered at PC {pc:#x}" in theirs and f"plant.cu:{FAULT_LINE})" in theirs, theirs
        ours = s.ctl("analyze", path).stdout.splitlines()[0]
        assert re.fullmatch(r"FAULT  warp illegal address \(CUDA_EXCEPTION_14\): warps that have exited (of \S+,|at) "
                            rf"plant.cu:{FAULT_LINE}, SM 1 of GPU 0", ours), ours


def test_elf_tools_have_no_complaint():
    with tempfile.TemporaryDirectory() as directory:
        for full in (0, FULL_SMS):
            core = Core(directory, full=full)
            counts = []
            for argv in (["readelf", "-hSW"], ["eu-readelf", "-hS"]):
                run = subprocess.run([*argv, core.path], text=True, capture_output=True, timeout=120)
                assert run.returncode == 0 and not run.stderr, (argv, run.stderr[:2000])
                counts.append(len(re.findall(r"^ *\[ *\d+\] \.", run.stdout, re.M)))
            assert counts[0] == counts[1] > (100 if full == 0 else 2048 * full), counts


def arguments_of(s, core):
    """[(name, value)] of the kernel, live and in the core, which say the same."""
    run = s.ctl("analyze", core, "-j")
    documents = [s.rpc.call("gpu.snapshot", session=s.attach(), max_stop_ms=STOP_MS), json.loads(run.stdout)]
    live, saved = ([(a["name"], a["value"]) for a in d["groups"][0]["arguments"]] for d in documents)
    assert live == saved, (live, saved)
    return live


def test_arguments_of_a_kernel():
    """As NVIDIA's debugger prints them, of the same core: on a frame's line, and by their addresses."""
    app = (f"init; context 0; module {DATA}/plant-sm90.cubin; "
           "gpu launch planted grid=8 block=96 pc=0xe0 args=p:0x7f00c0ffee00,i:-160; listen")
    for what, layout in (("cuda-gdb", ()), ("cuda-gdb-11", ("--layout=r400", "--full"))):
        debugger = Debugger(what)
        with CudaScene(app=app, sim="devices 2 sms=3 warps=8", release="12.4") as s:
            s.control("raise 0 1 2 14 lanes=0x8 errorpc=0xe0")
            core = s.directory / "core"
            run = s.ctl("dump", s.app.pid, LONG_STOP, "-o", core, *layout)
            assert run.returncode == 0, (run.returncode, run.stderr)
            ours = arguments_of(s, core)
            backtrace, address = debugger.ask(core, "backtrace", "p *(@parameter int *)0x218")[1:]
        assert ours == [("out", "0x7f00c0ffee00"), ("n", "-160")], ours
        assert "= -160" in address, address
        text = ", ".join(f"{name}={value}" for name, value in ours)
        assert f"planted<<<(8,1,1),(96,1,1)>>> ({text}) at plant.cu:{OTHER_LINE}" in backtrace, backtrace
