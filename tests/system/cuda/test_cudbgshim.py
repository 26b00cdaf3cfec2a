#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""libcudbgshim against the simulated CUDA stack: the library is really loaded, the encoder is another's."""
import os
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from harness import BIN, CudaScene, wait_until
import slots as description
from debugger import Debugger, LABEL, get, in_child, say

PROBE = BIN.parent / "tests/cudbgshim_probe"
SLOTS = {f"{r.major}.{r.minor}": r.n_slots for r in description.read()[0] if r.major > 8}
APP = ("init; context 0; module @CUBIN@; gpu launch spin grid=3 block=96,2 spread=3; "
       "gpu launch _Z7divergeIfEvPT_i grid=2 block=40 active=0xffff idle=0x60 pc=0x40 progress=3; listen")
SIM = "devices 2 sms=70 warps=8"


class Probe:
    """The probe on a scene's program, attached as far as it can be without touching the program."""

    def __init__(self, scene):
        self.scene = scene
        in_child(lambda: engage(scene))
        # With ASan's dlopen() in between, a library's own search path does not count.
        self.process = scene.start("probe", [PROBE, scene.libcuda, str(LABEL)],
                                   env={"LD_LIBRARY_PATH": str(scene.libraries)})
        self.seen = 0
        self.start = self.answer()
        say(scene, "set cudbgIpcFlag 1")

    def answer(self):
        def complete():
            lines = self.process.out().splitlines()[self.seen:]
            assert self.process.popen.poll() is None or lines, self.process.err()
            assert self.process.popen.poll() in (None, 0), self.process.err()
            return lines if lines and lines[-1] == "ok" else None

        lines = wait_until(complete, "answer of the probe")
        self.seen += len(lines)
        return lines[:-1]

    def ask(self, command):
        self.process.popen.stdin.write(command.encode() + b"\n")
        self.process.popen.stdin.flush()
        return self.answer()

    def replay(self):
        return self.ask("replay") if get(self.scene, "cudbgResumeForAttachDetach") else []

    def finish(self):
        self.process.popen.stdin.write(b"finish\n")
        self.process.popen.stdin.flush()
        assert self.process.popen.wait(20) == 0, self.process.err()


def engage(scene):
    result = Debugger(scene).engage(capabilities=9)
    assert result == 0, result


def scene(release, app=APP):
    return CudaScene(app=app, release=release, sim=SIM, start_agent=False)


def looks(s, probe, batched):
    """Look, let something happen to a lane, a warp, an SM and a grid, look again."""
    # 3 blocks of 6 warps, 2 blocks of one whole warp and 8 lanes.
    warps, lanes, broken = 22, 656, 0
    for sm in range(3):
        first, second = probe.ask("snapshot")
        assert first == f"device 0 warps {warps} lanes {lanes} broken {broken} batched {batched}", (s.release, first)
        assert second == f"device 1 warps 0 lanes 0 broken 0 batched {batched}", (s.release, second)
        s.control("warp 0 1 0 pc=0x80 idle=0x30 active=0xff syscall=0xf0")
        s.control(f"raise 0 {sm} 0 14 errorpc=0x20")
        s.control(f"launch spin grid=2 block=32 at={40 + sm} cluster=2")
        warps, lanes, broken = warps + 2, lanes + 64, broken + 1


def test_each_release_shows_the_same_both_ways():
    for release, slots in SLOTS.items():
        with scene(release) as s:
            probe = Probe(s)
            assert probe.start[0] == f"release {release} slots {slots}", probe.start
            assert len(probe.start) == 3 and "SMs 70 warps 8 lanes 32" in probe.start[1], probe.start
            events = probe.replay()
            assert not events or "event CUDBG_EVENT_ELF_IMAGE_LOADED elf" in events, events
            assert not events or events[-2:] == ["event CUDBG_EVENT_ATTACH_COMPLETE", "notified 1"], events
            looks(s, probe, batched=int(tuple(map(int, release.split("."))) >= (12, 4)))
            probe.finish()


def test_records_that_grew_are_read():
    with scene("13.4") as s:
        probe = Probe(s)
        probe.replay()
        s.control("batched device=4 sm=8 warp=12 lane=16 unknown=24")
        looks(s, probe, batched=1)
        probe.finish()
