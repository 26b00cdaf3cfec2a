worker_kfd_src := $(addprefix agentd/worker/target_kfd_,attach.c code.c control.c core.c core_code.c core_copy.c core_host.c errors.c events.c examples.c \
	inspect.c ledger.c past.c queues.c record.c registers.c rescue.c watch.c wave_memory.c waves.c waves_copy.c waves_decode.c)
worker_common_src := $(addprefix agentd/worker/,code.c code_file.c convert.c core_output.c crew.c cuda_exception.c exited.c group.c guard.c intern.c \
	leader.c look.c mappings.c memory.c options.c places.c process_facts.c queue_waves.c raised.c record.c rescue.c rule.c rule_body.c rule_watch.c serve_core.c snapshot.c \
	subscribers.c suspension.c target.c undo.c waves.c)
worker_cuda_src := $(addprefix agentd/worker/target_cuda_,attach.c code.c core.c core_state.c devices.c errors.c events.c exited.c \
	inspect.c registers.c rescue.c waves.c)
worker_core_src := $(addprefix agentd/worker/target_core,.c _cuda.c _cuda_registers.c _kfd.c)

# An archive so that the unit tests link the same objects.
archives += worker
worker_src := $(worker_kfd_src) $(worker_cuda_src) $(worker_core_src) $(worker_common_src) $(addprefix agentd/worker/,handlers.c handlers_code.c handlers_core.c handlers_wave.c \
	inspect.c inspect_doctor.c inspect_judge.c inspect_list.c session.c)
worker_deps := $(protocol_gen)
worker_libs := worker agentd protocol store kfdtrap cudbgshim symbols corefile base
worker_ldlibs := $(protocol_ldlibs) $(kfdtrap_ldlibs) $(cudbgshim_ldlibs) $(symbols_ldlibs) $(corefile_ldlibs) -levent_core -lseccomp -lcap -lpthread

programs += gpu-agent-worker
gpu-agent-worker_src := agentd/worker/main.c
gpu-agent-worker_deps := $(protocol_gen)
gpu-agent-worker_libs := $(worker_libs)
gpu-agent-worker_ldlibs := $(worker_ldlibs)

installs += 755:$(O)/bin/gpu-agent-worker:$(libexecdir)/gpu-agent/gpu-agent-worker
