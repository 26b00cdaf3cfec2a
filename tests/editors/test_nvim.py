#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Neovim with nvim-dap on gpu-agentctl dap: a session without a human, with the configuration that we hand out.

nvim-dap is in no package registry, and its source is not ours to carry: GPU_AGENT_NVIM_DAP names a folder that has it.
Neovim is Debian's, newer than this machine's, in a tree of its own (scripts/fetch-peers).
"""
import base64
import os
import pathlib
import shutil
import sys
from unittest import SkipTest

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from editor import HERE, Editor, dump, pause_and_leave, script, source
from dapclient import runs_on, scene
from harness import ROOT, Scene, wait_until
from peers import fetch, linker
from terminal import drawing, environment, picture


def nvim():
    """Command line and environment of Neovim with nvim-dap."""
    folder = os.environ.get("GPU_AGENT_NVIM_DAP")
    if not folder:
        raise SkipTest("GPU_AGENT_NVIM_DAP does not name a copy of nvim-dap: this client was not tried")
    if not (pathlib.Path(folder) / "plugin/dap.lua").exists():
        raise SkipTest(f"GPU_AGENT_NVIM_DAP: {folder} is no copy of nvim-dap")
    tree = fetch("neovim")
    return [*linker(tree), tree / "usr/bin/nvim", "--clean"], {"VIMRUNTIME": str(tree / "usr/share/nvim/runtime"),
                                                               "NVIM_DAP": folder, "EDITORS": str(ROOT / "editors")}


def test_nvim_dap():
    argv, env = nvim()
    with scene() as s:
        env["CORE"] = str(dump(s))
        env["TAGS"] = str(shutil.copytree(ROOT / "editors/nvim/doc", s.directory / "doc"))
        seen = pause_and_leave(s, Editor(s, [*argv, "--headless", "-u", "NONE", "-l", HERE / "nvim-session.lua"], env))
    assert seen["described"].startswith(f"{s.app.pid} ") and "amd" in seen["described"], seen["described"]
    cannot, absent = seen["refusals"]
    assert cannot == ("gpu-agent: process 7 cannot be debugged: somebody traces it\n"
                      "gpu-agentctl doctor 7 says what to do."), cannot
    assert absent == "gpu-agent: no agent listens" and seen["started"] == ["list", "list"], (absent, seen["started"])
    assert "nvim-dap is found" in seen["health"] and "the agent answers" in seen["health"], seen["health"]
    assert seen["filters"]["filters"] == [], seen["filters"]
    assert seen["control"] == "gpu-agent: this session has control", seen["control"]
    assert seen["GpuAgentGroups"].startswith("4 x scale"), seen["GpuAgentGroups"]
    assert "lane=7" in seen["chosen"].splitlines() and seen["GpuAgentLane"].startswith("7 active"), seen["chosen"]
    assert seen["GpuAgentWave"].split()[0] in seen["chosen"], seen
    assert len(base64.b64decode(seen["memory"]["data"])) == 16 and int(seen["memory"]["address"], 16) == int(seen["pc"], 16)


def test_nvim_dap_on_a_terminal():
    """What a person sees when a kernel has faulted; the picture in docs/ is of such a run."""
    argv, env = nvim()
    drawing()
    with Scene(app=None, gpus="gfx90a") as s:
        env["SOURCE"] = str(source(s.directory) / "spin.cl")
        s.app = s.start_app(script(s.directory))
        # What is on the terminal would start the editor by the name of what loaded it.
        socket = s.directory / "nvim"
        server = s.start("nvim", [*argv, "--headless", "--listen", socket, "-u", HERE / "nvim-picture.lua"],
                         env={**env, **environment(s)})
        wait_until(socket.exists, "Neovim listens")
        lines = picture(s, [*argv, "--server", socket, "--remote-ui"], env, "nvim")
        server.stop()
        runs_on(s)
    for text in ("s = s * x + i;", "reasons: memory_violation", "inner:8", "middle:14", "6 x spin spin.cl:37"):
        assert any(text in line for line in lines), (text, lines)
