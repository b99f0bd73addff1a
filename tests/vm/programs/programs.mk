# SPDX-License-Identifier: Apache-2.0
# The programs that tests run inside a guest, for any architecture: static, so that the guest needs
# nothing. Called in the root of the repository:
#
#	make -f tests/vm/programs/programs.mk OUT=DIR [CC=aarch64-linux-gnu-gcc]
#
# tests/vm/programs/X.c becomes DIR/X, linked with what it uses of common/ and with mnl/ in place
# of libmnl. What uses jansson can't be linked so.

CC ?= gcc
OUT ?= build/vm/programs
O := $(OUT)/obj

SRCS := $(wildcard tests/vm/programs/*.c)
PROGRAMS := $(patsubst tests/vm/programs/%.c,$(OUT)/%,$(SRCS))
objs = $(patsubst %.c,$(O)/%.o,$(1))
LIB_OBJS := $(call objs,$(wildcard common/*.c) tests/vm/programs/mnl/mnl.c)

# Headers of libraries are the same for every architecture; the compiler's own come first.
FLAGS := -std=gnu11 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -O2 -g -Wall -Wextra -Werror \
	-Iinclude -I. -idirafter /usr/include -ffunction-sections -fdata-sections \
	-DGPUSHARE_VERSION='"$(file <VERSION)"' -DGPUSHARE_LIBEXECDIR='"/usr/libexec/gpushare"' \
	-DGPUSHARE_DATADIR='"/usr/share/gpushare"' -DGPUSHARE_SYSCONFDIR='"/etc"'

all: $(PROGRAMS)

$(OUT)/%: $(O)/tests/vm/programs/%.o $(O)/libguest.a
	$(CC) -static -pthread -Wl,--gc-sections -o $@ $^

$(O)/libguest.a: $(LIB_OBJS)
	rm -f $@ && $(AR) rcs $@ $^

$(O)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(FLAGS) -MMD -MP -c -o $@ $<

.PHONY: all
.DELETE_ON_ERROR:
.SECONDARY:
MAKEFLAGS += --no-builtin-rules
.SUFFIXES:

-include $(wildcard $(O)/common/*.d $(O)/tests/vm/programs/*.d $(O)/tests/vm/programs/mnl/*.d)
