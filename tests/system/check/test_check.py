#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How test programs are run and counted: scripts/run-tests and scripts/check, with programs made for it."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest
from harness import ROOT, Scene

# Counts its runs in $0.runs; what it does is in the script that follows.
HEAD = """#!/bin/sh
echo run >>"$0.runs"
n=$(grep -c run "$0.runs")
"""
GOOD = "echo 'PASS good.one'\n"
ONCE = "[ $n -eq 1 ] && { echo 'PASS once.a'; echo 'FAIL once.b'; echo 'cause 17'; exit 1; }\n" \
       "echo 'PASS once.a'; echo 'PASS once.b'\n"


class Fakes:
    """A directory of test programs."""

    def __init__(self, **scripts):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="gpu-agent-check."))
        self.programs = [self.add(name, script) for name, script in scripts.items()]

    def add(self, name, script):
        path = self.directory / name
        path.write_text(HEAD + script)
        path.chmod(0o755)
        return path

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.directory)

    def runs(self, name):
        return len((self.directory / f"{name}.runs").read_text().split())

    def run(self, argv=None, **env):
        """What all of them print, by lines."""
        clean = {k: v for k, v in os.environ.items() if not k.startswith("TEST_")}
        self.done = subprocess.run([str(a) for a in argv or [ROOT / "scripts/run-tests", *self.programs]], text=True,
                                   capture_output=True, env={**clean, **env}, timeout=120, stdin=subprocess.DEVNULL)
        return self.done.stdout.split("\n")[:-1]


def results(lines):
    return [line for line in lines if line.startswith(("PASS ", "FAIL ", "SKIP "))]


def test_what_passes_runs_once_and_makes_no_section():
    with Fakes(good=GOOD, skips="echo 'SKIP skips.one: no reason'\n") as f:
        lines = f.run()
        assert lines == ["PASS good.one", "SKIP skips.one: no reason", "1 passed, 0 failed, 1 skipped"], lines
        assert f.done.returncode == 0 and f.runs("good") == f.runs("skips") == 1


def test_what_fails_once_counts_as_passed_and_is_told_with_both_outputs():
    with Fakes(once=ONCE, good=GOOD) as f:
        lines = f.run()
        assert f.done.returncode == 0 and lines[-1] == "3 passed, 0 failed, 0 skipped", lines
        assert sorted(results(lines)) == ["PASS good.one", "PASS once.a", "PASS once.b"], lines
        assert f.runs("once") == 2 and f.runs("good") == 1
        # It ran again after all others.
        assert lines.index("PASS good.one") < lines.index(f"{f.programs[0]}: once more, alone"), lines
        section = lines[lines.index("=== FLAKY: failed, and passed when run once more, alone"):]
        assert section[1:-1] == [f"{f.programs[0]}: the first run", "  PASS once.a", "  FAIL once.b", "  cause 17",
                                 f"{f.programs[0]}: the second run", "  PASS once.a", "  PASS once.b"], section


def test_what_fails_twice_counts_its_failures():
    with Fakes(bad="echo 'PASS bad.a'; echo 'FAIL bad.b'; echo 'FAIL bad.c'; exit 1\n", good=GOOD) as f:
        lines = f.run()
        assert f.done.returncode == 1 and lines[-1] == "2 passed, 2 failed, 0 skipped", lines
        assert results(lines) == ["PASS good.one", "PASS bad.a", "FAIL bad.b", "FAIL bad.c"], lines
        assert f.runs("bad") == 2 and not [line for line in lines if "FLAKY" in line], lines


def test_another_failure_in_the_second_run_is_no_cure():
    with Fakes(moves="[ $n -eq 1 ] && echo 'FAIL moves.a' || echo 'FAIL moves.b'\nexit 1\n",
               hides="[ $n -eq 1 ] && echo 'FAIL hides.a: cause' || echo 'SKIP hides.a: later'\necho 'PASS hides.b'\n",
               exits="[ $n -eq 1 ] && echo 'FAIL exits.a' || echo 'PASS exits.a'\nexit 1\n",
               silent="[ $n -eq 1 ] && exit 1; true\n") as f:
        lines = f.run()
        assert lines[-1] == "1 passed, 4 failed, 0 skipped", lines
        assert results(lines) == ["FAIL moves.a", "FAIL hides.a: cause", "PASS hides.b", "FAIL exits.a",
                                  f"FAIL {f.programs[3]}: exit status 1"], lines


def test_a_death_without_a_failure_is_a_failure():
    with Fakes(dies="echo 'PASS dies.a'; kill -9 $$\n",
               dies_once="[ $n -eq 1 ] && kill -9 $$; echo 'PASS dies_once.a'\n",
               tests_nothing="true\n") as f:
        lines = f.run()
        assert f.done.returncode == 1 and lines[-1] == "2 passed, 2 failed, 0 skipped", lines
        assert results(lines) == ["PASS dies.a", f"FAIL {f.programs[0]}: exit status 137", "PASS dies_once.a",
                                  f"FAIL {f.programs[2]}: ran no test"], lines
        assert f"  FAIL {f.programs[1]}: exit status 137" in lines[lines.index(f"{f.programs[1]}: the first run"):]


def test_a_program_out_of_time_is_tried_once_more():
    with Fakes(hangs="echo 'PASS hangs.a'; sleep 60\n",
               hangs_once="[ $n -eq 1 ] && sleep 60; echo 'PASS hangs_once.a'\n") as f:
        lines = f.run(TEST_TIMEOUT="1")
        assert lines[-1] == "2 passed, 1 failed, 0 skipped", lines
        assert f"FAIL {f.programs[0]}: exit status 124" in results(lines), lines
        assert f.runs("hangs") == f.runs("hangs_once") == 2


def test_more_than_three_are_a_failure():
    for count, failed in ((3, 0), (4, 1)):
        with Fakes(**{f"once{i}": ONCE for i in range(count)}) as f:
            lines = f.run()
            assert f.done.returncode == failed, lines
            assert lines[-1] == f"{2 * count} passed, {failed} failed, 0 skipped", lines
            told = [line for line in results(lines) if line.startswith("FAIL")]
            assert told == ["FAIL check.flaky: 4 programs passed only when run once more; 3 may"][:failed], lines
            assert len([line for line in lines if line.endswith(": the second run")]) == count, lines


def test_a_guest_leaves_the_second_run_to_who_started_it():
    with Fakes(once=ONCE) as f:
        lines = f.run(TEST_ONCE="1")
        assert lines == ["PASS once.a", "FAIL once.b", "cause 17", "1 passed, 1 failed, 0 skipped"], lines
        assert f.runs("once") == 1


def test_what_would_end_too_late_is_not_begun():
    with Fakes(late=GOOD) as f:
        lines = f.run(TEST_UNTIL=str(int(time.time()) - 1))
        assert lines[0] == f"SKIP {f.programs[0]}: it was not run: there is no time left (TEST_UNTIL)", lines
        assert lines[1:] == ["0 passed, 0 failed, 1 skipped"] and not list(f.directory.glob("*.runs")), lines
    # Time for one that takes four seconds, and for no second run of it.
    with Fakes(once="sleep 4\n" + ONCE) as f:
        assert f.run(TEST_UNTIL=str(int(time.time()) + 600))[-1] == "2 passed, 0 failed, 0 skipped" and f.runs("once") == 2
        (f.directory / "once.runs").unlink()
        lines = f.run(TEST_UNTIL=str(int(time.time()) + 6))
        assert results(lines) == ["PASS once.a", "FAIL once.b"] and f.runs("once") == 1, lines
        assert f"{f.programs[0]}: there is no time for a second run; the first counts:" in lines, lines


def test_the_slowest_are_shown_and_are_no_results():
    with Fakes(quick=GOOD, slow="sleep 0.5; echo 'PASS slow.one'\n", dies="echo 'PASS dies.one'; sleep 0.2; kill -9 $$\n") as f:
        lines = f.run([ROOT / "scripts/run-tests", f.programs[0], f"{f.programs[1]} 100% sure", f.programs[2]],
                      TEST_SLOWEST="3", TEST_ONCE="1", TEST_JOBS="3")
        assert lines[-1] == "3 passed, 1 failed, 0 skipped" and len(results(lines)) == 4, lines
        assert lines[-5] == "  slowest programs: seconds, those of a processor, and which", lines
        rows = [re.fullmatch(r"  +(\d+\.\d) +\d+\.\d  (.+)", line).groups() for line in lines[-4:-1]]
        told = [float(seconds) for seconds, _ in rows]
        took = dict(zip((program for _, program in rows), told))
        assert set(took) == {str(f.programs[0]), f"{f.programs[1]} 100% sure", str(f.programs[2])}, rows
        assert told == sorted(told, reverse=True) and took[f"{f.programs[1]} 100% sure"] >= 0.5, rows


PROGRAM = """
import unittest
import pytest

def test_passes():
    pass

@pytest.mark.parametrize("kind", ("one", "two"))
def test_fails(kind):
    assert kind == "one", "cause 17"

def test_skips():
    raise unittest.SkipTest("no reason: none")

@pytest.fixture
def bad_end():
    yield
    raise OSError("cause 18")

def test_ends_badly(bad_end):
    pass
"""


def lines_of(f, text, *words):
    """What a program in Python prints; the times of tests are left out."""
    (f.directory / "test_some.py").write_text(text)
    argv = ["pytest-3", "--lines", "-c", ROOT / "pytest.ini", "-p", "conftest", f.directory / "test_some.py", *words]
    return [re.sub(r" \(\d+\.\d s\)$", "", line) for line in f.run(argv, PYTHONPATH=str(ROOT))]


def test_programs_in_python_print_a_line_for_each_test():
    with Fakes() as f:
        lines = lines_of(f, PROGRAM)
        assert f.done.returncode == 1, f.done
        assert results(lines) == ["PASS some.passes", "PASS some.fails[one]", "FAIL some.fails[two]",
                                  "SKIP some.skips: no reason: none", "FAIL some.ends_badly"], lines
        failed = lines[lines.index("FAIL some.fails[two]"):]
        assert any("cause 17" in line for line in failed) and any("cause 18" in line for line in failed), lines
        assert all(line.startswith((" ", "PASS ", "FAIL ", "SKIP ")) for line in lines), lines


def test_tests_of_a_program_in_python_are_named_by_words():
    with Fakes() as f:
        assert lines_of(f, PROGRAM, "passes", "fails[one]") == ["PASS some.passes", "PASS some.fails[one]"], f.done
        assert f.done.returncode == 0, f.done
        assert results(lines_of(f, PROGRAM, "none")) == [] and f.done.returncode != 0, f.done


def test_a_program_in_python_that_cannot_be_read_says_why():
    with Fakes() as f:
        lines = lines_of(f, "import nothing_that_there_is\n")
        assert f.done.returncode != 0 and results(lines) == [], f.done
        assert any("No module named 'nothing_that_there_is'" in line for line in lines), lines


def copied_check(f, **lists):
    """scripts/check in a tree whose Makefile names these programs."""
    (f.directory / "scripts").mkdir()
    for name in ("check", "run-tests"):
        shutil.copy(ROOT / "scripts" / name, f.directory / "scripts")
    install = f.directory / "scripts/install-deps"
    install.write_text("#!/bin/sh\n")
    install.chmod(0o755)
    rules = ["all tests:", "\t@true"]
    for name, programs in lists.items():
        rules += [f"print-{name}:", "\t@echo " + " ".join(map(str, programs))]
    (f.directory / "Makefile").write_text("\n".join(rules) + "\n")
    return f.directory / "scripts/check"


def test_the_check_counts_over_all_stages():
    with Fakes(once0=ONCE, once1=ONCE, once2=ONCE, once3=ONCE, good=GOOD) as f:
        check = copied_check(f, tests=[*f.programs[:2], f.programs[4]], fuzzers=f.programs[2:4])
        lines = f.run([check, "unit", "fuzz"])
        # check.warnings is the build's.
        assert f.done.returncode == 1 and lines[-1] == "10 passed, 1 failed, 0 skipped", lines
        section = lines[lines.index("=== FLAKY: failed, and passed when run once more, alone"):]
        told = [line.split()[0] for line in section if line.endswith(": the first run")]
        assert [pathlib.Path(program.rstrip(":")).name for program in told] == [f"once{i}" for i in range(4)], section
        assert results(section)[-1] == "FAIL check.flaky: 4 programs passed only when run once more; 3 may", section
        for i in range(4):
            (f.directory / f"once{i}.runs").unlink()
        (f.directory / "once0.runs").write_text("run\n")  # this one is well today
        lines = f.run([check, "unit", "fuzz"])
        assert f.done.returncode == 0 and lines[-1] == "10 passed, 0 failed, 0 skipped", lines
        assert len([line for line in lines if line.endswith(": the first run")]) == 3, lines


def test_a_stage_that_would_end_too_late_is_skipped():
    with Fakes(good=GOOD) as f:
        check = copied_check(f, tests=f.programs)
        makefile = f.directory / "Makefile"
        makefile.write_text(makefile.read_text().replace("@true", "@sleep 4"))
        shutil.copy(f.add("stage", "echo 'PASS stage.one'\n"), f.directory / "scripts/check-aarch64")
        # The build takes eight seconds, and the stage is thought to take nine.
        for seconds, last in (("15", "2 passed, 0 failed, 1 skipped"), ("600", "3 passed, 0 failed, 0 skipped")):
            lines = f.run([check, "unit", "aarch64"], CHECK_SECONDS=seconds)
            assert lines[-1] == last, lines
            told = [line for line in results(lines) if "NOTHING OF THIS STAGE WAS RUN" in line]
            assert len(told) == (2 if seconds == "15" else 0), lines  # once where it happens, and once at the end
            assert all(line.startswith("SKIP check.aarch64: ") and " 15 seconds " in line for line in told), lines
        for seconds in ("85m", "0", "-1"):
            f.run([check, "unit"], CHECK_SECONDS=seconds)
            assert f.done.returncode == 2 and f"CHECK_SECONDS={seconds} is no number of seconds" in f.done.stderr, f.done
        f.run([f.directory / "scripts/run-tests", *f.programs], TEST_UNTIL="soon")
        assert f.done.returncode == 2 and "TEST_UNTIL=soon is no time in seconds" in f.done.stderr, f.done


def test_what_a_scene_leaves_is_ended(capsys):
    with Scene(app=None) as s:
        with open(s.directory / "left", "w", encoding="ascii") as out:
            left = subprocess.Popen(["sleep", "1000"], stdout=out, start_new_session=True)
    assert left.wait(10) == -signal.SIGKILL
    assert f"left behind, and killed: {left.pid} sleep" in capsys.readouterr().out


def test_a_copy_of_the_tree_follows_it():
    with tempfile.TemporaryDirectory(prefix="gpu-agent-check.") as directory:
        tree, copy = pathlib.Path(directory, "tree"), pathlib.Path(directory, "copy")
        (tree / "scripts").mkdir(parents=True)
        shutil.copy(ROOT / "scripts/copy-tree", tree / "scripts")
        for name, text in ((".gitignore", "build\n"), ("kept", "1"), ("goes with blanks", "2"), ("goes back", "3"),
                           ("build", "no file of it")):
            (tree / name).write_text(text)
        subprocess.run(["git", "init", "-q", tree], check=True, timeout=60)
        subprocess.run([tree / "scripts/copy-tree", copy], check=True, timeout=60)
        (copy / "build").mkdir()
        (copy / "build/made").write_text("here")
        old = (copy / "kept").stat().st_mtime_ns
        # What make has built of the copy is newer than this; that the file is another one is seen by what is in it.
        (tree / "goes back").write_text("4")
        os.utime(tree / "goes back", (1000, 1000))
        os.utime(tree / "kept", (1000, 1000))
        (tree / "goes with blanks").unlink()
        (tree / "new").write_text("3")
        subprocess.run([tree / "scripts/copy-tree", copy], check=True, timeout=60)
        files = {str(path.relative_to(copy)) for path in copy.rglob("*") if path.is_file()}
        assert files == {".gitignore", "scripts/copy-tree", "kept", "goes back", "new", "build/made"}, files
        assert (copy / "kept").stat().st_mtime_ns == old and (copy / "scripts/copy-tree").stat().st_mode & 0o111
        assert (copy / "goes back").read_text() == "4" and (copy / "goes back").stat().st_mtime_ns > old


def test_a_copy_of_the_tree_takes_nothing_away_that_is_no_copy():
    with tempfile.TemporaryDirectory(prefix="gpu-agent-check.") as directory:
        tree, copy = pathlib.Path(directory, "tree"), pathlib.Path(directory, "copy")
        (tree / "scripts").mkdir(parents=True)
        shutil.copy(ROOT / "scripts/copy-tree", tree / "scripts")
        copy.mkdir()
        (copy / "kept").write_text("1")
        subprocess.run(["git", "init", "-q", tree], check=True, timeout=60)
        for where, name, text in ((tree, ".", "is a repository, and no copy"), (directory, "tree", "is a repository, and no copy")):
            run = subprocess.run([tree / "scripts/copy-tree", name], cwd=where, capture_output=True, text=True, timeout=60)
            assert run.returncode != 0 and text in run.stderr and (tree / ".git/HEAD").exists(), run
        shutil.rmtree(tree / ".git")
        run = subprocess.run([tree / "scripts/copy-tree", copy], capture_output=True, text=True, timeout=60,
                             env=dict(os.environ, GIT_CEILING_DIRECTORIES=directory))
        assert run.returncode != 0 and (copy / "kept").exists(), run


@pytest.mark.skipif(not shutil.which("apt-get"), reason="no apt-get here")
def test_a_machine_without_package_lists_is_told_so():
    """As containers come: the sources are there, and what they have is not known."""
    with tempfile.TemporaryDirectory(prefix="gpu-agent-check.") as directory:
        conf = pathlib.Path(directory, "apt.conf")
        conf.write_text(f'Dir::State::Lists "{directory}/lists";\n')
        done = subprocess.run([ROOT / "scripts/fetch-peers", "neovim", f"{directory}/peers"], text=True, capture_output=True,
                              env={**os.environ, "APT_CONFIG": str(conf)}, timeout=60, stdin=subprocess.DEVNULL)
        assert done.returncode == 77 and not done.stdout, done
        assert done.stderr == "fetch-peers: apt has no package lists here: `apt-get update` fetches them\n", done
