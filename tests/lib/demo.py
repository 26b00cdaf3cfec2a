# SPDX-License-Identifier: MIT
"""Runs of scripts/demo, and what they could leave behind."""
from __future__ import annotations

import os
import pathlib
import subprocess
import tempfile
from typing import Any, Dict, Optional

from harness import BIN, ROOT


class Traces:
    """What scripts/demo could leave behind: files, mounts, processes."""

    def __init__(self) -> None:
        self.directory = tempfile.TemporaryDirectory(prefix="gpu-agent-test.")

    def __enter__(self) -> Traces:
        for name in ("tmp", "home", "run"):
            os.mkdir(f"{self.directory.name}/{name}")
        return self

    def __exit__(self, *_: Any) -> None:
        self.directory.cleanup()

    def environment(self) -> Dict[str, str]:
        d = self.directory.name
        env = {**os.environ, "BIN": str(BIN), "TMPDIR": f"{d}/tmp", "HOME": f"{d}/home", "XDG_RUNTIME_DIR": f"{d}/run", "SHELL": "/bin/sh"}
        for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"):
            env.pop(name, None)
        return env

    def demo(self, *argv: Any, env: Optional[Dict[str, str]] = None, first: bool = False,
             **kwargs: Any) -> subprocess.CompletedProcess[str]:
        """With first, all of it has the processors before others, where this user may ask for that."""
        if "input" not in kwargs:
            kwargs["stdin"] = subprocess.DEVNULL
        priority = ["nice", "-n", "-19"] if first and os.geteuid() == 0 else []
        return subprocess.run([*priority, ROOT / "scripts/demo", *map(str, argv)], capture_output=True, text=True, timeout=120,
                              env=env or self.environment(), **kwargs)

    def check(self) -> None:
        d = self.directory.name
        left = [str(p) for p in pathlib.Path(d).rglob("*") if p.parent != pathlib.Path(d)]
        assert not left, left
        assert d not in pathlib.Path("/proc/self/mounts").read_text()
        for entry in pathlib.Path("/proc").iterdir():
            try:
                assert not entry.name.isdigit() or d not in (entry / "cmdline").read_text(), (entry / "cmdline").read_text()
            except OSError:
                continue
