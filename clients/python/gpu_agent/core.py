# SPDX-License-Identifier: MIT
"""A core on its way from the agent into a file: what comes from the descriptor of core_write()."""

from __future__ import annotations

import json
import os
import socket
import struct
from typing import BinaryIO, Optional

from .connection import AgentError

__all__ = ["write_core"]

_RECORD = struct.Struct("=IIQ")
_DATA, _HOLE, _END, _ERROR = 1, 2, 3, 4
_PIECE = 1 << 20


def _exactly(stream: socket.socket, size: int) -> bytearray:
    data = bytearray()
    while len(data) < size:
        piece = stream.recv(min(size - len(data), _PIECE))
        if not piece:
            raise ConnectionResetError("the agent has ended the core in the middle")
        data += piece
    return data


def _copy(stream: socket.socket, file: BinaryIO, size: int) -> None:
    while size:
        piece = _exactly(stream, min(size, _PIECE))
        file.write(piece)
        size -= len(piece)


def write_core(descriptor: int, file: BinaryIO, timeout: Optional[float] = 60.0) -> int:
    """Write the core into a file that can seek, from its position on; zeros become holes.

    descriptor  from core_write(); it is closed
    timeout     seconds until a stream that nothing comes from is given up with TimeoutError; None: never

    Returns how many bytes are zeros in place of memory that cannot be read.  The file is whole only when
    this returns; to synchronise it is the caller's business.
    """
    with socket.socket(fileno=descriptor) as stream:
        stream.settimeout(timeout)
        try:
            return _write(stream, file)
        except socket.timeout:  # something else than TimeoutError before Python 3.10
            raise TimeoutError(f"nothing of the core within {timeout} s") from None


def _write(stream: socket.socket, file: BinaryIO) -> int:
    while True:
        kind: int
        size: int
        kind, _, size = _RECORD.unpack(_exactly(stream, _RECORD.size))
        if kind == _DATA:
            _copy(stream, file, size)
        elif kind == _HOLE:
            file.seek(size, os.SEEK_CUR)
        elif kind == _END:
            file.truncate()
            return size
        elif kind == _ERROR:
            raise AgentError("core.write", json.loads(_exactly(stream, size)))
        else:
            raise ValueError(f"no core: a record of kind {kind}")
