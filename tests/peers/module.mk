# Independent judges: other people's programs and headers, fetched when they can be had.
system_tests += tests/peers/test_dbgapi.py tests/peers/test_uapi.py
