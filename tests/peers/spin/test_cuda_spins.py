#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Loops that poll memory: lib/waits tells of each what NVIDIA's disassembler shows of it, and finds all short ones."""
import os
import re
import subprocess
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from harness import BIN, ROOT
from nvdisasm import texts_of
from peers import fetch

PROGRAM = BIN.parent / "tests" / "sass_polls"
CUBINS = [*sorted((ROOT / "sim/scenes/cuda").glob("*-sm_90.cubin")), *sorted((ROOT / "tests/data/cubin").glob("*.cubin"))]
BRANCH = re.compile(r"^(@!?P\d) BRA `\((\.L_\w+)\)$")
LOAD = re.compile(r"^(LDG|LD|LDS|ATOMG\.E\.CAS)\b([\w.]*) (?:PT, )?(R\d+), (?:desc\[UR\d+\])?\[([^\]]+)\](?:, R\w+, R\w+)?$")
COMPARE = re.compile(r"^ISETP\.(\w+)(\.U32)?\.AND(\.EX)? (P\d), PT, (R\w+), ([^,]+), PT(?:, (P\d))?$")
TOGGLE = re.compile(r"^LOP3\.LUT (R\d+), (R\d+), (R\d+), RZ, 0x3c, !PT$")
ADD = re.compile(r"^(?:@P\d )?ATOM\.E\.ADD\.STRONG\.GPU PT, R\d+, (?:desc\[UR\d+\])?\[R(\d+)\.64\+0x4\], R\d+$")
WRITTEN = re.compile(r"^(?:@!?U?P\d )?[A-Z][\w.]* (?:PT, |U?P\d, )?(U?R\d+)\b")
MOVED = re.compile(r"^(?:IMAD\.MOV\.U32 \w+, RZ, RZ|IMAD\.U32 \w+, RZ, RZ|MOV \w+|LDC \w+|ULDC \w+), (c\[0x0\]\[0x\w+\]|UR\d+)$")
# Where the launch's constants have the address of its workspace: its lower half, and its upper one.
WORKSPACES = {"sm_80": ("0x90", "0x8c"), "sm_86": ("0x90", "0x8c"), "sm_89": ("0x90", "0x8c"), "sm_90": ("0x48", "0x44")}
NEGATED = {"ne": "eq", "eq": "ne", "lt": "gte", "gte": "lt", "gt": "lte", "lte": "gt"}
NAMES = {"NE": "ne", "EQ": "eq", "LT": "lt", "LE": "lte", "GT": "gt", "GE": "gte"}


def section_bytes(cubin, section):
    """What is in a section of an ELF file."""
    shown = subprocess.run(["readelf", "-SW", cubin], capture_output=True, text=True, check=True).stdout
    place = re.search(rf"{re.escape(section)}\s+PROGBITS\s+\w+\s+(\w+)\s+(\w+)", shown)
    at, size = int(place[1], 16), int(place[2], 16)
    return cubin.read_bytes()[at:at + size]


def operand(text):
    text = text.replace(".reuse", "")
    if text in ("RZ", "URZ"):
        return "0x0"
    if match := re.fullmatch(r"c\[0x0\]\[(0x\w+)\]", text):
        return "c" + match[1]
    return text if text[0] in "RU" else hex(int(text, 16) & 0xFFFFFFFF)


def origin(texts, at, register):
    """The constant that a register holds, by the last instruction in front that writes it; or None."""
    while (at := at - 16) >= 0:
        written = WRITTEN.match(texts[at])
        if written and written[1] == register:
            moved = MOVED.match(texts[at])
            if not moved or moved[1][0] == "c":
                return moved and moved[1]
            register = moved[1]
    return None


def has_workspace(arch, texts, at, base):
    return tuple(origin(texts, at, f"R{base + i}") for i in (0, 1)) == tuple(f"c[0x0][{c}]" for c in WORKSPACES[arch])


def is_grid(arch, texts, told):
    """Do blocks of a cooperative launch wait there?  The word of the workspace turns its sign, and was added to."""
    begin, space, offset, base, op, with_, toggle = (told[i] for i in (0, 3, 5, 6, 8, 9, 12))
    if (space, offset, op, with_) != ("LD", 4, "lte.s", "0xffffffff") or toggle[0] != "R":
        return False
    adds = [(at, ADD.match(texts[at])) for at in range(0, begin, 16) if ADD.match(texts[at])]
    return has_workspace(arch, texts, begin, int(base[1:])) and bool(adds) and has_workspace(arch, texts, adds[-1][0], int(adds[-1][1][1]))


def loop(texts, begin, branch, condition):
    """What a loop says, by its text: of those with one load, one compare, and what does nothing else; or None."""
    load = compare = upper = toggle = None
    for at in range(begin, branch, 16):
        text = texts[at]
        if found := LOAD.match(text):
            if load:
                return None
            load = (at, found)
        elif found := COMPARE.match(text):
            if found[3]:
                upper = found
            elif compare or not load:
                return None
            else:
                compare = found
        elif load and not compare and not toggle and (found := TOGGLE.match(text)) and load[1][3] in (found[2], found[3]):
            toggle = found[2] if found[3] == load[1][3] else found[3]
        elif not re.match(r"^(YIELD|NANOSLEEP|CCTL|MOV R\d+, RZ$|HFMA2)", text):
            return None
    if not load or not compare or ".U8" in load[1][2] or condition.lstrip("@!") != compare[4]:
        return None
    at, found = load
    parts = found[4].split("+")
    base = next((p.split(".")[0] for p in parts if re.match(r"R\d", p)), "0x0")
    uniform = next((p for p in parts if p.startswith("UR")), "-")
    offset = next((int(p, 16) for p in parts if re.fullmatch(r"-?0x\w+", p)), 0)
    op = NAMES[(upper or compare)[1]]
    op = op if condition.startswith("@!") else NEGATED[op]
    signed = ".s" if not (upper or compare)[2] and op not in ("eq", "ne") else ""
    return (begin, at, branch + 16, found[1].replace(".E", ""), 8 if ".64" in found[2] else 4, offset, base, uniform, op + signed,
            operand(compare[6]), operand(upper[6]) if upper else "-", "-", toggle or "-")


def test_loops_are_nvdisasms():
    nvdisasm = fetch("cuda-disasm") / "usr/bin/nvdisasm"
    n = instructions = 0
    grids = []
    for cubin in CUBINS:
        arch = (re.search(r"sm_\d+", cubin.name) or ["sm_90"])[0]
        sections, labels = texts_of(nvdisasm, cubin)
        for name, texts in sections.items():
            theirs = []
            for at, text in texts.items():
                found = BRANCH.match(text)
                if found and labels[found[2]][0] == name and labels[found[2]][1] < at:
                    told = loop(texts, labels[found[2]][1], at, found[1])
                    theirs += [(*told, "grid" if is_grid(arch, texts, told) else "-")] if told else []
            code = section_bytes(cubin, name)
            shown = subprocess.run([PROGRAM, arch], input=code, capture_output=True, check=True).stdout.decode()
            ours = [tuple(int(w) if i in (0, 1, 2, 4, 5) else w for i, w in enumerate(line.split())) for line in shown.splitlines()]
            assert ours == theirs, (cubin.name, name)
            n += len(theirs)
            grids += [(cubin.name, name) for told in theirs if told[-1] == "grid"]
            instructions += len(texts)
    print(f"  {n} loops, {len(grids)} of grids, in {instructions} instructions of {len(CUBINS)} cubins")
    apart = [".text.reduce_apart"] * 2
    assert [section for _, section in sorted(grids)] == [".text.reduce", *apart, ".text.reduce_own"], grids
    assert n >= 4 and instructions > 1000
