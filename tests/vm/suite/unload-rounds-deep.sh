# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
# unload-rounds.sh, more often.
# runs: deep
# kernels: 6.1 7.3
# seconds: 7200
export ROUNDS=1000
. /vm/suite/unload-rounds.sh
