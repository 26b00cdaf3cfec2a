#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The clients as packages: built from what make left, installed where nothing of this tree is, and used on a real daemon."""
import functools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from unittest import SkipTest

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import npm
from harness import BIN, ROOT, Scene

CLIENTS = BIN.parent / "clients"
KEPT = []
PYTHON = "/usr/bin/python3"  # Debian's, which has Debian's python3-build and python3-setuptools
#: What a person would type first; with the types of the package, so that mypy judges them as well.
PYTHON_PROGRAM = '''
import sys
import gpu_agent


def waves(path: str, pid: int) -> int:
    with gpu_agent.Client(path) as agent:
        if not any(p["pid"] == pid for p in agent.process_list(mine=True)["processes"]):
            return 0
        session = agent.session_attach(pid=pid)["session"]
        groups = agent.gpu_snapshot(session=session)["groups"]
        for group in sorted(groups, key=gpu_agent.kernel_name):
            print(group["waves"], gpu_agent.kernel_name(group) or "?", group["pc"], file=sys.stderr)
        return sum(group["waves"] for group in groups)


print(gpu_agent.__file__, waves(sys.argv[1], int(sys.argv[2])))
'''
NODE_PROGRAM = '''
const path = require.resolve("gpu-agent-client");
const { Client, UnreachableError } = require("gpu-agent-client");
(async () => {
    const agent = await Client.connect(process.argv[2]);
    const pid = Number(process.argv[3]);
    if (!(await agent.processList({ mine: true })).processes.some((p) => p.pid === pid))
        throw new Error("not in the list");
    const { session } = await agent.sessionAttach({ pid });
    const { groups } = await agent.gpuSnapshot({ session });
    await agent.close();
    const error = await Client.connect("/nonexistent").catch((e) => e);
    if (!(error instanceof UnreachableError))
        throw error;
    console.log(path, groups.reduce((sum, group) => sum + group.waves, 0));
})();
'''
TYPESCRIPT_PROGRAM = '''
import { AgentError, Client, ClientError, PROTOCOL_VERSION } from "gpu-agent-client";

export async function waves(pid: number): Promise<number> {
    const agent: Client = await Client.connect();
    const { session } = await agent.sessionAttach({ pid });
    const counts: number[] = (await agent.gpuSnapshot({ session })).groups.map((group) => group.waves);
    // @ts-expect-error pid is missing
    void agent.sessionAttach({});
    return counts.length;
}

export const isOurs = (e: unknown): boolean => e instanceof ClientError && !(e instanceof AgentError) && PROTOCOL_VERSION.length > 0;
'''


def run(argv, seconds=120, **how):
    done = subprocess.run(argv, text=True, capture_output=True, timeout=seconds, stdin=subprocess.DEVNULL, check=False, **how)
    assert done.returncode == 0, f"{argv}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def scratch():
    """A directory that lives as long as this program."""
    KEPT.append(tempfile.TemporaryDirectory())
    return pathlib.Path(KEPT[-1].name).resolve()


def need_python_packages(*modules):
    if not os.path.exists(PYTHON):
        raise SkipTest(f"no {PYTHON}")
    for module in modules:
        probe = subprocess.run([PYTHON, "-c", f"import {module}"], capture_output=True, timeout=60, check=False)
        if probe.returncode:
            raise SkipTest(f"{PYTHON} has no module {module} (python3-build, python3-setuptools, python3-wheel, python3-venv)")


def version():
    return run([BIN / "gpu-agentctl", "--version"]).split()[-1]


def waves_of(s):
    return sum(group["waves"] for group in json.loads(s.ctl("snapshot", str(s.app.pid), "--json").stdout)["groups"])


# -- Python ----------------------------------------------------------------------------------------

@functools.lru_cache(None)
def python_packages():
    """(sdist, wheel); built without a network, out of a copy, as a person does it."""
    need_python_packages("build", "setuptools", "wheel", "ensurepip")
    directory = scratch()
    source = directory / "source"
    shutil.copytree(CLIENTS / "python", source, ignore=shutil.ignore_patterns("__pycache__"))
    run([PYTHON, "-m", "build", "--no-isolation", "--outdir", directory / "dist", source],
        env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"})
    (sdist,) = (directory / "dist").glob("*.tar.gz")
    (wheel,) = (directory / "dist").glob("*.whl")
    return sdist, wheel


def test_python_packages_hold_the_client_and_nothing_else():
    sdist, wheel = python_packages()
    module = CLIENTS / "python/gpu_agent"
    wanted = {f"gpu_agent/{f.relative_to(module)}" for f in module.rglob("*") if f.is_file() and "__pycache__" not in f.parts}
    assert {"gpu_agent/py.typed", "gpu_agent/protocol.py"} <= wanted
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        about = f"gpu_agent_client-{version()}.dist-info/"
        assert {n for n in names if not n.startswith(about)} == wanted
        told = archive.read(about + "METADATA").decode()
    assert about + "LICENSE" in names
    for line in (f"Version: {version()}", "Name: gpu-agent-client", "License: MIT", "Requires-Python: >=3.9",
                 "Description-Content-Type: text/markdown", "Classifier: Typing :: Typed"):
        assert line in told.splitlines(), (line, told)
    assert "Requires-Dist" not in told and "import gpu_agent" in told
    with tarfile.open(sdist) as archive:
        inside = {n.split("/", 1)[1] for n in archive.getnames() if "/" in n}
    assert wanted | {"LICENSE", "README.md", "pyproject.toml"} <= inside, inside


def test_python_wheel_in_an_environment_of_its_own():
    _, wheel = python_packages()
    with Scene() as s:
        directory = scratch()
        home = directory / "venv"
        run([PYTHON, "-m", "venv", home])
        run([home / "bin/pip", "install", "--no-index", "--no-deps", wheel])
        program = directory / "program.py"
        program.write_text(PYTHON_PROGRAM, encoding="ascii")
        place, waves = run([home / "bin/python", "-I", program, s.socket, str(s.app.pid)], cwd=directory).split()
        assert place.startswith(f"{home}/"), place
        assert int(waves) == waves_of(s)
        installed = run([home / "bin/python", "-I", "-c",
                         "import importlib.metadata as m; print(m.version('gpu-agent-client'))"]).strip()
        assert installed == version()
        # The types are the package's own: mypy uses them only where it finds py.typed.
        if shutil.which("mypy"):
            run(["mypy", "--strict", "--no-error-summary", f"--cache-dir={directory}/mypy", "--python-executable",
                 home / "bin/python", program], cwd=directory)
        run([home / "bin/pip", "uninstall", "--yes", "gpu-agent-client"])
        left = [str(p) for p in home.rglob("*") if "gpu_agent" in p.name]
        assert not left, left


# -- TypeScript ------------------------------------------------------------------------------------

@functools.lru_cache(None)
def npm_package():
    """The tarball, and the modules that it was compiled with."""
    modules = npm.install(ROOT / "clients/typescript")
    directory = scratch()
    source = directory / "source"
    shutil.copytree(CLIENTS / "typescript", source, ignore=shutil.ignore_patterns("node_modules", "out"))
    os.symlink(modules, source / "node_modules")
    run(["npm", "pack", "--pack-destination", directory], cwd=source)
    (package,) = directory.glob("*.tgz")
    return package, modules


def test_npm_package_holds_code_types_and_licence():
    package, _ = npm_package()
    assert package.name == f"gpu-agent-client-{version()}.tgz"
    with tarfile.open(package) as archive:
        inside = {n.removeprefix("package/") for n in archive.getnames()}
        about = json.load(archive.extractfile("package/package.json"))
    code = {f"out/{stem}.{end}" for stem in ("connection", "host", "index", "protocol") for end in ("js", "d.ts")}
    assert inside == code | {"package.json", "README.md", "LICENSE"}, inside
    assert about["name"] == "gpu-agent-client" and "private" not in about and about["license"] == "MIT"
    for path in (about["main"], about["types"]):
        assert path in inside, path


def test_npm_package_in_a_project_of_its_own():
    package, modules = npm_package()
    with Scene() as s:
        project = scratch()
        (project / "package.json").write_text('{"name": "project", "version": "1.0.0", "private": true}', encoding="ascii")
        npm.run_npm(["install", "--ignore-scripts", str(package)], project)
        (project / "program.js").write_text(NODE_PROGRAM, encoding="ascii")
        place, waves = run(["node", "program.js", s.socket, str(s.app.pid)], cwd=project).split()
        assert place == f"{project}/node_modules/gpu-agent-client/out/index.js"
        assert int(waves) == waves_of(s)
        imported = run(["node", "--input-type=module", "-e",
                        'import { Client } from "gpu-agent-client"; console.log(typeof Client.connect)'], cwd=project)
        assert imported == "function\n"
        (project / "program.ts").write_text(TYPESCRIPT_PROGRAM, encoding="ascii")
        run(["node", modules / "typescript/bin/tsc", "--strict", "--noEmit", "--target", "ES2022", "--module", "Node16",
             "--moduleResolution", "Node16", "--typeRoots", modules / "@types", "--types", "node", "program.ts"], cwd=project)
