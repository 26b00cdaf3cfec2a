archives += judge
judge_src := $(addprefix agentd/judge/,accept.c budgets.c candidates.c clients.c judge.c names.c requests.c uses.c)

programs += gpu-agent-judge
gpu-agent-judge_src := agentd/judge/main.c
gpu-agent-judge_libs := judge agentd base
gpu-agent-judge_ldlibs := -lcap -lseccomp

installs += 755:$(O)/bin/gpu-agent-judge:$(libexecdir)/gpu-agent/gpu-agent-judge
