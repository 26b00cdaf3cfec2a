# One program per module under test.  $(call unit_test,name,libs,ldlibs)
define unit_test
tests += test_$(1)
test_$(1)_src := tests/unit/test_$(1).c
test_$(1)_cflags := -Itests/lib
test_$(1)_libs := test $(2)
test_$(1)_ldlibs := $(cunit_libs) $(3)
endef

$(eval $(call unit_test,base,base))
$(eval $(call unit_test,agentd_ipc,agentd base))
$(eval $(call unit_test,agentd_access,agentd base))
$(eval $(call unit_test,spawn_config,spawn base,-linih))

include $(wildcard tests/unit/*/module.mk)
