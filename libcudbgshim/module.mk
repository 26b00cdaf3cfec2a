# libcudbgshim: NVIDIA's debugger API, loaded at run time.  An archive for our worker only.
archives += cudbgshim
# The table of calls and the releases, from their one description.  For foo_deps of what includes cudbg_abi.h.
cudbg_slots := $(O)/gen/cudbg_slots.h
generated += $(cudbg_slots)
$(cudbg_slots): libcudbgshim/slots.txt libcudbgshim/slots.py
	$(call say,GEN,$@)
	@mkdir -p $(@D)
	$(Q)$(PYTHON) libcudbgshim/slots.py $(@D)

cudbgshim_deps := $(cudbg_slots)
cudbgshim_src := $(addprefix libcudbgshim/src/,names.c loader.c table.c event.c \
	calls_session.c calls_warp.c calls_data.c \
	state.c state_batch.c state_plain.c)
# The debuggee's side and the sequences.
cudbgshim_src += $(addprefix libcudbgshim/src/,dynsym.c maps.c \
	flags.c label.c session.c attach.c detach.c rescue.c tracer_direct.c)
# Calls in the debuggee know some processors; on others they are refused by name.
ifneq ($(filter x86_64 aarch64,$(processor)),)
cudbgshim_src += $(addprefix libcudbgshim/src/,$(addprefix inferior/,inferior.c stops.c threads.c restorer.c \
	$(processor).c) tracer_$(processor).c)
else
cudbgshim_src += libcudbgshim/src/inferior/other.c libcudbgshim/src/tracer_other.c
endif
# For foo_ldlibs of whatever uses cudbgshim_create().
cudbgshim_ldlibs := -ldl -lpthread
