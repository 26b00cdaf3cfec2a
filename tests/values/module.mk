# Values of variables: what independent readers say of the same registers and memory.
system_tests += tests/values/test_amd.py tests/values/test_libraries.py tests/values/test_hostile.py

test_programs += values_probe
values_probe_src := tests/values/values_probe.c
values_probe_cflags := $(symbols_cflags)
values_probe_libs := values symbols base
values_probe_ldlibs := $(values_ldlibs)

# CUDA cores with random content, for test_nvidia.py.
system_tests += tests/values/test_nvidia.py
test_programs += cuda_values
cuda_values_src := tests/values/cuda_values.c
cuda_values_cflags := $(symbols_cflags)
cuda_values_libs := values symbols corefile base
cuda_values_ldlibs := $(values_ldlibs) $(corefile_ldlibs)
