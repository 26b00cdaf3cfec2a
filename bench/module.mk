# `make bench` measures; nothing here is part of `all` or of the tests.
bench_programs += bench_ping bench_echo
bench_ping_src := bench/ping.c
bench_ping_libs := base
bench_echo_src := bench/echo.c
bench_echo_libs := base
bench_programs += bench_wave
bench_wave_src := bench/wave.c
bench_wave_libs := kfdtrap base
bench_programs += bench_copy
bench_copy_src := bench/copy.c
bench_copy_libs := base
bench_copy_ldlibs := -lpthread
bench_programs += bench_group
bench_group_src := bench/group.c
bench_group_deps := $(protocol_gen)
bench_group_libs := $(worker_libs)
bench_group_ldlibs := $(worker_ldlibs)
