# SPDX-License-Identifier: MIT
"""Every instruction of a cubin, and its source lines, as NVIDIA's disassembler tells them.

usage: nvdisasm.py NVDISASM CUBIN      prints them as tests/data/cubin/*.expect has them
"""
from __future__ import annotations

import pathlib
import re
import subprocess
import sys
from typing import Dict, List, Optional, TextIO, Tuple, Union

Path = Union[str, pathlib.Path]
# {offset: ((file, line), ...)}
Rows = Dict[int, Tuple[Tuple[str, int], ...]]
PLACE = re.compile(r'(?:File|inlined at) "([^"]*)", line (\d+)')


def lines_of(nvdisasm: Path, cubin: Path) -> Dict[str, Rows]:
    """{section: {offset: ((file, line), ...)}}: innermost first; () where it knows none."""
    run = subprocess.run([nvdisasm, "-gi", "-c", cubin], text=True, capture_output=True, timeout=120,
                         stdin=subprocess.DEVNULL)
    assert run.returncode == 0 and run.stdout, run.stderr
    sections: Dict[str, Rows] = {}
    rows: Rows = {}
    chain: List[Tuple[str, int]] = []
    fresh = False
    for line in run.stdout.splitlines():
        if match := re.match(r"\s*\.section\s+(\.text\.[^,]+),", line):
            rows = sections.setdefault(match[1], {})
            chain = []
        elif "//##" in line:
            # A row for each frame in front of the instruction where it begins.
            place = PLACE.search(line)
            assert place, line
            file, number = place.groups()
            chain = (chain if fresh else []) + [(file, int(number))]
            fresh = True
        elif match := re.match(r"\s*/\*([0-9a-f]{4,})\*/ ", line):
            rows[int(match[1], 16)] = tuple(chain)
            fresh = False
    return sections


def texts_of(nvdisasm: Path, cubin: Path) -> Tuple[Dict[str, Dict[int, str]], Dict[str, Tuple[str, int]]]:
    """{section: {offset: text}}, and where labels in them are: {label: (section, offset)}."""
    run = subprocess.run([nvdisasm, "-raw", "-c", cubin], text=True, capture_output=True, timeout=120,
                         stdin=subprocess.DEVNULL)
    assert run.returncode == 0 and run.stdout, run.stderr
    sections: Dict[str, Dict[int, str]] = {}
    labels: Dict[str, Tuple[str, int]] = {}
    fresh: List[str] = []
    name = ""
    for line in run.stdout.splitlines():
        if match := re.match(r"\s*\.section\s+(\.text\.[^,]+),", line):
            name = match[1]
            sections[name], fresh = {}, []
        elif match := re.match(r"(\.L_\w+):$", line):
            fresh.append(match[1])
        elif match := re.match(r"\s*/\*([0-9a-f]{4,})\*/ +(.*?) ?;$", line):
            offset = int(match[1], 16)
            sections[name][offset] = match[2]
            labels.update(dict.fromkeys(fresh, (name, offset)))
            fresh = []
    return sections, labels


def write(sections: Dict[str, Rows], out: TextIO) -> None:
    for name, rows in sections.items():
        print(name, file=out)
        before: Optional[Tuple[Tuple[str, int], ...]] = None
        for offset, chain in sorted(rows.items()):
            if chain != before:
                print(f"{offset:x}", *(f"{f}:{n}" for f, n in chain), file=out)
            before = chain


if __name__ == "__main__":
    write(lines_of(*sys.argv[1:]), sys.stdout)
