#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Loops that poll memory: lib/waits tells of each what NVIDIA's disassembler shows of it, and finds all short ones."""
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

PROGRAM = BIN.parent / "tests" / "sass_polls"
CUBINS = [*sorted((ROOT / "sim/scenes/cuda").rglob("*-sm_90.cubin")), *sorted((ROOT / "tests/data/cubin").glob("*.cubin"))]
ARCHS = ["sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90"]
BRANCH = re.compile(r"^(@!?P\d) BRA(\.U)? `\((\.L_\w+)\)$")
# Another way out of a loop.
LEAVES = re.compile(r"^(@!?P\d) (EXIT|BRA `\((\.L_\w+)\))$")
LOAD = re.compile(r"^(LDG|LD|LDS|ATOMG\.E\.CAS)\b([\w.]*) (?:PT, )?(R\d+), (?:desc\[UR\d+\])?\[([^\]]+)\](?:, R\w+, R\w+)?$")
COMPARE = re.compile(r"^ISETP\.(\w+)(\.U32)?\.AND(\.EX)? (P\d), PT, (R\w+), ([^,]+), PT(?:, (P\d))?$")
LOGIC = re.compile(r"^LOP3\.LUT (?:(P\d), )?(R\w+), (R\w+), ([^,]+), RZ, 0x(3c|c0), !PT$")
ADD = re.compile(r"^(?:@P\d )?ATOM\.E\.ADD\.STRONG\.GPU PT, R\d+, (?:desc\[UR\d+\])?\[(U?R)(\d+)(?:\.64)?\+0x4\], R\d+$")
WRITTEN = re.compile(r"^(?:@!?U?P\d )?[A-Z]([\w.]*) (?:PT, |U?P\d, )?(U?R)(\d+)\b")
MOVED = re.compile(r"^(?:IMAD\.MOV\.U32 \w+, RZ, RZ|IMAD\.U32 \w+, RZ, RZ|MOV \w+|LDC(?:\.64)? \w+|ULDC(?:\.64)? \w+), "
                   r"(c\[0x0\]\[0x\w+\]|U?R\w+|-?0x\w+)$")
NOTHING = re.compile(r"^(YIELD|NOP|NANOSLEEP|CCTL|MEMBAR|ERRBAR|HFMA2|@!PT SHFL|@!PT LDC)")
# How lanes that go on meet before sm_80: a branch out, and then these.
MEETING = re.compile(r"(?:@!PT SHFL\.IDX PT, RZ, RZ, RZ, RZ\n)?VOTE\.ANY (R\d+), PT, PT\nYIELD\n(?:@!PT LDC RZ, c\[0x0\]\[RZ\]\n)?"
                     r"VOTEU?\.ANY (U?R\d+), U?PT, PT\nLOP3\.LUT (P\d), RZ, \1, \2, RZ, 0xc, !PT\n@!\3 BRA\.U [^\n]*\nBRA ([^\n]*)")
# Where the launch's constants have the address of its workspace: its lower half, and its upper one.
WORKSPACES = {"sm_90": ("0x48", "0x44"), **dict.fromkeys(ARCHS[:-1], ("0x90", "0x8c"))}
NEGATED = {"ne": "eq", "eq": "ne", "lt": "gte", "gte": "lt", "gt": "lte", "lte": "gt"}
SWAPPED = {"ne": "ne", "eq": "eq", "lt": "gt", "gt": "lt", "lte": "gte", "gte": "lte"}
NAMES = {"NE": "ne", "EQ": "eq", "LT": "lt", "LE": "lte", "GT": "gt", "GE": "gte"}


def sections_of(cubin):
    """{name of a section of an ELF file: what is in it}"""
    shown = subprocess.run(["readelf", "-SW", cubin], capture_output=True, text=True, check=True).stdout
    data = cubin.read_bytes()
    return {name: data[int(at, 16):int(at, 16) + int(size, 16)]
            for name, at, size in re.findall(r"(\S+)\s+PROGBITS\s+\w+\s+(\w+)\s+(\w+)", shown)}


def operand(text):
    text = text.replace(".reuse", "")
    if text in ("RZ", "URZ"):
        return "0x0"
    if match := re.fullmatch(r"c\[0x0\]\[(0x\w+)\]", text):
        return "c" + match[1]
    return text if text[0] in "RU" else hex(int(text, 16) & 0xFFFFFFFF)


def written(text):
    """The registers that an instruction writes."""
    found = None if BRANCH.match(text) or text.startswith("@!PT") else WRITTEN.match(text)
    return [f"{found[2]}{int(found[3]) + i}" for i in range(2 if ".64" in found[1] else 1)] if found else []


def origin(texts, at, register):
    """The constant that a register holds, by the last instruction in front that writes it; or None."""
    while (at := at - 16) >= 0:
        if register in written(texts[at]):
            moved = MOVED.match(texts[at])
            if not moved or moved[1][0] == "c":
                return moved and ".64" not in texts[at] and operand(moved[1])
            register = moved[1]
    return None


def has_workspace(arch, texts, at, base):
    return tuple(o if o[0] == "c" else origin(texts, at, o) for o in base) == tuple("c" + c for c in WORKSPACES[arch])


def is_grid(arch, texts, told):
    """Do blocks of a cooperative launch wait there?  The word of the workspace turns its sign, and was added to."""
    begin, space, offset, op, with_, toggle = (told[i] for i in (0, 3, 5, 10, 11, 14))
    if (space, offset, op, with_) != ("LD", 4, "lte.s", "0xffffffff") or toggle[0] != "R":
        return False
    adds = [(at, ADD.match(texts[at])) for at in range(0, begin, 16) if ADD.match(texts[at])]
    return has_workspace(arch, texts, begin, told[6:8]) and bool(adds) and \
        has_workspace(arch, texts, adds[-1][0], [f"{adds[-1][1][1]}{int(adds[-1][1][2]) + i}" for i in (0, 1)])


class Round:
    """What registers hold in one round of a loop: what does not change, or the word and what was made of it."""

    def __init__(self, texts, begin, branch):
        self.changing = {register for at in range(begin, branch, 16) for register in written(texts[at])}
        self.known, self.words = {}, {}

    def fixed(self, text):
        text = operand(text)
        return self.known.get(text) or (None if text in self.changing else text)

    def write(self, text):
        for register in written(text):
            self.known.pop(register, None)
            self.words.pop(register, None)

    def move(self, text):
        found = MOVED.match(text)
        value = found and self.fixed(found[1])
        self.write(text)
        for i, register in enumerate(written(text) if value else []):
            self.known[register] = f"c{int(value[1:], 16) + 4 * i:#x}" if i else value
        return bool(value)

    def load(self, found):
        """Halves of the address, what is added, how far the first is shifted, and the offset."""
        parts = [(p.split(".")[0], p.split(".")[1:]) for p in found[4].split("+")]
        offset = next((int(p, 16) for p, _ in parts if re.fullmatch(r"-?0x\w+", p)), 0)
        lane = next(((p, how) for p, how in parts if p[0] == "R"), ("0x0", []))
        uniform = next((p for p, _ in parts if p[0] == "U"), None)
        shift = 2 if lane[1] == ["X4"] else 0
        if found[1] == "LDS":
            base = [self.fixed(lane[0]), "-", self.fixed(uniform) if uniform else "-"]
        else:
            first = uniform or lane[0]
            base = [*(self.fixed(re.sub(r"\d+", lambda m: str(int(m[0]) + i), first)) for i in (0, 1)),
                    self.fixed(lane[0]) if uniform and lane[0] != "0x0" else "-"]
        return None if None in base else (offset, base, shift)


def loop(texts, begin, branch, condition, end, leads_out):
    """What a loop says, by its text: of those with loads, compares, a way out behind each, and what does nothing else; or None."""
    state = Round(texts, begin, branch)
    load = compare = upper = None
    loads, words = [], []
    leaves = condition.startswith("@!")
    for at in range(begin, branch, 16):
        text = texts[at]
        if end > branch + 16 and (found := re.match(r"^(@!?P\d) BRA ", text)):
            meeting = MEETING.fullmatch("\n".join(texts[k] for k in range(at + 16, end, 16)))
            if not meeting or not compare:
                return None
            condition, leaves = found[1], not found[1].startswith("@!")
            break
        if compare and (found := LEAVES.match(text)) and (found[2] == "EXIT" or leads_out(found[3], end)):
            words.append(word_of(begin, end, found[1], not found[1].startswith("@!"), load, compare, upper))
            load = compare = upper = None
            if not words[-1]:
                return None
            continue
        if found := LOAD.match(text):
            address = state.load(found)
            if not address or (loads and "ATOMG" in found[1] + loads[0][1][1]):
                return None
            loads.append((at, found, address))
            state.write(text)
            state.words[found[3]] = ("-", "-", False, loads[-1])
            if ".64" in found[2]:
                state.words[written(text)[1]] = ("-", "-", True, loads[-1])
        elif found := COMPARE.match(text):
            first = found[5] in state.words
            word = state.words.get(found[5]) or state.words.get(operand(found[6]))
            with_ = state.fixed(found[6] if first else found[5])
            if not word or not with_ or word[2] != bool(found[3]) or (upper if found[3] else compare):
                return None
            told, load = (found[1], found[2], found[4], with_, word, first), word[3]
            upper, compare = (told, compare) if found[3] else (None, told)
        elif loads and not compare and (found := LOGIC.match(text)) and (found[3] in state.words) != (found[4] in state.words):
            other = state.fixed(found[4] if found[3] in state.words else found[3])
            mask, toggle, _, of = state.words.get(found[3]) or state.words.get(found[4])
            made = (mask, other, False, of) if found[5] == "3c" else (other, toggle, False, of)
            if not other or toggle != "-" or (found[5] == "c0" and mask != "-"):
                return None
            if found[1]:
                compare, load = ("NE", "", found[1], "0x0", made, True), of
            else:
                state.write(text)
                state.words[found[2]] = made
        elif not NOTHING.match(text) and not state.move(text):
            return None
    words.append(word_of(begin, end, condition, leaves, load, compare, upper))
    return words if words[-1] and len(words) <= 4 else None


def word_of(begin, end, condition, leaves, load, compare, upper):
    """What ends a loop, as a line of sass_polls; or None."""
    if not load or not compare or (".64" in load[1][2]) != bool(upper) or condition.lstrip("@!") != compare[2]:
        return None
    if not re.search(r"STRONG\.(GPU|SYS)", load[1][2]) and load[1][1] != "LDS":
        return None
    small = re.search(r"\.([US])(8|16)\b", load[1][2])
    if small and (small[1] == "S" and compare[4][:2] != ("-", "-") or compare[4][1] != "-"):
        return None
    size = int(small[2]) // 8 * (-1 if small[1] == "S" else 1) if small else 8 if upper else 4
    at, found, (offset, base, shift) = load
    last = upper or compare
    op = NAMES[last[0]] if last[5] else SWAPPED[NAMES[last[0]]]
    op = op if leaves else NEGATED[op]
    signed = ".s" if not last[1] and op not in ("eq", "ne") else ""
    return (begin, at, end, found[1].replace(".E", ""), size, offset, *base, shift, op + signed,
            compare[3], upper[3] if upper else "-", *compare[4][:2])


def theirs_of(arch, name, texts, labels):
    """All loops of a section that its text says."""
    all_of_them = []
    for at, text in texts.items():
        found = BRANCH.match(text)
        if found and labels[found[3]][0] == name and labels[found[3]][1] < at:
            told = loop(texts, labels[found[3]][1], at, found[1], at + (32 if found[2] else 16),
                        lambda label, end: labels[label][0] == name and labels[label][1] >= end) or []
            all_of_them += [(*word, "grid" if len(told) == 1 and is_grid(arch, texts, word) else "-") for word in told]
    return all_of_them


def ours_of(arch, cubin, names):
    """{name of a section: all loops in it}; the program reads all of them."""
    sections = sections_of(cubin)
    pieces = [sections[name] for name in names]
    shown = subprocess.run([PROGRAM, arch, *(str(len(p)) for p in pieces)], input=b"".join(pieces), capture_output=True,
                           check=True).stdout.decode()
    told = shown.split("end\n")
    assert len(told) == len(pieces) + 1 and not told.pop(), shown
    return {name: [tuple(int(w) if i in (0, 1, 2, 4, 5, 9) else w for i, w in enumerate(line.split()))
                   for line in text.splitlines()] for name, text in zip(names, told)}


def test_loops_are_nvdisasms():
    nvdisasm = fetch("cuda-disasm") / "usr/bin/nvdisasm"
    n = instructions = 0
    grids = []
    for cubin in CUBINS:
        arch = (re.search(r"sm_\d+", cubin.name) or ["sm_90"])[0]
        sections, labels = texts_of(nvdisasm, cubin)
        ours = ours_of(arch, cubin, list(sections))
        for name, texts in sections.items():
            theirs = theirs_of(arch, name, texts, labels)
            assert ours[name] == theirs, (cubin.name, name)
            n += len(theirs)
            grids += [(cubin.name, name) for told in theirs if told[-1] == "grid"]
            instructions += len(texts)
    print(f"  {n} loops, {len(grids)} of grids, in {instructions} instructions of {len(CUBINS)} cubins")
    apart = [".text.reduce_apart"] * 2
    assert [section for _, section in sorted(grids)] == [".text.reduce", *apart, ".text.reduce_own"], grids
    assert n >= 4 and instructions > 1000


# Loads, of which each lane has its own word or all have the same; the word is what %r1 is compared with.
LOADS = {"volatile": "ld.volatile.global", "relaxed": "ld.relaxed.gpu.global", "acquire": "ld.acquire.gpu", "system": "ld.acquire.sys",
         "shared": "ld.volatile.shared"}
ADDRESSES = {"same": "mov.u32 %r2, 0;", "each": "mov.u32 %r2, %tid.x;"}
# What else is in the loop: another word is loaded, and not compared.
SLEEPS = {"": "", "sleeps": "nanosleep.u32 100;", "stamps": "ld.volatile.global.u32 %r5, [%rd3];"}


def kernel(name, load, address, bits, compare, sleep, offset):
    """A loop over a word of so many bits, until it compares so with an argument; small ones fill a register."""
    space = "shared" if "shared" in load else "global"
    base = "cvt.u64.u32 %rd1, %r2; mov.u64 %rd2, words; add.u64 %rd1, %rd1, %rd2;" if space == "shared" else \
        "ld.param.u64 %rd1, [words_at]; mul.wide.u32 %rd2, %r2, 8; add.u64 %rd1, %rd1, %rd2;"
    wide = max(bits, 32)
    register = {32: "%r", 64: "%q"}[wide]
    kind = f"{compare[-1]}{wide}" if compare[-2:] in (".u", ".s") else f"b{wide}"
    sign = "s" if compare[-2:] == ".s" else "u"
    return f"""
.visible .entry {name}(.param .u64 words_at, .param .u64 with, .param .u64 out)
{{
 .reg .pred %p<2>; .reg .b32 %r<9>; .reg .b64 %rd<9>, %q<9>;
 {ADDRESSES[address]} {base} mov.u32 %r5, 0; ld.param.u64 %rd3, [out];
 ld.param.u{wide} {register}3, [with];
AGAIN:
 {sleep}
 {load}.{sign}{bits} {register}4, [%rd1+{offset}];
 setp.{compare.split(".")[0]}.{kind} %p1, {register}4, {register}3;
 @!%p1 bra AGAIN;
 ld.param.u64 %rd5, [out];
 add.u32 %r2, %r2, %r5;
 st.global.u32 [%rd5], %r2;
 ret;
}}"""


def grid(name, arrives):
    """As grid.sync(): thread 0 of each block adds to a word, and waits until its highest bit has changed."""
    return f"""
.visible .entry {name}(.param .u64 out)
{{
 .reg .pred %p<4>; .reg .b32 %r<20>; .reg .b64 %rd<8>;
 mov.u32 %r1, {"%envreg1" if arrives else "%clock"}; mov.u32 %r2, %envreg2; mov.b64 %rd1, {{%r2, %r1}};
 mov.u32 %r3, %tid.x; setp.ne.s32 %p1, %r3, 0;
 @%p1 bra DONE;
 mov.u32 %r5, %ctaid.x; setp.eq.s32 %p2, %r5, 0; selp.b32 %r8, 77, 1, %p2;
 add.s64 %rd2, %rd1, 4; fence.acq_rel.gpu; atom.add.gpu.u32 %r9, [%rd2], %r8;
AGAIN:
 ld.acquire.gpu.u32 %r10, [%rd2]; xor.b32 %r11, %r10, %r9; setp.gt.s32 %p3, %r11, -1;
 @%p3 bra AGAIN;
DONE:
 barrier.sync 0; ld.param.u64 %rd3, [out]; st.global.u32 [%rd3], %r3;
 ret;
}}"""


def any_of(name, flags, leaves):
    """A loop that any of several words ends."""
    back = "".join(f"ld.acquire.gpu.u32 %r{i}, [%rd{i}]; setp.ne.u32 %p{i}, %r{i}, 0; @%p{i} {leaves};\n" for i in range(flags))
    arguments = "".join(f"ld.param.u64 %rd{i}, [p{i}];\n" for i in range(flags))
    return f"""
.visible .entry {name}({", ".join(f".param .u64 p{i}" for i in range(5))}, .param .u64 with, .param .u64 out)
{{
 .reg .pred %p<9>; .reg .b32 %r<9>; .reg .b64 %rd<9>, %q<9>;
 {arguments} ld.param.u64 %rd5, [p4]; ld.param.u64 %q1, [with];
AGAIN:
 {back} ld.volatile.global.u64 %q2, [%rd5]; setp.lt.u64 %p8, %q2, %q1;
 @%p8 bra AGAIN;
DONE:
 ld.param.u64 %rd6, [out]; st.global.u32 [%rd6], 1;
 ret;
}}"""


# How many words, and how it is left.
ANY = {f"any{n}_{leaves[:3]}": (n, leaves) for n in (1, 2, 3, 4) for leaves in ("exit", "bra DONE")}


def kernels():
    rows = [(load, address, bits, compare, sleep, offset) for load in LOADS for address in ADDRESSES for bits in (8, 16, 32, 64)
            for compare in ("eq", "ne", "lo.u", "ge.u", "lt.s", "gt.s") for sleep, offset in (("", 0), ("sleeps", 4 * bits), ("stamps", 8))]
    return {f"k{i}": kernel(f"k{i}", LOADS[load], address, bits, compare, SLEEPS[sleep], offset)
            for i, (load, address, bits, compare, sleep, offset) in enumerate(rows)}


@pytest.mark.parametrize("arch", ARCHS)
def test_loops_of_each_device_are_told(arch, tmp_path):
    """What ptxas makes of all of these is found, and is as the text says."""
    ptxas, nvdisasm = fetch("cuda-ptxas") / "usr/bin/ptxas", fetch("cuda-disasm") / "usr/bin/nvdisasm"
    source, cubin = tmp_path / "loops.ptx", tmp_path / f"loops-{arch}.cubin"
    names = kernels()
    head = ".version 8.4\n.target sm_70\n.address_size 64\n.extern .shared .align 8 .b8 words[];\n"
    source.write_text(head + "".join(names.values()) + grid("grid", True) + grid("no_grid", False) +
                      "".join(any_of(name, *of) for name, of in ANY.items()))
    subprocess.run([ptxas, f"-arch={arch}", source, "-o", cubin], check=True, timeout=300, stdin=subprocess.DEVNULL)
    sections, labels = texts_of(nvdisasm, cubin)
    ours = ours_of(arch, cubin, list(sections))
    untold = []
    for name, texts in sections.items():
        theirs = theirs_of(arch, name, texts, labels)
        assert ours[name] == theirs, (arch, name)
        if name.removeprefix(".text.") in ANY:
            words = ANY[name.removeprefix(".text.")][0] + 1
            # More words are not told.
            assert len(theirs) == (words if words <= 4 else 0), (arch, name, theirs)
            continue
        untold += [] if theirs else [name]
        if "grid" in name:
            assert [told[-1] for told in theirs] == ["grid" if name == ".text.grid" else "-"], (arch, name, theirs)
    print(f"  {len(sections)} kernels, of which {len(untold)} have no loop that is told")
    assert not untold, (arch, untold)
