# One program per module under test.  $(call unit_test,name,libs,ldlibs)
define unit_test
tests += test_$(1)
test_$(1)_src := $(wildcard tests/unit/*/test_$(1).c)
test_$(1)_cflags := -Itests/lib
test_$(1)_libs := test $(2)
test_$(1)_ldlibs := $(cunit_libs) $(3)
endef

$(eval $(call unit_test,base,base))
$(eval $(call unit_test,hoststack,hoststack base))
$(eval $(call unit_test,hoststack_aarch64,hoststack base))
$(eval $(call unit_test,hoststack_native,hoststack base))
$(eval $(call unit_test,waits,waits symbols base))
$(eval $(call unit_test,waits_graph,waits base))
$(eval $(call unit_test,waits_grid,waits base))
$(eval $(call unit_test,waits_hostcall,waits base))
$(eval $(call unit_test,waits_mbarrier,waits base))
$(eval $(call unit_test,waits_cbu,waits base))
$(eval $(call unit_test,waits_sass_poll,waits base))
$(eval $(call unit_test,waits_poll,waits base))
$(eval $(call unit_test,waits_sass,waits base))
$(eval $(call unit_test,waits_collective,waits base))
$(eval $(call unit_test,waits_rccl,waits base))
$(eval $(call unit_test,waits_nccl,waits base))
$(eval $(call unit_test,waits_nccl_work,waits base))
$(eval $(call unit_test,agentd_ipc,agentd base))
$(eval $(call unit_test,agentd_child,agentd base))
# A signal that comes between a seize and the stop.
$(eval $(call unit_test,agentd_handshake,agentd base,-lcap -Xlinker --wrap=ptrace))
# The kernel's answers about a peer, as other kernels give them.
$(eval $(call unit_test,agentd_access,agentd base,-lcap -Xlinker --wrap=getsockopt))
$(eval $(call unit_test,monitor_config,rules agentd base,-linih))
test_monitor_config_deps := $(protocol_gen)
$(eval $(call unit_test,judge_clients,judge agentd base,-lcap))
$(eval $(call unit_test,judge_budgets,judge agentd base,-lcap))
$(eval $(call unit_test,judge_uses,judge agentd base,-lcap))
$(eval $(call unit_test,judge_requests,judge agentd base,-lcap))
$(eval $(call unit_test,agentd_outbox,agentd base))
$(eval $(call unit_test,manager_stop,manager agentd base,-lcap))
$(eval $(call unit_test,monitor_requests,monitor agentd base,-lcap))
test_monitor_requests_deps := $(protocol_gen)
$(eval $(call unit_test,manager_requests,manager agentd base,-lcap))
test_manager_requests_deps := $(protocol_gen)
$(eval $(call unit_test,manager_rules_child,manager agentd base,-lcap))
test_manager_rules_child_deps := $(protocol_gen)
$(eval $(call unit_test,monitor_workers,monitor agentd base,-lcap))
test_monitor_workers_deps := $(protocol_gen)
$(eval $(call unit_test,monitor_rules,rules agentd protocol base,-linih $(protocol_ldlibs)))
test_monitor_rules_deps := $(protocol_gen)
$(eval $(call unit_test,monitor_watch,rules agentd base,-linih -lcap))
test_monitor_watch_deps := $(protocol_gen)

$(eval $(call unit_test,kfdtrap_abi,kfdtrap base))
# A newer linux-libc-dev, unpacked somewhere, widens what this test can compare.
KFD_UAPI_INCLUDE ?=
test_kfdtrap_abi_cflags += $(if $(KFD_UAPI_INCLUDE),-isystem $(KFD_UAPI_INCLUDE)) \
	-idirafter libkfdtrap/uapi
$(eval $(call unit_test,kfdtrap_commands,kfdtrap base,$(kfdtrap_ldlibs)))
$(eval $(call unit_test,kfdtrap_errors,kfdtrap base,$(kfdtrap_ldlibs)))
$(eval $(call unit_test,kfdtrap_snapshot,kfdtrap base,$(kfdtrap_ldlibs)))
$(eval $(call unit_test,kfdtrap_topology,kfdtrap base,$(kfdtrap_ldlibs)))
$(foreach t,wave wave_checks wave_state wave_registers wave_sizes,$(eval \
	$(call unit_test,kfdtrap_$(t),kfdtrap base)))
# Pages of another size than this machine's.
test_kfdtrap_wave_sizes_src += tests/lib/pagelib.c
test_kfdtrap_wave_sizes_ldlibs += -Xlinker --wrap=sysconf

define cudbgshim_test
$(call unit_test,cudbgshim_$(1),cudbgshim base,$(cudbgshim_ldlibs))
test_cudbgshim_$(1)_deps := $(cudbg_slots)
endef
$(foreach t,loader calls names state dynsym session $(filter x86_64,$(processor)),$(eval $(call cudbgshim_test,$(t))))
# What it knows of the kernel is tested on every processor.
$(eval $(call unit_test,cudbgshim_tracer_aarch64,base))
test_cudbgshim_tracer_aarch64_src += libcudbgshim/src/tracer_aarch64.c
test_cudbgshim_dynsym_src += tests/lib/pagelib.c
test_cudbgshim_dynsym_ldlibs += -Xlinker --wrap=sysconf
# The numbers that sessions are labelled with.
test_cudbgshim_session_ldlibs += -Xlinker --wrap=getrandom
$(foreach t,loader calls names state,$(eval test_cudbgshim_$(t)_src += tests/unit/cudbgshim/cudbgshim_fake.c))
test_cudbgshim_state_src += tests/unit/cudbgshim/cudbgshim_gpu.c

define rpc_test
$(call unit_test,rpc_$(1),protocol base,$(protocol_ldlibs))
test_rpc_$(1)_deps := $(protocol_gen)
endef
$(foreach t,arena client err format message params wire,$(eval $(call rpc_test,$(t))))

define ctl_test
$(call unit_test,ctl_$(1),ctl waits protocol base,$(protocol_ldlibs) -lm)
test_ctl_$(1)_deps := $(protocol_gen)
endef
$(foreach t,format circle document headline host hosts names compare merge nccl pods record report slurm watch when why,$(eval $(call ctl_test,$(t))))

$(eval $(call unit_test,ctl_mcp,ctl dap disasm waits protocol base,$(protocol_ldlibs) $(disasm_ldlibs)))
test_ctl_mcp_deps := $(protocol_gen)

define dap_test
$(call unit_test,dap_$(1),dap disasm protocol base,$(protocol_ldlibs) $(disasm_ldlibs))
test_dap_$(1)_deps := $(protocol_gen)
endef
$(foreach t,alive paths refs,$(eval $(call dap_test,$(t))))

define front_test
$(call unit_test,front_$(1),$(front_libs),$(front_ldlibs))
test_front_$(1)_deps := $(protocol_gen)
endef
$(foreach t,net,$(eval $(call front_test,$(t))))

define worker_test
$(call unit_test,worker_$(1),$(worker_libs),$(worker_ldlibs))
test_worker_$(1)_deps := $(protocol_gen)
endef
$(foreach t,undo readers hold suspension rate_limit subscribers usage kfd_journal late_memory memory thread_pool relay leader wait host convert inspect target_kfd kfd_control kfd_events target_cuda core session capture group code arguments nccl nccl_gates nccl_releases value,$(eval $(call worker_test,$(t))))
# They share a small kernel.
$(foreach t,target_kfd kfd_control kfd_events,$(eval test_worker_$(t)_src += tests/unit/worker/kernel.c))
# They share an image of its memory.
$(foreach t,nccl_gates nccl_releases,$(eval test_worker_$(t)_src += tests/unit/waits/nccl_image.c))
test_worker_target_cuda_deps += $(cudbg_slots)
# The target exchanges a file between two opens of it.
test_worker_code_ldlibs += -Xlinker --wrap=openat
# Samples lie seconds apart, which nobody waits for.
test_worker_wait_ldlibs += -Xlinker --wrap=clock_now_ns $(addprefix -Xlinker --wrap=rpc_arena_,array printf strdup)

define symbols_test
$(call unit_test,symbols_$(1),symbols base,$(symbols_ldlibs))
endef
$(foreach t,uri list aql image limits line_source cache metadata nv_info demangle cubin,$(eval $(call symbols_test,$(t))))
# The simulator's loader stands in for the driver's.
test_symbols_cubin_src += sim/cuda/gpu/cubin.c
test_symbols_cubin_cflags += -Isim/cuda/gpu
test_symbols_cubin_deps := $(cudbg_slots)

# It is its own LLVM for some of the tests.
$(eval $(call unit_test,disasm,disasm base,$(disasm_ldlibs) -rdynamic))
$(eval $(call unit_test,nvdisasm,disasm base,$(disasm_ldlibs)))


define corefile_test
$(call unit_test,corefile_$(1),corefile base,$(corefile_ldlibs))
endef
$(foreach t,amdgpu cuda_read cuda_roundtrip cuda_scale process sink stream,$(eval $(call corefile_test,$(t))))
test_corefile_cuda_read_src += tests/unit/corefile/cudacore_population.c
test_corefile_cuda_scale_src += tests/unit/corefile/cudacore_full.c
test_worker_core_src += tests/unit/corefile/cudacore_population.c tests/unit/corefile/cudacore_full.c
test_corefile_cuda_roundtrip_src += tests/unit/corefile/cudacore_population.c

include $(wildcard tests/unit/*/module.mk)
