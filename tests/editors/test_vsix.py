#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The packed extension for VS Code: what a marketplace and a person find in it."""
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile
from xml.etree import ElementTree

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import npm
from editor import extension
from harness import ROOT

HERE = pathlib.Path(__file__).resolve().parent
NAMESPACE = "{http://schemas.microsoft.com/developer/vsx-schema/2011}"


def elements(text):
    """Everything that a manifest says, without the order in which it says it."""
    def say(element):
        words = (element.text or "").strip()
        if element.tag == f"{NAMESPACE}Tags":
            words = ",".join(sorted(words.split(",")))
        return element.tag, tuple(sorted(element.items())), words

    return sorted(say(e) for e in ElementTree.fromstring(text).iter() if not e.tag.endswith("Description")) + [
        e.text.strip() for e in ElementTree.fromstring(text).iter(f"{NAMESPACE}Description")]


def check_walkthrough(walkthrough, package, names):
    """Its pictures are there, and it leads to commands that there are."""
    commands = {c["command"] for c in package["contributes"]["commands"]}
    for step in walkthrough["steps"]:
        assert f"extension/{step['media']['image']}" in names and step["media"]["altText"], step
        leads = [*re.findall(r"command:(gpu-agent\.\w+)", step["description"]),
                 *(e.partition(":")[2] for e in step["completionEvents"] if e.startswith("onCommand:"))]
        assert set(leads) <= commands, set(leads) - commands


def test_arguments_of_attach_are_declared():
    """What the documentation names, the editor completes and checks in launch.json; the socket is the extension's own."""
    package = json.loads((ROOT / "editors/vscode/package.json").read_text())
    declared = package["contributes"]["debuggers"][0]["configurationAttributes"]["attach"]["properties"]
    text = (ROOT / "docs/EDITORS.md").read_text()
    named, = re.findall(r"^Arguments of `attach`: (.*?)Keys that the adapter", text, re.DOTALL | re.MULTILINE)
    words = set(re.findall(r"`([a-z]\w+)`", named)) - {"true", "line", "kernel"}
    assert words | {"socket"} == set(declared), words ^ set(declared)
    readme = (ROOT / "editors/vscode/README.md").read_text()
    assert all(f"`{name}`" in readme for name in declared), declared


def test_the_sources_are_as_the_strictest_rules_have_it():
    """tsc compiles them strictly (tsconfig.json); this is typescript-eslint."""
    work = extension("vsix").parent / "work"
    modules = npm.install(HERE / "eslint", lambda place: npm.run_npm(["install", "--ignore-scripts"], place))
    run = subprocess.run(["node", HERE / "eslint/check.mjs", modules, work], text=True, capture_output=True, timeout=280,
                         stdin=subprocess.DEVNULL, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert int(run.stderr) == len(list((ROOT / "editors/vscode/src").rglob("*.ts"))), run.stderr


def test_the_file_has_what_a_marketplace_asks_for():
    with zipfile.ZipFile(extension("vsix")) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        assert len(names) == len(set(names))
        manifest = ElementTree.fromstring(archive.read("extension.vsixmanifest"))
        package = json.loads(archive.read("extension/package.json"))
        for asset in manifest.iter(f"{NAMESPACE}Asset"):
            assert asset.get("Path") in names, asset.get("Path")
        types = {e.get("Extension") for e in ElementTree.fromstring(archive.read("[Content_Types].xml"))}
        assert {pathlib.PurePath(n).suffix for n in names} - {".xml"} <= types, "the type of each file is told"
        assert "MIT" in archive.read("extension/LICENSE.txt").decode()
        assert archive.read("extension/" + "README.md").decode() == (ROOT / "editors/vscode/README.md").read_text()
        head = archive.read(f"extension/{package['icon']}")[:24]
        assert head[:8] == b"\x89PNG\r\n\x1a\n" and min(struct.unpack(">II", head[16:])) >= 128, head
        assert f"extension/{package['main']}" in names
        assert f"\n## {package['version']}" in archive.read("extension/CHANGELOG" + ".md").decode()
        for walkthrough in package["contributes"]["walkthroughs"]:
            check_walkthrough(walkthrough, package, names)
    assert package["publisher"] and package["categories"] and package["license"] == "MIT" and "private" not in package
    allowed = ("package.json", "README.md", "CHANGELOG", "LICENSE.txt", "icon.png", "out/", "media/", "node_modules/vscode-jsonrpc/")
    left = [n for n in names if not n.removeprefix("extension/").startswith((*allowed, "extension.vsixmanifest", "[Content_Types]"))]
    assert not left, left


def test_the_same_sources_give_the_same_file():
    packed = extension("vsix")
    with tempfile.TemporaryDirectory() as directory:
        copy = pathlib.Path(directory, "extension")
        shutil.copytree(packed.parent / "extension", copy)
        for file in copy.rglob("*"):
            os.utime(file, (1, 1))
        again = pathlib.Path(directory, "again.vsix")
        subprocess.run([ROOT / "editors/vscode/pack.py", copy, again], check=True, timeout=60)
        assert again.read_bytes() == packed.read_bytes()
        (copy / "icon.png").unlink()
        run = subprocess.run([ROOT / "editors/vscode/pack.py", copy, again], text=True, capture_output=True, timeout=60,
                             check=False)
        assert run.returncode == 1 and "icon.png" in run.stderr, run


def test_the_packer_of_the_marketplace_says_the_same():
    """vsce checks what it packs; its manifest and ours say the same."""
    packed = extension("vsix")
    modules = npm.install(HERE / "vsce", lambda place: npm.run_npm(["install", "--ignore-scripts"], place))
    with tempfile.TemporaryDirectory() as directory:
        copy = pathlib.Path(directory, "extension")
        shutil.copytree(packed.parent / "extension", copy)
        theirs = pathlib.Path(directory, "theirs.vsix")
        run = subprocess.run(["node", modules / "@vscode/vsce/vsce", "package", "--no-dependencies",
                              "--allow-missing-repository", "-o", theirs], cwd=copy, text=True, capture_output=True,
                             timeout=120, stdin=subprocess.DEVNULL, check=False)
        assert run.returncode == 0 and "WARNING" not in run.stdout + run.stderr, run.stdout + run.stderr
        with zipfile.ZipFile(packed) as ours, zipfile.ZipFile(theirs) as other:
            want, got = (elements(a.read("extension.vsixmanifest")) for a in (other, ours))
            assert got == want
            assert {n for n in other.namelist() if n not in ours.namelist()} == set()
