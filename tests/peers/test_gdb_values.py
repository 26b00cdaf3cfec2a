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


# What the random programs have not: C++ beyond C, and places for expressions to go wrong.
FIXED = """
struct node { int v; node *next; };
namespace ns { struct in { int q; struct deep { int z; } d; }; enum class ec { A, B, C = 7 };
enum fl { F1 = 1, F2 = 2, F4 = 4 }; namespace { struct hidden { char c; }; } struct base { int a; }; }
template<class T> struct vec { T x, y; };
struct empty {}; struct one : ns::base {}; struct two : ns::base, empty { int c; };
struct hides : ns::base { long a; ns::base own[2]; }; struct part { int a; union { int b; float c; }; struct { int d; }; int arr[2][3]; };
struct bits { unsigned a : 3; int b : 5; unsigned long c : 40; bool d : 1; ns::fl e : 6; };
struct forward; struct table { virtual int f(); int x; }; int table::f() { return 1; }
typedef node *nodes;
node n1 = {1, 0}, chain = {2, &n1}; ns::in in1 = {1, {2}}; ns::ec e1 = ns::ec::B, e2 = (ns::ec)5;
ns::fl f1 = (ns::fl)3, f2 = (ns::fl)0x48, f3 = (ns::fl)0; ns::hidden hi = {'x'}; ns::in::deep deep = {4};
hides hd; vec<float> v1 = {1, 2}; vec<ns::in> v2 = {{1, {2}}, {3, {4}}}; empty em; one on; two tw;
part pa = {1, {2}, {4}, {{1, 2, 3}, {4, 5, 6}}}; bits bi = {1, -2, 3, true, ns::F2}; forward *fw; table tb;
int (*ptr_array)[4]; int *array_ptr[3]; int (*func)(int, float); const int *const *const volatile deeply = 0;
int &ref = n1.v; int &&moved = (int &&)n1.v; node &noderef = chain; int (*(*far_out)(int))[3]; nodes np = &chain;
struct { int q; } noname; enum { QQ } nn; const char *text = "a\\tb\\"c"; char *bad = (char *)8; bool yes = true;
unsigned short us = 65535; signed char sc = -3; long big = -1; unsigned long ubig = ~0ul; double dd = 0.1; float ff = 0.1f;
const void *volatile sink;
int main() { sink = &hi; sink = &noname; sink = &nn; return 0; }
"""
EXPRESSIONS = """n1.v|chain.next->v|*chain.next|pa.d|pa.b|pa.c|pa.arr[1][2]|*pa.arr|pa.arr|&pa.arr[1]|pa.arr[0] + 1|bi.b|bi.b * 2
bi.c << 3|-1 > 0u|-1 < 0|1 ? 2 : 3|7 / 2|-7 / 2|-7 % 3|7u / -2|1 << 31|1u << 31|2147483647 + 1|0x7fffffff + 1u|3.5 * 2
1.0f / 3|1.0 / 3|(char)97|(float)7|(unsigned char)300|'a' + 1|text[1]|*text|text|text + 1|&n1|(&n1)->v|n1.next|tw.a|tw.c
v1.x + v1.y|v2.y.d.z|!n1.v|~n1.v|~0u|-n1.v|ref + 1|&ref|deeply|fw == 0|e1|n1.v == 1 && 0 || 1|*(int*)&pa|*(float*)&pa.b
{int} &n1|((node*)&n1)->v|(n1.v)|(n1.v) - 1|us + 1|us << 16|sc * 2u|big == ubig|big < 0u|ubig + 1|ubig / 3|big >> 63
ubig >> 63|dd + ff|ff + ff|ff * 2|dd == ff|dd > 0.05|yes == 1|np->next->v|noderef.v|&noderef|pa.arr[1][0]@2
&pa.arr[1][2] - &pa.arr[0][0]|(long)-1 == 0xffffffffffffffff|1e3|.5|'\\n'|018|1 / 0|5 % 0|1.5 % 2|foo|n1.w|*n1|n1 + 1
pa @ 2|18446744073709551615|0xffffffffffffffff|4294967296|2147483648|0x80000000|1L << 40|'\\x41'|us == sc|sc < us"""


def test_cxx_and_expressions_are_gdbs(tmp_path):
    """But for what is refused, of which both say so in words of their own."""
    for compiler in ("g++", "clang++"):
        for version in (2, 4, 5):
            source, binary = tmp_path / "fixed.cc", tmp_path / "fixed"
            source.write_text(FIXED)
            subprocess.run([compiler, f"-gdwarf-{version}", "-w", "-O0", "-no-pie", "-o", binary, source], check=True)
            names = [row[0] for row in ask_us(binary)]
            assert {"n1", "tw", "bi", "far_out", "noname"} <= set(names)
            questions = tmp_path / "questions"
            for lines, ours in ((names, [row[1:] for row in ask_us(binary)]),
                                (EXPRESSIONS.replace("\n", "|").split("|"), None)):
                questions.write_text("".join(line + "\n" for line in lines))
                ours = ours or [["error", ""] if row[0] == "error" else row for row in ask_us(binary, questions)]
                theirs = ask_gdb(binary, questions)
                assert len(ours) == len(theirs) == len(lines)
                different = [row for row in zip(lines, ours, theirs) if row[1] != row[2]]
                assert not different, (compiler, version, different)


def without_numbers(expression):
    """As gdb has it: names of members without a name, and of base classes, are left out where others follow."""
    if expression.startswith("hd.<0>"):
        return expression.replace("hd.<0>", "((ns::base &)hd)")
    return re.sub(r"(\.|->)<\d+>(?=\.)", "", expression)


def compare_parts(binary, names):
    """@return how many parts of variables there are, the same by the expressions that are told of them."""
    questions = binary.with_suffix(".questions")
    questions.write_text("".join(name + "\n" for name in names))
    ours = [row for row in ask_us(binary, questions, "parts")
            if not row[0].endswith(">") and row[0] not in names]  # What references lead to takes their place.
    questions.write_text("".join(without_numbers(row[0]) + "\n" for row in ours))
    theirs = ask_gdb(binary, questions)
    assert len(ours) == len(theirs)
    different = [(a, b) for a, b in zip(ours, theirs) if not is_like(a, b)]
    assert not different, f"{len(different)} of {len(ours)}, one of them: {min(different, key=lambda p: len(str(p)))}"
    return {row[0] for row in ours}


def test_parts_are_gdbs(tmp_path):
    for compiler in ("g++", "clang++"):
        source, binary = tmp_path / "fixed.cc", tmp_path / "fixed"
        source.write_text(FIXED)
        subprocess.run([compiler, "-gdwarf-5", "-w", "-O0", "-no-pie", "-o", binary, source], check=True)
        parts = compare_parts(binary, [row[0] for row in ask_us(binary)])
        wanted = {"chain.next", "*chain.next", "chain.next->v", "pa.arr[1][2]", "hd.a", "hd.<0>.a", "tw.<0>.a", "hd.own[1].a",
                  "v2.y.d.z", "bi.b", "pa.<1>.b", "np->next->v", "*np"}
        assert wanted <= parts, wanted - parts
        # What is made of a cast, a run of elements or a format keeps what it means.
        parts = compare_parts(binary, ["(node*)&chain", "*np @ 2", "n1 @ 2", "*(&pa.arr[0] + 1)", "1 ? &n1 : &chain",
                                       "(pa)"])
        wanted = {"*(node*)&chain", "((node*)&chain)->v", "np[1].v", "(&n1)[0].v", "(*(&pa.arr[0] + 1))[2]",
                  "(1 ? &n1 : &chain)->v", "(pa).arr[0][1]"}
        assert wanted <= parts, wanted - parts


@pytest.mark.parametrize("cxx", [False, True])
def test_parts_of_random_types_are_gdbs(tmp_path, cxx):
    program, binary = build(tmp_path, 7, "g++" if cxx else "gcc", 5, cxx)
    assert len(compare_parts(binary, program.variables)) > 200


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
