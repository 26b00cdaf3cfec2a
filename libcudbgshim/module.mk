# libcudbgshim: NVIDIA's debugger API, loaded at run time.  An archive for our worker only.
archives += cudbgshim
cudbgshim_src := $(addprefix libcudbgshim/src/,names.c)
# For foo_ldlibs of whatever uses cudbgshim_create().
cudbgshim_ldlibs := -ldl -lpthread
