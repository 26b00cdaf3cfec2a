# Values of a GPU program: where a variable is, what its bytes mean, and how they are shown.
archives += values
values_src := $(addprefix lib/values/,argument/arguments.c argument/kernels.c argument/signature.c \
	call_frame.c constant_bank.c evaluate.c frame.c global.c location_list.c place.c register_map.c \
	scalar.c scalar_name.c scope.c \
	type/type.c type/type_read.c type/type_name.c type/type_scope.c \
	text/value.c text/value_print.c text/summary.c \
	expression/parse.c expression/arithmetic.c expression/evaluate.c expression/parts.c)
values_cflags := $(call pkg_cflags,libdw libelf)
values_ldlibs := $(symbols_ldlibs) -lm
