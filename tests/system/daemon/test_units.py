#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The units as they are installed: systemd understands every line, and says how exposed the services are.

What they do under a running systemd is tested in the virtual machine (tests/vm/test_systemd.py)."""
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from unittest import SkipTest

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from harness import ROOT

UNITS = ROOT / "systemd"
# As systemd 252 counts; later ones have more questions.
EXPOSURE = {"gpu-agentd.service": 2.5, "gpu-agent-connect@.service": 1.5, "gpu-agent-metrics.service": 1.0}


@contextlib.contextmanager
def installed():
    """The units with programs that are there."""
    if not shutil.which("systemd-analyze"):
        raise SkipTest("systemd-analyze is not installed")
    with tempfile.TemporaryDirectory(prefix="gpu-agent-units.") as name:
        place = pathlib.Path(name)
        (place / "gpu-agent").mkdir()
        for program in ("gpu-agentd", "gpu-agentctl", "gpu-agent/gpu-agent-connect"):
            (place / program).write_text("#!/bin/sh\n")
            (place / program).chmod(0o755)
        values = {"sbindir": name, "bindir": name, "libexecdir": name, "runstatedir": "/run", "localstatedir": "/var"}
        for unit in (*UNITS.glob("*.service.in"), *UNITS.glob("*.socket.in"), *UNITS.glob("*.timer")):
            text = re.sub(r"@(\w+)@", lambda m: values[m[1]], unit.read_text())
            (place / unit.name.replace(".in", "")).write_text(text)
        yield place


def analyze(*argv):
    return subprocess.run(["systemd-analyze", *map(str, argv)], text=True, capture_output=True, timeout=60,
                          env={**os.environ, "SYSTEMD_LOG_COLOR": "0", "LC_ALL": "C"})


def test_systemd_understands_every_line():
    with installed() as place:
        units = sorted(place.glob("gpu-agent*.*"))
        assert len(units) == 6, units
        done = analyze("verify", "--man=no", *units)
        mine = [line for line in (done.stdout + done.stderr).splitlines() if "gpu-agent" in line]
        assert done.returncode == 0 and not mine, done
        # It would have said so.
        service = place / "gpu-agentd.service"
        service.write_text(service.read_text().replace("[Service]", "[Service]\nMemoryMaxx=1G"))
        assert "MemoryMaxx" in analyze("verify", "--man=no", service).stderr


def test_services_are_no_more_exposed_than_they_must_be():
    version = int(re.match(r"systemd (\d+)", analyze("--version").stdout)[1]) if shutil.which("systemd-analyze") else 0
    if version != 252:
        raise SkipTest(f"exposure levels are compared with those of systemd 252, here is {version or 'none'}")
    with installed() as place:
        for unit, most in EXPOSURE.items():
            text = analyze("security", "--no-pager", "--offline=true", place / unit).stdout
            found = re.search(r"Overall exposure level for \S+: ([0-9.]+)", text)
            assert found and float(found[1]) <= most, text


def test_one_unit_without_network_serves_both_vendors():
    """On every machine; the broker, which has the machine's network namespace, has no capability, and no address of it is open to it."""
    agent, broker = settings("gpu-agentd.service.in"), settings("gpu-agent-connect@.service.in")
    assert agent["PrivateNetwork"] == "yes" and "gpu-agent-connect.socket" in agent["Wants"], agent
    assert not [p for p in UNITS.rglob("*") if p.is_file() and "PrivateNetwork=no" in p.read_text()]
    assert "PrivateNetwork" not in broker and broker["CapabilityBoundingSet"] == "" and broker["DynamicUser"] == "yes", broker
    for unit in (agent, broker):
        assert unit["RestrictAddressFamilies"] == "AF_UNIX AF_INET" and unit["IPAddressDeny"] == "any", unit
    socket = settings("gpu-agent-connect.socket.in")
    assert socket["SocketMode"] == "0600" and "SocketUser" not in socket and socket["Accept"] == "yes", socket


def settings(unit):
    return dict(re.findall(r"^(\w+)=(.*)$", (UNITS / unit).read_text(), re.M))


def test_the_agent_is_bounded_and_survives_the_loss_of_a_worker():
    service = settings("gpu-agentd.service.in")
    assert service["OOMPolicy"] == "continue" and service["Restart"] == "on-failure", service
    assert re.fullmatch(r"\d+G", service["MemoryMax"]) and int(service["TasksMax"]) >= 1024, service
    # Journald's own default is 10000 records in 30 seconds; fewer would lose records of who did what.
    assert service["LogRateLimitIntervalSec"] == "30s" and int(service["LogRateLimitBurst"]) > 10000, service
    manual = (ROOT / "docs/man/gpu-agentd.8").read_text()
    for name in ("MemoryMax", "TasksMax"):
        assert f"{name}={service[name]}" in manual, f"gpu-agentd(8) does not say {name}={service[name]}"


def test_presets_name_units_that_there_are():
    units = re.findall(r"^(?:enable|disable) (\S+)$", (UNITS / "gpu-agent.preset").read_text(), re.M)
    assert units
    for unit in units:
        found = [p for p in (UNITS / unit, UNITS / f"{unit}.in") if p.exists()]
        assert found and "[Install]" in found[0].read_text(), unit
