# The debug adapter.  Users: foo_libs := dap disasm protocol base.
archives += dap
dap_src := $(addprefix dap/,alive.c breakpoints.c console.c custom.c evaluate.c exceptions.c holder.c host.c json.c message.c refs.c registers.c \
	requests.c scopes.c session.c stream.c threads.c variables.c waves.c why.c)
dap_src += $(addprefix dap/code/,embedded.c instructions.c listing.c memory.c paths.c texts.c)
dap_src += $(addprefix dap/values/,lanes.c value_rows.c values.c)
dap_deps := $(protocol_gen)

# What editors need to know of it.
installs += $(foreach f,emacs/gpu-agent.el $(addprefix nvim/,doc/gpu-agent.txt plugin/gpu-agent.lua \
	$(addprefix lua/gpu-agent/,health.lua init.lua processes.lua)),644:editors/$(f):$(docdir)/editors/$(f))
