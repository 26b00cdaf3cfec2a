#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Turn the description of the debugger API into cudasim_slots.h (what each function takes) and
cudasim_stubs.h (the functions).

usage: gen_slots.py DIRECTORY
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "libcudbgshim"))
from slots import Buffer, SCALARS, parameters, read  # noqa: E402

KINDS = {"<": "SLOT_IN", ">": "SLOT_OUT", "=": "SLOT_INOUT"}
UNITS = {**SCALARS, "ptr": "void *", "char": "char", "bytes": "char"}


def buffer(b):
    if b.type == "text":
        return "{ SLOT_STRING, 1, -1 }"
    size = b.size or f"sizeof({UNITS.get(b.type, f'struct cudbgabi_{b.type}')})"
    return f"{{ {KINDS[b.way]}, {size}, {b.count} }}"


def describe(slot):
    n_scalars = len(slot.place) + sum(a in SCALARS for a in slot.args)
    buffers = [buffer(a) for a in slot.args if isinstance(a, Buffer)]
    runs = "true" if "run" in slot.flags else "false"
    return (f'{{ "{slot.name}", {len(slot.place)}, {n_scalars}, {len(buffers)}, {runs}, '
            f'{{ {", ".join(buffers) or "{ 0 }"} }} }}')


def stub(slot):
    types = parameters(slot)
    numbers = [f"a{i}" for i, t in enumerate(types) if not t.endswith("*")]
    pointers = [f"(void *)a{i}" for i, t in enumerate(types) if t.endswith("*")]
    return (f"static uint32_t stub_{slot.name}({', '.join(f'{t} a{i}' for i, t in enumerate(types)) or 'void'})\n{{\n"
            f"\tconst uint64_t in[] = {{ {', '.join(numbers) or '0'} }};\n"
            f"\tvoid *const p[] = {{ {', '.join(pointers) or 'NULL'} }};\n\n"
            f"\treturn client_call(SLOT_{slot.name}, in, p);\n}}\n")


def main():
    slots = read()[1]
    out = pathlib.Path(sys.argv[1])
    rows = "".join(f"\t{describe(slot)},\n" for slot in slots)
    (out / "cudasim_slots.h").write_text(
        f"/* Made by gen_slots.py. */\nconst struct slot_info slot_table[SLOT_COUNT] = {{\n{rows}}};\n")
    stubs = "\n".join(stub(slot) for slot in slots if "local" not in slot.flags)
    entries = "".join(f"\t(void (*)(void)){'local' if 'local' in slot.flags else 'stub'}_{slot.name},\n" for slot in slots)
    (out / "cudasim_stubs.h").write_text(
        f"/* Made by gen_slots.py. */\n{stubs}\nstatic void (*const functions[])(void) = {{\n{entries}}};\n")


if __name__ == "__main__":
    main()
