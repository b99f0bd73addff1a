# SPDX-License-Identifier: Apache-2.0
# Loaded by the tests of gpusharectl: a configuration, a registry and grants of their own.

setup() {
	umask 077
	cd "$BATS_TEST_DIRNAME/../.." || return 1
	dir=$BATS_TEST_TMPDIR
	bin=$PWD/${B:-build}
	# shellcheck disable=SC2034 # for the tests
	run_dir=$dir/run lib_dir=$dir/lib
	export GPUSHARE_CONFIG=$dir/config.json
	config '{}'
}

# config JSON: writes the configuration; its keys win over those of the tests' own folders.
config() {
	/usr/bin/python3 -c '
import json, os, sys
d = sys.argv[1]
own = {"run_dir": d + "/run", "lib_dir": d + "/lib", "vendor_dirs": [os.path.abspath("vendors")],
       "next": ["/bin/true"], "hook": "/bin/true"}
print(json.dumps({**own, **json.loads(sys.argv[2])}))' "$dir" "$1" >"$GPUSHARE_CONFIG"
}

# ctl ARGUMENT...: runs it with stdout in $output and stderr in $said.
ctl() {
	status=0
	output=$("$bin/gpusharectl" "$@" 2>"$dir/said") || status=$?
	said=$(<"$dir/said")
}

# got STATUS [STDOUT-PATTERN [STDERR-PATTERN]]: regular expressions; an empty one means no output.
got() {
	local ok=1
	((status == $1)) || ok=
	(($# < 2)) || one_matches "$output" "$2" || ok=
	(($# < 3)) || one_matches "$said" "$3" || ok=
	[[ $ok ]] || {
		printf 'status %s\n--- stdout\n%s\n--- stderr\n%s\n' "$status" "$output" "$said"
		return 1
	}
}

one_matches() {
	if [[ -z $2 ]]; then
		[[ -z $1 ]]
	else
		[[ $1 =~ $2 ]]
	fi
}

# json EXPRESSION: prints the expression over d, the JSON in $output.
json() {
	/usr/bin/python3 -c 'import json, sys; d = json.load(sys.stdin); print(eval(sys.argv[1]))' \
		"$1" <<<"$output"
}
