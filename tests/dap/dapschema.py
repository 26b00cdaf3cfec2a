# SPDX-License-Identifier: MIT
"""Compare messages of the Debug Adapter Protocol with its schema, and those that are ours alone with gpuagent.json.

    conversation = Conversation()
    conversation.from_editor(message)      # in the order in which each side wrote
    conversation.from_adapter(message)

What an adapter sends must be there, of its type, and known: a member that the protocol does not have is a mismatch, since an
editor would overlook it.  What an editor sends may have more.  protocol.json is made by make-protocol.
"""
import json
import pathlib

import schema

try:
    import jsonschema
except ImportError:  # the test `messages` says so
    jsonschema = None

HERE = pathlib.Path(__file__).resolve().parent
DEFINITIONS = json.loads((HERE / "protocol.json").read_text())["definitions"]
OWN = "gpuAgent/"


class Mismatch(AssertionError):
    """A message that is not as the protocol has it."""


# -- the protocol's schema -------------------------------------------------------------------------

def merged(definition):
    """A definition with what it inherits, since only a whole one knows all of its members."""
    parts = definition.get("allOf", [definition])
    whole = {"type": "object", "properties": {}, "required": []}
    for part in parts:
        part = merged(DEFINITIONS[part["$ref"].rsplit("/", 1)[1]]) if "$ref" in part else part
        for name, value in part.get("properties", {}).items():
            whole["properties"][name] = value
        whole["required"] += part.get("required", [])
        whole.update({k: v for k, v in part.items() if k not in ("properties", "required")})
    if not whole["required"]:
        del whole["required"]
    return whole


def closed(value):
    """The same, but with no other members; a list that others may extend is not extended by us."""
    if isinstance(value, list):
        return [closed(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "allOf" in value:
        value = merged(value)
    result = {"enum" if k == "_enum" else k: closed(v) for k, v in value.items()}
    if isinstance(result.get("properties"), dict) and "additionalProperties" not in result:
        result["additionalProperties"] = False
    return result


def named(kind, key):
    """{command or event: name of its definition}"""
    found = {}
    for name, definition in DEFINITIONS.items():
        if name.endswith(kind) and "allOf" in definition:
            values = merged(definition)["properties"].get(key, {}).get("enum", [])
            found.update({value: name for value in values})
    return found


REQUESTS, EVENTS = named("Request", "command"), named("Event", "event")
STRICT = {name: closed(definition) for name, definition in DEFINITIONS.items()}
# A cancelled answer has its word, any other failure a text of the adapter's.
STRICT["ErrorResponse"]["properties"]["message"] = {"type": "string"}
# Arguments and configurations have members of the adapter's.
OPEN = DEFINITIONS


def check(definitions, name, message):
    if jsonschema is None:
        return
    validator = jsonschema.Draft4Validator({**definitions[name], "definitions": definitions})
    error = jsonschema.exceptions.best_match(validator.iter_errors(message))
    if error is not None:
        raise Mismatch(f"{name}{''.join(f'.{p}' for p in error.absolute_path)}: {error.message:.300}: {json.dumps(message):.600}")


def without_null(value):
    """Editors in Lisp have one word for null, false and nothing."""
    if isinstance(value, dict):
        return {k: without_null(v) for k, v in value.items() if v is not None}
    return [without_null(item) for item in value] if isinstance(value, list) else value


# -- ours ------------------------------------------------------------------------------------------

def own_schema():
    """gpuagent.json is written as protocol/gpu-agent.json is, whose types it uses."""
    with open(schema.PATH, encoding="utf-8") as stream:
        protocol = json.load(stream)
    own = json.loads((HERE / "gpuagent.json").read_text())
    return schema.Schema({**protocol, "methods": own["methods"], "types": protocol["types"] + own["types"]})


OURS = own_schema()


def check_own(command, part, value):
    if command not in OURS.methods:
        raise Mismatch(f"{command}: not in gpuagent.json")
    OURS._object(f"{command}.{part}", OURS.methods[command][part], value)


# -- a conversation --------------------------------------------------------------------------------

class Conversation:
    """Both sides of one session."""

    def __init__(self):
        self.asked = {}  # seq: a request that was not answered yet
        self.is_deaf = False  # what follows of the editor's is not of the protocol, or is not told here
        self.last_seq = 0
        self.checked = 0

    def from_editor(self, message):
        """A request that succeeds must have been one: tests send others, too, to see them refused."""
        if not self.is_deaf:
            self.asked[message["seq"]] = without_null(message)

    def from_adapter(self, message):
        self.checked += 1
        if message.get("seq") != self.last_seq + 1:
            raise Mismatch(f"seq {message.get('seq')} follows {self.last_seq}: {message}")
        self.last_seq = message["seq"]
        if message.get("type") == "response":
            self._response(message)
        elif message.get("event") in EVENTS:
            check(STRICT, EVENTS[message["event"]], message)
        else:
            raise Mismatch(f"neither a response nor an event of the protocol: {message}")

    def _response(self, message):
        command = message["command"]
        request = self.asked.pop(message.get("request_seq"), None)
        if request is None and self.is_deaf:
            check(STRICT, REQUESTS[command].removesuffix("Request") + "Response" if message["success"] else "ErrorResponse", message)
            return
        if request is None or request["command"] != command:
            raise Mismatch(f"nobody waits for {message}")
        if not message["success"]:
            check(STRICT, "ErrorResponse", message)
        elif command.startswith(OWN):
            check(OPEN, "Response", message)
            check(OPEN, "Request", request)
            check_own(command, "params", request.get("arguments", {}))
            check_own(command, "result", message["body"])
        else:
            name = REQUESTS[command]
            check(OPEN, name, request)
            check(STRICT, name.removesuffix("Request") + "Response", message)


def messages(data):
    """What frames hold; the last one may be cut, where its sender was killed."""
    while True:
        head, found, rest = data.partition(b"\r\n\r\n")
        size = int(dict(line.split(b": ") for line in head.split(b"\r\n"))[b"Content-Length"]) if found else 0
        if not found or len(rest) < size:
            return
        yield json.loads(rest[:size])
        data = rest[size:]


# -- what an editor and an adapter say, written down ------------------------------------------------

def recorded(adapter, directory):
    """A program that is the adapter, and writes down what is said, for check_recorded()."""
    program = directory / "adapter"
    program.write_text(f"""#!/bin/sh
case $1 in
dap) tee {directory}/$$.from-editor | {adapter} "$@" | tee {directory}/$$.from-adapter ;;
*) exec {adapter} "$@" ;;
esac
""")
    program.chmod(0o755)
    return program


def check_recorded(directory):
    """All sessions of that program.  @return how many messages of the adapter were checked"""
    checked = 0
    for file in directory.glob("*.from-editor"):
        conversation = Conversation()
        for message in messages(file.read_bytes()):
            conversation.from_editor(message)
        for message in messages(file.with_suffix(".from-adapter").read_bytes()):
            conversation.from_adapter(message)
        checked += conversation.checked
    return checked
