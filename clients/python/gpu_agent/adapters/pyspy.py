# SPDX-License-Identifier: MIT
"""A program called py-spy, for those that run `py-spy dump --pid PID` by themselves: it prints what gpu-agentctl stacks does.

    python -m gpu_agent.adapters.pyspy install DIRECTORY     # a directory in front of PATH

SGLang's watchdog is one of them.  The true py-spy stops the process for longer, and is not replaced unless you do this.
"""
from __future__ import annotations

import os
import sys
from typing import List, Optional


def pid_of(words: List[str]) -> Optional[str]:
    """The process of `dump [OPTIONS] --pid PID`, or of -p."""
    for word, behind in zip(words, [*words[1:], ""]):
        name, _, value = word.partition("=")
        if name in ("--pid", "-p"):
            return value or behind
    return None


def install(directory: str) -> str:
    """@return the program, which replaces nothing."""
    path = os.path.join(directory, "py-spy")
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o755)
    with os.fdopen(fd, "w") as file:
        file.write(f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {os.path.dirname(os.path.dirname(os.path.dirname(__file__)))!r})\n"
                   "from gpu_agent.adapters.pyspy import main\nsys.exit(main(sys.argv[1:]))\n")
    return path


def main(words: List[str]) -> int:
    if len(words) == 2 and words[0] == "install":
        print(install(words[1]))
        return 0
    pid = pid_of(words) if words[:1] == ["dump"] else None
    if not pid or not pid.isdigit():
        print("usage: py-spy dump [OPTIONS] --pid PID; this is gpu-agent's, and does nothing else", file=sys.stderr)
        return 2
    os.execvp("gpu-agentctl", ["gpu-agentctl", "stacks", pid, "--no-pager", "--color=never"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
