#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Values of random types, as gdb prints them and as lib/values does.

Variables of random types are compiled by gcc and clang with DWARF 2, 4 and 5; their bytes are random, put into the
finished file.  Both are asked for the type and the value of each, and for the same expressions.
"""
import os
import random
import re
import shutil
import subprocess
import sys
import textwrap

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest

from harness import BIN

SCALARS = ["char", "signed char", "unsigned char", "short", "unsigned short", "int", "unsigned int", "long",
           "unsigned long", "long long", "unsigned long long", "float", "double"]
INTEGERS = [name for name in SCALARS if name not in ("float", "double")]
# Asks gdb for what is shown within a value, without the type that `print` puts in front of pointers.
ASK = textwrap.dedent("""
    import gdb
    gdb.execute("set width 0")
    gdb.execute("set max-value-size unlimited")
    gdb.execute("set target-charset ASCII")  # Bytes above 127 are no characters.
    options = dict(deref_refs=True, symbols=False, pretty_structs=False, static_members=False,
                   repeat_threshold=10, max_elements=200)
    for line in open(QUESTIONS):
        text = line.rstrip("\\n")
        try:
            kind = gdb.execute("whatis " + text, to_string=True).strip().split("type = ", 1)[1]
            value = gdb.parse_and_eval(text).format_string(**options)
        except (gdb.error, IndexError):
            kind, value = "error", ""
        print(kind, value, sep="\\t")
    """)


class Program:
    """The text of a program with variables of random types."""

    def __init__(self, seed, cxx):
        self.random, self.cxx = random.Random(seed), cxx
        self.text, self.variables, self.structs, self.enums, self.unions = [], [], [], [], set()
        self.names = 0

    def name(self):
        self.names += 1
        return f"m{self.names}"

    def scalar(self):
        return self.random.choice(SCALARS + (["bool", "char16_t", "char32_t"] if self.cxx else ["_Bool", "_Float16"]))

    def enum(self):
        name, r = f"e{len(self.enums)}", self.random
        values = r.choice([[1, 2, 4, 8], [0, 1, 2], [-1, 0, 5], [3, 5], [1, 0x40000000], [0x80000000 - 1, 2]])
        members = ", ".join(f"{name}_{i} = {v}" for i, v in enumerate(values))
        scoped = self.cxx and r.random() < .3
        self.text.append(f"enum {'class ' if scoped else ''}{name} {{ {members} }};")
        self.enums.append(name if self.cxx else f"enum {name}")
        return self.enums[-1]

    def declare(self, name, depth=0):
        """A declaration of a name with a random type."""
        r, kind = self.random, self.random.random()
        if kind < .35:
            return f"{self.scalar()} {name}"
        if kind < .45:
            return f"{r.choice(['const ', 'volatile ', ''])}{self.scalar()} *{r.choice(['', '*', 'volatile ', 'const *'])}{name}"
        if kind < .5:
            return f"{self.scalar()} (*{name})({r.choice(['void', 'int', 'int, float', 'const char *'])})"
        if kind < .55:
            return f"{self.scalar()} (*{name})[{r.randrange(1, 9)}]"
        if kind < .7:
            sizes = "".join(f"[{r.choice([1, 2, 3, 11, 12])}]" for _ in range(r.randrange(1, 3)))
            # gdb leaves out the prefix of some strings of UTF-16 and UTF-32.
            element = self.scalar()
            return f"{r.choice(['int' if element in ('char16_t', 'char32_t') else element, 'char', 'float'])} {name}{sizes}"
        if kind < .8:
            return f"{r.choice(self.enums) if self.enums else self.enum()} {name}"
        if kind < .95 and self.structs:
            return f"{r.choice(self.structs)} {name}{r.choice(['', '', '[2]', '[12]'])}"
        if depth < 3:
            return f"{r.choice(['struct', 'union'])} {{ {self.members(depth + 1)} }} {name}"
        return f"int {name}"

    def bit_fields(self):
        for _ in range(self.random.randrange(1, 5)):
            base = self.random.choice(["int", "unsigned int", "unsigned long", "long", "unsigned char", "short"])
            bits = {"int": 32, "unsigned int": 32, "unsigned char": 8, "short": 16}.get(base, 64)
            yield f"{base} {self.name()} : {self.random.randrange(1, bits + 1)};"

    def members(self, depth):
        lines = []
        for _ in range(self.random.randrange(1, 6)):
            kind = self.random.random()
            if kind < .25:
                lines += self.bit_fields()
            elif kind < .35 and depth < 3:
                lines.append(f"{self.random.choice(['struct', 'union'])} {{ {self.members(depth + 1)} }};")
            else:
                lines.append(self.declare(self.name(), depth) + ";")
        return " ".join(lines)

    def struct(self):
        name, kind = f"s{len(self.structs)}", self.random.choice(["struct", "struct", "union"])
        bases = [s for s in self.structs if s.startswith("s")] if self.cxx and kind == "struct" else []
        base = f" : {self.random.choice(bases)}" if bases and self.random.random() < .3 else ""
        if base and base[3:] in self.unions:
            base = ""
        if kind == "union":
            self.unions.add(name)
        self.text.append(f"{kind} {name}{base} {{ {self.members(0)} }};")
        self.structs.append(name if self.cxx else f"{kind} {name}")

    def make(self, n=60):
        for _ in range(4):
            self.enum()
        for _ in range(12):
            self.struct()
        for i in range(n):
            self.variables.append(f"v{i}")
            declaration = self.declare(f"v{i}")
            if declaration.startswith(("const ", "volatile ")) and "*" not in declaration:
                declaration = f"int v{i}"
            self.text.append(declaration + ' __attribute__((section(".data")));')
        uses = " ".join(f"sink = (const void *)&{v};" for v in self.variables)
        return f"{chr(10).join(self.text)}\nconst void *volatile sink;\nint main(void) {{ {uses} return 0; }}\n"


def build(tmp_path, seed, compiler, version, cxx):
    program = Program(seed, cxx)
    source = tmp_path / f"p{seed}.{'cc' if cxx else 'c'}"
    source.write_text(program.make())
    binary = tmp_path / f"p{seed}"
    subprocess.run([compiler, f"-gdwarf-{version}", *(["-gstrict-dwarf"] if "clang" not in compiler else []), "-w",
                    "-O0", "-no-pie", *(["-mavx512fp16"] if "clang" in compiler else []),
                    *(["-std=c++17"] if cxx else []), "-o", binary, source], check=True)
    plant(binary, program.random)
    return program, binary


def plant(binary, rng):
    """Random bytes over .data; small numbers and repetitions are more likely than chance has them."""
    text = subprocess.run(["readelf", "-WS", binary], check=True, capture_output=True, text=True).stdout
    offset, size = (int(n, 16) for n in re.search(r" \.data +PROGBITS +\S+ +(\S+) +(\S+)", text).groups())
    data = bytearray(binary.read_bytes())
    at = offset + 16
    while at < offset + size:
        run = rng.choice([1, 2, 8, 48])
        byte = rng.choice([0, 0, 1, 2, 3, 65, 92, 34, 128, 255, rng.randrange(256)])
        for i in range(at, min(at + run, offset + size)):
            data[i] = byte if run != 8 else rng.randrange(256)
        at += run
    binary.write_bytes(data)


def ask_gdb(binary, questions):
    script = binary.with_suffix(".py")
    script.write_text(f"QUESTIONS = {str(questions)!r}\n{ASK}")
    text = subprocess.run(["gdb", "-nx", "-batch", "-x", script, binary], check=True, capture_output=True, text=True,
                          env=dict(os.environ, LC_ALL="C"), timeout=120).stdout
    return [line.split("\t") for line in text.splitlines() if "\t" in line]


def ask_us(binary, *arguments):
    text = subprocess.run([BIN.parent / "tests/values_print", binary, *arguments], check=True, capture_output=True, text=True,
                          timeout=120).stdout
    return [plain(line).split("\t") for line in text.splitlines()]


def plain(text):
    """Characters of Unicode as gdb writes them where only ASCII can be shown."""
    return "".join(c if c < "\x80" else f"\\{ord(c):03o}" if ord(c) < 0o1000 else f"\\x{ord(c):x}" for c in text)


def is_like(ours, theirs):
    """Ours has no more than 4 KiB of text."""
    cut = ours[2].endswith("...") and len(ours[2]) > 4000
    return ours[1] == theirs[0] and (theirs[1].startswith(ours[2][:-3]) if cut else theirs[1] == ours[2])


CASES = [(compiler, version, cxx) for compiler in ("gcc", "clang") for version in (2, 4, 5) for cxx in (False, True)]


@pytest.fixture(autouse=True)
def peers():
    for program in ("gdb", "gcc", "g++", "clang", "readelf"):
        if not shutil.which(program):
            pytest.skip(f"there is no {program}")


@pytest.mark.parametrize("compiler,version,cxx", CASES)
def test_every_variable_is_shown_as_gdb_shows_it(tmp_path, compiler, version, cxx):
    name = {"gcc": ["gcc", "g++"], "clang": ["clang", "clang++"]}[compiler][cxx]
    different, n = [], 0
    for seed in range(int(os.environ.get("VALUES_SEEDS", "3"))):
        program, binary = build(tmp_path, seed * 100 + version, name, version, cxx)
        ours = [row for row in ask_us(binary) if row[0] in program.variables]
        questions = tmp_path / "questions"
        questions.write_text("".join(row[0] + "\n" for row in ours))
        theirs = ask_gdb(binary, questions)
        assert len(ours) == len(theirs) == len(program.variables)
        different += [(a, b) for a, b in zip(ours, theirs) if not is_like(a, b)]
        n += len(ours)
    shortest = min(different, key=lambda pair: len(str(pair)), default=None)
    assert not different, f"{len(different)} of {n}, one of them: {shortest}"
