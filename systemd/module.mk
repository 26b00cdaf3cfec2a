systemd_units := $(O)/systemd/gpu-agentd.service $(O)/systemd/gpu-agentd.socket $(O)/systemd/gpu-agent-metrics.service $(O)/systemd/tmpfiles.conf \
	$(O)/systemd/gpu-agent-connect.socket $(O)/systemd/gpu-agent-connect@.service
extra_targets += $(systemd_units)

# The directories may differ between `make` and `make install`.
$(systemd_units): $(O)/systemd/%: systemd/%.in force
	@mkdir -p $(@D)
	$(Q)sed -e 's|@sbindir@|$(sbindir)|g' -e 's|@bindir@|$(bindir)|g' -e 's|@runstatedir@|$(runstatedir)|g' \
		-e 's|@localstatedir@|$(localstatedir)|g' -e 's|@libexecdir@|$(libexecdir)|g' $< >$@.new
	$(Q)cmp -s $@.new $@ && rm $@.new || mv $@.new $@

installs += 644:$(O)/systemd/gpu-agentd.service:$(unitdir)/gpu-agentd.service
installs += 644:$(O)/systemd/gpu-agentd.socket:$(unitdir)/gpu-agentd.socket
installs += 644:$(O)/systemd/gpu-agent-connect.socket:$(unitdir)/gpu-agent-connect.socket
installs += 644:$(O)/systemd/gpu-agent-connect@.service:$(unitdir)/gpu-agent-connect@.service
installs += 644:$(O)/systemd/gpu-agent-metrics.service:$(unitdir)/gpu-agent-metrics.service
installs += 644:systemd/gpu-agent-metrics.timer:$(unitdir)/gpu-agent-metrics.timer
installs += 644:$(O)/systemd/tmpfiles.conf:$(tmpfilesdir)/gpu-agent.conf
installs += 644:systemd/sysusers.conf:$(sysusersdir)/gpu-agent.conf
installs += 644:systemd/gpu-agent.preset:$(presetdir)/90-gpu-agent.preset
installs += 644:systemd/gpu-agent.catalog:$(catalogdir)/gpu-agent.catalog
installs += 644:systemd/agentd.conf:$(vendorconfdir)/agentd.conf

# To be put into use by hand: it gives the connect broker a capability.
installs += 644:systemd/connect-containers.conf:$(datadir)/gpu-agent/systemd/connect-containers.conf
