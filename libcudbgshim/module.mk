# libcudbgshim: NVIDIA's debugger API, loaded at run time.  An archive for our worker only.
archives += cudbgshim
cudbgshim_src := $(addprefix libcudbgshim/src/,names.c loader.c table.c event.c \
	calls_session.c calls_warp.c calls_data.c \
	state.c state_batch.c state_plain.c)
# The debuggee's side and the sequences.
cudbgshim_src += $(addprefix libcudbgshim/src/,dynsym.c maps.c)
# For foo_ldlibs of whatever uses cudbgshim_create().
cudbgshim_ldlibs := -ldl -lpthread
