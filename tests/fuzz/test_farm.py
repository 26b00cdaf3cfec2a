#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""scripts/fuzz-farm, in seconds: a target that has a mistake, and one that has none."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
from unittest import SkipTest

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

TOP = pathlib.Path(__file__).resolve().parents[2]
FLAGS = ("-g", "-fsanitize=fuzzer,address", "-fprofile-instr-generate", "-fcoverage-mapping")
# What libFuzzer finds within a second: it sees with what bytes are compared.
BROKEN = """
#include <stddef.h>
#include <stdint.h>
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 2 && data[0] == 'B' && data[1] == 'A' && data[2] == 'D')
        __builtin_trap();
    return 0;
}
"""
SOUND = BROKEN.replace("__builtin_trap();", "return 0;").replace("'D'", "'C'")


# The instructions are the same, whatever the table says.
TABLE = """
#include <stddef.h>
#include <stdint.h>
static const uint8_t table[4] = { 1, 2, 3, 4 };
static const char *const names[2] = { "one", "two" };
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    volatile int n = size > 1 ? table[data[0] & 3] + names[data[1] & 1][0] : 0;
    return n < 0;
}
"""


def farm(tmp_path, hours, *targets, jobs=2, **variables):
    env = dict(os.environ, **variables, FUZZ_DIR=str(tmp_path), FUZZ_SEEDS=str(tmp_path / "seeds"), FUZZ_BUILD="no",
               FUZZ_LEDGER=str(tmp_path / "ledger"), FUZZ_JOBS=str(jobs))
    return subprocess.run([TOP / "scripts/fuzz-farm", hours, *targets], env=env, text=True, capture_output=True, timeout=300)


def compiled(tmp_path, **sources):
    (tmp_path / "fuzz").mkdir()
    for name, text in sources.items():
        source = tmp_path / f"{name}.c"
        source.write_text(text)
        made = subprocess.run(["clang", *FLAGS, "-o", tmp_path / f"fuzz/fuzz_{name}", source], capture_output=True, text=True)
        if made.returncode:
            raise SkipTest(f"no libFuzzer: {made.stderr.splitlines()[-1]}")


def test_a_mistake_is_found_kept_and_replayed(tmp_path):
    for tool in ("clang", "llvm-profdata", "llvm-cov"):
        if not shutil.which(tool):
            raise SkipTest(f"no {tool}")
    compiled(tmp_path, broken=BROKEN, sound=SOUND)
    seed = tmp_path / "seeds/fuzz_sound/first"
    seed.parent.mkdir(parents=True)
    seed.write_bytes(b"BA")
    run = farm(tmp_path, "0.0017", "broken", "fuzz_sound")
    assert run.returncode == 1, run
    said = {line.split(":")[0]: line for line in run.stdout.splitlines()}
    assert said.keys() >= {"FAIL fuzz-farm.fuzz_broken", "PASS fuzz-farm.fuzz_sound"}, run
    # The command that is told crashes in the same way, and the input is the mistake.
    commands = (tmp_path / "crashes/replay").read_text().splitlines()
    assert commands and commands[0] in said["FAIL fuzz-farm.fuzz_broken"], commands
    program, crash = commands[0].split()
    assert pathlib.Path(crash).read_bytes().startswith(b"BAD")
    env = dict(os.environ, LLVM_PROFILE_FILE="/dev/null")
    again = subprocess.run([program, crash], env=env, capture_output=True, text=True)
    assert again.returncode != 0 and "deadly signal" in again.stderr, again
    # The seed stays, and what reaches more was added.
    minimised = list((tmp_path / "minimised/fuzz_sound").iterdir())
    assert "first" in {p.name for p in minimised} and any(p.read_bytes().startswith(b"BAC") for p in minimised), minimised
    rows = (tmp_path / "coverage").read_text().splitlines()
    assert any("sound.c" in row and row.strip().startswith("100.0 %") for row in rows), rows
    # What crashes no more is no failure of the next run; what has crashed stays until somebody has looked at it.
    shutil.rmtree(tmp_path / "crashes")
    assert farm(tmp_path, "0.0003", "sound").returncode == 0


def test_what_has_not_run_has_not_passed(tmp_path):
    compiled(tmp_path, broken=BROKEN, sound=SOUND)
    seed = tmp_path / "seeds/fuzz_broken/bad"
    seed.parent.mkdir(parents=True)
    seed.write_bytes(b"BAD")
    run = farm(tmp_path, "0", "broken", "sound")
    assert run.returncode == 1 and "FAIL fuzz-farm.fuzz_sound: it has not run once" in run.stdout, run
    # Nobody has had a turn, but a seed that crashes is found where the seeds are looked through, and kept as others are.
    assert "FAIL fuzz-farm.fuzz_broken: 1 inputs that crash" in run.stdout, run
    assert [p.read_bytes() for p in (tmp_path / "crashes").glob("fuzz_broken-*")] == [b"BAD"], run


def test_hours_add_up_as_long_as_the_code_is_the_same(tmp_path):
    compiled(tmp_path, sound=SOUND, other=SOUND.replace("'C'", "'D'"))

    def so_far(run):
        told = re.findall(r"PASS fuzz-farm.fuzz_(\w+): .* inputs; (\d+) s with this code so far", run.stdout)
        assert run.returncode == 0 and told, run
        return {name: int(seconds) for name, seconds in told}

    ledger = tmp_path / "ledger"
    assert so_far(farm(tmp_path, "0.0003", "sound")).keys() == {"sound"}
    [[target, code, seconds, inputs]] = [line.split() for line in ledger.read_text().splitlines()]
    assert target == "fuzz_sound" and float(seconds) > 0 and int(inputs) > 0, ledger.read_text()
    # What a run before has given counts; what it gave to other code does not.
    with open(ledger, "a") as f:
        f.write(f"fuzz_sound {code} 1700.2 5\nfuzz_sound {'0' * 16} 5000 5\nfuzz_other {code} 5000 5\n")
    told = so_far(farm(tmp_path, "0.0006", "sound", "other", jobs=1))
    assert 1700 <= told["sound"] < 1720 and told["other"] < 20, told
    # Whoever had least begins.
    ends = {name: (tmp_path / f"log/fuzz_{name}.time").stat().st_mtime_ns for name in ("sound", "other")}
    assert ends["other"] < ends["sound"], ends
    # A line for each, in a file that people commit; what other code has had is of no use to anybody.
    lines = [line.split() for line in ledger.read_text().splitlines()]
    assert [line[0] for line in lines] == ["fuzz_other", "fuzz_sound"] and lines[1][1] == code, lines
    assert float(lines[1][2]) >= 1700 and int(lines[1][3]) > int(inputs), lines


def test_the_ledger_keeps_those_that_had_no_turn_and_tells_who_had_enough(tmp_path):
    compiled(tmp_path, sound=SOUND, other=SOUND.replace("'C'", "'D'"))
    ledger = tmp_path / "ledger"
    farm(tmp_path, "0.0003", "sound")
    [line] = ledger.read_text().splitlines()
    ledger.write_text(f"fuzz_absent {'1' * 16} 77.0 8\n{line}\n{line.split()[0]} {line.split()[1]} 1800 5\n")
    run = farm(tmp_path, "0.0003", "sound", "other")
    assert "1 of 2 targets have had 30 minutes with the code that they have now" in run.stdout, run
    lines = ledger.read_text().splitlines()
    assert f"fuzz_absent {'1' * 16} 77.0 8" in lines and len(lines) == 3, lines


def test_a_table_is_part_of_the_code(tmp_path):
    hashes = []
    for text in (TABLE, TABLE.replace("3, 4", "4, 3"), TABLE.replace('"two"', '"too"'), TABLE):
        shutil.rmtree(tmp_path / "fuzz", ignore_errors=True)
        compiled(tmp_path, table=text)
        farm(tmp_path, "0.0003", "table")
        hashes.append((tmp_path / "ledger").read_text().splitlines()[-1].split()[1])
    assert hashes[0] == hashes[3] and len(set(hashes)) == 3, hashes


def test_nothing_counts_where_the_code_is_not_known(tmp_path):
    compiled(tmp_path, sound=SOUND)
    tool = tmp_path / "tools/objcopy"
    tool.parent.mkdir()
    # It fails, or makes nothing.
    for line in ("exit 1", 'for last; do :; done; : >"$last"'):
        tool.write_text(f"#!/bin/sh\n{line}\n")
        tool.chmod(0o755)
        run = farm(tmp_path, "0.0003", "sound", PATH=f"{tool.parent}:{os.environ['PATH']}")
        assert run.returncode == 1 and "objcopy gives no code of fuzz_sound" in run.stderr, run
        assert not (tmp_path / "ledger").read_text(), run


def test_what_is_no_target_is_told(tmp_path):
    for arguments, text in ((("0.1", "nonsense"), "there is no target fuzz_nonsense"), (("soon",), "usage: fuzz-farm HOURS")):
        run = farm(tmp_path, *arguments)
        assert run.returncode == 2 and text in run.stderr, run
    listed = subprocess.run([TOP / "scripts/fuzz-farm", "--list"], text=True, capture_output=True, timeout=60)
    assert {"fuzz_dap", "fuzz_rpc_message", "fuzz_kfdsim"} <= set(listed.stdout.split()), listed
