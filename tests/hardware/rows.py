# SPDX-License-Identifier: MIT
"""All steps in their order: what tells most comes first, for the run may be cut."""
import shutil

import facts
import rows_core
import rows_kill
import rows_look
import rows_measure
import rows_values
from agent import Agent
from engine import Cut, Engine, Skipped
from programs import Lab


class Bench:
    """What the steps share."""

    def __init__(self, engine, lab, simulated):
        self.engine, self.lab, self.simulated = engine, lab, simulated
        self.agent = None
        self.options = []  # of the daemon
        self.no_session = ""  # why the last attempt to attach failed
        engine.context = lambda: self.agent.log() if self.agent else ""

    def step(self, *args, **kwargs):
        return self.engine.step(*args, **kwargs)

    def need_session(self):
        """What cannot be seen says nothing of the rows that would see it."""
        if self.no_session:
            raise Skipped(f"no session: {self.no_session}")

    def start_agent(self):
        """A daemon that is well; a new one where the last is not."""
        if not self.agent or not self.agent.alive:
            self.agent = Agent(self.engine, self.lab, self.options)
        return self.agent

    def be_permissive(self):
        """Where the sandbox keeps the driver from a session, what a session would show can still be seen."""
        self.stop_agent()
        self.options = ["--permissive"]
        self.engine.fact("daemon", "started with --permissive, for its sandbox as it is does not do here")

    def stop_agent(self):
        if self.agent:
            self.agent.stop()
            self.engine.trace("log of the daemon", self.agent.log())
            self.agent = None


def environment(b):
    """False when nothing further can be done."""
    e = b.engine
    fine = e.step("C library and Python", "", facts.runtime, e)
    e.step("kernel", "", facts.kernel, e)
    e.step("rights and container", "", facts.container, e)
    fine &= e.step("ptrace", "", facts.ptrace, e)
    if not b.simulated:
        fine &= e.step("driver", "", facts.driver, e)
        e.step("debug engine", "", facts.debug_engine, e)
        e.step("GPUs", "", facts.smi, e, seconds=30)
        e.step("others on the GPUs", "", facts.others, e)
        e.step("compiler", "", facts.compiler, e)
    e.step("cuda-gdb", "", facts.debugger, e)
    return fine and e.step("programs", "", b.lab.prepare, seconds=100)


def everything(b):
    if not environment(b):
        lacking = "; ".join(f"{r[0]}: {r[4]}" for r in b.engine.rows if r[2] == "FAIL")
        b.engine.row("everything else", "", "SKIP", 0, f"missing: {lacking or 'time'}"[:300])
        return
    # Without daemon and sandbox: tells whether what fails later is ours or the machine's.
    rows_measure.first(b)
    if not b.step("daemon starts", "", lambda: f"pid {b.start_agent().popen.pid}"):
        b.engine.row("everything else", "", "SKIP", 0, "missing: a daemon")
        return
    rows_look.program(b, "spin")
    rows_values.planted(b)
    rows_look.program(b, "diverge")
    rows_look.program(b, "fault")
    rows_core.cores(b)
    rows_values.beside_cuda_gdb(b)
    rows_look.stages(b)
    rows_kill.kills(b)
    rows_look.other_user(b)
    rows_measure.sequences(b)
    rows_measure.times(b)
    b.step("messages of the kernel", "", facts.kernel_log, b.engine)


def run_all(bundle, options):
    engine = Engine(options.seconds, options.log)
    if engine.trace_path.exists():
        engine.trace_path.unlink()
    lab = Lab(engine, options.simulated)
    b = Bench(engine, lab, bool(options.simulated))
    engine.fact("bundle", (bundle / "VERSION").read_text().strip() if (bundle / "VERSION").exists() else "unknown")
    engine.fact("simulated", "yes: nothing here was seen on a GPU" if options.simulated else "no")
    try:
        everything(b)
    except Cut:
        pass
    finally:
        # The end of the total time must not keep this from being done.
        with engine.final(8):
            b.stop_agent()
            lab.end()
        with engine.final(4):
            engine.end_kept()
            shutil.rmtree(engine.directory, ignore_errors=True)
        code = engine.finish()
    return code
