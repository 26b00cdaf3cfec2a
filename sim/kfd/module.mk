# The simulated device (FUSE), and the conformance suite that runs on it and on the real one.
kfdsim_core := $(addprefix sim/kfd/device/,topology.c drm.c memory.c work.c work_copies.c sim.c call.c dispatch.c trap.c event.c queue.c \
	snapshot.c save_area.c waves.c runtime.c app_event.c profile.c) \
	$(addprefix sim/kfd/wave/,wave_script.c wave_encode.c wave_silicon.c) \
	$(addprefix sim/kfd/packet/,aql.c sdma.c copy_kernel.c) \
	$(addprefix sim/kfd/server/,control.c status.c) tests/lib/words.c

programs += gpu-agent-sim
gpu-agent-sim_src := $(addprefix sim/kfd/server/,main.c front.c passthrough.c store.c os_linux.c) $(kfdsim_core)
gpu-agent-sim_cflags := $(call pkg_cflags,fuse3)
gpu-agent-sim_libs := base
gpu-agent-sim_ldlibs := $(call pkg_libs,fuse3)
installs += 755:$(O)/bin/gpu-agent-sim:$(bindir)/gpu-agent-sim

fuzzers += fuzz_kfdsim
fuzz_kfdsim_src := sim/kfd/server/fuzz_kfdsim.c $(kfdsim_core)
fuzz_kfdsim_cflags := -Itests/lib
fuzz_kfdsim_libs := fuzz base

fuzzers += fuzz_sim_packet
fuzz_sim_packet_src := $(addprefix sim/kfd/packet/,fuzz_sim_packet.c aql.c sdma.c copy_kernel.c)
fuzz_sim_packet_cflags := -Itests/lib
fuzz_sim_packet_libs := fuzz base

$(eval $(call unit_test,kfdsim_crowd,base))
test_kfdsim_crowd_src += $(kfdsim_core)

-include tests/conformance/module.mk
