system_tests += tests/bench/test_compare.py
