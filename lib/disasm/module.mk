# Instructions as text.  LLVM and nvdisasm are looked for at run time: nothing of them is needed to build.
archives += disasm
disasm_src := $(addprefix lib/disasm/,child.c confine.c disasm.c llvm.c nvdisasm.c nvidia.c)
disasm_ldlibs := -ldl
