archives += base
base_src := base/base64.c base/reader.c base/out.c base/nearest.c base/str.c base/fd.c base/log.c base/clock.c base/argv.c
