#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the documentation has other editors say to the adapter: each of its examples attaches."""
import json
import os
import re
import sys
import tomllib
from xml.etree import ElementTree

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from dapclient import Adapter, runs_on, scene
from harness import ROOT


def examples(language):
    text = (ROOT / "docs/EDITORS.md").read_text().partition("\n## Other editors\n")[2].partition("\n## ")[0]
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def filled(arguments, number):
    """With what the editor, or a person, puts in the place of 4711."""
    return json.loads(re.sub(r"4711|\$Pid\$|\{0\}", str(number), json.dumps(arguments)))


def attach(s, arguments):
    with Adapter(s.socket) as a:
        a.start(**filled(arguments, s.app.pid))
        assert len(a.call("threads")["threads"]) == 1
        # Some end a session so; the process is not theirs.
        a.call("disconnect", terminateDebuggee=True)
        a.popen.stdin.close()
        assert a.popen.wait(20) == 0
    runs_on(s)


def test_clion_and_intellij():
    with scene() as s:
        clion, intellij = map(json.loads, examples("json"))
        attach(s, clion)
        # The default is a request that there is not.
        assert intellij["request"] == "attach", intellij
        attach(s, intellij)
        assert s.app.popen.poll() is None


def test_eclipse():
    """It makes numbers of JSON floating, and adds an argument of its own."""
    text, = examples("xml")
    root = ElementTree.fromstring(text)
    values = {e.get("key").rpartition(".")[2]: e.get("value") or [x.get("value") for x in e] for e in root}
    assert root.get("type") == "org.eclipse.lsp4e.debug.launchType" and values["ATTR_DSP_MODE"] == "launch server", values
    assert values["ATTR_DSP_CMD"].endswith("/gpu-agentctl") and values["ATTR_DSP_ARGS"] == ["dap"], values
    arguments = json.loads(values["ATTR_DSP_PARAM"], parse_int=float)
    assert arguments["request"] == "attach", arguments
    with scene() as s:
        attach(s, {**arguments, "noDebug": False})


def test_helix():
    text, = examples("toml")
    language, = tomllib.loads(text)["language"]
    debugger = language["debugger"]
    assert (debugger["transport"], debugger["command"], debugger["args"]) == ("stdio", "gpu-agentctl", ["dap"]), debugger
    process, core = debugger["templates"]
    assert process["request"] == core["request"] == "attach" and list(core["args"]) == ["coreFile"], debugger
    with scene() as s:
        attach(s, process["args"])
        file = s.directory / "core"
        assert s.ctl("dump", s.app.pid, "--max-stop", "60s", "-o", file).returncode == 0
        with Adapter(s.socket) as a:
            a.start(**filled(core["args"], file))
            assert a.event("stopped")
            assert a.finish() == 0
