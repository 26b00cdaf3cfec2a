# SPDX-License-Identifier: MIT
"""Places where frameworks can call a watchdog.  Each module is for one framework, which it imports when its function is called."""
