# SPDX-License-Identifier: MIT
"""Other people's packages in trees of their own."""
import mmap
import os
import pathlib
import struct
import subprocess
import time
from unittest import SkipTest

from harness import ROOT
from npm import DEADLINE

PEERS = pathlib.Path(os.environ.get("GPU_AGENT_PEERS", ROOT / "build/peers"))
UNPACK_SECONDS = 120
MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"


def linker(tree):
    """What runs a program of the tree with the libraries of the tree."""
    return [tree / "usr/lib64/ld-linux-x86-64.so.2", "--library-path", tree / "usr/lib/x86_64-linux-gnu"]


def fetch(what):
    """The tree that scripts/fetch-peers makes, or SkipTest."""
    seconds = max(1, int(DEADLINE - time.monotonic()))
    try:
        run = subprocess.run([ROOT / "scripts/fetch-peers", what, PEERS], text=True, capture_output=True,
                             timeout=seconds + UNPACK_SECONDS, stdin=subprocess.DEVNULL,
                             env={**os.environ, "PEERS_TIMEOUT": str(seconds)})
    except subprocess.TimeoutExpired:
        raise SkipTest(f"{what} could not be fetched and unpacked in {seconds + UNPACK_SECONDS} s") from None
    if run.returncode == 77:
        raise SkipTest(run.stderr.strip().splitlines()[-1])
    assert run.returncode == 0, run.stderr
    return pathlib.Path(run.stdout.strip())


def clang():
    """The directory of clang 19, and the environment that its programs run in, or SkipTest."""
    tree = fetch("clang")
    llvm = tree / "usr/lib/llvm-19"
    return llvm, {"PATH": f"{llvm}/bin:{os.environ['PATH']}",
                  "LD_LIBRARY_PATH": f"{tree}/usr/lib/x86_64-linux-gnu:{llvm}/lib"}


def code_objects(library):
    """(name of the GPU, bytes) of each code object for a GPU, of all bundles (Clang Offload Bundler, "Bundled Code Object File Layout")."""
    with open(library, "rb") as f, mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as data:
        at = -1
        while (at := data.find(MAGIC, at + 1)) >= 0:
            place = at + len(MAGIC) + 8
            for _ in range(struct.unpack_from("<Q", data, place - 8)[0] if place + 8 <= len(data) else 0):
                offset, size, length = struct.unpack_from("<QQQ", data, place)
                target = data[place + 24:place + 24 + length].decode("ascii", "replace")
                place += 24 + length
                if "amdgcn" in target:
                    yield target.split("--")[1].split(":")[0], data[at + offset:at + offset + size]


def build_dbgapi(name):
    """The command line of a client of AMD's debugger library: compiled against its header, run by its tree's linker."""
    if os.uname().machine != "x86_64":
        raise SkipTest("the library is fetched for x86-64 only")
    tree = fetch("dbgapi")
    client, here = PEERS / name, pathlib.Path(__file__).resolve().parent
    sources = here / f"{name}.c", here / "dbgapi_client.h"
    if not client.exists() or client.stat().st_mtime < max(s.stat().st_mtime for s in sources):
        new = client.with_suffix(f".{os.getpid()}")
        subprocess.run(["cc", "-Wall", "-O1", "-g", "-isystem", tree / "usr/include", "-o", new, sources[0],
                        f"-L{tree}/usr/lib/x86_64-linux-gnu", "-l:librocm-dbgapi.so.0",
                        "-Wl,--unresolved-symbols=ignore-in-shared-libs"], check=True, timeout=120)
        new.rename(client)
    return [*linker(tree), client]


def read_core(argv, core, *registers):
    """What dbgapi_core prints of a core: {kind of line: [its words]}"""
    run = subprocess.run([*map(str, argv), str(core), *registers], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0 and not run.stderr, run.stderr
    lines = {}
    for line in run.stdout.splitlines():
        kind, *words = line.split()
        lines.setdefault(kind, []).append(words)
    return lines
