#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Is the agent's filter as small as its suites allow? Runs them, counts the system calls that the
# agent makes in there, and prints their TAP and its own: a rule of agent/sandbox_rules.c that no
# suite needs is a failure, unless it stands there among those with a reason. So is a call that the
# filter refused.
#
#	agent-calls.sh            an hour or two
#	agent-calls.sh FILE...    of runs there were: what tests/vm/run.sh, tests/node/run.sh and
#	                          tests/k8s/vm.sh printed with AGENT_CALLS=1 in their environment
set -euo pipefail
cd "$(dirname "$0")/../.."

if [[ ${1:-} == -* ]]; then
	sed -n '/^#\t/s/^#//p' "$0" >&2
	exit 2
fi
make -s WERROR=1 build/agent-rules >&2
rc=0
if (($# == 0)); then
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	export AGENT_CALLS=1
	# With the module; as a unit, with cgroups of both versions; at a real API server.
	VM_LEVEL=full tests/vm/run.sh 6.1+agent | tee "$work/vm" || rc=1
	tests/node/run.sh 6.1 unit agent cgroup-v1-agent | tee "$work/node" || rc=1
	tests/k8s/vm.sh 6.1 cluster-lend | tee "$work/k8s" || rc=1
	set -- "$work"/*
fi
cat "$@" | build/agent-rules || rc=1
exit "$rc"
