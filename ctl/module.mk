# Formatting and output, which unit tests link as well.
archives += ctl
ctl_src := $(addprefix ctl/terminal/,color.c output.c pager.c screen.c table.c text.c) \
	$(addprefix ctl/document/,code_text.c compare.c compare_judge.c document.c gpu_names.c headline.c merge.c merge_odd.c queue_changes.c \
	merge_circle.c merge_headline.c merge_host.c merge_print.c merge_set.c host/host.c place.c vendor_words.c when.c) \
	$(addprefix ctl/report/,html.c icicle.c input.c nccl.c process.c ranks.c report.c style.c) $(addprefix ctl/record/,budget.c collapsed.c flame.c interval.c pprof.c recording.c sample.c speedscope.c) \
	ctl/job/collect.c ctl/job/hosts.c ctl/job/pods.c ctl/job/slurm.c $(addprefix ctl/nccl/,ask.c awaited.c communicators.c place.c report.c) ctl/verbs/wait/page.c ctl/group_rows.c ctl/watch.c
ctl_src += $(addprefix ctl/mcp/,answers.c arguments.c calls.c child.c keep.c message.c methods.c page.c resources.c server.c stops.c tools.c tools_control.c \
	tools_look.c tools_wave.c words.c)
ctl_deps := $(protocol_gen)

programs += gpu-agentctl
gpu-agentctl_src := $(addprefix ctl/,args.c cli_words.c compare_show.c complete.c complete_values.c ctl.c host_show.c main.c show.c show_registers.c signals.c snapshot_show.c stream.c) ctl/document/source.c \
	$(addprefix ctl/verbs/,analyze.c attach.c cores.c dap.c detach.c devices.c diff.c disassemble.c doctor.c host/stacks.c \
	dump.c events.c help.c hooks.c list.c mcp.c memory.c job/job.c job/kubernetes.c job/merge.c job/merge_files.c job/merge_told.c job/report.c metrics.c queues.c record/record.c record/sampler.c record/sampler_show.c record/top.c registers.c resume.c rpc.c snapshot.c status.c variables.c \
	suspend.c version.c wait/told.c wait/why.c watch.c watchpoint.c waves.c)
gpu-agentctl_libs := ctl dap corefile disasm waits protocol base
gpu-agentctl_ldlibs := $(protocol_ldlibs) $(disasm_ldlibs) $(corefile_ldlibs) -lm
gpu-agentctl_deps := $(protocol_gen) $(O)/gen/paths.h

installs += 755:$(O)/bin/gpu-agentctl:$(bindir)/gpu-agentctl
installs += 644:ctl/shell/gpu-agentctl.bash:$(bashcompdir)/gpu-agentctl
installs += 644:ctl/shell/gpu-agentctl.zsh:$(zshcompdir)/_gpu-agentctl
installs += 644:ctl/shell/gpu-agentctl.fish:$(fishcompdir)/gpu-agentctl.fish

system_tests += ctl/check-client ctl/check-pages
system_tests += ctl/check-verbs
