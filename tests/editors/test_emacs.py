#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Emacs with dape on gpu-agentctl dap: a session without a human, with the configuration that we hand out.

Emacs and dape are Debian's, newer than this machine's, in a tree of their own that scripts/fetch-peers makes once
(GPU_AGENT_PEERS: where). They run from there, with the tree's libraries; the adapter runs with this machine's.
"""
from editor import HERE, Editor, pause_and_leave
from dapclient import scene
from harness import Skip, main, test
from peers import fetch, linker

DAPE = "0.24.1"  # the session uses its internals


def emacs(tree):
    """Command line and environment of the Emacs in the tree, which would look for its files below /usr."""
    dape, = tree.glob("usr/share/emacs/site-lisp/elpa-src/dape-*")
    if dape.name != f"dape-{DAPE}":
        raise Skip(f"Debian has {dape.name}; the test is written for {DAPE}")
    share, = tree.glob("usr/share/emacs/[0-9]*")
    dump, = tree.glob("usr/libexec/emacs/*/*/*.pdmp")
    lisp = [share / "lisp", *(d for d in (share / "lisp").rglob("*") if d.is_dir() and d.name not in ("obsolete", "term"))]
    env = {"EMACSLOADPATH": ":".join(map(str, lisp)), "EMACSDATA": str(share / "etc"), "EMACSDOC": str(share / "etc"),
           "EMACSPATH": str(dump.parent)}
    return [*linker(tree), tree / "usr/bin/emacs-nox", "--dump-file", dump, "--batch", "-Q", "-L", dape], env


@test
def dape():
    argv, env = emacs(fetch("emacs"))
    with scene() as s:
        seen = pause_and_leave(s, Editor(s, [*argv, "-l", HERE / "emacs-session.el"], env))
    assert s.app.pid in seen["processes"], seen["processes"]
    assert seen["console"].startswith("4 waves in 1 groups"), seen["console"]
    lines = seen["instructions"].splitlines()
    assert any(line.startswith(f"{seen['pc']}:\t") and "no code" not in line for line in lines), lines
    assert f"{int(seen['pc'], 16):x}"[-8:] in seen["memory"], seen["memory"][:200]


if __name__ == "__main__":
    main(__file__)
