system_tests += tests/system/test_session.py tests/system/test_refusals.py tests/system/test_wire.py \
	tests/system/test_exceptions.py tests/system/test_exception_codes.py tests/system/test_kill.py tests/system/test_handshake.py \
	tests/system/test_forward.py tests/system/test_idle.py tests/system/test_waves.py tests/system/test_progress.py \
	tests/system/test_symbols.py tests/system/test_review.py tests/system/test_rules.py tests/system/test_rules_process.py tests/system/test_store.py tests/system/test_registers.py \
	tests/system/test_dump.py tests/system/test_dump_stream.py tests/system/test_dump_cuda.py tests/system/test_analyze.py tests/system/test_cuda.py \
	tests/system/test_cuda_sessions.py tests/system/test_cuda_lines.py

# The engine of hooks alone, for test_hooks.py.
test_programs += hooks_probe
hooks_probe_src := tests/system/hooks_probe.c
hooks_probe_libs := rules agentd base
hooks_probe_ldlibs := -linih -lcap -lseccomp
system_tests += tests/system/test_hooks.py tests/system/test_suspend.py tests/system/test_undo.py tests/system/test_lease.py \
	tests/system/test_journal.py

# The debugger API alone, for test_cudbgshim.py.
test_programs += cudbgshim_probe
cudbgshim_probe_src := tests/system/cudbgshim_probe.c
cudbgshim_probe_libs := cudbgshim base
cudbgshim_probe_ldlibs := $(cudbgshim_ldlibs)
system_tests += tests/system/test_cudbgshim.py

# What the system-call filters refuse, for test_sandbox.py.  Sanitizers need what the filters are there to refuse.
plain_programs += tests/sandbox_probe
tests/sandbox_probe_src := tests/system/sandbox_probe.c agentd/privileges.c agentd/sandbox.c
tests/sandbox_probe_ldflags := -lcap -lseccomp
system_tests += tests/system/test_sandbox.py tests/system/test_access.py tests/system/test_heir.py

# A file system that stops answering, for test_descriptors.py.
test_programs += stuck_files
stuck_files_src := tests/system/stuck_files.c
stuck_files_cflags := $(call pkg_cflags,fuse3)
stuck_files_ldlibs := $(call pkg_libs,fuse3)
system_tests += tests/system/test_descriptors.py
system_tests += tests/system/test_check.py tests/system/test_sweep.py tests/system/test_one_stop.py
