$(foreach t,scalar,$(eval $(call unit_test,values_$(t),values base,$(values_ldlibs))))
