#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Hooks: what they find, where they are stopped, which files are run, who becomes whom.

The engine is run by hooks_probe, as gpu-agentd runs it."""
import contextlib
import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from unittest import SkipTest

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from harness import BIN, PATIENCE, Rpc, Scene, as_user, hook_directory, need_root, wait_until

PROBE = BIN.parent / "tests" / "hooks_probe"
RUNNER = BIN / "gpu-agent-hook"
PYTHON = os.path.realpath("/usr/bin/python3")
ANNA, BERT = 54101, 54102

ABOUT = """import json, os, resource, sys
status = dict(l.split(":", 1) for l in open("/proc/self/status").read().splitlines())
mask = os.umask(0)
print(json.dumps({
    "env": dict(os.environ), "fds": sorted(int(f) for f in os.listdir("/proc/self/fd"))[:-1], "cwd": os.getcwd(),
    "umask": mask, "session": os.getsid(0) == os.getpid(), "uids": status["Uid"].split(), "gids": status["Gid"].split(),
    "groups": sorted(os.getgroups()), "nnp": status["NoNewPrivs"].strip(), "blocked": status["SigBlk"].strip(),
    "ignored": int(status["SigIgn"].strip(), 16), "caps": [status[c].strip() for c in ("CapInh", "CapPrm", "CapEff", "CapAmb")],
    "core": resource.getrlimit(resource.RLIMIT_CORE), "memory": resource.getrlimit(resource.RLIMIT_AS),
    "oom": int(open("/proc/self/oom_score_adj").read()),
    "document": sys.stdin.read() if len(sys.argv) == 1 and sys.argv[0] != "-" else None}))
"""


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Place:
    """A directory that only root can write to, with hooks in it."""

    def __enter__(self):
        self.directory = hook_directory()
        self.path = self.directory.__enter__()
        # Where hooks of any user can leave what a test wants to know.
        self.notes = pathlib.Path(tempfile.mkdtemp(prefix="gpu-agent-notes."))
        os.chmod(self.notes, 0o777)
        self.started = []
        return self

    def __exit__(self, *_):
        for process in self.started:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            process.wait()
            process.stdout.close()
        self.directory.__exit__(None, None, None)
        shutil.rmtree(self.notes)

    def write(self, text, name="hook", mode=0o755, owner=0):
        path = self.path / name
        path.write_text(text)
        os.chown(path, owner, owner)
        os.chmod(path, mode)
        return path

    def sh(self, text, **kwargs):
        return self.write("#!/bin/sh\n" + text + "\n", **kwargs)

    def python(self, text, **kwargs):
        return self.write(f"#!{PYTHON}\n" + text, **kwargs)

    def start(self, hook, *words, uid=ANNA, **options):
        argv = [PROBE, "--program", RUNNER, "--hook", hook, "--uid", uid, "--gid", uid]
        for name, value in options.items():
            argv += [f"--{name}"] if value is True else [f"--{name}", value]
        process = subprocess.Popen([str(a) for a in (*argv, *words)], stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, text=True)
        self.started.append(process)
        return process

    def reports(self, hook, *words, **options):
        process = self.start(hook, *words, **options)
        out, _ = process.communicate(timeout=3 * PATIENCE)
        assert process.returncode == 0, out
        return [json.loads(line) for line in out.splitlines()]

    def run(self, hook, *words, **options):
        report, = self.reports(hook, *words, **options)
        return report

    def timed_out(self, hook, enough, **options):
        """One that is ended at its deadline; where the machine stands still it needs more time to get that far."""
        for ms in (300, 3000, 15000):
            report = self.run(hook, timeout=f"{ms}ms", **options)
            assert report["end"] == "timeout" and report["duration_us"] >= 1000 * ms, report
            if enough(report):
                return
        raise AssertionError(report)

    def about(self, hook, *words, **options):
        report = self.run(hook, *words, **options)
        assert (report["end"], report["status"]) == ("exit", 0), report
        return json.loads(report["output"])

    def note(self, name):
        """What a hook has written there."""
        return int(wait_until(lambda: (self.notes / name).exists() and (self.notes / name).read_text().strip(), name))


# -- what a hook finds ----------------------------------------------------------------------------

def check_surroundings(got, uid):
    assert got["cwd"] == "/" and got["umask"] == 0o077 and got["session"], got
    assert got["uids"] == [str(uid)] * 4 and got["nnp"] == "1", got
    assert set(got["caps"]) == {"0" * 16}, got
    assert int(got["blocked"], 16) == 0 and got["core"] == [0, 0], got
    # What Python ignores by itself: SIGPIPE and SIGXFSZ.
    assert got["ignored"] & ~(1 << signal.SIGPIPE - 1 | 1 << signal.SIGXFSZ - 1) == 0, got


def test_a_script_gets_a_clean_environment_and_the_document():
    with Place() as p:
        os.environ["GPU_AGENT_SECRET"] = os.environ["LD_LIBRARY_PATH"] = "/nowhere"
        try:
            (p.notes / "document").write_text('{"waves": 3}')
            got = p.about(p.python(ABOUT), "GPU_AGENT_KERNEL=spin\n(float)", "GPU_AGENT_PID=1", document=p.notes / "document")
        finally:
            del os.environ["GPU_AGENT_SECRET"], os.environ["LD_LIBRARY_PATH"]
        check_surroundings(got, ANNA)
        # Descriptor 3 is the script itself: its interpreter reads it from there.
        assert got["fds"] in ([0, 1, 2], [0, 1, 2, 3]), got["fds"]
        assert got["document"] == '{"waves": 3}' and got["groups"] == [], got
        got["env"].pop("LC_CTYPE", None)  # Python's own
        assert got["env"] == {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin", "LANG": "C.UTF-8",
                              "GPU_AGENT_HOOK": str(p.path / "hook"), "GPU_AGENT_RULE": "probe", "GPU_AGENT_PID": "4242",
                              "GPU_AGENT_UID": str(ANNA), "GPU_AGENT_KERNEL": "spin?(float)"}, got["env"]


@contextlib.contextmanager
def oom_score(value):
    """What is started meanwhile inherits it, as from a service with OOMScoreAdjust=."""
    path = pathlib.Path("/proc/self/oom_score_adj")
    before = path.read_text()
    try:
        path.write_text(str(value))
    except PermissionError:
        raise SkipTest("no CAP_SYS_RESOURCE") from None
    try:
        yield
    finally:
        path.write_text(before)


def test_a_hook_is_not_spared_when_memory_runs_out():
    """The service's -100 stays with the agent; who is rather to go stays that."""
    with Place() as p:
        for mine, hooks in ((0, 0), (200, 200), (-100, 0)):  # only root of the machine itself may ask for the last
            with oom_score(mine):
                assert p.about(p.python(ABOUT))["oom"] == hooks, (mine, hooks)


def test_a_binary_gets_three_descriptors_and_no_more():
    with Place() as p:
        (p.notes / "program").write_text(ABOUT)
        got = p.about(PYTHON, document=p.notes / "program")
        check_surroundings(got, ANNA)
        assert got["fds"] == [0, 1, 2], got["fds"]


def test_a_user_of_the_machine_has_his_groups_and_home():
    with Place() as p:
        import pwd
        daemon = pwd.getpwnam("daemon")
        got = p.about(p.python(ABOUT), user="daemon")
        check_surroundings(got, daemon.pw_uid)
        assert got["gids"] == [str(daemon.pw_gid)] * 4 and got["env"]["USER"] == got["env"]["LOGNAME"] == "daemon", got
        assert got["env"]["HOME"] == daemon.pw_dir, got
        assert set(got["groups"]) == set(os.getgrouplist("daemon", daemon.pw_gid)), got


def test_a_large_document_arrives_whole_for_everybody():
    with Place() as p:
        data = os.urandom(3 << 20).hex().encode() * 4
        (p.notes / "document").write_bytes(data)
        want = hashlib.sha256(data).hexdigest()
        for report in p.reports(p.sh("sha256sum; wc -c </proc/self/fd/0"), document=p.notes / "document", count=3):
            assert report["output"].split()[0] == want, report


# -- how it ends ----------------------------------------------------------------------------------

def test_the_outcome_is_told():
    with Place() as p:
        for text, end, status in (("exit 0", "exit", 0), ("exit 7", "exit", 7), ("kill -SEGV $$", "signal", 11),
                                  ("kill -KILL $$", "signal", 9)):
            report = p.run(p.sh(text))
            assert (report["end"], report["status"]) == (end, status), report
        report = p.run(p.sh("echo out; echo err >&2; exit 1"))
        assert report["output"] == "out\nerr\n" and report["output_total"] == 8, report


def test_a_hook_that_hangs_is_ended():
    with Place() as p:
        p.timed_out(p.sh("echo begun; sleep 600"), lambda report: report["output"] == "begun\n")
        p.timed_out(p.sh("trap '' TERM HUP INT; echo deaf; while :; do sleep 1; done"),
                    lambda report: report["output"] == "deaf\n")
        # What it does with SIGTERM does not turn the deadline into a success.
        p.timed_out(p.sh("trap 'echo bye; exit 0' TERM; while :; do sleep 0.05; done"),
                    lambda report: report["output"].endswith("bye\n"))


DAEMON = """import os, sys, time
def note(name):
    with open(NOTES + name + ".new", "w") as f:
        f.write(str(os.getpid()))
    os.rename(NOTES + name + ".new", NOTES + name)
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    os.closerange(0, 256)
    if os.fork() == 0:
        note("second")
        time.sleep(600)
    note("first")
    time.sleep(600)
while not (os.path.exists(NOTES + "first") and os.path.exists(NOTES + "second")):
    time.sleep(0.01)
"""


# Its daemons are gone before it is.
SLOW_END = """import signal
signal.signal(signal.SIGTERM, lambda *_: (time.sleep(0.3), os._exit(0)))
time.sleep(600)
"""


def daemon(p, rest=""):
    return p.python(DAEMON.replace("NOTES", repr(f"{p.notes}/")) + rest)


def test_what_a_hook_leaves_behind_ends_with_it():
    with Place() as p:
        for rest, options, end in (("", {}, "exit"), (SLOW_END, {"timeout": "8s"}, "timeout"),
                                   ("os.kill(os.getpid(), 9)", {}, "signal")):
            for name in ("first", "second"):
                (p.notes / name).unlink(missing_ok=True)
            report = p.run(daemon(p, rest), **options)
            assert report["end"] == end and report["left"] >= 2, report
            assert not alive(p.note("first")) and not alive(p.note("second")), report


def test_a_hook_that_forks_without_end_is_ended():
    with Place() as p:
        text = """import os, signal, time
while True:
    try:
        if os.fork() == 0 and os.getpid() % 3 == 0:
            os.setsid()
    except OSError:
        time.sleep(0.001)
"""
        report = p.run(p.python(text), timeout="500ms")
        assert report["end"] == "timeout", report
        assert not [d for d in os.listdir("/proc") if d.isdigit() and alive(d) and uid_of(d) == ANNA]


def uid_of(pid):
    try:
        return os.stat(f"/proc/{pid}").st_uid
    except (FileNotFoundError, ProcessLookupError):
        return None


def test_a_flood_is_counted_not_kept():
    with Place() as p:
        report = p.run(p.sh("printf begin; head -c 64M /dev/zero; echo end >&2"))
        assert (report["end"], report["status"]) == ("exit", 0), report
        assert report["output_total"] == (64 << 20) + 9 and report["output_size"] == 16384, report
        assert report["output"].startswith("begin"), report
        p.timed_out(p.sh("exec cat /dev/zero"),
                    lambda report: report["output_size"] == 100 and report["output_total"] > 1 << 16, output="100")


def test_memory_files_and_processes_are_limited():
    with Place() as p:
        text = f"""import os
try:
    bytearray(256 << 20)
    print("much memory")
except MemoryError:
    print("no memory")
with open({str(p.notes / "large")!r}, "wb") as f:
    try:
        f.truncate(65 << 20)
        print("large file")
    except OSError:
        print("no file")
n = 0
try:
    while n < 500:
        if os.fork() == 0:
            os.read(0, 1) or __import__("time").sleep(60)
            os._exit(0)
        n += 1
except OSError:
    print("no process", 20 < n < 200)
"""
        report = p.run(p.python(text), memory="128M")
        assert report["output"].split("\n")[:3] == ["no memory", "no file", "no process True"], report


# -- when others end ------------------------------------------------------------------------------

def started_daemon(p, **options):
    process = p.start(daemon(p, "time.sleep(600)"), timeout="5m", **options)
    return process, [p.note("first"), p.note("second")]


def runner_of(process):
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
    return int(wait_until(lambda: children.read_text().split(), "the runner")[0])


def test_hooks_end_with_a_killed_parent():
    with Place() as p:
        process, pids = started_daemon(p)
        assert all(map(alive, pids))
        process.kill()
        process.wait()
        wait_until(lambda: not any(map(alive, pids)), "the end of the hook")


def test_a_killed_runner_is_told():
    with Place() as p:
        process = p.start(p.sh(f"echo $$ >{p.notes}/new; mv {p.notes}/new {p.notes}/pid; exec sleep 600"), timeout="5m")
        pid = p.note("pid")
        os.kill(runner_of(process), signal.SIGKILL)
        report = json.loads(process.communicate(timeout=PATIENCE)[0])
        assert report["end"] == "failed" and "runner died" in report["why"], report
        wait_until(lambda: not alive(pid), "the end of the hook")


def test_stopping_ends_hooks_within_a_bound():
    with Place() as p:
        begun = time.monotonic()
        reports = p.reports(p.sh("trap '' TERM; while :; do sleep 1; done"), timeout="5m", stop="500ms", count=20)
        assert len(reports) == 20 and {r["end"] for r in reports} == {"stopped"}, reports
        assert time.monotonic() - begun < PATIENCE, "it took too long"


def test_no_more_run_or_wait_than_there_is_room_for():
    with Place() as p:
        reports = p.reports(p.sh("sleep 0.1"), count=100)
        ends = [r["end"] for r in reports]
        assert ends.count("dropped") == 100 - 8 - 64 and ends.count("exit") == 8 + 64, ends


# -- which files are run --------------------------------------------------------------------------

def refusals(p):
    good = "#!/bin/sh\necho ran\n"
    (p.path / "open").mkdir()
    (p.path / "hers").mkdir()
    (p.path / "link").symlink_to(p.path / "open")
    p.write(good, name="open/hook")
    os.chmod(p.path / "open", 0o777)
    p.write(good, name="hers/hook")
    os.chown(p.path / "hers", BERT, BERT)
    p.write(good)
    (p.path / "to-hook").symlink_to(p.path / "hook")
    os.mkfifo(p.path / "fifo", 0o755)
    return [
        (p.path / "missing", "No such file"),
        (p.write(good, name="plain", mode=0o644), "may not be executed"),
        (p.write(good, name="private", mode=0o700), "may not be executed"),
        (p.write(good, name="group", mode=0o775), "written by a group (mode 0775)"),
        (p.write(good, name="world", mode=0o757), "written by everybody"),
        (p.write(good, name="foreign", owner=BERT), f"belongs to uid {BERT}, neither root nor"),
        (p.path / "open/hook", "open can be written by everybody (mode 0777)"),
        (p.path / "hers/hook", f"hers belongs to uid {BERT}"),
        (p.path / "link/hook", "link is a symbolic link"),
        (p.path / "to-hook", "is a symbolic link"),
        (p.path / "fifo", "not a regular file"),
        (p.path, "not a regular file"),
        (f"{p.path}/../{p.path.name}/hook", "not an absolute path"),
        (f"{p.path}/./hook", "not an absolute path"),
        (f"{p.path}//hook", "not an absolute path"),
        (f"{p.path}/hook/", "not an absolute path"),
        (f"{p.path}/hook/more", "not a directory"),
        ("/" + "x/" * 600, None),
    ]


def test_only_files_that_nobody_else_can_change_are_run():
    with Place() as p:
        for path, why in refusals(p):
            if why is None:
                process = p.start(path)
                assert process.wait() == 1, path
                continue
            report = p.run(path)
            assert report["end"] == "refused" and why in report["why"] and not report["output"], (path, report)
            # The look that `hooks list` takes comes to the same.
            report = p.run(path, list=True)
            assert report["check"] == "refused" and why in report["why"], (path, report)
        assert p.run(p.path / "hook", list=True)["check"] == "exit"
        assert p.run(p.path / "hook")["output"] == "ran\n"
        assert p.run(p.path / "hook", user="root", uid=0)["output"] == "ran\n"


def test_what_cannot_be_started_says_why():
    with Place() as p:
        for text, why in (("#!/nowhere/interpreter\n", "interpreter"), ("echo no first line\n", "#!/bin/sh")):
            report = p.run(p.write(text))
            assert report["end"] == "failed" and why in report["why"], report
        report = p.run(p.sh("exit 0"), user="no-such-user")
        assert report["end"] == "refused" and "there is no user no-such-user" in report["why"], report


def test_the_file_that_was_judged_is_the_one_that_runs():
    with Place() as p:
        mine = p.path / "mine"
        mine.mkdir()
        os.chown(mine, ANNA, ANNA)
        bad = p.sh("echo bad", name="mine/bad", owner=BERT)
        hook, done = p.sh("echo good", name="mine/hook", owner=ANNA), threading.Event()

        def swap():
            while not done.is_set():
                for text, owner in (("good", ANNA), ("bad", BERT), (None, None)):
                    new = mine / "new"
                    if text:
                        p.sh(f"echo {text}", name="mine/new", owner=owner)
                    else:
                        new.symlink_to(bad)
                    os.rename(new, hook)

        thread = threading.Thread(target=swap)
        thread.start()
        try:
            reports = p.reports(hook, count=60)
        finally:
            done.set()
            thread.join()
        assert {r["end"] for r in reports} <= {"exit", "refused"}, reports
        assert {r["output"] for r in reports if r["end"] == "exit"} <= {"good\n"}, reports


# -- who becomes whom -----------------------------------------------------------------------------

def test_a_hook_has_no_more_rights_than_its_user():
    with Place() as p:
        secret = p.write("secret", name="secret", mode=0o600, owner=BERT)
        sleeper = subprocess.Popen(["sleep", "600"], user=BERT, group=BERT, extra_groups=[])
        try:
            hook = p.sh(f"cat {secret}; kill {sleeper.pid}; cat /etc/shadow /proc/{sleeper.pid}/environ; "
                        f"kill -9 $PPID; touch {p.path}/made; sudo -n true; id -u")
            for uid, user, root_file in ((ANNA, None, True), (ANNA, "daemon", True)):
                options = {"user": user} if user else {}
                report = p.run(hook, uid=uid, **options)
                assert report["end"] == "exit" and "secret\n" not in report["output"], report
                assert report["output"].count("denied") + report["output"].count("not permitted") >= 5, report
                assert sleeper.poll() is None and not (p.path / "made").exists()
            report = p.run(p.sh(f"cat {secret}; kill {sleeper.pid}; id -u"), uid=BERT)
            assert report["output"] == f"secret{BERT}\n", report
            assert sleeper.wait(PATIENCE) == -signal.SIGTERM
        finally:
            sleeper.kill()
            sleeper.wait()


def test_nobody_becomes_root_by_accident():
    with Place() as p:
        hook = p.python(ABOUT)
        report = p.run(hook, uid=0)
        assert report["end"] == "refused" and "would run as root" in report["why"], report
        got = p.about(hook, uid=ANNA, user="root")
        # Root's files are his, but nothing that needs a capability.
        check_surroundings(got, 0)
        report = p.run(p.sh("exit 0", owner=ANNA), uid=ANNA, user="root")
        assert report["end"] == "refused" and "belongs to" in report["why"], report


def test_without_privileges_only_the_own_user_is_possible():
    with Place() as p:
        hook = p.sh("id -u")

        def unprivileged():
            report = p.run(hook, uid=ANNA)
            assert report["output"] == f"{ANNA}\n", report
            for uid, user in ((BERT, None), (ANNA, "daemon"), (ANNA, "root")):
                report = p.run(hook, uid=uid, **({"user": user} if user else {}))
                assert report["end"] == "refused" and "only as its own user" in report["why"], report
            p.started.clear()

        as_user(ANNA, unprivileged)


# -- through the agent ----------------------------------------------------------------------------

def test_without_rules_there_are_no_hooks():
    with Scene(app=None) as s:
        assert s.rpc.call("hooks.list") == {"hooks": []}
        assert s.rpc.error("hooks.test", rule="nothing").name == "no_such_rule"
        assert s.rpc.error("hooks.test", rule="").name == "invalid_params"
        done = s.ctl("hooks", "list")
        assert done.returncode == 0 and not done.stdout and "no rule has a hook" in done.stderr, done
        done = s.ctl("hooks", "test", "nothing", "--json=short")
        assert done.returncode == 3 and json.loads(done.stdout)["error"]["data"]["name"] == "no_such_rule", done
        for words in (("hooks",), ("hooks", "test"), ("hooks", "list", "x"), ("hooks", "none"),
                      ("hooks", "list", "--user=root"), ("hooks", "test", "x", "--user=no-such-user")):
            assert s.ctl(*words).returncode == 2, words


@contextlib.contextmanager
def agent_with(rules, **kwargs):
    """The agent of a machine, for all its users, with these rules."""
    need_root()
    with Scene(app=None, start_agent=False, user_mode=False, **kwargs) as s:
        (s.directory / "agentd.conf").write_text(f"[agent]\nuser = nobody\nsocket_group =\n{rules}")
        s.start_agentd(user_mode=False)
        yield s


def rule(name, hook, more=""):
    return f"[rule {name}]\ndevice = amd\nhook = {hook}\n{more}\n"


def test_hooks_are_listed_and_tested():
    with Place() as p:
        hook = p.sh("echo $GPU_AGENT_RULE $GPU_AGENT_TEST $GPU_AGENT_KERNEL $(id -u); cat; exit 3", name="good")
        rules = (rule("mine", hook, "hook_timeout = 5s") + rule("ops", hook, "hook_user = daemon") +
                 rule("bad", p.sh("exit 0", name="bad", mode=0o777)) + rule("none", "") +
                 rule("slow", p.sh("echo begun; sleep 60", name="slow"), "hook_timeout = 200ms"))
        with agent_with(rules) as s:
            listed = {h["rule"]: h for h in s.rpc.call("hooks.list")["hooks"]}
            assert list(listed) == ["mine", "ops", "bad", "slow"], listed
            assert listed["mine"]["acceptable"] and "user" not in listed["mine"] and listed["mine"]["timeout_ms"] == 5000
            assert listed["ops"]["user"] == "daemon" and listed["ops"]["acceptable"], listed
            assert not listed["bad"]["acceptable"] and "everybody" in listed["bad"]["problem"], listed
            assert all(h["runs"] == 0 and "last_end" not in h for h in listed.values()), listed
            result = s.rpc.call("hooks.test", rule="mine", uid=ANNA)
            assert (result["end"], result["status"], result["uid"]) == ("exit", 3, ANNA), result
            head, document = result["output"].split("\n", 1)
            assert head == f"mine 1 sample_kernel {ANNA}", head
            assert json.loads(document)["source"]["kind"] == "sample", document
            assert s.rpc.error("hooks.test", rule="none").name == "no_such_rule"
            result = s.rpc.call("hooks.test", rule="mine")
            assert result["end"] == "refused" and "as root" in result["problem"], result
            assert s.rpc.call("hooks.test", rule="slow", uid=ANNA)["end"] == "timeout"
            listed = {h["rule"]: h for h in s.rpc.call("hooks.list")["hooks"]}
            assert (listed["mine"]["runs"], listed["mine"]["failures"], listed["mine"]["last_end"]) == (2, 2, "refused")
            assert listed["slow"]["timeouts"] == 1 and listed["slow"]["last_duration_us"] >= 200_000, listed

            done = s.ctl("hooks", "list")
            assert done.returncode == 0 and "(target's)" in done.stdout and "refused" in done.stdout, done
            # For a process of root it is refused, as the run above was.
            assert "not run for processes of root: set hook_user" in listed["mine"]["problem"], listed
            assert "problem" not in listed["ops"], listed
            done = s.ctl("hooks", "test", "ops")
            assert done.returncode == 1 and done.stdout.startswith("ops 1 sample_kernel 1\n"), done
            assert "exit 3 as uid 1 after" in done.stderr, done
            done = s.ctl("hooks", "test", "mine", "--user", "daemon", "--json=short")
            assert done.returncode == 1 and json.loads(done.stdout)["status"] == 3, done


def test_hooks_are_listed_for_those_whom_the_rule_names():
    with Place() as p:
        hook = p.sh("exit 0", owner=ANNA, mode=0o700)
        rules = (rule("anna", hook, f"user = {ANNA}") + rule("root", hook, "user = root") +
                 rule("both", hook, f"user = root {ANNA}") + rule("gone", p.path / "gone", f"user = {ANNA}"))
        with agent_with(rules) as s:
            listed = {h["rule"]: h for h in s.rpc.call("hooks.list")["hooks"]}
            assert listed["anna"]["acceptable"] and listed["anna"]["checked_uid"] == ANNA and "problem" not in listed["anna"], listed
            assert not listed["root"]["acceptable"] and "would run as root: set hook_user" in listed["root"]["problem"], listed
            assert listed["both"]["acceptable"] and "not run for processes of root" in listed["both"]["problem"], listed
            assert not listed["gone"]["acceptable"] and "No such file" in listed["gone"]["problem"], listed


def checked(p, text):
    config = p.path / "agentd.conf"
    config.write_text(text)
    config.chmod(0o644)
    return subprocess.run([BIN / "gpu-agentd", "--config", config, "--check-config"], text=True, capture_output=True, timeout=60)


def test_a_configuration_is_checked_by_what_runs_it():
    need_root()
    with Place() as p:
        good, bad = p.sh("exit 0", name="good"), p.sh("exit 0", name="bad", mode=0o777)
        done = checked(p, rule("a", good, f"user = {ANNA}") + rule("b", good, "hook_user = root"))
        assert done.returncode == 0 and done.stdout == "configuration is valid\n" and not done.stderr, done
        done = checked(p, rule("a", good))
        assert done.returncode == 0 and "agentd.conf:2: [rule a] hook: not run for processes of root" in done.stderr, done
        for more, hook, words in (("user = root", good, "it would run as root: set hook_user"),
                                  ("hook_user = daemon", p.path / "gone", "gone: No such file"),
                                  ("hook_user = daemon", bad, "can be written by everybody"),
                                  ("hook_user = no-such-user", good, "there is no user no-such-user")):
            done = checked(p, "[agent]\n" + rule("a", hook, more))
            assert done.returncode == 1 and not done.stdout and "agentd.conf:3: [rule a] hook: " in done.stderr, (more, done)
            assert words in done.stderr, (more, done)
        done = checked(p, "[agent]\nadmin_group = nosuch\nidle_exit = 5m # five\n[agents]\nx = 1\n")
        assert done.returncode == 1, done
        lines = [line.split("agentd.conf:")[1] for line in done.stderr.splitlines()]
        assert lines == ["2: [agent] admin_group: there is no such group",
                         "4: [agents]: there is no such section; did you mean [agent]?"], done


def test_a_client_that_leaves_and_a_stop_do_not_wait_for_hooks():
    with Place() as p:
        hook = p.sh(f"echo $$ >{p.notes}/new; mv {p.notes}/new {p.notes}/pid; exec sleep 600")
        with agent_with(rule("slow", hook, "hook_timeout = 5m")) as s:
            client = s.connect()
            client.send("hooks.test", rule="slow", uid=ANNA)
            pid = p.note("pid")
            client.close()
            s.clients.remove(client)
            wait_until(lambda: s.rpc.call("hooks.list")["hooks"][0]["running"] == 1, "it runs on")
            begun = time.monotonic()
            s.agentd.popen.send_signal(signal.SIGTERM)
            assert s.agentd.popen.wait(PATIENCE) == 0 and not alive(pid)
            print(f"  stopped after {time.monotonic() - begun:.1f} s")


def test_hooks_end_with_a_killed_agent():
    with Place() as p:
        hook = daemon(p, "time.sleep(600)")
        with agent_with(rule("slow", hook, "hook_timeout = 5m")) as s:
            s.rpc.send("hooks.test", rule="slow", uid=ANNA)
            pids = [p.note("first"), p.note("second")]
            s.agentd.popen.kill()
            wait_until(lambda: not any(map(alive, pids)), "the end of the hook")


def test_nobody_gets_more_than_his_own_rights():
    """Three users: a stranger may look at the list, an administrator test as himself, root as anybody."""
    import grp
    group = grp.getgrnam("games")
    with Place() as p:
        rules = rule("mine", p.sh("id -u")) + rule("ops", p.sh("id -u", name="ops"), "hook_user = daemon")
        with agent_with(f"admin_group = games\n{rules}") as s:
            def stranger():
                rpc = Rpc(s.socket)
                assert [h["checked_uid"] for h in rpc.call("hooks.list")["hooks"]] == [ANNA, 1]
                for name in ("mine", "ops", "none"):
                    assert rpc.error("hooks.test", rule=name).name == "not_permitted"

            def administrator():
                os.setresuid(BERT, BERT, BERT)
                rpc = Rpc(s.socket)
                assert rpc.call("hooks.test", rule="mine")["output"] == f"{BERT}\n"
                assert rpc.call("hooks.test", rule="ops")["output"] == "1\n"
                assert rpc.error("hooks.test", rule="mine", uid=ANNA).name == "not_permitted"
                assert rpc.error("hooks.test", rule="mine", uid=0).name == "not_permitted"

            as_user(ANNA, stranger)
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    os.setgroups([group.gr_gid])
                    os.setresgid(BERT, BERT, BERT)
                    administrator()
                    code = 0
                finally:
                    os._exit(code)
            assert os.waitpid(child, 0)[1] == 0
            assert s.rpc.call("hooks.test", rule="mine", uid=ANNA)["output"] == f"{ANNA}\n"
