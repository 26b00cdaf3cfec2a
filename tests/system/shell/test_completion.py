#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""TAB: what the program says can be offered, and that bash, zsh and fish offer exactly that."""
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest
from harness import BIN, ROOT, Scene, as_user, need_root
from shells import Bash, Fish, Zsh

FILES = ROOT / "ctl/shell"
SHELLS = {"bash": Bash, "zsh": Zsh, "fish": Fish}
# Names of values in --help of which nothing can be offered.
FREE = {"JOBID", "N", "A-B", "ID", "ID,ID", "WAVE", "ADDRESS", "SIZE", "JSON", "GPU", "ROW", "NAMESPACE",
        "NAMESPACE/SELECTOR", "NAME", "UID"}


def told(*words, path=None, program=BIN / "gpu-agentctl"):
    """What the program offers behind these words, {value: description}, and what it leaves to the shell."""
    env = dict(os.environ, GPU_AGENT_SOCKET=str(path or "/nonexistent/agentd.sock"))
    run = subprocess.run([program, "__complete", "--", *words], env=env, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0 and not run.stderr, run
    *lines, last = run.stdout.splitlines()
    assert last in (":none", ":file"), run.stdout
    assert all(line.count("\t") == 1 for line in lines), run.stdout
    offered = dict(line.split("\t") for line in lines)
    assert len(offered) == len(lines), "something is offered twice"
    return offered, last[1:]


def values(*words, **kwargs):
    offered, rest = told(*words, **kwargs)
    assert rest == "none", (words, rest)
    return set(offered)


def of_scene(s, offered):
    """Without the processes of other people on this machine, which its agent lists as well."""
    return {value for value in offered if not value.rpartition("=")[2].isdigit() or value.endswith(str(s.app.pid))}


def help_text(*words):
    return subprocess.run([BIN / "gpu-agentctl", *words, "--help"], check=True, capture_output=True, text=True, timeout=60).stdout


def unfolded(text):
    """A page of --help with one line for each item."""
    return re.sub(r"\n {9,}(?=\S)", " ", text)


def options_of(text):
    """{--name: (name of its value or None, help)} of a page of --help."""
    found = re.findall(r"^  (?:-\w,|   ) (--[a-z-]+)(?:\[?[ =](\S+?)\]?)?  *(.*)$", unfolded(text), re.M)
    return {name: (value or None, what.partition(" (alias")[0]) for name, value, what in found}


def verbs():
    """{verb: its summary} as --help lists them."""
    items = re.findall(r"^  ([a-z]+) +(.*)", unfolded(help_text()).split("Verbs:")[1].split("\n\n")[0], re.M)
    return {name: what.partition(" (alias")[0] for name, what in items}


# What the program says.


def test_verbs_and_options_are_those_of_help():
    every = verbs()
    assert told("")[0] == every and len(every) > 20
    for verb in every:
        options = options_of(help_text(verb))
        assert len(options) > 10, options
        offered = told(verb, "--")[0]
        assert set(offered) == set(options), verb
        for name, (_, what) in options.items():
            assert what.startswith(offered[name]) and offered[name], (verb, name)


def test_every_value_that_has_a_name_in_help_is_known():
    """An option with a new kind of value needs an entry in complete_values.c, or in FREE."""
    for verb in verbs():
        for option, (name, _) in options_of(help_text(verb)).items():
            if name is None or name in FREE:
                continue
            offered, rest = told(verb, f"{option}=")
            assert offered or rest == "file" or name in ("PID", "RULE"), f"{verb} {option} {name} offers nothing"
            assert all(value.startswith(f"{option}=") for value in offered)
            if option in ("--json", "--twice", "--host"):  # which take a value only behind "="
                continue
            behind = told(verb, option, "")
            assert ({v.partition("=")[2] for v in offered}, rest) == (set(behind[0]), behind[1]), (verb, option)


def test_parts_of_words():
    assert values("sn") == {"snapshot"}
    assert values("--timeout", "5s", "-q", "ver") == {"version"}, "behind an option with a value"
    assert values("--color", "never", "--", "dev") == {"devices"}
    assert values("list", "--", "--co") == set(), "-- ends the options"
    assert values("list", "--color=") == {"--color=auto", "--color=always", "--color=never"}
    assert values("list", "--color", "a") == {"auto", "always"}
    assert values("list", "--json=p") == {"--json=pretty"}
    assert values("registers", "1", "2", "--bank=scalar,v") == {"--bank=scalar,vector"}
    assert values("war") == {"warps"} and values("cont") == {"contexts"}, "NVIDIA's words, when they are typed"
    assert values("warps", "12", "--cont") == {"--context"} and values("warps", "12", "--qu") == {"--queue", "--quiet"}
    assert values("nosuchverb", "") == values("list", "x") == values("list", "-j") == set()
    assert told("list", "-o", "") == told("-qo", "") == told("list", "--output=") == ({}, "file")


def test_arguments():
    assert values("watchpoint", "12", "") == {"set", "list", "clear"}
    assert values("watchpoint", "12", "set", "") == values("watchpoint", "12", "list", "") == set()
    assert values("cores", "") == {"list", "info", "export", "pin", "unpin", "rm", "du"}
    assert {"PID=", "BOOT_ID="} <= values("cores", "list", "") == values("cores", "list", "PID=1", "")
    assert values("hooks", "") == {"list", "test"}
    assert told("analyze", "") == told("merge", "a", "b", "") == told("diff", "a", "") == ({}, "file")
    methods = {m["name"]: m["doc"] for m in json.loads((ROOT / "protocol/gpu-agent.json").read_text())["methods"]}
    offered = told("rpc", "")[0]
    assert set(offered) == set(methods)
    assert all(methods[name].startswith(what) and what for name, what in offered.items())


def test_words_that_are_offered_are_accepted():
    """Nothing is offered that the verb then refuses as a mistake in the command line."""
    with Scene(app="runtime ttmp; queues 1; spin", gpus="gfx1100") as s:
        pid = str(s.app.pid)
        s.control(f"waves {pid} 0 halted 4 0x7f0000001000 vgprs=16")
        wave = json.loads(s.ctl("waves", pid, "--limit=1", "-j").stdout)["waves"][0]["ref"]
        wave = f"{wave['queue_id']}:{wave['unit']}:{wave['index']}"
        lines = [["waves", pid], ["registers", pid, wave], ["watchpoint", pid, "list"], ["cores", "list"], ["list"],
                 ["memory", pid, "0", "16", "--wave", wave, "--lane=0"], ["dump", pid, "--estimate"],
                 ["events", pid, "--for=1ms"]]
        tried = set()
        for line in lines:
            for option, (name, _) in options_of(help_text(line[0])).items():
                if name in ("FILE", "PATH", "PID") or name is None or option in ("--for", "--max-stop"):
                    continue
                for value in told(line[0], f"{option}=", path=s.socket)[0]:
                    run = s.ctl(*line, value)
                    assert run.returncode != 2 or "goes with" in run.stderr, (line, value, run.stderr)
                    tried.add(option)
        assert {"--state", "--bank", "--mode", "--field", "--since", "--space", "--layout", "--subscribe", "--color"} <= tried


# What the agent knows.


def test_processes_sessions_and_records():
    with Scene() as s:
        pid, name = str(s.app.pid), pathlib.Path(f"/proc/{s.app.pid}/comm").read_text().strip()
        offered = told("snapshot", "", path=s.socket)[0]
        assert of_scene(s, offered) == {pid} and offered[pid].startswith(f"{name} of ") and "amd" in offered[pid]
        assert of_scene(s, values("snapshot", pid[0], path=s.socket)) == {pid}
        assert values("snapshot", "x", path=s.socket) == values("snapshot", pid, "", path=s.socket) == set()
        assert of_scene(s, values("rpc", "--pid=", path=s.socket)) == {f"--pid={pid}"}
        assert values("snapshot", "--core", "/some/file", "", path=s.socket) == set(), "a core file stands for the process"
        for option in (["--socket", str(s.socket)], [f"--socket={s.socket}"]):
            assert of_scene(s, values(*option, "doctor", "")) == {pid}, "--socket counts"
        session = s.attach()
        offered = told("detach", "", path=s.socket)[0]
        assert of_scene(s, offered) == {pid, session} and f"process {pid}" in offered[session]
        record = json.loads(s.ctl("snapshot", pid, "--record", "-j").stdout)["record"]
        offered = told("cores", "info", record[:4], path=s.socket)[0]
        assert set(offered) == {record} and f"process {pid} ({name})" in offered[record], offered
        assert record in values("cores", "export", "--last", "", path=s.socket)


def test_names_of_strangers_stay_on_their_line():
    with Scene(app=None) as s:
        s.app_program = shutil.copy(BIN / "gpu-agent-simapp", s.directory / "a\tb\n:file")
        s.app_program = pathlib.Path(s.app_program)
        s.app = s.start_app("runtime on; queues 1; spin")
        offered, rest = told("snapshot", "", path=s.socket)
        assert of_scene(s, offered) == {str(s.app.pid)} and rest == "none" and all(map(str.isdigit, offered))
        assert offered[str(s.app.pid)].startswith(r"a\tb\n:file of "), offered


def test_an_agent_that_is_not_there_or_does_not_answer():
    """Nothing is printed on standard error, and the rest is offered as ever."""
    with tempfile.TemporaryDirectory() as directory, socket.socket(socket.AF_UNIX) as silent:
        silent.bind(f"{directory}/silent")
        silent.listen(8)
        pathlib.Path(f"{directory}/file").touch()
        for path in ("/nonexistent/agentd.sock", f"{directory}/silent", f"{directory}/file", "x" * 200, ""):
            for words in (["snapshot", ""], ["doctor", "1"], ["detach", ""], ["rpc", "--pid", ""], ["hooks", "test", ""]):
                assert values(*words, path=path) == set()
            assert {"PID=", "RECORD="} & values("cores", "info", "", path=path)
            assert values("snap", path=path) == {"snapshot"}


def test_another_user():
    need_root()
    with Scene(user_mode=False) as s:
        program = pathlib.Path(shutil.copy(BIN / "gpu-agentctl", s.directory))
        os.chmod(s.socket, 0o660)

        def look():
            os.chdir("/")
            assert values("snapshot", "", path=s.socket, program=program) == set()
            assert values("sn", path=s.socket, program=program) == {"snapshot"}
        as_user(12345, look)


# What shells make of it.


def lines():
    """Beginnings of command lines of every kind: each verb, its arguments, its options, their values."""
    found = ["", "s", "wa", "x", "--", "--co", "-q ver", "--timeout 5s ", "--color=a", "-- sta"]
    for verb in verbs():
        found += [verb, f"{verb} ", f"{verb} --", f"{verb} 12 "]
        for option, (name, _) in options_of(help_text(verb)).items():
            if name in (None, "FILE", "PATH", "USER") or (verb != "list" and option in options_of(help_text())):
                continue
            found += [f"{verb} {option}=", f"{verb} {option} "]
    return [f"gpu-agentctl {line}" for line in found]


# fish and bash make files of their own at home, also where no home is.
HOME = tempfile.TemporaryDirectory()


def environment(path):
    programs = [str(BIN), *os.environ["PATH"].split(":")]
    return {"PATH": ":".join(programs), "TERM": "dumb", "HOME": HOME.name, "GPU_AGENT_SOCKET": str(path),
            "LC_ALL": "C.UTF-8", **{k: v for k, v in os.environ.items() if k.startswith(("ASAN", "UBSAN", "LSAN"))}}


@pytest.fixture(scope="module")
def expected():
    """What the program says for each line; lines that name files are another test."""
    offered = {line: told(*line.split(" ")[1:]) for line in lines()}
    found = {line: set(values) for line, (values, rest) in offered.items() if rest == "none"}
    assert len(found) > 150 and sum(map(bool, found.values())) > 100
    return found


@pytest.mark.parametrize("name", SHELLS)
def test_shell_offers_what_the_program_says(name, expected):
    with SHELLS[name](FILES / f"gpu-agentctl.{name}", environment("/nonexistent/agentd.sock")) as shell:
        for line, offered in zip(expected, shell.offers(expected)):
            assert offered == expected[line], f"{line!r}: too much {offered - expected[line]}, missing {expected[line] - offered}"


@pytest.mark.parametrize("name", SHELLS)
def test_shell_offers_processes_and_files(name):
    with Scene() as s:
        pid = str(s.app.pid)
        directory = s.directory / "files"
        directory.mkdir()
        for file in ("rank0.json", "rank1.json", "other"):
            (directory / file).touch()
        (directory / "with blank").mkdir()
        with SHELLS[name](FILES / f"gpu-agentctl.{name}", environment(s.socket)) as shell:
            def offered(line):
                return {value.rpartition("/")[2] for value in of_scene(s, shell.offers([line])[0])}
            assert offered("gpu-agentctl snapshot ") == {pid}
            assert offered(f"{BIN}/gpu-agentctl snapshot ") == {pid}, "named by its path"
            for line in (f"gpu-agentctl merge {directory}/ra", f"gpu-agentctl merge x {directory}/ra",
                         f"gpu-agentctl list --output={directory}/ra", f"gpu-agentctl list -o {directory}/ra"):
                assert offered(line) == {"rank0.json", "rank1.json"}, line
        with SHELLS[name](FILES / f"gpu-agentctl.{name}", environment("/nonexistent/agentd.sock")) as shell:
            found = shell.offers([f"gpu-agentctl --socket={s.socket} snapshot ", f"gpu-agentctl --socket {s.socket} doctor ",
                                  "gpu-agentctl snapshot "])
            assert [of_scene(s, offered) for offered in found] == [{pid}, {pid}, set()]


def test_fish_shows_the_descriptions():
    with Fish(FILES / "gpu-agentctl.fish", environment("/nonexistent/agentd.sock")) as shell:
        assert shell.described(["gpu-agentctl sn", "gpu-agentctl waves --state=run"]) == [
            {"snapshot": verbs()["snapshot"]}, {"--state=running": "Executing"}]
