#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Calls of the host that it does not answer, as of printf() on a device: what is told of them, and that nobody is accused who answers."""
import json
import os
import sys
import time

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest

from harness import ROOT, Scene

CODE, PHASES_CODE = (ROOT / f"sim/scenes/amd/hostcall{kind}-gfx90a.co" for kind in ("", "-phases"))
AT = 0x7F6000000000
HEADERS, BELL = AT + 56, 0x7F6000010000
# Of each packet: the next one of its stack, lanes, what it asks for, and the mark.  Free are 3 to 7, and 0 to 2 are taken by the host.
TAKEN = [(0, 1, 2, 1), (8, 0x10, 2, 1), (1, 0x8001, 2, 1)]
FREE = [(0, 0, 0, 0), *((i, 0, 0, 0) for i in range(3, 7))]
PACKETS = [*TAKEN, *FREE]
WORDS = {"headers": HEADERS, "payloads": HEADERS + 24 * 8, "signal": BELL, "free": 7, "ready": 0, "mask": 7}


def packets_at(at, packets):
    return f"memory {at:#x} " + ",".join(f"l:{n},l:{lanes},i:{service},i:{mark}" for n, lanes, service, mark in packets) + "; "


def script(packets=(), bell="l:-1,l:4", pointer=AT, waves="spin 3", queues="1 0", dispatches=1, before="", then="", **words):
    """A kernel of which waves have called the host."""
    packets = packets or PACKETS
    memory = ",".join(f"l:{value}" for value in {**WORDS, **words}.values())
    text = f"runtime ttmp; idle; queues {queues}; load {CODE}; {before}"
    text += f"memory {AT:#x} {memory},l:0; memory {BELL:#x} {bell}; "
    text += packets_at(HEADERS, packets[:4]) + packets_at(HEADERS + 96, packets[4:])
    text += f"dispatch 0 check 640 64 args=p:0x7f6c00000000,l:0,l:0,l:0,p:{pointer:#x},l:0,l:0,l:0; "
    groups = " and ".join(f"{waves} __ockl_hostcall_internal+0x354 group=1 packet={i} workgroup={i},0,0" for i in range(dispatches))
    published = "".join(f"packet 0 {i} kernel; " for i in range(dispatches))
    return text + f"waves 0 {groups}; {published}pending 0 {dispatches}; {then}spin"


# In the other layout: eight packets, and of each a bit of the device, one of the host, and lanes and what it asks for.
BITS = AT + 80
WHO_ASK = [(1, 2), (0x10, 2), (0x8001, 2)]


def phase_words(n=8, bits=BITS, **words):
    known = {"device": bits, "host": bits + 4 * n, "occupied": AT + 0x8000, "headers": bits + 8 * n, "payloads": bits + 24 * n,
             "signal": BELL, "packets": n, "runtime": 0, "memory": 0, "limit": n}
    return f"memory {AT:#x} " + ",".join(f"l:{value}" for value in {**known, **words}.values()) + "; "


def bits_at(at, bits):
    return f"memory {at:#x} " + ",".join(f"i:{bit}" for bit in bits) + "; "


def phases(device=(1, 1, 0), host=(0, 0, 1), asks=WHO_ASK, then="", waves="spin 3", before="", bell="l:-1,l:4", **words):
    """As script(), of a kernel whose device library has the other layout."""
    text = f"runtime ttmp; idle; queues 1 0; load {PHASES_CODE}; {before}memory {BELL:#x} {bell}; {phase_words(**words)}"
    text += bits_at(BITS, [*device, *[0] * 5]) + bits_at(BITS + 32, [*host, *[0] * 5])
    text += f"memory {BITS + 64:#x} " + ",".join(f"l:{lanes},i:{service},i:0" for lanes, service in asks) + "; "
    text += f"dispatch 0 check 640 64 args=p:0x7f6c00000000,l:0,l:0,l:0,p:{AT:#x},l:0,l:0,l:0; "
    return text + f"waves 0 {waves} __ockl_hostcall_internal+0x35c group=1; packet 0 0 kernel; pending 0 1; {then}spin"


class Calls(Scene):
    def __init__(self, *args, of=script, **kwargs):
        super().__init__(app=None, gpus="gfx90a")
        self.script = of(*args, **kwargs)

    def __enter__(self):
        super().__enter__()
        self.app = self.start_app(self.script)
        return self

    def why(self, *args):
        shown = self.ctl("why", self.app.pid, *args)
        print(shown.stdout, shown.stderr)
        return shown

    def document(self, *args):
        return json.loads(self.why("-j", *args).stdout)


def host_wait(doc):
    (wait,) = (w for w in doc["waits"] if w["kind"] == "host")
    return wait


def test_what_is_not_answered():
    with Calls() as s:
        doc = s.document()
        wait = host_wait(doc)
        assert wait["who"] == "3 calls of the host (printf) by check (packet 0 of queue 0) wait for an answer", wait
        assert (wait["waves"], wait["dispatch"], wait["kernel"], wait["confidence"]) == (3, 0, "check", "inferred"), wait
        evidence = {e["what"]: e["value"] for e in wait["evidence"]}
        assert evidence["hidden_hostcall_buffer"] == hex(AT) and evidence["packets"] == "8, of which 5 are free", evidence
        assert (evidence["not answered, and taken"], evidence["lanes"], evidence["doorbell"]) == ("3", "4", "4"), evidence
        assert [(p["what"], p["state"]) for p in wait["missing"]] == [
            ("the host, which has not answered 3 calls (printf) by check (packet 0 of queue 0), and has no thread named Hostcall Listen",
             "host")], wait
        assert [(doc["nodes"][e["from"]]["kind"], doc["nodes"][e["to"]]["kind"]) for e in doc["edges"]] == [("dispatch", "host")], doc
        assert doc["complete"] and "stuck" not in wait, doc


def test_what_is_not_answered_in_phases_is_the_same():
    with Calls(of=phases) as s:
        doc = s.document()
        wait = host_wait(doc)
        assert wait["who"] == "3 calls of the host (printf) by check (packet 0 of queue 0) wait for an answer", wait
        assert (wait["waves"], wait["dispatch"], wait["kernel"], wait["confidence"]) == (3, 0, "check", "inferred"), wait
        assert {e["what"]: e["value"] for e in wait["evidence"]} == {
            "hidden_hostcall_buffer": hex(AT), "packets": "8, of which 5 are free or answered", "not answered": "3", "lanes": "4",
            "doorbell": "4", "value": "read when the queues ran again"}, wait
        assert [p["state"] for p in wait["missing"]] == ["host"] and doc["complete"] and "stuck" not in wait, doc
        # Its loop compares two words of memory: nothing is said of whom it polls for.
        assert [w["kind"] for w in doc["waits"]] == ["host"], doc["waits"]


def test_calls_of_several_kinds_and_stacks():
    """Two are on the stack of ready ones, and the host has taken one."""
    packets = [(0, 1, 3, 1), (8, 1, 2, 1), (0, 1, 99, 1), *FREE]
    with Calls(packets, ready=9) as s:
        wait = host_wait(s.document())
        assert wait["who"].startswith("3 calls of the host (memory, printf, an unknown service) by check "), wait
        evidence = {e["what"]: e["value"] for e in wait["evidence"]}
        assert (evidence["not answered, and not taken by the host"], evidence["not answered, and taken"]) == ("2", "1"), evidence


def test_the_thread_that_should_answer_is_named():
    with Calls(before="sleepers 1 Hostcall Listener Thread; ") as s:
        text = host_wait(s.document())["missing"][0]["what"]
        tid = text.split(" thread ")[1].split()[0]
        assert text == f"the host, whose thread {tid} (Hostcall Listen) has not answered 3 calls (printf) by check (packet 0 of queue 0)"
        with open(f"/proc/{s.app.pid}/task/{tid}/comm", encoding="utf-8") as comm:
            assert comm.read() == "Hostcall Listen\n"


def test_who_waits_for_the_kernel_waits_for_the_host():
    then = "signal done 1; packet 0 0 kernel completion=done; packet 1 0 and done; pending 1 1; "
    with Calls(queues="2 0", then=then) as s:
        shown = s.why("--twice=1100")
        assert shown.returncode == 10, shown
        assert shown.stdout.startswith("CAUSE  the host, which has not answered 3 calls (printf) by check"), shown
        assert "<- packet 0 of queue 1 (a barrier-AND) waits" in shown.stdout, shown.stdout
        assert shown.stdout.count("CAUSE") == 1, shown.stdout


def test_of_several_kernels_of_a_queue_none_is_named():
    with Calls(dispatches=2, waves="spin 1") as s:
        wait = host_wait(s.document())
        assert wait["who"] == "3 calls of the host (printf) by kernels in queue 0 wait for an answer" and "dispatch" not in wait, wait


def cause_of_second(moves, of=script):
    """Something changes between the samples."""
    with Calls(of=of, then=f"wait-line; {moves}") as s:
        session = s.attach()
        first = s.rpc.call("why.get", session=session)
        s.app.popen.stdin.write(b"\n")
        s.app.popen.stdin.flush()
        time.sleep(1.1)
        return s.rpc.call("why.get", session=session, since=first["sample"])


@pytest.mark.parametrize("of", [script, phases])
def test_nothing_has_moved(of):
    doc = cause_of_second("", of)
    assert [c["end"] for c in doc["causes"] if c["culprit"]] == ["host"] and host_wait(doc)["stuck"] is True, doc


@pytest.mark.parametrize("moves", [
    # The same calls for who looks at packets alone: answered and made again.
    f"memory {BELL + 8:#x} l:5; ",
    packets_at(HEADERS, [(0, 1, 2, 0)]),
    f"memory {AT + 32:#x} l:8; ",
    packets_at(HEADERS + 48, [(1, 0x8001, 3, 1)])], ids=["doorbell", "answered", "ready", "another"])
def test_nobody_is_accused_where_something_moves(moves):
    doc = cause_of_second(moves)
    assert not [c for c in doc["causes"] if c["culprit"]] and host_wait(doc)["stuck"] is False, doc


@pytest.mark.parametrize("moves", [
    f"memory {BELL + 8:#x} l:5; ",
    bits_at(BITS + 32, [1]),
    bits_at(BITS + 32, [1, 1, 0]) + bits_at(BITS, [0, 0, 1]),
    bits_at(BITS + 12, [1])], ids=["doorbell", "answered", "answered-and-made-again", "another"])
def test_nobody_is_accused_where_a_phase_moves(moves):
    doc = cause_of_second(moves, phases)
    assert not [c for c in doc["causes"] if c["culprit"]] and host_wait(doc)["stuck"] is False, doc


@pytest.mark.parametrize(("kind", "ready"), [("memory 1", False), ("spin 1", True)], ids=["stopped", "running"])
def test_a_wave_that_has_stopped_may_have_been_writing(kind, ready):
    """A packet that is not ready yet looks like one that the host has taken."""
    packets = [TAKEN[0], (0, 0, 0, 0), (1, 0, 0, 0), (2, 0, 0, 0), *FREE[1:]]
    with Calls(packets, waves=kind) as s:
        shown = s.why("--twice=1100")
        assert ("CAUSE  the host" in shown.stdout) == ready and "1 call of the host (printf)" in shown.stdout, shown.stdout


def test_a_wave_that_has_stopped_has_written_its_phase():
    """The bit changes when the packet is written."""
    with Calls(of=phases, device=(1, 0, 0), host=(0, 0, 0), waves="memory 1") as s:
        shown = s.why("--twice=1100")
        assert "CAUSE  the host, which has not answered 1 call (printf)" in shown.stdout, shown.stdout


@pytest.mark.parametrize("of", [script, phases])
def test_without_the_doorbell_samples_cannot_be_compared(of):
    with Calls(of=of, signal=0x1000) as s:
        doc = s.document("--twice=1100")
        assert not [c for c in doc["causes"] if c["culprit"]], doc["causes"]
        assert any("doorbell is not readable" in text for text in doc["missing"]), doc["missing"]


# A page that is the last one for some way.
ENDS = AT + 0x1000
LOOP = [*TAKEN, (7, 0, 0, 0), *FREE[1:]]
HOSTILE = {
    "unmapped": ({"pointer": 0x1000}, "is not readable"),
    "headers-unmapped": ({"pointer": ENDS, "before": f"memory {ENDS:#x} l:{ENDS + 0xFF8},l:{ENDS + 0xFF8 + 24 * 8},l:{BELL},l:7,l:0,l:7; "},
                         "is not readable"),
    "all-ones": ({"mask": -1}, "is not laid out as known"),
    "huge-mask": ({"mask": 0xFFFFFFFF, "payloads": HEADERS + 24 * 0xFFFFFFFF}, "has more packets than are looked at"),
    "too-many": ({"mask": 32767, "payloads": HEADERS + 24 * 32768}, "has more packets than are looked at"),
    "another-mask": ({"mask": 6}, "is not laid out as known"),
    "another-layout": ({"mask": BELL}, "is not laid out as known"),
    "phase-of-two-bits": ({"of": phases, "device": (1, 2, 0)}, "do not fit together"),
    "phases-of-another-number": ({"of": phases, "packets": 7}, "is not laid out as known"),
    "phases-too-many": ({"of": phases, "n": 16385}, "has more packets than are looked at"),
    "phases-unmapped": ({"of": phases, "n": 16384}, "is not readable"),
    "phases-far-away": ({"of": phases, "bits": AT + 0x2000}, "is not laid out as known"),
    "free-in-a-circle": ({"packets": LOOP}, "do not fit together"),
    "ready-in-a-circle": ({"packets": [(8, 1, 2, 1), (9, 1, 2, 1), *PACKETS[2:]], "ready": 9}, "do not fit together"),
    "on-both": ({"ready": 7}, "do not fit together"),
    "ready-and-answered": ({"packets": [(0, 1, 2, 0), *PACKETS[1:]], "ready": 8}, "do not fit together"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_buffer_is_told_and_accuses_nobody(name):
    """All of it was written by the process."""
    values, text = HOSTILE[name]
    with Calls(**values) as s:
        doc = s.document("--twice=1100")
        assert not doc["waits"] and not doc["causes"], doc
        assert any(m.startswith("calls of the host: the buffer of queue 0") and text in m for m in doc["missing"]), doc["missing"]


@pytest.mark.parametrize("values", [{"pointer": 0}, {"packets": [(0, 1, 2, 0), (8, 1, 2, 0), (1, 1, 2, 0), *FREE]},
                                    {"of": phases, "device": (1, 0, 1), "host": (1, 0, 1)}],
                         ids=["no-buffer", "answered", "same-phases"])
def test_where_nothing_is_asked_nothing_is_said(values):
    with Calls(**values) as s:
        doc = s.document("--twice=1100")
        assert not doc["waits"] and not doc["causes"] and doc["complete"], doc


def test_the_stop_does_not_grow_by_a_large_buffer():
    """As many packets as a device of 16384 waves has: read when the queues run again."""
    n = 16384
    with Calls(payloads=HEADERS + 24 * n, mask=n - 1, then="".join(f"memory {HEADERS + 4096 * i:#x} l:0; " for i in range(1, 97))) as s:
        begin = time.monotonic()
        doc = s.document()
        print(f"{time.monotonic() - begin:.3f} s, stopped {doc['stopped_us']} us")
        evidence = {e["what"]: e["value"] for e in host_wait(doc)["evidence"]}
        assert evidence["packets"] == f"{n}, of which 5 are free", evidence


@pytest.mark.parametrize(("n", "is_cut"), [(64, False), (65, True)])
def test_dispatches_that_are_not_looked_at_are_told(n, is_cut):
    """In a twelfth queue is a kernel that does not call the host, of which nothing is missed."""
    then = f"load {ROOT / 'sim/scenes/amd/grid-gfx90a.co'}; dispatch 11 reduce 256 256; waves 11 spin 1 reduce+0x50; "
    then += "packet 11 0 kernel; pending 11 1; "
    for queue in range(11):
        groups = [f"spin 1 __ockl_hostcall_internal+0x354 packet={i}" for i in range(min(6, n - 6 * queue))]
        then += f"dispatch {queue} check 640 64 args=p:0x7f6c00000000,l:0,l:0,l:0,p:{AT:#x},l:0,l:0,l:0; "
        then += "".join(f"packet {queue} {i} kernel; " for i in range(len(groups)))
        then += f"waves {queue} {' and '.join(groups)}; pending {queue} {len(groups)}; "
    with Calls(queues="12 0", then=then) as s:
        doc = s.document("--twice=1100")
        # Waves of the one that is left out may have stopped.
        assert bool([c for c in doc["causes"] if c["culprit"]]) != is_cut, doc["causes"]
        assert {w["queue_id"] for w in doc["waits"] if w["kind"] == "host"} == set(range(11)), doc["waits"]
        assert [text for text in doc["missing"] if "of more than 64 dispatches" in text] == doc["missing"], doc["missing"]
        assert bool(doc["missing"]) == is_cut, doc["missing"]
