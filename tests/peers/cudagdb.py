# SPDX-License-Identifier: MIT
"""NVIDIA's debugger, from Debian's packages, each version in a tree of its own."""
import os
import re
import subprocess
import tempfile
from unittest import SkipTest

from peers import fetch


class Debugger:
    def __init__(self, what):
        if os.uname().machine != "x86_64":
            raise SkipTest("the debugger is fetched for x86-64 only")
        tree = fetch(what)
        loader, = (p for p in (tree / "usr/lib64", tree / "lib64") if (p / "ld-linux-x86-64.so.2").exists())
        # No data directory: 11.8's Python half takes its own None for something else when it runs in a tree.
        libraries = f"{tree}/usr/lib/x86_64-linux-gnu:{tree}/lib/x86_64-linux-gnu"
        self.argv = [loader / "ld-linux-x86-64.so.2", "--library-path", libraries, tree / "usr/bin/cuda-gdb",
                     "--data-directory=/nonexistent", "-nx", "-q", "-batch"]
        self.environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "PYTHONHOME": str(tree / "usr"),
                            "TERM": "dumb", "DEBUGINFOD_URLS": ""}

    def ask(self, core, *commands):
        """Answers to each command, after what is said when the core (a path, or what has one) is opened."""
        with tempfile.TemporaryDirectory() as scratch:
            argv = list(self.argv)
            for command in ("set width 0", "set cuda coalescing off", f"target cudacore {getattr(core, 'path', core)}"):
                argv += ["-ex", command]
            for i, command in enumerate(commands):
                argv += ["-ex", f"echo \\n@@{i}\\n", "-ex", command]
            run = subprocess.run([str(a) for a in argv], text=True, errors="replace", capture_output=True, timeout=120, cwd=scratch,
                                 stdin=subprocess.DEVNULL, env={**self.environment, "TMPDIR": scratch, "HOME": scratch})
        answers = re.split(r"\n@@\d+\n", run.stdout)
        assert len(answers) == len(commands) + 1 and run.returncode == 0, (run.returncode, run.stdout, run.stderr)
        assert "internal-error" not in run.stderr, run.stderr
        return answers

    def table(self, core, *questions):
        """Rows of each machine interface table, as dictionaries."""
        answers = self.ask(core, *(f'interpreter-exec mi2 "-cuda-info-{q}"' for q in questions))[1:]
        return [[dict(re.findall(r'(\w+)="([^"]*)"', row)) for row in re.findall(r"Row=\{([^}]*)\}", a)]
                for a in answers]
