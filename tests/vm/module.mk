# What is read of a guest's kernel log.
system_tests += tests/vm/test_complaints.py

# Runs in the guest only (scripts/vm); on a machine with a GPU it works as well.
test_programs += vm-target
vm-target_src := tests/vm/target.c
vm-target_ldlibs := -lpthread

test_programs += test_kernel
test_kernel_src := tests/vm/test_kernel.c
test_kernel_cflags := -Itests/lib
test_kernel_libs := test kfdtrap base
test_kernel_ldlibs := $(cunit_libs) $(kfdtrap_ldlibs) -lpthread

# What it does may crash a kernel: only scripts/check vm-debug runs it.
test_programs += test_kfd_chaos
test_kfd_chaos_src := tests/vm/test_kfd_chaos.c
test_kfd_chaos_cflags := -Itests/lib
test_kfd_chaos_libs := test kfdtrap base
test_kfd_chaos_ldlibs := $(cunit_libs) $(kfdtrap_ldlibs) -lpthread
