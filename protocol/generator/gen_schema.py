# SPDX-License-Identifier: MIT
"""Load a protocol schema and refuse everything that is not exactly right.

Every mistake raises SchemaError with the path of the offending value first, for example
`methods[3] (gpu.queues).params[0] (session): "doc" is missing`.
"""

import json
import re

SCALARS = ("bool", "u32", "u64", "i64", "hex64", "string", "json")
RANGES = {"u32": (0, 2**32 - 1), "u64": (0, 2**64 - 1), "i64": (-(2**63), 2**63 - 1)}
PLACES = ("front", "session", "inspect", "store")
RIGHTS = ("none", "read", "control")

# Words that C or the hand-written half of this directory already owns.
C_WORDS = set(
    """auto break case char const continue default do double else enum extern float for goto if inline int long
    register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while asm
    typeof bool true false linux unix""".split()
)
RESERVED = set(
    """arena arena_block call client client_notification codec decoder encode decode enum enum_value error error_code
    error_info feature format front_handlers inspect_handlers session_handlers store_handlers json kind later member message
    method method_info notification notification_info params path place reply request result right scan struct
    token wire wire_mode wire_event""".split()
)

NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*\Z")
DOTTED = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*(\.[a-z][a-z0-9]*(_[a-z0-9]+)*)+\Z")
VERSION = re.compile(r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\Z")


class SchemaError(Exception):
    """What is wrong, and where."""


def fail(where, message):
    raise SchemaError(f"{where}: {message}")


def c_name(name):
    return name.replace(".", "_")


def no_duplicates(pairs):
    seen = {}
    for key, value in pairs:
        if key in seen:
            raise SchemaError(f'schema: member "{key}" is given twice in one object')
        seen[key] = value
    return seen


def check_object(where, obj, required, optional=()):
    if not isinstance(obj, dict):
        fail(where, "must be an object")
    for key in required:
        if key not in obj:
            fail(where, f'"{key}" is missing')
    for key in obj:
        if key not in required and key not in optional:
            fail(where, f'unknown member "{key}"')


def check_text(where, obj, key):
    value = obj[key]
    if not isinstance(value, str) or not value.strip():
        fail(where, f'"{key}" must be a text that is not empty')
    if value != value.strip() or "\n" in value:
        fail(where, f'"{key}" must be one line without spaces around it')


def check_name(where, obj, pattern=NAME, shape="lower_case_words"):
    name = obj.get("name")
    if not isinstance(name, str) or not pattern.match(name):
        fail(where, f'"name" must be {shape}')
    if len(name) > 60:
        fail(where, '"name" is longer than 60 characters')
    return name


def check_integer(where, obj, key, low, high):
    value = obj[key]
    if not isinstance(value, int) or isinstance(value, bool):
        fail(where, f'"{key}" must be an integer')
    if not low <= value <= high:
        fail(where, f'"{key}" must be between {low} and {high}')
    return value


def check_bool(where, obj, key):
    if not isinstance(obj[key], bool):
        fail(where, f'"{key}" must be true or false')


def check_version(where, obj, key):
    if not isinstance(obj[key], str) or not VERSION.match(obj[key]):
        fail(where, f'"{key}" must be "major.minor"')


def items(where, obj, key):
    """Walk a list of named objects: (place, object) pairs, duplicates refused."""
    value = obj[key]
    if not isinstance(value, list):
        fail(f"{where}.{key}" if where else key, "must be a list")
    seen = set()
    for index, item in enumerate(value):
        place = f"{where}.{key}[{index}]" if where else f"{key}[{index}]"
        if not isinstance(item, dict):
            fail(place, "must be an object")
        name = item.get("name")
        if isinstance(name, str) and name:
            place += f" ({name})"
            if name in seen:
                fail(place, "this name is used before")
            seen.add(name)
        yield place, item


class Schema:
    """A checked schema; lists of plain dictionaries in the order of the file."""

    def __init__(self, data):
        check_object(
            "schema", data, ("name", "version", "doc", "errors", "features", "enums", "types", "methods", "notifications")
        )
        self.name = check_name("schema", data, re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*\Z"), "lower-case-words")
        check_version("schema", data, "version")
        check_text("schema", data, "doc")
        self.version, self.doc = data["version"], data["doc"]
        self.errors = self._errors(data)
        self.features = self._features(data)
        self.enums = self._enums(data)
        self.types = self._types(data)
        self.methods = self._methods(data)
        self.notifications = self._notifications(data)
        self._check_params_limits()
        self.structs = self._order()
        self._check_c_names()

    def objects(self):
        """(name, members, doc, owner) of all that is an object, in an order that C accepts."""
        for item in self.structs:
            yield item["name"], item["members"], item["doc"], f"type {item['name']}"
        for method in self.methods:
            name, owner = c_name(method["name"]), f"method {method['name']}"
            yield f"{name}_params", method["params"], f"Parameters of {method['name']}.", owner
            yield f"{name}_result", method["result"], f"Result of {method['name']}.", owner
        for item in self.notifications:
            yield f"{c_name(item['name'])}_params", item["params"], item["doc"], f"notification {item['name']}"

    # -- lists ---------------------------------------------------------------------------------

    def _errors(self, data):
        codes, names = {}, {}
        for where, item in items("", data, "errors"):
            check_object(where, item, ("name", "code", "exit", "doc"))
            check_name(where, item)
            check_text(where, item, "doc")
            code = check_integer(where, item, "code", -32768, -32000)
            check_integer(where, item, "exit", 1, 125)
            if code in codes:
                fail(where, f"code {code} already belongs to {codes[code]}")
            codes[code] = item["name"]
            names[item["name"]] = item
        for needed in ("parse_error", "invalid_request", "method_not_found", "invalid_params", "internal", "too_large",
                       "unsupported", "timeout"):
            if needed not in names:
                fail("errors", f'the generated code needs "{needed}"')
        self.error_by_name = names
        return data["errors"]

    def _features(self, data):
        for where, item in items("", data, "features"):
            check_object(where, item, ("name", "doc"))
            check_name(where, item)
            check_text(where, item, "doc")
        return data["features"]

    def _enums(self, data):
        self.enum_by_name = {}
        for where, item in items("", data, "enums"):
            check_object(where, item, ("name", "doc", "values"))
            name = check_name(where, item)
            check_text(where, item, "doc")
            self._check_type_name(where, name)
            values = set()
            for place, value in items(where, item, "values"):
                check_object(place, value, ("name", "value", "doc"))
                check_name(place, value)
                check_text(place, value, "doc")
                number = check_integer(place, value, "value", 0, 2**32 - 1)
                if number in values:
                    fail(place, f"value {number} is used before")
                values.add(number)
            if not values:
                fail(where, "an enum needs at least one value")
            self.enum_by_name[name] = item
        return data["enums"]

    def _types(self, data):
        self.type_by_name, self.result_by_name = {}, {}
        for where, item in items("", data, "types"):
            check_object(where, item, ("name", "doc", "members"))
            name = check_name(where, item)
            check_text(where, item, "doc")
            self._check_type_name(where, name)
            if name in self.enum_by_name:
                fail(where, "there is an enum of this name")
            self.type_by_name[name] = item
        for where, item in items("", data, "types"):
            self._members(where, item, "members")
            if not item["members"]:
                fail(where, "a type needs at least one member")
        return data["types"]

    def _methods(self, data):
        """A result may embed that of a method further up, as the type `group_verb_result`."""
        results = {}
        for where, item in items("", data, "methods"):
            check_object(
                where, item, ("name", "doc", "since", "place", "right", "lease", "params", "result", "errors"),
                ("descriptor",),
            )
            check_name(where, item, DOTTED, "group.verb")
            check_text(where, item, "doc")
            check_version(where, item, "since")
            for key, allowed in (("place", PLACES), ("right", RIGHTS)):
                if item[key] not in allowed:
                    fail(where, f'"{key}" must be one of {", ".join(allowed)}')
            check_bool(where, item, "lease")
            if "descriptor" in item:
                check_bool(where, item, "descriptor")
            if item.get("descriptor") and item["place"] != "session":
                fail(where, 'only a method with place "session" answers with a descriptor')
            if item["lease"] and item["right"] != "control":
                fail(where, 'a method that needs the lease needs the right "control"')
            self._members(where, item, "params")
            self.result_by_name = results
            self._members(where, item, "result")
            self.result_by_name = {}
            results[f"{c_name(item['name'])}_result"] = item
            self._check_session(where, item)
            self._check_errors(where, item)
        return data["methods"]

    def _notifications(self, data):
        for where, item in items("", data, "notifications"):
            check_object(where, item, ("name", "doc", "since", "params"))
            check_name(where, item, DOTTED, "group.verb")
            check_text(where, item, "doc")
            check_version(where, item, "since")
            self._members(where, item, "params")
        self.result_by_name = {f"{c_name(item['name'])}_result": item for item in self.methods}
        return data["notifications"]

    # -- details -------------------------------------------------------------------------------

    @staticmethod
    def _check_type_name(where, name):
        if name in SCALARS:
            fail(where, "this name is a built-in type")
        if name in RESERVED or name in C_WORDS:
            fail(where, "this name is reserved")

    @staticmethod
    def _check_session(where, method):
        if method["place"] != "session":
            return
        for param in method["params"]:
            if param["name"] == "session" and param["type"] == "string" and not param.get("optional"):
                return
        fail(where, 'a method with place "session" needs a required string parameter "session"')

    def _check_errors(self, where, method):
        names = method["errors"]
        if not isinstance(names, list):
            fail(f"{where}.errors", "must be a list")
        for index, name in enumerate(names):
            if not isinstance(name, str) or name not in self.error_by_name:
                fail(f"{where}.errors[{index}]", f"there is no error {json.dumps(name)}")
            if name in names[:index]:
                fail(f"{where}.errors[{index}]", f'"{name}" is listed before')

    def _members(self, where, owner, key):
        c_members = {}
        for place, item in items(where, owner, key):
            check_object(
                place, item, ("name", "type", "doc"), ("optional", "min", "max", "max_length", "max_items")
            )
            name = check_name(place, item)
            check_text(place, item, "doc")
            if name in C_WORDS:
                fail(place, "this name is a C word")
            array, base = self._check_type(place, item["type"])
            if "optional" in item:
                check_bool(place, item, "optional")
            self._check_limits(place, item, array, base)
            fields = [name] + ([f"n_{name}"] if array else [])
            if item.get("optional") and (array or base not in ("string", "json")):
                fields.append(f"has_{name}")
            for field in fields:
                if field in c_members:
                    fail(place, f'needs the C member "{field}", which {c_members[field]} has')
                c_members[field] = name

    def _check_type(self, where, text):
        if not isinstance(text, str):
            fail(where, '"type" must be a text')
        array = text.startswith("[]")
        base = text[2:] if array else text
        if base.startswith("[]"):
            fail(where, "arrays of arrays are not supported; give the inner array a type")
        if not any(base in known for known in (SCALARS, self.enum_by_name, self.type_by_name, self.result_by_name)):
            fail(where, f'there is no type "{base}"')
        return array, base

    @staticmethod
    def _check_limits(where, item, array, base):
        for key in ("min", "max"):
            if key in item:
                if base not in RANGES:
                    fail(where, f'"{key}" is for numbers, not for {base}')
                check_integer(where, item, key, *RANGES[base])
        if "min" in item and "max" in item and item["min"] > item["max"]:
            fail(where, '"min" is larger than "max"')
        if "max_length" in item:
            if base != "string":
                fail(where, f'"max_length" is for strings, not for {base}')
            check_integer(where, item, "max_length", 1, 2**20)
        if "max_items" in item:
            if not array:
                fail(where, '"max_items" is for arrays')
            check_integer(where, item, "max_items", 1, 2**20)

    def _check_c_names(self):
        """What becomes one C name must come from one place in the schema."""
        owners = {}
        pairs = [(item["name"], f"enum {item['name']}") for item in self.enums]
        pairs += [(name, owner) for name, _, _, owner in self.objects()]
        for name, owner in pairs:
            if name in owners:
                fail(owner, f"rpc_{name} is also made from {owners[name]}")
            owners[name] = owner
        constants = {}
        triples = [("error", e["name"], "error") for e in self.errors]
        triples += [("feature", f["name"], "feature") for f in self.features]
        triples += [("method", c_name(m["name"]), "method") for m in self.methods]
        triples += [("notification", c_name(n["name"]), "notification") for n in self.notifications]
        triples += [(e["name"], v["name"], f"enum {e['name']}, value") for e in self.enums for v in e["values"]]
        for group, name, owner in triples:
            constant = f"RPC_{group}_{name}".upper()
            if constant in constants:
                fail(f"{owner} {name}", f"{constant} is also made from {constants[constant]}")
            constants[constant] = f"{owner} {name}"

    def _check_params_limits(self):
        """A client must not be able to ask for unbounded arrays, wherever they hide."""

        def walk(where, members, seen):
            for item in members:
                array, base = split_type(item["type"])
                place = f"{where}.{item['name']}"
                if array and "max_items" not in item:
                    fail(place, 'an array that clients send needs "max_items"')
                if base in self.type_by_name and base not in seen:
                    walk(place, self.type_by_name[base]["members"], seen | {base})

        for index, method in enumerate(self.methods):
            walk(f"methods[{index}] ({method['name']}).params", method["params"], frozenset())

    def _order(self):
        """Types with every type that they embed in front of them."""
        done, order = set(), []

        def visit(item, trail):
            if item["name"] in trail:
                loop = " -> ".join(trail[trail.index(item["name"]):] + [item["name"]])
                fail("types", f"{loop} contains itself; only arrays may do that")
            if item["name"] in done:
                return
            for member in item["members"]:
                array, base = split_type(member["type"])
                if not array and base in self.type_by_name:
                    visit(self.type_by_name[base], trail + [item["name"]])
            done.add(item["name"])
            order.append(item)

        for item in self.types:
            visit(item, [])
        return order


def is_bare(members):
    """One `json` member alone travels as that value itself (rpc_struct_is_bare())."""
    return len(members) == 1 and members[0]["type"] == "json" and not members[0].get("optional")


def split_type(text):
    """(is an array, name of the element type)"""
    return (True, text[2:]) if text.startswith("[]") else (False, text)


def load(path):
    with open(path, encoding="utf-8") as stream:
        text = stream.read()
    try:
        data = json.loads(text, object_pairs_hook=no_duplicates)
    except json.JSONDecodeError as error:
        raise SchemaError(f"schema: line {error.lineno}, column {error.colno}: {error.msg}") from error
    return Schema(data)
