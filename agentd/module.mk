agentd_cppflags := -DRUNSTATEDIR='"$(runstatedir)"' -DSYSCONFDIR='"$(sysconfdir)"' \
	-DVENDORCONFDIR='"$(vendorconfdir)"'

# What all three processes share.
archives += agentd
agentd_src := agentd/ipc.c agentd/access.c agentd/privileges.c agentd/sandbox.c

include agentd/spawn/module.mk
include agentd/front/module.mk
include agentd/worker/module.mk
