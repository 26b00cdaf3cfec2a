# SPDX-License-Identifier: MIT
"""File systems of FUSE that behave as few do, with one file: where writes are never answered, where room is taken late."""
import contextlib
import ctypes
import errno
import os
import signal
import stat
import struct

IN, OUT = struct.Struct("=IIQQIIIHH"), struct.Struct("=IiQ")
ATTR, ENTRY, OPEN = struct.Struct("=QQQQQQIIIIIIIIII"), struct.Struct("=QQQQII"), struct.Struct("=QIi")
LOOKUP, FORGET, GETATTR, SETATTR, UNLINK, WRITE, STATFS, RELEASE = 1, 2, 3, 4, 10, 16, 17, 18
FSYNC, FLUSH, INIT, OPENDIR, RELEASEDIR, FSYNCDIR, CREATE, INTERRUPT = 20, 25, 26, 27, 29, 30, 35, 36
RENAME, BATCH_FORGET = 12, 42
MS_NOSUID, MS_NODEV, MNT_DETACH = 2, 4, 2
ROOT, FILE = 1, 2


def attributes(node, size=0, blocks=0):
    mode = stat.S_IFDIR | 0o755 if node == ROOT else stat.S_IFREG | 0o600
    return ATTR.pack(node, size, blocks, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def entry(node):
    return ENTRY.pack(node, 0, 1, 0, 0, 0) + attributes(node)


def hang(operation, node, _):
    """Bytes, a negative error, or None: never."""
    if operation == INIT:
        return struct.pack("=IIIIHHIIHHI28x", 7, 31, 0, 0, 16, 12, 1 << 17, 1, 0, 0, 0)
    if operation in (GETATTR, SETATTR):
        return struct.pack("=QII", 1, 0, 0) + attributes(node)
    if operation == LOOKUP:
        return -errno.ENOENT
    if operation == CREATE:
        return entry(FILE) + OPEN.pack(1, 0, 0)
    if operation == OPENDIR:
        return OPEN.pack(1, 0, 0)
    if operation == STATFS:
        return struct.pack("=QQQQQIIII24x", 1 << 30, 1 << 30, 1 << 30, 1 << 20, 1 << 20, 4096, 255, 4096, 0)
    if operation in (UNLINK, RELEASE, RELEASEDIR):
        return b""
    return None if operation in (WRITE, FLUSH) else -errno.ENOSYS


def serve(fd, told, answer):
    while True:
        request = os.read(fd, 1 << 18)
        _, operation, unique, node, *_ = IN.unpack_from(request)
        if operation in (FORGET, BATCH_FORGET, INTERRUPT):
            continue
        reply = answer(operation, node, request[IN.size:])
        if reply is None:
            os.write(told, b"w" if operation == WRITE else b"f")
        elif isinstance(reply, int):
            os.write(fd, OUT.pack(OUT.size, reply, unique))
        else:
            os.write(fd, OUT.pack(OUT.size + len(reply), 0, unique) + reply)


class Late:
    """The file takes no room before it is said to have to."""

    def __init__(self):
        self.size = self.blocks = 0

    def __call__(self, operation, node, body):
        if operation == WRITE:
            _, offset, size = struct.unpack_from("=QQI", body)
            self.size = max(self.size, offset + size)
            return struct.pack("=II", size, 0)
        if operation == FSYNC:
            self.blocks = (self.size + 511) // 512
        if operation in (GETATTR, SETATTR):
            return struct.pack("=QII", 0, 0, 0) + attributes(node, self.size, self.blocks)
        return b"" if operation in (FSYNC, FSYNCDIR, FLUSH, RENAME) else hang(operation, node, body)


class HungFs:
    """Mounted while the `with` lasts.  Needs root."""

    def __init__(self, path, answer=hang):
        self.path, self.answer, self.pid, self.told = path, answer, 0, -1

    def __enter__(self):
        libc = ctypes.CDLL(None, use_errno=True)
        self.path.mkdir()
        fd = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        options = f"fd={fd},rootmode=40755,user_id=0,group_id=0,allow_other".encode()
        if libc.mount(b"hungfs", str(self.path).encode(), b"fuse", MS_NOSUID | MS_NODEV, options):
            os.close(fd)
            raise OSError(ctypes.get_errno(), "mount")
        self.told, write_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self.pid = os.fork()
        if not self.pid:
            # Who serves holds the device alone: with him, all that waits ends.
            try:
                serve(fd, write_end, self.answer)
            finally:
                os._exit(0)
        os.close(fd)
        os.close(write_end)
        return self

    def wrote(self):
        """Has a write begun, which now waits?"""
        with contextlib.suppress(BlockingIOError):
            return b"w" in os.read(self.told, 1 << 16)
        return False

    def close(self):
        """All that waits fails."""
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.pid = 0

    def __exit__(self, *_):
        self.close()
        os.close(self.told)
        ctypes.CDLL(None).umount2(str(self.path).encode(), MNT_DETACH)
