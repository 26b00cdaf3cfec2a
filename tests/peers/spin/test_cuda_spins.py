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


def loop(texts, begin, branch, condition):
    """What a loop says, by its text: of those with one load, one compare, and what does nothing else; or None."""
    load = compare = upper = None
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
            operand(compare[6]), operand(upper[6]) if upper else "-", "-", "-")


def test_loops_are_nvdisasms():
    nvdisasm = fetch("cuda-disasm") / "usr/bin/nvdisasm"
    n = instructions = 0
    for cubin in CUBINS:
        arch = re.search(r"sm_\d+", cubin.name) or ["sm_90"]
        sections, labels = texts_of(nvdisasm, cubin)
        for name, texts in sections.items():
            theirs = []
            for at, text in texts.items():
                found = BRANCH.match(text)
                if found and labels[found[2]][0] == name and labels[found[2]][1] < at:
                    told = loop(texts, labels[found[2]][1], at, found[1])
                    theirs += [told] if told else []
            code = section_bytes(cubin, name)
            shown = subprocess.run([PROGRAM, arch[0]], input=code, capture_output=True, check=True).stdout.decode()
            ours = [tuple(int(w) if i in (0, 1, 2, 4, 5) else w for i, w in enumerate(line.split())) for line in shown.splitlines()]
            assert ours == theirs, (cubin.name, name)
            n += len(theirs)
            instructions += len(texts)
    print(f"  {n} loops in {instructions} instructions of {len(CUBINS)} cubins")
    assert n >= 4 and instructions > 1000
