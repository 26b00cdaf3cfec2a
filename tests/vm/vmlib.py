# SPDX-License-Identifier: MIT
"""A program on the real /dev/kfd, and the real daemon; for tests in the guest."""
import os
import pathlib
import select
import shutil
import signal
import subprocess
import tempfile
from unittest import SkipTest

from harness import BIN, PATIENCE, Process, Rpc, agent_children, status, wait_until

USER, OTHER = 12345, 12346  # no names needed: nothing looks them up
SIDE = os.environ.get("VM_SIDE", "")
TARGET = pathlib.Path(os.environ.get("VM_TARGET", BIN.parent / "tests/vm-target"))
WCHAN = "kfd_ioctl_runtime_enable"


def need_kfd():
    if not os.path.exists("/dev/kfd"):
        raise SkipTest("no /dev/kfd")


class Target:
    """tests/vm/target.c, or a program like it; words go in, results come out."""

    def __init__(self, *words, user=USER, program=(str(TARGET),)):
        kwargs = {"user": user, "group": user, "extra_groups": []} if user is not None else {}
        self.popen = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                      bufsize=1, **kwargs)
        self.pid = self.popen.pid
        self.r_debug = int(self.read("ready"), 16)
        for word in words:
            assert self.ask(word) == 0, word

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.popen.kill()
        self.popen.wait()
        self.popen.stdin.close()
        self.popen.stdout.close()

    def say(self, word):
        self.popen.stdin.write(word + "\n")
        self.popen.stdin.flush()

    def read(self, word):
        """The result of that word; the guest's own limit ends a wait that never does."""
        if not select.select([self.popen.stdout], [], [], PATIENCE)[0]:
            raise AssertionError(f"target did not answer {word}: {self.where()}")
        line = self.popen.stdout.readline().split()
        assert line and line[0] == word, f"target said {line}, not {word}; exit {self.popen.poll()}"
        return line[1]

    def ask(self, word):
        self.say(word)
        return int(self.read(word))

    def where(self):
        """Wait channel of the main thread."""
        return pathlib.Path(f"/proc/{self.pid}/wchan").read_text(encoding="ascii")

    def say_and_block(self, word):
        self.say(word)
        wait_until(lambda: self.where() == WCHAN, f"target blocks in {word}")

    def free(self):
        """Nobody traces it, and it answers."""
        wait_until(lambda: status(self.pid).get("TracerPid") == "0", "ptrace dropped")
        return self.ask("pid") == self.pid


class Agent:
    """gpu-agentd on the real device, as root or as a user's own."""

    def __init__(self, user=None):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="gpu-agent-vm."))
        os.chmod(self.directory, 0o755)
        self.socket = self.directory / "agentd.sock"
        config = self.directory / "agentd.conf"
        config.write_text("[agent]\nuser = nobody\nsocket_group =\n", encoding="ascii")
        self.clients = []
        argv = [BIN / "gpu-agentd", "--socket", self.socket, "--config", config]
        kwargs = {}
        if user is not None:
            os.chown(self.directory, user, user)
            argv.append("--user")
            kwargs = {"user": user, "group": user, "extra_groups": []}
        self.process = Process("agentd", argv, self.directory, **kwargs)
        self.pid = self.process.pid
        self.process.wait_line("err")
        os.chmod(self.socket, 0o666)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        for client in self.clients:
            client.close()
        self.process.stop()
        text = self.process.err()
        if kind:
            print("".join(f"  | {line}\n" for line in text.splitlines()[-30:]), end="")
        shutil.rmtree(self.directory, ignore_errors=True)
        if not kind and ("Sanitizer" in text or "runtime error:" in text):
            raise AssertionError(text)

    def connect(self):
        client = Rpc(self.socket)
        self.clients.append(client)
        return client

    def ctl(self, *argv, user=None):
        kwargs = {"user": user, "group": user, "extra_groups": []} if user is not None else {}
        return subprocess.run([str(BIN / "gpu-agentctl"), "--socket", str(self.socket), *map(str, argv)], text=True,
                              capture_output=True, timeout=3 * PATIENCE, stdin=subprocess.DEVNULL, check=False, **kwargs)

    def worker(self):
        return next(p for p in agent_children(self.pid) if status(p).get("Name") == "gpu-agent-worke")

    def front(self):
        return next(p for p in agent_children(self.pid) if status(p).get("Name") == "gpu-agent-front")


def stop(pid):
    """SIGSTOP, and wait until it has stopped."""
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: status(pid).get("State", "T")[0] in "Tt", "process stopped")
