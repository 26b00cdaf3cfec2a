#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Adapters of gpu_agent.watchdog, in programs where small modules stand in for the frameworks, with the functions that these call."""
import json
import os
import pathlib
import subprocess
import sys

if __name__ == "__main__":
    # Processes of other tests are none of the machine that is looked at as a whole.
    alone = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--"] if os.geteuid() == 0 else []
    os.execvp((alone + ["pytest-3"])[0], [*alone, "pytest-3", "--lines", *sys.argv])

from harness import BIN, PATIENCE, Scene

CLIENT = BIN.parent / "clients/python"
PYTHON = "/usr/bin/python3"
BEGIN = """import os, sys, time
import gpu_agent.watchdog
def say(*words): print(*words, flush=True)
def begin(**more):
    return gpu_agent.watchdog.start(timeout=600, job="this", out=os.environ["OUT"], deadline=6, **more)
"""


def run(directory, code, modules=(), socket=None, path=f"{BIN}:{os.environ['PATH']}", **environment):
    """What the program says; modules are {name: text}."""
    for name, text in dict(modules).items():
        file = directory / "modules" / (name.replace(".", "/") + ".py")
        file.parent.mkdir(parents=True, exist_ok=True)
        for parent in file.relative_to(directory / "modules").parents:
            if str(parent) != ".":
                (directory / "modules" / parent / "__init__.py").touch()
        file.write_text(text)
    env = {**os.environ, "PYTHONPATH": f"{directory / 'modules'}:{CLIENT}", "PATH": path, "OUT": str(directory / "report"),
           "GPU_AGENT_SOCKET": str(socket or directory / "none"), **environment}
    done = subprocess.run([PYTHON, "-c", BEGIN + code], env=env, capture_output=True, text=True, timeout=3 * PATIENCE,
                          stdin=subprocess.DEVNULL, cwd=directory)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_nothing_is_imported_before_it_is_asked_for(tmp_path):
    said = run(tmp_path, "before = set(sys.modules)\nimport gpu_agent.adapters\n"
               "from gpu_agent.adapters import lightning, pyspy, ray, sglang, torch, vllm\n"
               "say(sorted(n for n in set(sys.modules) - before if not n.startswith('gpu_agent.')))\n",
               {name: "raise RuntimeError('imported')" for name in ("torch", "ray", "vllm", "sglang", "lightning")})
    assert said == "[]\n", said


def test_lightning(tmp_path):
    code = """
from gpu_agent.adapters import lightning
import lightning as theirs
c = lightning.callback(timeout=600, job="this", out=os.environ["OUT"])
assert isinstance(c, theirs.pytorch.Callback)
c.on_train_batch_end(None, None, {}, None, 0)
c.setup(None, None, "fit")
before = c.watchdog._cells[0]
for step in range(5):
    c.on_train_batch_end(None, None, {}, None, step)
c.on_save_checkpoint(None, None, {})
say(c.watchdog._cells[0] - before, c.watchdog.watching)
c.teardown(None, None, "fit")
say(c.watchdog)
"""
    assert run(tmp_path, code, {"lightning.pytorch": "class Callback: pass\n"}).split("\n") == ["6 True", "None", ""]


def test_sglang(tmp_path):
    code = """
from gpu_agent.adapters import sglang
w = begin()
say(sglang.dump_info(w, lambda: "theirs")())
w.stop()
say(sglang.dump_info(w)())
"""
    with Scene(app=None) as s:
        said = run(tmp_path, code, socket=s.socket)
        assert said.split("\n")[:2] == ["theirs", f"gpu-agent: the report is written: {tmp_path}/report"], said
        assert "no report: nobody watches" in said
        assert "was asked for a report" in (tmp_path / "report.txt").read_text()


def test_vllm(tmp_path):
    theirs = """
class WatchDog:
    fed = dumped = 0
    def feed(self): self.fed += 1
    def dump_stack(self): self.dumped += 1; return "stack"
_one = WatchDog()
def get_watch_dog(): return _one
"""
    code = """
from gpu_agent.adapters import vllm
w = begin()
before = w._cells[0]
say(vllm.install(w))
from vllm.utils.watch_dog import get_watch_dog
one = get_watch_dog()
one.feed(), one.feed()
say(one.dump_stack(), one.fed, one.dumped, w._cells[0] - before)
"""
    with Scene(app=None) as s:
        assert run(tmp_path, code, {"vllm.utils.watch_dog": theirs}, s.socket) == "True\nstack 2 1 2\n"
        assert (tmp_path / "report.txt").exists()
    none = "from gpu_agent.adapters import vllm\nsay(vllm.install(begin()))\n"
    assert run(tmp_path, none, {"vllm.utils.watch_dog": "def get_watch_dog(): return None\n"}) == "False\n"
    assert run(tmp_path, none, {"vllm.utils.watch_dog": ""}) == "False\n"


def test_torch(tmp_path):
    """The functions of its debug server, and an Abort of NVIDIA's extension."""
    theirs = {"torch._C._distributed_c10d": "handlers = {}\ndef _register_handler(name, function): handlers[name] = function\n",
              "nvidia_resiliency_ext.inprocess.abort": "class Abort: pass\n"}
    code = """
from gpu_agent.adapters import torch
from torch._C._distributed_c10d import handlers
class Response:
    def set_content(self, data, kind): self.data, self.kind = data, kind
    def set_status(self, status): self.status = status
w = begin()
say(torch.register(w))
r = Response()
handlers["gpu_agent"](None, r)
say(r.data.decode().strip(), r.kind, r.status)
state = object()
say(torch.abort(w)(state) is state, w._cells[3])
"""
    with Scene(app=None) as s:
        said = run(tmp_path, code, theirs, s.socket)
        assert said == f"True\nwritten: {tmp_path}/report text/plain; charset=utf-8 200\nTrue 2\n", said
    assert run(tmp_path / "x", "from gpu_agent.adapters import torch\nsay(torch.register(begin()))\n",
               {"torch._C._distributed_c10d": ""}) == "False\n"


RAY = """
import threading
class Reference:
    def __init__(self, node, function, args):
        self.node, self.function, self.args = node, function, args
class Task:
    def __init__(self, function, node=None): self.function, self.node = function, node
    def options(self, scheduling_strategy): return Task(self.function, scheduling_strategy.node_id)
    def remote(self, *args): return Reference(self.node, self.function, args)
cancelled = []
def remote(**how): return Task
def nodes():
    return [{"NodeID": n, "Alive": n != "dead"} for n in ("one", "hung", "dead", "two", "dies")]
def wait(references, num_returns, timeout):
    return [r for r in references if r.node != "hung"], [r for r in references if r.node == "hung"]
def cancel(reference, force): cancelled.append(reference.node)
def get(reference, timeout):
    if reference.node == "dies":
        raise RuntimeError("the worker died")
    return reference.function(*reference.args)
"""


def test_ray(tmp_path):
    """Each node that is alive gets a task; one that does not answer holds up nobody."""
    modules = {"ray.train.v2.api.callback": "class UserCallback: pass\n", "ray.util.scheduling_strategies":
               "class NodeAffinitySchedulingStrategy:\n    def __init__(self, node_id, soft):\n        self.node_id = node_id\n"}
    code = """
from gpu_agent.adapters import ray
import ray as theirs
import logging
logging.basicConfig(stream=sys.stdout, format="%(message)s")
ray.callback("/proc/none/hang").after_exception(None, {0: "error"})
ray.callback("hang").after_exception(None, {0: "error"})
seen = ray.look("again", 20)
say(theirs.cancelled, seen)
"""
    with Scene() as s:
        (tmp_path / "modules/ray").mkdir(parents=True)
        (tmp_path / "modules/ray/__init__.py").write_text(RAY)
        said = run(tmp_path, code, modules, s.socket).split("\n")
        assert said[0].startswith("gpu-agent: no report: "), said
        assert said[1:3] == [f"gpu-agent: {name} lacks nodes that did not answer: hung, dies" for name in ("hang", "again")], said
        assert said[3] == "['hung', 'hung', 'hung'] ['one', 'two']", said
        assert sorted(os.listdir(tmp_path / "hang")) == ["one.json", "two.json"]
        found = json.loads((tmp_path / "hang/one.json").read_text())
        assert [r["pid"] for r in found["ranks"]] == [s.app.pid]
    assert run(tmp_path, "from gpu_agent.adapters import ray\nsay(ray.look('nobody', 1))\n", modules) == "[]\n"
    assert os.listdir(tmp_path / "nobody") == []


def test_program_called_py_spy(tmp_path):
    with Scene(app=None) as s:
        target = s.start("target", [PYTHON, "-c", "import time\ndef stuck():\n    print('x', flush=True)\n    time.sleep(1000)\nstuck()"])
        target.wait_line()
        done = subprocess.run([PYTHON, "-m", "gpu_agent.adapters.pyspy", "install", tmp_path], capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": str(CLIENT)}, timeout=PATIENCE)
        assert done.stdout == f"{tmp_path}/py-spy\n", done
        env = {**os.environ, "PATH": f"{tmp_path}:{BIN}:/usr/bin:/bin", "GPU_AGENT_SOCKET": str(s.socket)}
        env.pop("PYTHONPATH", None)
        for words in (["dump", "--native", "--pid", str(target.pid)], ["dump", f"--pid={target.pid}"], ["dump", "-p", str(target.pid)]):
            told = subprocess.run(["py-spy", *words], env=env, capture_output=True, text=True, timeout=PATIENCE)
            assert told.returncode in (0, 8) and "stuck" in told.stdout, told
        for words in ([], ["record", "--pid", "1"], ["dump"], ["dump", "--pid", "-1"], ["dump", "--pid"]):
            assert subprocess.run(["py-spy", *words], env=env, capture_output=True, timeout=PATIENCE).returncode == 2, words
        # What is there is somebody's.
        again = subprocess.run([PYTHON, "-m", "gpu_agent.adapters.pyspy", "install", tmp_path], capture_output=True, text=True,
                               env={**os.environ, "PYTHONPATH": str(CLIENT)}, timeout=PATIENCE)
        assert again.returncode == 1 and "FileExistsError" in again.stderr


def test_each_is_short():
    for path in pathlib.Path(CLIENT / "gpu_agent/adapters").glob("*.py"):
        assert len(path.read_text().split("\n")) <= 61, path
