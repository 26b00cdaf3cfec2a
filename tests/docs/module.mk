# What the documents say is what the programs do.
system_tests += $(foreach t,commands examples pictures prose troubleshooting,tests/docs/test_$(t).py)
