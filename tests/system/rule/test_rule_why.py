#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Records of rules with what waves waited for when the exception came."""
import os
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from rulescene import ALL, WAVES, RuleScene

# Three of four waves wait at a barrier for the one that has faulted.
BARRIER = WAVES.replace("memory 2 spin+16", "barrier 8 spin+16 group=4 last=memory")


def only_record(s):
    s.wait_counts(recorded=1)
    (record,) = s.records()
    return record, s.rpc.call("cores.info", record=record["record"])["snapshot"]


def test_a_record_says_who_waits_for_the_wave_that_faulted():
    with RuleScene(ALL + "why = yes\n", app=BARRIER) as s:
        s.wait_watched()
        s.fault(exception="wave_memory_violation", queue=1)
        record, seen = only_record(s)
        cause = seen["why"]["causes"][0]
        assert cause["culprit"] and cause["end"] == "stopped" and "has stopped (memory_violation)" in cause["text"], seen["why"]
        waiting = next(g for g in seen["groups"] if "waiting" in g)
        assert waiting["waiting"] == waiting["waves"] == 6 and "missing: wave 3" in seen["why"]["waits"][waiting["wait"]]["text"]
        text = s.ctl("cores", "info", record["record"]).stdout
        assert "CAUSE  " in text and "wait at a barrier" in " ".join(text.split()), text
        assert s.target_state()["suspended_queues"] == 0


def test_a_core_beside_it_changes_nothing():
    """The waves are those of the stop for the core."""
    with RuleScene(ALL + "why = yes\nkeep = light\n", app=BARRIER) as s:
        s.wait_watched()
        s.fault(exception="wave_memory_violation", queue=1)
        record, seen = only_record(s)
        assert record["body"] == "present" and seen["why"]["causes"][0]["culprit"], seen["why"]


def test_without_the_key_nothing_is_said():
    with RuleScene(ALL, app=BARRIER) as s:
        s.wait_watched()
        s.fault(exception="wave_memory_violation", queue=1)
        _, seen = only_record(s)
        assert "why" not in seen and not any("waiting" in g for g in seen["groups"])
