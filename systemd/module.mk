systemd_units := $(O)/systemd/gpu-agentd.service $(O)/systemd/gpu-agentd.socket $(O)/systemd/gpu-agent-metrics.service $(O)/systemd/tmpfiles.conf
extra_targets += $(systemd_units)

# The directories may differ between `make` and `make install`.
$(systemd_units): $(O)/systemd/%: systemd/%.in force
	@mkdir -p $(@D)
	$(Q)sed -e 's|@sbindir@|$(sbindir)|g' -e 's|@bindir@|$(bindir)|g' -e 's|@runstatedir@|$(runstatedir)|g' \
		-e 's|@localstatedir@|$(localstatedir)|g' $< >$@.new
	$(Q)cmp -s $@.new $@ && rm $@.new || mv $@.new $@

installs += 644:$(O)/systemd/gpu-agentd.service:$(unitdir)/gpu-agentd.service
installs += 644:$(O)/systemd/gpu-agentd.socket:$(unitdir)/gpu-agentd.socket
installs += 644:$(O)/systemd/gpu-agent-metrics.service:$(unitdir)/gpu-agent-metrics.service
installs += 644:systemd/gpu-agent-metrics.timer:$(unitdir)/gpu-agent-metrics.timer
installs += 644:$(O)/systemd/tmpfiles.conf:$(tmpfilesdir)/gpu-agent.conf
installs += 644:systemd/sysusers.conf:$(sysusersdir)/gpu-agent.conf
installs += 644:systemd/gpu-agent.preset:$(presetdir)/90-gpu-agent.preset
installs += 644:systemd/gpu-agent.catalog:$(catalogdir)/gpu-agent.catalog
installs += 644:systemd/agentd.conf:$(vendorconfdir)/agentd.conf

# For packages, which cannot know the machine; NVIDIA=yes: in use, CUDA processes too, at the price of the private network.
installs += 644:systemd/nvidia.conf:$(datadir)/gpu-agent/systemd/nvidia.conf
ifeq ($(NVIDIA),yes)
installs += 644:systemd/nvidia.conf:$(unitdir)/gpu-agentd.service.d/nvidia.conf
endif
