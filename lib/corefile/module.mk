# Core formats of both vendors: writers and readers over buffers and one output descriptor.
archives += corefile
corefile_src := $(addprefix lib/corefile/,aarch64.c corefile.c elf_read.c elf_write.c process.c processor.c sink.c \
	stream.c compress.c file.c x86_64.c \
	amdgpu/model.c amdgpu/read.c amdgpu/write.c \
	cuda/model.c cuda/layout.c cuda/check.c cuda/walk.c cuda/image.c cuda/write.c cuda/read.c)
corefile_cflags := $(call pkg_cflags,libzstd zlib)
# For foo_ldlibs of whatever uses this module.
corefile_ldlibs := $(call pkg_libs,libzstd zlib)
