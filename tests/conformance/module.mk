# Runs as root; on a simulator of its own, or on the device that GPU_AGENT_KFD names.
test_programs += conformance
conformance_src := $(addprefix tests/conformance/,main.c env.c ops.c acceptance.c acceptance2.c \
	measured.c handshake.c simulator.c)
conformance_cflags := -Itests/lib
conformance_libs := test base
conformance_ldlibs := $(cunit_libs) -pthread
system_tests += $(O)/tests/conformance
