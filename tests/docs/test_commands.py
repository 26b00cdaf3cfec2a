#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every command line of the documents is run on a simulated GPU, and prints what the document shows.

What cannot be run here is in docs/commands.json, with the reason and who runs it instead.  Process ids, host and users are those
of the document (docscene.py); addresses, times and numbers that move are masked before output is compared.
"""
import json
import os
import re
import subprocess
import sys
from unittest import SkipTest

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest

import docpage
from docpage import ROOT, masked
from harness import BIN

PAGES = {page.name: page for page in docpage.pages()}
WITH_COMMANDS = [name for name, page in PAGES.items() if page.commands()]


def typed(page):
    """What docscene.py says of the page's command lines."""
    if os.geteuid():
        raise SkipTest("namespaces need root")
    if not os.path.exists("/dev/fuse"):
        raise SkipTest("the simulated GPU needs /dev/fuse")
    # A host that forbids namespaces skips; one that has them must run the page.
    probe = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", "--uts", "true"], capture_output=True, text=True)
    if probe.returncode:
        raise SkipTest(f"unshare: {probe.stderr.strip()}")
    done = subprocess.run(["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--uts", "--", "python3",
                           ROOT / "tests/docs/docscene.py", page.name], capture_output=True, text=True, timeout=400,
                          env={**os.environ, "BIN": str(BIN)})
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


@pytest.mark.parametrize("name", WITH_COMMANDS)
def test_commands_run_and_print_what_is_shown(name):
    page = PAGES[name]
    results, log = typed(page)
    wrong = []
    for command, result in zip(page.commands(), results):
        if "not_here" in result:
            continue
        said = result["output"].split("\n")
        # A manual page has no room to say that a verdict is an exit status, too, and so are frames that were not found.
        verdict = page.is_manual and (result["status"] == 10 and re.search(r" --again | diff | late-at-barrier why ", command.text) or
                                      result["status"] == 8 and re.search(r" stacks | --host", command.text))
        if result["status"] != command.status and not verdict:
            wrong.append(f"{name}:{command.first + 1}: {command.text}\n  exit status {result['status']}, not {command.status}\n"
                         + result["output"])
        elif command.output and masked(said) != masked(command.output):
            wrong.append(f"{name}:{command.first + 1}: {command.text}\n  prints\n{result['output']}\n  masked: {masked(said)}\n"
                         f"  shown:  {masked(command.output)}\n  scripts/make-docs-output writes the document anew")
    assert not wrong, "\n".join([*wrong, log])


def test_every_command_line_stands_in_a_terminal():
    stray = [line for page in PAGES.values() for line in page.stray_commands()]
    assert not stray, "write them as ```console blocks, with `$ ` in front:\n" + "\n".join(stray)


def test_what_is_not_run_here_has_a_reason():
    rules = docpage.load_rules()["not_here"]
    texts = [command.text for page in PAGES.values() for command in page.commands()]
    for rule in rules:
        assert rule["why"] and rule["run_by"], rule
        assert any(re.match(rule["command"], text) for text in texts), f"no document has {rule['command']}"


def help_of(*argv):
    return subprocess.run([BIN / "gpu-agentctl", *argv, "--help"], capture_output=True, text=True, check=True).stdout


def test_verbs_and_options_in_running_text_exist():
    verbs = set(re.findall(r"^  ([a-z]+)", help_of(), re.M))
    known = {}
    wrong = []
    for page in PAGES.values():
        for words in re.findall(r"`gpu-agentctl ([a-z]+\b[^`]*)`", page.source):
            verb = words.split()[0]
            if verb not in verbs:
                wrong.append(f"{page.name}: no verb {verb}")
                continue
            known[verb] = known.get(verb) or help_of(verb) + help_of()
            wrong += [f"{page.name}: {verb} has no {option}" for option in re.findall(r"(?<!\S)--[a-z][\w-]*", words)
                      if not re.search(rf"{option}\b", known[verb])]
    assert not wrong, "\n".join(wrong)
