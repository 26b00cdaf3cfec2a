#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Generate code and documents from the protocol schema.

usage: gen.py SCHEMA OUTPUT_DIRECTORY

Deterministic: the same schema gives the same bytes.  A mistake in the schema is one line on stderr
and exit status 1; nothing is written then.
"""

import os
import sys

sys.dont_write_bytecode = True

import gen_c  # noqa: E402
import gen_doc  # noqa: E402
import gen_py  # noqa: E402
import gen_schema  # noqa: E402
import gen_ts  # noqa: E402


def outputs(schema):
    openrpc = gen_doc.openrpc(schema)
    return {
        "rpc_gen.h": gen_c.Header(schema).write(),
        "rpc_gen.c": gen_c.Source(schema, openrpc).write(),
        "rpc_client_gen.h": gen_c.ClientHeader(schema).write(),
        "rpc_client_gen.c": gen_c.ClientSource(schema).write(),
        "protocol.py": gen_py.protocol(schema),
        "protocol.ts": gen_ts.protocol(schema),
        "rpc_names.h": gen_c.NamesHeader(schema).write(),
        "openrpc.json": openrpc + "\n",
        "PROTOCOL.md": gen_doc.protocol(schema),
        "methods.txt": "".join(f"{name}\n" for name in sorted(m["name"] for m in schema.methods)),
    }


def main(argv):
    if len(argv) != 3:
        sys.stderr.write("usage: gen.py SCHEMA OUTPUT_DIRECTORY\n")
        return 2
    try:
        files = outputs(gen_schema.load(argv[1]))
        os.makedirs(argv[2], exist_ok=True)
        for name, text in files.items():
            with open(os.path.join(argv[2], name), "w", encoding="utf-8") as stream:
                stream.write(text)
    except gen_schema.SchemaError as error:
        sys.stderr.write(f"{argv[1]}: {error}\n")
        return 1
    except OSError as error:
        sys.stderr.write(f"gen.py: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
