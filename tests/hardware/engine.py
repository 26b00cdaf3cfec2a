# SPDX-License-Identifier: MIT
"""Steps with a deadline each, one table, one log: whatever happens, the table comes out, and as far as it is, it is there."""
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback

LOG_MAX = 1 << 20
TRACE_MAX = 2 << 20
TAIL = 2000
# What a step needs at least, where it does not say; what is kept for cleaning up and the last words.
NEEDS = 2
RESERVE = 15


class Skipped(Exception):
    """This step cannot be done here, and why."""


class StepTimeout(Exception):
    """The step's time is over."""


class Cut(BaseException):
    """Somebody ends the whole run; no step may take it for a failure of its own."""


class CommandFailed(AssertionError):
    """A command ended otherwise than it should; its text is what it said."""


def tail(text, size=TAIL):
    return text if len(text) <= size else "[...]" + text[-size:]


class Done:
    """A finished command."""

    def __init__(self, argv, code, out, err, ms):
        self.argv, self.code, self.out, self.err, self.ms = argv, code, out, err, ms

    def __str__(self):
        return (f"$ {' '.join(self.argv)}\nexit {self.code} after {self.ms} ms\n"
                f"--- stdout\n{tail(self.out)}\n--- stderr\n{tail(self.err)}")


def end_group(popen):
    """End a process that run() or a program started, and its children; never waits long."""
    with contextlib.suppress(OSError):
        os.killpg(popen.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        popen.wait(2)


def end_all(popens):
    while popens:
        popen = popens.pop()
        if popen.poll() is None:
            end_group(popen)


class Engine:
    def __init__(self, seconds, log):
        self.began = time.monotonic()
        self.seconds = seconds
        self.end = self.began + seconds - min(RESERVE, seconds / 10)
        self.log_path = pathlib.Path(log)
        try:
            # Not only after eight minutes.
            self.log_path.parent.mkdir(parents=True, exist_ok=True)
            self.log_path.open("ab").close()
        except OSError as error:
            sys.exit(f"gpu-check: {log}: {error.strerror}; name a file that can be written with --log")
        self.trace_path = self.log_path.with_suffix(".trace")
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="gpu-check."))
        os.chmod(self.directory, 0o755)
        self.rows = []      # (step, program, result, ms, detail)
        self.sections = []  # (title, text)
        self.facts = {}     # what was measured
        self.commands = []  # of the step under way
        self.context = lambda: ""  # tail of the daemon's log
        self.of_step = []   # processes that end with the step under way
        self.kept = []      # those that end with the run
        self.under_way = ""  # its name
        self.ended_by = ""  # signal that cut the run
        self.is_finished = False
        signal.signal(signal.SIGALRM, self._alarm)
        self.handlers = {number: signal.signal(number, self._cut) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
        self._watchdog = threading.Thread(target=self._watch, args=(seconds,), daemon=True)
        self._watchdog.start()

    def retire(self):
        """Leave a process that goes on, as a test does, as it was."""
        self.is_finished = True
        for number, handler in self.handlers.items():
            signal.signal(number, handler)
        self.end_kept()
        shutil.rmtree(self.directory, ignore_errors=True)

    # -- time -----------------------------------------------------------------------------------

    def left(self):
        return self.end - time.monotonic()

    def _alarm(self, *_):
        raise StepTimeout()

    def _cut(self, number, _frame):
        """The table as far as it is comes first: whoever sent this may not wait."""
        for other in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(other, signal.SIG_IGN)
        self.ended_by = signal.Signals(number).name
        self._save()
        raise Cut(self.ended_by)

    def _watch(self, seconds):
        """Should even the interpreter's main thread be stuck in the kernel."""
        time.sleep(seconds)
        if self.is_finished:
            return
        self.rows.append(("whole run", "", "FAIL", int(seconds * 1000), f"stuck in {self.under_way or 'cleaning up'}; given up"))
        with contextlib.suppress(Exception):  # the main thread may end them as well
            self.end_kept()
        self.finish(hard=True)

    @contextlib.contextmanager
    def _deadline(self, seconds):
        # Again and again: what cleans up may hang as well.
        signal.setitimer(signal.ITIMER_REAL, seconds, 3)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    @contextlib.contextmanager
    def bounded(self, seconds):
        """Between steps: StepTimeout after so long."""
        with self._deadline(seconds):
            yield

    @contextlib.contextmanager
    def final(self, seconds):
        """For cleaning up: bounded, and its failure is no failure."""
        try:
            with self._deadline(seconds):
                yield
        except Exception as error:  # whatever it is, the table comes next
            self.section("cleaning up", repr(error))

    # -- steps ----------------------------------------------------------------------------------

    def step(self, name, program, function, *args, seconds=30, needs=NEEDS):
        """Run function(*args); what it returns is the row's detail.  Raises nothing but the end of the whole run.

        seconds: its deadline; needs: what it takes when all is well, without which it is not begun.
        """
        began = time.monotonic()
        self.commands = []
        self.under_way = f"{name} {program}".rstrip()
        deadline = min(seconds, self.left())
        try:
            if self.left() < needs:
                raise Skipped(f"out of time: {max(self.left(), 0):.0f} s are left, {needs:g} s are needed")
            if seconds > 20:
                self._save()
            with self._deadline(deadline):
                detail = function(*args)
            result, detail = "PASS", "" if detail is None else str(detail)
        except Skipped as reason:
            result, detail = "SKIP", str(reason)
        except StepTimeout:
            result, detail = "FAIL", f"not within {deadline:.0f} s"
            self._explain(name, program, detail)
        except Cut:
            self.row(name, program, "SKIP", int((time.monotonic() - began) * 1000), f"cut by {self.ended_by}")
            raise
        except Exception as error:  # a step may fail in any way
            result, detail = "FAIL", f"{str(error) or type(error).__name__}".splitlines()[0]
            self._explain(name, program, traceback.format_exc())
        end_all(self.of_step)
        self.row(name, program, result, int((time.monotonic() - began) * 1000), detail)
        return result == "PASS"

    def row(self, name, program, result, ms, detail):
        self.under_way = ""
        self.rows.append((name, program, result, ms, detail))
        self._say(self._line(self.rows[-1]))
        self._save()

    def _explain(self, name, program, what):
        last = self.commands[-1:] or ["(no command)"]
        parts = [what.rstrip()] + [str(c) for c in last]
        context = self.context()
        if context:
            parts.append("--- the daemon's log\n" + tail(context, 4000))
        text = "\n".join(parts)
        self.section(f"FAIL {name} {program}".rstrip(), text)
        shown = [what.rstrip().splitlines()[-1], str(last[0])] + context.splitlines()[-8:]
        self._say("\n".join(f"    | {line}" for part in shown for line in tail(part, 800).splitlines()))

    @staticmethod
    def _say(text):
        """To whoever still listens: a terminal that is gone is no reason to end."""
        with contextlib.suppress(OSError):
            print(text)
            sys.stdout.flush()

    def section(self, title, text):
        self.sections.append((title, text))

    def fact(self, name, value):
        self.facts[name] = value

    # -- commands -------------------------------------------------------------------------------

    def start(self, argv, env=None, keep=False, **kwargs):
        """Start a process in a group of its own, which ends with the step at the latest, unless it is kept."""
        popen = subprocess.Popen([str(a) for a in argv], start_new_session=True, env={**os.environ, **(env or {})}, **kwargs)
        (self.kept if keep else self.of_step).append(popen)
        return popen

    def end_kept(self):
        """Whoever did not end when asked; programs before the daemon that may hold them."""
        end_all(self.of_step)
        end_all(self.kept)

    def run(self, *argv, seconds=20, env=None, codes=(0,), **kwargs):
        """Run a command to its end or its deadline; never waits longer."""
        argv = [str(a) for a in argv]
        out = self.directory / "command.out"
        err = self.directory / "command.err"
        began = time.monotonic()
        with open(out, "wb") as o, open(err, "wb") as e:
            popen = self.start(argv, env, stdin=subprocess.DEVNULL, stdout=o, stderr=e, **kwargs)
            try:
                popen.wait(seconds)
            except subprocess.TimeoutExpired:
                pass
            finally:
                if popen.poll() is None:
                    end_group(popen)
                    code = "time is up, killed"
                else:
                    code = popen.returncode
                done = Done(argv, code, out.read_text(errors="replace"), err.read_text(errors="replace"),
                            int((time.monotonic() - began) * 1000))
                self.commands.append(done)
        if codes is not None and code not in codes:
            said = (done.err.strip() or done.out.strip() or "no output").splitlines()[-1]
            raise CommandFailed(f"{pathlib.Path(argv[0]).name} {argv[1] if len(argv) > 1 else ''}: exit {code}: {said}")
        return done

    # -- the end --------------------------------------------------------------------------------

    @staticmethod
    def _line(row):
        name, program, result, ms, detail = row
        return f"{name:<34} | {program:<8} | {result:<4} | {ms:>6} | {detail}"

    def table(self):
        head = f"{'step':<34} | {'program':<8} | {'result':<6} | {'ms':>4} | detail"
        return "\n".join([head, "-" * len(head)] + [self._line(r) for r in self.rows])

    def totals(self):
        n = {kind: sum(r[2] == kind for r in tuple(self.rows)) for kind in ("PASS", "FAIL", "SKIP")}
        return f"{n['PASS']} passed, {n['FAIL']} failed, {n['SKIP']} skipped"

    def _log(self):
        parts = [self.table()]
        if not self.is_finished or self.ended_by:
            parts += [f"NOT COMPLETE: ended by {self.ended_by}" if self.ended_by else
                      f"NOT COMPLETE: this was written after {time.monotonic() - self.began:.0f} s" +
                      (f", before {self.under_way} was done" if self.under_way else "")]
        parts += [self.totals(), ""]
        if self.facts:
            parts += ["=== measured"] + [f"{k}: {v}" for k, v in self.facts.items()] + [""]
        for title, text in self.sections:
            parts += [f"=== {title}", text.rstrip(), ""]
        return "\n".join(parts)

    def _write_log(self):
        data = self._log().encode(errors="replace")
        if len(data) > LOG_MAX:
            data = data[:LOG_MAX - 40] + b"\n[... the rest is left out]\n"
        # Whoever reads it, and whoever kills us meanwhile, has the old one or the new one.
        new = self.log_path.with_name(self.log_path.name + ".new")
        new.write_bytes(data)
        os.replace(new, self.log_path)

    def _save(self):
        with contextlib.suppress(OSError):
            self._write_log()

    def trace(self, title, data):
        """Append to the file of traces, up to its limit."""
        room = TRACE_MAX - (self.trace_path.stat().st_size if self.trace_path.exists() else 0)
        text = f"=== {title}\n{data}\n".encode(errors="replace")
        if room > 0:
            with contextlib.suppress(OSError), open(self.trace_path, "ab") as f:
                f.write(text[:room])

    def finish(self, hard=False):
        """Write the log, print the last line, say how it went."""
        self.is_finished = True
        self.fact("seconds", f"{time.monotonic() - self.began:.0f} of {self.seconds:.0f}")
        try:
            self._write_log()
            self._say(f"log: {self.log_path}")
        except OSError as error:
            self._say(f"log: {self.log_path}: {error.strerror}; what it would have said:\n{self._log()}")
        self._say(self.totals())
        code = 1 if self.ended_by or any(r[2] == "FAIL" for r in self.rows) else 0
        if hard:
            os._exit(code)
        return code
