# SPDX-License-Identifier: MIT
"""A file system that stops answering (tests/system/client/stuck_files.c)."""
import contextlib
import ctypes
import pathlib
import subprocess
from typing import Iterator

from harness import BIN

PROGRAM = BIN.parent / "tests" / "stuck_files"


@contextlib.contextmanager
def stuck_files(directory: pathlib.Path) -> Iterator[pathlib.Path]:
    """Mounted on the directory, which is made; whatever waits for its files goes on afterwards."""
    directory.mkdir()
    with subprocess.Popen([PROGRAM, directory], stdout=subprocess.PIPE) as server:
        try:
            assert server.stdout and server.stdout.readline() == b"ready\n", "it serves"
            yield directory
        finally:
            server.kill()
            server.wait()
            ctypes.CDLL(None).umount2(str(directory).encode(), 2)
