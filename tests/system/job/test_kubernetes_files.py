#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""deploy/kubernetes: the plugin with a program in place of kubectl, the check on a real store, and the manifest
against the schema of Kubernetes, which comes from npm."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
from unittest import SkipTest

if __name__ == "__main__":
    # Processes of other tests are none of the machine that is looked at as a whole.
    alone = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--"] if os.geteuid() == 0 else []
    os.execvp((alone + ["pytest-3"])[0], [*alone, "pytest-3", "--lines", *sys.argv])

import npm
from harness import BIN, ROOT, Scene
from test_job import job
from test_kubernetes import UIDS, group_of

HERE = pathlib.Path(__file__).resolve().parent / "kubernetes"
FILES = ROOT / "deploy/kubernetes"
KUBECTL = """#!/bin/sh
echo "$*" >>"$RECORDS"
case "$*" in
config*) echo ns ;;
"get pod lost"*) echo 'Error from server (NotFound): pods "lost" not found' >&2; exit 1 ;;
"get pod pending"*) printf '77 ' ;;
"get pod far"*) printf '77 b' ;;
"get pod "*) printf '%s a' UID ;;
*nodeName=b,*) ;;
"get pods"*) printf 'agent-a' ;;
exec*) while [ "$1" != -- ]; do shift; done; shift; exec "$@" ;;
esac
"""


def test_plugin(tmp_path):
    kubectl = tmp_path / "kubectl"
    kubectl.write_text(KUBECTL.replace("UID", UIDS["llm-0"]))
    kubectl.chmod(0o755)
    records = tmp_path / "asked"

    with job("hang") as s, group_of(f"pod{UIDS['llm-0']}", s.ranks[0].pid):
        env = {**os.environ, "PATH": f"{tmp_path}:{BIN}:{os.environ['PATH']}", "RECORDS": str(records), "GPU_AGENT_SOCKET": str(s.socket)}

        def ask(*words):
            records.write_text("")
            return subprocess.run([FILES / "kubectl-gpu_agent", *words], env=env, capture_output=True, text=True, timeout=60,
                                  stdin=subprocess.DEVNULL)
        run = ask("--context", "prod", "-n", "train", "pod", "llm-0", "-j")
        assert run.returncode in (0, 8) and [r["pid"] for r in json.loads(run.stdout)["ranks"]] == [s.ranks[0].pid], run
        asked = records.read_text().split("\n")[:-1]
        assert len(asked) == 3 and all("--context=prod" in line.split(" -- ")[0] for line in asked), asked
        assert "--namespace=train" in asked[0] and "--namespace=gpu-agent" in asked[1] and "spec.nodeName=a," in asked[1], asked
        ask("pod", "llm-0")
        assert "--namespace=ns" in records.read_text(), "that of kubectl's context"
        for pod, status, why in (("lost", 1, "NotFound"), ("pending", 3, "is on no node"),
                                 ("far", 9, "no pod of the agent runs on node b")):
            run = ask("pod", pod)
            assert run.returncode == status and why in run.stderr, run
        ask("-n", "train", "job", "a=b")
        assert "--selector=a=b" in records.read_text() and "--namespace=train" in records.read_text()
        for words in ((), ("pod",), ("-n",), ("whose", "x"), ("--all", "pod", "x"), ("pod", "--all"), ("why",), ("why", "--all")):
            assert ask(*words).returncode == 2, words


def test_plugin_tells_why(tmp_path):
    """Each process of the pod is asked for, by kubectl alone, and none of another pod; what stands still is the exit status."""
    kubectl = tmp_path / "kubectl"
    kubectl.write_text(KUBECTL.replace("UID", UIDS["llm-0"]))
    kubectl.chmod(0o755)
    records = tmp_path / "asked"

    with job("progress", "fault-at-barrier", "hang") as s, group_of(f"pod{UIDS['llm-0']}", s.ranks[0].pid):
        env = {**os.environ, "PATH": f"{tmp_path}:{BIN}:{os.environ['PATH']}", "RECORDS": str(records), "GPU_AGENT_SOCKET": str(s.socket)}

        def ask(*words):
            records.write_text("")
            return subprocess.run([FILES / "kubectl-gpu_agent", "--context=prod", "-n", "train", "why", *words], env=env,
                                  capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)

        run = ask("llm-0", "-j")
        assert run.returncode in (0, 8) and "nodes" in json.loads(run.stdout), run
        asked = records.read_text().split("\n")[:-1]
        assert len(asked) == 4 and all("--context=prod" in line.split(" -- ")[0] for line in asked), asked
        assert asked[2].endswith(f" -- gpu-agentctl list --pod-uid {UIDS['llm-0']} --pids --quiet"), asked
        assert asked[3].endswith(f" -- gpu-agentctl why {s.ranks[0].pid} --no-pager -j"), asked
        with group_of(f"pod{UIDS['llm-0']}", s.ranks[0].pid, s.ranks[1].pid):
            run = ask("llm-0")
            parts = re.split(r"^process (\d+):\n", run.stdout, flags=re.M)
            assert sorted(parts[1::2]) == sorted(str(app.pid) for app in s.ranks[:2]), run
            assert ask("llm-0", "-j").stdout.startswith("{")
            said = dict(zip(parts[1::2], parts[2::2]))
            assert said[str(s.ranks[1].pid)].startswith("CAUSE ") and run.returncode == 10, run
    with job() as s:
        env["GPU_AGENT_SOCKET"] = str(s.socket)
        run = ask("llm-0")
        assert run.returncode == 3 and "no process of pod llm-0 uses a GPU" in run.stderr, run


def test_check_of_node_problem_detector(tmp_path):
    config = json.loads((FILES / "node-problem-detector.json").read_text())
    assert config["rules"][0]["path"].endswith("/gpu-exception") and config["rules"][0]["condition"] == config["conditions"][0]["type"]
    with Scene() as s:
        def check(**environment):
            done = subprocess.run([FILES / "gpu-exception"], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL,
                                  env={**os.environ, "GPU_AGENTCTL": str(BIN / "gpu-agentctl"), "GPU_AGENT_SOCKET": str(s.socket),
                                       **environment})
            assert len(done.stdout.strip()) <= config["pluginConfig"]["max_output_length"] and done.stdout.count("\n") == 1, done
            return done.returncode
        assert check() == 0
        # What somebody has asked for is no exception.
        assert s.ctl("snapshot", s.app.pid, "--record").returncode == 0
        said = s.ctl("cores", "list", "--field", "REASON", "--no-legend").stdout
        assert said == "requested\n" and check() == 0, said
        other = tmp_path / "ctl"
        other.write_text("#!/bin/sh\necho requested\nfor i in 1 2 3 4 5 6; do echo memory_violation_$i; done\n")
        other.chmod(0o755)
        assert check(GPU_AGENTCTL=str(other)) == 1
        assert check(GPU_AGENT_SOCKET=str(tmp_path / "none")) == 2
        assert check(GPU_AGENTCTL="/nonexistent") == 2


def manifest():
    try:
        import yaml
    except ImportError:
        raise SkipTest("no python3-yaml to read the manifest with") from None
    return [*yaml.safe_load_all((FILES / "daemonset.yaml").read_text())]


def test_manifest():
    """What the programs look for."""
    namespace, daemons = manifest()
    # What gpu-agentctl job --kubernetes looks for.
    assert namespace["metadata"]["name"] == daemons["metadata"]["namespace"] == "gpu-agent"
    pod = daemons["spec"]["template"]
    assert pod["metadata"]["labels"] == daemons["spec"]["selector"]["matchLabels"] == {"app.kubernetes.io/name": "gpu-agent"}
    assert pod["spec"]["hostPID"] is True and [c["name"] for c in pod["spec"]["containers"]] == ["gpu-agentd"]


def test_manifest_is_of_the_schema():
    """That of Kubernetes, as a package of npm has it; mistakes are found, also fields that there are not."""
    modules = npm.install(HERE)
    script = modules.parent / "check.mjs"
    shutil.copy(HERE / "check.mjs", script)

    def said(*manifests):
        run = subprocess.run(["node", script], input=json.dumps(manifests), text=True, capture_output=True, timeout=60)
        assert run.returncode == 0, run.stderr
        return run.stdout.splitlines()
    assert said(*manifest()) == []
    namespace, daemons = manifest()
    namespace["lables"] = {}
    pod = daemons["spec"]["template"]["spec"]
    pod["hostPID"] = "yes"
    pod["containers"][0]["securityContxt"] = pod["containers"][0].pop("securityContext")
    del daemons["spec"]["selector"]
    found = said(namespace, daemons)
    for mistake in ("Namespace: /lables is no field", "data/spec/template/spec/hostPID must be boolean",
                    "data/spec must have required property selector",
                    "DaemonSet: /spec/template/spec/containers/0/securityContxt is no field"):
        assert any(mistake in line for line in found), (mistake, found)
