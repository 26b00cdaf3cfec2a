# Bounded: three minutes of the system stage; longer by hand (docs/reference/chaos.md).
system_tests += tests/chaos/test_chaos.py
