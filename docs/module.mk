# NAME.SECTION below docs/man goes to the manual's directory of that section.
man_pages := gpu-agentctl.1 gpu-agentd.8 agentd.conf.5 gpu-agent-sim.1 gpu-agent-simapp.1 gpu-agent-demo.1 gpu-agent-cuda-sim.1 gpu-agent-cuda-simapp.1
installs += $(foreach m,$(man_pages),644:docs/man/$(m):$(mandir)/man$(subst .,,$(suffix $(m)))/$(m))
