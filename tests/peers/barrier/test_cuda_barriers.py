#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Barriers of blocks, warps and clusters, and sleeps: lib/waits sees what NVIDIA's disassembler shows, operands as well, and no others."""
import os
import re
import subprocess
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest

from harness import BIN, ROOT
from nvdisasm import texts_of
from peers import fetch

PROGRAM = BIN.parent / "tests" / "sass_barriers"
CUBINS = [*sorted((ROOT / "sim/scenes/cuda").rglob("*.cubin")), *sorted((ROOT / "tests/data/cubin").glob("*.cubin"))]
ARCHS = ["sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90"]
# A sleep that a predicate guards is none that lanes are known to be in.
SHOWN = re.compile(r"^(?:(?:@!?U?P\d )?(?=[^@N])|(?=NANOSLEEP\b))"
                   r"(NANOSLEEP|BAR\.(?:SYNC|RED|ARV)|ARRIVES\.LDGSTSBAR|WARPSYNC|BSYNC|UCGABAR_(?:ARV|WAIT))\b[.\w]*(?: (.*))?$")
NAMES = {"BAR.RED": "BAR.SYNC"}  # It waits as BAR.SYNC does.
ALL_LANES = "0xffffffff"

# Each form of each barrier, in code that not all lanes reach: for lanes that are together ptxas makes no WARPSYNC.
FORMS = ["bar.sync 0;", "bar.sync 3;", "bar.sync 5, 64;", "bar.sync %r1;", "bar.sync %r1, %r2;", "bar.sync 7, %r2;", "bar.sync %r1, 96;",
         "bar.arrive 2, 128;", "bar.arrive %r1, %r2;", "bar.arrive 4, %r2;", "bar.arrive %r1, 256;",
         "barrier.sync 1;", "barrier.sync 6, 32;", "barrier.arrive 8, 64;", "barrier.sync 15, 1024;",
         "bar.red.popc.u32 %r4, 0, %p1;", "bar.red.and.pred %p2, 9, 64, %p1;", "bar.red.or.pred %p2, %r1, %p1;",
         "nanosleep.u32 100;", "nanosleep.u32 %r3;", "nanosleep.u32 %r1;",
         "@%p1 bar.warp.sync 0xffffffff;", "@%p1 bar.warp.sync 0xff;", "@%p1 bar.warp.sync %r1;"]
COPIES = ["cp.async.mbarrier.arrive.shared.b64 [%r1];", "cp.async.mbarrier.arrive.noinc.shared.b64 [%r1];"]
CLUSTERS = ["barrier.cluster.arrive;", "barrier.cluster.wait;", "barrier.cluster.arrive.relaxed;", "barrier.cluster.wait.acquire;"]


def kernel(number, form):
    return (f".visible .entry k{number}(.param .u32 a, .param .u32 b, .param .u64 out) {{\n"
            ".reg .b32 %r<6>; .reg .b64 %rd<2>; .reg .pred %p<4>;\n"
            "ld.param.u32 %r1, [a]; ld.param.u32 %r2, [b]; ld.param.u64 %rd1, [out]; mov.u32 %r3, %tid.x; mov.u32 %r4, 0;\n"
            f"setp.gt.u32 %p1, %r3, 7; setp.ne.u32 %p2, %r3, 0;\n{form}\n@%p2 add.u32 %r4, %r4, 1; st.global.u32 [%rd1], %r4; ret; }}\n")


def forms_of(arch):
    number = int(arch.removeprefix("sm_"))
    return FORMS + (COPIES if number >= 80 else []) + (CLUSTERS if number >= 90 else [])


def theirs(texts):
    """{offset: (name, operands)} of a section; the operands of barriers of blocks and warps only."""
    found = {}
    for at, text in texts.items():
        match = SHOWN.match(text)
        if not match:
            continue
        name = NAMES.get(match[1], match[1])
        operands = [o for o in (match[2] or "").split(", ") if o and not re.fullmatch(r"!?P[\dT]", o)]
        if name == "WARPSYNC":
            operands = ["constant" if o.startswith("c[") else o for o in operands if o[0] != "`"] or [ALL_LANES]
        elif name.startswith("BAR."):
            # Without a count it is one of the whole block.
            operands = operands if len(operands) == 2 else [*operands, "0x0"]
        elif name != "BSYNC":
            operands = []
        found[at] = (name, *operands)
    return found


def ours(arch, code):
    shown = subprocess.run([PROGRAM, arch], input=code, capture_output=True, check=True).stdout.decode()
    rows = [line.split() for line in shown.splitlines()]
    return {int(at): (name, *operands) for at, name, *operands in rows}


def codes_of(cubin):
    """{section: bytes}"""
    shown = subprocess.run(["readelf", "-SW", cubin], capture_output=True, text=True, check=True).stdout
    data = cubin.read_bytes()
    places = re.findall(r"(\.text\.\S+)\s+PROGBITS\s+\w+\s+(\w+)\s+(\w+)", shown)
    return {name: data[int(at, 16):int(at, 16) + int(size, 16)] for name, at, size in places}


def compared(arch, cubin):
    """(barriers, instructions, sections without a barrier) of a cubin."""
    sections, _ = texts_of(fetch("cuda-disasm") / "usr/bin/nvdisasm", cubin)
    codes = codes_of(cubin)
    n, without = 0, []
    for name, texts in sections.items():
        shown = theirs(texts)
        assert ours(arch, codes[name]) == shown, (arch, cubin.name, name)
        n += len(shown)
        without += [] if shown else [name]
    return n, sum(len(texts) for texts in sections.values()), without


@pytest.mark.parametrize("arch", ARCHS)
def test_each_form_is_told(arch, tmp_path):
    forms = forms_of(arch)
    source, cubin = tmp_path / "forms.ptx", tmp_path / "forms.cubin"
    source.write_text(f".version 8.4\n.target {arch}\n.address_size 64\n" + "".join(kernel(i, form) for i, form in enumerate(forms)))
    subprocess.run([fetch("cuda-ptxas") / "usr/bin/ptxas", f"-arch={arch}", source, "-o", cubin], check=True, timeout=300,
                   stdin=subprocess.DEVNULL)
    n, instructions, without = compared(arch, cubin)
    print(f"  {n} barriers in {instructions} instructions")
    assert n >= len(forms) and not without, (n, [forms[int(name.removeprefix(".text.k"))] for name in without])


def test_those_of_programs_are_told():
    n = instructions = 0
    for cubin in CUBINS:
        found = compared(re.search(r"sm_\d+", cubin.name)[0], cubin)
        n, instructions = n + found[0], instructions + found[1]
    print(f"  {n} barriers in {instructions} instructions of {len(CUBINS)} cubins")
    assert n >= 6 and instructions > 1000
