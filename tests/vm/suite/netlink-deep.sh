# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
# The same with a million wrong requests, and as many watches as there may be.
# runs: deep
# seconds: 7200
FUZZ=1000000 SEED=$(date +%s) HOOKS=100 WATCHES=yes
export FUZZ SEED HOOKS WATCHES
. /vm/suite/netlink.sh
