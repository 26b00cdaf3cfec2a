# Waves: the encoder of the simulator, and the decoder of libkfdtrap against it.
wave_encode_src := $(addprefix sim/kfd/wave/,wave_encode.c wave_silicon.c)

tests += test_wave_encode
test_wave_encode_src := tests/wave/test_wave_encode.c $(wave_encode_src)
test_wave_encode_cflags := -Itests/lib
test_wave_encode_libs := test base
test_wave_encode_ldlibs := $(cunit_libs)

tests += test_wave_differential
test_wave_differential_src := tests/wave/test_wave_differential.c tests/wave/population.c \
	$(wave_encode_src)
test_wave_differential_cflags := -Itests/lib
test_wave_differential_libs := test kfdtrap base
test_wave_differential_ldlibs := $(cunit_libs) $(kfdtrap_ldlibs)

tests += test_wave_registers
test_wave_registers_src := tests/wave/test_wave_registers.c tests/wave/population.c $(wave_encode_src)
test_wave_registers_cflags := -Itests/lib
test_wave_registers_deps := $(protocol_gen)
test_wave_registers_libs := test $(worker_libs)
test_wave_registers_ldlibs := $(cunit_libs) $(worker_ldlibs)

tests += test_wave_script
test_wave_script_src := tests/wave/test_wave_script.c sim/kfd/wave/wave_script.c $(wave_encode_src)
test_wave_script_cflags := -Itests/lib
test_wave_script_libs := test kfdtrap base
test_wave_script_ldlibs := $(cunit_libs) $(kfdtrap_ldlibs)

system_tests += tests/wave/test_sim_waves.py
