#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Two minutes of chaos.py, the same in every check; a test for each thing that must be so after all of it."""
import os
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest
from chaos import INVARIANTS, Chaos
from harness import need_root

# With its start, its last rest and its end: three minutes.
SECONDS = float(os.environ.get("CHAOS_SECONDS", "120"))
SEED = int(os.environ.get("CHAOS_SEED", "1"))


@pytest.fixture(scope="module", name="run")
def one_run():
    need_root()
    with Chaos(SEED) as chaos:
        chaos.run(seconds=SECONDS)
        print(chaos.summary())
        yield chaos


@pytest.mark.parametrize("invariant", INVARIANTS)
def test_chaos(run, invariant):
    assert not run.wrong[invariant], "\n".join(run.wrong[invariant][:20])


def test_something_was_done(run):
    """A run that kills nobody, or never comes to a rest, would prove nothing."""
    assert run.deaths >= 10 and run.rounds >= 5, run.summary()
