#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""bench/compare: which change of a ratio is a failure; with trees whose bench/run tells what it is told to."""
import json
import os
import pathlib
import subprocess
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

TOP = pathlib.Path(__file__).resolve().parents[2]
# Each run of it tells the next of its documents.
RUN = """#!/usr/bin/env python3
import json, pathlib, sys
here = pathlib.Path(__file__).parent
documents = json.loads((here / "documents").read_text())
count = here / "count"
n = int(count.read_text()) if count.exists() else 0
count.write_text(str(n + 1))
pathlib.Path(sys.argv[2]).write_text(json.dumps(documents[min(n, len(documents) - 1)]))
sys.exit(1)
"""


def row(what, ratio, bar):
    return {"what": what, "value": "1", "peer": "1", "ratio": ratio, "bar": bar, "met": None}


def document(larger="0.80", smaller="2.00", faster="12.0x faster", free="3.00"):
    return {"rows": [row("larger", larger, ">= 0.7 of echo"), row("smaller", smaller, "< 8"),
                     row("  below it", faster, "< 20 ms"), row("free", free, ""), row("none", "", "< 3 ms")]}


def tree(path, *documents):
    (path / "bench").mkdir(parents=True)
    (path / "Makefile").write_text("all:\n")
    run = path / "bench/run"
    run.write_text(RUN)
    run.chmod(0o755)
    (path / "bench/documents").write_text(json.dumps(documents))
    return path


def compare(tmp_path, base, ours, *options):
    ours = tree(tmp_path / "ours", *ours)
    if not isinstance(base, pathlib.Path):
        base = tree(tmp_path / "base", *base)
    return subprocess.run([TOP / "bench/compare", "--ours", ours, *options, base], text=True, capture_output=True, timeout=60)


def verdicts(run):
    return {line.split("|")[1].strip(): line.split("|")[5].strip() for line in run.stdout.splitlines()[2:]}


def test_the_same_is_no_failure(tmp_path):
    run = compare(tmp_path, [document()], [document()])
    assert run.returncode == 0, run
    assert verdicts(run) == {"larger": "", "smaller": "", "smaller: below it": "", "free": ""}, run.stdout


def test_a_tenth_is_allowed_and_no_more(tmp_path):
    for i, (was, now, status) in enumerate((({"larger": "0.80"}, {"larger": "0.73"}, 0), ({"larger": "0.80"}, {"larger": "0.72"}, 1),
                                            ({"smaller": "2.00"}, {"smaller": "2.20"}, 0),
                                            ({"smaller": "2.00"}, {"smaller": "2.21"}, 1),
                                            ({"faster": "12.0x faster"}, {"faster": "10.8x faster"}, 1),
                                            # Better is no failure, however much.
                                            ({"larger": "0.50"}, {"larger": "0.90"}, 0),
                                            ({"smaller": "4.0"}, {"smaller": "1.0"}, 0))):
        run = compare(tmp_path / str(i), [document(**was)], [document(**now)])
        assert run.returncode == status, (was, now, run)
        assert (list(verdicts(run).values()).count("WORSE") == 1) == bool(status), run.stdout


def test_what_has_no_bar_is_told(tmp_path):
    run = compare(tmp_path, [document(free="3.00")], [document(free="9.00")])
    assert run.returncode == 0 and verdicts(run)["free"].startswith("changed"), run


def test_the_best_run_counts(tmp_path):
    """Other work on the machine is no reason to fail, and none to pass."""
    slow, fast = document(larger="0.40", smaller="9.0"), document()
    run = compare(tmp_path / "a", [fast, slow, slow], [slow, slow, fast])
    assert run.returncode == 0, run.stdout
    run = compare(tmp_path / "b", [slow, fast, slow], [slow, slow, slow])
    assert run.returncode == 1, run.stdout
    assert compare(tmp_path / "c", [slow, slow], [slow, fast], "--runs", "1").returncode == 0


def test_a_file_of_an_earlier_run(tmp_path):
    file = tmp_path / "before.json"
    file.write_text(json.dumps(document(larger="0.95")))
    run = compare(tmp_path, file, [document()])
    assert run.returncode == 1 and verdicts(run)["larger"] == "WORSE", run
    more = compare(tmp_path / "again", file, [document()], "--allow", "20")
    assert more.returncode == 0, more


def test_what_cannot_be_compared_is_told(tmp_path):
    run = subprocess.run([TOP / "bench/compare", "no-such-commit"], text=True, capture_output=True, timeout=60)
    assert run.returncode == 1 and "is no commit, no directory and no file" in run.stderr, run
    run = compare(tmp_path, [{"rows": []}], [document()])
    assert run.returncode == 1 and "no row is in both" in run.stderr, run
