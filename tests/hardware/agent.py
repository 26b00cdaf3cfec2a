# SPDX-License-Identifier: MIT
"""The daemon of the bundle and its client."""
import json
import os
import signal
import subprocess
import time

from harness import BIN, LONG_STOP, PatientRpc, Rpc, agent_children, monitor_of, status, wait_until

from engine import end_group


class Agent:
    number = 0

    def __init__(self, engine, lab, options=(), user_mode=True):
        Agent.number += 1
        self.engine, self.lab = engine, lab
        self.socket = engine.directory / f"agentd{Agent.number}.sock"
        self.err_path = engine.directory / f"agentd{Agent.number}.err"
        argv = [BIN / "gpu-agentd", "--socket", self.socket, "--verbose", *options]
        if user_mode:
            argv.append("--user")
        else:
            config = engine.directory / "agentd.conf"
            config.write_text("[agent]\nuser = nobody\nsocket_group =\n")
            argv += ["--config", config]
        if lab.libcuda:
            argv += ["--cuda-library", lab.libcuda]
        with open(self.err_path, "wb") as err:
            self.popen = engine.start(argv, lab.environment, keep=True, stdin=subprocess.DEVNULL, stdout=err, stderr=err)
        wait_until(self._listens, "the daemon listens", 10)
        if not user_mode:
            os.chmod(self.socket, 0o666)

    def _listens(self):
        assert self.popen.poll() is None, f"gpu-agentd exited {self.popen.returncode}: {self.log()[-500:]}"
        return f": ready on {self.socket}" in self.log()  # the socket is there before anybody listens

    def log(self):
        return self.err_path.read_text(errors="replace")

    # -- using it -------------------------------------------------------------------------------

    def ctl(self, verb, *argv, codes=(0,), seconds=25):
        # Only the rows of times are about how long it takes.
        patience = [LONG_STOP] if verb in ("snapshot", "dump") else []
        return self.engine.run(BIN / "gpu-agentctl", verb, *patience, *argv, codes=codes, seconds=seconds,
                               env={"GPU_AGENT_SOCKET": str(self.socket)})

    def json(self, *argv, **kwargs):
        return json.loads(self.ctl(*argv, "-j", **kwargs).out)

    def background(self, *argv):
        """A client that goes on: (process, path of its output)."""
        out = self.engine.directory / f"background{time.monotonic_ns()}"
        with open(out, "wb") as f:
            popen = self.engine.start([BIN / "gpu-agentctl", *argv], {"GPU_AGENT_SOCKET": str(self.socket)},
                                      stdin=subprocess.PIPE, stdout=f, stderr=f)
        return popen, out

    def rpc(self, patience=20, is_hurried=False):
        """is_hurried: with the stop budget that clients have who do not name one."""
        return (Rpc if is_hurried and not self.lab.simulated else PatientRpc)(self.socket, patience)

    # -- its processes --------------------------------------------------------------------------

    def front(self):
        return next(p for p in agent_children(self.popen.pid) if status(p).get("Name") == "gpu-agent-front")

    def workers(self):
        return [p for p in agent_children(self.popen.pid) if status(p).get("Name") == "gpu-agent-worke"]

    def victim(self, who):
        """Process id of `worker`, `front`, `monitor` or `manager`; None while there is none."""
        if who == "manager":
            return self.popen.pid
        if who == "monitor":
            return monitor_of(self.popen.pid)
        if who == "front":
            return self.front()
        workers = self.workers()
        return workers[-1] if workers else None

    @property
    def alive(self):
        return self.popen.poll() is None

    def stop(self):
        if self.alive:
            self.popen.send_signal(signal.SIGTERM)
            try:
                self.popen.wait(10)
            except subprocess.TimeoutExpired:
                end_group(self.popen)
