# Values of a GPU program: what bytes of a type mean, and how they are shown.
archives += values
values_src := $(addprefix lib/values/,scalar.c scalar_name.c)
values_ldlibs := -lm
