# Calls in another process, with real processes: inferior_victim is disturbed, test_inferior looks.
test_programs += inferior_victim
inferior_victim_src := tests/inferior/victim.c
# The program itself is the instrument; its assembly pushes where a red zone could be.
inferior_victim_cflags := -mno-red-zone -fno-sanitize=all
inferior_victim_ldlibs := -fno-sanitize=all -lpthread

tests += test_inferior
test_inferior_src := tests/inferior/test_inferior.c
test_inferior_cflags := -Itests/lib
test_inferior_libs := test cudbgshim base
test_inferior_ldlibs := $(cunit_libs) $(cudbgshim_ldlibs)

# Attach and detach alone, for test_session.py and the peers.
test_programs += session_probe
session_probe_src := tests/inferior/session_probe.c tests/inferior/probe.c
session_probe_libs := cudbgshim base
session_probe_ldlibs := $(cudbgshim_ldlibs)

system_tests += tests/inferior/test_session.py
