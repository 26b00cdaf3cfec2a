# Formatting and output, which unit tests link as well.
archives += ctl
ctl_src := $(addprefix ctl/,code_text.c color.c compare.c compare_judge.c document.c merge.c merge_odd.c \
	merge_print.c merge_set.c output.c pager.c place.c screen.c table.c text.c watch.c when.c)
ctl_deps := $(protocol_gen)

programs += gpu-agentctl
gpu-agentctl_src := $(addprefix ctl/,main.c ctl.c args.c compare_show.c show.c show_registers.c signals.c source.c stream.c) \
	$(patsubst %,ctl/cmd_%.c,list doctor snapshot analyze diff merge watch devices queues attach detach suspend resume \
		watchpoint waves registers memory disassemble dump cores hooks events rpc dap status version)
gpu-agentctl_libs := ctl dap corefile disasm protocol base
gpu-agentctl_ldlibs := $(protocol_ldlibs) $(disasm_ldlibs) $(corefile_ldlibs)
gpu-agentctl_deps := $(protocol_gen) $(O)/gen/paths.h

installs += 755:$(O)/bin/gpu-agentctl:$(bindir)/gpu-agentctl
installs += 644:ctl/gpu-agentctl.bash:$(bashcompdir)/gpu-agentctl

system_tests += ctl/check-client
system_tests += ctl/check-verbs
