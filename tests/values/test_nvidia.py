#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Variables of CUDA code, by the product and by cuda-gdb 12.4 and 12.5, out of the same core files.

Random kernels are compiled with nvcc -G and assembled with ptxas 12.4.  cuda_values.c plants cores: random registers and
memory, an address for each lane, and for some a caller.  With GPU_AGENT_VALUES=N, N kernels instead of some, from the seed
GPU_AGENT_VALUES_FIRST on.
"""
from __future__ import annotations

import collections
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from unittest import SkipTest

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest
from corereader import CoreRpc
from cudagdb import Debugger
from harness import BIN
from peers import fetch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import dwarftext
import kernels

COUNT = int(os.environ.get("GPU_AGENT_VALUES", "6"))
FIRST = int(os.environ.get("GPU_AGENT_VALUES_FIRST", "0"))
LANES = 96
CODE, VARIABLES, SHARED = 0x7f1000001000, 0x7f1100000000, 0x400
PARAMETERS = {"sm_75": 0x160, "sm_80": 0x160, "sm_90": 0x210}
SHT_SYMTAB, SHT_RELA, SHT_REL, R_CUDA_64 = 2, 4, 9, 2
STT_FUNC, STO_CUDA_ENTRY = 2, 0x10


class Cubin:
    """An image as compiled, and as the driver would have it loaded."""

    def __init__(self, path):
        self.image = bytearray(path.read_bytes())
        table, = struct.unpack_from("<Q", self.image, 40)
        count, self.names = struct.unpack_from("<HH", self.image, 60)
        self.sections = [struct.unpack_from("<IIQQQQIIQQ", self.image, table + 64 * i) for i in range(count)]
        bases = self.place(table)
        self.functions, values = {}, []
        symtab, = (s for s in self.sections if s[1] == SHT_SYMTAB)
        for at in range(symtab[4], symtab[4] + symtab[5], 24):
            name, info, other, index, value, size = struct.unpack_from("<IBBHQQ", self.image, at)
            value += bases.get(index, 0)
            struct.pack_into("<Q", self.image, at + 8, value)
            values.append(value)
            if info & 15 == STT_FUNC and index in bases:
                self.functions[self.string(symtab[6], name)] = (value, size, bool(other & STO_CUDA_ENTRY))
        self.relocate(values)

    def string(self, section, offset):
        start = self.sections[section][4] + offset
        return self.image[start:self.image.index(0, start)].decode()

    def place(self, table):
        bases, code, variables = {}, CODE, VARIABLES
        for i, section in enumerate(self.sections):
            name = self.string(self.names, section[0])
            if name.startswith(".text."):
                bases[i], code = code, code + section[5] + 0xff & ~0xff
            elif name in (".nv.global", ".nv.global.init"):
                bases[i], variables = variables, variables + section[5] + 0xff & ~0xff
            elif name.startswith(".nv.shared."):
                bases[i] = SHARED
            struct.pack_into("<Q", self.image, table + 64 * i + 16, bases.get(i, 0))
        return bases

    def relocate(self, values):
        for section in self.sections:
            target = self.sections[section[7]] if section[7] < len(self.sections) else None
            if section[1] not in (SHT_RELA, SHT_REL) or not self.string(self.names, target[0]).startswith(".debug_"):
                continue
            step = 24 if section[1] == SHT_RELA else 16
            for at in range(section[4], section[4] + section[5], step):
                offset, info = struct.unpack_from("<QQ", self.image, at)
                place = target[4] + offset
                if info & 0xffffffff != R_CUDA_64:
                    continue
                addend, = struct.unpack_from("<q", self.image, at + 16 if step == 24 else place)
                struct.pack_into("<Q", self.image, place, values[info >> 32] + addend)


class Toolkit:
    def __init__(self):
        self.nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
        if not self.nvcc:
            raise SkipTest("nvcc is needed")
        if not shutil.which("llvm-dwarfdump"):
            raise SkipTest("llvm-dwarfdump is needed")
        self.ptxas = fetch("cuda-ptxas") / "usr/bin/ptxas"

    def build(self, directory, seed, arch):
        source = directory / f"k{seed}.cu"
        source.write_text(kernels.write("cu", seed))
        ptx, cubin = source.with_suffix(".ptx"), source.with_suffix(".cubin")
        run = subprocess.run([self.nvcc, "-w", "-G", "-ptx", f"-arch={arch}", source, "-o", ptx], text=True,
                             capture_output=True, cwd=directory, timeout=300)
        assert run.returncode == 0, run.stderr
        # The debugger knows what ptxas of its own release writes.
        ptx.write_text(re.sub(r"^\.version .*", ".version 8.4", ptx.read_text(), flags=re.M))
        run = subprocess.run([self.ptxas, "-g", f"-arch={arch}", ptx, "-o", cubin], text=True, capture_output=True, timeout=300)
        assert run.returncode == 0, run.stderr
        return cubin


def leaves(text):
    """Numbers of a value as the debugger writes it, in order; None: what is not there."""
    if text.startswith("<"):
        return None
    text = re.sub(r"'(\\.[0-7]*|[^'\\])'", "", text)
    text = re.sub(r"\(@?[\w ]*\*[* const]*\) ?", "", text)
    text = re.sub(r" <[^<>]*>", "", text)
    text = re.sub(r"\b[A-Za-z_]\w* = ", "", text)
    return [t.strip() for t in re.split(r"[{},]", text) if t.strip()]


class Types:
    """Numbers of bytes, by the types that llvm-dwarfdump prints."""

    def __init__(self, file):
        self.file = file

    def strip(self, die):
        while die is not None and die.tag in ("DW_TAG_typedef", "DW_TAG_const_type", "DW_TAG_volatile_type"):
            die = self.file.refer(die, "DW_AT_type")
        return die

    def is_char_array(self, die):
        kind = self.strip(self.file.refer(die, "DW_AT_type"))
        if kind.tag == "DW_TAG_array_type":
            element = self.strip(self.file.refer(kind, "DW_AT_type"))
            return element.number("DW_AT_byte_size") == 1
        return any(self.is_char_array(c) for c in kind.children if c.tag == "DW_TAG_member")

    def of(self, die, data):
        """[(bytes, encoding)] of every leaf."""
        return self.of_type(self.file.refer(die, "DW_AT_type"), data)

    def of_type(self, kind, data):
        kind = self.strip(kind)
        if kind.tag == "DW_TAG_array_type":
            element = self.file.refer(kind, "DW_AT_type")
            size = self.file.size(kind)
            return [x for i in range(0, len(data), size) for x in self.of_type(element, data[i:i + size])] if size else []
        if kind.tag == "DW_TAG_structure_type":
            return [x for m in kind.children if m.tag == "DW_TAG_member" for x in self.member(m, data)]
        if kind.tag == "DW_TAG_pointer_type":
            return [(data, "pointer")]
        return [(data, re.search(r"DW_ATE_(\w+)", kind.attributes["DW_AT_encoding"])[1])]

    def member(self, member, data):
        at = int(re.search(r"DW_OP_plus_uconst (0x[0-9a-f]+)", member.attributes["DW_AT_data_member_location"])[1], 16)
        bits = member.number("DW_AT_bit_size")
        size = member.number("DW_AT_byte_size") or self.file.size(member)
        if bits is None:
            return self.of_type(self.file.refer(member, "DW_AT_type"), data[at:at + size])
        shift = 8 * size - member.number("DW_AT_bit_offset") - bits
        value = int.from_bytes(data[at:at + size], "little") >> shift & (1 << bits) - 1
        return [(value.to_bytes(size, "little"), "unsigned")]


def is_same(text, data, encoding):
    if encoding == "float":
        number = struct.unpack("<f" if len(data) == 4 else "<d", data)[0]
        if number != number:
            return "nan" in text
        if "inf" in text:
            return number == float(text)
        if "nan" in text:
            return False
        back = struct.pack("<f" if len(data) == 4 else "<d", float(text))
        return back == data
    number = int.from_bytes(data, "little")
    if encoding == "boolean":
        return text == {0: "false", 1: "true"}.get(number, str(number))
    return int(text, 0) % (1 << 8 * len(data)) == number


class Comparison:
    def __init__(self):
        self.counts = collections.Counter()

    def value(self, where, types, row, theirs):
        name, _, _, state, offset, data, place, reason = row
        die = types.file.dies[int(offset, 16)]
        numbers = leaves(theirs)
        if types.is_char_array(die):
            self.counts["text, left out"] += 1
        elif numbers is None:
            assert state in ("optimised_out", "unavailable", "not_saved", "unreadable"), (where, row, theirs)
            self.counts[state] += 1
        elif state == "unavailable" and reason == "only a part of it is in a register here":
            self.counts["half of it, which the debugger fills up"] += 1
        else:
            assert state == "ok", (where, row, theirs)
            wanted = types.of(die, bytes.fromhex(data))
            assert len(wanted) == len(numbers), (where, row, theirs, wanted)
            assert all(is_same(t, *w) for t, w in zip(numbers, wanted)), (where, row, theirs)
            self.counts["ok"] += 1

    def frame(self, where, types, rows, theirs):
        theirs = list(theirs)
        for row in rows:
            found = next((t for t in theirs if t[0] == row[0]), None)
            if found is None:
                # Nor has it constants and variables of the file among locals.
                assert row[3] == "optimised_out" or row[1] == "static" or row[6] == "constant", (where, row, theirs)
                self.counts["not in the debugger's list"] += 1
                continue
            theirs.remove(found)
            self.value(where, types, row, found[1])
        assert not theirs, (where, theirs, rows)


def plan_lanes(cubin, seed):
    """An address and a caller's for each lane."""
    r = random.Random(seed)
    kernel = [f for f in cubin.functions.values() if f[2]]
    device = [f for f in cubin.functions.values() if not f[2]]
    for _ in range(LANES):
        caller = r.choice(kernel)
        if device and r.random() < 0.5:
            callee = r.choice(device)
            yield callee[0] + r.randrange(callee[1] // 16) * 16, caller[0] + r.randrange(1, caller[1] // 16) * 16
        else:
            yield caller[0] + r.randrange(caller[1] // 16) * 16, 0


def ours(directory, cubin_path, cubin, arch, seed, lanes):
    relocated = directory / "relocated"
    relocated.write_bytes(cubin.image)
    kernel = next(f[0] for f in cubin.functions.values() if f[2])
    run = subprocess.run([BIN.parent / "tests/cuda_values", directory / "core", relocated, cubin_path, hex(kernel),
                          hex(PARAMETERS[arch]), hex(VARIABLES), str(seed)], text=True, capture_output=True, timeout=120,
                         input="".join(f"{pc:x} {caller:x}\n" for pc, caller in lanes))
    assert run.returncode == 0, run.stderr
    frames = {}
    for line in run.stdout.splitlines():
        words = line.split("\t")
        if line.startswith("lane "):
            _, warp, lane, level, _ = line.split(" ")
            rows = frames[int(warp), int(lane), int(level)] = []
        else:
            rows.append(words)
    return frames


def listed(answer):
    return [(name, re.sub(r"\\(.)", r"\1", value)) for name, value in
            re.findall(r'\{name="([^"]+)"(?:,arg="1")?,value="((?:[^"\\]|\\.)*)"\}', answer)]


def compare(gdb, directory, cubin_path, arch, seed, comparison):
    cubin = Cubin(cubin_path)
    lanes = list(plan_lanes(cubin, seed))
    frames = ours(directory, cubin_path, cubin, arch, seed, lanes)
    types = Types(dwarftext.File(directory / "relocated", "llvm-dwarfdump"))
    ask, wanted = [], []
    for n, (_, caller) in enumerate(lanes):
        ask.append(f"cuda device 0 sm 0 warp {n // 32} lane {n % 32}")
        for level in range(2 if caller else 1):
            ask += [f"frame {level}", 'interpreter-exec mi2 "-stack-list-variables --all-values"']
            wanted.append(((n // 32, n % 32, level), len(ask)))
    answers = gdb.ask(directory / "core", "set print elements 0", "set print repeats 0", *ask, "echo")
    for where, index in wanted:
        answer = answers[index + 2]
        assert "^done" in answer, (where, answer)
        if where not in frames:  # The padding behind a function has no variables.
            assert not listed(answer), (where, answer)
            continue
        comparison.frame((arch, seed, where), types, frames[where], listed(answer))


@pytest.mark.parametrize("debugger, count", (("cuda-gdb", COUNT), ("cuda-gdb-12.5", (COUNT + 2) // 3)),
                         ids=("cuda-gdb", "cuda-gdb-12.5"))
def test_variables_are_those_of_the_debugger(debugger, count):
    toolkit, gdb, comparison = Toolkit(), Debugger(debugger), Comparison()
    with tempfile.TemporaryDirectory() as scratch:
        for seed in range(FIRST, FIRST + count):
            arch = ("sm_90", "sm_80", "sm_75")[seed % 3]
            directory = pathlib.Path(scratch)
            compare(gdb, directory, toolkit.build(directory, seed, arch), arch, seed, comparison)
    print(f"    {dict(comparison.counts)}")
    assert comparison.counts["ok"] > 100 * count
    assert comparison.counts["not_saved"] and comparison.counts["unavailable"]


def number(types, row):
    """The integer that a variable is; None: it is something else."""
    kind = types.strip(types.file.refer(types.file.dies[int(row[4], 16)], "DW_AT_type"))
    if kind.tag != "DW_TAG_base_type" or "signed" not in kind.attributes["DW_AT_encoding"]:
        return None
    return int.from_bytes(bytes.fromhex(row[5]), "little", signed="unsigned" not in kind.attributes["DW_AT_encoding"])


def told_leaves(rpc, one):
    """Texts of all members of members, in order, each asked for by the expression that is told of it."""
    answer = rpc.call("wave.evaluate", **one, max_members=1000)
    if not answer.get("members") or answer["type"].endswith("*"):
        assert answer["state"] == "ok", answer
        return [re.sub(r" .*", "", answer["value"]) if "(" not in answer["value"] else answer["value"].split(") ")[1]]
    assert len(answer["list"]) == answer["members"], answer
    found = []
    for m in answer["list"]:
        leaves_of = told_leaves(rpc, {**one, "expression": m["expression"]})
        assert m.get("members") or m["value"].split(" ")[0] in (leaves_of[0], m["value"].split(" ")[0]), (m, leaves_of)
        found += leaves_of
    return found


def check_members(rpc, types, row, one):
    """@return how many numbers a struct or an array has; members are those of the second reader."""
    wanted = types.of(types.file.dies[int(row[4], 16)], bytes.fromhex(row[5]))
    found = told_leaves(rpc, one)
    assert len(found) == len(wanted) and all(is_same(t, *w) for t, w in zip(found, wanted)), (row, found, wanted)
    return len(found)


def check_built_in(found, thread):
    """As cuda_values.c has them: one block of so many threads."""
    size = f"{{x = {LANES}, y = 1, z = 1}}"
    assert [(v["name"], v["value"], v["state"], v["scope"], v["expression"]) for v in found] == [
        (name, value, "ok", "built_in", name) for name, value in (
            ("threadIdx", f"{{x = {thread}, y = 0, z = 0}}"), ("blockIdx", "{x = 0, y = 0, z = 0}"), ("blockDim", size),
            ("gridDim", "{x = 1, y = 1, z = 1}"), ("warpSize", "32"))], found


def lanes_of(text):
    for part in text.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def check_lanes(rpc, wave, alone):
    """@param alone  What calls for one lane have said.  @return how many values of lanes are the same in one call."""
    whole = rpc.call("wave.variables", session="core", wave=wave, lane=5, lanes="0-31")
    count = 0
    for v in whole["variables"]:
        told = {lane: row for row in v["lanes"] for lane in lanes_of(row["lanes"])}
        assert sorted(told) == list(range(32)), v
        for lane, theirs in alone.items():
            if v["scope"] == "built_in":
                continue
            same = [o for o in theirs["variables"] if all(o[k] == v[k] for k in ("name", "type", "block"))]
            if theirs["function"] != whole["function"]:
                assert told[lane]["state"] == "unavailable" and "another function" in told[lane]["reason"], told[lane]
            elif len(same) == 1 and "cannot be seen" not in told[lane].get("reason", ""):
                one = same[0]
                assert all(one.get(k) == told[lane].get(k) for k in ("state", "reason", "value", "address")), (one, told[lane])
                count += 1
    return count


def test_a_client_is_told_the_same():
    counts, alone = collections.Counter(), {}
    with tempfile.TemporaryDirectory() as scratch:
        directory = pathlib.Path(scratch)
        path = Toolkit().build(directory, 0, "sm_90")
        cubin = Cubin(path)
        lanes = list(plan_lanes(cubin, 0))
        frames = ours(directory, path, cubin, "sm_90", 0, lanes)
        types = Types(dwarftext.File(directory / "relocated", "llvm-dwarfdump"))
        with CoreRpc(directory / "core") as rpc:
            queue = rpc.call("gpu.queues", session="core")["queues"][0]["queue_id"]
            for (warp, lane, level), rows in frames.items():
                # Of other lanes than the first one callers are not told.
                if level and lane:
                    continue
                answer = rpc.call("wave.variables", session="core", lane=lane, frame=level,
                                  wave={"queue_id": queue, "unit": 0, "index": warp})
                check_built_in(answer["variables"][len(rows):], warp * 32 + lane)
                answer["variables"] = answer["variables"][:len(rows)]
                assert [v["name"] for v in answer["variables"]] == [r[0] for r in rows], (answer, rows)
                if not level:
                    alone.setdefault(warp, {})[lane] = answer
                for v, row in zip(answer["variables"], rows, strict=True):
                    assert v["state"] == row[3], (v, row)
                    counts[v["state"], level] += 1
                    if row[3] == "ok" and number(types, row) is not None:
                        assert v["value"].split(" ")[0] == str(number(types, row)), (v, row)
                        counts["numbers"] += 1
                    if [r[0] for r in rows].count(v["name"]) == 1 and lane < 2:
                        one = rpc.call("wave.evaluate", session="core", lane=lane, frame=level, expression=v["name"],
                                       wave={"queue_id": queue, "unit": 0, "index": warp})
                        assert all(one.get(k) == v.get(k) for k in ("type", "state", "value", "location")), (one, v)
                        counts["expressions"] += 1
                        if v["state"] == "ok" and one.get("members", 0) > 1:
                            counts["members"] += check_members(rpc, types, row, {
                                "session": "core", "lane": lane, "frame": level, "expression": v["expression"],
                                "wave": {"queue_id": queue, "unit": 0, "index": warp}})
            for warp, answers in alone.items():
                counts["lanes"] += check_lanes(rpc, {"queue_id": queue, "unit": 0, "index": warp}, answers)
    print(f"    {dict(counts)}")
    assert counts["lanes"] > 100 and counts["numbers"] > 100 and counts["ok", 1], counts
    assert counts["expressions"] > 50 and counts["members"] > 20, counts
