# What scripts/gpu-check takes to a machine with a GPU; kernels are compiled by the nvcc there, or carried.
test_programs += gpu_check_measure gpu_check_program
gpu_check_measure_src := tests/hardware/measure.c tests/hardware/watch_calls.c
gpu_check_measure_libs := cudbgshim base
gpu_check_measure_ldlibs := $(cudbgshim_ldlibs) -lseccomp
gpu_check_program_src := tests/hardware/program.c
system_tests += tests/hardware/test_hardware_rows.py
