# SPDX-License-Identifier: MIT
"""A CUDA process that has loaded all cubins of tests/data, and what the product says of their lines."""
from __future__ import annotations

import contextlib
import pathlib
import struct
from typing import Any, Dict, Iterable, Iterator, Sequence, Tuple

from corereader import CoreRpc
from harness import LONG_STOP, ROOT, CudaScene, Rpc
from nvdisasm import Rows

DATA = ROOT / "tests/data"
# With full debug information, with lines only, and with both.
FULL = ("cubin/spin-sm_90-g", "cudacore/plant-sm90", "cudacore/plant-sm90-13", "cubin/linked-sm_90-g", "cubin/clang-sm_80-g")
LINES = ("cubin/spin-sm_80", "cubin/spin-sm_90")
MIXED = ("cubin/mixed-sm_90",)
ALL = FULL + LINES + MIXED
STEP = 16  # bytes of an instruction
AT_ONCE = 2048


def code_sections(cubin: pathlib.Path) -> Dict[str, int]:
    """{name: how many bytes} of what is executed."""
    data = cubin.read_bytes()
    table, = struct.unpack_from("<Q", data, 40)
    count, names = struct.unpack_from("<HH", data, 60)
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, table + 64 * i) for i in range(count)]

    def name(header: Tuple[int, ...]) -> str:
        start = headers[names][4] + header[0]
        return data[start:data.index(0, start)].decode()

    return {name(h): h[5] for h in headers if h[1] == 1 and h[2] & 4}


def recorded(fixture: str) -> Dict[str, Rows]:
    """{section: {offset: ((file, line), ...)}} out of the .expect beside a cubin."""
    sizes = code_sections(DATA / f"{fixture}.cubin")
    found: Dict[str, Rows] = {}
    for block in (DATA / f"{fixture}.expect").read_text().split("\n."):
        name, *rows = block.splitlines()
        name = name if name.startswith(".") else f".{name}"
        changes: Rows = {int(offset, 16): tuple((p.rsplit(":", 1)[0], int(p.rsplit(":", 1)[1])) for p in chain)
                         for offset, *chain in (row.split() for row in rows)}
        found[name] = {}
        now: Tuple[Tuple[str, int], ...] = ()
        for offset in range(0, sizes[name], STEP):
            now = changes.get(offset, now)
            found[name][offset] = now
    assert set(found) == set(sizes), (found.keys(), sizes)
    return found


def chain_of(place: Dict[str, Any]) -> Tuple[Tuple[str, int], ...]:
    """As in recorded(), of a place or a group."""
    return tuple((f["file"], f["line"]) for f in place.get("frames", ()) if "file" in f)


class LoadedCubins:
    """The scene; .places[fixture] = {address: (section, offset)}."""

    def __init__(self, s: CudaScene, fixtures: Sequence[str]) -> None:
        self.scene = s
        self.places: Dict[str, Dict[int, Tuple[str, int]]] = {}
        modules = s.state()["modules"]
        assert len(modules) == len(fixtures), modules
        for fixture, module in zip(fixtures, sorted(modules, key=lambda m: int(m["handle"], 16))):
            functions = {f["name"]: int(f["address"], 16) for f in module["functions"]}
            sizes = code_sections(DATA / f"{fixture}.cubin")
            self.places[fixture] = {functions[name.removeprefix(".text.")] + offset: (name, offset)
                                    for name, size in sizes.items() for offset in range(0, size, STEP)}

    def dump(self, *options: str) -> pathlib.Path:
        path = self.scene.directory / "core"
        run = self.scene.ctl("dump", self.scene.app.pid, LONG_STOP, "-o", path, *options)
        assert run.returncode == 0, (run.returncode, run.stderr)
        return path


@contextlib.contextmanager
def loaded(fixtures: Sequence[str] = ALL, kernel: str = "one", **kwargs: Any) -> Iterator[LoadedCubins]:
    load = "; ".join(f"module {DATA}/{f}.cubin" for f in fixtures)
    app = f"init; context 0; {load}; gpu launch {kernel} grid=8 block=128; listen"
    with CudaScene(app=app, sim="devices 1 sms=3 warps=8", **kwargs) as s:
        yield LoadedCubins(s, fixtures)


def located(rpc: Rpc, session: str, addresses: Iterable[int]) -> Dict[int, Any]:
    """{address: place}"""
    every = sorted(addresses)
    places: Dict[int, Any] = {}
    for i in range(0, len(every), AT_ONCE):
        some = every[i:i + AT_ONCE]
        answer = rpc.call("code.locate", session=session, addresses=[hex(a) for a in some])
        assert answer["complete"], answer["missing"]
        places.update(zip(some, answer["places"]))
    return places


def both_ways(cubins: LoadedCubins) -> Iterator[Tuple[str, Dict[int, Any]]]:
    """What the product says of every instruction, of the process and of its core: (who, {address: place})."""
    addresses = [a for places in cubins.places.values() for a in places]
    yield "live", located(cubins.scene.rpc, cubins.scene.attach(), addresses)
    with CoreRpc(cubins.dump()) as rpc:
        yield "core", located(rpc, "core", addresses)
