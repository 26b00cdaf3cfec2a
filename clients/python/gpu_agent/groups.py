# SPDX-License-Identifier: MIT
"""What programs ask of a group or a wave that need not be known."""

from __future__ import annotations

from typing import Any, Mapping

__all__ = ["kernel_name"]


def kernel_name(item: Mapping[str, Any]) -> str:
    """Name of the kernel of a group, a wave or a record; empty where none is known, so it can always be sorted."""
    kernel = item.get("kernel") or ""
    name = kernel if isinstance(kernel, str) else kernel.get("name")
    return name or ""
