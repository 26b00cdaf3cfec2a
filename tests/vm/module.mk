# Runs in the guest only (scripts/vm); on a machine with a GPU it works as well.
test_programs += vm-target
vm-target_src := tests/vm/target.c
vm-target_ldlibs := -lpthread

test_programs += test_kernel
test_kernel_src := tests/vm/test_kernel.c
test_kernel_cflags := -Itests/lib
test_kernel_libs := test kfdtrap base
test_kernel_ldlibs := $(cunit_libs) $(kfdtrap_ldlibs) -lpthread
