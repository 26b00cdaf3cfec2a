#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs of the agent that hang when they are started: whoever waits for one says so in the end, and leaves none behind.

What a rules process has a minute for is tested with a clock of its own (tests/unit/agentd/test_monitor_rules_child.c)."""
import os
import pathlib
import signal
import subprocess
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest
from harness import PATIENCE, agent_children, copy_programs, status, wait_until

# Stands still, as a program does whose file system does not answer.
HANGS = "#!/bin/sh\nkill -STOP $$\n"
# Lets go of the monitor's socket, and goes on.
IS_SILENT = "#!/bin/sh\nexec 3>&- 4>&- 5>&- 6>&-\nkill -STOP $$\n"


@pytest.fixture(name="programs")
def _programs(tmp_path):
    return copy_programs(tmp_path)


def replace(program: pathlib.Path, text: str) -> None:
    program.unlink()
    program.write_text(text)
    program.chmod(0o755)


def start(programs, *options):
    return subprocess.Popen([programs / "gpu-agentd", "--user", "--socket", programs / "agentd.sock", *options],
                            stderr=subprocess.PIPE, text=True)


def stopped_child(agentd):
    """The program that stands still."""
    return wait_until(lambda: [p for p in agent_children(agentd.pid) if status(p)["State"].startswith("T")], "it hangs")[0]


def is_gone(pid):
    return status(pid).get("State", "X")[0] in "XZ"


def finish(agentd):
    """(exit status, what it said)"""
    try:
        said = agentd.communicate(timeout=PATIENCE)[1]
    finally:
        agentd.kill()
    return agentd.returncode, said


def test_a_rules_process_that_says_nothing_more_is_killed(programs):
    replace(programs / "gpu-agent-rules", IS_SILENT)
    agentd = start(programs)
    rules = stopped_child(agentd)
    code, said = finish(agentd)
    assert code == 1 and "gpu-agent-rules says nothing any more, and does not end: killed" in said, (code, said)
    wait_until(lambda: is_gone(rules), "it is killed")


def test_an_agent_that_is_stopped_at_its_start_leaves_no_rules_process(programs):
    replace(programs / "gpu-agent-rules", HANGS)
    agentd = start(programs)
    rules = stopped_child(agentd)
    agentd.send_signal(signal.SIGTERM)
    assert finish(agentd) == (0, "")
    wait_until(lambda: is_gone(rules), "it is killed")


def test_a_check_of_the_store_has_ten_seconds(programs):
    replace(programs / "gpu-agent-store", HANGS)
    store = programs / "cores"
    store.mkdir()
    agentd = start(programs, "--check-config", "--store", store)
    child = stopped_child(agentd)
    code, said = finish(agentd)
    assert code == 1 and "--store: [store] directory: gpu-agent-store has not opened it within 10 s" in said, (code, said)
    wait_until(lambda: is_gone(child), "it is killed")
