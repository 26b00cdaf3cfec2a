$(foreach t,store store_limits store_meta,$(eval $(call unit_test,$(t),store base)))
# Holes are counted.
test_store_ldlibs += -Xlinker --wrap=fallocate
test_store_src := tests/unit/store/test_store.c tests/unit/store/store_dir.c
test_store_limits_src := tests/unit/store/test_store_limits.c tests/unit/store/store_dir.c
test_store_meta_src := tests/unit/store/test_store_meta.c
