#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""gpu-agentd --dump-config and what --check-config says of the store.

What is wrong with the text of a file is tested with the parser, hooks with what runs them (rule/test_hooks.py)."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from harness import BIN, ROOT, need_root

DEFAULT = "built-in default"


class Place:
    """A directory with a configuration that root alone may write."""

    def __enter__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="gpu-agent-config."))
        os.chmod(self.path, 0o755)
        self.file = self.path / "agentd.conf"
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path)

    def write(self, text):
        self.file.write_text(text)
        os.chmod(self.file, 0o644)

    def run(self, *options, config=None):
        return subprocess.run([BIN / "gpu-agentd", "--config", config or self.file, *options], text=True,
                              capture_output=True, timeout=60)


def settings(text):
    """{(section, key): (value, origin)} of a dump."""
    found, section = {}, None
    for line in text.splitlines():
        head = re.fullmatch(r"\[(.*)\]", line)
        if head:
            section = head[1]
        elif line:
            name, value, origin = re.fullmatch(r"(#?\w+) = (.*?) +# (.*)", line).groups()
            assert (section, name) not in found, line
            found[section, name] = (value, origin)
    return found


def dump(place, *options, config=None):
    done = place.run("--dump-config", *options, config=config)
    assert done.returncode == 0 and done.stderr == "", done
    return settings(done.stdout)


def test_every_setting_is_told_with_its_origin():
    need_root()
    with Place() as p:
        p.write("[agent]\nuser = nobody # who\n  idle_exit = 300\n[limits]\nsilent_holder=250ms ; short\n"
                "[store]\nmax_use = 1G\nmax_use = 2G\n[rule a]\nuser = root, daemon\ndevice = amd\n")
        got = dump(p, "--kfd", "/dev/null", "--idle-exit", "90s")
        at = f"{p.file}:"
        assert got["agent", "user"] == ("nobody", at + "2")
        assert got["agent", "idle_exit"] == ("90s", "--idle-exit") and got["kfd", "device"] == ("/dev/null", "--kfd")
        assert got["limits", "silent_holder"] == ("250ms", at + "5") and got["store", "max_use"] == ("2G", at + "8")
        assert got["rule a", "user"] == ("root, daemon", at + "10") and got["rule a", "device"] == ("amd", at + "11")
        others = {k: v for k, v in got.items() if v[1] == DEFAULT}
        assert others["agent", "socket_group"] == ("gpu-debug", DEFAULT) and others["limits", "connections"] == ("512", DEFAULT)
        assert len(got) == len(others) + 7, got


def test_the_defaults_are_those_of_the_manual():
    with Place() as p:
        p.write("")
        got = dump(p)
    page = (ROOT / "docs/man/agentd.conf.5").read_text()
    sections = dict(re.findall(r"^\.Ss \[(\w+)\]\n(.*?)^(?=\.S)", page, re.M | re.S))
    told = {(section, key): re.search(r"^Default:\s+(?:\.Pa )?(.*?) ?\.?$", text, re.M)
            for section, body in sections.items()
            for key, text in re.findall(r"^\.It Cm (\w+)\n(.*?)(?=^\.It|^\.El)", body, re.M | re.S)}
    assert {(s, k.lstrip("#")) for s, k in got} == set(told), set(told)
    for (section, key), (value, _) in got.items():
        want = told[section, key.lstrip("#")][1]
        assert {"none": "", "0": "0s" if key == "idle_exit" else "0", "60s": "1m"}.get(want, want) == value, (key, want, value)


def test_what_is_printed_is_a_configuration():
    need_root()
    with Place() as p:
        p.write("[agent]\nuser = nobody\n[limits]\nmax_suspended = 90s\n[store]\nmax_age = 7d\n"
                "[rule b]\nexe = /opt/*\nkeep = nothing\n[rule a]\ndevice = nvidia\n")
        first = p.run("--dump-config").stdout
        again = p.path / "again.conf"
        again.write_text(first)
        os.chmod(again, 0o644)
        second = dump(p, config=again)
        assert {k: v[0] for k, v in second.items()} == {k: v[0] for k, v in settings(first).items()}
        # The first rule that matches has the process: their order counts.
        assert [s for s, _ in second if s.startswith("rule")] == ["rule b", "rule b", "rule a"]


def test_files_that_are_wrong_are_told_instead():
    with Place() as p:
        p.write("[agentt]\nuser = x\n[agent]\nusr = x\n[rule a\nuser = y\n")
        done = p.run("--dump-config")
        assert done.returncode == 1 and done.stdout == "", done
        assert f"{p.file}:1: [agentt]" in done.stderr and "did you mean [agent]?" in done.stderr, done
        assert f"{p.file}:4: [agent] usr: unknown key; did you mean user?" in done.stderr and f"{p.file}:5: " in done.stderr, done


def test_a_store_that_cannot_be_written_is_told():
    need_root()
    with Place() as p:
        cores = p.path / "cores"
        p.write(f"[agent]\nuser = nobody\nsocket_group =\n[store]\ndirectory = {cores}\n")

        def refused(why):
            done = p.run("--check-config")
            assert done.returncode == 1 and done.stdout == "" and f"store {cores}: {why}\n" in done.stderr, done
            assert f"gpu-agentd: {p.file}:5: [store] directory: no records can be kept there\n" in done.stderr, done

        refused("No such file or directory")
        cores.mkdir(0o700)
        refused("Permission denied")  # it is root's
        shutil.chown(cores, "nobody")
        done = p.run("--check-config")
        assert done.returncode == 0 and done.stdout == "configuration is valid\n" and done.stderr == "", done
        os.chmod(cores, 0o500)
        refused("Permission denied")  # it can be read only
        os.chmod(cores, 0o777)
        refused("Operation not permitted")  # others may write into it
        assert list(cores.iterdir()) == []
        cores.rmdir()
        cores.write_text("")
        refused("Not a directory")
