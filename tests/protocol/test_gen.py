#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The generator: golden output, refused schemas, committed documents, the reply checker.

`test_gen.py --update` writes the golden files anew; read the difference before committing it.
"""

import copy
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

TOP = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
GEN = os.path.join(TOP, "protocol", "generator", "gen.py")
SCHEMA = os.path.join(TOP, "protocol", "gpu-agent.json")
GOLDEN = os.path.join(TOP, "tests", "protocol", "golden")
TINY = os.path.join(GOLDEN, "tiny.json")
FILES = [
    "PROTOCOL.md", "methods.txt", "openrpc.json", "protocol.py", "protocol.ts", "rpc_client_gen.c", "rpc_client_gen.h",
    "rpc_gen.c", "rpc_gen.h", "rpc_names.h",
]

sys.path.insert(0, os.path.join(TOP, "tests", "lib"))
import schema as checker


def read(path):
    with open(path, encoding="utf-8") as stream:
        return stream.read()


def generate(schema, directory):
    return subprocess.run(
        [sys.executable, GEN, schema, directory], capture_output=True, text=True, timeout=60, check=False
    )


class Temporary:
    """A directory that is gone afterwards."""

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="test_gen.")
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path)


# -- refused schemas -------------------------------------------------------------------------------
# (what is done to the tiny schema, what the generator says)

M = "methods[0] (echo.all)"
P = M + ".params"


def at(path, value):
    """Set the value at a path such as methods.0.place; no value deletes."""

    def change(data):
        *way, last = [int(step) if step.isdigit() else step for step in path.split(".")]
        for step in way:
            data = data[step]
        if value is None:
            del data[last]
        elif isinstance(data, list) and last == len(data):
            data.append(value)
        else:
            data[last] = value

    return change


U32 = {"name": "x", "type": "u32", "doc": "X."}
BAD = [
    (at("version", None), 'schema: "version" is missing'),
    (at("version", "2"), 'schema: "version" must be "major.minor"'),
    (at("name", "Tiny!"), 'schema: "name" must be lower-case-words'),
    (at("extra", 1), 'schema: unknown member "extra"'),
    (at("doc", " "), 'schema: "doc" must be a text that is not empty'),
    (at("doc", "a\nb"), 'schema: "doc" must be one line without spaces around it'),
    (at("methods", {}), "methods: must be a list"),
    (at("errors.0", 3), "errors[0]: must be an object"),
    (at("errors.0.code", 5), 'errors[0] (parse_error): "code" must be between -32768 and -32000'),
    (at("errors.0.code", "x"), 'errors[0] (parse_error): "code" must be an integer'),
    (at("errors.0.exit", 0), 'errors[0] (parse_error): "exit" must be between 1 and 125'),
    (at("errors.1.code", -32700), "errors[1] (invalid_request): code -32700 already belongs to parse_error"),
    (at("errors.4", None), 'errors: the generated code needs "internal"'),
    (at("features.1", {"name": "echo", "doc": "Again."}), "features[1] (echo): this name is used before"),
    (at("enums.0.values.1.value", 0), "enums[0] (color).values[1] (infra_red): value 0 is used before"),
    (at("enums.0.values.1.value", 2**32),
     'enums[0] (color).values[1] (infra_red): "value" must be between 0 and 4294967295'),
    (at("enums.0.values", []), "enums[0] (color): an enum needs at least one value"),
    (at("enums.0.name", "u32"), "enums[0] (u32): this name is a built-in type"),
    (at("enums.0.name", "method"), "enums[0] (method): this name is reserved"),
    (at("types.1.name", "color"), "types[1] (color): there is an enum of this name"),
    (at("types.1.members", []), "types[1] (leaf): a type needs at least one member"),
    (at("types.1.members.0.type", "tree"), "types: tree -> leaf -> tree contains itself; only arrays may do that"),
    (at("types.1.members.0.name", "int"), "types[1] (leaf).members[0] (int): this name is a C word"),
    (at("types.1.members.0.name", "Id"), 'types[1] (leaf).members[0] (Id): "name" must be lower_case_words'),
    (at("types.1.members.0.name", "x" * 61),
     f'types[1] (leaf).members[0] ({"x" * 61}): "name" is longer than 60 characters'),
    (at("methods.0.name", "echo"), 'methods[0] (echo): "name" must be group.verb'),
    (at("methods.0.since", None), M + ': "since" is missing'),
    (at("methods.0.place", "moon"), M + ': "place" must be one of front, session, inspect, store'),
    (at("methods.0.right", "write"), M + ': "right" must be one of none, read, control'),
    (at("methods.0.right", "read"), M + ': a method that needs the lease needs the right "control"'),
    (at("methods.0.lease", 1), M + ': "lease" must be true or false'),
    (at("methods.0.errors.0", "nope"), M + '.errors[0]: there is no error "nope"'),
    (at("methods.0.errors", ["timeout", "timeout"]), M + '.errors[1]: "timeout" is listed before'),
    (at("methods.0.params.0.name", "sess"),
     M + ': a method with place "session" needs a required string parameter "session"'),
    (at("methods.0.params.1.doc", None), P + '[1] (flag): "doc" is missing'),
    (at("methods.0.params.1.optional", "yes"), P + '[1] (flag): "optional" must be true or false'),
    (at("methods.0.params.1.name", "session"), P + "[1] (session): this name is used before"),
    (at("methods.0.params.2.type", "u33"), P + '[2] (small): there is no type "u33"'),
    (at("methods.0.params.2.type", 7), P + '[2] (small): "type" must be a text'),
    (at("methods.0.params.2.type", "[][]u32"),
     P + "[2] (small): arrays of arrays are not supported; give the inner array a type"),
    (at("methods.0.params.2.max", 2**32), P + '[2] (small): "max" must be between 0 and 4294967295'),
    (at("methods.0.params.2.min", 8), P + '[2] (small): "min" is larger than "max"'),
    (at("methods.0.params.0.min", 1), P + '[0] (session): "min" is for numbers, not for string'),
    (at("methods.0.params.2.max_length", 1), P + '[2] (small): "max_length" is for strings, not for u32'),
    (at("methods.0.params.0.max_items", 1), P + '[0] (session): "max_items" is for arrays'),
    (at("methods.0.params.9.max_items", 0), P + '[9] (names): "max_items" must be between 1 and 1048576'),
    (at("methods.0.params.9.max_items", None), P + '.names: an array that clients send needs "max_items"'),
    (at("types.0.members.1.max_items", None), P + '.trees.below: an array that clients send needs "max_items"'),
    (at("methods.0.params.10", {**U32, "name": "n_trees"}),
     P + '[10] (n_trees): needs the C member "n_trees", which trees has'),
    (at("methods.0.params.10", {**U32, "name": "has_flag"}),
     P + '[10] (has_flag): needs the C member "has_flag", which flag has'),
    (at("types.1", None), 'types[0] (tree).members[0] (leaf): there is no type "leaf"'),
    (at("types.3", {"name": "echo_nothing_result", "doc": "Clash.", "members": [U32]}),
     "method echo.nothing: rpc_echo_nothing_result is also made from type echo_nothing_result"),
    (at("types.3", {"name": "gpu_exception", "doc": "Clash.", "members": [U32]}),
     "type gpu_exception: GpuException is also made from type exception"),
    (at("notifications.0.name", "echo.all"), "notification echo.all: rpc_echo_all_params is also made from method echo.all"),
    (at("enums.1", {"name": "color_infra", "doc": "Clash.", "values": [{"name": "red", "value": 1, "doc": "X."}]}),
     "enum color_infra, value red: RPC_COLOR_INFRA_RED is also made from enum color, value infra_red"),
]

BAD_TEXT = [
    ("{", "schema: line 1, column 2: Expecting property name enclosed in double quotes"),
    ("[]", "schema: must be an object"),
    ('{"name": "a", "name": "b"}', 'schema: member "name" is given twice in one object'),
]


def refuses(text, message):
    with Temporary() as directory:
        path, out = os.path.join(directory, "s.json"), os.path.join(directory, "out")
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)
        done = generate(path, out)
        assert done.stderr == f"{path}: {message}\n", f"said {done.stderr!r}, want {message!r}"
        assert done.returncode == 1, f"exit status {done.returncode}"
        assert not os.path.exists(out), "wrote something all the same"


# -- tests -----------------------------------------------------------------------------------------


def test_golden_output():
    with Temporary() as directory:
        done = generate(TINY, directory)
        assert done.returncode == 0, done.stderr
        assert sorted(os.listdir(directory)) == FILES, os.listdir(directory)
        for name in FILES:
            want = read(os.path.join(GOLDEN, "tiny", name + ".golden"))
            assert read(os.path.join(directory, name)) == want, f"{name} differs; see test_gen.py --update"


def test_is_deterministic():
    with Temporary() as directory:
        outputs = []
        for seed in ("0", "1"):
            out = os.path.join(directory, seed)
            subprocess.run([sys.executable, GEN, SCHEMA, out], env={"PYTHONHASHSEED": seed}, check=True, timeout=60)
            outputs.append([read(os.path.join(out, name)) for name in FILES])
        assert outputs[0] == outputs[1], "two runs differ"


def test_generated_c_compiles():
    """Without warnings, with every compiler there is."""
    found = [cc for cc in ("gcc", "clang") if shutil.which(cc)]
    assert found, "no compiler"
    with Temporary() as directory:
        generate(TINY, directory)
        for cc in found:
            for name in ("rpc_gen.c", "rpc_client_gen.c"):
                done = subprocess.run(
                    [cc, "-std=gnu11", "-fsyntax-only", "-Wall", "-Wextra", "-Wshadow", "-Werror",
                     "-Wno-unused-parameter", "-D_GNU_SOURCE", "-I" + TOP, "-I" + os.path.join(TOP, "lib"), "-I" + directory,
                     os.path.join(directory, name)],
                    capture_output=True, text=True, timeout=60, check=False,
                )
                assert done.returncode == 0, f"{cc} {name}:\n{done.stderr}"


def test_generated_python_is_read():
    """Every name of a type resolves, words of the language included."""
    with Temporary() as directory:
        for schema in (TINY, SCHEMA):
            out, package = os.path.join(directory, "out"), os.path.join(directory, "gpu_agent")
            generate(schema, out)
            shutil.copytree(os.path.join(TOP, "clients/python/gpu_agent"), package, dirs_exist_ok=True)
            shutil.copy(os.path.join(out, "protocol.py"), package)
            script = ("import typing, gpu_agent.protocol as p; from typing import get_type_hints as h;"
                      "print(len([h(v) for v in vars(p).values() if hasattr(v, '__total__')]),"
                      "[h(f) for c in (p.Client, p.AsyncClient) for f in vars(c).values() if callable(f)] != [])")
            done = subprocess.run([sys.executable, "-B", "-W", "error", "-c", script], cwd=directory, capture_output=True,
                                  text=True, timeout=60, check=False)
            assert done.returncode == 0, done.stderr
            count, calls = done.stdout.split()
            assert int(count) > 8 and calls == "True", done.stdout


def test_bad_schemas():
    tiny = json.loads(read(TINY))
    for change, message in BAD:
        data = copy.deepcopy(tiny)
        change(data)
        refuses(json.dumps(data), message)
    for text, message in BAD_TEXT:
        refuses(text, message)


def test_bad_usage():
    done = subprocess.run([sys.executable, GEN], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and done.stderr.startswith("usage: "), done
    done = generate("/nonexistent.json", "/nonexistent")
    assert done.returncode == 1 and done.stderr.startswith("gen.py: "), done


def test_protocol_document_is_fresh():
    with Temporary() as directory:
        done = generate(SCHEMA, directory)
        assert done.returncode == 0, done.stderr
        fresh = read(os.path.join(directory, "PROTOCOL.md"))
        assert read(os.path.join(TOP, "docs", "PROTOCOL.md")) == fresh, "docs/PROTOCOL.md is stale: run make protocol-doc"
        names = read(os.path.join(directory, "methods.txt")).split()
        assert names == sorted(m["name"] for m in json.loads(read(SCHEMA))["methods"]), names


def test_openrpc_is_complete():
    """Every reference resolves, every method and error is there."""
    with Temporary() as directory:
        generate(SCHEMA, directory)
        document = json.loads(read(os.path.join(directory, "openrpc.json")))
    schema = json.loads(read(SCHEMA))
    assert [m["name"] for m in document["methods"]] == [m["name"] for m in schema["methods"]]
    assert list(document["components"]["errors"]) == [e["name"] for e in schema["errors"]]

    def walk(value):
        if isinstance(value, dict):
            if "$ref" in value:
                target = document
                for step in value["$ref"].removeprefix("#/").split("/"):
                    target = target[step]
            for item in value.values():
                walk(item)
        elif isinstance(value, list):
            for item in value:
                walk(item)

    walk(document)


def test_reply_checker():
    """tests/lib/schema.py on the tiny schema: accepts what fits, names what does not."""
    tiny = checker.load(TINY)
    tree = {"leaf": {"id": 1}, "below": [{"leaf": {"id": 2}, "below": []}]}
    data = {"name": "timeout", "errno": "ETIMEDOUT", "op": "wait", "hint": "h", "resumed": True, "vendor": 3}
    error = {"code": -32005, "message": "late", "data": data}
    good = [
        (tiny.check_result, "echo.all", {"tree": tree, "colors": ["red"]}),
        (tiny.check_result, "echo.nothing", {}),
        (tiny.check_error, error, "echo.all"),
        (tiny.check_notification, "echo.heard", {"times": 2}),
        (tiny.check_reply, "echo.nothing", {"jsonrpc": "2.0", "id": 1, "result": {}}),
    ]
    bad = [
        (tiny.check_result, "echo.all", {}, 'result: "colors" is missing'),
        (tiny.check_result, "echo.all", {"colors": [], "x": 1}, 'result: unknown member "x"'),
        (tiny.check_result, "echo.all", {"colors": ["green"]}, "result.colors[0]: must be the name of a color"),
        (tiny.check_result, "echo.all", {"colors": {}}, "result.colors: must be an array"),
        (tiny.check_result, "echo.all", {"colors": [], "tree": {**tree, "leaf": {"id": True}}},
         "result.tree.leaf.id: must be an integer"),
        (tiny.check_result, "echo.none", {}, "method: no method"),
        (tiny.check_error, error, "echo.nothing", "error.code: echo.nothing does not list timeout"),
        (tiny.check_error, {**error, "code": 1}, "echo.all", "error.code: 1 is not in the table"),
        (tiny.check_error, {**error, "data": {**data, "name": "internal"}}, "echo.all", "error.data.name: must be timeout"),
        (tiny.check_error, {**error, "data": {**data, "errno": 5}}, "echo.all", "error.data.errno: must be str"),
        (tiny.check_error, {**error, "data": {**data, "more": 5}}, "echo.all", "error.data: unknown members ['more']"),
        (tiny.check_notification, "echo.heard", {}, 'params: "times" is missing'),
        (tiny.check_notification, "echo.said", {}, "method: no notification"),
        (tiny.check_reply, "echo.nothing", {"jsonrpc": "2.0", "id": 1, "result": {}, "error": {}}, "reply: has the members"),
    ]
    log = os.environ.pop("GPU_AGENT_METHOD_LOG", None)
    try:
        for check, first, second in good:
            check(first, second)
        for check, first, second, message in bad:
            try:
                check(first, second)
            except checker.Mismatch as mismatch:
                assert str(mismatch).startswith(message), f"said {mismatch}, want {message}"
            else:
                raise AssertionError(f"accepted; want {message}")
    finally:
        if log is not None:
            os.environ["GPU_AGENT_METHOD_LOG"] = log


def test_method_report():
    """Names what was never called, and only that."""
    script = os.path.join(TOP, "tests", "lib", "schema.py")
    names = list(checker.SCHEMA.methods)
    with Temporary() as directory:
        log = os.path.join(directory, "log")
        for n, status in ((len(names), 0), (len(names) - 1, 1)):
            with open(log, "w", encoding="utf-8") as stream:
                stream.write("".join(f"{name}\n{name}\n" for name in names[:n]))
            done = subprocess.run([sys.executable, script, "--report", log], capture_output=True, text=True, timeout=60,
                                  check=False)
            assert done.returncode == status, done
            assert done.stdout.startswith("FAIL " if status else "PASS "), done
            assert (names[-1] in done.stdout) == bool(status), done


def update():
    golden = os.path.join(GOLDEN, "tiny")
    done = generate(TINY, golden)
    sys.stderr.write(done.stderr)
    if done.returncode == 0:
        # Not by their own names: nobody is to take them for headers and sources of this tree.
        for name in FILES:
            os.rename(os.path.join(golden, name), os.path.join(golden, name + ".golden"))
    return done.returncode


if __name__ == "__main__":
    if sys.argv[1:] == ["--update"]:
        sys.exit(update())
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])
