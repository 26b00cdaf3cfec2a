# Runs as root; on a simulator of its own, or on the device that GPU_AGENT_KFD names.
test_programs += conformance
conformance_src := $(addprefix tests/conformance/,main.c env.c ops.c acceptance.c acceptance2.c \
	measured.c handshake.c simulator.c)
conformance_cflags := -Itests/lib
conformance_libs := test base
conformance_ldlibs := $(cunit_libs) -pthread
system_tests += $(O)/tests/conformance tests/conformance/test_answers.py

# The same program for the simulator and for real kernels, whose answers test_answers.py compares.
test_programs += kfd_answers
kfd_answers_src := $(addprefix tests/conformance/,answers.c answers_device.c answers_session.c answers_life.c \
	env.c ops.c)
kfd_answers_cflags := -Itests/lib
kfd_answers_libs := test base
kfd_answers_ldlibs := $(cunit_libs) -pthread
