# All that are there.
system_tests += $(sort $(wildcard tests/system/*/test_*.py))

# What says that it is an interpreter, for test_stacks.py: its symbols are exported.
test_programs += forged
forged_src := tests/system/host/forged.c
forged_ldlibs := -rdynamic

# Native frames are known of two processors.
ifneq ($(filter x86_64 aarch64,$(processor)),)
# What waits, for test_native.py, as compilers make it by themselves and with frame pointers.
plain_programs += tests/waits tests/waits_frame_pointer
tests/waits_src := tests/system/host/waits.c
tests/waits_cflags := -fomit-frame-pointer '-DWAITS_MACHINE="waits_$(processor).h"'
tests/waits_ldflags := -rdynamic -lpthread
tests/waits_frame_pointer_src := tests/system/host/waits.c
tests/waits_frame_pointer_cflags := -fno-omit-frame-pointer '-DWAITS_MACHINE="waits_$(processor).h"'
tests/waits_frame_pointer_ldflags := -rdynamic -lpthread
# What runs, for test_stops.py.
plain_programs += tests/stops
tests/stops_src := tests/system/host/stops.c
tests/stops_cflags := -fno-omit-frame-pointer '-DWAITS_MACHINE="waits_$(processor).h"'
tests/stops_ldflags := -rdynamic -lpthread
endif

ifeq ($(processor),x86_64)
# What is hard to unwind, for test_native.py; one call is broken on its way.
plain_programs += tests/frames
tests/frames_src := tests/system/host/frames_x86_64.c
tests/frames_cflags := -fomit-frame-pointer
tests/frames_ldflags := -rdynamic -lpthread -Wl,-z,lazy,-z,norelro
endif

# The engine of hooks alone, for test_hooks.py.
test_programs += hooks_probe
hooks_probe_src := tests/system/rule/hooks_probe.c
hooks_probe_libs := rules agentd base
hooks_probe_ldlibs := -linih -lcap -lseccomp

# The debugger API alone, for test_cudbgshim.py.
test_programs += cudbgshim_probe
cudbgshim_probe_src := tests/system/cuda/cudbgshim_probe.c
cudbgshim_probe_libs := cudbgshim base
cudbgshim_probe_ldlibs := $(cudbgshim_ldlibs)

# A worker that has fallen, and its tracer, for test_tracer.py.
test_programs += tracer_probe
tracer_probe_src := tests/system/cuda/tracer_probe.c
tracer_probe_libs := agentd base

# What the system-call filters refuse, for test_sandbox.py.  Sanitizers need what the filters are there to refuse.
plain_programs += tests/sandbox_probe
tests/sandbox_probe_src := tests/system/daemon/sandbox_probe.c agentd/landlock.c agentd/privileges.c agentd/sandbox.c
tests/sandbox_probe_ldflags := -lcap -lseccomp

# A worker with other ids than it has, for test_worker_ids.py.
plain_programs += tests/ids_probe
tests/ids_probe_src := tests/system/daemon/ids_probe.c agentd/landlock.c agentd/privileges.c agentd/sandbox.c
tests/ids_probe_ldflags := -lcap -lseccomp -lpthread

# A file system that stops answering, for test_descriptors.py.
test_programs += stuck_files
stuck_files_src := tests/system/client/stuck_files.c
stuck_files_cflags := $(call pkg_cflags,fuse3)
stuck_files_ldlibs := $(call pkg_libs,fuse3)

# A worker with somebody else's code and its connect broker, for test_connect.py.
plain_programs += tests/connect_probe
tests/connect_probe_src := tests/system/daemon/connect_probe.c agentd/landlock.c agentd/privileges.c agentd/sandbox.c lib/base/fd.c
tests/connect_probe_ldflags := -lcap -lseccomp
# The agent's rule alone, and whom it judges, for test_pairs.py.  A sanitizer's exec would take too long.
test_programs += access_judge
access_judge_src := tests/system/access/judge.c
access_judge_libs := agentd base
access_judge_ldlibs := -lcap
plain_programs += tests/access_player
tests/access_player_src := tests/system/access/player.c
