#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Watch rules: found without polling, recorded without anybody there, never in the application's way."""
import contextlib
import ctypes
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from harness import (BIN, EXCEPTIONS, Rpc, Scene, Skip, as_user, children, main, need_root, status, test,  # noqa: E402
                     wait_until)

DATA = pathlib.Path(__file__).resolve().parent.parent / "data/codeobj"
USER, OTHER = 1000, 1001
WAVES = f"runtime ttmp; load {DATA}/spin-gfx90a.co; queues 4; waves 1 memory 2 spin+16; spin"
PLAIN = "runtime on; queues 4; spin"
# Other tests may run CUDA processes at the same time: those are none of our business.
ALL = "[rule all]\ndevice = amd\nrate_limit = none\ndeduplicate = none\n"
LIBC = ctypes.CDLL(None, use_errno=True)


class RuleScene(Scene):
    """A scene whose agent has rules from its start on."""

    def __init__(self, rules=ALL, store="", app=PLAIN, **kwargs):
        super().__init__(app=app, gpus="gfx90a", start_agent=False, **kwargs)
        self.rules, self.store_conf = rules, store
        self.start_later = kwargs.get("user_mode", True)

    def __enter__(self):
        super().__enter__()
        try:
            self.write_rules(self.rules)
            self.start_agentd()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def start_agentd(self, *options, user_mode=None, env=None):
        user_mode = self.options[4] if user_mode is None else user_mode
        extra = ["--config", self.config] if user_mode else []
        return super().start_agentd(*extra, *options, user_mode=user_mode, env=env)

    @property
    def config(self):
        return self.directory / ("rules.conf" if self.options[4] else "agentd.conf")

    def write_rules(self, rules):
        agent = "" if self.options[4] else "[agent]\nuser = nobody\nsocket_group =\n"
        self.config.write_text(f"{agent}[store]\n{self.store_conf}\n{rules}")

    def reload(self, rules):
        self.write_rules(rules)
        before = self.agentd.err().count("configuration")
        self.agentd.popen.send_signal(signal.SIGHUP)
        wait_until(lambda: self.agentd.err().count("configuration") > before, "reload")

    def rule(self, name="all"):
        found = [r for r in self.rpc.call("agent.status")["rules"] if r["name"] == name]
        return found[0] if found else None

    def watched(self):
        """Processes that rules hold, with the rule's name."""
        return {s["pid"]: s["rule"] for s in self.rpc.call("session.list")["sessions"] if "rule" in s}

    def wait_watched(self, *apps):
        pids = {a.pid for a in apps} or {self.app.pid}
        wait_until(lambda: pids <= set(self.watched()), f"rules watch {pids}")
        # Held is not yet subscribed: that is when the kernel reports to the worker.
        wait_until(lambda: all(self.is_subscribed(p) for p in pids), "the rules listen")

    def is_subscribed(self, pid):
        process = next((p for p in self.state()["processes"] if p["pid"] == pid), None)
        return process is not None and process["debugged"] and int(process["enabled_mask"], 16) & ~(1 << 47) != 0

    def raise_on(self, app, exception="wave_trap", queue=0):
        queues = self.target_state(app)["queues"]
        self.control(f"raise {app.pid} queue {queues[queue]['id']} {EXCEPTIONS[exception]}")

    def fault(self, app=None, n=1, **kwargs):
        """Let faults happen, each seen by the application before the next."""
        app = app or self.app
        for _ in range(n):
            before = self.app_status(app).faults
            self.raise_on(app, **kwargs)
            wait_until(lambda: self.app_status(app).faults == before + 1, "the application saw its fault")

    def records(self, rpc=None):
        return (rpc or self.connect()).call("cores.list")["records"]


@test
def a_fault_becomes_a_record():
    with RuleScene(app=WAVES) as s:
        s.wait_watched()
        assert s.watched() == {s.app.pid: "all"}
        s.fault(exception="wave_memory_violation", queue=1)
        wait_until(lambda: s.rule()["recorded"] == 1, "recorded")
        record, = s.records()
        assert record["rule"] == "all" and record["reason"] == "exception" and record["pid"] == s.app.pid, record
        assert record["exception"] == "wave_memory_violation" and record["kernel"] == "spin", record
        assert ":" in record["location"] and record["count"] == 1, record
        info = s.rpc.call("cores.info", record=record["record"])["snapshot"]
        assert info["fault"]["rule"] == "all" and info["fault"]["exceptions"] == ["wave_memory_violation"], info["fault"]
        assert info["groups"][0]["kernel"]["name"] == "spin" and info["queues"]
        assert s.rule() == {"name": "all", "watching": 1, "matched": 1, "exceptions": 1, "recorded": 1, "duplicates": 0,
                            "limited": 0, "lost": 0}
        assert s.target_state()["suspended_queues"] == 0 and s.app_status().faults == 1


if __name__ == "__main__":
    main(__file__)
