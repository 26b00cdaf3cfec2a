# SPDX-License-Identifier: MIT
"""Files of pprof, read by what their format's description says (proto/profile.proto of github.com/google/pprof)."""
from __future__ import annotations

import pathlib
from typing import Any, Dict, Iterator, List, Tuple, Union

Value = Union[int, bytes]


def varint(data: bytes, at: int) -> Tuple[int, int]:
    """(value, position behind it)"""
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if not data[at - 1] & 0x80:
            return value, at


def fields(data: bytes) -> Iterator[Tuple[int, Value]]:
    """(number, value) of each field of a message; only the two kinds that the format has."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        value, at = varint(data, at)
        assert key & 7 in (0, 2), key
        if key & 7 == 0:
            yield key >> 3, value
        else:
            assert at + value <= len(data), (at, value, len(data))
            yield key >> 3, data[at:at + value]
            at += value


def packed(data: bytes) -> List[int]:
    values, at = [], 0
    while at < len(data):
        value, at = varint(data, at)
        values.append(value)
    return values


def one(data: Any) -> Dict[int, Any]:
    """A message whose fields are there once."""
    found: Dict[int, Any] = {}
    for number, value in fields(data):
        assert number not in found, (number, data)
        found[number] = value
    return found


class Profile:
    """types: (type, unit); samples: (frames, innermost first, values); a frame is (function, file, line)."""

    def __init__(self, path: pathlib.Path) -> None:
        every: Dict[int, List[Any]] = {}
        for number, value in fields(path.read_bytes()):
            every.setdefault(number, []).append(value)
        text = [t.decode() for t in every[6]]
        assert text[0] == "" and len(set(text[1:])) > 0
        functions = {f[1]: (text[f[2]], text[f.get(4, 0)]) for f in map(one, every.get(5, []))}
        frames = {}
        for location in map(one, every.get(4, [])):
            line = one(location[4])
            frames[location[1]] = (*functions[line[1]], line.get(2, 0))
        self.types = [(text[t[1]], text[t[2]]) for t in map(one, every[1])]
        self.samples = [([frames[i] for i in packed(s[1])], packed(s[2])) for s in map(one, every.get(2, []))]
        self.comment = text[every[13][0]]
        self.default = text[every[14][0]]
        self.duration_ns = every[10][0]
        assert all(len(values) == len(self.types) for _, values in self.samples)
