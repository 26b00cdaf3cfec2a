# SPDX-License-Identifier: MIT
"""An editor in a terminal, and a picture of it."""
import contextlib
import fcntl
import json
import os
import pathlib
import pty
import select
import shutil
import signal
import struct
import subprocess
import termios
import time
from unittest import SkipTest

import npm
from editor import HERE, SECONDS
from harness import BIN, PATIENCE, ROOT

PICTURES = ROOT / "build/editors"
COLUMNS, ROWS = 132, 44
QUIET_S = 0.7  # nothing more is drawn


def drawing():
    """What draws, or SkipTest: before an editor is started."""
    chromium = shutil.which("chromium")
    if not chromium:
        raise SkipTest("chromium is not installed: scripts/install-deps editors")
    return chromium, npm.install(HERE / "terminal", lambda place: npm.run_npm(["install", "--ignore-scripts"], place))


def environment(s):
    """What the script of an editor finds: whom to attach to, and the file READY that it makes when all is shown."""
    return {"TERM": "xterm-256color", "LANG": "C.UTF-8", "HOME": str(s.directory), "ADAPTER": str(BIN / "gpu-agentctl"),
            "PID": str(s.app.pid), "GPU_AGENT_SOCKET": str(s.socket), "READY": str(s.directory / "ready")}


@contextlib.contextmanager
def screen(s, argv, env):
    """An editor on a terminal of its own; its descriptor."""
    child, fd = pty.fork()
    if child == 0:
        try:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
            os.execve(argv[0], [str(a) for a in argv], {**os.environ, **env, **environment(s)})
        finally:
            os._exit(127)
    try:
        yield fd
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.close(fd)
        os.waitpid(child, 0)


def drawn(fd, ready):
    """All that the editor wrote until it has made the file and is quiet."""
    data, deadline = b"", time.monotonic() + SECONDS
    while True:
        if select.select([fd], [], [], QUIET_S)[0]:
            try:
                data += os.read(fd, 1 << 16)
            except OSError:  # as a terminal says that nobody is there any more
                raise AssertionError(f"the editor has ended: {data[-2000:]}") from None
        elif ready.exists():
            return data
        assert time.monotonic() < deadline, data[-2000:]


def picture(s, argv, env, name):
    """Draw the editor once its script has made the file; the lines on its screen."""
    chromium, modules = drawing()
    written = s.directory / "written"
    with screen(s, argv, env) as fd:
        written.write_bytes(drawn(fd, pathlib.Path(environment(s)["READY"])))
    PICTURES.mkdir(parents=True, exist_ok=True)
    run = subprocess.run(["node", HERE / "terminal/draw.js", written, str(COLUMNS), str(ROWS), PICTURES / f"{name}.png"],
                         env={**os.environ, "NODE_PATH": str(modules), "CHROMIUM": chromium, "HOME": str(s.directory)}, text=True,
                         capture_output=True, timeout=PATIENCE * 3, stdin=subprocess.DEVNULL)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)
