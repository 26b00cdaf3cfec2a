# Values of variables: what independent readers say of the same registers and memory.
system_tests += tests/values/test_amd.py

test_programs += values_probe
values_probe_src := tests/values/values_probe.c
values_probe_cflags := $(symbols_cflags)
values_probe_libs := values symbols base
values_probe_ldlibs := $(values_ldlibs)
