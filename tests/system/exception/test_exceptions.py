#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The stream of exceptions: what a notification says, who gets it, and what a slow reader gets."""
import json
import os
import pathlib
import socket
import subprocess
import sys
import threading
import time

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from harness import BIN, PATIENCE, STOP_MS, Scene, wait_until

DATA = pathlib.Path(__file__).resolve().parents[2] / "data/codeobj"
FAULTS = ["wave_memory_violation", "wave_trap", "device_memory_violation"]


def scene(script="", **kwargs):
    return Scene(app=f"runtime ttmp; load {DATA}/spin-gfx90a.co; {script or 'queues 4; waves 1 memory 2 spin+16'}; spin",
                 gpus="gfx90a", **kwargs)


def queue_ids(s):
    return [q["id"] for q in s.target_state()["queues"]]


def subscribe(s, rpc=None, **params):
    (rpc or s.rpc).call("exception.subscribe", session=s.session, **{"exceptions": FAULTS, **params})


def reaches(s, faults):
    """Two faults of one queue that the application has not taken yet are one for it: wait after each."""
    wait_until(lambda: s.app_status().faults == faults, "the application saw its fault")


def read_code(s):
    """A look has little time for debug information that was not read before; a snapshot leaves it in the session."""
    s.rpc.call("gpu.snapshot", session=s.session, max_stop_ms=STOP_MS)


def looked(s, rpc, queue, exception):
    """Raise it until its waves were seen, which another look a moment ago, or a machine that stands still, may prevent.

    @return all notes, the one with the waves last.
    """
    deadline, notes = time.monotonic() + 3 * PATIENCE, []
    while True:
        faults, start = s.app_status().faults, time.monotonic()
        s.raise_queue(queue, exception)
        note = rpc.notification("exception.raised")
        assert note["number"] == faults + 1 and note.get("stopped_us", 0) < (time.monotonic() - start) * 1e6, note
        reaches(s, faults + 1)
        notes.append(note)
        if not note["missing"]:
            return notes
        assert all(any(why in m for why in ("a moment ago", "budget", "no time")) for m in note["missing"]), note
        assert time.monotonic() < deadline, note
        time.sleep(0.2)  # so few that a client who reads later loses none


def test_a_fault_names_kernel_line_and_waves():
    with scene() as s:
        s.session = s.attach()
        ids = queue_ids(s)
        subscribe(s, look_ms=1000)
        read_code(s)
        note = looked(s, s.rpc, ids[1], "wave_memory_violation")[-1]
        assert note["queue_id"] == ids[1] and note["forwarded"], note
        assert note["text"] == "A wave touched memory it must not.", note
        assert note["waves"] == 2 and note["lanes"] > 0 and len(note["groups"]) == 1, note
        group = note["groups"][0]
        assert group["kernel"]["name"] == "spin" and group["reasons"] == ["memory_violation"], group
        assert group["frames"][0]["line"] and group["representative"]["queue_id"] == ids[1], group
        assert "stopped_us" in note, note
        assert s.target_state()["suspended_queues"] == 0


def test_not_looking_stops_nothing():
    with scene() as s:
        s.session = s.attach()
        ids = queue_ids(s)
        subscribe(s, look_ms=0)
        s.raise_queue(ids[1], "wave_memory_violation")
        note = s.rpc.notification("exception.raised")
        assert note["groups"] == [] and "waves" not in note and "stopped_us" not in note and note["missing"], note
        reaches(s, 1)


def test_a_burst_on_one_process_is_all_counted():
    """Looks are rationed, events are not: every fault is announced once and reaches the application."""
    with scene() as s:
        s.session = s.attach()
        ids = queue_ids(s)
        subscribe(s)
        for i in range(100):
            s.raise_queue(ids[i % 4], "wave_trap")
            note = s.rpc.notification("exception.raised")
            assert note["number"] == i + 1, note
            reaches(s, i + 1)
        time.sleep(0.05)
        assert s.app_status().faults == 100


def test_every_reader_sees_the_same():
    """Each asks for his own; all see what anybody asked for; who leaves takes his part along."""
    with scene() as s:
        s.session = s.attach()
        ids = queue_ids(s)
        others = [s.connect(), s.connect()]
        for other in others:
            s.attach(rpc=other)
        subscribe(s, exceptions=["wave_trap"])
        subscribe(s, others[0], exceptions=["wave_abort"])
        for i, name in enumerate(("wave_trap", "wave_abort")):
            s.raise_queue(ids[0], name)
            notes = [rpc.notification("exception.raised") for rpc in (s.rpc, *others)]
            assert notes[0] == notes[1] == notes[2] and notes[0]["exceptions"] == [name], notes
            reaches(s, i + 1)
        others[0].close()
        s.clients.remove(others[0])
        wait_until(lambda: len(s.rpc.call("session.list")["sessions"]) == 1 and
                   s.rpc.call("session.list")["sessions"][0]["readers"] == 2, "one has left")
        s.rpc.call("gpu.queues", session=s.session)
        s.raise_queue(ids[0], "wave_abort")
        reaches(s, 3)  # its normal way
        s.raise_queue(ids[0], "wave_trap")
        assert "wave_trap" in s.rpc.notification("exception.raised")["exceptions"]
        reaches(s, 4)


def test_a_writer_who_leaves_does_not_end_other_peoples_stream():
    with scene() as s:
        s.session = s.attach()
        ids = queue_ids(s)
        subscribe(s)
        writer = s.connect()
        s.attach(rpc=writer, control=True)
        subscribe(s, writer, exceptions=["wave_abort"])
        writer.call("gpu.suspend", session=s.session, lease_ms=60000)
        writer.close()
        s.rpc.notification("gpu.resumed")
        s.raise_queue(ids[0], "wave_trap")
        s.rpc.notification("exception.raised")
        reaches(s, 1)


def test_filters_leave_out():
    with scene() as s:
        s.session = s.attach()
        ids = queue_ids(s)
        subscribe(s, look_ms=1000)
        read_code(s)
        other = s.connect()
        s.attach(rpc=other)

        def numbers(rpc, n):
            return [rpc.notification("exception.raised")["number"] for _ in range(n)]

        def kernels(notes):
            return {note["number"]: {g["kernel"]["name"] for g in note["groups"] if "kernel" in g} for note in notes}

        assert s.rpc.call("exception.filter", session=s.session, exceptions=["wave_trap"])["filtered"]
        s.raise_queue(ids[1], "wave_memory_violation")
        assert numbers(other, 1) == [1]
        reaches(s, 1)
        s.raise_queue(ids[0], "wave_trap")
        assert numbers(other, 1) == [2] and numbers(s.rpc, 1) == [2]
        reaches(s, 2)
        assert s.rpc.call("exception.filter", session=s.session, kernels=["no*", "spun"])["filtered"]
        seen = kernels(looked(s, other, ids[1], "wave_memory_violation"))
        assert seen[max(seen)] == {"spin"}, seen
        # What nobody knows the kernel of is not left out.
        unknown = [number for number, names in seen.items() if not names]
        assert numbers(s.rpc, len(unknown)) == unknown, seen
        assert s.rpc.call("exception.filter", session=s.session, kernels=["no*", "s[op]in"])["filtered"]
        seen = kernels(looked(s, other, ids[1], "wave_memory_violation"))
        assert numbers(s.rpc, len(seen)) == list(seen), seen
        assert not s.rpc.call("exception.filter", session=s.session)["filtered"]
        assert s.rpc.error("exception.filter", session="s99").name == "no_such_session"


def test_holding_needs_the_lease():
    with scene() as s:
        s.session = s.attach()
        error = s.rpc.error("exception.subscribe", session=s.session, exceptions=["wave_trap"], hold=True)
        assert error.name == "busy" and error.hint, error


def test_who_does_not_read_loses_the_oldest():
    """Nobody waits for him; what he gets later says how many are missing; the others lose nothing."""
    with scene(script="queues 1; waves 0 memory 2 spin+16") as s:
        s.session = s.attach()
        queue, = queue_ids(s)
        subscribe(s, look_ms=0)
        slow = s.connect()
        slow.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.attach(rpc=slow)
        total = 3000
        for i in range(total):
            s.raise_queue(queue, "wave_trap")
            note = s.rpc.notification("exception.raised")
            assert note["number"] == i + 1 and "lost" not in note, (i, note)
        got = []
        while not got or got[-1]["number"] < total:
            got.append(slow.notification("exception.raised"))
        missing = sum(note.get("lost", 0) for note in got)
        assert missing > 0 and len(got) + missing == total, (len(got), missing)
        at = 0
        for note in got:
            at += note.get("lost", 0) + 1
            assert note["number"] == at, (at, note)


def read_line(process):
    timer = threading.Timer(20, process.kill)
    timer.start()
    try:
        return process.stdout.readline()
    finally:
        timer.cancel()


def test_the_command_prints_them():
    with scene() as s:
        s.session = s.attach()
        read_code(s)
        ids = queue_ids(s)
        env = {**os.environ, "GPU_AGENT_SOCKET": str(s.socket)}

        def start(*argv):
            return subprocess.Popen([str(BIN / "gpu-agentctl"), "events", str(s.app.pid), "--until-eof", *argv], env=env,
                                    text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

        # Time enough for a look, whatever else runs here; and another one where that was not enough.
        people, machine = start("--max-stop", "1s"), start("-j", "--filter", "wave_memory_violation,spin", "--no-look")
        for process in (people, machine):
            assert "listening" in process.stderr.readline()
        faults, line, deadline = 0, "", time.monotonic() + 3 * PATIENCE
        while "2 waves at spin" not in line or " in spin" not in line or " of spin" in line:
            assert time.monotonic() < deadline, line
            s.raise_queue(ids[1], "wave_trap")
            line = read_line(people)
            assert "wave_trap" in line and "forwarded" in line, line
            faults += 1
            reaches(s, faults)
        # Raised together they may be told together.
        s.raise_queue(ids[1], "wave_memory_violation")
        line = read_line(people)
        assert "wave_memory_violation" in line and "wave_trap" not in line, line
        note = json.loads(read_line(machine))
        assert note["params"]["exceptions"] == ["wave_memory_violation"], note
        for process in (people, machine):
            process.stdin.close()
            process.stdin = None
            assert process.wait(20) == 0, process.stderr.read()
            process.stdout.close()
            process.stderr.close()
        reaches(s, faults + 1)


def test_how_memory_was_touched_is_told():
    with scene() as s:
        s.session = s.attach()
        subscribe(s, look_ms=0)
        gpu = s.state()["gpus"][0]
        s.control("memory-info fixed")
        s.control(f"fault {s.app.pid} {gpu['gpu_id']} 0x7f0000003000 read-only")
        note = s.rpc.notification("exception.raised")
        assert note["exceptions"] == ["device_memory_violation"] and "queue_id" not in note, note
        assert note["address"] == "0x7f0000003000" and note["read_only"] and not note["not_present"], note
