#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Clients and the inspector of the protocol's authors drive gpu-agentctl mcp; they check every message against the schema of its
revision."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
from unittest import SkipTest

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest

import npm
from harness import BIN, LONG_STOP, Scene, wait_until

ROOM = pathlib.Path(__file__).resolve().parent
HERE = ROOM / "sdk"
SECONDS = 120


@pytest.fixture(name="script", scope="module")
def _script():
    script = npm.install(HERE).parent / "client.mjs"
    shutil.copy(HERE / "client.mjs", script)
    return script


@pytest.fixture(name="scene", scope="module")
def _scene():
    with Scene(app=None, gpus="gfx90a,gfx90a") as s:
        s.app = s.start("app", [BIN / "gpu-agent-simapp", "--kfd", s.mount / "kfd", "--scene", "hang"])
        s.app.wait_line()
        yield s


@pytest.mark.parametrize("which", ["sdk", "legacy", "auto", "pin"])
def test_client(script, scene, which):
    """Version 1 of the SDK speaks 2025-11-25; version 2 as it is told, by initialize or without."""
    run = subprocess.run(["node", script, which, BIN / "gpu-agentctl", "mcp", "--socket", scene.socket, LONG_STOP], text=True,
                         capture_output=True, timeout=SECONDS, stdin=subprocess.DEVNULL, env={**os.environ, "TARGET": str(scene.app.pid)})
    assert run.returncode == 0, run.stderr[-2000:]
    found = json.loads(run.stdout)
    assert len(found["tools"]) == 10 and all(t["annotations"]["readOnlyHint"] for t in found["tools"]), found["tools"]
    assert str(scene.app.pid) in found["list"]["content"][0]["text"] and not found["list"].get("isError"), found["list"]
    assert "all_reduce" in found["snapshot"]["content"][0]["text"], found["snapshot"]
    assert found["wrong"]["isError"] and "whole number" in found["wrong"]["content"][0]["text"], found["wrong"]
    assert json.loads(found["document"]["contents"][0]["text"])["schema"] == "gpu-agent.snapshot/1", found["document"]
    assert found["diff"]["content"][0]["text"].split("\n")[1].startswith("HUNG"), found["diff"]
    assert found["progress"] >= 1 and found["cancelled"] and found["again"]["content"], found
    wait_until(lambda: not scene.target_state()["enabled"], "the process is let go")


def test_inspector(scene, tmp_path):
    """Its command line starts a server for each request; --strict fails where a schema is one that some models' vendors refuse."""
    version = subprocess.run(["node", "--version"], text=True, capture_output=True, check=True).stdout.strip()
    if int(version[1:].split(".")[0]) < 20:
        raise SkipTest(f"the inspector needs a younger Node.js than {version}")
    command = npm.install(ROOM / "inspector") / ".bin/mcp-inspector"

    def inspect(*argv):
        server = ["-e", f"GPU_AGENT_SOCKET={scene.socket}", BIN / "gpu-agentctl", "mcp"]
        run = subprocess.run(["node", command, "--cli", *server, "--method", *argv], text=True, capture_output=True, timeout=SECONDS,
                             stdin=subprocess.DEVNULL, env={**os.environ, "HOME": str(tmp_path)})
        assert run.returncode == 0, (argv, run.returncode, run.stdout[-2000:], run.stderr[-2000:])
        return json.loads(run.stdout), run.stderr

    listed, said = inspect("tools/list", "--strict")
    assert [t["name"] for t in listed["tools"]][:2] == ["list", "doctor"] and len(listed["tools"]) == 10 and not said, (listed, said)
    answer, _ = inspect("tools/call", "--tool-name", "list")
    assert f"{scene.app.pid} " in answer["content"][0]["text"], answer
    answer, _ = inspect("tools/call", "--tool-name", "stacks", "--tool-arg", f"pid={scene.app.pid}", "max_bytes=2048")
    assert f"pid {scene.app.pid}" in answer["content"][0]["text"], answer
    templates, _ = inspect("resources/templates/list")
    assert [t["name"] for t in templates["resourceTemplates"]] == ["snapshot"], templates
