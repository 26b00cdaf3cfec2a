archives += base
base_src := lib/base/base64.c lib/base/bit_list.c lib/base/reader.c lib/base/elf_view.c lib/base/out.c lib/base/nearest.c lib/base/str.c lib/base/fd.c lib/base/log.c lib/base/clock.c lib/base/argv.c lib/base/program.c
