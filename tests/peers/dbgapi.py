# SPDX-License-Identifier: MIT
"""AMD's own debugger library on a process of the simulated device.

The library and everything below it come from Debian sid, into a tree of their own (scripts/fetch-peers), and run
with that tree's own dynamic linker.  In a private mount namespace the simulator's file lies over /dev/kfd.
"""
from harness import need_root, wait_until
from peers import build_dbgapi

# Types of queues, as the library numbers them.
TYPES = {"compute_aql": 1, "sdma": 513}
# A directory for devices of our own: the real /dev is shared with the whole machine.
ENTER = ('set -e; mount -t tmpfs none "$1"; touch "$1/kfd" "$1/null"; mount --bind "$2" "$1/kfd"; '
         'mount --bind /dev/null "$1/null"; mount --move "$1" /dev; shift 2; exec "$@"')


class Probe:
    """The library, step by step."""

    def __init__(self, s, pid):
        need_root()
        argv = build_dbgapi("dbgapi_probe")
        dev = s.directory / f"dev{len(s.processes)}"
        dev.mkdir()
        self.process = s.start("probe", ["unshare", "--mount", "--propagation", "private", "sh", "-c", ENTER, "sh", dev,
                                         s.mount / "kfd", *argv, pid])
        self.read = 0
        self.lines_until("ready")

    def lines_until(self, *last):
        def done():
            lines = self.process.out().split("\n")[self.read:-1]
            for i, line in enumerate(lines):
                if line.startswith(last):
                    self.read += i + 1
                    return lines[:i + 1]
            assert self.process.popen.poll() is None, f"the probe ended: {self.process.err()}"
            return None

        return wait_until(done, f"{last[0]} of AMD's library")

    def step(self, name):
        """Run one step; the lines that it printed."""
        self.process.popen.stdin.write(name.encode() + b"\n")
        self.process.popen.stdin.flush()
        *lines, verdict = self.lines_until(f"ok {name}", f"error {name}")
        assert verdict.startswith("ok"), f"{verdict}\n{self.process.err()}"
        return lines

    def end(self):
        self.process.popen.stdin.close()
        assert self.process.popen.wait(20) == 0, self.process.err()
        # Warnings are about us: the library has nothing to complain about on a real device.
        assert self.process.err() == "", self.process.err()


def compare_devices(lines, ours):
    """gpu_id, architecture, PCI place and identity as we have them."""
    want = []
    for d in ours["devices"]:
        domain, bus, rest = d["pci"].split(":")
        device, function = rest.split(".")
        slot = int(bus, 16) << 8 | int(device, 16) << 3 | int(function)
        want.append(["device", str(d["gpu_id"]), d["arch"], "supported", "pci", f"{int(domain, 16):04x}:{slot:04x}",
                     "vendor", f"{d['vendor_id']:x}:{d['device_id']:x}"])
    assert sorted(line.split()[:8] for line in lines) == sorted(want), (lines, want)


def compare_queues(lines, ours):
    want = [f"queue {q['queue_id']} device {q['gpu_id']} type {TYPES[q['type']]} ring {q['ring_base']} {q['ring_bytes']}"
            for q in ours["queues"]]
    assert sorted(lines) == sorted(want), (lines, want)
