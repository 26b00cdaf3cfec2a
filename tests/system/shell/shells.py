# SPDX-License-Identifier: MIT
"""bash, zsh and fish as somebody at a terminal has them, asked what they would offer.

    with Bash(script, env) as shell:
        assert shell.offers(["gpu-agentctl snap"]) == [{"snapshot"}]
"""
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time
from unittest import SkipTest

PATIENCE = 60


def current(line):
    """The argument that is being typed."""
    return line.rpartition(" ")[2]


class Terminal:
    """An interactive program on a terminal of its own."""

    def __init__(self, argv, env):
        if not shutil.which(argv[0]):
            raise SkipTest(f"{argv[0]} is not installed")
        self.seen = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvpe(argv[0], argv, env)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.fd)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)

    def send(self, text):
        os.write(self.fd, text.encode())

    def until(self, pattern):
        end = time.monotonic() + PATIENCE
        while not (match := re.search(pattern, self.seen, re.S)):
            assert time.monotonic() < end, f"the shell said only {self.seen!r}"
            if select.select([self.fd], [], [], 1)[0]:
                self.seen += os.read(self.fd, 65536)
        self.seen = self.seen[match.end():]
        return match

    def offers(self, lines):
        return [self.offer(line) for line in lines]


class Bash(Terminal):
    """readline inserts everything that could stand at the cursor (M-*), and the line is printed."""

    SETUP = (r"""PS1='READY''>'; bind 'set enable-bracketed-paste off'; bind 'set completion-query-items 0'; """
             r"""show() { printf '\1%s\2' "$READLINE_LINE"; }; bind -x '"\C-x\C-p":show'; source """)

    def __init__(self, script, env):
        super().__init__(["bash", "--norc", "--noprofile", "-i"], env)
        self.send(f"{self.SETUP} {script}\n")
        self.until(b"READY>")

    def offer(self, line):
        self.send(line + "\x1b*\x18\x10\x15")
        after = self.until(b"\1(.*?)\2")[1].decode()
        if after == line:
            return set()
        typed = current(line)
        front = typed[:typed.rfind("=") + 1]
        words = re.split(r"(?<!\\) ", after[len(line) - len(typed):].strip())
        # Behind a "=" bash offers the rest, and the first of them got what stood there.
        return {word if word.startswith(front) else front + word for word in words}


class Zsh(Terminal):
    """The completion system adds its matches with compadd, which tells them here as well."""

    SETUP = r"""
fpath=(%s $fpath)
autoload -Uz compinit; compinit -u -D
compadd() {
    local -a hits
    if [[ -n ${(M)@[1,${@[(i)(-|--)]}]:#-(O|A|D)*} ]]; then builtin compadd "$@"; return; fi
    builtin compadd -O hits "$@"
    (($#hits)) && printf '%%s\n' "$hits[@]"
    builtin compadd "$@"
}
capture() { printf '\1'; _main_complete; printf '\2'; compstate[insert]=; compstate[list]=; }
zle -C capture complete-word capture
bindkey '^X^P' capture
bindkey '^U' kill-whole-line
unset zle_bracketed_paste; unsetopt prompt_sp
PROMPT='READY>'
"""

    def __init__(self, script, env):
        self.directory = tempfile.TemporaryDirectory(prefix="gpu-agent-zsh.")
        directory = pathlib.Path(self.directory.name)
        shutil.copy(script, directory / "_gpu-agentctl")
        (directory / "setup").write_text(self.SETUP % directory)
        super().__init__(["zsh", "-f", "-i"], env)
        self.send(f"source {directory}/setup\n")
        self.until(b"READY>")

    def __exit__(self, *_):
        super().__exit__()
        self.directory.cleanup()

    def offer(self, line):
        self.send(line + "\x18\x10\x15")
        return set(self.until(b"\1(.*?)\2")[1].decode().split())


class Fish:
    """fish says itself what it would offer (complete -C)."""

    def __init__(self, script, env):
        if not shutil.which("fish"):
            raise SkipTest("fish is not installed")
        self.script, self.env = script, env

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def described(self, lines):
        """For each line {value: description}."""
        program = f"source {self.script}; for line in $argv; complete -C $line; printf '\\1\\n'; end"
        run = subprocess.run(["fish", "--no-config", "-c", program, *lines], env=self.env, capture_output=True,
                             text=True, timeout=600)
        assert run.returncode == 0 and not run.stderr, run
        blocks = run.stdout.split("\1\n")
        assert len(blocks) == len(lines) + 1 and not blocks[-1], run.stdout
        return [dict((one + "\t").split("\t")[:2] for one in block.splitlines()) for block in blocks[:-1]]

    def offers(self, lines):
        return [set(offered) for offered in self.described(lines)]
