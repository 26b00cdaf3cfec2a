# SPDX-License-Identifier: MIT
"""Random kernels in OpenCL C, HIP and CUDA that compile and have many variables of many types."""
from __future__ import annotations

import random
from typing import List

INTEGERS = ("char", "unsigned char", "short", "unsigned short", "int", "unsigned int", "long", "unsigned long")
FLOATS = ("float", "double")


class Writer:
    """Writes one file.  `language` is "cl", "hip" or "cu"."""

    def __init__(self, language: str, seed: int) -> None:
        self.random = random.Random(f"{language}{seed}")
        self.language = language
        self.lines: List[str] = []
        self.names = 0
        self.structs: List[str] = []

    def name(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    def scalar(self) -> str:
        types = INTEGERS + FLOATS if self.random.random() < 0.8 else ("int", "float")
        return self.random.choice(types)

    @property
    def glob(self) -> str:
        return "__global " if self.language == "cl" else ""

    def say(self, text: str) -> None:
        self.lines.append(text)

    def struct(self) -> None:
        name = self.name("S")
        self.say(f"struct {name} {{")
        for _ in range(self.random.randint(1, 5)):
            kind = self.random.random()
            if kind < 0.6:
                self.say(f"\t{self.scalar()} {self.name('m')};")
            elif kind < 0.8 or self.language == "cl":  # which has no bit fields
                self.say(f"\t{self.scalar()} {self.name('m')}[{self.random.randint(1, 5)}];")
            else:
                self.say(f"\tunsigned int {self.name('m')} : {self.random.randint(1, 31)};")
        self.say("\tint tag;\n};")
        self.structs.append(name)

    def value(self, names: List[str]) -> str:
        one = self.random.choice(names) if names and self.random.random() < 0.8 else str(self.random.randint(0, 99))
        two = self.random.choice(names) if names and self.random.random() < 0.6 else str(self.random.randint(1, 99))
        return f"({one} {self.random.choice('+-*')} {two})"

    def block(self, indent: str, names: List[str], depth: int) -> None:
        mine = list(names)
        for _ in range(self.random.randint(2, 5)):
            kind = self.random.random()
            if kind < 0.5:
                name = self.name("v")
                self.say(f"{indent}{self.scalar()} {name} = {self.value(mine)};")
                mine.append(name)
            elif kind < 0.62:
                name = self.name("a")
                size = self.random.randint(1, 6)
                self.say(f"{indent}{self.scalar()} {name}[{size}];")
                self.say(f"{indent}for (int i = 0; i < {size}; i++) {name}[i] = i + {self.value(mine)};")
                mine.append(f"{name}[{self.random.randrange(size)}]")
            elif kind < 0.72 and self.structs:
                name = self.name("s")
                self.say(f"{indent}struct {self.random.choice(self.structs)} {name};")
                self.say(f"{indent}{name}.tag = {self.value(mine)};")
                mine.append(f"{name}.tag")
            elif kind < 0.80:
                name = self.name("p")
                self.say(f"{indent}{self.glob}int *{name} = out + {self.random.randint(0, 9)};")
                mine.append(f"{name}[1]")
            elif depth:
                name = self.name("k")
                self.say(f"{indent}for (int {name} = 0; {name} < n; {name}++) {{")
                self.block(indent + "\t", mine + [name], depth - 1)
                self.say(f"{indent}}}")
        self.say(f"{indent}out[{self.random.randint(0, 99)}] = {self.value(mine)};")
        self.say(f"{indent}out[n] += {self.value(mine)};")

    def function(self) -> str:
        name = self.name("f")
        words = {"cl": "", "hip": "DEVICE ", "cu": "__device__ "}[self.language]
        if self.random.random() < 0.7:
            words += "__attribute__((noinline)) "
        arguments = [(self.scalar(), self.name("x")) for _ in range(self.random.randint(1, 4))]
        self.say(f"{words}int {name}({self.glob}int *out, int n, "
                 f"{', '.join(f'{t} {a}' for t, a in arguments)}) {{")
        self.block("\t", ["n"] + [a for _, a in arguments], 1)
        self.say(f"\treturn {self.value([a for _, a in arguments])};\n}}")
        return f"{name}(out, n, {', '.join(str(self.random.randint(0, 9)) for _ in arguments)})"

    def kernel(self, calls: List[str]) -> None:
        name = self.name("kernel")
        words = {"cl": "__kernel void", "hip": "KERNEL void", "cu": "__global__ void"}[self.language]
        arguments = [(self.scalar(), self.name("x")) for _ in range(self.random.randint(1, 5))]
        if self.language == "cl":
            arguments.append((self.random.choice(("float4", "int2", "char3")), self.name("vec")))
        shared = {"cl": "__local ", "hip": "SHARED ", "cu": "__shared__ "}[self.language]
        self.say(f"{words} {name}({self.glob}int *out, int n, {', '.join(f'{t} {a}' for t, a in arguments)}) {{")
        tile = self.name("tile")
        self.say(f"\t{shared}int {tile}[{self.random.randint(1, 40)}];\n\t{tile}[0] = n;")
        usable = ["n", f"{tile}[0]"] + [a for _, a in arguments if not a.startswith("vec")]
        self.block("\t", usable, 2)
        for call in calls:
            self.say(f"\tout[{self.random.randint(0, 99)}] = {call};")
        self.block("\t", usable, 2)
        self.say("}")

    def write(self) -> str:
        if self.language == "hip":
            self.say("#define DEVICE __attribute__((device))\n#define KERNEL __attribute__((global))\n"
                     "#define SHARED __attribute__((shared))")
            self.say("DEVICE int everywhere = 3;")
        if self.language == "cu":
            self.say("__device__ int everywhere = 3;")
        for _ in range(self.random.randint(1, 3)):
            self.struct()
        calls = [self.function() for _ in range(self.random.randint(1, 3))]
        for _ in range(self.random.randint(1, 2)):
            self.kernel(calls)
        return "\n".join(self.lines) + "\n"


def write(language: str, seed: int) -> str:
    return Writer(language, seed).write()
