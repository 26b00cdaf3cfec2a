# Scenes of the simulators.  They lie below $(O)/share as they do below $(prefix)/share, where programs look for them.
scene_files := $(addprefix amd/,absent-from-grid.scene behind-a-fault.scene collectives.s collectives-gfx90a.co crossed-collectives.scene fault-at-barrier.scene fault.scene fault-and-hang.scene grid.hip grid-gfx90a.co hang.scene hostcall.hip hostcall-gfx90a.co hostcall-phases.hip hostcall-phases-gfx90a.co late-at-barrier.scene \
		no-answer.scene no-answer-phases.scene no-packet.scene no-signal.scene other-collective.scene own-stream.scene progress.scene two-streams.scene train.hip train-gfx90a.co) \
	$(addprefix amd/barriers/,barriers.S barriers-gfx1250.co ended-at-named.scene) \
	$(addprefix amd/controls/,asleep.scene busy-lock.scene busy-producer.scene controls.S controls-gfx90a.co controls-gfx942.co controls-gfx1030.co controls-gfx1100.co controls-gfx1201.co controls-gfx1250.co given-flag.scene idle-poller.scene late-answer.scene late-host.scene \
		late-named.scene late-phase.scene late-wave.scene many-packets.scene nothing.scene open-cluster.scene persistent.scene tile-loop.scene tiny-kernels.scene) \
	$(addprefix amd/gws/,gws.S gws-gfx90a.co fault-before-gws.scene) \
	$(addprefix amd/spin/,flags.hip flags-gfx90a.co lock.scene unset-flag.scene) $(addprefix cuda/convergence/,convergence.cu convergence-sm_90.cubin held-lock.scene two-barriers.scene) \
	$(addprefix cuda/spin/,barrier.cu barrier-sm_90.cubin grid-barrier.scene lock.scene) \
	$(addprefix cuda/controls/,back-off.scene before-grid.scene busy-lock.scene copy-pipeline.scene counted-barrier.scene diverged.scene given-flag.scene late-block.scene late-cluster.scene late-warp.scene nothing.scene pipeline.scene \
		ring-step.scene stop-flag.scene tile-loop.scene tiny-kernels.scene) \
	$(addprefix cuda/,clusters.cu clusters-sm_90.cubin nccl/collectives.cu nccl/collectives-sm_90.cubin crossed-barriers.scene crossed-collectives.scene crossed-pairs.scene exited-at-barrier.scene exited-before-grid.scene fault.scene fault-and-hang.scene fault-at-barrier.scene fault-before-cluster.scene hang.scene \
		flags.cu flags-sm_90.cubin grid.cu grid-sm_90.cubin late-leaf.scene late-rank.scene pipeline.cu pipeline-sm_90.cubin progress.scene retired-consumers.scene two-places.scene train.cu train-sm_90.cubin unset-flag.scene waits.cu waits-sm_90.cubin)
extra_targets += $(addprefix $(O)/share/gpu-agent/scenes/,$(scene_files))
$(O)/share/gpu-agent/scenes/%: sim/scenes/%
	@mkdir -p $(@D)
	@cp $< $@
installs += $(foreach f,$(scene_files),644:sim/scenes/$(f):$(scenedir)/$(f))
installs += 755:scripts/demo:$(bindir)/gpu-agent-demo
