# Places, types, values and expressions; "expression" is one of DWARF, "watch" one of a person.
define values_fuzz
$(call fuzz_target,values_$(1),values symbols,$(values_ldlibs))
fuzz_values_$(1)_src := tests/fuzz/values/fuzz_values_$(1).c
fuzz_values_$(1)_cflags += $(call pkg_cflags,libdw libelf)
endef
$(foreach t,expression tables image type watch,$(eval $(call values_fuzz,$(t))))
$(eval $(call fuzz_target,line_source,symbols,$(symbols_ldlibs)))
