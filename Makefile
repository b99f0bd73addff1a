# SPDX-License-Identifier: Apache-2.0
# One entry to everything: `make help` lists the targets.

VERSION := $(file <VERSION)

# Where things are installed. The programs know these paths, so give the same values to `make` and
# to `make install`; a change of one rebuilds what depends on it.
PREFIX ?= /usr
BINDIR ?= $(PREFIX)/bin
SBINDIR ?= $(PREFIX)/sbin
LIBEXECDIR ?= $(PREFIX)/libexec/gpushare
DATADIR ?= $(PREFIX)/share/gpushare
MANDIR ?= $(PREFIX)/share/man
SYSCONFDIR ?= /etc
UNITDIR ?= $(PREFIX)/lib/systemd/system
BASHCOMPDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHCOMPDIR ?= $(PREFIX)/share/zsh/vendor-completions
DESTDIR ?=

AR ?= ar
INSTALL ?= install
PYTHON ?= /usr/bin/python3
# The fuzzers need clang's libFuzzer; everything else builds with gcc or clang.
FUZZ_CC ?= clang-14
# How long `make fuzz-runtime` runs, each target its share.
SECONDS ?= 60

# SAN=1: the same programs and tests under ASan and UBSan, in a folder of their own.
# FUZZ=1: instrumented for libFuzzer (used by fuzz-runtime).
ifdef FUZZ
B := build/fuzz
CC := $(FUZZ_CC)
else ifdef SAN
B := build/san
else
B := build
endif

# What protoc-c makes of agent/proto/*.proto, the same for every build.
GEN := build/gen
PROTOC_C ?= protoc-c
PROTOS := $(patsubst agent/proto/%.proto,$(GEN)/%.pb-c.c,$(wildcard agent/proto/*.proto))

# ---- Flags: CFLAGS, CPPFLAGS and LDFLAGS are the user's, GS_* are ours.
CFLAGS ?= -O2 -g

GS_CPPFLAGS := -Iinclude -I. -I$(GEN) -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 \
	-DGPUSHARE_VERSION='"$(VERSION)"' \
	-DGPUSHARE_LIBEXECDIR='"$(LIBEXECDIR)"' \
	-DGPUSHARE_DATADIR='"$(DATADIR)"' \
	-DGPUSHARE_SYSCONFDIR='"$(SYSCONFDIR)"'

GS_WARN := -Wall -Wextra -Wformat=2 -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla \
	-Wundef -Wmissing-declarations -Wold-style-definition -Wnested-externs \
	-Wredundant-decls -Wpointer-arith -Winit-self -Wempty-body -Wwrite-strings \
	-Wmissing-include-dirs -Wimplicit-fallthrough
ifdef WERROR
GS_WARN += -Werror
endif

GS_CFLAGS := -std=gnu11 $(GS_WARN) -fPIE -fno-strict-aliasing -fno-common \
	-ffunction-sections -fdata-sections

SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
ifdef FUZZ
GS_CFLAGS += $(SANITIZE) -fsanitize=fuzzer-no-link
GS_LDFLAGS := $(SANITIZE)
else ifdef SAN
GS_CFLAGS += $(SANITIZE)
GS_LDFLAGS := $(SANITIZE)
else
GS_CPPFLAGS += -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2
GS_CFLAGS += -fstack-protector-strong -fstack-clash-protection
GS_LDFLAGS := -Wl,--gc-sections -Wl,-z,relro,-z,now -Wl,-z,noexecstack -Wl,--as-needed
# The runtime and its hook run for every container of a node: without a dynamic linker they start
# sooner, and no LD_PRELOAD or ld.so.conf of anybody reaches them.
STATIC := -static-pie
endif
PIE := -pie

JANSSON_LIBS ?= -ljansson
CMOCKA_LIBS ?= -lcmocka
# Only what speaks to the kernel module takes it: neither the runtime nor the hook.
MNL_LIBS ?= -lmnl
# The agent's alone: its loop, the Kubernetes API, HTTP, system call filter and capabilities.
AGENT_LIBS ?= -luv -lcurl -lmicrohttpd -lgnutls -lseccomp -lcap $(GRPC_LIBS)
# The cluster's part: the Kubernetes API, the webhook, its certificate.
CONTROLLER_LIBS ?= -luv -lcurl -lmicrohttpd -lgnutls
# The kubelet's protocols: unix sockets alone need none of gRPC's TLS. Only for who uses it.
GRPC_LIBS ?= -Wl,--as-needed -lgrpc_unsecure -lgpr -lprotobuf-c

# ---- What is built from what.
PROGRAMS := $(addprefix $(B)/,gpushare-runtime gpushare-hook gpushare-spec gpusharectl \
	gpushared gpushare-probe gpushare-controller)
RUNTIME_MAINS := runtime/main.c runtime/hook.c runtime/dryrun.c
AGENT_MAINS := agent/main.c agent/probe.c

objs = $(patsubst %.c,$(B)/obj/%.o,$(1))
COMMON_OBJS := $(call objs,$(wildcard common/*.c))
RUNTIME_OBJS := $(call objs,$(filter-out $(RUNTIME_MAINS),$(wildcard runtime/*.c)))
CTL_OBJS := $(call objs,$(filter-out ctl/main.c,$(wildcard ctl/*.c)))
CONTROLLER_OBJS := $(call objs,$(filter-out controller/main.c,$(wildcard controller/*.c)))
KUBE_OBJS := $(call objs,$(wildcard kube/*.c))
AGENT_OBJS := $(call objs,$(filter-out $(AGENT_MAINS),$(wildcard agent/*.c)) $(PROTOS))

all: $(PROGRAMS) ## every program, into build/

$(B)/gpushare-runtime: $(call objs,runtime/main.c) $(B)/libgsruntime.a $(B)/libgpushare.a
$(B)/gpushare-hook: $(call objs,runtime/hook.c) $(B)/libgsruntime.a $(B)/libgpushare.a
$(B)/gpushare-spec: $(call objs,runtime/dryrun.c) $(B)/libgsruntime.a $(B)/libgpushare.a
$(B)/gpusharectl: $(call objs,ctl/main.c) $(B)/libgsctl.a $(B)/libgpushare.a

$(B)/gpushared: $(call objs,agent/main.c) $(B)/libgsagent.a $(B)/libgskube.a \
	$(B)/libgpushare.a
$(B)/gpushare-probe: $(call objs,agent/probe.c) $(B)/libgsagent.a $(B)/libgpushare.a

$(B)/gpushare-controller: $(call objs,controller/main.c) $(B)/libgscontroller.a \
	$(B)/libgskube.a $(B)/libgpushare.a

$(B)/gpushare-runtime $(B)/gpushare-hook: MODE = $(or $(STATIC),$(PIE))
MODE = $(PIE)

$(B)/gpusharectl $(B)/gpushare-probe: LIBS = $(JANSSON_LIBS) $(MNL_LIBS)
$(B)/gpushared: LIBS = $(JANSSON_LIBS) $(MNL_LIBS) $(AGENT_LIBS)
$(B)/gpushare-controller: LIBS = $(JANSSON_LIBS) $(CONTROLLER_LIBS)
LIBS = $(JANSSON_LIBS)

$(PROGRAMS):
	$(call say,LINK)$(CC) $(CFLAGS) $(LDFLAGS) $(GS_LDFLAGS) $(MODE) -o $@ $^ $(LIBS)

$(B)/libgpushare.a: $(COMMON_OBJS)
$(B)/libgsruntime.a: $(RUNTIME_OBJS)
$(B)/libgsctl.a: $(CTL_OBJS)
$(B)/libgsagent.a: $(AGENT_OBJS)
$(B)/libgscontroller.a: $(CONTROLLER_OBJS)
$(B)/libgskube.a: $(KUBE_OBJS)

# Made anew each time: ar would keep the object of a source file that is gone.
$(B)/lib%.a:
	$(call say,AR)rm -f $@ && $(AR) rcsD $@ $^

COMPILE = $(CC) $(CPPFLAGS) $(GS_CPPFLAGS) $(GS_CFLAGS) $(CFLAGS)

$(B)/obj/%.o: %.c $(B)/flags | $(PROTOS)
	@mkdir -p $(@D)
	$(call say,CC)$(COMPILE) -MMD -MP -c -o $@ $<

# Messages only: what protoc-c makes of services is unused, and of Register it makes no valid C.
$(GEN)/%.pb-c.c $(GEN)/%.pb-c.h: agent/proto/%.proto
	@mkdir -p $(@D)
	$(call say,PROTO)sed '/^service /,/^}/d' $< >$(GEN)/$*.proto && \
		$(PROTOC_C) --proto_path=$(GEN) --c_out=$(GEN) $(GEN)/$*.proto

protos: $(PROTOS)

# Everything is compiled again when the compiler, a flag, the version or an install path changes.
quote = '$(subst ','\'',$(1))'
$(B)/flags: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' $(call quote,$(COMPILE)) | cmp -s - $@ || \
		printf '%s\n' $(call quote,$(COMPILE)) >$@

# V=1 shows the commands, otherwise one short line each.
say = $(if $(V),,@echo "  $(1)	$@"; )

include tests/tests.mk

# ---- The kernel module, for the running kernel or the one whose build folder is given. Built in a
# copy, so that one checkout serves several kernels.
KDIR ?= /lib/modules/$(shell uname -r)/build
KMOD_OUT ?= build/kmod

kmod: ## KDIR=/lib/modules/.../build: gpushare.ko, into build/kmod/
	@[ -e "$(KDIR)/Makefile" ] || { \
		echo "kmod: no kernel headers in $(KDIR) (linux-headers-*);" \
			"KDIR= names others" >&2; exit 2; }
	@mkdir -p $(KMOD_OUT)/src
	@cp -pr VERSION include kmod $(KMOD_OUT)/src
	$(MAKE) -C $(KDIR) M=$(abspath $(KMOD_OUT))/src/kmod $(if $(WERROR),KCFLAGS=-Werror) modules
	@cp -p $(KMOD_OUT)/src/kmod/gpushare.ko $(KMOD_OUT)/gpushare.ko
	@echo "$(KMOD_OUT)/gpushare.ko"

# ---- Installing.
VENDORS = $(wildcard vendors/*.json)
MANPAGES = $(wildcard docs/man/*.[1458])

# put MODE,FILES,FOLDER: each appears under its name complete and at once, for containers may be
# created at this very moment.
put = for f in $(2); do \
		n=$$(basename "$$f") && $(INSTALL) -m $(1) "$$f" "$(DESTDIR)$(3)/.$$n.new" && \
		mv -f "$(DESTDIR)$(3)/.$$n.new" "$(DESTDIR)$(3)/$$n" || exit 1; done

install: all ## PREFIX=/usr DESTDIR= SYSCONFDIR=/etc: programs, catalogue, manual pages [root]
	$(INSTALL) -d $(DESTDIR)$(BINDIR) $(DESTDIR)$(SBINDIR) $(DESTDIR)$(LIBEXECDIR)
	$(INSTALL) -d $(DESTDIR)$(DATADIR)/vendors.d
	@$(call put,0644,$(VENDORS),$(DATADIR)/vendors.d)
	@$(call put,0755,$(B)/gpushare-hook $(B)/gpushare-spec $(B)/gpushare-probe \
		packaging/may-remove,$(LIBEXECDIR))
	@$(call put,0755,$(B)/gpushare-runtime $(B)/gpusharectl,$(BINDIR))
	@$(call put,0755,$(B)/gpushared $(B)/gpushare-controller,$(SBINDIR))
	ln -sf gpusharectl $(DESTDIR)$(BINDIR)/kubectl-gpushare
	@$(call put,0755,packaging/completion/kubectl_complete-gpushare,$(BINDIR))
	$(INSTALL) -D -m 0644 packaging/completion/gpusharectl.bash \
		$(DESTDIR)$(BASHCOMPDIR)/gpusharectl
	ln -sf gpusharectl $(DESTDIR)$(BASHCOMPDIR)/kubectl-gpushare
	$(INSTALL) -D -m 0644 packaging/completion/_gpusharectl \
		$(DESTDIR)$(ZSHCOMPDIR)/_gpusharectl
	$(INSTALL) -d $(DESTDIR)$(UNITDIR)
	sed 's|/usr/sbin/|$(SBINDIR)/|' packaging/systemd/gpushared.service \
		>$(DESTDIR)$(UNITDIR)/.gpushared.service.new
	chmod 0644 $(DESTDIR)$(UNITDIR)/.gpushared.service.new
	mv -f $(DESTDIR)$(UNITDIR)/.gpushared.service.new $(DESTDIR)$(UNITDIR)/gpushared.service
	$(foreach m,$(MANPAGES),$(INSTALL) -D -m 0644 $(m) \
		$(DESTDIR)$(MANDIR)/man$(patsubst .%,%,$(suffix $(m)))/$(notdir $(m)) &&) :

DKMS_TREE = $(DESTDIR)/usr/src/gpushare-$(VERSION)

install-dkms: ## DESTDIR=: the module's sources for DKMS, in /usr/src [root]
	$(INSTALL) -d $(DKMS_TREE)/include/uapi $(DKMS_TREE)/kmod/configure
	$(INSTALL) -m 0644 VERSION $(DKMS_TREE)
	$(INSTALL) -m 0644 include/uapi/gpushare.h $(DKMS_TREE)/include/uapi
	$(INSTALL) -m 0644 kmod/Kbuild $(wildcard kmod/*.[ch]) $(DKMS_TREE)/kmod
	$(INSTALL) -m 0644 $(wildcard kmod/configure/*.c) $(DKMS_TREE)/kmod/configure
	$(INSTALL) -m 0755 kmod/configure/probe.sh $(DKMS_TREE)/kmod/configure
	sed 's/@VERSION@/$(VERSION)/' packaging/dkms/dkms.conf.in >$(DKMS_TREE)/dkms.conf

# Takes away what both installs put there, and nothing that an administrator wrote. What DKMS built
# of the sources goes first: without them it could not take that away.
uninstall: ## take those away again [root]
	$(if $(DESTDIR),,test ! -e /var/lib/dkms/gpushare/$(VERSION) || \
		dkms remove gpushare/$(VERSION) --all)
	rm -rf $(DKMS_TREE)
	rm -f $(addprefix $(DESTDIR)$(BINDIR)/,gpushare-runtime gpusharectl kubectl-gpushare \
		kubectl_complete-gpushare)
	rm -f $(addprefix $(DESTDIR)$(SBINDIR)/,gpushared gpushare-controller)
	rm -f $(DESTDIR)$(UNITDIR)/gpushared.service
	rm -f $(addprefix $(DESTDIR)$(BASHCOMPDIR)/,gpusharectl kubectl-gpushare)
	rm -f $(DESTDIR)$(ZSHCOMPDIR)/_gpusharectl
	rm -f $(addprefix $(DESTDIR)$(LIBEXECDIR)/,gpushare-hook gpushare-spec gpushare-probe \
		may-remove)
	rm -f $(addprefix $(DESTDIR)$(DATADIR)/vendors.d/,$(notdir $(VENDORS)))
	rm -f $(foreach m,$(MANPAGES),\
		$(DESTDIR)$(MANDIR)/man$(patsubst .%,%,$(suffix $(m)))/$(notdir $(m)))
	for folder in $(LIBEXECDIR) $(DATADIR)/vendors.d $(DATADIR); do \
		test ! -d $(DESTDIR)$$folder || \
			rmdir --ignore-fail-on-non-empty $(DESTDIR)$$folder; \
	done

# ---- The rest.
deps: ## install the Debian packages that building and testing need [root]
	packaging/deps.sh

lint: ## formatting, static analysers, house rules
	@packaging/deps.sh --if-root build lint
	@$(MAKE) --no-print-directory protos
	@LINT_CPPFLAGS=$(call quote,$(GS_CPPFLAGS)) tests/lint/lint.sh

format: ## clang-format over every C file
	find common include runtime ctl agent controller kube kmod tests -name '*.[ch]' \
		-not -path '*/cases/*' -print0 | xargs -0 -r clang-format-14 -i

clean: ## remove build/
	rm -rf build

deb: ## Debian packages, into build/deb/
	@packaging/deps.sh --if-root build deb
	@packaging/deb.sh

rpm: ## RPM packages, into build/rpm/ (needs rpmbuild)
	@packaging/rpm.sh

help: ## this list
	@echo "gpushare $(VERSION): make [SAN=1] [WERROR=1] [V=1] target"
	@sed -nE 's/^([a-z0-9-]+):.*## (.*)/\1	\2/p' Makefile tests/tests.mk | \
		while IFS='	' read -r name text; do \
			printf '  %-14s %s\n' "$$name" "$$text"; done

FORCE:
.PHONY: all protos install install-dkms uninstall deps lint format clean kmod deb rpm help FORCE
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules
.SUFFIXES:

-include $(wildcard $(B)/obj/*/*.d $(B)/obj/*/*/*.d)
