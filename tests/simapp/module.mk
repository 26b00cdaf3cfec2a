# A process that uses the KFD device as a ROCm program does.
programs += simapp
simapp_src := $(addprefix tests/simapp/,main.c device.c threads.c script.c) tests/kfdsim/profile.c
simapp_libs := base
simapp_ldlibs := -rdynamic -pthread
installs += 755:$(O)/bin/simapp:$(bindir)/gpu-agent-simapp
