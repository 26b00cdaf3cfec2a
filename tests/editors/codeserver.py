# SPDX-License-Identifier: MIT
"""VS Code itself, in a browser, with our extension: code-server and playwright-core from npm, the browser from Debian."""
import contextlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import time
from unittest import SkipTest
import urllib.request

import npm
from dapschema import Conversation
from editor import extension, source
from harness import BIN, ROOT, wait_until

HERE = pathlib.Path(__file__).resolve().parent
PARTS = HERE / "vscode"
PICTURES = ROOT / "build/editors"
DRIVE_SECONDS = 280
SETTINGS = {
    "security.workspace.trust.enabled": False, "workbench.startupEditor": "none", "telemetry.telemetryLevel": "off",
    "update.mode": "none", "extensions.autoUpdate": False, "extensions.autoCheckUpdates": False,
    "extensions.ignoreRecommendations": True, "workbench.enableExperiments": False, "git.enabled": False,
    "workbench.layoutControl.enabled": False, "window.commandCenter": False, "editor.minimap.enabled": False,
    "terminal.integrated.gpuAcceleration": "off",
}


# -- programs --------------------------------------------------------------------------------------

def install_code_server(place):
    """Without the scripts that download; what it needs at run time is built after."""
    node = pathlib.Path(shutil.which("node")).resolve()
    env = dict(os.environ)
    if (node.parent.parent / "include/node/node.h").exists():
        env.setdefault("npm_config_nodedir", str(node.parent.parent))
    npm.run_npm(["install", "--ignore-scripts"], place)
    npm.run_npm(["rebuild", "argon2"], place, env=env)
    code = place / "node_modules/code-server/lib/vscode"
    npm.run_npm(["install", "--omit=dev", "--ignore-scripts"], code)
    npm.run_npm(["rebuild", "@vscode/spdlog", "@parcel/watcher", "native-watchdog"], code, env=env)
    # It loads where its own script fails after.
    with contextlib.suppress(SkipTest):
        npm.run_npm(["rebuild", "node-pty"], code, env=env)
    (code / "node_modules.asar").symlink_to("node_modules")


def programs():
    """(chromium, node_modules with code-server); SkipTest where they cannot be had."""
    chromium = shutil.which("chromium")
    if not chromium:
        raise SkipTest("chromium is not installed: scripts/install-deps editors")
    npm.need("node", "npm", "g++", "make")
    version = subprocess.run(["node", "--version"], text=True, capture_output=True, check=True).stdout.strip()
    # Another one from npm would not do: Debian's npm links what it builds with Debian's libnode.
    if not version.startswith("v20."):
        raise SkipTest(f"code-server 4.100.3 needs Node.js 20, here is {version}")
    return chromium, npm.install(PARTS, install_code_server)


# -- what is debugged ------------------------------------------------------------------------------

def run_alone(script):
    """A part of the extension without an editor; what the script prints."""
    unpacked = extension("vscode").parent / "extension"
    run = subprocess.run(["node", PARTS / script, unpacked], text=True, capture_output=True, timeout=60, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def workspace(directory):
    """A source, and a program that is made of it next to it."""
    place = source(directory)
    (place / ".vscode").mkdir()
    return place


def write_launch(place, configurations):
    """How to debug it."""
    (place / ".vscode/launch.json").write_text(json.dumps({"version": "0.2.0", "configurations": configurations}))


# -- the editor ------------------------------------------------------------------------------------

class Editor:
    """code-server with the extension; .sessions() is what it and adapters said."""

    def __init__(self, s, modules, vsix, **settings):
        self.trace_file = s.directory / "trace"
        data, extensions = s.directory / "data", s.directory / "extensions"
        # Those of a machine are read where the agent is, which for the editor is another place than the window.
        for scope in ("User", "Machine"):
            (data / scope).mkdir(parents=True)
            (data / scope / "settings.json").write_text(json.dumps({**SETTINGS, **settings}))
        config = s.directory / "code-server.yaml"
        config.write_text("auth: none\n")
        self.base = ["node", modules / "code-server/out/node/entry.js", "--config", config, "--user-data-dir", data,
                     "--extensions-dir", extensions]
        self.env = {"HOME": str(s.directory), "XDG_DATA_HOME": str(s.directory), "XDG_RUNTIME_DIR": str(s.directory),
                    "EXTENSIONS_GALLERY": '{"serviceUrl":"http://127.0.0.1:9"}', "GPU_AGENT_CTL": str(BIN / "gpu-agentctl"),
                    "GPU_AGENT_SOCKET": str(s.socket), "GPU_AGENT_DAP_TRACE": str(self.trace_file)}
        run = subprocess.run([*self.base, "--install-extension", vsix], env={**os.environ, **self.env}, text=True,
                             capture_output=True, timeout=120, stdin=subprocess.DEVNULL)
        assert run.returncode == 0 and "successfully installed" in run.stdout, run.stdout + run.stderr

    def start(self, s, place):
        """The address of the workspace."""
        for _ in range(3):
            if url := self.serve(s, place):
                return url
        raise AssertionError("code-server gives up each time")

    def serve(self, s, place):
        """The same, or None where code-server has given up on its own child, which it does after ten seconds."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        server = s.start("code-server", [
            *self.base, "--bind-addr", f"127.0.0.1:{port}", "--auth", "none", "--disable-telemetry",
            "--disable-update-check", "--disable-workspace-trust", "--disable-getting-started-override",
            "--disable-proxy", place], env=self.env)

        def answers():
            if server.popen.poll() is not None:
                said = server.out() + server.err()
                assert "timed out" in said, said
                return True
            with contextlib.suppress(OSError):
                return urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5).status == 200

        wait_until(answers, "code-server answers", 60)
        return f"http://127.0.0.1:{port}/?folder={place}" if server.popen.poll() is None else None

    def sessions(self):
        """The Wire of each, in order."""
        sessions = {}
        for line in self.trace_file.read_text().splitlines():
            message = json.loads(line)
            sessions.setdefault(message["session"], []).append(message)
        wires = [Wire(lines) for lines in sessions.values()]
        for wire in wires:
            wire.check()
        return wires


class Wire:
    """The messages of one session."""

    def __init__(self, lines):
        self.messages = [line["message"] for line in lines if "message" in line]
        self.exits = [line["exit"] for line in lines if "exit" in line]

    def check(self):
        """All of them are as the protocol has it."""
        conversation = Conversation()
        for message in self.messages:
            (conversation.from_editor if message["type"] == "request" else conversation.from_adapter)(message)

    def requests(self, command):
        return [m for m in self.messages if m["type"] == "request" and m["command"] == command]

    def answers(self, command):
        return [m for m in self.messages if m["type"] == "response" and m["command"] == command]

    def events(self, name):
        return [m.get("body") for m in self.messages if m["type"] == "event" and m["event"] == name]

    def answer(self, command, **arguments):
        """Body of the answer to the first request with these arguments."""
        seq = next(m["seq"] for m in self.requests(command) if arguments.items() <= m["arguments"].items())
        return next(m["body"] for m in self.answers(command) if m["request_seq"] == seq)


def drive(story, s, chromium, modules, url, **meetings):
    """What one person does; the texts that were on the screen.

    meetings  by the word that the driver says, what happens before it goes on
    """
    PICTURES.mkdir(parents=True, exist_ok=True)
    env = {**os.environ, "HOME": str(s.directory), "NODE_PATH": str(modules), "CHROMIUM": chromium}
    driver = s.start("drive", ["node", PARTS / "drive.js", story, url, s.app.pid, "spin.cl", s.socket, PICTURES], env=env)
    begun, met = time.monotonic(), 0
    while driver.popen.poll() is None:
        assert time.monotonic() - begun < DRIVE_SECONDS, f"not done in {DRIVE_SECONDS} s: {driver.err()}"
        for word in driver.out().split("\n")[met:-1]:
            meetings[word]()
            driver.popen.stdin.write(b"\n")
            driver.popen.stdin.flush()
            met += 1
        time.sleep(0.05)
    assert driver.popen.returncode == 0, driver.err()
    print("".join(f"  {line}\n" for line in driver.err().splitlines()), end="")
    return json.loads((PICTURES / f"seen-{story}.json").read_text())


def has_row(rows, *parts):
    """Some row has all these texts."""
    return any(all(part in row for part in parts) for row in rows)
