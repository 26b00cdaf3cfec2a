#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The examples where a document cannot show them: a process that is gone, no agent, a fault that comes, TypeScript.

What they print for a hung process is in examples/README.md, which test_commands.py runs.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import npm
from harness import BIN, EXCEPTIONS, ROOT, Scene, wait_until

EXAMPLES = ROOT / "examples"
NOBODY = 4194304
CODE = ROOT / "tests/data/codeobj/spin-gfx90a.co"


def environment(socket):
    return {**os.environ, "GPU_AGENT_SOCKET": str(socket), "PYTHONPATH": str(BIN.parent / "clients/python"),
            "PATH": f"{BIN}:{os.environ['PATH']}"}


def run(socket, *argv):
    return subprocess.run([str(a) for a in argv], env=environment(socket), text=True, capture_output=True, timeout=60,
                          stdin=subprocess.DEVNULL)


WATCHDOGS = ([EXAMPLES / "shell/watchdog", "@PID@", "@FILE@"], ["python3", EXAMPLES / "python/watchdog.py", "@PID@"])


def watchdog(argv, socket, pid, file):
    return run(socket, *[{"@PID@": pid, "@FILE@": file}.get(word, word) for word in argv])


def test_watchdogs_tell_hung_from_the_rest(tmp_path):
    idle = "runtime on; queues 2; spin"
    hung = f"runtime ttmp; load {CODE}; queues 1; dispatch 0 spin 64 64; waves 0 spin 1 spin+16 loop=0; spin"
    for app, want in ((idle, 0), (hung, 10)):
        with Scene(app=app, gpus="gfx90a") as s:
            for argv in WATCHDOGS:
                done = watchdog(argv, s.socket, s.app.pid, tmp_path / f"{want}.json")
                assert done.returncode == want, (argv[0], done)
            assert (tmp_path / f"{want}.json").exists() == (want == 10)
            wait_until(lambda: not s.target_state()["enabled"], "process released")


def test_watchdogs_tell_that_nobody_is_there(tmp_path):
    with Scene() as s:
        for argv in WATCHDOGS:
            done = watchdog(argv, s.socket, NOBODY, tmp_path / "x.json")
            assert done.returncode == 3 and "process" in done.stderr, done
            done = watchdog(argv, tmp_path / "none.sock", s.app.pid, tmp_path / "x.json")
            assert done.returncode == 9 and "agent" in done.stderr, done
    assert not (tmp_path / "x.json").exists()


def test_my_processes_are_those_of_the_caller():
    with Scene() as s:
        done = run(s.socket, "python3", EXAMPLES / "python/my_processes.py")
        assert done.returncode == 0, done
        assert f"{s.app.pid} gpu-agent-simap amd, queues: 4" in done.stdout.split("\n"), done.stdout


def test_events_are_followed_until_the_process_ends():
    fault = "wave_memory_violation"
    with Scene() as s:
        with subprocess.Popen(["python3", str(EXAMPLES / "python/follow_events.py"), str(s.app.pid)], text=True,
                              env=environment(s.socket), stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as follower:
            try:
                # What comes earlier the application has got from the kernel: nobody is told of it.
                wait_until(lambda: s.target_state()["subscribed"] & 1 << EXCEPTIONS[fault] - 1, "subscribed")
                queue = s.target_state()["queues"][0]["id"]
                s.raise_queue(queue, fault)
                assert follower.stdout.readline().startswith(f"{fault}: device "), "the fault is told"
                s.app.popen.kill()
                assert follower.stdout.readline().startswith("the session is over: "), "the end is told"
                assert follower.wait(20) == 0
            finally:
                follower.kill()


def test_a_session_through_socat():
    with Scene() as s:
        done = run(s.socket, EXAMPLES / "shell/session", s.app.pid)
        assert done.returncode == 0, done
        done = run(s.socket, EXAMPLES / "shell/session", NOBODY)
        assert done.returncode != 0 and "no process" in done.stderr, done


def test_core_summary_tells_what_is_no_core(tmp_path):
    (tmp_path / "text").write_text("no core")
    done = run("/nonexistent", "python3", EXAMPLES / "python/core_summary.py", tmp_path / "text")
    assert done.returncode == 1 and str(tmp_path / "text") in done.stderr and not done.stdout, done


def test_typescript_is_compiled_strictly_and_runs():
    modules = npm.install(ROOT / "clients/typescript")
    hung = f"runtime ttmp; load {CODE}; queues 1; dispatch 0 spin 64 64; waves 0 spin 1 spin+16 loop=0; spin"
    with tempfile.TemporaryDirectory() as directory, Scene(app=hung, gpus="gfx90a") as s:
        package = pathlib.Path(directory, "client")
        shutil.copytree(BIN.parent / "clients/typescript", package)
        shutil.copy(EXAMPLES / "typescript/watchdog.ts", package / "src")
        os.symlink(modules, package / "node_modules")
        done = run(s.socket, "node", modules / "typescript/bin/tsc", "--strict", "-p", package)
        assert done.returncode == 0, done.stdout + done.stderr
        program = package / "out/watchdog.js"
        done = run(s.socket, "node", program, s.app.pid, "0.6")
        assert done.returncode == 10 and done.stdout.startswith("queue 0 is hung: waves: 1"), done
        assert run(s.socket, "node", program, NOBODY).returncode == 3
        assert run(pathlib.Path(directory, "none.sock"), "node", program, s.app.pid).returncode == 9
