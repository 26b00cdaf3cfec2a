system_tests += tests/protocol/test_gen.py
