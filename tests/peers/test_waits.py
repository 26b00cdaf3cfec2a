#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Instructions by which waves wait, and loops that poll: lib/waits has them as LLVM does, for every CPU that LLVM knows.

Some of the code of RCCL's library too; with GPU_AGENT_WORDS=all, all of it for three GPUs, which are 9 million instructions.
"""
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from unittest import SkipTest

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest

from harness import BIN
from peers import clang, code_objects, fetch

PROGRAM = BIN.parent / "tests" / "waits_words"
VERSIONS = {"gfx900": 90000, "gfx906": 90006, "gfx908": 90008, "gfx90a": 90010, "gfx940": 90400, "gfx942": 90402,
            "gfx950": 90500, "gfx1010": 100100, "gfx1030": 100300, "gfx1100": 110000, "gfx1150": 110500,
            "gfx1200": 120000, "gfx1250": 120500}
# What is assembled, and what it is called where that is not the same.
INSTRUCTIONS = {
    "s_barrier": None, "s_barrier_signal -1": None, "s_barrier_signal_isfirst -1": "s_barrier_signal",
    "s_barrier_wait -1": None, "s_barrier_wait 1": None, "s_sleep 1": None, "s_sleep_var s1": None, "s_monitor_sleep 1": None,
    "s_waitcnt vmcnt(0)": None, "s_waitcnt lgkmcnt(0)": None, "s_waitcnt_vscnt null, 0x0": None,
    "s_wait_loadcnt 0x0": None, "s_wait_storecnt 0x0": None, "s_wait_samplecnt 0x0": None, "s_wait_bvhcnt 0x0": None,
    "s_wait_dscnt 0x0": None, "s_wait_kmcnt 0x0": None, "s_wait_loadcnt_dscnt 0x0": None, "s_wait_storecnt_dscnt 0x0": None,
    "s_wait_asynccnt 0x0": None, "s_wait_tensorcnt 0x0": None,
    "s_endpgm": None, "s_endpgm_saved": None, "s_setpc_b64 s[2:3]": None, "s_sethalt 1": None, "s_trap 1": None,
    "s_branch -2": None, "s_cbranch_scc0 -2": None, "s_cbranch_scc1 -2": None, "s_cbranch_vccz -2": None,
    "s_cbranch_vccnz -2": None, "s_cbranch_execz -2": None, "s_cbranch_execnz -2": None,
    # None of these waits, and some have the word of one that does on another target.
    "s_nop 0": "-", "s_wait_idle": "-", "s_waitcnt_depctr 0xffff": "-", "s_sendmsg sendmsg(MSG_INTERRUPT)": "-",
    "s_wakeup": "-", "s_setprio 1": "-", "s_mov_b32 s0, s1": "-", "v_mov_b32 v0, v1": "-", "s_getpc_b64 s[0:1]": "-",
}


SOURCE = """
typedef unsigned u32; typedef unsigned long u64;
#define GLOBAL __attribute__((address_space(1)))
#define KERNEL extern "C" __attribute__((amdgpu_kernel)) void
#define LOAD(p, order, scope) __scoped_atomic_load_n(p, __ATOMIC_##order, __MEMORY_SCOPE_##scope)
#define SLEEP __builtin_amdgcn_s_sleep
#define LANE __builtin_amdgcn_workitem_id_x()
KERNEL flag_eq(GLOBAL u32 *p, u32 want) { while (LOAD(p, RELAXED, SYSTEM) != want); }
KERNEL flag_ge(GLOBAL u32 *p, u32 want) { while (LOAD(p, ACQUIRE, SYSTEM) < want) SLEEP(2); }
KERNEL flag_u64(GLOBAL u64 *p, u64 want) { while (LOAD(p, ACQUIRE, SYSTEM) != want) SLEEP(2); }
KERNEL flag_nz(GLOBAL u32 *p) { while (!LOAD(p, ACQUIRE, DEVICE)); }
KERNEL flag_sge(GLOBAL int *p, int want) { while (LOAD(p + 3, RELAXED, SYSTEM) < want); }
KERNEL flag_bit(GLOBAL u32 *p) { while (!(LOAD(p + 3, RELAXED, SYSTEM) & 4)) SLEEP(1); }
KERNEL perlane(GLOBAL u32 *p, u32 want) { GLOBAL u32 *q = p + LANE * 4; while (LOAD(q, RELAXED, SYSTEM) != want); }
KERNEL perlane_ge(GLOBAL u64 *p, u64 want) { GLOBAL u64 *q = p + LANE * 4; while (LOAD(q, ACQUIRE, SYSTEM) < want) SLEEP(1); }
KERNEL lock(GLOBAL u32 *p)
{
    u32 e;
    do { e = 0; } while (!__scoped_atomic_compare_exchange_n(p, &e, 1u, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED,
                                                             __MEMORY_SCOPE_DEVICE));
}
KERNEL grid(GLOBAL u32 *p)
{
    if (LANE) return;
    u32 old = __scoped_atomic_fetch_add(p, 1, __ATOMIC_ACQ_REL, __MEMORY_SCOPE_DEVICE);
    while (((LOAD(p, RELAXED, DEVICE) ^ old) & 0xffff0000) == 0) SLEEP(1);
}
"""
EXPECTED = {"flag_eq": "eq u32 at 0", "flag_ge": "gte u32 at 0 sleeps", "flag_u64": "eq u64 at 0 sleeps", "flag_nz": "ne u32 at 0",
            "flag_sge": "gte i32 at 12", "flag_bit": "ne u32 at 12 sleeps", "perlane": "eq u32 at 0 each",
            "perlane_ge": "gte u64 at 0 each sleeps", "lock": "eq u32 at 0 each lock", "grid": "gt u32 at 0 each sleeps"}


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
    if not re.search(rf"^ *{cpu} +- ", known.stderr + known.stdout, re.M):
        raise SkipTest(f"{mc} does not know {cpu}: a newer LLVM does")
    words = {text: word_of(mc, cpu, text) for text in INSTRUCTIONS}
    words = {text: word for text, word in words.items() if word is not None}
    lines = "".join(f"{VERSIONS[cpu]} {word:#x}\n" for word in words.values())
    named = subprocess.run([PROGRAM], input=lines, capture_output=True, text=True, check=True).stdout.split()
    expected = [INSTRUCTIONS[text] or text.split()[0] for text in words]
    print(f"  {cpu}: {len(words)} instructions")
    assert len(words) > 15 and dict(zip(words, named)) == dict(zip(words, expected))


def compiler():
    """The newest clang that knows the scopes of atomics, with its llvm-objdump."""
    for n in range(30, 17, -1):
        if shutil.which(f"clang-{n}") and shutil.which(f"llvm-objdump-{n}"):
            return f"clang-{n}", f"llvm-objdump-{n}"
    raise SkipTest("no clang 18 or newer with llvm-objdump here: apt-get install clang-19 llvm-19")


def loops(listing):
    """Of each function the words of its first loop, from the target of the branch on."""
    for text in re.split(r"\n(?=[0-9a-f]+ <)", listing)[1:]:
        name = re.search(r"<(\w+)>", text)[1]
        lines = [(m[1], m[2], int(m[3], 16), m[4].split())
                 for m in re.finditer(r"^\t(\S+)(.*?)// ([0-9A-F]+): ([0-9A-F ]+)", text, re.M)]
        for mnemonic, operands, address, _ in lines:
            if not mnemonic.startswith(("s_cbranch", "s_branch")) or int(operands.split()[0]) < 0x8000:
                continue
            target = address + 4 + (int(operands.split()[0]) - 0x10000) * 4
            yield name, [word for line in lines if target <= line[2] <= address for word in line[3]]
            break


@pytest.mark.parametrize("cpu", sorted(set(VERSIONS) - {"gfx940"}))
def test_loops_of_clang_are_explained(cpu):
    clang, objdump = compiler()
    with tempfile.TemporaryDirectory() as directory:
        source, compiled = pathlib.Path(directory, "loops.cpp"), pathlib.Path(directory, "loops.o")
        source.write_text(SOURCE, encoding="ascii")
        done = subprocess.run([clang, "-x", "c++", "-target", "amdgcn-amd-amdhsa", f"-mcpu={cpu}", "-O2", "-nogpulib",
                               "-ffreestanding", "-c", source, "-o", compiled], capture_output=True, text=True, check=False)
        if "unsupported" in done.stderr or "unknown target CPU" in done.stderr or "not a valid" in done.stderr:
            raise SkipTest(f"{clang} does not know {cpu}")
        assert done.returncode == 0, done.stderr
        found = dict(loops(subprocess.run([objdump, "-d", compiled], capture_output=True, text=True, check=True).stdout))
    lines = "".join(f"{VERSIONS[cpu]} {' '.join('0x' + word for word in words)}\n" for words in found.values())
    told = subprocess.run([PROGRAM], input=lines, capture_output=True, text=True, check=True).stdout.splitlines()
    print(f"  {cpu}: {len(found)} loops of {clang}")
    assert dict(zip(found, told)) == EXPECTED


NAMES = {text.split()[0] for text, name in INSTRUCTIONS.items() if name != "-"} | {"ds_gws_barrier"}
# Bytes of each code object, which have 27 MB and more.
SLICE = 1 << 20


def words_of(objdump, environment, path, end):
    """How often each first word stands for which instruction, by LLVM."""
    end = [] if os.environ.get("GPU_AGENT_WORDS") == "all" else [f"--stop-address={end:#x}"]
    shown = subprocess.Popen([objdump, "-d", *end, path], env=environment, stdout=subprocess.PIPE, text=True)
    found = collections.Counter()
    with shown:
        for line in shown.stdout:
            instruction, _, encoding = line.partition("//")
            if encoding and line[0] == "\t":
                found[encoding.split()[1], instruction.split()[0]] += 1
    assert shown.returncode == 0
    return found


@pytest.mark.parametrize("cpu", ["gfx90a", "gfx1030", "gfx1100"])
def test_words_of_rccl_have_llvms_names(cpu):
    library = fetch("rccl") / "usr/lib/x86_64-linux-gnu/librccl.so.1.0"
    llvm, environment = clang()
    with tempfile.NamedTemporaryFile(suffix=".co") as f:
        f.write(next(data for name, data in code_objects(library) if name == cpu))
        f.flush()
        found = words_of(llvm / "bin/llvm-objdump", environment, f.name, SLICE)
    lines = "".join(f"{VERSIONS[cpu]} 0x{word}\n" for word, _ in found)
    named = subprocess.run([PROGRAM], input=lines, capture_output=True, text=True, check=True).stdout.split()
    wrong, told = collections.Counter(), collections.Counter()
    for ((word, name), n), got in zip(found.items(), named):
        if got != (name if name in NAMES else "-"):
            wrong[word, name, got] += n
        told[got] += n
    print(f"  {cpu}: {sum(found.values())} instructions, of which {dict(told)}")
    assert not wrong and len(named) == len(found) and told["s_barrier"] and told["s_waitcnt"]
