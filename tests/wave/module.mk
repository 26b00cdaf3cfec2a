# Waves: the encoder of the simulator, and the decoder of libkfdtrap against it.
wave_encode_src := $(addprefix tests/kfdsim/,wave_encode.c wave_silicon.c)

tests += test_wave_encode
test_wave_encode_src := tests/wave/test_wave_encode.c $(wave_encode_src)
test_wave_encode_cflags := -Itests/lib
test_wave_encode_libs := test base
test_wave_encode_ldlibs := $(cunit_libs)
