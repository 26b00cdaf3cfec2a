# Clients in other languages: what is written by hand, and what the schema gives, side by side below
# $(O)/clients; a program takes such a directory as it is.
clients_python := $(addprefix gpu_agent/,__init__.py connection.py core.py groups.py host.py job.py launch.py py.typed watchdog.py watchdog_helper.py \
	$(addprefix adapters/,__init__.py lightning.py node.py pyspy.py ray.py sglang.py torch.py vllm.py)) pyproject.toml README.md
clients_typescript := $(addprefix src/,connection.ts host.ts index.ts) package.json package-lock.json tsconfig.json README.md
clients_files := $(addprefix python/,$(clients_python) gpu_agent/protocol.py LICENSE) \
	$(addprefix typescript/,$(clients_typescript) src/protocol.ts LICENSE)
extra_targets += $(addprefix $(O)/clients/,$(clients_files))
# Licence and metadata are for those who build a package of pip or npm out of $(O)/clients.
installs += $(foreach f,$(filter-out %/LICENSE python/README.md %.toml,$(clients_files)),644:$(O)/clients/$(f):$(datadir)/gpu-agent/clients/$(f))

define clients_copy
@mkdir -p $(@D)
@cp $< $@
endef
$(O)/clients/%: clients/%
	$(clients_copy)
$(O)/clients/python/LICENSE $(O)/clients/typescript/LICENSE: LICENSE
	$(clients_copy)
$(O)/clients/python/gpu_agent/protocol.py: $(O)/gen/protocol.py
	$(clients_copy)
$(O)/clients/typescript/src/protocol.ts: $(O)/gen/protocol.ts
	$(clients_copy)
