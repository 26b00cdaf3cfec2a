# SPDX-License-Identifier: MIT
"""All steps in their order."""
import shutil

import facts
import rows_kill
import rows_look
import rows_measure
from agent import Agent
from engine import Engine
from programs import Lab


class Bench:
    """What the steps share."""

    def __init__(self, engine, lab, simulated):
        self.engine, self.lab, self.simulated = engine, lab, simulated
        self.agent = None
        engine.context = lambda: self.agent.log() if self.agent else ""

    def step(self, *args, **kwargs):
        return self.engine.step(*args, **kwargs)

    def start_agent(self):
        """A daemon that is well; a new one where the last is not."""
        if not self.agent or not self.agent.alive:
            self.agent = Agent(self.engine, self.lab)
        return self.agent

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
        e.step("GPUs", "", facts.smi, e, seconds=45)
        fine &= e.step("compiler", "", facts.compiler, e)
        e.step("cuda-gdb", "", facts.debugger, e)
    return fine and e.step("programs", "", b.lab.prepare, seconds=200)


def everything(b):
    if not environment(b):
        b.engine.row("everything else", "", "SKIP", 0, "something above is missing")
        return
    if not b.step("daemon starts", "", lambda: f"pid {b.start_agent().popen.pid}"):
        return
    for name in ("spin", "diverge", "fault"):
        rows_look.program(b, name)
    rows_look.stages(b)
    rows_measure.sequences(b)
    rows_measure.times(b)
    rows_look.other_user(b)
    rows_kill.kills(b)


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
    finally:
        # The end of the total time must not keep this from being done.
        with engine.final(20):
            b.stop_agent()
            lab.end()
            shutil.rmtree(engine.directory, ignore_errors=True)
        code = engine.finish()
    return code
