# SPDX-License-Identifier: MIT
"""An editor without a human, as a client of gpu-agentctl dap."""
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import threading
from unittest import SkipTest

import npm
from dapclient import DATA, runs_on
from dapschema import check_recorded, recorded
from harness import BIN, ROOT, Scene, wait_until

HERE = pathlib.Path(__file__).resolve().parent

GPUS, WAVES_EACH = 8, 12600  # in all 100,800 waves
SECONDS = 100  # of one session, whatever the editor does


def source(directory):
    """A folder with a source, and next to it the program that is made of it."""
    place = directory / "workspace"
    place.mkdir()
    shutil.copy(DATA / "spin.cl", place)
    npm.need("clang", "ld.lld")
    subprocess.run(["clang", "-x", "cl", "-target", "amdgcn-amd-amdhsa", "-mcpu=gfx90a", "-mcode-object-version=4",
                    "-nogpulib", "-O1", "-gdwarf-5", f"-fdebug-compilation-dir={place}", "spin.cl", "-o",
                    directory / "spin.co"], cwd=place, check=True, timeout=60)
    return place


def script(directory):
    """Two waves that fault, three calls of inlining deep, and six that wait."""
    return (f"runtime ttmp; load {directory}/spin.co; queues 2; dispatch 0 scale 4096 64; "
            "waves 0 memory 2 scale+104; waves 1 halted 6 spin+16; spin")


def extension(name):
    """The packed extension for VS Code; beside it is the same as a directory.  A test program has one of its own name."""
    directory = npm.CACHE / f"{name}-extension"
    run = subprocess.run([ROOT / "editors/vscode/build", BIN.parent / "clients/typescript/src", directory], text=True,
                         capture_output=True, timeout=280, stdin=subprocess.DEVNULL)
    if run.returncode == 77:
        raise SkipTest(run.stderr.strip())
    assert run.returncode == 0, run.stdout + run.stderr
    return directory / "gpu-agent.vsix"


def adapter_of(s):
    """The debug adapter that an editor has started."""
    for place in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (place / "cmdline").read_bytes().split(b"\0")
            if words[0].endswith(b"/gpu-agentctl") and b"dap" in words and str(s.socket).encode() in (place / "environ").read_bytes():
                return int(place.name)
    raise AssertionError("no adapter runs")


@contextlib.contextmanager
def many_waves():
    """Eight GPUs with a hundred thousand waves."""
    with Scene(app=f"runtime ttmp; queues {GPUS}; spin", gpus=",".join(["gfx942"] * GPUS)) as s:
        for queue in s.target_state()["queues"]:
            s.control(f"waves {s.app.pid} {queue['id']} halted {WAVES_EACH} 0x7f0000001000 group=4 vgprs=8 acc=0 lds=0")
        yield s


def vendors_debugger(directory):
    """A folder with a program that stands for rocgdb: it writes down its arguments, and stays."""
    place = directory / "vendor"
    place.mkdir()
    program = place / "rocgdb"
    ran = directory / "rocgdb"
    program.write_text(f'#!/bin/sh\necho "$@" >{ran}.new && mv {ran}.new {ran}.ran\ncat\n')
    program.chmod(0o755)
    return place


class Editor:
    """An editor that runs a script, which says a word and waits for a line."""

    def __init__(self, s, argv, env):
        self.log = s.directory / "editor.err"
        self.directory = s.directory
        self.silent = threading.Timer(SECONDS, self._kill)
        with open(self.log, "wb") as log:
            self.popen = subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
                env={**os.environ, **env, "ADAPTER": str(recorded(BIN / "gpu-agentctl", s.directory)),
                     "PATH": f"{vendors_debugger(s.directory)}:{os.environ['PATH']}",
                     "PID": str(s.app.pid), "GPU_AGENT_SOCKET": str(s.socket), "HOME": str(s.directory)})
        self.silent.start()

    def _kill(self):
        if self.popen.poll() is None:
            self.popen.kill()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.silent.cancel()
        self._kill()
        self.popen.communicate()
        if kind:
            print("".join(f"  | {line}\n" for line in self.log.read_text(errors="replace").splitlines()[-30:]), end="")

    def expect(self, word):
        line = self.popen.stdout.readline().strip()
        assert line == word, f"{line!r} instead of {word!r}"

    def go_on(self):
        self.popen.stdin.write("\n")
        self.popen.stdin.flush()

    def end(self):
        """What the script tells with its last line; what was said until then is as the protocol has it."""
        seen = json.loads(self.popen.stdout.readline())
        assert self.popen.wait() == 0
        assert check_recorded(self.directory) > 20, "no messages"
        return seen


def dump(s):
    """A core file of the process."""
    core = s.directory / "core"
    run = s.ctl("dump", s.app.pid, "--max-stop", "60s", "-o", core)
    assert run.returncode == 0, run
    return core


def pause_and_leave(s, editor):
    """Both scripts pause the GPU, continue, pause again, and leave to the vendor's debugger: what they saw."""
    with editor as e:
        e.expect("paused")
        assert s.target_state()["suspended_queues"] == 2
        e.go_on()
        e.expect("running")
        faults = s.app_status().faults
        s.raise_queue(0, "wave_memory_violation")
        wait_until(lambda: s.app_status().faults > faults, "the application has it")
        e.go_on()
        e.expect("told")
        assert not s.target_state()["suspended_queues"], "an exception that stops nothing"
        e.go_on()
        e.expect("left")
        ran = s.directory / "rocgdb.ran"
        wait_until(ran.exists, "the vendor's debugger is started")
        assert ran.read_text().split()[-2:] == ["-p", str(s.app.pid)], ran.read_text()
        runs_on(s)
        e.go_on()
        seen = e.end()
    assert seen["stops"][:2] == ["pause", "pause"], seen["stops"]
    assert "no-such-debugger -p 1" in seen["absent"] and "has let go" in seen["absent"], seen["absent"]
    assert "core file has no process" in seen["nothing"], seen["nothing"]
    assert "Exception: A wave touched memory it must not, queue 0" in seen["told"], seen["told"]
    name, = seen["threads"]
    assert name.startswith("4 x scale spin.cl:"), name
    assert seen["frame"] == "spin" and seen["line"] and int(seen["pc"], 16), seen
    scopes = seen["scopes"]
    assert set(scopes) == {"Wave", "Arguments", "Built-ins", "Scalar registers", "Vector registers", "Lanes", "LDS",
                           "Group statistics", "Why"}, scopes.keys()
    assert int(scopes["Wave"]["pc"], 16) == int(seen["pc"], 16) and scopes["Group statistics"]["waves"] == "4"
    assert scopes["Scalar registers"]["s0"].startswith("0x") and "lane 63" in scopes["Lanes"]
    return seen
