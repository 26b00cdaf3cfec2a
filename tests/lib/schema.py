#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compare what the agent says with protocol/gpu-agent.json.

    import schema
    schema.check_result("gpu.queues", reply["result"])
    schema.check_error(reply["error"], "gpu.queues")
    schema.check_notification("session.ended", message["params"])
    schema.check_reply("gpu.queues", reply)          # a whole response, either kind

Each raises schema.Mismatch with the path of the value.  Stricter than a client should be: a member
that the schema does not know is a mismatch, so that nothing undocumented is ever sent.

Methods that gave a result are appended to the file named by GPU_AGENT_METHOD_LOG;
`schema.py --report FILE` fails for every method of the schema that is not in it.
"""

from __future__ import annotations

import json
import os
import re
import sys
from typing import Any, Dict, List, NoReturn, Optional

# One of the schema's own objects: a method, a type, a parameter.
Item = Dict[str, Any]
PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "protocol", "gpu-agent.json")
RANGES = {"u32": (0, 2**32 - 1), "u64": (0, 2**64 - 1), "i64": (-(2**63), 2**63 - 1)}
HEX = re.compile(r"0x[0-9a-f]{1,16}\Z")

# Every method can end so, whatever its own list says.
COMMON_ERRORS = {
    "parse_error", "invalid_request", "method_not_found", "invalid_params", "internal", "too_large", "unsupported",
}
# Of error.data: JSON type and whether it is required.
ERROR_DATA = {
    "name": (str, True), "errno": (str, False), "op": (str, False), "hint": (str, False), "vendor": (int, False),
    "resumed": (bool, False),
    "retry_ms": (int, False),
}


class Mismatch(AssertionError):
    """What the agent sent does not fit the schema."""


def fail(path: str, message: str) -> NoReturn:
    raise Mismatch(f"{path}: {message}")


class Schema:
    """The checks; the module has the same functions for the schema of this tree."""

    def __init__(self, data: Item) -> None:
        self.methods: Dict[str, Item] = {m["name"]: m for m in data["methods"]}
        self.notifications: Dict[str, Item] = {n["name"]: n for n in data["notifications"]}
        self.types: Dict[str, Item] = {t["name"]: t for t in data["types"]}
        self.enums = {e["name"]: {v["name"] for v in e["values"]} for e in data["enums"]}
        self.errors: Dict[int, str] = {e["code"]: e["name"] for e in data["errors"]}

    def check_result(self, method: str, result: Any) -> None:
        members = self._method(method)["result"]
        # One `json` member alone travels as that value itself.
        if len(members) != 1 or members[0]["type"] != "json":
            self._object("result", members, result)
        record(method)

    def check_error(self, error: Any, method: Optional[str] = None) -> None:
        if not isinstance(error, dict):
            fail("error", "must be an object")
        for key in ("code", "message", "data"):
            if key not in error:
                fail("error", f'"{key}" is missing')
        if set(error) - {"code", "message", "data"}:
            fail("error", f"unknown members {sorted(set(error) - {'code', 'message', 'data'})}")
        name = self.errors.get(error["code"]) if type(error["code"]) is int else None
        if name is None:
            fail("error.code", f"{error['code']!r} is not in the table")
        if not isinstance(error["message"], str) or not error["message"]:
            fail("error.message", "must be a text")
        self._error_data(error["data"], name)
        if method in self.methods and name not in COMMON_ERRORS | set(self.methods[method]["errors"]):
            fail("error.code", f"{method} does not list {name}")

    def check_notification(self, name: str, params: Any) -> None:
        if name not in self.notifications:
            fail("method", f"no notification {name!r}")
        self._object("params", self.notifications[name]["params"], params)

    def check_reply(self, method: str, reply: Any) -> None:
        if not isinstance(reply, dict) or reply.get("jsonrpc") != "2.0":
            fail("reply", 'must be an object with jsonrpc "2.0"')
        if set(reply) not in ({"jsonrpc", "id", "result"}, {"jsonrpc", "id", "error"}):
            fail("reply", f"has the members {sorted(reply)}")
        if "result" in reply:
            self.check_result(method, reply["result"])
        else:
            self.check_error(reply["error"], method)

    def _method(self, name: str) -> Item:
        if name not in self.methods:
            fail("method", f"no method {name!r}")
        return self.methods[name]

    @staticmethod
    def _error_data(data: Any, name: str) -> None:
        if not isinstance(data, dict):
            fail("error.data", "must be an object")
        for key, (kind, required) in ERROR_DATA.items():
            if key not in data:
                if required:
                    fail("error.data", f'"{key}" is missing')
            elif type(data[key]) is not kind:
                fail(f"error.data.{key}", f"must be {kind.__name__}")
        if set(data) - set(ERROR_DATA):
            fail("error.data", f"unknown members {sorted(set(data) - set(ERROR_DATA))}")
        if data["name"] != name:
            fail("error.data.name", f"must be {name}, as the code says, not {data['name']}")

    def _object(self, path: str, members: List[Item], value: Any) -> None:
        if not isinstance(value, dict):
            fail(path, f"must be an object, not {value!r:.60}")
        known = {m["name"]: m for m in members}
        for key in value:
            if key not in known:
                fail(path, f'unknown member "{key}"')
        for name, member in known.items():
            if name in value:
                self._member(f"{path}.{name}", member, value[name])
            elif not member.get("optional"):
                fail(path, f'"{name}" is missing')

    def _member(self, path: str, member: Item, value: Any) -> None:
        base = member["type"]
        if not base.startswith("[]"):
            self._value(path, base, member, value)
            return
        if not isinstance(value, list):
            fail(path, f"must be an array, not {value!r:.60}")
        if len(value) > member.get("max_items", len(value)):
            fail(path, f"has {len(value)} items")
        for index, item in enumerate(value):
            self._value(f"{path}[{index}]", base[2:], member, item)

    def _value(self, path: str, base: str, member: Item, value: Any) -> None:
        if base in RANGES:
            low, high = RANGES[base]
            low, high = member.get("min", low), member.get("max", high)
            if type(value) is not int or not low <= value <= high:
                fail(path, f"must be an integer between {low} and {high}, not {value!r:.60}")
        elif base == "bool":
            if type(value) is not bool:
                fail(path, f"must be true or false, not {value!r:.60}")
        elif base == "hex64":
            if not isinstance(value, str) or not HEX.match(value):
                fail(path, f"must be lower-case hexadecimal with 0x, not {value!r:.60}")
        elif base == "string":
            if not isinstance(value, str) or len(value.encode()) > member.get("max_length", 2**31):
                fail(path, f"must be a string within its limit, not {value!r:.60}")
        elif base in self.enums:
            if not isinstance(value, str) or value not in self.enums[base]:
                fail(path, f"must be the name of a {base}, not {value!r:.60}")
        elif base in self.types:
            self._object(path, self.types[base]["members"], value)


def record(method: str) -> None:
    log = os.environ.get("GPU_AGENT_METHOD_LOG")
    if log:
        with open(log, "a", encoding="utf-8") as stream:
            stream.write(method + "\n")


def load(path: str = PATH) -> Schema:
    with open(path, encoding="utf-8") as stream:
        return Schema(json.load(stream))


SCHEMA = load()
check_result = SCHEMA.check_result
check_error = SCHEMA.check_error
check_notification = SCHEMA.check_notification
check_reply = SCHEMA.check_reply


def report(path: str) -> int:
    with open(path, encoding="utf-8") as stream:
        seen = {line.strip() for line in stream}
    missing = [name for name in SCHEMA.methods if name not in seen]
    if missing:
        print(f"FAIL schema.methods_exercised: never gave a result: {' '.join(missing)}")
    else:
        print(f"PASS schema.methods_exercised: {len(SCHEMA.methods)} methods")
    return 1 if missing else 0


def main(argv: List[str]) -> int:
    if len(argv) != 3 or argv[1] != "--report":
        sys.stderr.write("usage: schema.py --report FILE\n")
        return 2
    return report(argv[2])


if __name__ == "__main__":
    sys.exit(main(sys.argv))
