#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Waits for barriers in shared memory: lib/waits finds those that NVIDIA's disassembler shows, with the same operands."""
import os
import re
import subprocess
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from harness import BIN, ROOT
from nvdisasm import texts_of
from peers import fetch

PROGRAM = BIN.parent / "tests" / "mbarrier_waits"
CUBINS = [*sorted((ROOT / "sim/scenes/cuda").glob("*-sm_90.cubin")), *sorted((ROOT / "tests/data/cubin").glob("*sm_90*.cubin"))]
WAIT = re.compile(r"^SYNCS\.PHASECHK\.TRANS64\.TRYWAIT P\d, \[([^\]]+)\], (R\w+)")


def operands(text):
    """(register, uniform register, offset, register of the phase) of a wait; None of another instruction."""
    found = WAIT.match(text)
    if not found:
        return None
    parts = found[1].split("+")
    register = next((p for p in parts if re.fullmatch(r"R\d+", p)), "-")
    uniform = next((p for p in parts if re.fullmatch(r"UR\d+", p)), "-")
    offset = next((int(p, 16) for p in parts if re.fullmatch(r"-?0x[0-9a-f]+", p)), 0)
    return register, uniform, offset, "-" if found[2] == "RZ" else found[2]


def ours(cubin, section):
    """{offset: operands} of a section."""
    code = section_bytes(cubin, section)
    shown = subprocess.run([PROGRAM, "sm_90"], input=code, capture_output=True, check=True).stdout.decode()
    rows = [line.split() for line in shown.splitlines()]
    return {int(row[0]): (row[1], row[2], int(row[3]), row[4]) for row in rows}


def section_bytes(cubin, section):
    """What is in a section of an ELF file."""
    shown = subprocess.run(["readelf", "-SW", cubin], capture_output=True, text=True, check=True).stdout
    place = re.search(rf"{re.escape(section)}\s+PROGBITS\s+\w+\s+(\w+)\s+(\w+)", shown)
    at, size = int(place[1], 16), int(place[2], 16)
    return cubin.read_bytes()[at:at + size]


def test_waits_are_nvdisasms():
    nvdisasm = fetch("cuda-disasm") / "usr/bin/nvdisasm"
    n = instructions = 0
    for cubin in CUBINS:
        sections, _ = texts_of(nvdisasm, cubin)
        for name, texts in sections.items():
            theirs = {at: operands(text) for at, text in texts.items() if operands(text)}
            assert ours(cubin, name) == theirs, (cubin.name, name)
            n += len(theirs)
            instructions += len(texts)
    print(f"  {n} waits in {instructions} instructions of {len(CUBINS)} cubins")
    assert n >= 6 and instructions > 1000
