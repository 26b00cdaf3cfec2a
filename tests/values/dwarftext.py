# SPDX-License-Identifier: MIT
"""A second reader of AMD's variables: llvm-dwarfdump's text, and the rules written down again, without code of lib/values."""
from __future__ import annotations

import dataclasses
import functools
import re
import subprocess
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

MASK = (1 << 64) - 1
TAIL = ["DW_OP_lit1", "DW_OP_swap", "DW_OP_xderef"]
SCOPES = ("DW_TAG_subprogram", "DW_TAG_inlined_subroutine", "DW_TAG_lexical_block")


class Die:
    def __init__(self, offset: int, tag: str, parent: Optional["Die"]) -> None:
        self.offset, self.tag, self.parent = offset, tag, parent
        self.attributes: Dict[str, str] = {}
        self.children: List[Die] = []

    def number(self, name: str) -> Optional[int]:
        found = re.match(r"\((0x[0-9a-f]+|\d+)\)", self.attributes.get(name, ""))
        return int(found[1], 0) if found else None


class File:
    """One object with one compile unit or more."""

    def __init__(self, path: Any, dwarfdump: Any, environment: Any = None) -> None:
        def dump(option: str) -> str:  # which complains of a cubin, and prints
            return subprocess.run([str(dwarfdump), option, str(path)], text=True, capture_output=True, env=environment).stdout
        self.dies: Dict[int, Die] = {}
        self.units: List[Die] = []
        self.read_dies(dump("--debug-info").splitlines())
        self.addresses = [int(a, 16) for a in re.findall(r"^(0x[0-9a-f]{16})$", dump("--debug-addr"), re.M)]
        self.rows = [(int(m[1], 16), m[2].split()) for m in
                     re.finditer(r"^(0x[0-9a-f]{16}) +\d+ +\d+ +\d+ +\d+ +\d+ +(?:\d+ +)?(.*)$", dump("--debug-line"), re.M)]

    def read_dies(self, lines: List[str]) -> None:
        stack: List[Die] = []
        attribute, die = "", None
        for line in lines:
            found = re.match(r"0x([0-9a-f]+):( +)(DW_TAG_\w+|NULL)", line)
            if found:
                depth = (len(found[2]) - 1) // 2
                del stack[depth:]
                die = Die(int(found[1], 16), found[3], stack[-1] if stack else None)
                if found[3] != "NULL":
                    self.dies[die.offset] = die
                    (stack[-1].children if stack else self.units).append(die)
                    stack.append(die)
                continue
            found = re.match(r" +(DW_AT_\w+)\t?\s*(.*)", line)
            if found and die:
                attribute = found[1]
                die.attributes[attribute] = found[2]
            elif die and line.strip():
                die.attributes[attribute] += "\n" + line.strip()

    def ranges(self, die: Die) -> List[Tuple[int, int]]:
        low, high = die.number("DW_AT_low_pc"), die.number("DW_AT_high_pc")
        if low is not None and high is not None:
            return [(low, high)]
        return [(int(a, 16), int(b, 16)) for a, b in
                re.findall(r"\[(0x[0-9a-f]+), (0x[0-9a-f]+)\)", die.attributes.get("DW_AT_ranges", ""))]

    def covers(self, die: Die, pc: int) -> bool:
        return any(a <= pc < b for a, b in self.ranges(die))

    def refer(self, die: Die, name: str) -> Optional[Die]:
        offset = die.number(name) if name in die.attributes else None
        if name in die.attributes and offset is None:
            found = re.match(r"\((0x[0-9a-f]+)", die.attributes[name])
            offset = int(found[1], 16) if found else None
        return self.dies.get(offset) if offset is not None else None

    def get(self, die: Die, name: str) -> Optional[str]:
        for _ in range(8):
            if name in die.attributes:
                return die.attributes[name]
            origin = self.refer(die, "DW_AT_abstract_origin") or self.refer(die, "DW_AT_specification")
            if not origin:
                return None
            die = origin
        return None

    @functools.cached_property
    def functions(self) -> List[Die]:
        """Those with code, of all namespaces and classes."""
        found: List[Die] = []
        todo = list(self.units)
        while todo:
            for c in todo.pop().children:
                if c.tag == "DW_TAG_subprogram" and self.ranges(c):
                    found.append(c)
                elif c.tag in ("DW_TAG_namespace", "DW_TAG_class_type", "DW_TAG_structure_type"):
                    todo.append(c)
        return found

    def chain(self, pc: int) -> List[Die]:
        """Function and what is in it around the address, outermost first."""
        for function in self.functions:
            if self.covers(function, pc):
                found = [function]
                while True:
                    inside = [c for c in found[-1].children if c.tag in SCOPES and self.covers(c, pc)]
                    if not inside:
                        return found
                    found.append(inside[0])
        return []

    def levels(self, pc: int) -> List[List[Die]]:
        """The same by inlined function, innermost first."""
        levels: List[List[Die]] = []
        for die in self.chain(pc):
            if die.tag != "DW_TAG_lexical_block":
                levels.append([])
            levels[-1].append(die)
        return levels[::-1]

    def body(self, function: Die) -> int:
        low, high = self.ranges(function)[0]
        rows = [(a, f) for a, f in self.rows if low <= a < high]
        marked = [a for a, f in rows if "prologue_end" in f]
        return (marked + [a for a, f in rows if a > low and "is_stmt" in f] + [low])[0]

    def size(self, die: Die) -> int:
        kind = self.refer(die, "DW_AT_type")
        origin = self.refer(die, "DW_AT_abstract_origin")
        if not kind and origin:
            return self.size(origin)
        if not kind:
            return 0
        size = kind.number("DW_AT_byte_size")
        if size is not None:
            return size
        if kind.tag in ("DW_TAG_pointer_type", "DW_TAG_reference_type"):
            return 8
        count = 1
        for c in kind.children:
            if c.tag == "DW_TAG_subrange_type":
                count *= c.number("DW_AT_count") or 0
        return count * self.size(kind)


@dataclasses.dataclass
class Wave:
    """What is in registers and memory."""
    lanes: int
    lane: int
    scaled: bool
    register: Callable[[str, int, int], int]        # file ("s", "v", "a", "exec", "vcc"), number, lane
    memory: Callable[[str, int, int, int], bytes]   # space, address, size, lane


Bytes = List[Optional[int]]


class Unclear(Exception):
    """The expression says nothing that one could rely on."""


def register_of(name: str, wave: Wave) -> Tuple[str, int]:
    name = name.split("_LO16")[0]
    found = re.fullmatch(r"(SGPR|VGPR|AGPR)(\d+)", name)
    if found:
        return {"SGPR": "s", "VGPR": "v", "AGPR": "a"}[found[1]], int(found[2])
    if name in ("EXEC", "EXEC_LO", "VCC", "VCC_LO"):
        return name.split("_")[0].lower(), 0
    if not name.startswith("0x"):
        raise Unclear(name)
    n = int(name, 16)
    for first, letter in ((1, "exec"), (512, "vcc")) if wave.lanes == 32 else ((17, "exec"), (768, "vcc")):
        if n == first:
            return letter, 0
    rows = (1536, 2048) if wave.lanes == 32 else (2560, 3072)
    for first, letter in ((32, "s"), (rows[0], "v"), (rows[1], "a")):
        if first <= n < first + (64 if letter == "s" else 256):
            return letter, n - first
    if 1088 <= n < 1088 + 42:
        return "s", n - 1088 + 64
    raise Unclear(name)


def width(name: str, wave: Wave) -> int:
    """Bytes of a register: those with a bit for each lane may have eight."""
    return wave.lanes // 8 if register_of(name, wave)[0] in ("exec", "vcc") else 4


def content(name: str, wave: Wave) -> int:
    letter, n = register_of(name, wave)
    return sum(wave.register(letter, n + i, wave.lane) << 32 * i for i in range(width(name, wave) // 4))


def cut(value: int, size: int) -> bytes:
    return (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")


def calculate(ops: List[str], wave: Wave, file: File, unit: Die) -> int:
    """Arithmetic of plain numbers."""
    stack: List[int] = []
    signed = {"DW_OP_div", "DW_OP_shra"}
    for op in ops:
        word, *rest = op.split(" ")
        if re.fullmatch(r"DW_OP_lit\d+", word):
            stack.append(int(word[9:]))
        elif re.fullmatch(r"DW_OP_const(u|s|\d[us])", word):
            stack.append(int(rest[0].lstrip("+"), 0) & MASK)
        elif word.startswith("DW_OP_breg"):
            found = re.fullmatch(r"DW_OP_breg(?:x|\d+) (\S+?) ?([+-]\d+)", op)
            assert found, op
            stack.append(content(found[1], wave) + int(found[2]) & MASK)
        elif word == "DW_OP_plus_uconst":
            stack[-1] = stack[-1] + int(rest[0], 0) & MASK
        elif word == "DW_OP_convert":
            found = re.search(r'"DW_ATE_(unsigned|signed)\w*_(\d+)"', op)
            if not found:
                raise Unclear(op)
            bits = int(found[2])
            value = stack[-1] & ((1 << bits) - 1)
            if found[1] == "signed" and value >> (bits - 1):
                value -= 1 << bits
            stack[-1] = value & MASK
        elif word in ("DW_OP_not", "DW_OP_neg"):
            stack[-1] = (~stack[-1] if word == "DW_OP_not" else -stack[-1]) & MASK
        elif word == "DW_OP_dup":
            stack.append(stack[-1])
        elif word == "DW_OP_swap":
            stack[-2:] = stack[:-3:-1]
        else:
            y, x = stack.pop(), stack.pop()
            if word in signed:
                x = x - (1 << 64) if x >> 63 else x
                y = y - (1 << 64) if y >> 63 and word == "DW_OP_div" else y
            table = {"plus": lambda: x + y, "minus": lambda: x - y, "mul": lambda: x * y, "and": lambda: x & y,
                     "or": lambda: x | y, "xor": lambda: x ^ y, "shl": lambda: x << y if y < 64 else 0,
                     "shr": lambda: x >> y if y < 64 else 0, "shra": lambda: x >> min(y, 63),
                     "div": lambda: int(x / y) if abs(x) < 1 << 50 else (abs(x) // abs(y)) * (1 if (x < 0) == (y < 0) else -1),
                     "mod": lambda: x % y}
            stack.append(table[word.replace("DW_OP_", "")]() & MASK)
    if len(stack) != 1:
        raise Unclear(str(ops))
    return stack[0]


def one_place(ops: List[str], size: int, wave: Wave, file: File, chain: List[Die]) -> Bytes:
    """Bytes of a place that is no list of pieces."""
    first = ops[0]
    if first.startswith("DW_OP_fbreg"):
        rest = ops[1:]
        if rest not in ([], TAIL):
            raise Unclear(str(ops))
        base = re.fullmatch(r"\(DW_OP_regx (\S+)\)", chain[0].attributes.get("DW_AT_frame_base", ""))
        if not base:
            raise Unclear("no frame")
        at = content(base[1], wave)
        if wave.scaled:
            at //= wave.lanes
        at = at + int(first.split(" ")[1]) & 0xffffffff
        return list(wave.memory("private", at, size, wave.lane))
    if first.startswith(("DW_OP_addrx", "DW_OP_addr ")):
        at = int(first.split(" ")[1], 16)
        at = file.addresses[at] if first.startswith("DW_OP_addrx") else at
        if not ops[1:]:
            return list(wave.memory("global", at, size, wave.lane))
        if ops[1:] == ["DW_OP_lit2", "DW_OP_swap", "DW_OP_xderef"]:
            return list(wave.memory("shared", at & 0xffffffff, size, wave.lane))
        raise Unclear(str(ops))
    if first.startswith("DW_OP_implicit_value"):
        data = bytes(int(b, 16) for b in first.split(" ")[2:])
        return (list(data) + [None] * size)[:size]
    if re.match(r"DW_OP_reg(x|\d+) ", first) and len(ops) == 1:
        name = first.split(" ")[1]
        return (list(cut(content(name, wave), width(name, wave))) + [None] * size)[:size]
    is_value = ops[-1] == "DW_OP_stack_value"
    if is_value:
        ops = ops[:-1]
    tailed = ops[-3:] == TAIL
    if tailed:
        ops = ops[:-3]
    if not is_value and not tailed:
        raise Unclear(str(ops))
    bare = re.fullmatch(r"DW_OP_breg(?:x|\d+) (\S+?) ?\+0", ops[0]) if len(ops) == 1 else None
    if bare and register_of(bare[1], wave) not in (("s", 32), ("s", 33)):
        return (list(cut(content(bare[1], wave), width(bare[1], wave))) + [None] * size)[:size]
    if not is_value:
        raise Unclear(str(ops))
    return (list(cut(calculate(ops, wave, file, chain[0]), 8)) + [None] * size)[:size]


def expression(text: str, size: int, wave: Wave, file: File, chain: List[Die]) -> Bytes:
    ops = re.split(r", (?=DW_OP_)", text)
    found: Bytes = []
    part: List[str] = []
    if not any(op.startswith("DW_OP_piece") for op in ops):
        try:
            return one_place(ops, size, wave, file, chain)
        except Unclear:
            return [None] * size
    for op in ops:
        if not op.startswith("DW_OP_piece"):
            part.append(op)
            continue
        n = int(op.split(" ")[1], 16)
        try:
            found += one_place(part, n, wave, file, chain) if part else [None] * n
        except Unclear:
            found += [None] * n
        part = []
    return (found + [None] * size)[:size]


def variables(file: File, level: List[Die], chain: List[Die], pc: int, wave: Wave) -> Iterator[Tuple[str, str, Bytes]]:
    """(name, "argument" or "variable", bytes) for each; state is what the bytes say."""
    function = chain[0]
    for argument in (True, False):
        for die in ([level[0]] if argument else level[::-1]):
            tag = "DW_TAG_formal_parameter" if argument else "DW_TAG_variable"
            children = [c for c in die.children if c.tag == tag]
            origin = file.refer(die, "DW_AT_abstract_origin")
            known = {file.refer(c, "DW_AT_abstract_origin") for c in children}
            children += [c for c in (origin.children if origin else ()) if c.tag == tag and c not in known]
            for c in children:
                yield (re.sub(r'^\("|"\)$', "", file.get(c, "DW_AT_name") or ""), tag,
                       value(file, c, function, chain, pc, wave))


def value(file: File, die: Die, function: Die, chain: List[Die], pc: int, wave: Wave) -> Bytes:
    size = file.size(die)
    constant = file.get(die, "DW_AT_const_value")
    if constant:
        found = re.fullmatch(r"\((-?\w+)\)", constant)
        assert found, constant
        return (list(cut(int(found[1], 0) & MASK, 8)) + [None] * size)[:size]
    location = file.get(die, "DW_AT_location")
    if not location:
        return [None] * size
    if "\n" in location or location.startswith("(indexed"):
        for low, high, text in re.findall(r"\[(0x[0-9a-f]+), (0x[0-9a-f]+)\): (.*?)\)?$", location, re.M):
            if int(low, 16) <= pc < int(high, 16):
                return expression(text, size, wave, file, chain)
        return [None] * size
    text = location[1:-1]
    if "DW_OP_fbreg" in text and pc < file.body(function):
        return [None] * size
    return expression(text, size, wave, file, chain)
