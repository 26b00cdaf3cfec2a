# A process that uses the KFD device as a ROCm program does.
programs += gpu-agent-simapp
gpu-agent-simapp_src := $(addprefix sim/app/,main.c device.c object.c packet.c process.c threads.c script.c scene.c map.c) sim/kfd/device/profile.c tests/lib/words.c tests/lib/passed.c
gpu-agent-simapp_libs := base
gpu-agent-simapp_deps := $(O)/gen/paths.h
gpu-agent-simapp_ldlibs := -rdynamic -pthread
installs += 755:$(O)/bin/gpu-agent-simapp:$(bindir)/gpu-agent-simapp
