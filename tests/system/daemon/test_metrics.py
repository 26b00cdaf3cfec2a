#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""agent.metrics and gpu-agentctl metrics: what is counted, for whom, and whether monitoring systems can read it.

promtool is Prometheus's own judge; it is run where it is installed, or named by PROMTOOL."""
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
from unittest import SkipTest

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from harness import ROOT, RpcError, Scene, as_user, children_named, hook_directory, need_root, wait_until
from rulescene import RuleScene

PROMTOOL = os.environ.get("PROMTOOL") or shutil.which("promtool")
ANNA = 54201
SAMPLE = re.compile(r'^([a-z_]+)(?:\{(.*)\})? (\S+)$')
LABEL = re.compile(r'([a-z]+)="((?:[^"\\]|\\.)*)"(?:,|$)')


class Metrics:
    """The samples of a text, after everything that its format demands was checked."""

    def __init__(self, text, openmetrics=False):
        assert text.endswith("\n# EOF\n") and text.count("# EOF") == 1, text[-100:]
        self.samples, self.types, self.help, self.labels = {}, {}, {}, {}
        self.openmetrics, last = openmetrics, None
        for line in text.splitlines()[:-1]:
            kind = re.match(r"# (TYPE|HELP|UNIT) (gpu_agent_[a-z_]+) (.+)$", line)
            if kind:
                last = self.comment(*kind.groups(), last)
                continue
            assert SAMPLE.match(line), line
            self.sample(last, *SAMPLE.match(line).groups())
        assert set(self.types) == set(self.help)

    def comment(self, what, name, text, last):
        if what == "TYPE":
            assert name not in self.types, f"{name} twice"
            assert name.endswith("_total") == (text == "counter" and not self.openmetrics), (name, text)
            self.types[name] = text
            return name
        assert name == last, f"{what} of {name} behind {last}"
        if what == "UNIT":
            assert self.openmetrics and name.endswith("_" + text), (name, text)
        else:
            assert text[0].isupper() or text[0].isdigit(), text
            self.help[name] = text
        return last

    def sample(self, family, name, labels, value):
        suffixes = {"counter": ["_total"] if self.openmetrics else [""], "gauge": [""], "summary": ["_sum", "_count"],
                    "histogram": ["_bucket", "_sum", "_count"]}[self.types[family]]
        assert name in [family + s for s in suffixes], (family, name)
        pairs = LABEL.findall(labels or "")
        assert "".join(f'{k}="{v}",' for k, v in pairs).rstrip(",") == (labels or ""), labels
        key = (name, *sorted(pairs))
        assert key not in self.samples and math.isfinite(float(value)), key
        self.samples[key] = float(value)
        self.labels.setdefault(family, set()).update(k for k, _ in pairs)

    def get(self, name, **labels):
        return self.samples.get(("gpu_agent_" + name, *sorted(labels.items())))

    def named(self, name):
        return {k: v for k, v in self.samples.items() if k[0] == "gpu_agent_" + name}


def metrics(s, *options):
    done = s.ctl("metrics", *options)
    assert done.returncode == 0 and done.stderr == "", done
    return Metrics(done.stdout, "--openmetrics" in options)


def counts_only_grow(before, after):
    for key, value in before.samples.items():
        if key[0].endswith(("_total", "_count", "_sum", "_bucket")):
            assert after.samples[key] >= value, key


def test_what_happens_is_counted():
    with Scene() as s:
        first = metrics(s)
        assert first.get("sessions_started_total") == 0 and first.get("stop_duration_seconds_count") == 0
        session = s.attach()
        s.rpc.call("gpu.snapshot", session=session)
        s.rpc.call("gpu.snapshot", session=session, queues_only=True)
        for method in ("nothing", "wave.registers"):
            try:
                s.rpc.call(method, session=session)
            except RpcError:
                pass
        s.rpc.call("gpu.suspend", session=session)
        held = metrics(s)
        assert held.get("suspended_processes") == 1 and held.get("suspensions_total") == 1
        s.rpc.call("gpu.resume", session=session)
        s.rpc.call("exception.subscribe", session=session, exceptions=["wave_trap"])
        s.raise_queue(s.target_state()["queues"][0]["id"], "wave_trap")
        s.rpc.notification("exception.raised")
        now = metrics(s)
        assert now.get("requests_total", method="gpu.snapshot", result="ok") == 2
        assert now.get("requests_total", method="wave.registers", result="invalid_params") == 1
        assert now.get("requests_total", method="none", result="method_not_found") == 1
        assert now.get("request_duration_seconds_count", method="gpu.snapshot") == 2
        assert 0 < now.get("request_duration_seconds_sum", method="gpu.snapshot") < 60
        # A snapshot without waves stops nothing; the exception may have been too soon behind for a stop of its own.
        assert held.get("stop_duration_seconds_count") == 1 and 0 < held.get("stop_duration_seconds_sum") < 60
        assert now.get("stop_duration_seconds_bucket", le="+Inf") == now.get("stop_duration_seconds_count")
        assert now.get("suspended_processes") == 0 and 0 < now.get("suspended_seconds_total") < 60
        assert now.get("exceptions_total", exception="wave_trap") == 1, now.named("exceptions_total")
        assert now.get("exceptions_total", exception="wave_abort") == 0
        assert now.get("sessions", vendor="amd") == 1 and now.get("sessions", vendor="nvidia") == 0
        assert now.get("connections") == 2 and now.get("connections_accepted_total") == 4
        counts_only_grow(first, now)
        s.rpc.call("session.detach", session=session)
        after = metrics(s)
        assert after.get("sessions", vendor="amd") == 0 and after.get("sessions_started_total") == 1
        assert after.get("sessions_ended_total", reason="detached") == 1
        assert after.get("start_time_seconds") == first.get("start_time_seconds")
        counts_only_grow(now, after)


def test_a_suspension_that_ends_with_its_session_counts():
    with Scene() as s:
        other = s.connect()
        session = s.attach(rpc=other)
        other.call("gpu.suspend", session=session)
        other.close()
        wait_until(lambda: metrics(s).get("sessions", vendor="amd") == 0, "the session is over")
        now = metrics(s)
        assert now.get("suspensions_total") == 1 and now.get("suspended_seconds_total") > 0
        assert now.get("suspended_processes") == 0


def test_the_store_is_told():
    with Scene() as s:
        session = s.attach()
        before = metrics(s)
        assert before.get("store_up") == 1 and before.get("store_records") == 0
        s.rpc.call("gpu.snapshot", session=session, record=True)
        now = metrics(s)
        usage = s.rpc.call("cores.usage")
        assert now.get("store_records") == usage["records"] == 1
        assert now.get("store_used_bytes") == usage["disk_bytes"] > 0
        assert now.get("store_limit_bytes") == usage["max_use_bytes"]
        assert not metrics(s, "--no-store").named("store_up")


def test_a_store_that_cannot_be_read_costs_only_its_own_metrics():
    with Scene(start_agent=False) as s:
        s.cores.write_text("a file\n")
        s.start_agentd()
        done = s.ctl("metrics")
        assert done.returncode == 8 and done.stderr.startswith("the store: "), done
        now = Metrics(done.stdout)
        assert now.get("store_up") == 0 and now.get("store_records") is None and now.get("connections") == 1


def test_rules_and_hooks_are_told_by_name_to_those_who_may_know():
    need_root()
    with hook_directory() as place:
        hook = place / "hook"
        hook.write_text("#!/bin/sh\nexit 3\n")
        os.chmod(hook, 0o755)
        rule = (f"[rule all]\ndevice = amd\nrate_limit = none\ndeduplicate = none\nhook = {hook}\nhook_user = daemon\n"
                "[rule none]\nexe = /nowhere\n")
        with RuleScene(rule, user_mode=False) as s:
            s.wait_watched()
            s.fault(n=2)
            s.wait_counts(recorded=2)
            wait_until(lambda: metrics(s).get("hook_runs_total", rule="all", result="failed") == 2, "the hook ran twice")
            root = metrics(s)
            assert root.get("rules") == 2 and root.get("rule_watching", rule="all") == 1
            assert root.get("rule_watching", rule="none") == 0 and root.get("rule_matched_total", rule="all") == 1
            assert root.get("rule_exceptions_total", rule="all", result="recorded") == 2
            assert root.get("rule_exceptions_total", rule="none", result="recorded") == 0
            assert root.get("hook_runs_total", rule="all", result="ok") == 0
            assert root.get("hooks_running", rule="all") == 0 and not root.get("hooks_running", rule="none")
            assert root.get("exceptions_total", exception="wave_trap") == 2
            sums = []
            as_user(ANNA, lambda: sums.append(check_sums(s)))


def check_sums(s):
    anna = metrics(s)
    assert anna.get("rules") == 2 and anna.get("rule_watching") == 1 and anna.get("rule_matched_total") == 1
    assert anna.get("rule_exceptions_total", result="recorded") == 2
    assert anna.get("hook_runs_total", result="failed") == 2 and anna.get("hooks_waiting") == 0
    assert not any(label == "rule" for key in anna.samples for label, _ in key[1:])


def test_a_rules_process_that_is_not_there_delays_nothing_for_long():
    with RuleScene("[rule all]\ndevice = amd\nhook = /bin/true\n") as s:
        s.wait_watched()
        rules = children_named(s.agentd.pid, "gpu-agent-rules")[0]
        os.kill(rules, 19)  # SIGSTOP
        try:
            now = metrics(s)
            assert not now.named("hook_runs_total") and now.get("rule_watching", rule="all") == 1
        finally:
            os.kill(rules, 18)  # SIGCONT
        wait_until(lambda: metrics(s).get("hook_runs_total", rule="all", result="ok") == 0, "it answers again")


def test_both_formats_say_the_same():
    with Scene() as s:
        s.rpc.call("agent.hello")
        first, second = metrics(s, "--no-store"), metrics(s, "--no-store", "--openmetrics")
        told = json.loads(s.ctl("metrics", "--no-store", "--json").stdout)["metrics"]
        assert [m["name"] for m in s.rpc.call("agent.metrics")["metrics"]] == [m["name"] for m in told]
        assert list(first.samples) == [k for k in second.samples if k in first.samples]
        # The first run is counted in the second.
        assert {k for k in second.samples if k not in first.samples} <= {
            (f"gpu_agent_{n}", ("method", "agent.metrics"), *more) for n, more in (
                ("requests_total", (("result", "ok"),)), ("request_duration_seconds_count", ()),
                ("request_duration_seconds_sum", ()))}
        assert [m["name"] for m in told] == list(second.types) and [m["type"] for m in told] == list(second.types.values())
        assert [m["help"] for m in told] == list(second.help.values())
        assert {m["name"] for m in told if m.get("unit") == "seconds"} == {
            n for n in second.types if n.endswith("_seconds")}


def test_a_file_is_replaced_whole_and_others_may_read_it():
    with Scene() as s:
        file = s.directory / "gpu-agent.prom"
        file.write_text("old\n")
        number = file.stat().st_ino
        old = os.umask(0o022)
        try:
            done = s.ctl("metrics", "-o", file)
        finally:
            os.umask(old)
        assert done.returncode == 0 and done.stdout == "", done
        assert file.stat().st_ino != number and file.stat().st_mode & 0o777 == 0o644
        Metrics(file.read_text())
        # Nothing else is in the directory that a collector reads, and an agent that is gone leaves the old file.
        assert not list(s.directory.glob("*.prom?*")) and not list(s.directory.glob(".*.prom*"))
        text = file.read_text()
        s.agentd.stop()
        assert s.ctl("metrics", "-o", file).returncode == 9 and file.read_text() == text


def test_promtool_finds_nothing_wrong():
    if not PROMTOOL:
        raise SkipTest("promtool is not installed (Debian package prometheus), and PROMTOOL does not name one")
    with Scene() as s:
        s.rpc.call("agent.status")
        text = s.ctl("metrics").stdout
        done = subprocess.run([PROMTOOL, "check", "metrics"], input=text, text=True, capture_output=True, timeout=60)
        assert done.returncode == 0 and done.stdout + done.stderr == "", done


def test_the_document_has_every_metric():
    """docs/METRICS.md: names, types, labels and texts, as the program tells them."""
    page = (ROOT / "docs/METRICS.md").read_text()
    rows = dict((m[0], m[1:]) for m in re.findall(r"^\| `(gpu_agent_\w+)` \| (\w+) \| ([a-z, ]*?) *\| (.*) \|$", page, re.M))
    with RuleScene("[rule all]\ndevice = amd\nhook = /bin/true\n") as s:
        s.rpc.call("agent.status")
        now = metrics(s)
    assert set(rows) == set(now.types), set(rows) ^ set(now.types)
    for name, (kind, labels, text) in rows.items():
        assert (kind, text) == (now.types[name], now.help[name]), name
        assert set(filter(None, labels.split(", "))) == now.labels.get(name, set()), (name, labels)
    for name in re.findall(r"\bgpu_agent_\w+", page):
        assert re.sub("_(sum|count|bucket)$", "", name) in rows, f"there is no {name}"


def test_the_unit_runs_what_is_there():
    """gpu-agent-metrics.service: its options are ones, its user is made, and it writes where it may."""
    unit = (ROOT / "systemd/gpu-agent-metrics.service.in").read_text()
    command = re.search(r"^ExecStart=@bindir@/gpu-agentctl (.*)$", unit, re.M)[1].split()
    assert command[0] == "metrics" and command[-1] == "@runstatedir@/gpu-agent-metrics/gpu-agent.prom", command
    assert re.search(r"^RuntimeDirectory=gpu-agent-metrics$", unit, re.M)
    user = re.search(r"^User=(.*)$", unit, re.M)[1]
    sysusers = (ROOT / "systemd/sysusers.conf").read_text()
    assert f"u {user} " in sysusers and f"m {user} gpu-debug\n" in sysusers
    with Scene() as s:
        file = s.directory / "unit.prom"
        done = s.ctl(*command[:-1], file)
        assert done.returncode == 0 and done.stdout + done.stderr == "", done
        Metrics(pathlib.Path(file).read_text())
