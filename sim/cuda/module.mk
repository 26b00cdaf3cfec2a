# The stand-in for NVIDIA's user-space stack: a process that is the GPUs, the two libraries (one set
# per generation of exported symbols), and a program that uses them.
cudasim_slots := $(addprefix $(O)/gen/,cudasim_slots.h cudasim_stubs.h)
generated += $(cudasim_slots)
$(cudasim_slots) &: $(cudbg_slots) sim/cuda/gen_slots.py
	$(call say,GEN,$@)
	$(Q)$(PYTHON) sim/cuda/gen_slots.py $(O)/gen

cudasim_core := sim/cuda/wire/wire.c $(addprefix sim/cuda/gpu/,process.c memory.c cubin.c place.c run.c event.c session.c \
	call.c calls_state.c calls_memory.c calls_session.c calls_batch.c \
	command.c command_plant.c command_wish.c state.c) tests/lib/passed.c

programs += gpu-agent-cuda-sim
gpu-agent-cuda-sim_src := $(addprefix sim/cuda/server/,main.c server.c) $(cudasim_core)
gpu-agent-cuda-sim_libs := base
gpu-agent-cuda-sim_deps := $(cudasim_slots)

# $(1) directory, named after a release; $(2) the same as major * 100 + minor.  Only one file differs;
# the other objects are those of 12.4, and so is the engine.
cudasim_base := $(addprefix lib/base/,str.c fd.c out.c reader.c clock.c)
cudasim_first := cudasim/12.4/libcuda.so.1
cudasim_common = $(filter-out %/libcuda_debug.o,$($(cudasim_first)_obj))
define cudasim_release
shared_objects += cudasim/$(1)/libcuda.so.1
cudasim/$(1)/libcuda.so.1_src := sim/cuda/driver/libcuda_debug.c $(if $(filter 800,$(2)),sim/cuda/driver/client.c)
cudasim/$(1)/libcuda.so.1_cflags := -DRELEASE=$(2)
cudasim/$(1)/libcuda.so.1_deps := $(cudasim_slots)
cudasim/$(1)/libcuda.so.1_ldflags = $$(if $$(filter-out 1204,$(2)),$$(cudasim_common)) -s \
	-Wl,--hash-style=$(if $(filter 800,$(2)),sysv,both) -Wl,-rpath,'$$$$ORIGIN' -pthread -ldl
cudasim/$(1)/libcuda.so.1_needs = $$(if $$(filter-out 1204,$(2)),$$(cudasim_common))
extra_targets += $(O)/cudasim/$(1)/cudasim.conf $(O)/cudasim/$(1)/libcudadebugger.so.1
$(O)/cudasim/$(1)/cudasim.conf: sim/cuda/module.mk
	@mkdir -p $$(@D)
	@echo 'version $(1)' >$$@
$(if $(filter-out 1204,$(2)),$(O)/cudasim/$(1)/libcudadebugger.so.1: $(O)/cudasim/12.4/libcudadebugger.so.1
	@mkdir -p $$(@D)
	@cp $$< $$@)
endef
$(eval $(call cudasim_release,12.4,1204))
$(eval $(call cudasim_release,8.0,800))
$(eval $(call cudasim_release,12.9,1209))
$(eval $(call cudasim_release,13.4,1304))
$(cudasim_first)_src += $(addprefix sim/cuda/,driver/libcuda_driver.c driver/conf.c driver/sharing.c wire/wire.c) $(cudasim_base)

shared_objects += cudasim/12.4/libcudadebugger.so.1
cudasim/12.4/libcudadebugger.so.1_src := $(addprefix sim/cuda/,driver/engine.c driver/client.c driver/conf.c driver/sharing.c wire/wire.c) $(cudasim_base)
cudasim/12.4/libcudadebugger.so.1_ldflags := -pthread -ldl
cudasim/12.4/libcudadebugger.so.1_deps := $(cudasim_slots)

# Never with sanitizers: a debugger calls functions in it, on the stacks of its threads.
plain_programs += bin/gpu-agent-cuda-simapp
bin/gpu-agent-cuda-simapp_src := sim/cuda/app.c sim/app/process.c sim/app/scene.c tests/lib/words.c lib/base/argv.c lib/base/nearest.c $(cudasim_base)
bin/gpu-agent-cuda-simapp_ldflags := $(O)/cudasim/12.4/libcuda.so.1 -pthread
bin/gpu-agent-cuda-simapp_ldflags += -Wl,-rpath,'$$ORIGIN/../cudasim/12.4:$(libdir)/gpu-agent/cudasim/12.4'
bin/gpu-agent-cuda-simapp_deps := $(O)/gen/paths.h
bin/gpu-agent-cuda-simapp_needs := $(O)/gen/paths.h $(addprefix $(O)/cudasim/12.4/,libcuda.so.1 libcudadebugger.so.1 cudasim.conf)

# Installed, the stand-ins lie where the loader finds them only for who asks for them.
cudasim_files := $(filter-out 8.0/libcudadebugger.so.1,$(foreach v,8.0 12.4 12.9 13.4,$(addprefix $(v)/,libcuda.so.1 libcudadebugger.so.1 cudasim.conf)))
installs += $(foreach f,$(cudasim_files),644:$(O)/cudasim/$(f):$(libdir)/gpu-agent/cudasim/$(f))
installs += $(foreach p,gpu-agent-cuda-sim gpu-agent-cuda-simapp,755:$(O)/bin/$(p):$(bindir)/$(p))

define cudasim_fuzz
fuzzers += fuzz_$(1)
fuzz_$(1)_src := sim/cuda/gpu/fuzz_$(1).c $(cudasim_core)
fuzz_$(1)_cflags := -Itests/lib
fuzz_$(1)_libs := fuzz base
fuzz_$(1)_deps := $(cudasim_slots)
endef
$(eval $(call cudasim_fuzz,cudasim))
$(eval $(call cudasim_fuzz,cubin))
system_tests += sim/cuda/test_cudasim.py sim/cuda/test_cudasim_calls.py
