# One program per parser.  $(call fuzz_target,parser,libs,ldlibs)
define fuzz_target
fuzzers += fuzz_$(1)
fuzz_$(1)_src := $(wildcard tests/fuzz/fuzz_$(1).c tests/fuzz/*/fuzz_$(1).c)
fuzz_$(1)_cflags := -Itests/lib
fuzz_$(1)_libs := fuzz $(2) base
fuzz_$(1)_ldlibs := $(3)
endef

$(eval $(call fuzz_target,config,rules agentd,-linih))
fuzz_config_deps := $(protocol_gen)
$(eval $(call fuzz_target,config_parsed,rules agentd,-linih))
fuzz_config_parsed_deps := $(protocol_gen)
$(eval $(call fuzz_target,proc_status,agentd,-lcap))
$(eval $(call fuzz_target,cgroup,agentd))
$(eval $(call fuzz_target,ipc,agentd))
$(eval $(call fuzz_target,bit_list,))
# Scripts of the simulators.
$(eval $(call fuzz_target,words,))
fuzz_words_src += tests/lib/words.c

$(eval $(call fuzz_target,disasm,disasm,$(disasm_ldlibs)))
$(eval $(call fuzz_target,nvdisasm,disasm,$(disasm_ldlibs)))
$(eval $(call fuzz_target,kfdtrap_sysfs,kfdtrap))
$(eval $(call fuzz_target,kfdtrap_wave,kfdtrap))
$(eval $(call fuzz_target,kfdtrap_control_stack,kfdtrap))

$(foreach t,event state,$(eval $(call fuzz_target,cudbg_$(t),cudbgshim)))

define rpc_fuzz
$(call fuzz_target,rpc_$(1),protocol,$(protocol_ldlibs))
fuzz_rpc_$(1)_deps := $(protocol_gen)
endef
$(foreach t,format message params wire,$(eval $(call rpc_fuzz,$(t))))

$(foreach t,uri list image msgpack,$(eval $(call fuzz_target,symbols_$(t),symbols,$(symbols_ldlibs))))

$(eval $(call fuzz_target,nv_info,symbols,$(symbols_ldlibs)))
$(eval $(call fuzz_target,signature,values,$(values_ldlibs)))
$(eval $(call fuzz_target,arguments,values symbols,$(values_ldlibs) $(symbols_ldlibs)))

$(eval $(call fuzz_target,cudbg_dynsym,cudbgshim,$(cudbgshim_ldlibs)))

$(eval $(call fuzz_target,ctl_document,ctl waits protocol,$(protocol_ldlibs)))
fuzz_ctl_document_deps := $(protocol_gen)
$(eval $(call fuzz_target,ctl_mcp,ctl dap disasm waits protocol,$(protocol_ldlibs) $(disasm_ldlibs)))
fuzz_ctl_mcp_deps := $(protocol_gen)
$(eval $(call fuzz_target,ctl_report,ctl waits protocol,$(protocol_ldlibs)))
fuzz_ctl_report_deps := $(protocol_gen)
$(eval $(call fuzz_target,ctl_hosts,ctl waits protocol,$(protocol_ldlibs)))
fuzz_ctl_hosts_deps := $(protocol_gen)
$(eval $(call fuzz_target,ctl_slurm,ctl waits protocol,$(protocol_ldlibs)))
fuzz_ctl_slurm_deps := $(protocol_gen)
$(eval $(call fuzz_target,ctl_pods,ctl waits protocol,$(protocol_ldlibs)))
fuzz_ctl_pods_deps := $(protocol_gen)
$(eval $(call fuzz_target,ctl_nccl,ctl waits protocol,$(protocol_ldlibs)))
fuzz_ctl_nccl_deps := $(protocol_gen)

$(foreach t,amdgpu compress cuda process,$(eval $(call fuzz_target,corefile_$(t),corefile,$(corefile_ldlibs))))

define worker_fuzz
$(call fuzz_target,worker_$(1),$(worker_libs),$(worker_ldlibs))
fuzz_worker_$(1)_deps := $(protocol_gen)
endef
$(foreach t,code command_line core mappings wait,$(eval $(call worker_fuzz,$(t))))

$(eval $(call fuzz_target,hoststack,hoststack))
$(eval $(call fuzz_target,hoststack_native,hoststack))
$(eval $(call fuzz_target,hoststack_asyncio,hoststack))
$(eval $(call fuzz_target,waits,waits symbols))
$(eval $(call fuzz_target,waits_graph,waits))
$(eval $(call fuzz_target,waits_sass,waits))
$(eval $(call fuzz_target,waits_mbarrier,waits))
$(eval $(call fuzz_target,waits_cbu,waits))
$(eval $(call fuzz_target,waits_sass_poll,waits))
$(eval $(call fuzz_target,waits_collective,waits))
$(eval $(call fuzz_target,waits_rccl,waits))
$(eval $(call fuzz_target,waits_hostcall,waits))
$(eval $(call fuzz_target,waits_nccl,waits))
$(eval $(call fuzz_target,waits_nccl_work,waits))
$(eval $(call fuzz_target,store,store))

$(eval $(call fuzz_target,dap,dap disasm protocol,$(protocol_ldlibs) $(disasm_ldlibs) -lpthread))
fuzz_dap_deps := $(protocol_gen)

$(eval $(call fuzz_target,ctl_when,ctl waits protocol,$(protocol_ldlibs)))
fuzz_ctl_when_deps := $(protocol_gen)

include tests/fuzz/values/module.mk

system_tests += tests/fuzz/test_farm.py
