# SPDX-License-Identifier: MIT
"""AMD code objects with another note of the compiler, or without debug information."""
from __future__ import annotations

import pathlib
import struct
from typing import Any, Callable, Tuple

PT_NOTE, NT_AMDGPU_METADATA = 4, 32


def unpack(data: bytes, at: int = 0) -> Tuple[Any, int]:
    """One item of MessagePack, as far as the compiler writes them, and where the next one begins."""
    tag = data[at]
    at += 1

    def number(size: int) -> Tuple[int, int]:
        return int.from_bytes(data[at:at + size], "big"), at + size

    if tag <= 0x7f:
        return tag, at
    if tag >= 0xe0:
        return tag - 0x100, at
    if tag in (0xc2, 0xc3):
        return tag == 0xc3, at
    if 0xcc <= tag <= 0xcf:
        return number(1 << (tag - 0xcc))
    n, kind = tag & (0x1f if 0xa0 <= tag <= 0xbf else 0xf), tag
    if 0xd9 <= tag <= 0xdb:
        n, at = number(1 << (tag - 0xd9))
        kind = 0xa0
    elif tag in (0xdc, 0xdd):
        n, at = number(2 << (tag - 0xdc))
        kind = 0x90
    elif tag in (0xde, 0xdf):
        n, at = number(2 << (tag - 0xde))
        kind = 0x80
    if 0xa0 <= kind <= 0xbf:
        return data[at:at + n].decode("latin-1"), at + n
    if 0x90 <= kind <= 0x9f:
        items = []
        for _ in range(n):
            item, at = unpack(data, at)
            items.append(item)
        return items, at
    assert 0x80 <= kind <= 0x8f, hex(tag)
    pairs = {}
    for _ in range(n):
        key, at = unpack(data, at)
        pairs[key], at = unpack(data, at)
    return pairs, at


def pack(item: Any) -> bytes:
    if isinstance(item, bool):
        return b"\xc3" if item else b"\xc2"
    if isinstance(item, int):
        return b"\xcf" + item.to_bytes(8, "big")
    if isinstance(item, str):
        return b"\xdb" + struct.pack(">I", len(item)) + item.encode("latin-1")
    if isinstance(item, list):
        return b"\xdd" + struct.pack(">I", len(item)) + b"".join(map(pack, item))
    return b"\xdf" + struct.pack(">I", len(item)) + b"".join(pack(k) + pack(v) for k, v in item.items())


def rewritten(path: pathlib.Path, to: pathlib.Path, change: Callable[[Any], None]) -> pathlib.Path:
    """A copy whose note the function has changed; the new one lies behind the rest of the file."""
    data = bytearray(path.read_bytes())
    table, = struct.unpack_from("<Q", data, 32)
    count, = struct.unpack_from("<H", data, 56)
    for i in range(count):
        at = table + 56 * i
        kind, = struct.unpack_from("<I", data, at)
        offset, = struct.unpack_from("<Q", data, at + 8)
        if kind != PT_NOTE or struct.unpack_from("<I", data, offset + 8)[0] != NT_AMDGPU_METADATA:
            continue
        name, size, _ = struct.unpack_from("<III", data, offset)
        start = offset + 12 + (name + 3 & ~3)
        note, _ = unpack(bytes(data[start:start + size]))
        change(note)
        packed = pack(note)
        whole = struct.pack("<III", 7, len(packed), NT_AMDGPU_METADATA) + b"AMDGPU\0\0" + packed
        whole += bytes(-len(whole) % 4)
        data += bytes(-len(data) % 4)
        struct.pack_into("<QQQQQ", data, at + 8, len(data), 0, 0, len(whole), len(whole))
        to.write_bytes(data + whole)
        return to
    raise AssertionError("no note")


def stripped(path: pathlib.Path, to: pathlib.Path) -> pathlib.Path:
    """As strip leaves it: without debug information, and with the symbols that a runtime needs."""
    data = bytearray(path.read_bytes())
    table, = struct.unpack_from("<Q", data, 40)
    count, names = struct.unpack_from("<HH", data, 60)
    strings, = struct.unpack_from("<Q", data, table + 64 * names + 24)
    for i in range(count):
        at = table + 64 * i
        start = strings + struct.unpack_from("<I", data, at)[0]
        name = data[start:data.index(0, start)]
        if name.startswith((b".debug_", b".zdebug_")) or name in (b".symtab", b".strtab", b".nv_debug_ptx_txt"):
            data[at:at + 64] = bytes(64)
    to.write_bytes(data)
    return to
