# What the documents say is what the programs do.
system_tests += tests/docs/test_prose.py
