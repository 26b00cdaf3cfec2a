#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Pods of a job: with a program in place of kubectl, and with kubectl itself on a small API server, whatever these answer.

Neither proves what a cluster does about rights and admission.
"""
import base64
import contextlib
import hashlib
import http.server
import json
import os
import pathlib
import re
import shutil
import socketserver
import stat
import struct
import subprocess
import sys
import threading
import urllib.parse
from unittest import SkipTest

if __name__ == "__main__":
    # Processes of other tests are none of the machine that is looked at as a whole.
    alone = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--"] if os.geteuid() == 0 else []
    os.execvp((alone + ["pytest-3"])[0], [*alone, "pytest-3", "--lines", *sys.argv])

from harness import BIN
from test_job import document, job, missing

USAGE, NO_MATCH, FAILURE, PARTIAL = 2, 3, 1, 8
UIDS = {name: f"0a1b2c3d-1111-2222-3333-44445555666{n}" for n, name in enumerate(("llm-0", "llm-1", "llm-2", "llm-3"))}
# What it is asked is kept.  `exec` runs the command here, and ends as it does; it has no terminal, and nothing to read.
KUBECTL = r"""#!/bin/sh
# In one piece: two of them write at once.
words=$(printf '%s\n' "$@" ---)
echo "$words" >>"$RECORDS/$1"
case "$1" in
get)
    case "$*" in
    *--selector=app.kubernetes.io/name=gpu-agent*) cat "$RECORDS/agents" ;;
    *) cat "$RECORDS/pods" ;;
    esac
    exit "$(cat "$RECORDS/status" 2>/dev/null || echo 0)" ;;
exec)
    agent=
    while [ "$1" != -- ]; do agent=$1; shift; done
    shift
    case $agent in
    agent-refused) echo 'Error from server (Forbidden): pods "agent-refused" is forbidden: cannot create "pods/exec"' >&2; exit 1 ;;
    agent-cut) "$@" | head -c 300; exit 1 ;;
    agent-hung) exec sleep 1000 ;;
    agent-old) echo 'gpu-agentctl: error: there is no option --pod-uids' >&2; status=2 ;;
    *) "$@"; status=$? ;;
    esac
    [ $status = 0 ] || echo "command terminated with exit code $status" >&2
    exit $status ;;
esac
"""


@contextlib.contextmanager
def group_of(name, *pids):
    """A cgroup of that name with these processes in it, as a kubelet makes them."""
    for top in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup", "/sys/fs/cgroup/pids"):
        path = pathlib.Path(top) / f"gpu-agent-test-{os.getpid()}" / name / ("c" * 64)
        if not os.path.exists(f"{top}/cgroup.procs"):
            continue
        try:
            path.mkdir(parents=True)
            break
        except OSError:
            continue
    else:
        raise SkipTest("no control group can be made here")
    try:
        for pid in pids:
            (path / "cgroup.procs").write_text(str(pid))
        yield
    finally:
        for pid in pids:
            with contextlib.suppress(OSError):
                (pathlib.Path(top) / "cgroup.procs").write_text(str(pid))
        for directory in (path, path.parent, path.parent.parent):
            with contextlib.suppress(OSError):
                directory.rmdir()


def listed(*pods):
    return "".join(f"{UIDS.get(name, UIDS['llm-0'])}\t{name}\t{node}\t{phase}\n" for name, node, phase in pods)


@contextlib.contextmanager
def cluster(s):
    """Two pods with a rank each, on two nodes that are this machine, and what kubectl is told of them."""
    programs, records = s.directory / "programs", s.directory / "asked"
    programs.mkdir()
    records.mkdir()
    kubectl = programs / "kubectl"
    kubectl.write_text(KUBECTL)
    kubectl.chmod(kubectl.stat().st_mode | stat.S_IXUSR)
    (records / "pods").write_text(listed(("llm-0", "a", "Running"), ("llm-1", "b", "Running")))
    (records / "agents").write_text(listed(("agent-a", "a", "Running"), ("agent-b", "b", "Running")))
    env = {**os.environ, "PATH": f"{programs}:{BIN}:{os.environ['PATH']}", "RECORDS": str(records), "GPU_AGENT_SOCKET": str(s.socket)}

    def ask(*argv, what="train/job-name=llm", deadline="12s"):
        return subprocess.run([BIN / "gpu-agentctl", "job", "--kubernetes", what, "--deadline", deadline, *argv], env=env, text=True,
                              capture_output=True, timeout=60, stdin=subprocess.DEVNULL)
    with group_of("kubepods-pod" + UIDS["llm-0"].replace("-", "_") + ".slice", s.ranks[0].pid, s.ranks[1].pid), \
            group_of(f"pod{UIDS['llm-1']}", s.ranks[2].pid):
        yield ask, records


def asked(records, verb):
    return [entry.split("\n")[:-1] for entry in (records / verb).read_text().split("---\n")[:-1]]


def test_pods_on_two_nodes():
    with job("hang", "hang", "progress", "hang") as s, cluster(s) as (ask, records):
        found = document(ask("-j", "--kube-context", "prod"))
        # The fourth process is of no pod.
        assert sorted(r["pid"] for r in found["ranks"]) == sorted(app.pid for app in s.ranks[:3]), found["ranks"]
        # Those of one scene are at different packets, as they are not asked at the same moment.
        assert s.ranks[2].pid in [r["pid"] for r in found["ranks"] if "odd" in r], [r.get("odd") for r in found["ranks"]]
        first, second = asked(records, "get")
        assert {"--namespace=train", "--selector=job-name=llm", "--context=prod"} <= {*first}, first
        assert {"--namespace=gpu-agent", "--selector=app.kubernetes.io/name=gpu-agent", "--context=prod"} <= {*second}, second
        words = asked(records, "exec")
        assert sorted(w[w.index("--") - 1] for w in words) == ["agent-a", "agent-b"], words
        for w in words:
            assert {"--namespace=gpu-agent", "--container=gpu-agentd", "--context=prod"} <= {*w}, w
            assert not {"-t", "-i", "-it"} & {*w}, w
            assert re.fullmatch(r"--deadline=\d+ms", w[-1]) and sum(word.startswith("--pod-uids=") for word in w) == 1, w
        # Where the agent is called otherwise; the part of a selector behind a slash is not the end of a namespace.
        assert ask("-j", "--agents", "ops", what="train/training.kubeflow.org/job-name=llm").returncode in (0, PARTIAL)
        first, second = asked(records, "get")[-2:]
        assert "--namespace=ops" in second and "--selector=training.kubeflow.org/job-name=llm" in first, (first, second)


def test_pods_that_are_not_seen():
    with job("hang", "hang", "progress") as s, cluster(s) as (ask, records):
        (records / "pods").write_text(listed(("llm-0", "a", "Running"), ("llm-1", "b", "Running"), ("llm-2", "", "Pending"),
                                             ("llm-3", "a", "Running"), ("lost", "c", "Failed"), ("done", "c", "Succeeded"),
                                             ("alone", "d", "Running")))
        found = document(ask("-j"), PARTIAL)
        assert len(found["ranks"]) == 3 and len(found["missing"]) == 4, found["missing"]
        assert missing(found, "not seen: pod llm-2: it is Pending") and missing(found, "not seen: pod lost: it is Failed")
        assert missing(found, "not seen: pod alone: no pod of the agent runs on its node d (namespace gpu-agent, label ")
        assert "none of its processes uses a GPU" in missing(found, f"not seen: pod {UIDS['llm-3']} of ")
        # Who is not seen may be the odd one: nobody is accused as if all were.
        text = ask("-q").stdout
        assert "not seen: pod llm-2" in text and "as far as could be seen" in text or "ODD" in text, text


def test_nodes_that_do_not_answer():
    bad = {"refused": "Forbidden", "cut": "its answer", "hung": "no answer before the deadline", "old": "there is no option --pod-uids"}
    with job("hang", "hang", "progress") as s, cluster(s) as (ask, records):
        nodes = [*bad]
        (records / "pods").write_text(listed(("llm-1", "b", "Running"), *((f"llm-{n}", n, "Running") for n in nodes)))
        (records / "agents").write_text(listed(("agent-b", "b", "Running"), *((f"agent-{n}", n, "Running") for n in nodes)))
        found = document(ask("-j", deadline="6s"), PARTIAL)
        assert [r["pid"] for r in found["ranks"]] == [s.ranks[2].pid] and len(found["missing"]) == len(bad), found["missing"]
        for node, why in bad.items():
            # What kubectl cuts off has failed, and is no whole answer.
            assert why in missing(found, f"not seen: {node}: ") or node == "cut", found["missing"]


def test_what_kubectl_says_is_not_trusted():
    with job("hang") as s:
        s.ranks *= 3
        with cluster(s) as (ask, records):
            for text in ("No resources found in train namespace.\n", "x\ty\tz\n", listed(("-o", "a", "Running")),
                         "77\tllm\t--all\tRunning\n"):
                (records / "pods").write_text(text)
                run = ask()
                assert run.returncode == FAILURE and "it does not print what was asked for" in run.stderr and not run.stdout, (text, run)
            (records / "pods").write_text("x" * (5 << 20))
            run = ask()
            assert run.returncode == FAILURE and "kubectl get: its answer is larger than 4 MiB" in run.stderr and not run.stdout, run
            (records / "pods").write_text("")
            run = ask()
            assert run.returncode == NO_MATCH and "no pod of namespace train has the labels job-name=llm" in run.stderr, run
            (records / "status").write_text("1")
            (records / "pods").write_text(listed(("llm-0", "a", "Running")))
            run = ask()
            assert run.returncode == FAILURE and "kubectl get" in run.stderr, run


def test_usage():
    with job("hang") as s:
        for argv in (("--kubernetes", "train"), ("--kubernetes", "train/"), ("--kubernetes", "/x=y"), ("--kubernetes", "-n/x=y"),
                     ("--kubernetes", "Train/x=y"), ("--kubernetes", "a/b", "--agents", "-x"), ("--all", "--kube-context", "x"),
                     ("--pod-uids", "x/y"), ("--pod-uids", ","), ("--pod-uids", "-1"), ("--kubernetes", "a/b", "--all")):
            run = s.ctl("job", *argv)
            assert run.returncode == USAGE, (argv, run)
        run = s.ctl("job", "--pod-uids", UIDS["llm-0"])
        assert run.returncode == FAILURE and "none of its processes uses a GPU" in run.stderr, run


# ---------------------------------------------------------------------- kubectl itself

RESOURCES = [{"name": "pods", "singularName": "pod", "namespaced": True, "kind": "Pod", "verbs": ["get", "list"]},
             {"name": "pods/exec", "singularName": "", "namespaced": True, "kind": "PodExecOptions", "verbs": ["create", "get"]}]
PODS = {"train": [("llm-0", "a"), ("llm-1", "b")],
        "gpu-agent": [("agent-a", "a"), ("agent-b", "b"), ("agent-refused", "refused"), ("agent-dropped", "dropped")]}


def pod_object(namespace, name, node):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": namespace, "name": name, "uid": UIDS.get(name, UIDS["llm-0"])},
            "spec": {"nodeName": node, "containers": [{"name": "gpu-agentd", "image": "x"}]}, "status": {"phase": "Running"}}


class Handler(http.server.BaseHTTPRequestHandler):
    """What kubectl asks of an API server to list pods and to run a command in one (v5.channel.k8s.io)."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, found, status=200):
        data = json.dumps(found).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_POST(self):
        self.do_GET()

    def do_GET(self):
        url = urllib.parse.urlparse(self.path)
        query = urllib.parse.parse_qs(url.query)
        words = url.path.strip("/").split("/")
        fixed = {"/version": {"major": "1", "minor": "32", "gitVersion": "v1.32.0"}, "/apis": {"kind": "APIGroupList", "groups": []},
                 "/api": {"kind": "APIVersions", "versions": ["v1"]},
                 "/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": RESOURCES}}
        if url.path in fixed:
            self.answer(fixed[url.path])
        elif words[:3] == ["api", "v1", "namespaces"] and words[4:] == ["pods"]:
            self.server.asked.append(query)
            items = [pod_object(words[3], *pod) for pod in self.server.pods.get(words[3], [])]
            self.answer({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items})
        elif words[4:5] == ["pods"] and len(words) == 6:
            self.answer(pod_object(words[3], words[5], dict(self.server.pods[words[3]])[words[5]]))
        elif words[4:5] == ["pods"] and words[6:] == ["exec"] and words[5] != "agent-refused":
            self.run(words[5], query)
        else:
            status = {"kind": "Status", "status": "Failure", "reason": "Forbidden", "message": "pods/exec is forbidden", "code": 403}
            self.answer(status, 403)

    def send(self, channel, data):
        """A frame of at most 32 KiB, as kubelets send them."""
        for at in range(0, max(len(data), 1), 32768):
            piece = bytes([channel]) + data[at:at + 32768]
            self.wfile.write(b"\x82\x7e" + struct.pack(">H", len(piece)) + piece)

    def run(self, pod, query):
        accept = hashlib.sha1(self.headers["Sec-WebSocket-Key"].encode() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()
        self.send_response(101)
        for name, value in (("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Protocol", "v5.channel.k8s.io"),
                            ("Sec-WebSocket-Accept", base64.b64encode(accept).decode())):
            self.send_header(name, value)
        self.end_headers()
        done = subprocess.run(query["command"], env=self.server.env, capture_output=True, stdin=subprocess.DEVNULL, timeout=60)
        self.send(1, done.stdout)
        self.send(2, done.stderr)
        self.close_connection = True
        if pod == "agent-dropped":
            return
        status = {"status": "Success"} if done.returncode == 0 else {
            "status": "Failure", "reason": "NonZeroExitCode", "message": f"command terminated with non-zero exit code: {done.returncode}",
            "details": {"causes": [{"reason": "ExitCode", "message": str(done.returncode)}]}}
        self.send(3, json.dumps({"metadata": {}, **status}).encode())
        self.wfile.write(b"\x88\x02\x03\xe8")


@contextlib.contextmanager
def api_server(s):
    kubectl = shutil.which("kubectl")
    if not kubectl:
        raise SkipTest("no kubectl")
    said = subprocess.run([kubectl, "version", "--client"], capture_output=True, text=True,
                          env={**os.environ, "KUBECONFIG": "/dev/null"})
    release = re.search(r"v1\.(\d+)", said.stdout)
    if not release or int(release[1]) < 31:
        raise SkipTest(f"kubectl that asks by WebSocket, 1.31 or newer; this is {said.stdout.strip()}")
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads, server.block_on_close = True, False
        server.asked, server.pods = [], dict(PODS)
        server.env = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "GPU_AGENT_SOCKET": str(s.socket)}
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        config = s.directory / "kubeconfig"
        config.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "none", "contexts": [
                {"name": "here", "context": {"cluster": "here", "user": "me"}},
                {"name": "none", "context": {"cluster": "none", "user": "me"}}],
            "users": [{"name": "me", "user": {}}], "clusters": [
                {"name": "here", "cluster": {"server": f"http://127.0.0.1:{server.server_address[1]}"}},
                {"name": "none", "cluster": {"server": "http://127.0.0.1:9"}}]}))
        env = {**server.env, "KUBECONFIG": str(config), "HOME": str(s.directory)}

        def ask(*argv, deadline="30s"):
            return subprocess.run([BIN / "gpu-agentctl", "job", "--kubernetes", "train/job-name=llm", "--deadline", deadline, "-j", *argv],
                                  env=env, text=True, capture_output=True, timeout=90, stdin=subprocess.DEVNULL)
        try:
            yield server, ask
        finally:
            server.shutdown()


def test_kubectl_itself():
    with job("hang", "hang", "progress") as s, cluster(s), api_server(s) as (server, ask):
        run = ask("--kube-context", "here")
        found = document(run)
        assert sorted(r["pid"] for r in found["ranks"]) == sorted(app.pid for app in s.ranks), (found["ranks"], run.stderr)
        assert server.asked[0]["labelSelector"] == ["job-name=llm"] and server.asked[1]["fieldSelector"] == ["status.phase=Running"]
        # A node of which the answer ends in the middle, and one that may not be asked.
        server.pods["train"] = [("llm-0", "dropped"), ("llm-1", "b"), ("llm-2", "refused")]
        run = ask("--kube-context", "here")
        found = document(run, PARTIAL)
        assert [r["pid"] for r in found["ranks"]] == [s.ranks[2].pid], (found["ranks"], run.stderr)
        assert "forbidden" in missing(found, "not seen: refused: ") and missing(found, "not seen: dropped: "), found["missing"]
        # No server: kubectl's own reason.
        run = ask(deadline="6s")
        assert run.returncode == FAILURE and "kubectl get" in run.stderr, run
