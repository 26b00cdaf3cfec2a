# Rooms, from the lowest on: each may include those above it here; the two back ends know nothing of each other.
worker_process_src := $(addprefix agentd/worker/process/,code_file.c deadline.c facts.c late_memory.c leader.c mappings.c memory.c \
	network.c options.c own_workers.c rank.c thread_pool.c undo.c yama.c)
worker_host_src := $(addprefix agentd/worker/host/,answer.c asyncio.c core.c core_memory.c debug_file.c event_wait.c host.c memory_guard.c native.c reading.c role.c stops.c system_call.c task.c)
worker_target_src := $(addprefix agentd/worker/target/,core_file.c relay.c seen.c target.c waves.c)
worker_mbarrier_src := agentd/worker/mbarrier/mbarrier.c
worker_convergence_src := agentd/worker/convergence/convergence.c
worker_spin_src := agentd/worker/spin/spin.c
worker_nccl_src := agentd/worker/nccl/memory.c agentd/worker/nccl/nccl.c agentd/worker/nccl/work.c
worker_snapshot_src := $(addprefix agentd/worker/snapshot/,arguments.c code.c convert.c exception_capture.c exited.c groups.c id_map.c \
	locations.c queue_waves.c registers.c snapshot.c wave_convert.c)
worker_kfd_src := $(addprefix agentd/worker/kfd/,attach.c code.c core_code.c core_memory.c core_read.c core_threads.c \
	core_write.c errors.c events.c fault_journal.c latched.c launch.c marketing_name.c probe.c queues.c registers.c representatives.c \
	rescue.c saved_wave.c watchpoints.c wave_memory.c waves.c waves_copy.c waves_decode.c)
worker_cuda_src := $(addprefix agentd/worker/cuda/,arguments.c attach.c code.c connect.c core_arguments.c core_read.c core_registers.c core_state.c \
	core_write.c devices.c errors.c events.c exception.c exited.c probe.c registers.c rescue.c tracer.c users.c warp.c warp_registers.c \
	waves.c)
worker_wait_src := $(addprefix agentd/worker/wait/,absent.c alone.c blocks.c clusters.c collectives.c grids.c history.c hostcalls.c look.c mbarriers.c memory.c nccl.c polls.c queues.c ranks.c receives.c spins.c text.c threads.c warps.c)
worker_rule_src := $(addprefix agentd/worker/rule/,core.c engine.c hold.c rate_limit.c store_link.c threads.c)
worker_value_src := $(addprefix agentd/worker/value/,built_in.c evaluate.c frame.c groups.c lanes.c members.c memory.c registers.c request.c)
worker_session_src := $(addprefix agentd/worker/session/,core_output.c exception.c exception_report.c handlers.c \
	handlers_code.c handlers_core.c handlers_evaluate.c handlers_lanes.c handlers_variables.c handlers_wave.c handlers_why.c last_look.c readers.c rule_host.c session.c subscribers.c suspension.c usage.c)
worker_inspect_src := $(addprefix agentd/worker/inspect/,command_line.c core_server.c discover.c doctor.c inspect.c list.c repair.c rescue.c \
	verdict.c)

# An archive so that the unit tests link the same objects.
archives += worker
worker_src := $(worker_process_src) agentd/tracer/start.c $(worker_host_src) $(worker_target_src) $(worker_snapshot_src) $(worker_kfd_src) \
	$(worker_cuda_src) $(worker_mbarrier_src) $(worker_convergence_src) $(worker_spin_src) $(worker_nccl_src) $(worker_wait_src) $(worker_rule_src) $(worker_value_src) $(worker_session_src) $(worker_inspect_src)
worker_deps := $(protocol_gen)
worker_libs := worker agentd protocol store kfdtrap cudbgshim values waits symbols corefile hoststack base
worker_ldlibs := $(protocol_ldlibs) $(kfdtrap_ldlibs) $(cudbgshim_ldlibs) $(values_ldlibs) $(corefile_ldlibs) -levent_core -lseccomp -lcap -lpthread

programs += gpu-agent-worker
gpu-agent-worker_src := agentd/worker/main.c
gpu-agent-worker_deps := $(protocol_gen)
gpu-agent-worker_libs := $(worker_libs)
gpu-agent-worker_ldlibs := $(worker_ldlibs)

installs += 755:$(O)/bin/gpu-agent-worker:$(libexecdir)/gpu-agent/gpu-agent-worker
