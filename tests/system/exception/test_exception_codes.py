#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every exception code, one by one: what is told of it, and what the application hears.

The schema has the list of AMD's, cudbg_abi.h that of NVIDIA's; a code without a row here fails.
"""
import os
import pathlib
import re
import socket
import struct
import subprocess
import sys
import time
from typing import NamedTuple

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from harness import EXCEPTION_WORDS, EXCEPTIONS, PATIENCE, ROOT, STOP_MS, CudaScene, Scene, need_root, wait_until

DATA = pathlib.Path(__file__).resolve().parents[2] / "data/codeobj"
PAGE = 0x7F0000003000


class Row(NamedTuple):
    """Where a code comes from, whether the application waits for it, and the waves that raise it."""
    source: str
    withheld: bool = True
    waves: str = ""
    reason: str = ""


PACKET = Row("queue")
ROWS = {
    "wave_abort": Row("queue", waves="assert", reason="assert"),
    "wave_trap": Row("queue", waves="debugtrap", reason="debug_trap"),
    "wave_math_error": Row("queue", waves="math", reason="math_error"),
    "wave_illegal_instruction": Row("queue", waves="illegal", reason="illegal_instruction"),
    "wave_memory_violation": Row("queue", waves="memory", reason="memory_violation"),
    "wave_address_error": Row("queue", waves="address", reason="address_error"),
    "packet_dispatch_dim_invalid": PACKET,
    "packet_dispatch_group_segment_size_invalid": PACKET,
    "packet_dispatch_code_invalid": PACKET,
    "packet_reserved": PACKET,
    "packet_unsupported": PACKET,
    "packet_dispatch_work_group_size_invalid": PACKET,
    "packet_dispatch_register_invalid": PACKET,
    "packet_vendor_unsupported": PACKET,
    "queue_preemption_error": Row("queue"),
    "queue_new": Row("queue", withheld=False),
    "device_queue_delete": Row("device", withheld=False),
    "device_memory_violation": Row("device"),
    "device_ras_error": Row("device", withheld=False),
    "device_fatal_halt": Row("device", withheld=False),
    "device_new": Row("device", withheld=False),
    "process_runtime": Row("process", withheld=False),
    "process_device_remove": Row("process", withheld=False),
}
WAVES = [name for name, row in ROWS.items() if row.waves]
# Told as runtime.changed, and by NVIDIA devices only.
ELSEWHERE = {"process_runtime", "wave_fault"}


class Codes(Scene):
    """One device; a queue with two waves for each code that waves raise, and one without any."""

    PLAIN = len(WAVES)

    def __init__(self):
        waves = "; ".join(f"waves {i} {ROWS[name].waves} 2 spin+16" for i, name in enumerate(WAVES))
        super().__init__(app=f"runtime ttmp; load {DATA}/spin-gfx90a.co; queues {self.PLAIN + 1}; {waves}; listen",
                         gpus="gfx90a")

    def __enter__(self):
        super().__enter__()
        self.control("never on")
        self.control("memory-info fixed")
        self.gpu = self.state()["gpus"][0]["gpu_id"]
        self.lines = 0
        return self

    def app_does(self, line):
        """One line of its script, and its answer."""
        self.lines += 1
        self.app.popen.stdin.write(line.encode() + b"\n")
        self.app.popen.stdin.flush()
        # The first line says that it is ready.
        wait_until(lambda: self.app.out().count("\n") == self.lines + 1, f"the program has done: {line}")
        assert self.app.out().splitlines()[-1] == "ok", self.app.out()

    def queue_of(self, name):
        return WAVES.index(name) if name in WAVES else self.PLAIN

    def happen(self, name):
        """What makes the kernel raise it, or the simulator in its place."""
        pid = self.app.pid
        if name == "queue_new":
            self.app_does("create")
        elif name == "device_queue_delete":
            self.app_does(f"destroy {self.PLAIN + 1}")
        elif name == "device_memory_violation":
            self.control(f"fault {pid} {self.gpu} {PAGE:#x} read-only")
        elif ROWS[name].source == "queue":
            self.control(f"raise {pid} queue {self.queue_of(name)} {EXCEPTIONS[name]}")
        else:
            place = f"gpu {self.gpu}" if ROWS[name].source == "device" else "process"
            self.control(f"raise {pid} {place} {EXCEPTIONS[name]}")

    def latched(self):
        process = next(p for p in self.state()["processes"] if p["pid"] == self.app.pid)
        return [int(x["latched"], 16) for x in (process, *process["devices"], *process["queues"])]


def check_source(s, name, note):
    row = ROWS[name]
    assert note["exceptions"] == [name] and note["text"] == EXCEPTION_WORDS[name], note
    assert note["forwarded"] == row.withheld, note
    assert ("gpu_id" in note) == (row.source != "process") and note.get("gpu_id", s.gpu) == s.gpu, note
    queue = s.PLAIN + 1 if name == "queue_new" else s.queue_of(name)
    assert note.get("queue_id") == (queue if row.source == "queue" else None), note


def check_access(name, note, nth=1):
    """Where memory was touched, and how: one code has that; the kernel keeps the record of every other one."""
    if name == "device_memory_violation" and nth % 2:
        assert note["address"] == f"{PAGE:#x}" and note["read_only"], note
        assert not note["not_present"] and not note["no_execute"], note
    else:
        assert not {"address", "not_present", "read_only", "no_execute"} & set(note), note


def is_cut_short(note):
    """No look because another one was a moment ago, or not all of it because this machine stood still meanwhile."""
    return any(why in m for m in note["missing"] for why in ("a moment ago", "budget", "no time"))


def check_waves(s, name, note):
    """@return False when not all waves were looked at: see is_cut_short()."""
    row = ROWS[name]
    if not row.waves and name != "device_memory_violation":
        assert "waves" not in note and "stopped_us" not in note and not note["groups"], note
        assert not note["missing"], note
        return True
    if is_cut_short(note):
        return False
    concerned = [name] if row.waves else WAVES
    assert note["waves"] == 2 * len(concerned) and note["lanes"] == 128 * len(concerned), note
    assert not note["missing"] and note["stopped_us"] > 0, note
    assert sorted(g["reasons"] for g in note["groups"]) == sorted([ROWS[w].reason] for w in concerned), note
    for group in note["groups"]:
        assert group["kernel"]["name"] == "spin" and group["gpu_id"] == s.gpu and group["waves"] == 2, group
        assert group["frames"][0]["function"] == "spin" and group["frames"][0]["line"] > 0, group
        who = group["representative"]
        assert ROWS[WAVES[who["queue_id"]]].reason in group["reasons"], group
        assert "dispatch" in who and len(who["workgroup"]) == 3 and "wave_in_group" in who, who
    return True


def check_application(s, name, before, nth=1):
    """It hears of what is its own, and of nothing else."""
    if not ROWS[name].withheld:
        return before
    wait_until(lambda: s.app_status().faults == before + 1, f"the application has its {name}")
    if ROWS[name].source == "queue":
        errors = s.app_status().queue_errors()
        assert errors[s.queue_of(name)] == 1 << (EXCEPTIONS[name] - 1), (name, errors)
    else:
        assert s.app_status().memory_fault_va == (PAGE if nth % 2 else 0)
    return before + 1


def test_every_code_has_a_row():
    assert set(ROWS) | {"wave_fault"} == set(EXCEPTIONS), set(ROWS) ^ set(EXCEPTIONS)


def test_every_code_is_told_and_goes_on():
    with Codes() as s:
        s.session = s.attach()
        got = s.rpc.call("exception.subscribe", session=s.session, exceptions=sorted(EXCEPTIONS), look_ms=1000)
        assert set(got["exceptions"]) == set(EXCEPTIONS), got
        # A look has little time for debug information that was not read before.
        s.rpc.call("gpu.snapshot", session=s.session, max_stop_ms=STOP_MS)
        number, faults = 0, 0
        for name in sorted(set(ROWS) - ELSEWHERE, key=EXCEPTIONS.get):
            deadline = time.monotonic() + 3 * PATIENCE
            looked, nth = False, 0
            while not looked:
                assert time.monotonic() < deadline, f"{name}: never looked at"
                s.happen(name)
                note = s.rpc.notification("exception.raised")
                number += 1
                nth += 1
                assert note["number"] == number, (name, note)
                check_source(s, name, note)
                check_access(name, note, nth)
                looked = check_waves(s, name, note)
                faults = check_application(s, name, faults, nth)
        # Nothing is left to be told or sent again.
        s.rpc.call("session.detach", session=s.session)
        assert not [n for n in s.rpc.notifications if n[0] == "exception.raised"], s.rpc.notifications
        assert s.app_status().faults == faults and s.target_state()["suspended_queues"] == 0


def test_the_runtime_is_told_by_its_own_notification():
    """And answered, whether or not anybody subscribed to it."""
    with Scene(app="listen", gpus="gfx90a") as s:
        session = s.attach()
        for exceptions in ([], ["process_runtime"]):
            s.rpc.call("exception.subscribe", session=session, exceptions=exceptions)
            for line, state in (("runtime ttmp", "enabled"), ("runtime off", "disabled")):
                s.app.popen.stdin.write(line.encode() + b"\n")
                s.app.popen.stdin.flush()
                assert s.rpc.notification("runtime.changed")["runtime"]["state"] == state
        wait_until(lambda: s.app.out().count("ok\n") == 4, "the program was never left waiting")
        assert not s.rpc.notifications, s.rpc.notifications


def test_every_withheld_code_can_be_held():
    """Until somebody sends it on by hand, once, or ends the subscription, which sends the rest."""
    withheld = [name for name, row in ROWS.items() if row.withheld]
    with Codes() as s:
        s.session = s.attach(control=True)
        s.rpc.call("exception.subscribe", session=s.session, exceptions=withheld, hold=True, look_ms=0)
        for name in withheld:
            s.happen(name)
            note = s.rpc.notification("exception.raised")
            assert name in note["exceptions"] and not note["forwarded"], (name, note)
            check_access(name, note)
            assert s.app_status().faults == 0
        place = {"queue": lambda name: {"queue_id": s.queue_of(name)}, "device": lambda name: {"gpu_id": s.gpu}}
        by_hand = {}
        for name in withheld:
            by_hand.setdefault(s.queue_of(name) if ROWS[name].source == "queue" else "device", name)
        for name in by_hand.values():
            s.rpc.call("exception.forward", session=s.session, exceptions=[name], **place[ROWS[name].source](name))
        wait_until(lambda: s.app_status().faults == len(by_hand), "what was sent by hand")
        s.rpc.call("exception.subscribe", session=s.session, exceptions=[])
        # Those of the plain queue come together.
        wait_until(lambda: s.app_status().faults == len(by_hand) + 1, "the rest")
        rest = sum(1 << (EXCEPTIONS[n] - 1) for n in withheld if s.queue_of(n) == s.PLAIN and
                   ROWS[n].source == "queue" and n not in by_hand.values())
        assert s.app_status().queue_errors()[s.PLAIN] == rest, s.app_status().queue_errors()
        s.rpc.call("session.detach", session=s.session)
        assert s.app_status().faults == len(by_hand) + 1 and not any(s.latched())


def test_what_the_application_had_is_not_sent_again():
    """Faults from before the subscription went their normal way; the kernel remembers them all the same."""
    with Codes() as s:
        s.session = s.attach()
        faults = 0
        for name in (n for n, row in ROWS.items() if row.withheld):
            s.happen(name)
            faults = check_application(s, name, faults)
        s.rpc.call("exception.subscribe", session=s.session, exceptions=[n for n, r in ROWS.items() if r.withheld])
        s.happen("wave_trap")
        note = s.rpc.notification("exception.raised")
        assert note["exceptions"] == ["wave_trap"] and note["number"] == 1, note
        check_application(s, "wave_trap", faults)
        # The record of a fault stays with the kernel until somebody clears it: it must not be told for another.
        s.control(f"fault {s.app.pid} {s.gpu} {PAGE + 0x5000:#x} not-present")
        note = s.rpc.notification("exception.raised")
        assert note["number"] == 2 and note["address"] == f"{PAGE + 0x5000:#x}" and note["not_present"], note
        wait_until(lambda: s.app_status().faults == faults + 2, "the application has both")
        assert s.app_status().memory_fault_va == PAGE + 0x5000
        s.rpc.call("session.detach", session=s.session)
        assert s.app_status().faults == faults + 2


def test_a_socket_says_who_wrote_to_it():
    """Also of a plain write, as the kernel does it for the debugger; that is how faults are told apart below."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        os.write(theirs.fileno(), b".")
        child = subprocess.Popen(["printf", "."], stdout=theirs)
        child.wait()
        for writer in (os.getpid(), child.pid):
            data, ancillary, _, _ = ours.recvmsg(16, 64)
            (kind, creds) = [(a[1], a[2]) for a in ancillary][0]
            assert (data, kind, struct.unpack("i", creds[:4])[0]) == (b".", socket.SCM_CREDENTIALS, writer)


def test_a_fault_while_subscribing_is_sent_once():
    """It comes behind what is forgotten, and before the kernel knows of the subscription."""
    need_root()
    withheld = [n for n, row in ROWS.items() if row.withheld]
    for name in ("wave_trap", "packet_reserved", "device_memory_violation"):
        with Codes() as s:
            s.session = s.attach()
            s.control("block exceptions")
            s.rpc.send("exception.subscribe", session=s.session, exceptions=withheld)
            wait_until(lambda: any(c["wait"] == "block" for c in s.state()["pending"]), "about to subscribe")
            s.happen(name)
            faults = check_application(s, name, 0)
            s.control("release exceptions")
            assert "result" in s.rpc.read_message()
            # The next one is told, and the first one was not.
            other = "wave_math_error" if name != "device_memory_violation" else name
            s.happen(other)
            note = s.rpc.notification("exception.raised")
            assert note["exceptions"] == [other] and note["number"] == 1, note
            check_access(other, note)
            wait_until(lambda: s.app_status().faults == faults + 1, "the application has both")
            s.rpc.call("session.detach", session=s.session)
            assert s.app_status().faults == faults + 1 and not any(s.latched())


def test_a_fault_while_subscribing_to_more_is_not_lost():
    """Where it cannot be told from one that was withheld, the application gets it twice rather than never."""
    with Codes() as s:
        s.session = s.attach()
        s.rpc.call("exception.subscribe", session=s.session, exceptions=["wave_trap"], look_ms=0)
        s.control("block exceptions")
        s.rpc.send("exception.subscribe", session=s.session, exceptions=["wave_trap", "wave_abort"], look_ms=0)
        wait_until(lambda: any(c["wait"] == "block" for c in s.state()["pending"]), "about to subscribe")
        s.happen("wave_abort")
        wait_until(lambda: s.app_status().faults == 1, "the application has the one that nobody withheld")
        s.happen("wave_trap")
        s.control("release exceptions")
        assert "result" in s.rpc.read_message()
        told = [n for _ in range(2) for n in s.rpc.notification("exception.raised")["exceptions"]]
        assert sorted(told) == ["wave_abort", "wave_trap"], told
        wait_until(lambda: s.app_status().faults == 3, "both are sent on")
        s.rpc.call("session.detach", session=s.session)
        assert s.app_status().faults == 3 and not any(s.latched())


# -- NVIDIA's ---------------------------------------------------------------------------------------

MEMORY, ADDRESS, ILLEGAL, ASSERT, OTHER = (
    ("wave_memory_violation", "memory_violation"), ("wave_address_error", "address_error"),
    ("wave_illegal_instruction", "illegal_instruction"), ("wave_abort", "assert"), ("wave_fault", "fault"))
# By name: what it is announced as; the words are the name's, with these exceptions.
CUDA_ROWS = {
    "LANE_ILLEGAL_ADDRESS": MEMORY, "LANE_USER_STACK_OVERFLOW": OTHER, "DEVICE_HARDWARE_STACK_OVERFLOW": OTHER,
    "WARP_ILLEGAL_INSTRUCTION": ILLEGAL, "WARP_OUT_OF_RANGE_ADDRESS": ADDRESS, "WARP_MISALIGNED_ADDRESS": ADDRESS,
    "WARP_INVALID_ADDRESS_SPACE": ADDRESS, "WARP_INVALID_PC": ILLEGAL, "WARP_HARDWARE_STACK_OVERFLOW": OTHER,
    "DEVICE_ILLEGAL_ADDRESS": MEMORY, "LANE_MISALIGNED_ADDRESS": ADDRESS, "WARP_ASSERT": ASSERT,
    "LANE_SYSCALL_ERROR": OTHER, "WARP_ILLEGAL_ADDRESS": MEMORY, "LANE_NONMIGRATABLE_ATOMSYS": OTHER,
    "LANE_INVALID_ATOMSYS": OTHER, "CLUSTER_OUT_OF_RANGE_ADDRESS": ADDRESS, "CLUSTER_BLOCK_NOT_PRESENT": OTHER,
    "WARP_STACK_CANARY": OTHER, "WARP_TMEM_ACCESS_CHECK": MEMORY, "WARP_TMEM_LEAK": OTHER,
    "WARP_CALL_REQUIRES_NEWER_DRIVER": OTHER, "WARP_MISALIGNED_PC": ILLEGAL, "WARP_PC_OVERFLOW": ILLEGAL,
    "WARP_MISALIGNED_REG": ILLEGAL, "WARP_ILLEGAL_INSTR_ENCODING": ILLEGAL, "WARP_ILLEGAL_INSTR_PARAM": ILLEGAL,
    "WARP_OUT_OF_RANGE_REGISTER": ILLEGAL, "WARP_INVALID_CONST_ADDR_LDC": ADDRESS, "WARP_MMU_FAULT": MEMORY,
    "WARP_ARRIVE": OTHER, "CLUSTER_POISON": OTHER, "WARP_API_STACK_ERROR": OTHER, "WARP_BLOCK_NOT_PRESENT": OTHER,
    "WARP_USER_STACK_OVERFLOW": OTHER, "TMA_SYSCALL": OTHER, "UNKNOWN": OTHER,
}
CUDA_WORDS = {
    "WARP_MISALIGNED_REG": "warp misaligned register",
    "WARP_ILLEGAL_INSTR_ENCODING": "warp illegal instruction encoding",
    "WARP_ILLEGAL_INSTR_PARAM": "warp illegal instruction parameter",
    "WARP_INVALID_CONST_ADDR_LDC": "warp invalid constant address", "WARP_ARRIVE": "warp arrive error",
    "TMA_SYSCALL": "tma syscall error", "UNKNOWN": "one that this agent does not know",
}


def cuda_codes():
    text = (ROOT / "libcudbgshim/src/cudbg_abi.h").read_text()
    found = re.findall(r"^\tCUDBGABI_EXCEPTION_(\w+) = (\w+),", text, re.MULTILINE)
    return {name: int(number, 0) for name, number in found if name != "NONE"}


def cuda_text(name, code):
    number = "" if name == "UNKNOWN" else f"_{code}"
    return f"CUDA_EXCEPTION{number}: " + CUDA_WORDS.get(name, name.lower().replace("_", " "))


class CudaCodes(CudaScene):
    def __init__(self, release):
        super().__init__(release=release, sim="devices 2 sms=3 warps=8", user_mode=False)

    def subscribed(self):
        session = self.attach(control=True)
        self.rpc.call("exception.subscribe", session=session, exceptions=sorted(EXCEPTIONS), look_ms=1000)
        return session

    def raised(self, line):
        """What is told of it; the device runs on afterwards."""
        self.control(line)
        note = self.rpc.notification("exception.raised")
        wait_until(lambda: not any(d["suspended"] for d in self.state()["devices"]), "the devices run on")
        return note

    def again(self):
        """The kernel that has faulted ends, and another one begins."""
        state = self.state()
        for grid in state["grids"]:
            self.control(f"finish {grid['id']}")
        handle = self.control(f"function {state['modules'][0]['handle']} spin")
        self.control(f"launch {handle} grid=8 block=128")


def test_every_code_of_cuda_has_a_row():
    assert set(cuda_codes()) == set(CUDA_ROWS), set(cuda_codes()) ^ set(CUDA_ROWS)


def test_every_code_of_cuda_is_told():
    with CudaCodes("12.9") as s:
        s.subscribed()
        looked, number = 0, 0
        for name, code in cuda_codes().items():
            exception, reason = CUDA_ROWS[name]
            deadline = time.monotonic() + 3 * PATIENCE
            while True:
                assert time.monotonic() < deadline, f"{name}: never looked at"
                note = s.raised(f"raise 0 1 2 {code} errorpc=0x50")
                number += 1
                assert note["exceptions"] == [exception] and note["text"] == EXCEPTION_WORDS[exception], (name, note)
                assert note["gpu_id"] == 0 and "queue_id" not in note and note["number"] == number, (name, note)
                if not is_cut_short(note):
                    break
            (group,) = note["groups"]
            assert group["exception"] == cuda_text(name, code) and group["reasons"] == [reason], (name, group)
            assert note["waves"] == 1 and note["lanes"] == 32 and not note["missing"], (name, note)
            assert group["kernel"]["name"] == "spin" and group["frames"][0]["line"] > 0, (name, group)
            who = group["representative"]
            assert (who["unit"], who["index"]) == (1, 2) and "dispatch" in who and who["workgroup"], (name, who)
            looked += 1
            s.again()
        assert looked == len(CUDA_ROWS)


def test_what_no_warp_has_is_told_of_its_device():
    """Warps that have exited leave it with their multiprocessor; of some faults only the device is known."""
    for line, exception in (("raise-sm 0 1 14", "wave_memory_violation"), ("raise-sm 0 2 9", "wave_fault"),
                            ("raise-device 1 10", "wave_fault")):
        with CudaCodes("12.9") as s:
            s.subscribed()
            note = s.raised(line)
            device = int(line.split()[1])
            assert note["exceptions"] == [exception] and note["gpu_id"] == device, (line, note)
            assert note["groups"] == [], (line, note)
            if line.startswith("raise-device"):
                assert "exited" not in note, note
                continue
            (exited,) = note["exited"]
            unit, code = map(int, line.split()[2:])
            assert (exited["gpu_id"], exited["unit"], exited["units"]) == (0, unit, 1), (line, exited)
            assert exited["exception"].startswith(f"CUDA_EXCEPTION_{code}: "), (line, exited)
            assert "pc" not in exited and exited["frames"] == [], (line, exited)
