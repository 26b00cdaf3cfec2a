# gpu-agent: one non-recursive Makefile; each directory describes itself in module.mk.
#
#   make                 build everything under build/
#   make check           build with ASan+UBSan and run every test this machine can run
#   make vscode          the extension for VS Code, build/vscode/gpu-agent.vsix; needs npm
#   make bench           measure; prints a table of ratios
#   make bench-curves    how times and memory grow with what there is to look at
#   make bench-compare BASE=COMMIT   the same here and there; fails where a ratio is worse by a tenth
#   make dist            the sources of the last commit, build/gpu-agent-VERSION.tar.xz
#   make install         DESTDIR= prefix= sysconfdir= libexecdir= ... honoured
#   make V=1             show commands;  make O=dir  build elsewhere
#   make SANITIZE=address,undefined O=build/asan

VERSION := 0.1.0

O       ?= build
prefix  ?= /usr/local
# A daemon reads one configuration tree, wherever its binaries live.
sysconfdir ?= /etc
localstatedir ?= /var
runstatedir ?= /run
exec_prefix ?= $(prefix)
bindir  ?= $(exec_prefix)/bin
sbindir ?= $(exec_prefix)/sbin
libdir  ?= $(exec_prefix)/lib
libexecdir ?= $(exec_prefix)/libexec
includedir ?= $(prefix)/include
datadir ?= $(prefix)/share
mandir  ?= $(datadir)/man
docdir  ?= $(datadir)/doc/gpu-agent
scenedir ?= $(datadir)/gpu-agent/scenes
skilldir ?= $(datadir)/gpu-agent/skills
unitdir ?= $(prefix)/lib/systemd/system
sysusersdir ?= $(prefix)/lib/sysusers.d
tmpfilesdir ?= $(prefix)/lib/tmpfiles.d
presetdir ?= $(prefix)/lib/systemd/system-preset
catalogdir ?= $(prefix)/lib/systemd/catalog
vendorconfdir ?= $(prefix)/lib/gpu-agent
bashcompdir ?= $(datadir)/bash-completion/completions
zshcompdir ?= $(datadir)/zsh/site-functions
fishcompdir ?= $(datadir)/fish/vendor_completions.d

CC      ?= cc
# The other tools are the compiler's own, so that CC=aarch64-linux-gnu-gcc is all that a cross build names.
tool = $(shell $(CC) -print-prog-name=$(1))
ifeq ($(origin AR),default)
AR := $(call tool,ar)
endif
ifeq ($(origin LD),default)
LD := $(call tool,ld)
endif
ifeq ($(origin OBJCOPY),undefined)
OBJCOPY := $(call tool,objcopy)
endif
# What the programs will run on; x86_64 or aarch64.
processor := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine)))
PKG_CONFIG ?= pkg-config
PYTHON  ?= python3
CFLAGS  ?= -O2 -g

SANITIZE ?=
COVERAGE ?=
V ?= 0
ifeq ($(V),0)
Q := @
say = @printf '  %-7s %s\n' $(1) $(2)
else
Q :=
say = @:
endif

WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith \
	-Wwrite-strings -Wundef -Wformat=2 -Wvla -Wno-unused-parameter \
	-Wno-missing-field-initializers
all_cppflags := -D_GNU_SOURCE -DGPU_AGENT_VERSION='"$(VERSION)"' \
	-I. -Ilib -Ilibkfdtrap/include -Ilibcudbgshim/include -I$(O)/gen $(CPPFLAGS)
all_cflags := -std=gnu11 -fPIC -fvisibility=hidden -ffile-prefix-map=$(CURDIR)=. \
	-fstack-protector-strong $(WARN) $(CFLAGS)
all_ldflags := -Wl,-z,relro,-z,now -Wl,--as-needed $(LDFLAGS)
# The loader looks for a symbol in one library after the other, and most are in this one.  It also has what little of
# libm is used; where it has not, -lm that follows is linked.
first_ldlib := -lc
plain_cflags := $(all_cflags)
plain_ldflags := $(all_ldflags)
program_ldflags :=
ifneq ($(SANITIZE),)
all_cflags += -fsanitize=$(SANITIZE) -fno-sanitize-recover=undefined -fno-omit-frame-pointer \
	-ftrivial-auto-var-init=pattern -g1
all_ldflags += -fsanitize=$(SANITIZE)
# Tests start thousands of programs, and half of what that took was this: the loader that moves each description of a
# variable, and the search for leaks in the tables of two run-time libraries.  clang links its own statically anyway.
ifeq (,$(findstring clang,$(CC)))
program_ldflags := $(if $(findstring address,$(SANITIZE)),-static-libasan) \
	$(if $(findstring undefined,$(SANITIZE)),-static-libubsan) -no-pie -rdynamic
endif
endif
# Counters in files that are mapped: what a process has run is known however it ends (scripts/coverage).  What %m stands
# for is the same for some programs that differ, so that files are named after programs too, by their own sources.
ifneq ($(COVERAGE),)
all_cflags += -fprofile-instr-generate=$(COVERAGE)/%m%c.profraw -fcoverage-mapping -mllvm -runtime-counter-relocation \
	-Wno-unused-command-line-argument
all_ldflags += -fprofile-instr-generate
endif

pkg_cflags = $(shell $(PKG_CONFIG) --cflags $(1))
pkg_libs = $(shell $(PKG_CONFIG) --libs $(1))

.PHONY: all
all:

# A module adds to these lists; the rules below do the rest.
#   archives  += foo   foo_src foo_cflags                  -> $(O)/libfoo.a (internal)
#   programs  += foo   foo_src foo_libs foo_ldlibs foo_cflags -> $(O)/bin/foo
#   tests     += foo   like programs, also run by `make check-unit` -> $(O)/tests/foo
#   fuzzers   += foo   like programs, corpus in tests/fuzz/corpus/foo -> $(O)/fuzz/foo
#   shared_objects += d/libfoo.so.1 like programs without _libs, plus _ldflags -> $(O)/d/libfoo.so.1
#   plain_programs += d/foo  the same, an executable; _needs: files to have first
# foo_libs names archives in link order; foo_deps are generated headers needed first.  The last two
# are never built with sanitizers: they are loaded into, or called inside, processes that have none.
archives :=
programs :=
test_programs :=
tests :=
fuzzers :=
shared_objects :=
plain_programs :=
bench_programs :=
generated :=
installs :=
system_tests :=
extra_targets :=

include lib/base/module.mk
include libkfdtrap/module.mk
include libcudbgshim/module.mk
include lib/corefile/module.mk
include lib/store/module.mk
include lib/symbols/module.mk
include lib/hoststack/module.mk
include lib/values/module.mk
include lib/waits/module.mk
include lib/disasm/module.mk
include protocol/module.mk
include dap/module.mk
include agentd/module.mk
include ctl/module.mk
include clients/module.mk
include editors/vscode/module.mk
include systemd/module.mk
include docs/module.mk
include tests/module.mk
include sim/kfd/module.mk
include sim/app/module.mk
include sim/cuda/module.mk
include sim/scenes/module.mk
include bench/module.mk

define compile_rules
$(1)_obj := $$(patsubst %.c,$(O)/obj/%.o,$$($(1)_src))
$$($(1)_obj): private extra_cflags := $$($(1)_cflags) $(if $(COVERAGE),-fprofile-instr-generate=$(COVERAGE)/$(1)-%m%c.profraw)
$$($(1)_obj): | $$($(1)_deps)
objects += $$($(1)_obj)
endef

define archive_rules
$(call compile_rules,$(1))
$(O)/lib$(1).a: $$($(1)_obj)
	$$(call say,AR,$$@)
	$$(Q)rm -f $$@ && $(AR) qcsD $$@ $$^
endef

# $(1) name, $(2) directory below $(O)
define program_rules
$(call compile_rules,$(1))
$(O)/$(2)/$(1): $$($(1)_obj) $$(foreach l,$$($(1)_libs),$(O)/lib$$(l).a)
	$$(call say,LD,$$@)
	@mkdir -p $$(@D)
	$$(Q)$(CC) $(all_cflags) $(all_ldflags) $(program_ldflags) -o $$@ $$^ $(first_ldlib) $$($(1)_ldlibs)
endef

$(foreach a,$(archives),$(eval $(call archive_rules,$(a))))
$(foreach p,$(programs),$(eval $(call program_rules,$(p),bin)))
$(foreach p,$(test_programs),$(eval $(call program_rules,$(p),tests)))
$(foreach p,$(tests),$(eval $(call program_rules,$(p),tests)))
$(foreach p,$(fuzzers),$(eval $(call program_rules,$(p),fuzz)))
$(foreach p,$(bench_programs),$(eval $(call program_rules,$(p),bench)))

# $(1) path below $(O), $(2) linker options of its kind
define plain_rules
$(1)_obj := $$(patsubst %.c,$(O)/plain/$(1)/%.o,$$($(1)_src))
objects += $$($(1)_obj)
$$($(1)_obj): $(O)/plain/$(1)/%.o: %.c $$(MAKEFILE_LIST) $(O)/flags | $$($(1)_deps)
	$$(call say,CC,$$@)
	@mkdir -p $$(@D)
	$$(Q)$(CC) $(all_cppflags) $(plain_cflags) $$($(1)_cflags) -MMD -MP -c -o $$@ $$<
$(O)/$(1): $$($(1)_obj) $$($(1)_needs)
	$$(call say,LD,$$@)
	@mkdir -p $$(@D)
	$$(Q)$(CC) $(plain_cflags) $(plain_ldflags) $(2) -o $$@ $$($(1)_obj) $$($(1)_ldflags)
endef
soname = -shared -Wl,-soname,$(notdir $(1))
$(foreach s,$(shared_objects),$(eval $(call plain_rules,$(s),$(call soname,$(s)))))
$(foreach p,$(plain_programs),$(eval $(call plain_rules,$(p),)))

# Changed flags rebuild everything; changed directories only what includes paths.h.
flags_text = $(subst ','\'',$(CC) $(all_cppflags) $(all_cflags))
.PHONY: force
$(O)/flags: force
	@mkdir -p $(@D)
	@printf '%s\n' '$(flags_text)' | cmp -s - $@ || printf '%s\n' '$(flags_text)' >$@

define paths_text
#define RUNSTATEDIR "$(runstatedir)"
#define SYSCONFDIR "$(sysconfdir)"
#define LOCALSTATEDIR "$(localstatedir)"
#define LIBEXECDIR "$(libexecdir)"
#define VENDORCONFDIR "$(vendorconfdir)"
#define SCENEDIR "$(scenedir)"
#define SKILLDIR "$(skilldir)"
#define LIBDIR "$(libdir)"
endef
export paths_text
$(O)/gen/paths.h: force
	@mkdir -p $(@D)
	@printenv paths_text | cmp -s - $@ || printenv paths_text >$@

$(O)/obj/%.o: %.c $(MAKEFILE_LIST) $(O)/flags | $(O)/gen/paths.h
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(all_cppflags) $(all_cflags) $(extra_cflags) -MMD -MP -c -o $@ $<

-include $(objects:.o=.d)

all: $(generated) $(foreach p,$(programs),$(O)/bin/$(p)) $(extra_targets) \
	$(foreach f,$(shared_objects) $(plain_programs),$(O)/$(f))

.PHONY: tests
tests: all $(foreach p,$(tests) $(test_programs),$(O)/tests/$(p)) $(foreach p,$(fuzzers),$(O)/fuzz/$(p))

.PHONY: check-unit check
check-unit: tests
	$(Q)scripts/run-tests $(foreach p,$(tests),$(O)/tests/$(p))

# Measures; needs a build without sanitizers to mean anything.
.PHONY: bench
bench: all $(foreach p,$(bench_programs),$(O)/bench/$(p))
	$(Q)bench/run --build $(O)

# CURVES="waves ranks" measures those alone.
.PHONY: bench-curves
bench-curves: all
	$(Q)bench/curves --build $(O) $(CURVES)

# BASE=COMMIT, a directory, or a file of `bench/run --json`; PARTS="ping wave" measures those alone.
.PHONY: bench-compare
bench-compare:
	$(Q)bench/compare $(if $(BASE),$(BASE),$(error make bench-compare BASE=COMMIT)) $(PARTS)

# For scripts: make print-tests, print-fuzzers, print-system_tests, print-WARN.
.PHONY: print-tests print-fuzzers print-system_tests print-WARN
print-tests:
	@echo $(foreach p,$(tests),$(O)/tests/$(p))
print-fuzzers:
	@echo $(foreach p,$(fuzzers),$(O)/fuzz/$(p))
print-system_tests:
	@echo $(system_tests)
print-WARN:
	@echo $(WARN)

# The one entry point that README and CI use as well.
check:
	$(Q)scripts/check

# The same commit gives the same bytes: git sorts, and every file has the commit's time.
.PHONY: dist
dist:
	$(call say,DIST,$(O)/gpu-agent-$(VERSION).tar.xz)
	@mkdir -p $(O)
	$(Q)git archive --format=tar --prefix=gpu-agent-$(VERSION)/ HEAD >$(O)/dist.tar
	$(Q)xz -9 -T1 -c $(O)/dist.tar >$(O)/gpu-agent-$(VERSION).tar.xz
	$(Q)rm $(O)/dist.tar

.PHONY: clean
clean:
	rm -rf $(O)

# install: every line of `installs` is MODE:SOURCE:DESTINATION, or link:TARGET:DESTINATION.
# `uninstall` walks the same list.
.PHONY: install uninstall
install: all
	$(Q)printf '%s\n' $(foreach i,$(installs),'$(i)') | DESTDIR='$(DESTDIR)' scripts/install-files install

uninstall:
	$(Q)printf '%s\n' $(foreach i,$(installs),'$(i)') | DESTDIR='$(DESTDIR)' scripts/install-files uninstall

.SUFFIXES:
.SECONDARY:
.DELETE_ON_ERROR:
