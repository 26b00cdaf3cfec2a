# NAME.SECTION below docs/man goes to the manual's directory of that section.
man_pages := gpu-agentctl.1 gpu-agentd.8 agentd.conf.5 gpu-agent-sim.1 gpu-agent-simapp.1 gpu-agent-demo.1 gpu-agent-cuda-sim.1 gpu-agent-cuda-simapp.1
installs += $(foreach m,$(man_pages),644:docs/man/$(m):$(mandir)/man$(subst .,,$(suffix $(m)))/$(m))

# Documents and examples lie in the document directory as they lie here, so that their links hold.
docs_files := README.md SECURITY.md $(wildcard docs/*.md docs/[!m]*/*.md docs/pictures/*.[ps][nv]g)
examples_files := examples/README.md $(wildcard examples/typescript/*)
examples_programs := $(wildcard examples/python/*.py examples/shell/*)
installs += $(foreach f,$(docs_files) $(examples_files),644:$(f):$(docdir)/$(f))
installs += $(foreach f,$(examples_programs),755:$(f):$(docdir)/$(f))
