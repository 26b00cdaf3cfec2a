# SPDX-License-Identifier: MIT
"""Code objects as large as those of libraries, made of small ones."""
import pathlib
import struct

PT_LOAD, PT_GNU_STACK = 1, 0x6474E551
PAGE = 4096


def enlarge(source: pathlib.Path, path: pathlib.Path, size: int) -> pathlib.Path:
    """The same code object, with a segment of that many bytes behind all others, in file and memory."""
    data = bytearray(source.read_bytes())
    table, = struct.unpack_from("<Q", data, 32)
    entry, n = struct.unpack_from("<HH", data, 54)
    headers = [(table + i * entry, struct.unpack_from("<IIQQQQQQ", data, table + i * entry)) for i in range(n)]
    end = max(h[3] + h[6] for _, h in headers if h[0] == PT_LOAD)
    at, _ = next((at, h) for at, h in headers if h[0] == PT_GNU_STACK)
    offset, address = -len(data) % PAGE + len(data), (end + PAGE - 1) // PAGE * PAGE
    struct.pack_into("<IIQQQQQQ", data, at, PT_LOAD, 4, offset, address, address, size, size, PAGE)
    with open(path, "wb") as f:
        f.write(data)
        f.truncate(offset + size)
    return path
