# SPDX-License-Identifier: MIT
"""What the generators of clients share: names in CamelCase, and which a language keeps for itself."""

from gen_schema import c_name, fail


def pascal(name):
    return "".join(word[0].upper() + word[1:] for word in c_name(name).split("_"))


def camel(name):
    text = pascal(name)
    return text[0].lower() + text[1:]


class Names:
    """Names of types in one language.

    reserved: what the language or the hand-written half owns; such names get `Gpu` in front.
    """

    def __init__(self, schema, reserved):
        self.reserved = reserved
        self.schema = schema
        self._owners = {}
        self.types = {item["name"]: self._claim(item["name"], f"type {item['name']}")
                      for item in schema.enums + schema.types}
        self.types.update({name: self._claim(name, f"method {item['name']}") for name, item in schema.result_by_name.items()})
        self.errors = {item["name"]: self._claim(item["name"].removesuffix("_error") + "_error", f"error {item['name']}")
                       for item in schema.errors}
        self.structs = [(self.types.get(name) or self._claim(name, owner), members, doc)
                        for name, members, doc, owner in schema.objects()]

    def _claim(self, name, owner):
        """The name of a type, which nothing else may have."""
        text = pascal(name)
        if text in self.reserved:
            text = "Gpu" + text
        if text in self._owners:
            fail(owner, f"{text} is also made from {self._owners[text]}")
        self._owners[text] = owner
        return text


def params_of(method):
    return f"{pascal(method['name'])}Params"


def result_of(method):
    return f"{pascal(method['name'])}Result"


def errors_text(method):
    return ", ".join(method["errors"])
