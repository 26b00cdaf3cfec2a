# SPDX-License-Identifier: MIT
r"""Command lines, files and output that a document shows.

A block ```console has lines of a person at a terminal: `$ ` in front of what a user types, `# ` of what root types, `> ` of
what goes on from the line before.  Other lines are what was printed.  A block whose first line, or second after `#!`, is a
comment with an absolute path is that file.  Manual pages show command lines in their EXAMPLES.

A comment at the end of a command line may say how it ends: "# exit status 10".
A comment of a page says what runs: <!-- scene: cuda -->, in a manual page .\" scene: none; else it is the scene fault-and-hang.
"""
from __future__ import annotations

import dataclasses
import json
import pathlib
import re
from typing import Dict, Iterator, List, Optional, Tuple

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FENCE = re.compile(r"(?P<indent> *)```(?P<kind>[\w+-]*)\s*$")
PATH = re.compile(r"(?:#|//|--|;;) (/[\w./@-]+)(?:[,:]? .*)?$")
SCENE = re.compile(r'(?:<!--|\.\\") scene: ([\w-]+)')
STATUS = re.compile(r"\s# .*?exit status (\d+)$")
# Verbs that go on until Ctrl-C.
STAYS = re.compile(r"gpu-agentctl (watch|top|events|attach|suspend|watchpoint \d+ set)\b"
                   r"(?!.*(--count|-n |--once|--for|--lease|--until-eof))")
# What starts a line that somebody is to type.
PROGRAMS = ("gpu-agent", "scripts/", "sudo ", "systemctl ", "journalctl ", "apt-get ", "apt ", "make", "npm ", "socat ",
            "python3 ", "docker ", "podman ", "kubectl ", "srun ", "BIN=", "tests/", "build/", "bench/", "git ", "code ")

# What differs from run to run, in this order.
MASKS = (
    (r" ?\([-+]\d+\)", ""),
    (r"0x[0-9a-f]{5,}", "ADDRESS"),
    (r"\d{8}T\d{6}-[0-9a-f]+", "RECORD"),
    (r"(\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun) )?\d{4}-\d\d-\d\d", "DATE"),
    (r"\d\d:\d\d:\d\d", "TIME"),
    (r"\b\d+:\d+:\d+\b", "WAVE"),
    (r"(?<![\w.:/@+-])[\d,.]*\d\s?(us|ms|s|B|KiB|MiB|GiB)\b", "AMOUNT"),
    (r"(?<![\w.:/@+])-?\d[\d,.]*(?![\w:])", "N"),
    (r"\b[0-9a-f]{16,}\b", "HASH"),
    (r"\s+", " "),
)


@dataclasses.dataclass
class Command:
    """One command line.  `text` is what the shell gets, `first` and `last` are its lines in the document, from 0."""
    text: str
    root: bool
    first: int
    last: int
    output: List[str]
    status: int = 0
    endless: bool = False


@dataclasses.dataclass
class Block:
    kind: str
    first: int
    lines: List[str]
    path: Optional[str] = None


def blocks(text: str) -> Iterator[Block]:
    """Fenced blocks, and indented ones as kind "indented"."""
    open_block: Optional[Block] = None
    indent, blank = "", True
    for number, line in enumerate(text.split("\n")):
        fence = FENCE.match(line)
        if open_block and open_block.kind != "indented":
            if fence and not fence["kind"]:
                yield open_block
                open_block = None
            else:
                open_block.lines.append(line.removeprefix(indent))
        elif fence:
            indent, open_block = fence["indent"], Block(fence["kind"], number + 1, [])
        elif re.match(r" {4}\S", line) and (blank or open_block) and not re.match(r" +([-*]|\d+\.) ", line):
            open_block = open_block or Block("indented", number, [])
            open_block.lines.append(line[4:])
        elif open_block and line.strip():
            yield open_block
            open_block = None
        blank = not line.strip()
    if open_block:
        yield open_block


def file_of(block: Block) -> Optional[str]:
    for line in block.lines[:2]:
        found = PATH.match(line)
        if found:
            return found[1]
    return None


def commands_of(block: Block) -> List[Command]:
    found: List[Command] = []
    for number, line in enumerate(block.lines, block.first):
        if re.match(r"[$#] \S", line):  # a column called # has two spaces behind it
            found.append(Command(line[2:], line[0] == "#", number, number, []))
        elif line.startswith("> ") and found and not found[-1].output:
            found[-1].text += "\n" + line[2:]
            found[-1].last = number
        elif found and found[-1].text.endswith(("\\", "|")) and not found[-1].output:
            found[-1].text += "\n" + line
            found[-1].last = number
        elif found:
            found[-1].output.append(line)
    for command in found:
        while command.output and not command.output[-1].strip():
            command.output.pop()
        status = STATUS.search(command.text)
        command.status = int(status[1]) if status else 0
        command.endless = bool(STAYS.search(command.text))
    return found


def mdoc(text: str) -> str:
    """The EXAMPLES of a manual page as a document."""
    examples = re.search(r"^\.Sh EXAMPLES\n(.*?)(?=^\.Sh |\Z)", text, re.M | re.S)
    lines, literal, begins = [], False, False
    for line in examples[1].split("\n") if examples else []:
        line = re.sub(r"\\&|\\(?=-)", "", line).replace(r"\e", "\\").replace(r"\(aq", "'")
        if line.startswith((".Bd", ".Ed")):
            begins = literal = line.startswith(".Bd")
            lines += [] if literal else ["```"]
        elif literal:
            lines += (["```" if PATH.match(line) else "```console"] if begins else []) + [line]
            begins = False
        elif line.startswith(".Dl "):
            lines += ["```console", line.removeprefix(".Dl "), "```"]
    return "\n".join(lines) + "\n"


class Page:
    """One document."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        self.name = str(path.relative_to(ROOT))
        self.source = path.read_text()
        self.is_manual = not path.name.endswith(".md")
        text = mdoc(self.source) if self.is_manual else self.source
        scene = SCENE.search(self.source)
        self.scene = scene[1] if scene else "fault-and-hang"
        self.blocks = list(blocks(text))

    def steps(self) -> Iterator[Tuple[str, object]]:
        """("file", (path, content)) and ("command", Command), in the order of the document."""
        for block in self.blocks:
            path = file_of(block)
            if block.kind == "console":
                for command in commands_of(block):
                    yield "command", command
            elif path:
                yield "file", (path, "\n".join(block.lines) + "\n")

    def commands(self) -> List[Command]:
        return [step for kind, step in self.steps() if kind == "command" and isinstance(step, Command)]

    def stray_commands(self) -> List[str]:
        """Command lines that are in no block of a terminal."""
        return [f"{self.name}:{block.first + i + 1}: {line}" for block in self.blocks
                if block.kind in ("indented", "sh", "bash", "shell", "") and not file_of(block)
                for i, line in enumerate(block.lines)
                if line.removeprefix("$ ").removeprefix("# ").startswith(PROGRAMS)]


def load_rules() -> Dict[str, List[Dict[str, str]]]:
    """docs/commands.json: command lines that no test can run, why, and who runs them instead."""
    rules: Dict[str, List[Dict[str, str]]] = json.loads((ROOT / "docs/commands.json").read_text())
    return rules


def pages() -> List[Page]:
    names = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md")),
             *sorted((ROOT / "docs/man").rglob("*.[1-9]")),
             *(path for top in ("clients", "editors", "examples") for path in sorted((ROOT / top).rglob("README.md"))
               if "node_modules" not in path.parts)]
    return [Page(path) for path in names]


def masked(lines: List[str]) -> str:
    """One line: where a text is broken depends on numbers in it."""
    text = "\n".join(lines)
    for pattern, word in MASKS:
        text = re.sub(pattern, word, text)
    return text.strip()
