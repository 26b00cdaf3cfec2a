#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""scripts/demo --rocm: what a person sees of AMD's own runtime on a simulated GPU, and what he is told where it cannot be."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
from unittest import SkipTest

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest

from demo import Traces
from harness import PATIENCE, ROOT, wait_until
from peers import PEERS
from rocm import RocmScene, trees

CANNOT = 77
NOBODY = 65534


def need_all():
    """Or SkipTest."""
    trees()
    with RocmScene("gfx90a", start_agent=False):
        pass


def test_says_what_is_wrong():
    need_all()
    with Traces() as t:
        run = t.demo("--rocm")
        assert run.returncode == 0, (run.returncode, run.stdout, run.stderr)
        at = 0
        for words in (r"unmodified:\nlibamdhip64-5 \S+, libhsa-runtime64-1 \S+\.\nSimulated are", r"and 0 words differ",
                      r"\$ gpu-agentctl list\n", r" train +yes +amd ", r"\$ gpu-agentctl snapshot \d+ --again",
                      r"^HUNG +queue \d+: .* behind all_reduce, train\.hip:\d+ \(16 waves\)",
                      r"\$ gpu-agentctl dump \d+ -o core\ncore: .*16 waves",
                      r"\$ gpu-agentctl analyze core\n", r"behind all_reduce, train\.hip:\d+ \(16 waves\)", r"the program went on"):
            found = re.compile(words, re.M).search(run.stdout, at)
            assert found, (words, run.stdout)
            at = found.end()
        t.check()


def test_runs_any_verb():
    need_all()
    with Traces() as t:
        run = t.demo("--rocm", "snapshot", "PID", "-j")
        assert run.returncode == 0, run.stderr
        group, = json.loads(run.stdout)["groups"]
        assert group["kernel"]["name"] == "all_reduce" and group["waves"] == 16, group
        run = t.demo("--rocm", "--shell", input="gpu-agentctl snapshot $PID --again 1000 >/dev/null; exit $?\n")
        assert run.returncode == 10, run
        run = t.demo("--rocm", "--scene", "hang")
        assert run.returncode == 2 and "no scenes" in run.stderr, run
        t.check()


@contextlib.contextmanager
def started(t, **env):
    """The demo as a terminal starts it: what it starts is of its process group."""
    with open(f"{t.directory.name}/log", "wb") as log:
        popen = subprocess.Popen([ROOT / "scripts/demo", "--rocm"], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                 start_new_session=True, env={**t.environment(), **env})
    try:
        yield popen
    finally:
        if popen.poll() is None:
            os.killpg(popen.pid, signal.SIGTERM)
            popen.wait(PATIENCE)


def end(popen, sig):
    """Ctrl-C is for the whole process group; a service manager's signal for its first process."""
    begun = time.monotonic()
    (os.killpg if sig == signal.SIGINT else os.kill)(popen.pid, sig)
    assert popen.wait(PATIENCE) == 128 + sig
    return time.monotonic() - begun


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("words", ["", "unmodified", "ctl snapshot", "ctl analyze"])
def test_a_signal_leaves_nothing(sig, words):
    """At whatever it is: before anything is said, while the program starts to copy, in the middle, near the end."""
    need_all()
    with Traces() as t:
        log = pathlib.Path(t.directory.name) / "log"
        with started(t) as popen:
            wait_until(lambda: words in log.read_text() and os.listdir(f"{t.directory.name}/tmp"), "it is there")
            end(popen, sig)
        log.unlink()
        t.check()


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_fetch(sig):
    """Which is tried again the next time."""
    need_all()
    with Traces() as t:
        peers, log = pathlib.Path(t.directory.name) / "peers", pathlib.Path(t.directory.name) / "log"
        with started(t, GPU_AGENT_PEERS=str(peers)) as popen:
            wait_until(lambda: list(peers.glob("apt.*/log")) or popen.poll() is not None, "it fetches")
            if popen.poll() is not None:
                raise SkipTest(f"nothing can be fetched now: {log.read_text()}")
            assert "Fetching" in log.read_text(), log.read_text()
            end(popen, sig)
        assert os.listdir(peers) == [".rocm.lock"]
        shutil.rmtree(peers)
        log.unlink()
        t.check()


# ------------------------------------------------------------------------------- what a machine lacks ----------------


def refused(run, words):
    assert run.returncode == CANNOT and not run.stdout, run
    last = run.stderr.splitlines()[-1]
    assert last.startswith("demo: --rocm ") and words in last, run.stderr


def imitation(directory, program, text="#!/bin/sh\n"):
    """A directory of programs one of which is not ours."""
    directory.mkdir()
    for name in ("gpu-agentctl", "gpu-agentd", "gpu-agent-sim"):
        (directory / name).write_text(text if name == program else "#!/bin/sh\n")
        (directory / name).chmod(0o755)
    return {"BIN": str(directory)}


def test_without_root():
    """In a copy that everybody can read."""
    with Traces() as t:
        d = pathlib.Path(t.directory.name)
        d.chmod(0o755)
        (d / "tmp").chmod(0o777)
        script = shutil.copy(ROOT / "scripts/demo", d)
        shutil.copy(ROOT / "scripts/fetch-peers", d)
        run = subprocess.run([script, "--rocm"], capture_output=True, text=True, timeout=60, user=NOBODY, group=NOBODY, cwd="/",
                             env={**t.environment(), **imitation(d / "bin", None)})
        refused(run, "needs root")
        (d / "fetch-peers").unlink()
        run = subprocess.run([script, "--rocm"], capture_output=True, text=True, timeout=60,
                             env={**t.environment(), "BIN": str(d / "bin")})
        refused(run, "is for gpu-agent's source tree")
        for path in (d / "demo", d / "bin"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        t.check()


def test_without_passthrough():
    """As the simulator says on older kernels: it works, and its memory cannot be mapped."""
    trees()
    with Traces() as t:
        programs = pathlib.Path(t.directory.name) / "bin"
        env = imitation(programs, "gpu-agent-sim", '#!/bin/sh\necho \'{"memory_info":"real","memory":false}\' >"$2/control"\n'
                                                   'echo ready "$2"\nexec sleep 60\n')
        refused(t.demo("--rocm", env={**t.environment(), **env}), "FUSE passthrough, which Linux has from 6.9 on")
        shutil.rmtree(programs)
        t.check()


def test_without_a_network():
    """What was fetched once is enough; without it there is a reason."""
    need_all()
    if subprocess.run(["unshare", "--net", "true"], check=False).returncode:
        raise SkipTest("no network namespaces here")
    with Traces() as t:
        alone = ["unshare", "--net", ROOT / "scripts/demo", "--rocm"]
        empty = f"{t.directory.name}/peers"
        run = subprocess.run(alone, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
                             env={**t.environment(), "GPU_AGENT_PEERS": empty})
        refused(run, "needs packages of Debian 13, which cannot be had here")
        assert "fetch-peers: no package list of trixie" in run.stderr, run.stderr
        shutil.rmtree(empty)
        run = subprocess.run([*alone, "list"], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
                             env={**t.environment(), "GPU_AGENT_PEERS": str(PEERS)})
        assert run.returncode == 0 and " train " in run.stdout, run
        t.check()
