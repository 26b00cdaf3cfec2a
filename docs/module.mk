# NAME.SECTION below docs/man goes to the manual's directory of that section.
man_pages := gpu-agentctl.1 gpu-agentd.8 gpu-agent-connect.8 agentd.conf.5 gpu-agent-sim.1 gpu-agent-simapp.1 gpu-agent-demo.1 gpu-agent-cuda-sim.1 \
	gpu-agent-cuda-simapp.1 gpu-agent.7 gpu-agent-protocol.7 libkfdtrap.3
man_dir = $(mandir)/man$(subst .,,$(suffix $(1)))/$(1)
installs += $(foreach m,$(man_pages),644:docs/man/$(m):$(call man_dir,$(m)))

# Pages of verbs are completed from --help.  Who builds for another machine names a gpu-agentctl that runs here, or
# an empty one and has no such pages.
runnable_gpu-agentctl ?= $(O)/bin/gpu-agentctl
verb_pages := $(if $(runnable_gpu-agentctl),$(wildcard docs/man/verbs/*/*.1))
$(foreach m,$(verb_pages),$(eval $(O)/man/$(notdir $(m)): $(m)))
$(addprefix $(O)/man/,$(notdir $(verb_pages))): docs/man/make-page docs/man/gpu-agentctl.1 $(runnable_gpu-agentctl)
	$(call say,MAN,$@)
	@mkdir -p $(@D)
	$(Q)docs/man/make-page $(runnable_gpu-agentctl) $(filter docs/man/verbs/%,$^) >$@
extra_targets += $(addprefix $(O)/man/,$(notdir $(verb_pages)))
installs += $(foreach m,$(notdir $(verb_pages)),644:$(O)/man/$(m):$(call man_dir,$(m)))

# Other names of pages: what systemd calls the units, and a name of our own for the configuration.
$(O)/man/gpu-agentd.service.8 $(O)/man/gpu-agentd.socket.8: ; @mkdir -p $(@D) && echo '.so man8/gpu-agentd.8' >$@
$(O)/man/gpu-agent.conf.5: ; @mkdir -p $(@D) && echo '.so man5/agentd.conf.5' >$@
man_aliases := gpu-agentd.service.8 gpu-agentd.socket.8 gpu-agent.conf.5
extra_targets += $(addprefix $(O)/man/,$(man_aliases))
installs += $(foreach m,$(man_aliases),644:$(O)/man/$(m):$(call man_dir,$(m)))

# What assistants are told.
installs += 644:docs/skills/gpu-hang/SKILL.md:$(skilldir)/gpu-hang/SKILL.md

# Documents and examples lie in the document directory as they lie here, so that their links hold.
docs_files := README.md SECURITY.md $(wildcard docs/*.md docs/[!m]*/*.md docs/pictures/*.[ps][nv]g)
examples_files := examples/README.md $(wildcard examples/typescript/*)
examples_programs := $(wildcard examples/python/*.py examples/shell/*)
deploy_files := deploy/README.md $(wildcard deploy/*/*)
# What a site installs beside the agent is an example, too: nobody runs it from here.
examples_files += $(filter %.md %.yaml %.json,$(deploy_files))
examples_programs += $(filter-out %.md %.yaml %.json,$(deploy_files))
installs += $(foreach f,$(docs_files) $(examples_files),644:$(f):$(docdir)/$(f))
installs += $(foreach f,$(examples_programs),755:$(f):$(docdir)/$(f))
