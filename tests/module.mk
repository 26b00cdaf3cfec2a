archives += test fuzz
test_src := tests/lib/testlib.c
fuzz_src := tests/lib/fuzzlib.c
cunit_libs := $(call pkg_libs,cunit)

include tests/bench/module.mk
include tests/unit/module.mk
include tests/values/module.mk
include tests/fuzz/module.mk
include tests/inferior/module.mk
include tests/hardware/module.mk
include tests/wave/module.mk
include tests/system/module.mk
include tests/chaos/module.mk
include tests/clients/module.mk
include tests/docs/module.mk
include tests/dap/module.mk
include tests/editors/module.mk
include tests/peers/module.mk
include tests/vm/module.mk
