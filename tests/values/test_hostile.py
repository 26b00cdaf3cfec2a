#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Debug information made to keep its reader busy: each value is told, or refused, within bounds of time, memory and text."""
import os
import resource
import subprocess
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest

from harness import BIN

MANY = 50000
DEPTH = 60  # of things that are twice in each other
# Nothing here takes a second; with a sanitizer, on a machine that has more to do, not that many.
CPU_SECONDS, MEMORY = 40, 1 << 30
TEXT = 8192  # of one value with its type

# What a DIE has, by the number of its abbreviation: tag, whether it has children, (attribute, form) ...
ABBREVIATIONS = {
    1: (0x11, 1, (0x25, 8), (0x13, 0x0b)), 2: (0x24, 0, (3, 8), (0x0b, 0x0b), (0x3e, 0x0b)), 3: (0x16, 0, (3, 8), (0x49, 0x13)),
    4: (0x13, 1, (3, 8), (0x0b, 7)), 5: (0x0d, 0, (3, 8), (0x49, 0x13), (0x38, 0x0f)), 6: (1, 1, (0x49, 0x13)),
    7: (0x21, 0, (0x37, 7)), 8: (0x34, 0, (3, 8), (0x49, 0x13), (2, 0x18)), 9: (4, 1, (3, 8), (0x0b, 0x0b)),
    10: (0x28, 0, (3, 8), (0x1c, 6)), 11: (0x0f, 0, (0x49, 0x13)), 12: (0x26, 0, (0x49, 0x13)),
    13: (0x1c, 0, (0x49, 0x13), (0x38, 0x0f)), 14: (0x17, 1, (3, 8), (0x0b, 7))}
EXPRESSIONS = ["v", "sizeof v", "v.a", "v.a.b.a", "v[0]", "v[1][2]", "*v", "&v", "v @ 3", "(int)v", f"v.m{MANY - 1}", "v->a"]


def named(label, number, name, rest):
    return f'{label}: .uleb128 {number}; .asciz "{name}"; {rest}\n'


def refers(number, label, rest=""):
    return f".uleb128 {number}; .4byte {label}-.Lunit; {rest}\n"


def member(name, label, at=0):
    return f'.uleb128 5; .asciz "{name}"; .4byte {label}-.Lunit; .uleb128 {at}\n'


def structure(label, members, size=64, number=4, name="S"):
    return named(label, number, name, f".8byte {size}") + members + ".byte 0\n"


def array(label, element, *counts):
    return f"{label}: " + refers(6, element) + "".join(f".uleb128 7; .8byte {n}\n" for n in counts) + ".byte 0\n"


def each(text):
    return "".join(text.format(i=i) for i in range(MANY))


def doubled(within):
    """Each thing has the next one twice."""
    def following(i):
        return f"L{i + 1}" if i < DEPTH else "Lint"
    return "".join(within(f"L{i}", following(i)) for i in range(DEPTH + 1))


def chain(of):
    return "".join(of(f"L{i}", f"L{i + 1}" if i < MANY else "Lint") for i in range(MANY + 1))


# The type of v is the one at L0.
CASES = {
    "typedef of itself": named("L0", 3, "T", ".4byte L0-.Lunit"),
    "const of itself": "L0: " + refers(12, "L1") + "L1: " + refers(12, "L0"),
    "structures within structures": doubled(lambda own, next: structure(own, member("a", next) + member("b", next))),
    "bases of bases": doubled(lambda own, next: structure(own, 2 * refers(13, next, ".uleb128 0"))),
    "unions without names": doubled(lambda own, next: structure(own, 2 * member("", next), number=14, name="")),
    "structure in itself": structure("L0", member("a", "L0")),
    "array of itself": array("L0", "L0", 3),
    "arrays of arrays": "".join(array(f"L{i}", f"L{i + 1}" if i < DEPTH else "Lint", 3) for i in range(DEPTH + 1)),
    "large array": array("L0", "Lint", 1 << 62),
    "large array of nothing": structure("L1", "", 0) + array("L0", "L1", 1 << 62),
    "dimensions": array("L0", "Lint", *MANY * [1]),
    "large dimensions": array("L0", "Lint", *MANY * [3]),
    "enumerators": named("L1", 9, "E", ".byte 4") + each('.uleb128 10; .asciz "e{i}"; .4byte {i}\n') + ".byte 0\n" + array("L0", "L1", 200),
    "members": structure("L1", each(member("m{i}", "Lint")), 4) + array("L0", "L1", 200),
    "members without size": structure("L2", "", 0) + structure("L1", each(member("m{i}", "L2")), 4) + array("L0", "L1", 200),
    "typedefs": chain(lambda own, next: named(own, 3, "T", f".4byte {next}-.Lunit")),
    "pointers": chain(lambda own, next: f"{own}: " + refers(11, next)),
    "long name": named("L0", 3, "N" * (20 << 20), ".4byte Lint-.Lunit"),
}


def assembled(directory, types):
    abbreviations = ""
    for n, (tag, children, *attributes) in ABBREVIATIONS.items():
        pairs = "".join(f".uleb128 {a}; .uleb128 {form}\n" for a, form in attributes)
        abbreviations += f".uleb128 {n}; .uleb128 {tag}; .byte {children}\n{pairs}.byte 0, 0\n"
    source, program = directory / "hostile.s", directory / "hostile"
    source.write_text(f"""
        .data
        .globl v
        v: .fill 4096, 1, 0x41
        .section .debug_abbrev
        .Labbreviations: {abbreviations} .byte 0
        .section .debug_info
        .Lunit: .4byte .Lend - .Lbegin
        .Lbegin: .2byte 4; .4byte .Labbreviations; .byte 8
        .uleb128 1; .asciz "x"; .byte 0x1d
        Lint: .uleb128 2; .asciz "int"; .byte 4, 5
        {types}
        .uleb128 8; .asciz "v"; .4byte L0 - .Lunit; .uleb128 9; .byte 3; .8byte v
        .byte 0
        .Lend:
        """)
    subprocess.run(["cc", "-nostdlib", "-static", "-Wl,-e,v", "-o", program, source], check=True, timeout=120)
    return program


def ask(*argv):
    """What is printed, within bounds that end the program."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    run = subprocess.run([BIN.parent / "tests/values_print", *argv], text=True, capture_output=True, check=False,
                         preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS)))
    assert run.returncode == 0, (argv, run.returncode, run.stderr[-500:])
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    assert most == before or most << 10 < MEMORY, f"{most} KiB"
    return run.stdout.splitlines()


@pytest.mark.parametrize("case", CASES)
def test_values_of_hostile_types_are_told_within_bounds(tmp_path, case):
    program, questions = assembled(tmp_path, CASES[case]), tmp_path / "questions"
    questions.write_text("".join(f"{e}\n" for e in EXPRESSIONS))
    whole, answers = ask(program), ask(program, questions)
    assert len(whole) == 1 and whole[0].startswith("v\t") and len(answers) == len(EXPRESSIONS), (whole, answers)
    for line in whole + answers:
        assert len(line) <= TEXT, (len(line), line[:200])
