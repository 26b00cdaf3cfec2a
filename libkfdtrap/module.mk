# libkfdtrap: internal archive for our programs; shared and static library for everybody else.
archives += kfdtrap
kfdtrap_src := $(addprefix libkfdtrap/src/,session.c launch.c queues.c watch.c events.c snapshot.c \
	names.c sysfs.c topology.c topology_drm.c process.c \
	wave.c wave_arch.c wave_state.c wave_registers.c wave_scratch.c wave_sizes.c)
kfdtrap_cflags := $(call pkg_cflags,libdrm_amdgpu)
# For foo_ldlibs of whatever uses kfdtrap_topology_add_drm().
kfdtrap_ldlibs := $(call pkg_libs,libdrm_amdgpu libdrm)

kfdtrap_soname := libkfdtrap.so.0
kfdtrap_sofile := libkfdtrap.so.$(VERSION)

extra_targets += $(O)/$(kfdtrap_sofile) $(O)/$(kfdtrap_soname) $(O)/libkfdtrap.so \
	$(O)/static/libkfdtrap.a $(O)/kfdtrap.pc

$(O)/$(kfdtrap_sofile): $(O)/libkfdtrap.a $(O)/libbase.a libkfdtrap/libkfdtrap.map
	$(call say,LD,$@)
	$(Q)$(CC) $(all_cflags) $(all_ldflags) $(if $(SANITIZE),,-Wl$(comma)-z$(comma)defs) -shared \
		-Wl,-soname,$(kfdtrap_soname) -Wl,--version-script,libkfdtrap/libkfdtrap.map -o $@ \
		-Wl,--whole-archive $(O)/libkfdtrap.a -Wl,--no-whole-archive $(O)/libbase.a \
		$(kfdtrap_ldlibs)

$(O)/$(kfdtrap_soname) $(O)/libkfdtrap.so: $(O)/$(kfdtrap_sofile)
	$(Q)ln -sfn $(<F) $@

# One object that holds what it needs of base/ and shows nothing but the public functions.  The
# compiler links it: with -flto it has to make code of its own objects before a name can be hidden.
kfdtrap_relocatable = $(CC) $(all_cflags) -r -nostdlib $(if $(findstring -flto,$(all_cflags)),-flinker-output=nolto-rel)
$(O)/static/libkfdtrap.a: $(O)/libkfdtrap.a $(O)/libbase.a
	$(call say,AR,$@)
	@mkdir -p $(@D)
	$(Q)$(kfdtrap_relocatable) -o $(@D)/kfdtrap.o -Wl,--whole-archive $(O)/libkfdtrap.a \
		-Wl,--no-whole-archive $(O)/libbase.a
	$(Q)$(OBJCOPY) --localize-hidden $(@D)/kfdtrap.o
	$(Q)rm -f $@ && $(AR) rcsD $@ $(@D)/kfdtrap.o

# The directories may differ between `make` and `make install`.
$(O)/kfdtrap.pc: libkfdtrap/kfdtrap.pc.in force
	@mkdir -p $(@D)
	$(Q)sed -e 's|@prefix@|$(prefix)|' -e 's|@libdir@|$(libdir:$(prefix)/%=$${prefix}/%)|' \
		-e 's|@includedir@|$(includedir:$(prefix)/%=$${prefix}/%)|' -e 's|@version@|$(VERSION)|' $< >$@.new
	$(Q)cmp -s $@.new $@ && rm $@.new || mv $@.new $@

comma := ,

installs += 755:$(O)/$(kfdtrap_sofile):$(libdir)/$(kfdtrap_sofile)
installs += link:$(kfdtrap_sofile):$(libdir)/$(kfdtrap_soname)
installs += link:$(kfdtrap_soname):$(libdir)/libkfdtrap.so
installs += 644:$(O)/static/libkfdtrap.a:$(libdir)/libkfdtrap.a
installs += 644:$(O)/kfdtrap.pc:$(libdir)/pkgconfig/kfdtrap.pc
installs += 644:libkfdtrap/include/kfdtrap.h:$(includedir)/kfdtrap.h
installs += 644:libkfdtrap/include/kfdtrap_wave.h:$(includedir)/kfdtrap_wave.h
