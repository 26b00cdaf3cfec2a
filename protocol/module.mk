# Schema, generator, framing, messages, client.  Users: foo_libs := protocol base,
# foo_ldlibs := $(protocol_ldlibs), foo_deps := $(protocol_gen), #include "rpc_gen.h".
protocol_gen := $(addprefix $(O)/gen/,rpc_gen.h rpc_gen.c rpc_client_gen.h rpc_client_gen.c \
	rpc_names.h protocol.py protocol.ts openrpc.json PROTOCOL.md methods.txt)
generated += $(protocol_gen)
protocol_ldlibs := $(call pkg_libs,json-c)

archives += protocol
protocol_src := $(addprefix protocol/,agent_err.c rpc_arena.c rpc_client.c rpc_codec.c rpc_dispatch.c \
	rpc_editor.c rpc_format.c rpc_message.c rpc_queue_place.c rpc_scan.c rpc_wire.c) \
	$(O)/gen/rpc_gen.c $(O)/gen/rpc_client_gen.c
protocol_cflags := $(call pkg_cflags,json-c)
protocol_deps := $(protocol_gen)

$(protocol_gen) &: protocol/gpu-agent.json $(wildcard protocol/generator/*.py)
	$(call say,GEN,$(O)/gen)
	$(Q)$(PYTHON) protocol/generator/gen.py protocol/gpu-agent.json $(O)/gen

# docs/PROTOCOL.md is committed so that it can be read without building.
.PHONY: protocol-doc
protocol-doc: $(O)/gen/PROTOCOL.md
	cp $< docs/PROTOCOL.md

include tests/protocol/module.mk
