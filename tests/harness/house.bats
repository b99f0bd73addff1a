#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tests/lint/house.sh itself: each rule finds what it is for, and good files pass.

setup() {
	house=$BATS_TEST_DIRNAME/../lint/house.sh
	cd "$BATS_TEST_TMPDIR"
	mkdir -p common ctl runtime include/gpushare tests
	printf '%s\n' '/* SPDX-License-Identifier: Apache-2.0 */' '/* Adds. */' \
		'int good(int a,' '	 int b);' 'int also_good(void);' '' \
		'static inline int small(int a)' '{' '	return a;' '}' >common/good.h
	printf '%s\n' '// SPDX-License-Identifier: Apache-2.0' '/* What it is for. */' \
		'#include "common/good.h"' '#include "gpushare/keys.h"' '#include "runtime/x.h"' \
		'int f(void)' '{' '	/*' '	 * why' '	 */' '	return good(1,' \
		'		    2);' '}' >runtime/good.c
}

# finds TEXT: house.sh fails and says so.
finds() {
	run "$house" .
	printf '%s\n' "$output"
	[ "$status" -eq 1 ]
	grep -qF -- "$1" <<<"$output"
}

@test "good files pass" {
	run "$house" .
	printf '%s\n' "$output"
	[ "$status" -eq 0 ]
	[ -z "$output" ]
}

@test "a file without its licence line" {
	printf '#!/bin/bash\n\n\n# SPDX-License-Identifier: Apache-2.0\n' >tests/a.sh
	finds "tests/a.sh:1: no SPDX"
}

@test "white space at the end of a line, no newline at the end of a file" {
	printf '# SPDX-License-Identifier: Apache-2.0\nx \ny' >a.md
	finds "a.md:2: white space"
	finds "a.md: no newline"
}

@test "a marker for unfinished work, but not mktemp's pattern" {
	printf '%s\n' '# SPDX-License-Identifier: Apache-2.0' 'mktemp /tmp/a.XX''XXXX' \
		'# TO''DO later' >a.md
	finds "a.md:3: marker"
	[[ $output != *a.md:2* ]]
}

@test "the name of a package host, the path of somebody's machine" {
	printf '# SPDX-License-Identifier: Apache-2.0\nhttp://deb.deb''ian.org/x\n/wo''rk/x\n' >a.md
	finds "a.md:2: name of a package host"
	finds "a.md:3: path of"
}

@test "more than 100 columns, tabs and letters counted as they are seen" {
	{
		echo '# SPDX-License-Identifier: Apache-2.0'
		printf '\t%092d\n\t%093d\n' 0 0
		printf 'é%099d\n' 0
	} >tests/a.sh
	finds "tests/a.sh:3: more than 100"
	[[ $output != *a.sh:2* && $output != *a.sh:4* ]]
}

@test "more than 900 lines" {
	{
		echo '# SPDX-License-Identifier: Apache-2.0'
		yes x | head -900
	} >tests/a.sh
	finds "tests/a.sh: 901 lines"
}

@test "spaces for indentation and // comments in C" {
	printf '%s\n' '    int x;' '	x = 1; /* ok */' '	// no' >>runtime/good.c
	finds "runtime/good.c:14: indented with spaces"
	finds "runtime/good.c:16: // comment"
}

@test "a program that includes another program's header, or common that includes a program's" {
	echo '#include "runtime/x.h"' >>ctl/a.c
	echo '#include "ctl/x.h"' >>common/good.h
	echo '#include "common/x.h"' >include/gpushare/a.h
	mkdir agent kube
	echo '#include "kube/x.h"' | tee agent/ok.c >>ctl/a.c
	echo '#include "agent/x.h"' >kube/a.c
	echo '#include "../runtime/x.h"' >>runtime/good.c
	finds "ctl/a.c:1: ctl must not include runtime/x.h"
	finds "common/good.h:11: common must not include ctl/x.h"
	finds "include/gpushare/a.h:1: include must not include common/x.h"
	finds "ctl/a.c:2: ctl must not include kube/x.h"
	finds "kube/a.c:1: kube must not include agent/x.h"
	[[ $output != *"agent must not"* ]]
	finds "runtime/good.c:14: include by a relative path"
}

@test "a function in a header without a comment" {
	printf '\n%s\n' 'int bad(void);' >>common/good.h
	printf '\n%s\n' '__attribute__((format(printf, 1, 2))) int worse(const char *f, ...);' \
		>>common/good.h
	finds "common/good.h:12: function without a comment"
	finds "common/good.h:14: function without a comment"
}

@test "in the kernel module: a kernel told by its version, a symbol told by its name" {
	mkdir kmod
	printf '%s\n' '// SPDX-License-Identifier: GPL-2.0-only' \
		'#if LINUX_VERSION_CODE >= 0x60400' '#ifdef RHEL_RELEASE_CODE' \
		'f = kallsyms_lookup_name("nvidia_ioctl");' 'r = register_kretprobe(&probe);' \
		'/* Kernel versions, register_netdevice, kallsyms_show_value */' >kmod/a.c
	cp kmod/a.c runtime/a.c
	finds "kmod/a.c:2: of a kernel's version"
	finds "kmod/a.c:3: of a kernel's version"
	finds "kmod/a.c:4: of a symbol's name"
	finds "kmod/a.c:5: of a symbol's name"
	[[ $output != *kmod/a.c:6* && $output != *runtime/a.c* ]]
}

@test "a reason for a skip without its why" {
	printf '# SPDX-License-Identifier: Apache-2.0\n\n# why\nno kvm*\n\nno card\n' \
		>tests/skips-allowed
	finds "tests/skips-allowed:6: a pattern without"
	[[ $output != *skips-allowed:4* ]]
}

@test "test inputs are left alone" {
	mkdir -p tests/runtime/cases/x
	printf 'x \t' >tests/runtime/cases/x/config.json
	run "$house" .
	[ "$status" -eq 0 ]
}
