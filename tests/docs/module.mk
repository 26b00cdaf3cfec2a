# What the documents say is what the programs do.
system_tests += $(foreach t,examples prose,tests/docs/test_$(t).py)
