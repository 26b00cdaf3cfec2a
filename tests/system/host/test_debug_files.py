#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Names of functions that a file does not export, from its separate debug file, found by its build id or by the link that it has:
below the root of the process, which may be a container's, and below this machine's.  What a container plants there is neither
followed nor opened, and a file system that never answers costs names alone."""
import contextlib
import ctypes
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zlib
from unittest import SkipTest

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest

from harness import BIN, Scene, need_root
from nativestacks import read, start

TESTS = BIN.parent / "tests"
LIBRARY = ctypes.CDLL(None, use_errno=True)
MNT_DETACH = 2
LIBC = "/lib/x86_64-linux-gnu/libc.so.6"
SOURCE = """
#include <stdio.h>
#include <unistd.h>
__attribute__((noinline)) static int innermost(volatile int *n) { while (*n) pause(); return *n; }
__attribute__((noinline)) static int between(volatile int *n) { return innermost(n) + 1; }
int main(void) { volatile int n = 1; printf("%d\\n", getpid()); fflush(stdout); return between(&n); }
"""


def build_id(path):
    notes = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=True).stdout
    return re.search(r"Build ID: (\w+)", notes)[1]


def compile_program(path, build="sha1", extra=""):
    path.parent.mkdir(parents=True, exist_ok=True)
    source = path.with_suffix(".c")
    source.write_text(SOURCE + extra)
    subprocess.run(["cc", "-O1", "-g", "-static-pie", f"-Wl,--eh-frame-hdr,--build-id={build}", "-o", path, source], check=True,
                   timeout=120)


class Container:
    """A directory with a stripped program, and where its debug file belongs."""

    def __init__(self, directory, program="static", build="sha1"):
        self.root = pathlib.Path(directory, "root")
        self.program, self.debug = self.root / program, pathlib.Path(directory, "static.debug")
        compile_program(self.program, build)
        subprocess.run(["objcopy", "--only-keep-debug", self.program, self.debug], check=True, timeout=60)
        subprocess.run(["strip", self.program], check=True, timeout=60)
        if build != "none":
            name = build_id(self.program)
            self.place = self.root / "usr/lib/debug/.build-id" / name[:2] / f"{name[2:]}.debug"
            self.place.parent.mkdir(parents=True)

    def read(self, s, before=lambda: None):
        path = "/" + str(self.program.relative_to(self.root))
        process = start(s, [path], preexec_fn=lambda: os.chroot(self.root))
        before()
        doc = read(s, process.pid)
        group, = doc["groups"]
        assert group["native_end"] == "outermost" and len(group["native_frames"]) >= 4, group
        return doc, [f.get("function") for f in group["native_frames"]]

    def names(self, s, before=lambda: None):
        return self.read(s, before)[1]

    @contextlib.contextmanager
    def mounted(self, kind, options=""):
        """Another file system where the root of the process has its debug files."""
        place = os.fsencode(self.root / "usr/lib/debug")
        if LIBRARY.mount(b"test", place, kind.encode(), 0, options.encode()):
            raise SkipTest(f"no mount of {kind} here: {os.strerror(ctypes.get_errno())}")
        try:
            yield
        finally:
            LIBRARY.umount2(place, MNT_DETACH)


@pytest.fixture
def container():
    need_root()
    with Scene(app=None) as s:
        yield s, Container(s.directory)


def test_functions_that_are_not_exported(container):
    s, box = container
    shutil.copy(box.debug, box.place)
    names = box.names(s)
    at = names.index("innermost")
    assert names[at:at + 3] == ["innermost", "between", "main"] and names[-1] == "_start", names


def planted_link(box):
    box.place.symlink_to(box.debug)


def planted_directory_link(box):
    """Its target is the machine's own for whoever follows it."""
    box.place.parent.rmdir()
    other = box.debug.parent / "other"
    other.mkdir()
    shutil.copy(box.debug, other / box.place.name)
    box.place.parent.symlink_to(other)


def planted_pipe(box):
    os.mkfifo(box.place)


def planted_other_build(box):
    compile_program(box.place, extra="int other;")


def planted_half(box):
    data = box.debug.read_bytes()
    box.place.write_bytes(data[:len(data) // 2])


def planted_sizes(box):
    """Section headers that say that all is as large as can be."""
    data = bytearray(box.debug.read_bytes())
    begin, count = int.from_bytes(data[0x28:0x30], "little"), int.from_bytes(data[0x3c:0x3e], "little")
    for i in range(count):
        if int.from_bytes(data[begin + 64 * i + 4:begin + 64 * i + 8], "little") == 2:
            data[begin + 64 * i + 0x20:begin + 64 * i + 0x28] = (24 << 40).to_bytes(8, "little")
    box.place.write_bytes(data)


@pytest.mark.parametrize("plant", [planted_link, planted_directory_link, planted_pipe, planted_other_build, planted_half, planted_sizes])
def test_what_a_container_plants(container, plant):
    s, box = container
    plant(box)
    names = box.names(s)
    assert not set(names) & {"innermost", "between", "main"}, names


@pytest.mark.parametrize("kind, named", [("tmpfs", True), ("ramfs", False)])
def test_kinds_of_file_systems(container, kind, named):
    """Of those that are not known to keep files themselves, none is looked into."""
    s, box = container
    with box.mounted(kind):
        box.place.parent.mkdir(parents=True)
        shutil.copy(box.debug, box.place)
        assert ("innermost" in box.names(s)) == named


def test_a_file_system_that_never_answers(container):
    """Frames and all else are told, and which names are not."""
    s, box = container
    device = os.open("/dev/fuse", os.O_RDWR)
    try:
        with box.mounted("fuse", f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other"):
            doc, names = box.read(s)
            note, = doc["missing"]
            assert note.startswith("names: those of debug files not read yet") and note.endswith("does not answer"), note
            assert "innermost" not in names, doc
    finally:
        os.close(device)


def test_debug_files_of_this_machine():
    """Functions within the C library, of which Debian has a package with debug files."""
    name = build_id(LIBC) if os.path.exists(LIBC) else "none"
    if not os.path.exists(f"/usr/lib/debug/.build-id/{name[:2]}/{name[2:]}.debug"):
        raise SkipTest("no debug file of the C library here")
    with Scene(app=None) as s:
        process = start(s, [TESTS / "waits"])
        frames = [f for g in read(s, process.pid)["groups"] for f in g["native_frames"] if f["module"].endswith("libc.so.6")]
        assert frames and all("function" in f for f in frames), frames
        assert "start_thread" in {f["function"] for f in frames}, frames


class Linked(Container):
    """The program says itself what its debug file is called, and may have no build id."""

    def __init__(self, directory, build="none"):
        super().__init__(directory, "opt/app/static", build)
        self.beside = self.program.with_name("static.debug")
        self.link(self.program, self.debug)

    @staticmethod
    def link(program, debug):
        subprocess.run(["objcopy", "--remove-section=.gnu_debuglink", program], check=True, timeout=60)
        subprocess.run(["objcopy", f"--add-gnu-debuglink={debug}", program], check=True, timeout=60)

    def call(self, name):
        """Another name in its section, with the checksum that is right."""
        section = self.debug.with_name("section")
        section.write_bytes(name + bytes(4 - len(name) % 4) + zlib.crc32(self.debug.read_bytes()).to_bytes(4, "little"))
        subprocess.run(["objcopy", "--remove-section=.gnu_debuglink", f"--add-section=.gnu_debuglink={section}", self.program],
                       check=True, timeout=60)


@pytest.fixture
def linked():
    need_root()
    with Scene(app=None) as s:
        yield s, Linked(s.directory)


@pytest.mark.parametrize("place", ["opt/app", "opt/app/.debug", "usr/lib/debug/opt/app"])
def test_places_of_linked_files(linked, place):
    s, box = linked
    assert "innermost" not in box.names(s)
    (box.root / place).mkdir(parents=True, exist_ok=True)
    shutil.copy(box.debug, box.root / place / "static.debug")
    names = box.names(s)
    at = names.index("innermost")
    assert names[at:at + 3] == ["innermost", "between", "main"], names


def test_a_linked_file_of_a_process_outside_containers(linked):
    s, box = linked
    shutil.copy(box.debug, box.beside)
    process = start(s, [box.program])
    group, = read(s, process.pid)["groups"]
    assert "innermost" in {f.get("function") for f in group["native_frames"]}, group


def test_a_linked_file_of_a_program_with_a_build_id(container):
    s, _ = container
    box = Linked(os.path.join(s.directory, "other"), "sha1")
    shutil.copy(box.debug, box.beside)
    assert "innermost" in box.names(s)


def planted_other_checksum(box):
    box.beside.write_bytes(box.debug.read_bytes() + b"\0")


def planted_link_beside(box):
    box.beside.symlink_to(box.debug)


def planted_pipe_beside(box):
    os.mkfifo(box.beside)


def planted_name_elsewhere(box):
    """A name with a directory, which could lead out of the container as well."""
    shutil.copy(box.debug, box.root / "opt/elsewhere.debug")
    box.call(b"../elsewhere.debug")


def planted_name_below(box):
    box.program.with_name("below").mkdir()
    shutil.copy(box.debug, box.program.with_name("below") / "static.debug")
    box.call(b"below/static.debug")


def planted_huge(box):
    shutil.copy(box.debug, box.beside)
    os.truncate(box.beside, 1 << 40)


@pytest.mark.parametrize("plant", [planted_other_checksum, planted_link_beside, planted_pipe_beside, planted_name_elsewhere,
                                   planted_name_below, planted_huge])
def test_what_a_link_does_not_lead_to(linked, plant):
    s, box = linked
    plant(box)
    names = box.names(s)
    assert not set(names) & {"innermost", "between", "main"}, names


def test_a_linked_file_of_another_build(container):
    """Its checksum is right, but not its build id."""
    s, _ = container
    box = Linked(os.path.join(s.directory, "other"), "sha1")
    compile_program(box.beside, extra="int other;")
    Linked.link(box.program, box.beside)
    names = box.names(s)
    assert not set(names) & {"innermost", "between", "main"}, names


def test_another_program_has_taken_its_place(linked):
    """What the kernel calls a program whose file is gone may be another one, whose debug file would name what it has there."""
    s, box = linked

    def replace():
        box.program.unlink()
        other = box.program.with_name("static (deleted)")
        compile_program(other, "none", "char other[1 << 20];")
        subprocess.run(["objcopy", "--only-keep-debug", other, box.beside], check=True, timeout=60)
        Linked.link(other, box.beside)
    names = box.names(s, replace)
    assert not set(names) & {"innermost", "between", "main"}, names
