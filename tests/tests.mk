# SPDX-License-Identifier: Apache-2.0
# Test programs and test targets. tests/suites says what each suite runs, tests/run runs them.

# ---- Unit tests: tests/unit/test_<topic>.c is a cmocka program of its own, linked with every other
# file of that folder and with all of our libraries. tests/unit/flags.mk may add link flags to one:
# LDFLAGS_test_x = -Wl,--wrap=open
UNIT_SRCS := $(wildcard tests/unit/test_*.c)
UNIT_TESTS := $(patsubst tests/unit/%.c,$(B)/tests/%,$(UNIT_SRCS))
UNIT_OBJS := $(call objs,$(filter-out $(UNIT_SRCS),$(wildcard tests/unit/*.c)))
OUR_LIBS := $(B)/libgsctl.a $(B)/libgsruntime.a $(B)/libgsagent.a $(B)/libgscontroller.a \
	$(B)/libgskube.a $(B)/libgpushare.a

-include tests/unit/flags.mk

$(call objs,$(wildcard tests/unit/*.c)): private GS_CFLAGS += -Wno-unused-parameter

$(UNIT_TESTS): $(B)/tests/%: $(B)/obj/tests/unit/%.o $(UNIT_OBJS) $(OUR_LIBS)
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) $(CFLAGS) $(LDFLAGS) $(GS_LDFLAGS) $(PIE) $(LDFLAGS_$*) -o $@ $^ \
		$(JANSSON_LIBS) $(MNL_LIBS) $(AGENT_LIBS) $(CMOCKA_LIBS)

# ---- Small programs that tests run, inside containers too, so static: tests/programs/x.c becomes
# build/programs/x (the same for every build: they are not what is tested).
TEST_PROGRAMS := $(patsubst tests/programs/%.c,build/programs/%,$(wildcard tests/programs/*.c))

build/programs/%: tests/programs/%.c
	@mkdir -p $(@D)
	$(call say,CC)$(CC) -std=gnu11 -D_GNU_SOURCE -O2 -Wall -Wextra $(if $(WERROR),-Werror) \
		-static -o $@ $<

# Libraries, without our flags: some in the place of vendors' own, which gpushare-probe loads, and
# one for LD_PRELOAD.
FAKE_NVML := build/programs/libfakenvml.so build/programs/libfakenvml-old.so
TEST_LIBS := $(FAKE_NVML) build/programs/liblesscaps.so

$(FAKE_NVML): tests/programs/fakenvml/fakenvml.c
	@mkdir -p $(@D)
	$(call say,CC)$(CC) -std=gnu11 -D_GNU_SOURCE -O2 -Wall -Wextra $(if $(WERROR),-Werror) \
		$(if $(findstring -old,$@),-DOLD) -fPIC -shared -o $@ $<

build/programs/liblesscaps.so: tests/programs/lesscaps/lesscaps.c
	@mkdir -p $(@D)
	$(call say,CC)$(CC) -std=gnu11 -D_GNU_SOURCE -O2 -Wall -Wextra $(if $(WERROR),-Werror) \
		-fPIC -shared -o $@ $<

# The agent's API client by hand, for tests/k8s.
$(B)/tests/kubeclient: $(call objs,tests/k8s/kubeclient.c) $(B)/libgskube.a $(B)/libgpushare.a
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) $(CFLAGS) $(LDFLAGS) $(GS_LDFLAGS) $(PIE) -o $@ $^ \
		$(JANSSON_LIBS) -luv -lcurl

# For guests that have the agent and its libraries.
$(B)/vm-kubelet: tests/vm/agent/kubelet.c $(B)/libgsagent.a $(B)/libgpushare.a
	$(call say,LINK)$(COMPILE) $(LDFLAGS) $(GS_LDFLAGS) $(PIE) -o $@ $^ \
		$(JANSSON_LIBS) $(MNL_LIBS) $(AGENT_LIBS)

# For tests/vm/agent-calls.sh.
$(B)/agent-rules: tests/vm/agent/rules.c agent/sandbox_rules.c $(B)/libgpushare.a
	$(call say,LINK)$(COMPILE) $(LDFLAGS) $(GS_LDFLAGS) $(PIE) -o $@ $(filter-out agent/%,$^) \
		-lseccomp

programs: $(TEST_PROGRAMS) $(TEST_LIBS)
tests: $(UNIT_TESTS) $(B)/tests/kubeclient programs

# ---- Fuzzers: tests/fuzz/fuzz_<topic>.c becomes build/fuzz/fuzz_<topic>.
ifdef FUZZ
FUZZERS := $(patsubst tests/fuzz/%.c,$(B)/%,$(wildcard tests/fuzz/fuzz_*.c))

# LLVMFuzzerTestOneInput has no header.
$(call objs,$(wildcard tests/fuzz/*.c)): private GS_CFLAGS += -Wno-missing-prototypes \
	-Wno-missing-declarations

$(B)/fuzz_%: $(B)/obj/tests/fuzz/fuzz_%.o $(OUR_LIBS)
	$(call say,LINK)$(CC) $(CFLAGS) $(LDFLAGS) $(GS_LDFLAGS) -fsanitize=fuzzer -o $@ $^ \
		$(JANSSON_LIBS) -lgnutls

fuzzers: $(FUZZERS)
endif

# ---- Targets. Root's runs first install what is missing; that costs nothing when all is there.
# Building comes second, so it is a make of its own and not a prerequisite.
# On all processors, unless the caller said how many.
needs = @packaging/deps.sh --if-root build test
jobs = $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$(shell nproc))
build = @$(MAKE) --no-print-directory $(jobs) all tests
build_san = @$(MAKE) --no-print-directory $(jobs) SAN=1 all tests

check: ## all tests that this machine can run [root]
	$(needs)
	$(build)
	$(build_san)
	@packaging/deps.sh --if-root vm node deb
	@tests/vm/choose.sh
	@tests/k8s/cluster.sh --build-beside \
		tests/run harness unit+controller+ctl golden san-unit+san-golden packages runtime \
		vm+node+k8s-main

check-unit: ## unit tests, controller, gpusharectl, the test runner and the linters
	$(needs)
	$(build)
	@tests/run harness unit+controller+ctl

check-golden: ## config.json rewriting against golden folders and random specs
	$(needs)
	$(build)
	@tests/run golden

check-san: ## the unit and golden tests under ASan and UBSan
	$(needs)
	$(build_san)
	@tests/run san-unit+san-golden

check-packages: ## the Debian packages: contents, lintian, the same twice
	@packaging/deps.sh --if-root build deb test
	@tests/run packages

check-runtime: ## real runc, crun, containerd, podman, docker [root]
	$(needs)
	$(build)
	@tests/run runtime

check-deep: ## check, and what is too long for CI: hours [root]
	@packaging/deps.sh --if-root build test fuzz vm node deb
	@$(MAKE) --no-print-directory check
	@COUNT=5000 $(PYTHON) tests/runtime/property.py
	@$(MAKE) --no-print-directory fuzz-runtime SECONDS=600
	@tests/vm/choose.sh $$(awk '!/^#/ && NF { print $$1 }' tests/vm/kernels)
	@tests/k8s/cluster.sh --build
	@VM_LEVEL=deep tests/run k8s vm-deep node-deep calls-deep packages-deep

pictures: ## docs/pictures: the dashboards after a sample day
	@packaging/deps.sh --if-root pictures
	@$(PYTHON) tests/dashboards/draw.py docs/pictures

bench-runtime: ## what a create costs, as METRIC lines [root]
	$(needs)
	$(build)
	@tests/bench/bench-runtime.sh

fuzz-runtime: ## SECONDS=60: libFuzzer over everything that reads outside input
	@packaging/deps.sh --if-root build fuzz
	@$(MAKE) --no-print-directory $(jobs) FUZZ=1 fuzzers
	@tests/fuzz/run.sh $(SECONDS)

# Root is asked for first: nobody should wait for a build to hear of it.
is_root = @[ "$$(id -u)" = 0 ] || { echo "demo: needs root: sudo make $@" >&2; exit 2; }

demo: ## KERNEL=6.1: the whole story, on a node in QEMU [root]
	$(is_root)
	@packaging/deps.sh build vm node
	@KERNEL=$(KERNEL) tests/demo/demo.sh

demo-runtime: ## the part of gpushare-runtime, on a real containerd, step by step [root]
	$(is_root)
	@echo "demo: packages, build, story: one to three minutes the first time, half a one later"
	@packaging/deps.sh build demo
	@echo "demo: building"
	@mkdir -p build
	@$(MAKE) --no-print-directory $(jobs) all programs >build/demo-build.log 2>&1 || \
		{ cat build/demo-build.log; exit 1; }
	@tests/demo/demo-runtime.sh

# KERNEL names one or more of tests/vm/kernels, without it all of them are taken, each at the level
# that CI runs it at. VM_LEVEL is short, full or deep (see tests/vm/run.sh).
vm_needs = @packaging/deps.sh --if-root build vm
check-vm: ## KERNEL=6.1: real kernels in QEMU (default: all, as CI does) [root]
	$(vm_needs)
	@tests/vm/choose.sh $(KERNEL)
	@VM_LEVEL=$(or $(VM_LEVEL),$(if $(KERNEL),full)) tests/run vm

check-node: ## a whole node in QEMU: systemd, containerd, podman, the agent [root]
	@packaging/deps.sh --if-root build vm node
	@VM_LEVEL=$(or $(VM_LEVEL),full) tests/run node

vm-shell: ## KERNEL=6.1: a shell on a kernel with our modules [root]
	$(vm_needs)
	@tests/vm/build.sh $(or $(KERNEL),6.1) build/vm/$(or $(KERNEL),6.1)
	@tests/vm/boot.sh $(or $(KERNEL),6.1) $(VM_OPTIONS) --shell

bench-kmod: ## KERNEL=6.1: what a hooked call and a return cost, as METRIC lines [root]
	$(vm_needs)
	@KERNEL="$(KERNEL)" tests/bench/bench-kmod.sh

bench-controller: ## gpushare-controller among 50,000 pods, as METRIC lines
	$(needs)
	$(build)
	@$(PYTHON) tests/bench/bench-controller.py

bench-agent: ## what the agent costs: a return, an idle node, as METRIC lines [root]
	$(vm_needs)
	@packaging/deps.sh --if-root test
	@tests/bench/bench-agent.sh

# Kubernetes is built first: the first time that takes longer than a test may.
check-k8s: ## a real control plane, kubelet and containerd; lending, on a node in QEMU [root]
	@packaging/deps.sh --if-root build test vm node deb
	$(build)
	@tests/k8s/cluster.sh --build
	@tests/run k8s

k8s-shell: ## a shell in a Kubernetes cluster of one node, where pods share cards [root]
	$(needs)
	$(build)
	@tests/k8s/cluster.sh

.PHONY: programs tests fuzzers check check-packages check-unit check-golden check-san \
	check-runtime check-deep pictures bench-runtime fuzz-runtime demo demo-runtime \
	check-vm check-node vm-shell check-k8s k8s-shell bench-kmod bench-agent bench-controller
