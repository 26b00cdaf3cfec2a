# Calls in another process, with real processes: inferior_victim is disturbed, test_inferior looks.
# Never with sanitizers: the program itself is the instrument; its assembly pushes where a red zone
# could be.  Both know some processors, as the calls do.
ifneq ($(filter x86_64 aarch64,$(processor)),)
plain_programs += tests/inferior_victim
tests/inferior_victim_src := tests/inferior/victim.c tests/inferior/victim_$(processor).c
tests/inferior_victim_cflags := $(if $(filter x86_64,$(processor)),-mno-red-zone)
tests/inferior_victim_ldflags := -lpthread

tests += test_inferior
test_inferior_src := tests/inferior/test_inferior.c
test_inferior_cflags := -Itests/lib
test_inferior_libs := test cudbgshim base
test_inferior_ldlibs := $(cunit_libs) $(cudbgshim_ldlibs)
endif

# Attach and detach alone, for test_session.py and the peers.
test_programs += session_probe
session_probe_src := tests/inferior/session_probe.c tests/inferior/probe.c
session_probe_libs := cudbgshim base
session_probe_ldlibs := $(cudbgshim_ldlibs)

# The same for NVIDIA's libraries, which open each other in a way that sanitizers refuse.
plain_programs += tests/session_probe_plain
tests/session_probe_plain_src := $(session_probe_src) $(cudbgshim_src) $(addprefix lib/base/,clock.c elf_view.c fd.c reader.c str.c)
tests/session_probe_plain_deps := $(cudbg_slots)
tests/session_probe_plain_ldflags := $(cudbgshim_ldlibs)

system_tests += tests/inferior/test_session.py
