# SPDX-License-Identifier: MIT
"""A report of all processes of a job, as `gpu-agentctl job` makes it."""
from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
from typing import Any, Dict, List, Optional, Tuple

__all__ = ["job_report"]

DEADLINE_S = 10.0
#: Seconds that gpu-agentctl has beyond its own deadline.
_GRACE_S = 5.0
#: Seconds that it has to end when it was killed.
_KILLED_S = 0.5
_SIZES = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")
#: A document was printed: all was seen, a time was used up, something is missing.
_DOCUMENT = (0, 7, 8)


def first_set(names: Tuple[str, ...]) -> Optional[str]:
    """The value of the first of these variables of the environment that has one."""
    return next((os.environ[name] for name in names if os.environ.get(name)), None)


def absolute(path: str) -> str:
    """Where the directory was removed, a path stays as it is, and whoever uses it says what is wrong with it."""
    try:
        return os.path.abspath(path)
    except OSError:
        return path


def whom_to_ask(job: str) -> List[str]:
    """Options of `gpu-agentctl job`."""
    slurm = os.environ.get("SLURM_JOB_ID", "")
    if job == "auto" and slurm.isdigit() and os.environ.get("SLURM_STEP_ID") and shutil.which("srun"):
        job = "slurm"
    elif job == "auto":
        size = first_set(_SIZES) or "1"
        job = "node" if size.isdigit() and int(size) > 1 else "this"
    if job == "slurm" and slurm.isdigit():
        return ["--slurm", slurm]
    if job.startswith("hosts:"):
        return ["--hosts", absolute(job[len("hosts:"):])]
    known = {"this": ["--pids", str(os.getpid())], "node": ["--all"]}
    if job not in known:
        raise ValueError(f"job: {job!r} is not auto, this, node, hosts:FILE, or slurm within a job of Slurm")
    return known[job]


def job_report(path: Optional[str] = None, *, job: str = "auto", deadline: float = DEADLINE_S,
               socket: Optional[str] = None) -> Dict[str, Any]:
    """Look at all processes of this job now, with gpu-agentctl, and write a page of HTML.

    path      of the page; None: no page
    job       as start() of gpu_agent.watchdog has it: "auto", "this", "node", "slurm" or "hosts:FILE"
    deadline  seconds; what has not answered by then is in `missing`
    socket    of the agent; default: GPU_AGENT_SOCKET, or as gpu-agentctl finds it

    @return the merged document, as gpu-agentctl job -j prints it.  Raises OSError, with what gpu-agentctl says, where nothing
    could be seen or the page could not be written, and ValueError for what it cannot understand.
    """
    if not 0.1 <= deadline <= 600:
        raise ValueError(f"deadline: {deadline} is not between 0.1 and 600 seconds")
    words = ["gpu-agentctl", "job", *whom_to_ask(job), "-j", f"--deadline={int(deadline * 1000)}ms"]
    words += ["--report", path] if path is not None else []
    words += ["--socket", socket] if socket is not None else []
    # In a session of its own: what a launcher sends to its group would end the report.
    child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    try:
        out, err = child.communicate(timeout=deadline + _GRACE_S)
    except subprocess.TimeoutExpired:
        raise OSError(f"gpu-agentctl job did not end within {deadline + _GRACE_S:g} s") from None
    finally:
        _end(child)
    found = _document(out) if child.returncode in _DOCUMENT else None
    if found is None:
        raise OSError(err.decode(errors="replace").strip() or f"gpu-agentctl job: exit status {child.returncode}")
    return found


def _end(child: subprocess.Popen[bytes]) -> None:
    # Its children end with it.
    child.kill()
    # Nobody waits for one that the kernel holds.
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(_KILLED_S)
    for stream in (child.stdout, child.stderr):
        if stream:
            stream.close()


def _document(out: bytes) -> Optional[Dict[str, Any]]:
    """Where a program ignores SIGCHLD, nobody knows the exit status, and an error is a document as well."""
    try:
        found = json.loads(out)
    except ValueError:
        return None
    return found if isinstance(found, dict) and "schema" in found and "ranks" in found else None
