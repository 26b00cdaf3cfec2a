#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Instructions by which waves wait: lib/waits names them as LLVM's assembler does, for every CPU that LLVM knows."""
import os
import re
import shutil
import subprocess
import sys
from unittest import SkipTest

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest

from harness import BIN

PROGRAM = BIN.parent / "tests" / "waits_words"
VERSIONS = {"gfx900": 90000, "gfx906": 90006, "gfx908": 90008, "gfx90a": 90010, "gfx940": 90400, "gfx942": 90402,
            "gfx950": 90500, "gfx1010": 100100, "gfx1030": 100300, "gfx1100": 110000, "gfx1150": 110500,
            "gfx1200": 120000, "gfx1250": 120500}
# What is assembled, and what it is called where that is not the same.
INSTRUCTIONS = {
    "s_barrier": None, "s_barrier_signal -1": None, "s_barrier_signal_isfirst -1": "s_barrier_signal",
    "s_barrier_wait -1": None, "s_barrier_wait 1": None, "s_sleep 1": None, "s_sleep_var s1": "s_sleep",
    "s_waitcnt vmcnt(0)": None, "s_waitcnt lgkmcnt(0)": None, "s_waitcnt_vscnt null, 0x0": "s_waitcnt",
    "s_wait_loadcnt 0x0": "s_waitcnt", "s_wait_storecnt 0x0": "s_waitcnt", "s_wait_dscnt 0x0": "s_waitcnt",
    "s_wait_kmcnt 0x0": "s_waitcnt", "s_endpgm": None, "s_sethalt 1": None, "s_trap 1": None,
    "s_branch -2": None, "s_cbranch_scc0 -2": None, "s_cbranch_scc1 -2": None, "s_cbranch_vccz -2": None,
    "s_cbranch_vccnz -2": None, "s_cbranch_execz -2": None, "s_cbranch_execnz -2": None,
    # None of these waits, and some have the word of one that does on another target.
    "s_nop 0": "-", "s_wait_idle": "-", "s_waitcnt_depctr 0xffff": "-", "s_sendmsg sendmsg(MSG_INTERRUPT)": "-",
    "s_wakeup": "-", "s_setprio 1": "-", "s_mov_b32 s0, s1": "-", "v_mov_b32 v0, v1": "-", "s_getpc_b64 s[0:1]": "-",
}


def assembler():
    """The newest llvm-mc."""
    for name in [*(f"llvm-mc-{n}" for n in range(30, 13, -1)), "llvm-mc"]:
        if shutil.which(name):
            return name
    raise SkipTest("no llvm-mc here: apt-get install llvm")


def word_of(mc, cpu, text):
    """The instruction's first word; None where the CPU has none such."""
    shown = subprocess.run([mc, "-triple=amdgcn-amd-amdhsa", f"-mcpu={cpu}", "-show-encoding"], input=text,
                           capture_output=True, text=True, check=False)
    found = re.search(r"encoding: \[([0-9a-fx,]+)\]", shown.stdout)
    return int.from_bytes(bytes(int(b, 16) for b in found[1].split(",")[:4]), "little") if found else None


@pytest.mark.parametrize("cpu", VERSIONS)
def test_words_have_llvms_names(cpu):
    mc = assembler()
    known = subprocess.run([mc, "-triple=amdgcn-amd-amdhsa", "-mcpu=help"], input="", capture_output=True, text=True,
                           check=False)
    if cpu not in known.stderr + known.stdout:
        raise SkipTest(f"{mc} does not know {cpu}: a newer LLVM does")
    words = {text: word_of(mc, cpu, text) for text in INSTRUCTIONS}
    words = {text: word for text, word in words.items() if word is not None}
    lines = "".join(f"{VERSIONS[cpu]} {word:#x}\n" for word in words.values())
    named = subprocess.run([PROGRAM], input=lines, capture_output=True, text=True, check=True).stdout.split()
    expected = [INSTRUCTIONS[text] or text.split()[0] for text in words]
    print(f"  {cpu}: {len(words)} instructions")
    assert len(words) > 15 and dict(zip(words, named)) == dict(zip(words, expected))
