#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Neovim with nvim-dap on gpu-agentctl dap: a session without a human, with the configuration that we hand out.

nvim-dap is in no package registry, and its source is not ours to carry: GPU_AGENT_NVIM_DAP names a folder that has it,
and GPU_AGENT_LAZY_NVIM one that has lazy.nvim.
Neovim is Debian's, newer than this machine's, in a tree of its own (scripts/fetch-peers).
"""
import base64
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from unittest import SkipTest

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from editor import GPUS, HERE, WAVES_EACH, Editor, adapter_of, dump, many_waves, pause_and_leave, script, source
from dapclient import runs_on, scene
from harness import ROOT, Scene, status, wait_until
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


def lazy_nvim():
    """The folder of lazy.nvim, which is no package either."""
    folder = os.environ.get("GPU_AGENT_LAZY_NVIM")
    if not folder:
        raise SkipTest("GPU_AGENT_LAZY_NVIM does not name a copy of lazy.nvim: the spec was not tried")
    if not (pathlib.Path(folder) / "lua/lazy/init.lua").exists():
        raise SkipTest(f"GPU_AGENT_LAZY_NVIM: {folder} is no copy of lazy.nvim")
    return folder


def test_the_spec_for_lazy_nvim():
    """The one that the documentation has, but for the folders."""
    argv, env = nvim()
    spec, = re.findall(r"^```lua\n(\{ dir = .*\})\n```$", (ROOT / "docs/EDITORS.md").read_text(), re.MULTILINE)
    with tempfile.TemporaryDirectory() as home:
        plugin = shutil.copytree(ROOT / "editors/nvim", pathlib.Path(home, "nvim"))
        env.update(LAZY_NVIM=lazy_nvim(), PLUGIN=str(plugin), SPEC=spec, HOME=home,
                   **{f"XDG_{kind}_HOME": f"{home}/{kind}" for kind in ("CONFIG", "DATA", "STATE", "CACHE")})
        run = subprocess.run([*argv, "--headless", "-u", HERE / "nvim-lazy.lua"], env={**os.environ, **env}, text=True,
                             capture_output=True, timeout=60, stdin=subprocess.DEVNULL, check=False)
    assert run.returncode == 0, run.stderr[-2000:]
    seen = json.loads(run.stdout.splitlines()[-1])
    assert not seen["problems"], seen["problems"]
    assert (seen["adapter"]["command"], seen["adapter"]["args"]) == ("gpu-agentctl", ["dap"]), seen
    assert seen["configurations"] == ["GPU process", "GPU core file"], seen
    assert len(seen["commands"]) == 6, seen["commands"]


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


def test_eight_gpus_and_a_hundred_thousand_waves():
    """A group names its GPU, its waves come a page at a time, and the adapter stays small."""
    argv, env = nvim()
    with many_waves() as s:
        with Editor(s, [*argv, "--headless", "-u", "NONE", "-l", HERE / "nvim-many.lua"], env) as e:
            e.expect("listed")
            peak = int(status(adapter_of(s))["VmHWM"].split()[0])
            assert s.target_state()["suspended_queues"] == GPUS, "a choice lets nothing run"
            e.go_on()
            seen = e.end()
        runs_on(s)
    print(f"  {GPUS * WAVES_EACH} waves on {GPUS} GPUs: the adapter has {peak / 1024:.1f} MiB at most")
    assert peak < 32 * 1024, peak
    groups, waves = seen["GpuAgentGroups"], seen["GpuAgentWave"]
    assert f"{GPUS} devices, {GPUS} queues, {GPUS * WAVES_EACH} waves" in groups["prompt"], groups["prompt"]
    assert sorted(row.split(":")[0] for row in groups["rows"]) == [f"GPU {i}" for i in range(GPUS)], groups["rows"]
    assert all(f": {WAVES_EACH} x" in row for row in groups["rows"]), groups["rows"]
    assert waves["prompt"] == f"Wave, of {WAVES_EACH}" and len(set(waves["rows"])) == 1000, (waves["prompt"], waves["rows"][:3])


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
