#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""python3 -m gpu_agent.watchdog: scripts that know nothing of it; and job_report(), which any program may call."""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys

if __name__ == "__main__":
    # Processes of other tests are none of the machine that is looked at as a whole.
    alone = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--"] if os.geteuid() == 0 else []
    os.execvp((alone + ["pytest-3"])[0], [*alone, "pytest-3", "--lines", *sys.argv])

import pytest

from harness import PATIENCE, Scene, wait_until
from test_watchdog import CLIENT, PYTHON, helpers, interpreter, job, pythons

sys.path.insert(0, str(CLIENT))
import gpu_agent

PROGRAM = """import ctypes, os, sys, threading, time
kfd = os.open(os.environ["KFD"], os.O_RDWR) if "KFD" in os.environ else -1
def say(*words): print(*words, flush=True)
say("begun", __name__, sys.argv, os.path.basename(sys.path[0]), len(threading.enumerate()))
"""
STALL = PROGRAM + """
def train_step():
    ctypes.PyDLL(None).sleep(100000) if sys.argv[1] == "with the lock" else ctypes.CDLL(None).sleep(100000)
train_step()
"""


def launch(j, code, *options, words=(), name="rank", **more):
    """A script of that name below the directory, under the watchdog."""
    place = j.directory / "scripts"
    place.mkdir(exist_ok=True)
    script = place / "train.py"
    script.write_text(code)
    runs = f"import runpy, sys; sys.argv = ['x', {', '.join(map(repr, map(str, [*options, script, *words])))}]\n" \
           "sys.path[0] = '/'\nrunpy.run_module('gpu_agent.watchdog', run_name='__main__', alter_sys=True)\n"
    return j.start(runs, name, **more)


@pytest.mark.parametrize("how", ["with the lock", "without it"], ids=["locked", "free"])
def test_script_that_stands_still(tmp_path, how):
    with Scene(app=None) as s, job(tmp_path, s) as j:
        process = launch(j, STALL, "--timeout=2", "--deadline=8", f"--out={j.out}/rank-%t", words=[how, "--timeout", "-m"], RANK="3")
        said = j.wait_line(process, "begun")
        assert said == f"begun __main__ {[str(tmp_path / 'scripts/train.py'), how, '--timeout', '-m']} scripts 1", said
        text = j.report()[0]
        assert text.startswith(f"rank 3, process {process.pid} on ") and "has reported no progress for 2 s" in text, text
        assert "train_step" in text.partition("Threads of process")[0] and "train.py" in text, text
        assert process.poll() is None


def test_script_that_goes_on(tmp_path):
    """It calls nobody; that it comes back to Python is enough."""
    code = PROGRAM + "end = time.monotonic() + 8\nwhile time.monotonic() < end: time.sleep(0.05)\nsay('over')\n"
    with job(tmp_path) as j:
        process = launch(j, code, "--timeout=6", f"--out={j.out}/rank-%t")
        j.wait_line(process, "over")
        assert process.wait(3 * PATIENCE) == 0 and not list(tmp_path.glob("reports/*")), process.complained.read_text()


ENDS = {"sys.exit(42)": 42, "os._exit(7)": 7, "os.kill(os.getpid(), 9)": -signal.SIGKILL, "os.abort()": -signal.SIGABRT, "1 / 0": 1,
        "sys.exit('told')": 1, "pass": 0, "threading.Thread(target=time.sleep, args=(1,)).start()": 0}


@pytest.mark.parametrize("how", ENDS)
def test_end_is_that_of_the_script(tmp_path, how):
    with job(tmp_path) as j:
        process = launch(j, PROGRAM + how + "\n", "--timeout=60")
        assert process.wait(3 * PATIENCE) == ENDS[how], process.complained.read_text()
        complained = process.complained.read_text()
        assert ("ZeroDivisionError" in complained) == (how == "1 / 0") and ("told" in complained) == ("told" in how), complained
        wait_until(lambda: not helpers(process.pid), "the end of the helper")


def test_no_thread_of_ours_meets_the_end_of_the_interpreter(tmp_path):
    """Nor does a child of the script wait for a thread that it does not have."""
    code = PROGRAM + """import atexit
def threads(): return len(os.listdir("/proc/self/task"))
def tell():
    end = time.monotonic() + 3
    while threads() > 1 and time.monotonic() < end: time.sleep(0.01)
    say("at the end", threads(), "threads", int(end - begun), "s")
begun = time.monotonic()
atexit.register(tell)
if child := os.fork(): os.waitpid(child, 0)
"""
    with job(tmp_path) as j:
        process = launch(j, code, "--timeout=600")
        assert process.wait(3 * PATIENCE) == 0, process.complained.read_text()
        said = [line.split()[3:] for line in process.said.read_text().splitlines() if line.startswith("at the end")]
        assert len(said) == 2 and all(line[0] == "1" and int(line[2]) < 7 for line in said), said


def test_script_with_a_watchdog_of_its_own(tmp_path):
    """What the program says itself goes first: nobody watches twice."""
    code = PROGRAM + f"import gpu_agent.watchdog\nwatchdog = gpu_agent.watchdog.start(timeout=2, out='{tmp_path}/reports/own-%t')\n" \
        "say('watching', watchdog.watching)\ndef train_step(): time.sleep(100000)\ntrain_step()\n"
    with job(tmp_path) as j:
        process = launch(j, code, "--timeout=60", f"--out={j.out}/launched-%t")
        assert j.wait_line(process, "watching") == "watching True"
        text = j.report("own")[0]
        assert "has reported no progress for 2 s" in text and "train_step" in text.partition("faulthandler")[2], text
        wait_until(lambda: len(helpers(process.pid)) == 1, "one process that watches")


@pytest.mark.parametrize("version", pythons())
def test_each_python(tmp_path, version):
    with job(tmp_path) as j:
        process = launch(j, STALL, "--timeout=2", f"--out={j.out}/rank-%t", words=["without it"], python=interpreter(version))
        assert "train_step" in j.report()[0]
        complained = [line for line in process.complained.read_text().split("\n") if line and "gpu-agent watchdog: " not in line]
        assert not complained, complained


def test_command_line(tmp_path):
    """By python -m itself: a module with its arguments, and what cannot be understood."""
    (tmp_path / "trainer.py").write_text("import sys\nprint(__name__, sys.argv[1:])\nsys.exit(5)\n")
    env = {**os.environ, "PYTHONPATH": str(CLIENT), "GPU_AGENT_SOCKET": str(tmp_path / "none")}

    def run(*words):
        return subprocess.run([PYTHON, "-X", "dev", "-W", "error", "-m", "gpu_agent.watchdog", *words], env=env, cwd=tmp_path, text=True,
                              capture_output=True, timeout=60, stdin=subprocess.DEVNULL)
    done = run("-m", "trainer", "--job", "x")
    assert done.returncode == 5 and done.stdout == "__main__ ['--job', 'x']\n", done
    done = run("trainer.py", "-m")
    assert done.returncode == 5 and done.stdout == "__main__ ['-m']\n", done
    done = run("--job", "this", "trainer.py", "--", "-m", "--")
    assert done.returncode == 5 and done.stdout == "__main__ ['--', '-m', '--']\n", done
    done = run("-m", "trainer", "--", "x")
    assert done.returncode == 5 and done.stdout == "__main__ ['--', 'x']\n", done
    for words, why in ((("--timeout=-1", "trainer.py"), "timeout"), (("--job=x", "trainer.py"), "job: 'x' is not"), ((), "SCRIPT"),
                       (("--deadline=0", "trainer.py"), "deadline")):
        done = run(*words)
        assert done.returncode == 2 and why in done.stderr and not done.stdout, done
    done = run("absent.py")
    assert done.returncode == 1 and "absent.py" in done.stderr, done


SAME = """import atexit, multiprocessing, pickle, sys, threading
class Net: pass
def work(queue): queue.put(__name__)
def tell(when): print(when, type(pickle.loads(pickle.dumps(Net()))) is Net, flush=True)
def late():
    threading.main_thread().join()
    spawn = multiprocessing.get_context("spawn")
    queue = spawn.SimpleQueue()
    child = spawn.Process(target=work, args=(queue,))
    child.start()
    print("child", queue.get(), flush=True)
    child.join()
if __name__ == "__main__":
    atexit.register(tell, "atexit")
    threading.Thread(target=late).start()
    print(__file__, sys.argv, sys.path[0], __spec__ and __spec__.name, __package__, type(__loader__).__name__, type(__builtins__),
          late.__code__.co_filename, flush=True)
    sys.exit(3)
"""


@pytest.mark.parametrize("words", [("link.py", "a", "--", "b"), ("scripts/../link.py",), ("-m", "scripts.train", "--")])
def test_script_is_as_without_it(tmp_path, words):
    """Also what runs after its end: another thread, which starts a process, and atexit."""
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts/train.py").write_text(SAME)
    (tmp_path / "link.py").symlink_to("scripts/train.py")
    env = {**os.environ, "PYTHONPATH": str(CLIENT), "GPU_AGENT_SOCKET": str(tmp_path / "none")}
    alone, under = (subprocess.run([PYTHON, *how, *words], env=env, cwd=tmp_path, text=True, capture_output=True, timeout=60,
                                   stdin=subprocess.DEVNULL) for how in ((), ("-m", "gpu_agent.watchdog")))
    assert under.stdout == alone.stdout and under.returncode == alone.returncode == 3, (alone, under)
    assert under.stdout.endswith("child __mp_main__\natexit True\n"), under
    (tmp_path / "scripts/__main__.py").write_text("import sys\nprint(__file__, sys.argv, sys.path[0], __spec__.name)\n")
    alone, directory = (subprocess.run([PYTHON, *how, "scripts", "--"], env=env, cwd=tmp_path, text=True, capture_output=True, timeout=60,
                                       stdin=subprocess.DEVNULL) for how in ((), ("-m", "gpu_agent.watchdog")))
    assert directory.stdout == alone.stdout != "", (alone, directory)
    assert "Traceback" not in under.stderr, under.stderr


def test_main_thread_is_the_scripts_own(tmp_path):
    """No Python of ours runs there, where the exception of a signal's handler would be lost; and one call is pending at most."""
    code = PROGRAM + """
calls = []
sys.setprofile(lambda frame, event, _: calls.append(frame.f_code.co_filename) if event == "call" else None)
end = time.monotonic() + 1
while time.monotonic() < end: pass
sys.setprofile(None)
say("strange", [name for name in calls if "gpu_agent" in name])
add = ctypes.pythonapi.Py_AddPendingCall
add.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
nothing = ctypes.cast(ctypes.CDLL(None).sem_destroy, ctypes.c_void_p)
memory = (ctypes.c_uint64 * 16)()
def ask():
    time.sleep(2.5)
    say("places", [add(nothing, ctypes.addressof(memory)) for _ in range(8)])
threading.Thread(target=ask).start()
ctypes.CDLL(None).sleep(3)
"""
    with job(tmp_path) as j:
        process = launch(j, code, "--timeout=1", f"--out={j.out}/rank-%t")
        assert j.wait_line(process, "strange") == "strange []"
        assert j.wait_line(process, "places") == "places [0, 0, 0, 0, 0, 0, 0, 0]"


# ---------------------------------------------------------------------- job_report()


@contextlib.contextmanager
def environment(monkeypatch, s):
    monkeypatch.setenv("GPU_AGENT_SOCKET", str(s.socket))
    monkeypatch.setenv("PATH", f"{CLIENT.parent.parent / 'bin'}:{os.environ['PATH']}")
    yield


def test_job_report(tmp_path, monkeypatch):
    with Scene() as s, environment(monkeypatch, s):
        page = tmp_path / "page.html"
        found = gpu_agent.job_report(str(page), job="node")
        assert [r["pid"] for r in found["ranks"]] == [s.app.pid] and found["source"]["kind"] == "merged"
        # The page is that of gpu-agentctl, with the same document in it.
        text = page.read_text()
        inside = text.partition('id="gpu-agent-document">')[2].partition("</script>")[0]
        assert json.loads(inside) == found and "<h1>" in text
        # A process that uses no GPU has its threads.
        found = gpu_agent.job_report(job="this")
        assert [r["pid"] for r in found["ranks"]] == [os.getpid()] and found["host_groups"], found
        with pytest.raises(OSError, match="the page was not written: /proc/none"):
            gpu_agent.job_report("/proc/none/page.html", job="node")
        for bad in ({"job": "x"}, {"deadline": 0}, {"deadline": float("nan")}):
            with pytest.raises(ValueError):
                gpu_agent.job_report(**bad)
        with pytest.raises(OSError, match="nonexistent"):
            gpu_agent.job_report(str(tmp_path / "none.html"), job="node", socket="/nonexistent")
        assert not (tmp_path / "none.html").exists()


def test_job_report_without_the_program(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(FileNotFoundError, match="gpu-agentctl"):
        gpu_agent.job_report()


def test_job_report_that_does_not_end(tmp_path, monkeypatch):
    """In place of gpu-agentctl, one that hangs."""
    program = tmp_path / "gpu-agentctl"
    program.write_text(f"#!/bin/sh\necho $$ >{tmp_path}/asked\nexec sleep 1000\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(OSError, match="did not end within"):
        gpu_agent.job_report(deadline=0.5)
    asked = wait_until(lambda: (tmp_path / "asked").read_text().strip(), "the start of the program")
    assert not pathlib.Path(f"/proc/{asked}").exists()


def test_job_report_where_children_are_ignored(monkeypatch):
    """Nobody knows the exit status of gpu-agentctl then."""
    monkeypatch.setenv("PATH", f"{CLIENT.parent.parent / 'bin'}:{os.environ['PATH']}")
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        with pytest.raises(OSError, match="no agent at /nonexistent"):
            gpu_agent.job_report(job="node", socket="/nonexistent")
    finally:
        signal.signal(signal.SIGCHLD, before)
