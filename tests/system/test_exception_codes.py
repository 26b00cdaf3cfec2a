#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every exception code, one by one: what is told of it, and what the application hears.

The schema has the list; a code without a row here fails.
"""
import pathlib
import sys
import time
from typing import NamedTuple

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from harness import EXCEPTION_WORDS, EXCEPTIONS, PATIENCE, Scene, main, test, wait_until  # noqa: E402

DATA = pathlib.Path(__file__).resolve().parent.parent / "data/codeobj"
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


def check_access(name, note):
    """Where memory was touched, and how: one code has that."""
    if name == "device_memory_violation":
        assert note["address"] == f"{PAGE:#x}" and note["read_only"], note
        assert not note["not_present"] and not note["no_execute"], note
    else:
        assert not {"address", "not_present", "read_only", "no_execute"} & set(note), note


def check_waves(s, name, note):
    """@return False when there was no look because another one was a moment ago."""
    row = ROWS[name]
    if not row.waves and name != "device_memory_violation":
        assert "waves" not in note and "stopped_us" not in note and not note["groups"], note
        assert not note["missing"], note
        return True
    if "waves" not in note:
        assert any("a moment ago" in m for m in note["missing"]), note
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


def check_application(s, name, before):
    """It hears of what is its own, and of nothing else."""
    if not ROWS[name].withheld:
        return before
    wait_until(lambda: s.app_status().faults == before + 1, f"the application has its {name}")
    if ROWS[name].source == "queue":
        errors = s.app_status().queue_errors()
        assert errors[s.queue_of(name)] == 1 << (EXCEPTIONS[name] - 1), (name, errors)
    else:
        assert s.app_status().memory_fault_va == PAGE
    return before + 1


@test
def every_code_has_a_row():
    assert set(ROWS) | {"wave_fault"} == set(EXCEPTIONS), set(ROWS) ^ set(EXCEPTIONS)


@test
def every_code_is_told_and_goes_on():
    with Codes() as s:
        s.session = s.attach()
        got = s.rpc.call("exception.subscribe", session=s.session, exceptions=sorted(EXCEPTIONS))["exceptions"]
        assert set(got) == set(EXCEPTIONS), got
        number, faults = 0, 0
        for name in sorted(set(ROWS) - ELSEWHERE, key=EXCEPTIONS.get):
            deadline = time.monotonic() + PATIENCE
            looked = False
            while not looked:
                assert time.monotonic() < deadline, f"{name}: never looked at"
                s.happen(name)
                note = s.rpc.notification("exception.raised")
                number += 1
                assert note["number"] == number, (name, note)
                check_source(s, name, note)
                check_access(name, note)
                looked = check_waves(s, name, note)
                faults = check_application(s, name, faults)
        # Nothing is left to be told or sent again.
        s.rpc.call("session.detach", session=s.session)
        assert not [n for n in s.rpc.notifications if n[0] == "exception.raised"], s.rpc.notifications
        assert s.app_status().faults == faults and s.target_state()["suspended_queues"] == 0


@test
def the_runtime_is_told_by_its_own_notification():
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


@test
def every_withheld_code_can_be_held():
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


@test
def what_the_application_had_is_not_sent_again():
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
        s.rpc.call("session.detach", session=s.session)
        assert s.app_status().faults == faults + 2


if __name__ == "__main__":
    main(__file__)
