# What scripts/gpu-check takes to a machine with a GPU; the programs there are compiled by its nvcc.
test_programs += gpu_check_measure
gpu_check_measure_src := tests/hardware/measure.c
gpu_check_measure_libs := cudbgshim base
gpu_check_measure_ldlibs := $(cudbgshim_ldlibs)
