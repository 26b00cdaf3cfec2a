# SPDX-License-Identifier: MIT
"""How tests in Python are named and reported: one line for each, as scripts/run-tests counts them.

A test program that is started by its own name runs `pytest-3 --lines PROGRAM [TEST...]`.
"""
import os
import pathlib

import pytest


def pytest_addoption(parser):
    parser.addoption("--lines", action="store_true", help="print PASS, FAIL and SKIP lines, and nothing of pytest's own")


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    config.args[:] = located(config.args)
    if config.getoption("--lines"):
        config.pluginmanager.unregister(name="terminalreporter")
        config.pluginmanager.register(Lines())


def located(args):
    """A word that is no file is a test of the file before it; of that file itself nothing else is run."""
    found = []
    for arg in args:
        if found and "::" not in arg and not os.path.exists(arg):
            path = found[-1].partition("::")[0]
            if found[-1] == path:
                found.pop()
            found.append(f"{path}::test_{arg.removeprefix('test_')}")
        else:
            found.append(arg)
    return found


class Lines:
    """PASS PROGRAM.TEST (seconds), SKIP PROGRAM.TEST: reason, or FAIL PROGRAM.TEST and indented why."""

    def __init__(self):
        self.reports = []

    @staticmethod
    def name(report):
        path, test = pathlib.PurePath(report.location[0]), report.nodeid.partition("::")[2]
        return f"{path.stem.removeprefix('test_')}.{test.removeprefix('test_')}"

    @staticmethod
    def why(report):
        return "".join(f"  {line}\n" for line in report.longreprtext.splitlines())

    def pytest_collectreport(self, report):
        if report.failed:
            print(self.why(report), end="", flush=True)

    def pytest_runtest_logreport(self, report):
        """Each of setup, call and teardown reports; the test has a result when all of them are over."""
        self.reports.append(report)
        if report.when == "teardown":
            reports, self.reports = self.reports, []
            print(self.result(reports), end="", flush=True)

    def result(self, reports):
        name = self.name(reports[0])
        failed = [r for r in reports if r.failed]
        skipped = [r for r in reports if r.skipped]
        if failed:
            return f"FAIL {name}\n" + "".join(map(self.why, failed))
        if skipped:
            return f"SKIP {name}: {skipped[0].longrepr[2].removeprefix('Skipped: ')}\n"
        return f"PASS {name} ({sum(r.duration for r in reports if r.when == 'call'):.1f} s)\n"
