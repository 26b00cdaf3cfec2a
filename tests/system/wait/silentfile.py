# SPDX-License-Identifier: MIT
"""A file whose content never comes: a FUSE file system of one file that answers everything but reads."""
import contextlib
import ctypes
import errno
import os
import struct
import threading
from typing import Iterator

INIT, GETATTR, OPEN, READ, FORGET, INTERRUPT = 26, 3, 14, 15, 2, 36
SIZE = 1 << 16
DETACH = 2


def answer(opcode: int) -> bytes:
    """What follows the header of a reply (include/uapi/linux/fuse.h)."""
    if opcode == INIT:
        return struct.pack("<IIIIHHIIHHI7I", 7, 31, 0, 0, 12, 9, 4096, 1, 0, 0, 0, *[0] * 7)
    if opcode == GETATTR:
        return struct.pack("<QII6Q10I", 3600, 0, 0, 1, SIZE, SIZE // 512, 0, 0, 0, 0, 0, 0, 0o100644, 1, 0, 0, 0, 4096, 0)
    return struct.pack("<QII", 0, 0, 0)


def serve(fd: int) -> None:
    while True:
        try:
            request = os.read(fd, 1 << 17)
        except OSError:
            return
        _, opcode, unique = struct.unpack_from("<IIQ", request)
        if opcode in (READ, FORGET, INTERRUPT):
            continue
        good = opcode in (INIT, GETATTR, OPEN)
        body = answer(opcode) if good else b""
        with contextlib.suppress(OSError):
            os.write(fd, struct.pack("<IiQ", 16 + len(body), 0 if good else -errno.ENOSYS, unique) + body)


@contextlib.contextmanager
def silent_file(path: str) -> Iterator[None]:
    """Put such a file over one that is there."""
    libc = ctypes.CDLL(None, use_errno=True)
    fd = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    options = f"fd={fd},rootmode=100644,user_id=0,group_id=0,allow_other".encode()
    if libc.mount(b"silent", path.encode(), b"fuse", 0, options) < 0:
        os.close(fd)
        raise OSError(ctypes.get_errno(), "mount")
    threading.Thread(target=serve, args=(fd,), daemon=True).start()
    # Its size is known to the kernel once somebody has asked; before, a mapping of it is of an empty file.
    os.stat(path)
    try:
        yield
    finally:
        # Without force a read that waits would keep it.
        libc.umount2(path.encode(), 1 | DETACH)
        os.close(fd)
