#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The list of public reports in tests/runtime/cases/README.md names tests that there are.

setup() {
	cd "$BATS_TEST_DIRNAME/../.."
}

# missing FILE: prints what a list names and this repository does not have. A line of the list is
# `FILE` NAME, "NAME", ...; the names are the file's until the next one.
missing() {
	/usr/bin/python3 - "$1" <<-'END'
	import glob, os, re, sys

	def files(name):
	    for pattern in (name, "vm/suite/" + name[3:] + ".sh", "runtime/" + name):
	        found = glob.glob("tests/" + pattern)
	        if found and not os.path.isdir(found[0]):
	            return found
	    return []

	for line in open(sys.argv[1]):
	    cells = line.strip().strip("|").split(" | ")
	    if not re.match(r"\| [\w.-]+/[\w.-]+[#:]", line):
	        continue
	    if len(cells) == 4:
	        for case in re.findall(r"`([^`]+)`", cells[2]):
	            if not glob.glob("tests/runtime/cases/" + case):
	                print("no case", case)
	    text = ""
	    for part in re.findall(r'`[^`]+`|"[^"]+"|\b[a-z]+_[a-z0-9_]+', cells[-1]):
	        if re.match(r"`[\w./*-]+(\.\w+|/[\w-]+)`$", part):
	            found = files(part.strip("`"))
	            if not found:
	                print("no file", part)
	            text = "".join(open(f).read() for f in found)
	        elif part[0] != "`" and part.strip('".').strip() not in text:
	            print("not there:", part)
	END
}

@test "every test of the list is there" {
	run missing tests/runtime/cases/README.md
	printf '%s\n' "$output"
	[ "$status" -eq 0 ]
	[ -z "$output" ]
}

@test "one that is not is found" {
	cat >"$BATS_TEST_TMPDIR/list" <<-'END'
	| a/b#1 | fine | `bundle-*` | `unit/test_pods.c` the_api_is_away |
	| a/b#2 | fine | `vm/held` "SIGKILL ends a held caller at once" |
	| a/b#3 | no such case | `bundel-*` | |
	| a/b#4 | no such file | `unit/test_none.c` |
	| a/b#5 | no such name | `unit/test_pods.c` the_api_is_near, `vm/held` "SIGKILL is held" |
	END
	run missing "$BATS_TEST_TMPDIR/list"
	printf '%s\n' "$output"
	[ "$status" -eq 0 ]
	[ "${#lines[@]}" -eq 4 ]
	[ "${lines[0]}" = "no case bundel-*" ]
	[ "${lines[1]}" = 'no file `unit/test_none.c`' ]
	[ "${lines[2]}" = "not there: the_api_is_near" ]
	[ "${lines[3]}" = 'not there: "SIGKILL is held"' ]
}
