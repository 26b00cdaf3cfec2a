# What all the processes share.
archives += agentd
agentd_src := agentd/ipc/link.c agentd/ipc/outbox.c agentd/access.c agentd/audit.c agentd/cgroup.c agentd/child.c agentd/closers.c agentd/handshake.c agentd/hook.c \
	agentd/landlock.c agentd/options.c agentd/oracle.c agentd/privileges.c agentd/programs.c agentd/sandbox.c agentd/ipc/undo_record.c

include agentd/manager/module.mk
include agentd/monitor/module.mk
include agentd/heir/module.mk
include agentd/judge/module.mk
include agentd/rules/module.mk
include agentd/frontend/module.mk
include agentd/worker/module.mk
include agentd/tracer/module.mk
include agentd/store/module.mk
include agentd/hook/module.mk
include agentd/adapter/module.mk
include agentd/connect/module.mk
