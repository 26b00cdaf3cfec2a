#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Emacs with dape on gpu-agentctl dap: a session without a human, with the configuration that we hand out.

Emacs and dape are Debian's, newer than this machine's, in a tree of their own that scripts/fetch-peers makes once
(GPU_AGENT_PEERS: where). They run from there, with the tree's libraries; the adapter runs with this machine's.
"""
import json
import os
import subprocess
import sys
import tempfile
from unittest import SkipTest

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from editor import HERE, Editor, dump, pause_and_leave, script, source
from dapclient import runs_on, scene
from harness import ROOT, Scene
from peers import fetch, linker
from terminal import drawing, picture

DAPE = "0.24.1"  # the session uses its internals


def emacs(tree):
    """Command line and environment of the Emacs in the tree, which would look for its files below /usr."""
    dape, = tree.glob("usr/share/emacs/site-lisp/elpa-src/dape-*")
    if dape.name != f"dape-{DAPE}":
        raise SkipTest(f"Debian has {dape.name}; the test is written for {DAPE}")
    share, = tree.glob("usr/share/emacs/[0-9]*")
    dump, = tree.glob("usr/libexec/emacs/*/*/*.pdmp")
    lisp = [share / "lisp", *(d for d in (share / "lisp").rglob("*") if d.is_dir() and d.name not in ("obsolete", "term"))]
    env = {"EMACSLOADPATH": ":".join(map(str, lisp)), "EMACSDATA": str(share / "etc"), "EMACSDOC": str(share / "etc"),
           "EMACSPATH": str(dump.parent)}
    return [*linker(tree), tree / "usr/bin/emacs-nox", "--dump-file", dump, "-Q", "-L", dape], env


def test_dape():
    argv, env = emacs(fetch("emacs"))
    with scene() as s:
        env["CORE"] = str(dump(s))
        seen = pause_and_leave(s, Editor(s, [*argv, "--batch", "-l", HERE / "emacs-session.el"], env))
    assert s.app.pid in seen["processes"], seen["processes"]
    assert seen["core"] == "spin", seen["core"]
    cannot, absent = seen["refusals"]
    assert cannot == "Process 7 cannot be debugged: somebody traces it; gpu-agentctl doctor 7 says what to do", cannot
    assert absent == "no agent listens", absent
    assert seen["filters"] == 0, "exceptions still stop the GPU"
    assert seen["control"] == "gpu-agent: this session has control", seen["control"]
    kinds = [line.split()[0] for line in seen["groups"].splitlines()]
    assert "device" in kinds and kinds.count("queue") == 2 and kinds[-1] == "group", seen["groups"]
    assert seen["chosen"]["lane"] == "7" and seen["lane"].startswith("7 active"), seen["chosen"]
    assert seen["wave"].split()[0] in str(seen["chosen"]), (seen["wave"], seen["chosen"])
    assert seen["console"].startswith("4 waves in 1 groups"), seen["console"]
    lines = seen["instructions"].splitlines()
    assert any(line.startswith(f"{seen['pc']}:\t") and "no code" not in line for line in lines), lines
    assert f"{int(seen['pc'], 16):x}"[-8:] in seen["memory"], seen["memory"][:200]


def test_the_package_is_as_melpa_asks():
    """What package-lint, checkdoc and the compiler say, and what there is once it is installed as a package."""
    tree = fetch("emacs")
    argv, env = emacs(tree)
    lint, = fetch("package-lint").glob("usr/share/emacs/site-lisp/elpa-src/package-lint-*")
    with tempfile.TemporaryDirectory() as home:
        env.update(HOME=home, PACKAGE=str(ROOT / "editors/emacs/gpu-agent.el"),
                   PACKAGES=str(tree / "usr/share/emacs/site-lisp/elpa-src"))
        run = subprocess.run([*argv, "-L", lint, "--batch", "-l", HERE / "emacs-package.el"], env={**os.environ, **env},
                             text=True, capture_output=True, timeout=100, stdin=subprocess.DEVNULL, check=False)
    assert run.returncode == 0, (run.stdout[-1000:], run.stderr[-2000:])
    seen = json.loads(run.stdout.splitlines()[-1])
    # The project has no page yet, and no archive of packages is asked.
    known = {"Package should have a Homepage or URL header.", "Package dape is not installable."}
    assert set(seen["lint"]) == known, seen["lint"]
    assert seen["doc"] == [] and "gpu-agent.el:" not in seen["compiled"], seen
    assert seen["autoloads"] == [True] * 5 and seen["configured"] is True, seen


def test_dape_on_a_terminal():
    """What a person sees when a kernel has faulted; the picture in docs/ is of such a run."""
    drawing()
    argv, env = emacs(fetch("emacs"))
    with Scene(app=None, gpus="gfx90a") as s:
        env["SOURCE"] = str(source(s.directory) / "spin.cl")
        s.app = s.start_app(script(s.directory))
        lines = picture(s, [*argv, "-nw", "-l", HERE / "emacs-picture.el"], env, "emacs")
        runs_on(s)
    for text in ("=>              s = s * x + i;", "reasons memory_violation", "=>inner of spin.cl:8", "2 middle of spin.cl:14",
                 "8 waves in 2 groups"):
        assert any(text in line for line in lines), (text, lines)
