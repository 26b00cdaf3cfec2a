$(foreach t,scalar place value expression,$(eval $(call unit_test,values_$(t),values symbols base,$(values_ldlibs))))
$(foreach t,value expression,$(eval test_values_$(t)_cflags += $(call pkg_cflags,libdw libelf)))
$(eval $(call unit_test,values_signature,values base,$(values_ldlibs)))
$(eval $(call unit_test,values_arguments,values symbols base,$(values_ldlibs) $(symbols_ldlibs)))
# The simulator's loader stands in for the driver's.
test_values_arguments_src += sim/cuda/gpu/cubin.c
test_values_arguments_cflags += -Isim/cuda/gpu
test_values_arguments_deps := $(cudbg_slots)
