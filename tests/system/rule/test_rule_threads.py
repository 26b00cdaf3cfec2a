#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Records of rules with what the threads of the process did on the processors, read while its fault waits."""
import contextlib
import os
import signal
import sys
import time

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest
from harness import PATIENCE, children_named, monitor_of, wait_until
from rulescene import ALL, WAVES, RuleScene, analyzed


def snapshot_of(s, record):
    return s.rpc.call("cores.info", record=record["record"])["snapshot"]


def only_record(s, **counts):
    s.wait_counts(**(counts or {"recorded": 1}))
    return max(s.records(), key=lambda r: r["time_us"])


@pytest.mark.parametrize("frames", ["native", "python"])
def test_record_has_threads(frames):
    with RuleScene(ALL + f"host = {frames}\n", app=WAVES) as s:
        s.wait_watched()
        s.fault(exception="wave_memory_violation", queue=1)
        record = only_record(s)
        seen = snapshot_of(s, record)
        host = seen["host"]
        assert host["pid"] == s.app.pid and host["stopped_us"] == 0 and host["time_us"] >= seen["time_us"], seen
        assert sum(g["threads"] for g in host["groups"]) == host["threads"] > 0, host
        assert seen["complete"] == (not seen["missing"]), seen["missing"]
        assert {f"host: {m}" for m in host["missing"]} <= set(seen["missing"]), seen["missing"]
        if frames == "native":
            assert any(g["native_frames"] for g in host["groups"]), host
        else:
            assert {g["native_end"] for g in host["groups"]} == {"not_asked"}, host
            assert not any("native" in m for m in host["missing"]), host
        text = s.ctl("cores", "info", record["record"]).stdout
        assert "THREADS" in text and text.index("THREADS") > text.index("QUEUE"), text
        assert seen["groups"][0]["reasons"] == ["memory_violation"], seen["groups"][0]
        wait_until(lambda: not readers(s), "the reader has ended")
        assert s.target_state()["suspended_queues"] == 0


def readers(s):
    return [p for p in children_named(s.agentd.pid, "gpu-agent-worker")
            if b"\0host\0" in open(f"/proc/{p}/cmdline", "rb").read()]


def test_without_the_key_nobody_reads():
    with RuleScene(ALL, app=WAVES) as s:
        s.wait_watched()
        s.fault()
        seen = snapshot_of(s, only_record(s))
        assert "host" not in seen and not any(m.startswith("host") for m in seen["missing"]), seen


def test_core_has_a_record_with_threads():
    with RuleScene(ALL + "keep = light\nhost = native\n", app=WAVES) as s:
        s.wait_watched()
        record, seen = s.fault_until(lambda record, seen: not any(m.startswith("core: ") for m in seen["missing"]))
        assert record["body"] == "present" and seen["host"]["threads"] > 0, (record, seen)
        assert analyzed(s, record["record"])["process"]["pid"] == s.app.pid
        # The next one can be had.
        s.fault()
        s.wait_counts(recorded=s.rule()["exceptions"])
        assert all("host" in snapshot_of(s, r) for r in s.records())


@contextlib.contextmanager
def without_readers(s):
    """The process that would start them stands still."""
    monitor = monitor_of(s.agentd.pid)
    os.kill(monitor, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(monitor, signal.SIGCONT)


def test_faults_wait_for_threads():
    """The program may be gone as soon as it has its fault: it gets that when its threads are read."""
    with RuleScene(ALL + "host = native\n", app=WAVES) as s:
        s.wait_watched()
        with without_readers(s):
            s.raise_on(s.app)
            wait_until(lambda: s.rule()["exceptions"] == 1, "the worker has it")
            # Another one waits behind it, and has a record of its own.
            s.raise_on(s.app, exception="wave_abort", queue=1)
            wait_until(lambda: s.rule()["exceptions"] == 2, "the worker has it")
            time.sleep(0.3)
            assert s.app_status().faults == 0 and s.target_state()["suspended_queues"] == 0
        wait_until(lambda: s.app_status().faults == 2, "the application gets both")
        s.wait_counts(recorded=2)
        first, second = (snapshot_of(s, r) for r in sorted(s.records(), key=lambda r: r["time_us"]))
        assert first["host"]["threads"] > 0, first["missing"]
        assert "host" not in second and "host: threads are being read for another record" in second["missing"], second["missing"]


def test_faults_do_not_wait_for_ever():
    with RuleScene(ALL + "host = native\nhold = 300ms\n", app=WAVES) as s:
        s.wait_watched()
        with without_readers(s):
            s.raise_on(s.app)
            wait_until(lambda: s.app_status().faults == 1, "the application has its fault, without anybody's answer")
        seen = snapshot_of(s, only_record(s))
        assert "host" not in seen and "host: threads were not read in time" in seen["missing"], seen["missing"]


# The worker waits for threads no longer than that (THREADS_MS).
THREADS_S = 5


def missing_without_threads():
    """The worker is told to end while it waits for threads.  @return what the record lacks, and how long that took."""
    with RuleScene(ALL + "host = native\n", app=WAVES) as s:
        s.wait_watched()
        with without_readers(s):
            began = time.monotonic()
            s.raise_on(s.app)
            wait_until(lambda: s.rule()["exceptions"] == 1, "the worker has it")
            worker = next(iter(s.worker_pids()))
            os.kill(worker, signal.SIGTERM)
            wait_until(lambda: s.app_status().faults == 1, "the application has its fault")
            took = time.monotonic() - began
        return snapshot_of(s, only_record(s))["missing"], took


def test_who_lets_go_does_not_wait():
    """The rule goes while threads are read: the record is stored without them, and the fault goes on."""
    deadline = time.monotonic() + PATIENCE
    missing, took = missing_without_threads()
    # On a machine that stood still so long, the worker had given up before it was told to end: that shows nothing.
    while took >= THREADS_S and time.monotonic() < deadline:
        missing, took = missing_without_threads()
    assert "host: the watch ended before threads were read" in missing, (missing, took)
