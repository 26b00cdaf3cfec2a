#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Neovim with nvim-dap on gpu-agentctl dap: a session without a human, with the configuration that we hand out.

nvim-dap is in no package registry, and its source is not ours to carry: GPU_AGENT_NVIM_DAP names a folder that has it.
Neovim is Debian's, newer than this machine's, in a tree of its own (scripts/fetch-peers).
"""
import base64
import os
import pathlib

from editor import HERE, Editor, pause_and_leave
from dapclient import scene
from harness import ROOT, Skip, main, test
from peers import fetch, linker


@test
def nvim_dap():
    folder = os.environ.get("GPU_AGENT_NVIM_DAP")
    if not folder:
        raise Skip("GPU_AGENT_NVIM_DAP does not name a copy of nvim-dap: this client was not tried")
    if not (pathlib.Path(folder) / "plugin/dap.lua").exists():
        raise Skip(f"GPU_AGENT_NVIM_DAP: {folder} is no copy of nvim-dap")
    tree = fetch("neovim")
    argv = [*linker(tree), tree / "usr/bin/nvim", "--clean", "--headless", "-u", "NONE", "-l", HERE / "nvim-session.lua"]
    with scene() as s:
        seen = pause_and_leave(s, Editor(s, argv, {"VIMRUNTIME": str(tree / "usr/share/nvim/runtime"),
                                                   "NVIM_DAP": folder, "EDITORS": str(ROOT / "editors")}))
    assert seen["described"].startswith(f"{s.app.pid} ") and "amd" in seen["described"], seen["described"]
    assert len(base64.b64decode(seen["memory"]["data"])) == 16 and int(seen["memory"]["address"], 16) == int(seen["pc"], 16)


if __name__ == "__main__":
    main(__file__)
