# SPDX-License-Identifier: MIT
"""NVIDIA's debugger, as a judge: asked in batch mode, its answers taken apart."""
import re

from engine import Skipped
from facts import find_debugger

# Words that stand for a value where there is none.
NOTHING = re.compile(r"<optimized out>|<unavailable>|<not saved>|<error|Cannot access memory|not available|No symbol|Error:|"
                     r"value has been optimized|was not saved|is not valid")


TOLD = 50000


class Failed(AssertionError):
    """The judge says nothing that can be used."""


def unquote(text):
    return re.sub(r"\\(.)", lambda m: {"n": "\n", "t": "\t"}.get(m.group(1), m.group(1)), text)


class Variable:
    def __init__(self, name, is_argument, value):
        self.name, self.is_argument, self.value = name, is_argument, value

    @property
    def is_known(self):
        return is_known(self.value)


def is_known(text):
    return text is not None and text != "" and not NOTHING.search(text)


def printed(answer):
    """What `print` says, without the number it gives it; None where there is no value."""
    found = re.search(r"^\$\d+ = (.*)", answer, re.M | re.S)
    return found.group(1).strip() if found and is_known(found.group(1)) else None


class CudaGdb:
    def __init__(self, b):
        self.path = find_debugger()
        if not self.path:
            raise Skipped("cuda-gdb is not installed")
        self.b = b

    def live(self, p, commands, seconds=60):
        """Attach to a program, ask, detach; one answer for each command."""
        return self._ask(["-p", str(p.pid)], [], [*commands, "detach"], seconds)[1:-1]

    def core(self, path, commands, seconds=40):
        """Open a core; the first answer is what it says of it."""
        return self._ask([], [f"target cudacore {path}"], commands, seconds)

    def _ask(self, argv, opening, commands, seconds):
        scratch = self.b.engine.directory / "cuda-gdb"
        scratch.mkdir(exist_ok=True)
        argv = [self.path, "-nx", "-q", "-batch", "-iex", "set debuginfod enabled off", "-iex", "set width 0", "-iex",
                "set height 0", *argv]
        for command in ("set cuda coalescing off", "set print elements 200", *opening):
            argv += ["-ex", command]
        for i, command in enumerate(commands):
            argv += ["-ex", f"echo \\n@@{i}\\n", "-ex", command]
        # It meets its helper in the program under TMPDIR, which must be the same in both.
        done = self.b.engine.run(*argv, seconds=seconds, codes=None, env={"HOME": str(scratch)}, cwd=scratch)
        # Tables of threads are long, and there are other things to tell.
        self.b.engine.trace("cuda-gdb " + " ; ".join(map(str, (*opening, *commands)))[:300],
                            f"{done.out[:TOLD]}\n--- stderr\n{done.err[:TOLD]}")
        answers = re.split(r"\n@@\d+\n", done.out)
        if len(answers) != len(commands) + 1 or "internal-error" in done.err:
            said = (done.err.strip() or done.out.strip() or "nothing").splitlines()[-1]
            raise Failed(f"cuda-gdb answers {len(answers) - 1} of {len(commands)} questions, exit {done.code}: {said}"[:300])
        self.ms, self.errors = done.ms, done.err
        return answers


def table(answer):
    """Rows of a machine interface table, as dictionaries."""
    return [dict(re.findall(r'(\w+)="([^"]*)"', row)) for row in re.findall(r"Row=\{([^}]*)\}", answer)]


def ask_table(question):
    return f'interpreter-exec mi2 "-cuda-info-{question}"'


ASK_VARIABLES = 'interpreter-exec mi2 "-stack-list-variables --all-values"'


def variables(answer):
    """What -stack-list-variables lists."""
    found = []
    for name, argument, value in re.findall(r'\{name="([^"]*)",(?:arg="(1)",)?value="((?:[^"\\]|\\.)*)"\}', answer):
        found.append(Variable(name, bool(argument), unquote(value)))
    if not found:
        raise Failed(f"cuda-gdb lists no variables: {answer.strip()[:200]}")
    return found


def ask_thread(block, thread):
    return f"cuda block ({block},0,0) thread ({thread},0,0)"


def normal(text):
    """A value without what is a matter of taste: the type in front of a pointer, the space, names behind it."""
    text = re.sub(r"\((?:[^()]|\([^()]*\))*\) *(?=0x)", "", text.strip())
    text = re.sub(r"(0x[0-9a-f]+) <[^>]*>", r"\1", text)
    return re.sub(r"\s+", " ", text)
