#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Read slots.txt, and turn it into cudbg_slots.h.

usage: slots.py DIRECTORY
"""
import pathlib
import re
import sys
from typing import NamedTuple

DESCRIPTION = pathlib.Path(__file__).resolve().with_name("slots.txt")
SCALARS = {"u32": "uint32_t", "u64": "uint64_t", "bool": "bool"}
POINTEES = {**SCALARS, "ptr": "void *", "char": "char", "text": "char", "bytes": "void"}
PLACE = {"d": "dev", "s": "sm", "w": "warp", "l": "lane"}


class Release(NamedTuple):
    major: int
    minor: int
    revision: int
    n_slots: int
    lax: bool


class Buffer(NamedTuple):
    way: str    # < > =
    type: str
    size: int   # bytes, where it is not the type's; or 0
    count: int  # index of the number that counts them, or -1


class Slot(NamedTuple):
    name: str
    flags: tuple
    place: str  # a beginning of "dswl"
    args: tuple  # names of SCALARS, "ptr", "fn:...", or Buffer


def parse_argument(token):
    match = re.fullmatch(r"([<>=])([a-z_]\w*)(?::(\d+))?(?:\*(\d+))?", token)
    if match:
        return Buffer(match[1], match[2], int(match[3] or 0), int(match[4]) if match[4] else -1)
    if token not in SCALARS and token != "ptr" and not token.startswith("fn:"):
        raise SystemExit(f"slots.txt: argument '{token}'")
    return token


def parse_slot(line):
    number, name, *args = line.split()
    place = args.pop(0) if args and re.fullmatch("ds?w?l?", args[0]) else ""
    name, *flags = name.split("/")
    return int(number), Slot(name, tuple(flags), place, tuple(map(parse_argument, args)))


def read(path=DESCRIPTION):
    """(releases, slots), both ascending"""
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    words = [line.split()[1:] for line in lines if line.startswith("release ")]
    releases = [Release(*map(int, version.split(".")), int(n), "lax" in flags) for version, n, *flags in words]
    slots = [parse_slot(line) for line in lines if not line.startswith("release ")]
    if [number for number, _ in slots] != list(range(len(slots))) or releases != sorted(releases):
        raise SystemExit("slots.txt: not in order")
    if releases[-1].n_slots != len(slots):
        raise SystemExit("slots.txt: the newest release has other slots")
    return releases, [slot for _, slot in slots]


def parameter(arg):
    """An argument's type in C"""
    if isinstance(arg, Buffer):
        pointee = POINTEES.get(arg.type, f"struct cudbgabi_{arg.type}")
        return ("const " if arg.way == "<" else "") + pointee + " *"
    if arg.startswith("fn:"):
        return f"cudbgabi_{arg[3:]}_fn *"
    return SCALARS.get(arg, "void *")


def parameters(slot):
    """Types of all parameters, the place's first"""
    return ["uint32_t"] * len(slot.place) + [parameter(a) for a in slot.args]


def declaration(slot):
    names = [PLACE[letter] for letter in slot.place] + [f"a{i}" for i in range(len(slot.args))]
    return ", ".join(f"{t} {n}".replace("* ", "*") for t, n in zip(parameters(slot), names)) or "void"


def main():
    releases, slots = read()
    rows = " \\\n\t".join(f"X({i}, {s.name}, ({declaration(s)}))" for i, s in enumerate(slots))
    table = " \\\n\t".join(f"X({r.major}, {r.minor}, {r.revision}, {r.n_slots}, {str(r.lax).lower()})" for r in releases)
    enum = "".join(f"\tSLOT_{s.name} = {i},\n" for i, s in enumerate(slots))
    (pathlib.Path(sys.argv[1]) / "cudbg_slots.h").write_text(
        "/* Made by slots.py. */\n#ifndef CUDBG_SLOTS_H\n#define CUDBG_SLOTS_H\n\n"
        f"/** Releases: X(major, minor, revision, slots, lax), ascending. */\n#define CUDBGABI_RELEASES(X) \\\n\t{table}\n\n"
        f"/** The table: X(number, vendorName, (parameters)). */\n#define CUDBGABI_SLOTS(X) \\\n\t{rows}\n\n"
        f"enum cudbgabi_slot {{\n{enum}\tSLOT_COUNT\n}};\n\n#endif\n")


if __name__ == "__main__":
    main()
