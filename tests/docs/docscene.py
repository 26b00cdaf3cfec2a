#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Type the command lines of one document, on a machine of its own with a simulated GPU.

usage: docscene.py PAGE        prints what each command line printed, as JSON

The machine is a set of namespaces: process ids of its own, so that the program is process 4242 as the documents say; a host name;
/run, /etc and the home directory of user ana, who is in group gpu-debug and owns the program.  Nothing outside is changed.
`$` is typed by ana, `#` by root.  The agent runs as the system's one, on its usual socket.
"""
from __future__ import annotations

import ctypes
import json
import os
import pathlib
import re
import select
import shutil
import signal
import stat
import subprocess
import sys
import time
from typing import Any, Dict, List, Optional

import docpage

ROOT = docpage.ROOT
BIN = pathlib.Path(os.environ.get("BIN", ROOT / "build/bin")).resolve()
TOP = pathlib.Path("/run/docs")
PID = 4242
HOST = "gpu07"
PATIENCE = 60.0
MS_PRIVATE, MS_REC, MS_BIND = 1 << 18, 1 << 14, 1 << 12
libc = ctypes.CDLL(None, use_errno=True)


def mount(source: str, target: str, kind: Optional[str], flags: int = 0) -> None:
    if libc.mount(source.encode(), target.encode(), kind.encode() if kind else None, flags, None):
        raise OSError(ctypes.get_errno(), f"mount {source} on {target}")


def make_machine() -> None:
    """Own /run, /etc and users; the programs and the sources at fixed places."""
    subprocess.run(["hostname", HOST], check=True)
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    keep = os.open(ROOT, os.O_PATH), os.open(BIN.parent, os.O_PATH)
    mount("run", "/run", "tmpfs")
    for name in ("etc", "gpu-agent", "lock", *(f"docs/{n}" for n in ("build", "gpu-agent", "home", "sys", "bin", "cores", "user"))):
        (pathlib.Path("/run") / name).mkdir(parents=True, exist_ok=True)
    mount(f"/proc/self/fd/{keep[0]}", str(TOP / "gpu-agent"), None, MS_BIND)
    mount(f"/proc/self/fd/{keep[1]}", str(TOP / "build"), None, MS_BIND | MS_REC)
    shutil.copytree("/etc", "/run/etc", symlinks=True, dirs_exist_ok=True)
    mount("/run/etc", "/etc", None, MS_BIND)
    text = pathlib.Path("/etc/passwd").read_text()
    users = [line for line in text.split("\n")
             if line and line.split(":")[2] != "1000" and line.split(":")[0] != "gpu-agent"]
    pathlib.Path("/etc/passwd").write_text("\n".join([*users, "ana:x:1000:1000::/run/docs/home:/bin/bash",
                                                      "gpu-agent:x:990:990::/:/usr/sbin/nologin"]) + "\n")
    groups = [line for line in pathlib.Path("/etc/group").read_text().split("\n")
              if line and line.split(":")[2] not in ("990", "991", "992", "1000")
              and line.split(":")[0] not in ("gpu-agent", "gpu-debug", "gpu-admin", "ana")]
    pathlib.Path("/etc/group").write_text("\n".join([*groups, "ana:x:1000:", "gpu-agent:x:990:", "gpu-debug:x:991:ana",
                                                     "gpu-admin:x:992:"]) + "\n")
    pathlib.Path("/etc/gpu-agent/agentd.conf.d").mkdir(parents=True, exist_ok=True)
    home = TOP / "home"
    for name in ("examples", "scripts", "docs", "clients", "protocol"):
        if (ROOT / name).exists():
            (home / name).symlink_to(TOP / "gpu-agent" / name)
    (home / "build").symlink_to(TOP / "build")
    # As it is installed.
    (TOP / "bin/gpu-agent-demo").symlink_to(TOP / "gpu-agent/scripts/demo")
    for name, uid in (("home", 1000), ("user", 1000), ("cores", 990)):
        os.chown(TOP / name, uid, uid)
    (TOP / "cores").chmod(0o700)
    # Debian lets everybody use FUSE; a container need not.
    os.mknod(TOP / "fuse", stat.S_IFCHR | 0o666, os.stat("/dev/fuse").st_rdev)
    (TOP / "fuse").chmod(0o666)
    mount(str(TOP / "fuse"), "/dev/fuse", None, MS_BIND)
    mount("tmp", "/tmp", "tmpfs")
    os.chmod("/tmp", 0o1777)


class Shell:
    """A shell of one user, which types command lines and hears what they print."""

    def __init__(self, uid: int, environment: Dict[str, str]) -> None:
        extra: Dict[str, Any] = {"user": uid, "group": uid, "extra_groups": [991]} if uid else {}
        self.popen = subprocess.Popen(["bash", "--norc", "--noprofile"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, cwd=TOP / "home", env=environment, **extra)
        self.n = 0

    def type(self, text: str, endless: bool, file: pathlib.Path) -> Dict[str, Any]:
        """Run it as a person would; a command that stays is interrupted once it had time to say something."""
        self.n += 1
        mark = re.compile(rf"\x01{self.n} (\d+)\n")
        file.write_text(text + "\n")
        # `eval` keeps variables and jobs of the shell; standard input is nobody's terminal.
        line = f"timeout -s INT 3 bash {file}" if endless else f"eval \"$(cat {file})\""
        assert self.popen.stdin
        self.popen.stdin.write(f"{line} </dev/null; printf '\\001{self.n} %d\\n' $?\n".encode())
        self.popen.stdin.flush()
        heard, deadline = "", time.monotonic() + PATIENCE
        while not mark.search(heard):
            if not select.select([self.popen.stdout], [], [], max(0, deadline - time.monotonic()))[0]:
                return {"command": text, "output": heard, "status": "does not end"}
            assert self.popen.stdout
            piece = os.read(self.popen.stdout.fileno(), 65536)
            if not piece:
                return {"command": text, "output": heard, "status": "ended the shell"}
            heard += piece.decode(errors="replace")
        # What programs in the background print behind it belongs to nobody.
        ended = mark.search(heard)
        assert ended
        status = 0 if endless and ended[1] in ("124", "130") else int(ended[1])
        return {"command": text, "output": heard[:ended.start()], "status": status}


class Machine:
    """Everything that a document finds running."""

    def __init__(self, scene: str) -> None:
        self.scene = scene
        self.running: List[subprocess.Popen[bytes]] = []
        self.environment = {
            "PATH": f"{TOP}/build/bin:{TOP}/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": str(TOP / "home"),
            "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "COLUMNS": "80", "USER": "ana", "XDG_RUNTIME_DIR": str(TOP / "user"), "PAGER": "",
            "TERM": "dumb", "TZ": "UTC",
            **{k: v for k, v in os.environ.items() if k.startswith(("ASAN_", "UBSAN_", "NODE_", "npm_", "GPU_AGENT_TEST_"))}}
        if scene != "none":
            (self.start_cuda if scene.startswith("cuda") else self.start_amd)()
        self.shells: Dict[bool, Shell] = {}

    def start(self, argv: List[Any], ready: Optional[pathlib.Path] = None, **kwargs: Any) -> subprocess.Popen[bytes]:
        log = TOP / f"{pathlib.Path(argv[0]).name}.log"
        with open(log, "wb") as out:
            kwargs.setdefault("env", self.environment)
            popen = subprocess.Popen([str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=out, stderr=out, **kwargs)
        self.running.append(popen)
        deadline = time.monotonic() + PATIENCE
        while not (ready.exists() if ready else log.stat().st_size):
            if popen.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"{argv[0]} does not come up: {log.read_text(errors='replace')}")
            time.sleep(0.01)
        return popen

    def start_program(self, argv: List[Any], name: str, **environment: str) -> None:
        """The program of user ana, as process 4242 of this machine."""
        program = TOP / name
        program.symlink_to(argv[0])
        pathlib.Path("/proc/sys/kernel/ns_last_pid").write_text(str(PID - 1))
        popen = self.start([program, *argv[1:]], user=1000, group=1000, extra_groups=[],
                           cwd=TOP / "home", env={**self.environment, **environment})
        assert popen.pid == PID, f"the program is process {popen.pid}, not {PID}"

    def start_amd(self) -> None:
        device = TOP / "sys"
        # Its control file is for its group, too: the scene lets packets go on.
        self.start([TOP / "build/bin/gpu-agent-sim", "--mount", device, "--gpus", "gfx90a,gfx90a"], group=1000)
        self.start_program([TOP / "build/bin/gpu-agent-simapp", "--kfd", device / "kfd", "--scene", self.scene], "train")
        self.start_agent("--kfd", device / "kfd", "--kfd-sysfs", device)

    def start_cuda(self) -> None:
        """Scenes of CUDA are called cuda-NAME."""
        library = pathlib.Path(subprocess.run([TOP / "build/bin/gpu-agent-cuda-simapp", "--library"], text=True, check=True,
                                              stdout=subprocess.PIPE).stdout.strip()).resolve()
        gpu = {"GPU_AGENT_CUDASIM": f"gpu {TOP}/gpu"}
        self.start([TOP / "build/bin/gpu-agent-cuda-sim", "--socket", TOP / "gpu"], env={**self.environment, **gpu})
        os.chown(TOP / "gpu", 1000, 1000)
        self.start_program([TOP / "build/bin/gpu-agent-cuda-simapp", "--scene", self.scene.removeprefix("cuda-")], "train", **gpu)
        self.start_agent("--cuda-library", library, LD_LIBRARY_PATH=str(library.parent), **gpu)

    def start_agent(self, *options: Any, **environment: str) -> None:
        self.agent = self.start([TOP / "build/bin/gpu-agentd", "--store", TOP / "cores", *options],
                                pathlib.Path("/run/gpu-agent/agentd.sock"), env={**self.environment, **environment})

    def type(self, command: docpage.Command, instead: Optional[str]) -> Dict[str, Any]:
        if command.root not in self.shells:
            self.shells[command.root] = Shell(0 if command.root else 1000, self.environment)
        text = (instead or command.text).replace("@AGENT@", str(self.agent.pid) if self.scene != "none" else "")
        file = TOP / ("root.sh" if command.root else "ana.sh")
        return self.shells[command.root].type(text, command.endless, file)

    def check_alive(self) -> None:
        for popen in self.running:
            if popen.poll() is not None:
                log = TOP / f"{pathlib.Path(popen.args[0]).name}.log"  # type: ignore[index]
                print(f"{log.name}: ended with {popen.returncode}: {log.read_text(errors='replace')}", file=sys.stderr)

    def stop(self) -> None:
        for popen in reversed(self.running):
            popen.terminate()
            try:
                popen.wait(10)
            except subprocess.TimeoutExpired:
                popen.kill()


def write_file(path: str, content: str) -> None:
    """A file that a document shows; programs can be executed."""
    target = pathlib.Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(content)
    target.chmod(0o755 if content.startswith("#!") else 0o644)


def rule_for(rules: Dict[str, List[Dict[str, str]]], command: docpage.Command) -> Optional[Dict[str, str]]:
    return next((rule for rule in rules["not_here"] if re.match(rule["command"], command.text)), None)


def main() -> int:
    page = docpage.Page(ROOT / sys.argv[1])
    rules = docpage.load_rules()
    make_machine()
    machine = Machine(page.scene)
    results = []
    for kind, step in page.steps():
        if kind == "file":
            write_file(*step)  # type: ignore[misc]
            continue
        assert isinstance(step, docpage.Command)
        rule = rule_for(rules, step)
        if rule and "instead" not in rule:
            results.append({"command": step.text, "not_here": rule["why"]})
        else:
            results.append(machine.type(step, rule["instead"] if rule else None))
    machine.check_alive()
    machine.stop()
    print(json.dumps(results))
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    sys.exit(main())
