#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs that are replaced under a running agent, as an upgrade does before it restarts the service."""
import os
import pathlib
import shutil
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest
import harness
from harness import Scene

PROGRAMS = ("gpu-agentd", "gpu-agent-front", "gpu-agent-worker", "gpu-agent-store", "gpu-agent-rules", "gpu-agent-hook",
            "gpu-agent-adapter")


@pytest.fixture(name="installed")
def _installed(tmp_path, monkeypatch):
    """A directory with programs of its own, from which scenes start."""
    for name in harness.BIN.iterdir():
        (tmp_path / name.name).symlink_to(name)
    for name in PROGRAMS:
        (tmp_path / name).unlink()
        shutil.copy2(harness.BIN / name, tmp_path)
    monkeypatch.setattr(harness, "BIN", tmp_path)
    return tmp_path


def unpack(program: pathlib.Path) -> None:
    """As dpkg does: a new file takes the name of the old one."""
    new = program.with_suffix(".dpkg-new")
    shutil.copy2(program, new)
    new.rename(program)


@pytest.mark.parametrize("name", PROGRAMS[1:])
def test_nothing_of_another_build_is_started(installed, name):
    with Scene() as s:
        assert s.ctl("snapshot", s.app.pid).returncode == 0
        unpack(installed / name)
        for verb in (("snapshot", s.app.pid), ("list",), ("cores", "list")):
            done = s.ctl(*verb)
            assert done.returncode == 1 and "systemctl restart gpu-agentd" in done.stderr, (verb, done)
        s.agentd.stop()
        assert s.agentd.err().count("restart gpu-agentd") == 1, s.agentd.err()
        s.clients.clear()
        s.start_agentd()
        assert s.ctl("snapshot", s.app.pid).returncode == 0


def test_what_was_open_goes_on(installed):
    with Scene() as s:
        session = s.attach()
        unpack(installed / "gpu-agent-worker")
        assert len(s.rpc.call("gpu.queues", session=session)["queues"]) == 4
        # Another client joins the session, for which nothing is started.
        other = s.connect()
        assert s.attach(rpc=other) == session
        s.rpc.call("session.detach", session=session)
