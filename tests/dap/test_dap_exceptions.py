#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""gpu-agentctl dap: what an editor is told of exceptions, whatever raised them."""
import os
import sys
import time

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest

from dapclient import Adapter, runs_on, scene
from harness import EXCEPTIONS, Scene, wait_until

FAULT = 0x7f00dead0000


def gpu(s):
    return s.state()["gpus"][0]["gpu_id"]


def test_a_device_names_its_exception():
    """No wave shows it: the box has the words and the address all the same."""
    with scene() as s, Adapter(s.socket) as a:
        a.start(pid=s.app.pid)
        a.call("setExceptionBreakpoints", filters=["memory", "device"])
        s.control("memory-info fixed")
        s.control(f"fault {s.app.pid} {gpu(s)} {FAULT:#x} not-present")
        stopped = a.event("stopped")
        assert stopped["reason"] == "exception" and stopped["allThreadsStopped"], stopped
        assert "emory violation" in stopped["text"] and hex(FAULT) in stopped["text"], stopped
        info = a.call("exceptionInfo", threadId=stopped["threadId"])
        assert "device_memory_violation" in info["exceptionId"], info
        assert hex(FAULT) in info["description"] and "nothing is mapped" in info["description"], info
        assert info["details"]["message"] == info["description"], info
        said = a.wait(lambda m: m.get("event") == "output" and hex(FAULT) in m["body"]["output"], "a console line")
        assert said["body"]["category"] == "console", said
        # It is over with what it stopped.
        a.call("continue", threadId=1)
        a.pause()
        assert "no exception" in a.error("exceptionInfo", threadId=1)
        s.control("never on")
        s.control(f"raise {s.app.pid} gpu {gpu(s)} {EXCEPTIONS['device_ras_error']}")
        stopped = a.event("stopped")
        assert "hardware error" in stopped["text"], stopped
        assert "device_ras_error" in a.call("exceptionInfo", threadId=stopped["threadId"])["exceptionId"]
        a.finish()
        runs_on(s)


def test_a_queue_names_its_exception():
    with scene("waves 0 halted 4 spin+16; waves 1 memory 2 scale+8") as s, Adapter(s.socket) as a:
        a.start(pid=s.app.pid)
        assert "memory_violation" in a.event("stopped")["text"]
        a.call("setExceptionBreakpoints", filters=["queue"])
        s.raise_queue(0, "packet_unsupported")
        stopped = a.event("stopped")
        assert stopped["reason"] == "exception" and "Unsupported packet, queue 0" in stopped["text"], stopped
        info = a.call("exceptionInfo", threadId=stopped["threadId"])
        assert info["exceptionId"] == "packet_unsupported" and "Unsupported packet, queue 0" in info["description"], info
        a.finish()


def test_without_waves_it_has_a_name_as_well():
    with Scene(app="runtime ttmp; queues 1; spin", gpus="gfx90a") as s, Adapter(s.socket) as a:
        a.start(pid=s.app.pid)
        assert "no thread" in a.error("exceptionInfo", threadId=1)
        a.call("setExceptionBreakpoints", filters=["queue"])
        s.raise_queue(0, "packet_unsupported")
        stopped = a.event("stopped")
        assert stopped["threadId"] == 1 and "Unsupported packet" in stopped["text"], stopped
        assert a.call("exceptionInfo", threadId=1)["exceptionId"] == "packet_unsupported"
        a.finish()


def test_the_wave_that_faulted_now_comes_before_older_ones():
    with scene("waves 0 memory 8 spin+16") as s, Adapter(s.socket) as a:
        a.start(pid=s.app.pid)
        a.event("stopped")
        a.call("setExceptionBreakpoints", filters=["illegal"])
        s.control(f"waves {s.app.pid} 1 illegal 2 {int(a.frame()['instructionPointerReference'], 16) + 32:#x}")
        s.raise_queue(1, "wave_illegal_instruction")
        stopped = a.event("stopped")
        assert "illegal_instruction" in stopped["text"], stopped
        assert "2 x" in a.call("threads")["threads"][stopped["threadId"] - 1]["name"]
        info = a.call("exceptionInfo", threadId=stopped["threadId"])
        assert "illegal_instruction" in info["exceptionId"] and "2 waves stopped at" in info["description"], info
        a.finish()


def test_what_was_broken_before_is_told_at_once():
    """The kernel keeps it while a session is there, whoever's."""
    for place, name, words in (("queue 0", "packet_reserved", "Reserved packet type, queue 0"),
                               ("gpu", "device_memory_violation", "Memory violation on the device")):
        with scene() as s, Adapter(s.socket) as a:
            s.attach()
            s.control(f"raise {s.app.pid} {place if ' ' in place else f'gpu {gpu(s)}'} {EXCEPTIONS[name]}")
            a.start(pid=s.app.pid)
            stopped = a.event("stopped")
            assert stopped["reason"] == "exception" and not stopped["allThreadsStopped"], stopped
            assert words in stopped["text"], stopped
            assert a.call("exceptionInfo", threadId=stopped["threadId"])["exceptionId"] == name
            a.finish()


def test_what_comes_between_the_filters_and_the_end_of_configuration_keeps_its_words():
    """The order in which VS Code asks: its filters first."""
    with scene() as s, Adapter(s.socket) as a:
        a.call("initialize", clientID="test", adapterID="gpu-agent")
        a.call("attach", pid=s.app.pid)
        a.event("initialized")
        a.call("setExceptionBreakpoints", filters=["memory", "device"])
        s.rpc.call("exception.subscribe", session=s.attach(), exceptions=["device_memory_violation"])
        s.control("memory-info fixed")
        s.control(f"fault {s.app.pid} {gpu(s)} {FAULT:#x} not-present")
        # Who came second is told second.
        s.rpc.notification("exception.raised")
        a.call("threads")
        a.call("configurationDone")
        stopped = a.wait(lambda m: m.get("event") == "stopped" and m["body"]["allThreadsStopped"], "stopped")["body"]
        assert stopped["reason"] == "exception" and hex(FAULT) in stopped["text"], stopped
        assert hex(FAULT) in a.call("exceptionInfo", threadId=stopped["threadId"])["description"]
        a.finish()


def start_as_editors_do(a, s, **arguments):
    """With the filters that are on where nobody has chosen any."""
    filters = a.start(pid=s.app.pid, **arguments)["exceptionBreakpointFilters"]
    on = {f["filter"] for f in filters if f["default"]}
    assert on == {"memory", "illegal", "assert", "math", "queue", "device"}, on
    a.call("setExceptionBreakpoints", filters=sorted(on))


def test_faults_stop_where_nobody_chose():
    with scene() as s, Adapter(s.socket) as a:
        start_as_editors_do(a, s)
        for exception in ("wave_memory_violation", "wave_illegal_instruction", "wave_abort", "wave_math_error", "packet_unsupported"):
            s.raise_queue(0, exception)
            stopped = a.event("stopped")
            assert stopped["reason"] == "exception" and stopped["allThreadsStopped"] and stopped["text"], stopped
            assert s.target_state()["suspended_queues"] == 2
            a.call("continue", threadId=1)
        s.control(f"raise {s.app.pid} gpu {gpu(s)} {EXCEPTIONS['device_memory_violation']}")
        assert a.event("stopped")["reason"] == "exception"
        a.finish()
        runs_on(s)


def said(a, words):
    """A line of the console about an exception."""
    def wanted(m):
        return m.get("event") == "output" and m["body"]["output"].startswith("Exception: ") and words in m["body"]["output"]
    return a.wait(wanted, f"a line about {words}")["body"]


def process_state(s):
    return next(p for p in s.state()["processes"] if p["pid"] == s.app.pid)


@pytest.mark.parametrize("asks", [True, False])
def test_faults_that_stop_nothing_are_told(asks):
    """With all filters off, and where the editor knows of none: the application has each of them at once."""
    with scene() as s, Adapter(s.socket) as a:
        a.start(pid=s.app.pid)
        if asks:
            a.call("setExceptionBreakpoints", filters=["memory"])
            a.call("setExceptionBreakpoints", filters=[])
        suspends = process_state(s)["suspends"]
        for exception, words in (("wave_memory_violation", "A wave touched memory it must not, queue 0"),
                                 ("wave_illegal_instruction", "queue 0"),
                                 ("packet_unsupported", "Unsupported packet, queue 0")):
            before = s.app_status().faults
            s.raise_queue(0, exception)
            assert said(a, words)["category"] == "console"
            wait_until(lambda: s.app_status().faults > before, "the application has it")
        s.control("memory-info fixed")
        s.control(f"fault {s.app.pid} {gpu(s)} {FAULT:#x} not-present")
        said(a, hex(FAULT))
        # The program's own traps are no faults: nobody has asked for them, and they are not held up.
        s.raise_queue(0, "wave_trap")
        s.raise_queue(1, "wave_abort")
        said(a, "queue 1")
        assert not any("trap" in m["body"]["output"].lower() for m in a.messages if m.get("event") == "output"), a.messages
        assert not a.has_event("stopped") and s.target_state()["suspended_queues"] == 0
        assert process_state(s)["suspends"] == suspends, "queues were stopped to look"
        a.finish()
        runs_on(s)


def test_a_fault_that_is_only_told_leaves_the_stop_its_words():
    """What stops is what was asked for, also where another client has asked for more."""
    with scene() as s, Adapter(s.socket) as a:
        a.start(pid=s.app.pid)
        a.call("setExceptionBreakpoints", filters=["device"])
        session = s.attach()
        s.rpc.call("exception.subscribe", session=session, exceptions=["wave_trap"])
        s.raise_queue(1, "wave_trap")
        said(a, "queue 1")
        s.raise_queue(0, "packet_unsupported")
        said(a, "Unsupported packet")
        assert not a.has_event("stopped") and s.target_state()["suspended_queues"] == 0
        s.control("never on")
        s.control(f"raise {s.app.pid} gpu {gpu(s)} {EXCEPTIONS['device_ras_error']}")
        assert "hardware error" in a.event("stopped")["text"]
        s.raise_queue(0, "packet_unsupported")
        said(a, "Unsupported packet")
        assert "device_ras_error" in a.call("exceptionInfo", threadId=1)["exceptionId"]
        assert not a.has_event("stopped")
        s.rpc.call("session.detach", session=session)
        a.finish()
        runs_on(s)


def test_a_fault_before_the_filters_stops_if_they_ask_for_it():
    """Between attach and the end of configuration nobody has said yet what is to stop the GPU."""
    for filters in (["memory"], ["illegal"]):
        with scene() as s, Adapter(s.socket) as a:
            a.call("initialize", clientID="test", adapterID="gpu-agent")
            a.call("attach", pid=s.app.pid)
            a.event("initialized")
            s.raise_queue(0, "wave_memory_violation")
            said(a, "A wave touched memory it must not")
            a.call("setExceptionBreakpoints", filters=filters)
            a.call("configurationDone")
            if filters == ["memory"]:
                stopped = a.event("stopped")
                assert stopped["allThreadsStopped"] and "touched memory" in stopped["text"], stopped
            else:
                a.wait(lambda m: m.get("event") == "output" and "Attached to" in m["body"]["output"], "it has begun")
                a.pause()
                assert "no exception" in a.error("exceptionInfo", threadId=1)
            a.finish()


def test_who_waits_for_an_exception_may_look_at_it():
    """Long after the last request it still stops the GPU, and as long as any other stop; then only told to whoever is not there."""
    with scene() as s, Adapter(s.socket) as a:
        start_as_editors_do(a, s, stopIdleMs=2000)
        time.sleep(2.5)
        s.raise_queue(0, "wave_memory_violation")
        raised = time.monotonic()
        assert a.event("stopped")["allThreadsStopped"]
        a.event("continued")
        took = time.monotonic() - raised
        assert took > 1.9, took
        assert s.target_state()["suspended_queues"] == 0
        s.raise_queue(0, "wave_memory_violation")
        assert not a.event("stopped")["allThreadsStopped"]
        assert s.target_state()["suspended_queues"] == 0
        # A sign of life, and it stops again.
        a.call("evaluate", expression="groups", context="repl")
        s.raise_queue(0, "wave_memory_violation")
        assert a.event("stopped")["allThreadsStopped"] and s.target_state()["suspended_queues"] == 2
        a.finish()


def look_again(a, **arguments):
    """What a view of groups, waves and lanes asks for; with automatic=True, nobody is there."""
    a.call("gpuAgent/groups", **arguments)
    wave = a.call("gpuAgent/waves", threadId=1, **arguments)["waves"][0]["ref"]
    a.call("gpuAgent/lanes", threadId=1, wave=wave, **arguments)


def test_a_view_that_looks_again_is_nobody():
    """It keeps no queue suspended, and no exception stops one for it; whoever opens a row of it is there."""
    with scene() as s, Adapter(s.socket) as a:
        start_as_editors_do(a, s, stopIdleMs=2000)
        a.pause()
        paused = time.monotonic()
        while not a.has_event("continued") and time.monotonic() < paused + 6:
            look_again(a, automatic=True)
            time.sleep(0.3)
        a.event("continued", 1)
        look_again(a, automatic=True)
        s.raise_queue(0, "wave_memory_violation")
        assert not a.event("stopped")["allThreadsStopped"]
        assert s.target_state()["suspended_queues"] == 0
        look_again(a)
        s.raise_queue(0, "wave_memory_violation")
        assert a.event("stopped")["allThreadsStopped"] and s.target_state()["suspended_queues"] == 2
        a.finish()
        runs_on(s)
