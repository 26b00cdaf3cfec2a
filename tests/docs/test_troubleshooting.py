#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""docs/TROUBLESHOOTING.md explains every error of the protocol and every check of doctor; docs/reference/messages.md lists all messages."""
import json
import os
import re
import subprocess
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from harness import BIN, ROOT

TEXT = (ROOT / "docs/TROUBLESHOOTING.md").read_text()
ERRORS = json.loads((ROOT / "protocol/gpu-agent.json").read_text())["errors"]


def section(name):
    found = re.search(rf"^### {re.escape(name)}\n(.*?)(?=^##|\Z)", TEXT, re.M | re.S)
    assert found, f"no heading for {name}"
    return found[1]


def test_every_error_has_a_heading_and_its_exit_status():
    for error in ERRORS:
        assert f"Exit status {error['exit']}" in section(error["name"]), error["name"]
    assert "Exit status 9" in section("unreachable")
    known = {error["name"] for error in ERRORS} | {"unreachable"}
    inside = TEXT.split("## Errors by name")[1].split("\n## ")[0]
    assert set(re.findall(r"^### (.+)$", inside, re.M)) == known


def test_every_check_of_doctor_is_explained():
    names = set()
    for path in (ROOT / "agentd/worker").rglob("*.c"):
        text = path.read_text()
        if "RPC_VERDICT_" in text:
            names |= set(re.findall(r'\bput\(\w*&?\w+, "(\w+)"', text))
    assert {"process", "rights", "cuda_mps", "kfd_version"} <= names, names
    table = TEXT.split("## Checks of doctor")[1].split("\n## ")[0]
    missing = [name for name in names if f"`{name}`" not in table]
    assert not missing, missing


def test_messages_are_those_of_the_sources():
    done = subprocess.run([ROOT / "scripts/make-messages", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_a_message_that_a_user_gets_is_listed():
    """What the program prints for a dead process and for no agent at all stands in the list, with its hint."""
    listed = (ROOT / "docs/reference/messages.md").read_text()
    done = subprocess.run([BIN / "gpu-agentctl", "--socket", "/nonexistent/agentd.sock", "list"], capture_output=True, text=True)
    assert done.returncode == 9, done
    said = re.search(r"error: (.*)", done.stderr)[1]
    hint = re.search(r"hint: (.*)", done.stderr)[1]
    row = next(line for line in listed.split("\n") if line.startswith("| no agent at …: …"))
    assert said.startswith("no agent at /nonexistent/agentd.sock: ") and hint in row, (said, hint, row)
