# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
# The same with a million wrong requests, and as many watches as there may be.
# runs: deep
# kernels: 6.1 debug
# seconds: 7200
# A kernel that looks for bugs takes ten times as long.
if [ "$(cat /vm/slow 2>/dev/null || echo 1)" = 1 ]; then
	FUZZ=1000000
else
	FUZZ=100000
fi
SEED=$(date +%s) HOOKS=100 WATCHES=yes
export FUZZ SEED HOOKS WATCHES
. /vm/suite/netlink.sh
