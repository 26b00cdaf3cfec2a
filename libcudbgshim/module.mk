# libcudbgshim: NVIDIA's debugger API, loaded at run time.  An archive for our worker only.
archives += cudbgshim
cudbgshim_src := $(addprefix libcudbgshim/src/,names.c)
# The debuggee's side and the sequences.
cudbgshim_src += $(addprefix libcudbgshim/src/,dynsym.c maps.c)
# For foo_ldlibs of whatever uses cudbgshim_create().
cudbgshim_ldlibs := -ldl -lpthread
