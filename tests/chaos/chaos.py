#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Deaths, stops, failing calls, full disks and starved descriptors at random, from one number: the seed.

usage: chaos.py [--seed N] [--seconds S | --deaths N] [--deadly K] [--targets N] [--clients N] [--verbose]

A round is some steps that do damage and a rest after which everything must be as if nobody had been there.  What is wrong then
is printed with the command that does the same again: the steps follow from the seed alone, their moments do not.
The judges are the simulator, the programs themselves and /proc, never the agent.
"""
import argparse
import contextlib
import ctypes
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
# pylint: disable=wrong-import-position
from harness import BIN, EXCEPTIONS, SLACK_S, AppStatus, Scene, agent_children, children_named, status  # noqa: E402

INVARIANTS = ("targets_are_free", "targets_live", "faults_arrive", "agent_answers", "descriptors_stay", "memory_stays",
              "store_is_whole")
# Longer than any lease that is asked for, and than a loaded machine needs to start an agent.
REST_S = 12 + 10 * SLACK_S
STEPS = 24
LEASE_MS = 1500
FDS_MORE = 6
FDS_OF_WORKER = 4
# Allocators keep some of what they had.
PSS_MORE_KIB = 6144 if not SLACK_S else 65536
STORE_BYTES = 4 << 20
OPS = ("enable", "disable", "send", "exceptions", "override", "launch-mode", "suspend", "resume", "watch", "unwatch", "flags",
       "query", "info", "queues", "devices")
# No kernel says of a watch point that it was not set when it was, nor twice that one is nobody's which is somebody's.
UNDO_OPS = ("disable", "send", "override", "launch-mode", "resume", "unwatch", "flags")
ERRORS = ("EIO", "EPERM", "EINVAL", "EBUSY", "EFAULT", "ENOMEM")
FAULTS = ("wave_trap", "wave_abort", "wave_memory_violation", "wave_illegal_instruction")
MS_NOSUID = 2
CONFIG = """[agent]
user = nobody
socket_group =
[rule chaos]
exe = */watched
keep = nothing
rate_limit = none
deduplicate = none
[rule records]
exe = */recorded
exceptions = wave_abort
"""


class Client:
    """Says what it likes and reads what it gets; it never waits."""

    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        self.buffer, self.sessions, self.reads, self.n = b"", [], True, 0
        self.gone = False
        try:
            self.sock.connect(str(path))
        except OSError:
            self.gone = True

    def say(self, method, **params):
        self.n += 1
        line = json.dumps({"jsonrpc": "2.0", "id": self.n, "method": method, "params": params})
        try:
            self.sock.sendall(line.encode() + b"\n")
        except OSError:
            self.gone = True

    def hear(self):
        """What has come; sessions are remembered."""
        with contextlib.suppress(BlockingIOError):
            try:
                while self.reads and not self.gone:
                    data = self.sock.recv(65536)
                    self.gone = not data
                    self.buffer += data
            except ConnectionError:
                self.gone = True
        *lines, self.buffer = self.buffer.split(b"\n")
        for line in lines:
            result = json.loads(line).get("result")
            if isinstance(result, dict) and isinstance(result.get("session"), str):
                self.sessions.append(result["session"])

    def close(self):
        self.sock.close()


class Target:
    """One program with queues, and how many faults it must have been told."""

    def __init__(self, scene, kind):
        program = scene.directory / kind
        if not program.exists():
            shutil.copy(BIN / "gpu-agent-simapp", program)
        scene.app_program = program
        self.process = scene.start_app("runtime on; queues 2; spin", extra=("--beat-us", "20000"))
        self.kind, self.pid = kind, self.process.pid
        self.status = AppStatus(self.process.status_file)
        self.rest()

    def rest(self):
        self.raised, self.told_before, self.excused = set(), self.status.faults, False


class Chaos(Scene):
    """One run."""

    def __init__(self, seed, targets=12, clients=20, deadly=1, verbose=False):
        super().__init__(app=None, gpus="gfx942,gfx1100", user_mode=False, start_agent=False)
        self.seed, self.deadly, self.verbose = seed, deadly, verbose
        self.random = random.Random(seed)
        self.targets_max, self.clients_max = targets, clients
        self.targets, self.dying, self.talkers, self.stopped = [], [], [], set()
        self.killed, self.doubts = set(), []
        self.starved, self.baseline = {}, {}
        self.wrong = {name: [] for name in INVARIANTS}
        self.rounds = self.steps = self.deaths = self.stops = 0
        self.by_name = {}

    # -- the beginning and the end ----------------------------------------------------------------

    def __enter__(self):
        self.cores.mkdir(0o700)
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mount(b"tmpfs", str(self.cores).encode(), b"tmpfs", MS_NOSUID, f"size={STORE_BYTES}".encode()):
            raise OSError(ctypes.get_errno(), "mount")
        shutil.chown(self.cores, "nobody")
        os.chmod(self.cores, 0o700)
        try:
            super().__enter__()
            (self.directory / "agentd.conf").write_text(CONFIG, encoding="ascii")
            self.start_agentd(user_mode=False)
            return self
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise

    def __exit__(self, *why):
        for talker in self.talkers:
            talker.close()
        self.let_go()
        ctypes.CDLL(None).umount2(str(self.cores).encode(), 2)
        # Programs whose tracer is gone end; what the agent printed belongs to the last round.
        super().__exit__(*why)

    def let_go(self):
        """Nobody is stopped or starved by us any more."""
        for pid in self.stopped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        self.stopped.clear()
        for pid, limits in self.starved.items():
            try:
                resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
            except ProcessLookupError:
                pass
            except PermissionError:
                # It has dropped its user since.  Where root has no CAP_SYS_RESOURCE, nobody can give it back what it had.
                self.kill(pid, status(pid).get("Name", "gone"))
        self.starved.clear()

    def say(self, text):
        if self.verbose:
            print(f"  {self.rounds}.{self.steps}: {text}", flush=True)

    def ours(self):
        """(pid, name) of every process of the agent, in an order that the seed can count on."""
        if self.agentd.popen.poll() is not None:
            return []
        pids = [self.agentd.pid, *agent_children(self.agentd.pid)]
        named = [(status(p).get("Name", ""), p) for p in pids]
        return [(p, name) for name, p in sorted(named) if name]

    # -- steps ---------------------------------------------------------------------------------------

    def start_target(self):
        if len(self.targets) < self.targets_max:
            kind = self.random.choice(("plain", "plain", "watched", "recorded"))
            self.targets.append(Target(self, kind))
            self.say(f"target {self.targets[-1].pid}, {kind}")

    def kill_target(self):
        if len(self.targets) > 1:
            target = self.targets.pop(self.random.randrange(len(self.targets)))
            os.kill(target.pid, signal.SIGKILL)
            self.count_death("a program")
            # While a tracer that is stopped has it, it stays a zombie.
            self.dying.append(target)
            self.say(f"target {target.pid} killed")

    def connect_one(self):
        if len(self.talkers) < self.clients_max:
            self.talkers.append(Client(self.socket))

    def hang_up(self):
        if self.talkers:
            self.talkers.pop(self.random.randrange(len(self.talkers))).close()

    def stop_reading(self):
        if self.talkers:
            self.random.choice(self.talkers).reads = False

    def talk(self):
        """Many words at once, of one client."""
        if not self.talkers:
            self.connect_one()
        talker = self.random.choice(self.talkers)
        for _ in range(self.random.randint(1, 6)):
            self.one_verb(talker)
        if talker.gone:
            self.talkers.remove(talker)
            talker.close()

    def one_verb(self, talker):
        r = self.random
        verb, number, pid = r.randrange(22), r.random(), r.choice(self.targets).pid if self.targets else 1
        talker.hear()
        session = {"session": talker.sessions[int(number * len(talker.sessions))] if talker.sessions else "s1"}
        verbs = (
            ("session.attach", {"pid": pid}), ("session.attach", {"pid": pid, "control": True}),
            ("session.detach", session), ("gpu.suspend", {**session, "lease_ms": 50 + int(number * LEASE_MS)}),
            ("gpu.resume", session), ("gpu.renew", {**session, "lease_ms": LEASE_MS}),
            ("gpu.snapshot", session), ("gpu.queues", session), ("launch.mode", {**session, "mode": "halt"}),
            ("launch.mode", {**session, "mode": "normal"}), ("gpu.flags", {**session, "flags": ["single_mem_op"]}),
            ("watchpoint.set", {**session, "address": "0x7f0000001000", "size": 4096}),
            ("exception.subscribe", {**session, "exceptions": list(FAULTS), "hold": number < 0.5, "look_ms": 0}),
            ("exception.forward", {**session, "exceptions": list(FAULTS)}), ("exception.query", session),
            ("core.begin", session), ("session.control", session), ("host.stacks", {"pid": pid}),
            ("process.list", {}), ("process.doctor", {"pid": pid}), ("cores.list", {}), ("agent.status", {}))
        talker.say(verbs[verb][0], **verbs[verb][1])

    def count_death(self, name):
        self.deaths += 1
        self.by_name[name] = self.by_name.get(name, 0) + 1

    def kill(self, pid, name):
        self.say(f"SIGKILL for {name} {pid}")
        self.excuse({pid})
        self.killed.add(pid)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            self.count_death(name)

    def kill_one(self):
        ours = self.ours()
        if ours:
            self.kill(*self.random.choice(ours))
        else:
            # As a service manager does; what is wrong then is seen at the rest.
            self.starts()

    def stop_one(self):
        ours = self.ours()
        if ours:
            pid, name = self.random.choice(ours)
            self.say(f"SIGSTOP for {name} {pid}")
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
                self.stopped.add(pid)
                self.stops += 1
                self.doubts += self.unread_by({pid})

    def continue_all(self):
        for pid in self.stopped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        self.stopped.clear()

    def fail_calls(self):
        r = self.random
        what, op = r.choice((("errno", OPS), ("late", UNDO_OPS), ("delay", OPS)))
        value, op = str(r.randint(1, 300)) if what == "delay" else r.choice(ERRORS), r.choice(op)
        if op == "unwatch" and value == "EINVAL":
            value = "EIO"
        line = f"{what} {op} {value} {r.randint(1, 3)}"
        self.say(line)
        self.control(line)

    def raise_fault(self):
        """One of each queue and round at most: the kernel keeps no count of what is there already."""
        if not self.targets:
            return
        target, exception, n = self.random.choice(self.targets), self.random.choice(FAULTS), self.random.randrange(2)
        queues = next((p["queues"] for p in self.state()["processes"] if p["pid"] == target.pid), [])
        if n < len(queues) and n not in target.raised:
            target.raised.add(n)
            self.say(f"{exception} for queue {queues[n]['id']} of {target.pid}")
            self.control(f"raise {target.pid} queue {queues[n]['id']} {EXCEPTIONS[exception]}")
            self.excuse(self.killed)
            self.doubts += self.unread_by(self.stopped)

    def unread_by(self, debuggers):
        """(target, debugger) where the kernel has exceptions that this debugger has not read."""
        by_pid = {target.pid: target for target in self.targets}
        return [(by_pid[p["pid"]], p["debugger"]) for p in self.state()["processes"]
                if p["debugger"] in debuggers and p["pid"] in by_pid and any(int(q["latched"], 16) for q in p["queues"])]

    def excuse(self, debuggers):
        """What the kernel has and no debugger has read is lost with the session: nobody can know of it, nor tell it."""
        for target, _ in self.unread_by(debuggers):
            target.excused = True

    def excuse_doubts(self):
        """The same for those that the agent has killed because they did not move."""
        for target, debugger in self.doubts:
            target.excused |= not status(debugger)
        self.doubts.clear()

    def fill_disk(self):
        """The store's disk has no room, until the round ends."""
        with contextlib.suppress(OSError), open(self.cores / "filler", "ab") as f:
            f.write(bytes(STORE_BYTES))

    def starve(self):
        ours = [p for p in self.ours() if p[0] not in self.starved]
        if ours:
            pid, name = self.random.choice(ours)
            with contextlib.suppress(OSError):
                n = len(os.listdir(f"/proc/{pid}/fd"))
                self.starved[pid] = resource.prlimit(pid, resource.RLIMIT_NOFILE)
                resource.prlimit(pid, resource.RLIMIT_NOFILE, (n + self.random.randint(0, 3), self.starved[pid][1]))
                self.say(f"{name} {pid} may have no more than {n} descriptors")

    def pause(self):
        time.sleep(self.random.random() * 0.1)

    STEPS = ((start_target, 3), (kill_target, 1), (connect_one, 4), (hang_up, 2), (stop_reading, 1), (talk, 14), (kill_one, 3),
             (stop_one, 2), (continue_all, 2), (fail_calls, 3), (raise_fault, 4), (fill_disk, 1), (starve, 1), (pause, 4))

    DEADLY = (start_target, kill_target, kill_one, stop_one, continue_all)

    # -- a rest, and what must be so ------------------------------------------------------------------

    def rest(self):
        """Nothing is done to anybody any more; an agent that has ended is started, as its service manager does."""
        self.excuse(self.stopped)  # a worker that does not move is killed by the agent
        for talker in self.talkers:
            talker.close()
        self.talkers.clear()
        self.control("release")
        self.excuse_doubts()
        self.let_go()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.cores / "filler")
        if self.agentd.popen.poll() is None:
            self.wait_for_agent()
        if self.agentd.popen.poll() is not None:
            self.must("agent_answers", self.eventually(self.starts), f"it does not start: {self.last_words()}")

    def starts(self):
        """False while what is left of the one before still listens."""
        try:
            self.start_agentd(user_mode=False)
            return True
        except AssertionError:
            return False

    def wait_for_agent(self):
        """A part that has died takes the rest along, or has not been missed."""
        deadline = time.monotonic() + REST_S
        while self.agentd.popen.poll() is None and time.monotonic() < deadline:
            if self.answers():
                return
            time.sleep(0.05)

    def answers(self):
        try:
            return self.ctl("status", "--timeout", "3s", patience=10).returncode == 0
        except subprocess.TimeoutExpired:
            return False

    def serves(self):
        """It may answer once more before it notices that a part has died, and end then."""
        if self.agentd.popen.poll() is not None and not self.starts():
            return False
        return self.answers()

    def truth(self, target, state):
        process = next((p for p in state["processes"] if p["pid"] == target.pid), None)
        if not process:
            return {"gone": True}
        found = {"suspended": [q["id"] for q in process["queues"] if q["suspended"]],
                 "launch_mode": [d["launch_mode"] for d in process["devices"] if d["launch_mode"]],
                 "override": [d["override"] for d in process["devices"] if int(d["override"], 16)],
                 "flags": process["flags"],
                 "watch": [w["id"] for g in state["gpus"] for w in g["watch"] if w["pid"] == target.pid],
                 "handshake": [c["tid"] for c in state["pending"] if c["wait"] == "runtime" and c["target"] == target.pid],
                 "stopped": [t for t in os.listdir(f"/proc/{target.pid}/task")
                             if status(f"{target.pid}/task/{t}").get("State", "gone")[0] in "tT"]}
        # A rule's session stays; everybody else's has ended.
        if target.kind == "plain":
            found["debugged"] = process["debugged"]
            found["tracer"] = int(status(target.pid).get("TracerPid", "0"))
        return {name: value for name, value in found.items() if value}

    def is_free(self):
        state = self.state()
        return all(not self.truth(t, state) for t in self.targets if t.process.popen.poll() is None)

    def faults_lost(self):
        return [(t.pid, len(t.raised), t.status.faults - t.told_before) for t in self.targets
                if t.process.popen.poll() is None and t.status.faults - t.told_before < len(t.raised) and not t.excused]

    def eventually(self, condition):
        deadline = time.monotonic() + REST_S
        while not condition():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        return True

    def must(self, invariant, good, text):
        if not good:
            self.wrong[invariant].append(f"round {self.rounds}: {text}")
            print(f"  seed {self.seed}, round {self.rounds}: {invariant}: {text}\n  again: "
                  f"tests/chaos/chaos.py --seed {self.seed} --deadly {self.deadly} --targets {self.targets_max} "
                  f"--clients {self.clients_max} --seconds 600 --verbose", flush=True)

    def check(self):
        dead = [t for t in self.targets if t.process.popen.poll() is not None]
        self.must("targets_live", not dead, f"ended: {[(t.pid, t.process.popen.returncode) for t in dead]}")
        self.targets = [t for t in self.targets if t not in dead]
        self.must("agent_answers", self.eventually(self.serves), f"gpu-agentctl status: {self.last_words()}")
        held = not self.eventually(lambda: all(t.process.popen.poll() is not None for t in self.dying))
        self.must("targets_are_free", not held, f"killed, and not let go: {[t.pid for t in self.dying]}")
        self.dying.clear()
        free = self.eventually(self.is_free)
        self.must("targets_are_free", free, str([(t.pid, t.process.name, self.truth(t, self.state())) for t in self.targets
                                                 if self.truth(t, self.state())]))
        arrived = self.eventually(lambda: not self.faults_lost())
        self.must("faults_arrive", arrived, f"(pid, raised, told): {self.faults_lost()}")
        self.check_store()
        self.check_size()
        for target in self.targets:
            target.rest()

    def last_words(self):
        return self.agentd.err()[-600:]

    def check_store(self):
        done = self.ctl("cores", "list", "-j", patience=30)
        if done.returncode:  # an agent that has just noticed a death, and ends
            self.must("agent_answers", self.eventually(self.serves), f"gpu-agentctl status: {self.last_words()}")
            done = self.ctl("cores", "list", "-j", patience=30)
        good = done.returncode == 0
        with contextlib.suppress(ValueError):
            good = good and isinstance(json.loads(done.stdout), dict)
        self.must("store_is_whole", good, f"cores list: {done.returncode} {done.stderr[-400:]}")
        left = [p.name for p in self.cores.rglob("*") if p.is_file() and p.name.startswith(".tmp")]
        self.must("store_is_whole", not left, f"left behind: {left}")

    def check_size(self):
        """What each process that stays had at its first rest is what it may have at each other one."""
        for pid, name in self.ours():
            if name == "gpu-agent-worker"[:15]:
                continue
            with contextlib.suppress(OSError, IndexError):
                text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
                pss = int(next(line for line in text.splitlines() if line.startswith("Pss:")).split()[1])
                first = self.baseline.setdefault(pid, (name, sum(self.open_files(pid).values()), pss))
                self.must("descriptors_stay", self.eventually(lambda p=pid, n=first[1]: self.has_few(p, n)),
                          f"{name} {pid}: {first[1]} at first, now {self.open_files(pid)}")
                self.must("memory_stays", pss <= first[2] + PSS_MORE_KIB, f"{name} {pid}: {first[2]} KiB, now {pss}")

    def has_few(self, pid, first):
        """As at first, and some for each worker that there is."""
        workers = len(children_named(self.agentd.pid, "gpu-agent-worker"))
        return sum(self.open_files(pid).values()) <= first + FDS_MORE + FDS_OF_WORKER * workers

    def open_files(self, pid):
        kinds = {}
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                kind = os.readlink(f"/proc/{pid}/fd/{fd}").split(":[")[0]
                kinds[kind] = kinds.get(kind, 0) + 1
        return kinds

    def round(self):
        self.rounds += 1
        kinds, weights = zip(*((kind, weight * (self.deadly if kind in self.DEADLY else 1)) for kind, weight in self.STEPS))
        for step in self.random.choices(kinds, weights, k=STEPS):
            self.steps += 1
            step(self)
        self.rest()
        self.check()

    def run(self, seconds=None, deaths=None):
        begun = time.monotonic()
        for _ in range(3):
            self.start_target()
        while (time.monotonic() - begun < seconds) if deaths is None else (self.deaths < deaths):
            self.round()

    def summary(self):
        dead = ", ".join(f"{n} {name}" for name, n in sorted(self.by_name.items()))
        return (f"seed {self.seed}: {self.rounds} rounds, {self.steps} steps, {self.deaths} deaths ({dead}), {self.stops} stops, "
                f"{sum(map(len, self.wrong.values()))} violations")


def main():
    parser = argparse.ArgumentParser(description="Random damage to the agent on the simulator, from a seed.")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31))
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--deaths", type=int)
    parser.add_argument("--deadly", type=int, default=1, help="so many times as many kills and stops")
    parser.add_argument("--targets", type=int, default=12)
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    with Chaos(options.seed, options.targets, options.clients, options.deadly, options.verbose) as chaos:
        chaos.run(options.seconds, options.deaths)
        print(chaos.summary())
        return 1 if any(chaos.wrong.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
