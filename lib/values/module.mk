# Values of a GPU program: what bytes of a type mean, and how they are shown.
archives += values
values_src := $(addprefix lib/values/,arguments.c kernels.c scalar.c scalar_name.c signature.c)
values_ldlibs := -lm
