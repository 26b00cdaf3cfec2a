# SPDX-License-Identifier: MIT
"""An agent that has rules from its start on, a program that faults, and the records of that."""
import json
import pathlib
import signal
import time

from harness import EXCEPTIONS, PATIENCE, Scene, status, wait_until

DATA = pathlib.Path(__file__).resolve().parents[2] / "data/codeobj"
PARTIAL = 8
WAVES = f"runtime ttmp; load {DATA}/spin-gfx90a.co; queues 4; waves 1 memory 2 spin+16; spin"
# More than the socket to the store takes, even of a core without waves: faults go on when all is on its way.
LARGE = WAVES.replace("load", "load @LARGE@ memory; load")
PLAIN = "runtime on; queues 4; spin"
# Other tests may run CUDA processes at the same time: those are none of our business.
ALL = "[rule all]\ndevice = amd\nrate_limit = none\ndeduplicate = none\n"


class RuleScene(Scene):
    """A scene whose agent has rules from its start on."""

    def __init__(self, rules=ALL, store="", app=PLAIN, **kwargs):
        super().__init__(app=app, gpus="gfx90a", start_agent=False, **kwargs)
        if app == LARGE:
            large = self.directory / "large.co"
            large.write_bytes((DATA / "spin-gfx90a.co").read_bytes() + bytes(1 << 20))
            self.options = (app.replace("@LARGE@", str(large)), *self.options[1:])
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
        """Not by an agent or a worker that is about to go, nor by other people and to other things."""
        process = next((p for p in self.state()["processes"] if p["pid"] == pid), None)
        if process is None or not process["debugged"] or str(process["debugger"]) != status(pid).get("TracerPid"):
            return False
        wanted = 1 << EXCEPTIONS["wave_trap"] - 1
        return process["debugger"] in self.worker_pids() and int(process["enabled_mask"], 16) & wanted != 0

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

    def wait_counts(self, rule="all", **counts):
        """Front counts what a worker tells it, and that may be after the application has its fault."""
        wait_until(lambda: counts.items() <= (self.rule(rule) or {}).items(), f"rule {rule} has {counts}")

    def fault_until(self, enough, **kwargs):
        """Until enough(record, snapshot): a look has its time, and misses something when the machine stands still in it."""
        deadline = time.monotonic() + PATIENCE
        while True:
            before = self.rule()["recorded"]
            self.fault(**kwargs)
            wait_until(lambda: self.rule()["recorded"] == before + 1, "recorded")
            record = max(self.records(), key=lambda r: r["time_us"])
            seen = self.rpc.call("cores.info", record=record["record"])["snapshot"]
            if enough(record, seen):
                return record, seen
            assert time.monotonic() < deadline, (record, seen)
            time.sleep(3)  # a look is allowed again

    def records(self, rpc=None):
        return (rpc or self.rpc).call("cores.list")["records"]


def body(s, app=None):
    """The record of a process, when its core is there; at most one is written at a time."""
    found = [r for r in s.records() if r["pid"] == (app or s.app).pid and r["body"] == "present"]
    return found[-1] if found else None


def analyzed(s, name):
    """What gpu-agentctl reads in the core of a record."""
    core = s.directory / "core"
    done = s.ctl("cores", "export", name, "-o", core)
    assert done.returncode == 0, done
    done = s.ctl("analyze", core, "-j")
    core.unlink()
    seen = json.loads(done.stdout)
    # A look that took too long saw no waves, and that is told.
    assert done.returncode == (0 if seen["complete"] else PARTIAL), done
    return seen
