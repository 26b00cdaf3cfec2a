# What waits, for what, and who is in the way.
archives += waits
waits_src := $(addprefix lib/waits/,barrier.c collective.c graph.c grid.c instruction.c isa.c mbarrier.c packet.c poll.c rccl.c sass.c sass_poll.c sass_word.c rocm/hostcall.c)
