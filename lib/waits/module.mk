# What waits, for what, and who is in the way.
archives += waits
waits_src := $(addprefix lib/waits/,barrier.c cbu.c collective/collective.c collective/nccl.c collective/nccl_work.c collective/rccl.c graph.c grid.c instruction.c isa.c mbarrier.c packet.c poll.c sass.c sass_poll.c sass_round.c sass_word.c rocm/hostcall.c)
