# Core formats of both vendors: writers and readers over buffers and one output descriptor.
archives += corefile
corefile_src := $(addprefix lib/corefile/,corefile.c elf_read.c elf_write.c sink.c stream.c compress.c file.c \
	amdgpu_model.c amdgpu_read.c amdgpu_write.c \
	cuda_model.c cuda_layout.c cuda_check.c cuda_walk.c cuda_image.c cuda_write.c cuda_read.c)
corefile_cflags := $(call pkg_cflags,libzstd zlib)
# For foo_ldlibs of whatever uses this module.
corefile_ldlibs := $(call pkg_libs,libzstd zlib)
