# SPDX-License-Identifier: MIT
"""The guest that systemd started."""
import os

import pytest


@pytest.fixture(scope="module")
def open_kfd():
    """As a rule of udev would have it for this machine's users."""
    os.chmod("/dev/kfd", 0o666)
