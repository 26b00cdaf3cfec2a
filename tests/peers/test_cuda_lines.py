#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""NVIDIA's own debugger and disassembler: do they have the lines of every instruction that the product has?

cuda-gdb 12.4 opens the core that `gpu-agentctl dump` makes of a simulated process; nvdisasm 12.4 reads the cubins.
"""
import json
import os
import pathlib
import re
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from cubinlines import ALL, DATA, MIXED, both_ways, chain_of, loaded, located, recorded
from corereader import CoreRpc
from cudagdb import Debugger
from harness import LONG_STOP
from nvdisasm import lines_of, texts_of
from peers import fetch

# Nobody of NVIDIA's says who inlined what clang inlined; that debugger believes its unit's end, as it believes that
# code beside full debug information has no lines.
CLANG = "cubin/clang-sm_80-g"
DEBUGGER_KNOWS_LESS = (CLANG, *MIXED)
KERNELS = dict(zip(ALL, ("spin", "planted", "planted", "first", "one", "spin", "spin", "first"), strict=True))


def ask_lines(debugger, core, addresses):
    """{address: (file, line) or None}, files without their directory."""
    answers = debugger.ask(core, *(f"info line *{a:#x}" for a in addresses))[1:]
    found = {}
    for address, answer in zip(addresses, answers):
        match = re.search(r'^Line (\d+) of "([^"]+)" (?:starts at|is at) address', answer, re.M)
        assert match or "No line number information" in answer, (hex(address), answer)
        found[address] = (pathlib.Path(match[2]).name, int(match[1])) if match else None
    return found


def innermost(place):
    chain = chain_of(place)
    return (pathlib.Path(chain[0][0]).name, chain[0][1]) if chain else None


def test_every_line_is_cuda_gdbs():
    debugger = Debugger("cuda-gdb")
    for fixture, kernel in KERNELS.items():
        # It opens the images of kernels that run, so each has a process of its own.
        with loaded((fixture,), kernel=kernel) as cubins:
            core, of = cubins.dump(), cubins.places[fixture]
            theirs = ask_lines(debugger, core, sorted(of))
            with CoreRpc(core) as rpc:
                ours = {"live": located(cubins.scene.rpc, cubins.scene.attach(), of), "core": located(rpc, "core", of)}
        for who, places in ours.items():
            pairs = [(innermost(places[a]), theirs[a], where) for a, where in of.items()]
            if fixture in DEBUGGER_KNOWS_LESS:
                assert any(b is None for _, b, _ in pairs), f"{fixture}: the debugger knows all of it now"
                pairs = [p for p in pairs if p[1]]
            wrong = [p for p in pairs if p[0] != p[1]]
            assert len(pairs) > 60 and not wrong, (who, fixture, len(pairs), wrong[:5])


def test_every_line_and_chain_is_nvdisasms():
    nvdisasm = fetch("cuda-disasm") / "usr/bin/nvdisasm"
    theirs = {fixture: lines_of(nvdisasm, DATA / f"{fixture}.cubin") for fixture in ALL}
    with loaded() as cubins:
        for who, places in both_ways(cubins):
            for fixture, of in cubins.places.items():
                assert set(theirs[fixture]) == set(recorded(fixture)), fixture
                for address, (section, offset) in of.items():
                    ours, want = chain_of(places[address]), theirs[fixture][section][offset]
                    if fixture == CLANG:
                        ours = ours[:1]
                    assert ours == want, (who, fixture, section, hex(offset), ours, want)


def listed(scene, where, address, count):
    """{address: text} of so many instructions, as gpu-agentctl shows them."""
    run = scene.ctl("disassemble", *where, hex(address), f"--start={address:#x}", "--before=0", f"--count={count}", "-j",
                    LONG_STOP)
    assert run.returncode == 0, run
    doc = json.loads(run.stdout)
    assert doc["source"].endswith("/nvdisasm") and "note" not in doc, {**doc, "instructions": None}
    return {int(i["address"], 16): i["text"] for i in doc["instructions"]}


def test_every_instruction_is_nvdisasms():
    """Its own text of the whole cubin, where it has names for what is an address, or not yet known, in memory."""
    directory = fetch("cuda-disasm") / "usr/bin"
    before = os.environ["PATH"]
    os.environ["PATH"] = f"{directory}:{before}"
    try:
        with loaded() as cubins:
            core = cubins.dump()
            for fixture in (f for f in ALL if "90" in f):
                sections, labels = texts_of(directory / "nvdisasm", DATA / f"{fixture}.cubin")
                start = {section: address for address, (section, offset) in cubins.places[fixture].items() if not offset}
                assert set(start) == set(sections), (fixture, set(start), set(sections))

                def address_of(match):
                    section, offset = labels[match[1]]
                    return hex(start[section] + offset)

                for section, texts in sections.items():
                    for where in ((cubins.scene.app.pid,), (f"--core={core}",))[:1 + (fixture == ALL[0])]:
                        ours = listed(cubins.scene, where, start[section], len(texts))
                        for offset, text in texts.items():
                            want = re.sub(r"`\((\.L_\w+)\)", address_of, text)
                            # A symbol's address is none that the cubin has.
                            want, got = re.split(r"`\(|32@", want)[0], ours[start[section] + offset]
                            assert got == want or want.endswith(" ") and got.startswith(want), (
                                fixture, section, hex(offset), got, text)
    finally:
        os.environ["PATH"] = before
