# Independent judges: other people's programs and headers, fetched when they can be had.
system_tests += tests/peers/test_dbgapi.py tests/peers/test_dbgapi_core.py tests/peers/test_uapi.py tests/peers/test_cuda_gdb.py \
	tests/peers/test_cuda_lines.py tests/peers/test_cuda_parts.py tests/peers/test_gdb_values.py \
	tests/peers/test_cudbg_abi.py tests/peers/test_cuda_driver.py tests/peers/test_rocm.py tests/peers/test_rocm_dbgapi.py \
	tests/peers/test_rocm_ranks.py tests/peers/test_rocm_handshake.py tests/peers/test_rocm_demo.py tests/peers/test_waits.py tests/peers/barrier/test_cuda_barriers.py \
	tests/peers/mbarrier/test_cuda_waits.py tests/peers/spin/test_cuda_spins.py \
	tests/peers/nccl/test_nccl_layout.py tests/peers/recording/test_recordings.py

# The core that NVIDIA's debugger is asked about.
test_programs += cuda_core
cuda_core_src := tests/peers/cuda_core.c
cuda_core_libs := corefile base
cuda_core_ldlibs := $(corefile_ldlibs)

# What gdb is asked about.
test_programs += values_print
values_print_src := tests/peers/values_print.c
values_print_libs := values symbols base
values_print_ldlibs := $(values_ldlibs)

# What LLVM is asked about.
test_programs += waits_words
waits_words_src := tests/peers/waits_words.c
waits_words_libs := waits base

# What nvdisasm is asked about.
test_programs += sass_barriers
sass_barriers_src := tests/peers/barrier/sass_barriers.c
sass_barriers_libs := waits base
test_programs += mbarrier_waits
mbarrier_waits_src := tests/peers/mbarrier/mbarrier_waits.c
mbarrier_waits_libs := waits base
test_programs += sass_polls
sass_polls_src := tests/peers/spin/sass_polls.c
sass_polls_libs := waits base
