# Runs in the guest only (scripts/vm); on a machine with a GPU it works as well.
test_programs += vm-target
vm-target_src := tests/vm/target.c
vm-target_ldlibs := -lpthread
