# The simulated device (FUSE), and the conformance suite that runs on it and on the real one.
programs += gpu-agent-sim
gpu-agent-sim_src := $(addprefix tests/kfdsim/,main.c front.c control.c status.c topology.c \
	os_linux.c sim.c call.c dispatch.c trap.c event.c queue.c snapshot.c save_area.c runtime.c \
	profile.c)
gpu-agent-sim_cflags := $(call pkg_cflags,fuse3)
gpu-agent-sim_libs := base
gpu-agent-sim_ldlibs := $(call pkg_libs,fuse3)
installs += 755:$(O)/bin/gpu-agent-sim:$(bindir)/gpu-agent-sim

-include tests/conformance/module.mk
