#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Turn slots.txt into cudasim_slots.h (what each function takes) and cudasim_stubs.h (the functions).

usage: gen_slots.py slots.txt DIRECTORY
"""
import pathlib
import re
import sys

SCALARS = {"u32": "uint32_t", "u64": "uint64_t", "bool": "bool"}
KINDS = {"<": "SLOT_IN", ">": "SLOT_OUT", "=": "SLOT_INOUT"}


def parse(text):
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        number, name, *args = line.split()
        name, *flags = name.split("/")
        yield int(number), name, flags, args


def buffer_argument(token):
    """(kind, bytes, index of the count or -1)"""
    if token == "<str":
        return "SLOT_STRING", 1, -1
    match = re.fullmatch(r"([<>=])(\d+)(?:\*(\d+))?", token)
    if not match:
        raise SystemExit(f"gen_slots.py: argument '{token}'")
    return KINDS[match[1]], int(match[2]), int(match[3]) if match[3] else -1


def describe(name, flags, args):
    depth = len(args[0]) if args and re.fullmatch("ds?w?l?", args[0]) else 0
    n_scalars = depth + sum(a in SCALARS for a in args)
    buffers = [buffer_argument(a) for a in args if a[0] in "<>="]
    inner = ", ".join("{ %s, %d, %d }" % b for b in buffers)
    runs = "true" if "run" in flags else "false"
    return f'{{ "{name}", {depth}, {n_scalars}, {len(buffers)}, {runs}, {{ {inner or "{ 0 }"} }} }}'


def stub(number, name, args):
    parameters, numbers, pointers = [], [], []
    for arg in args:
        if re.fullmatch("ds?w?l?", arg):
            for letter in arg:
                parameters.append(f"uint32_t {letter}")
                numbers.append(letter)
        elif arg in SCALARS:
            parameters.append(f"{SCALARS[arg]} a{len(parameters)}")
            numbers.append(parameters[-1].split()[1])
        else:
            const = "const " if arg[0] == "<" else ""
            parameters.append(f"{const}void *p{len(parameters)}")
            pointers.append("(void *)" + parameters[-1].split("*")[1])
    return (f"static uint32_t stub_{name}({', '.join(parameters) or 'void'})\n{{\n"
            f"\tconst uint64_t in[] = {{ {', '.join(numbers) or '0'} }};\n"
            f"\tvoid *const p[] = {{ {', '.join(pointers) or 'NULL'} }};\n\n"
            f"\treturn client_call({number}, in, p);\n}}\n")


def main():
    slots = list(parse(pathlib.Path(sys.argv[1]).read_text()))
    out = pathlib.Path(sys.argv[2])
    if [s[0] for s in slots] != list(range(len(slots))):
        raise SystemExit("gen_slots.py: slots are not numbered in order")
    out.mkdir(parents=True, exist_ok=True)
    enum = "".join(f"\tSLOT_{name} = {number},\n" for number, name, _, _ in slots)
    rows = "".join(f"\t{describe(name, flags, args)},\n" for _, name, flags, args in slots)
    (out / "cudasim_slots.h").write_text(
        f"/* Made by gen_slots.py. */\nenum slot_number {{\n{enum}\tSLOT_COUNT,\n}};\n"
        f"#ifdef SLOT_TABLE\nconst struct slot_info slot_table[SLOT_COUNT] = {{\n{rows}}};\n#endif\n")
    stubs = "\n".join(stub(number, name, args) for number, name, flags, args in slots if "local" not in flags)
    entries = "".join(f"\t(void (*)(void)){'local' if 'local' in flags else 'stub'}_{name},\n"
                      for _, name, flags, _ in slots)
    (out / "cudasim_stubs.h").write_text(
        f"/* Made by gen_slots.py. */\n{stubs}\nstatic void (*const functions[])(void) = {{\n{entries}}};\n")


if __name__ == "__main__":
    main()
