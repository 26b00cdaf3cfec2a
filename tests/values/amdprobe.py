# SPDX-License-Identifier: MIT
"""Asks values_probe what variables are, and compares with the second reader (dwarftext.py).

Registers and memory hold numbers that are made up from where they are (values_probe.c), so a value shows where it was read.
"""
from __future__ import annotations

import collections
import functools
import pathlib
import subprocess
from typing import Any, Counter, List, Tuple

import dwarftext
from harness import BIN

MASK = (1 << 64) - 1
FILES = {"s": 0, "v": 1, "a": 2, "exec": 4, "vcc": 5}   # enum values_file
SPACES = {"global": 0, "private": 1, "shared": 2}      # enum values_space
# GPU, its version as the driver tells it, lanes, whether s33 counts bytes of the wave, options of a compiler.
Gpu = Tuple[str, int, int, bool, Tuple[str, ...]]


def mix(x: int) -> int:
    x = x + 0x9e3779b97f4a7c15 & MASK
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9 & MASK
    x = (x ^ x >> 27) * 0x94d049bb133111eb & MASK
    return x ^ x >> 31


def register(letter: str, number: int, lane: int) -> int:
    by_lane = lane + 1 if letter in "va" else 0
    return mix(FILES[letter] << 48 | by_lane << 32 | number) & 0xffffffff


@functools.lru_cache(maxsize=65536)
def memory(space: str, address: int, size: int, lane: int) -> bytes:
    salt = mix(SPACES[space] << 8 | (lane + 1 if space == "private" else 0))
    return bytes(mix(salt ^ (address + i & MASK)) & 0xff for i in range(size))


class Probe:
    def __init__(self, path: pathlib.Path, gpu: Gpu) -> None:
        self.process = subprocess.Popen([BIN.parent / "tests/values_probe", path, str(gpu[2]), str(gpu[1])], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, pc: int, lane: int, inlined: int) -> List[List[str]]:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(f"{pc:x} {lane} {inlined}\n")
        self.process.stdin.flush()
        rows = []
        while (line := self.process.stdout.readline()) != ".\n":
            assert line, "values_probe has ended"
            rows.append(line.rstrip("\n").split("\t"))
        return rows

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        assert self.process.wait(60) == 0


def states_agree(row: List[str], wanted: dwarftext.Bytes) -> bool:
    known = sum(b is not None for b in wanted)
    if not wanted:
        return True
    if known == len(wanted):
        return row[3] == "ok"
    if known:
        return row[3] == "partial" and bool(row[6])
    return row[3] in ("optimised_out", "unavailable", "prologue")


def compare(probe: Probe, path: Any, file: dwarftext.File, gpu: Gpu, pc: int, counts: Counter[str]) -> None:
    """All variables of all levels at one address."""
    lane = pc // 4 % gpu[2]
    wave = dwarftext.Wave(gpu[2], lane, gpu[3], register, memory)
    for inlined, level in enumerate(file.levels(pc)):
        rows = probe.ask(pc, lane, inlined)
        wanted = list(dwarftext.variables(file, level, file.chain(pc), pc, wave))
        assert [r[0] for r in rows] == [w[0] for w in wanted], (path, hex(pc), inlined, rows, wanted)
        for row, (name, tag, data) in zip(rows, wanted):
            text = "".join("--" if b is None else f"{b:02x}" for b in data)
            assert row[4] == text and states_agree(row, data), (str(path), hex(pc), lane, row, text)
            assert (row[1] == "argument") == (tag == "DW_TAG_formal_parameter")
            counts[row[3]] += 1


def summary(counts: Counter[str]) -> str:
    return f"    {sum(counts.values())} values agree: {dict(collections.Counter(counts))}"
