#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Source lines of NVIDIA's code, of a process and of its core, as NVIDIA's disassembler recorded them."""
import base64
import os
import re
import struct
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from cubinlines import ALL, DATA, FULL, STEP, both_ways, chain_of, loaded, recorded
from corereader import CoreRpc
from harness import STOP_MS, CudaScene


def test_every_instruction_has_its_line_and_chain():
    expected = {fixture: recorded(fixture) for fixture in ALL}
    with loaded() as cubins:
        for who, places in both_ways(cubins):
            for fixture, addresses in cubins.places.items():
                for address, (section, offset) in addresses.items():
                    want = expected[fixture][section][offset]
                    assert want and chain_of(places[address]) == want, (who, fixture, section, hex(offset), places[address])


def test_the_caller_is_the_line_in_front_of_the_return_address():
    """Of code with full debug information, where the instruction behind the call is another line's."""
    fixture = "cubin/spin-sm_90-g"
    lines = recorded(fixture)[".text.spin"]
    returns = next(o for o in sorted(lines) if o and lines[o] != lines[o - STEP] and lines[o])
    inside = max(o for o in lines if lines[o])  # a group of its own
    with loaded((fixture,), kernel="spin") as cubins:
        s = cubins.scene
        s.control(f"warp 0 1 2 pc={inside:#x}")
        s.control(f"stack 0 1 2 0xffffffff {returns:#x}")
        live = s.rpc.call("gpu.snapshot", session=s.attach(), max_stop_ms=STOP_MS)
        with CoreRpc(cubins.dump()) as rpc:
            core = rpc.call("gpu.snapshot", session="core")
        for doc in (live, core):
            assert doc["complete"], doc["missing"]
            group, = (g for g in doc["groups"] if "callers" in g)
            assert chain_of(group) == lines[inside], group
            caller, = group["callers"]
            assert chain_of(caller) == lines[returns - STEP] != lines[returns], (caller, hex(returns))


def without_lines(image):
    """Of the same size, and what would be .debug_line says nothing."""
    return image.replace(b"\0.debug_line\0", b"\0.debug_none\0")


def test_lines_are_promised_where_there_are_some():
    """Debug information alone is no line."""
    name = "spin-sm_90-g"
    with CudaScene(app=None, sim="devices 1 sms=3 warps=8") as s:
        image = (DATA / f"cubin/{name}.cubin").read_bytes()
        stripped = without_lines(image)
        assert stripped != image and len(stripped) == len(image)
        for file, bytes_ in (("with", image), ("without", stripped)):
            (s.directory / file).write_bytes(bytes_)
        s.app = s.start_app(f"init; context 0; module {s.directory}/with; module {s.directory}/without; "
                            "gpu launch spin grid=8 block=128; listen")
        core = s.directory / "core"
        live = s.rpc.call("code.list", session=s.attach())["objects"]
        assert s.ctl("dump", s.app.pid, "-o", core).returncode == 0
        with CoreRpc(core) as rpc:
            dumped = rpc.call("code.list", session="core")["objects"]
        for objects in (live, dumped):
            first, second = sorted(objects, key=lambda o: int(o["address"], 16))
            assert (first["has_dwarf"], first["has_lines"]) == (True, True), first
            assert (second["has_dwarf"], second["has_lines"]) == (True, False), second
        run = s.ctl("analyze", core)
        rows = [re.split(r"  +", line.strip()) for line in run.stdout.splitlines()]
        assert run.returncode == 0, (run.returncode, run.stdout, run.stderr)
        head = next(r for r in rows if r[:1] == ["CODE"])
        assert [r[head.index("LINES")] for r in rows[rows.index(head) + 1:]] == ["yes", "no"], rows


def problem_of_code(path, core, image=None):
    path.write_bytes(core)
    with CoreRpc(path) as rpc:
        o, = rpc.call("code.list", session="core")["objects"]
        if image:
            data = rpc.call("code.read", session="core", uri=o["uri"], offset=0, size=len(image))["data"]
            assert base64.b64decode(data) == image, "its bytes are known all the same"
    return o["problem"]


def test_code_that_is_not_relocated_is_called_so():
    """An image as the compiler made it is one for a GPU, but nobody knows where its code lies."""
    said = "it is not relocated: none of its code has an address"
    with loaded((FULL[0],), kernel="spin") as cubins:
        path, original = cubins.dump(), (DATA / f"{FULL[0]}.cubin").read_bytes()
        core = bytearray(path.read_bytes())
        images = [m.start() for m in re.finditer(re.escape(original[:64]), core)]
        relocated, = (at for at in images if core[at:at + len(original)] != original)
        core[relocated:relocated + len(original)] = original
        assert problem_of_code(path, core, original) == said
        # A core that has no other, or none at all.
        table, = struct.unpack_from("<Q", core, 40)
        for at, want in ((relocated, said), (images[images[0] == relocated], "its memory is not readable")):
            header, = (h for h in range(table, table + 64 * struct.unpack_from("<H", core, 60)[0], 64)
                       if struct.unpack_from("<Q", core, h + 24) == (at,))
            struct.pack_into("<Q", core, header + 32, 0)
            assert problem_of_code(path, core) == want
