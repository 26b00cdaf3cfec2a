# Instructions as text.  LLVM is looked for at run time: nothing of it is needed to build.
archives += disasm
disasm_src := $(addprefix disasm/,child.c confine.c disasm.c llvm.c words.c)
disasm_ldlibs := -ldl
