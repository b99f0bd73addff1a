# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
# Spot containers of every kind, many times.
# runs: deep
# kernels: 5.10 6.1 6.12 7.3
# boot: --agent --mem 768
# seconds: 14400
ROUNDS=${ROUNDS:-20}
. /vm/suite/agent-borrowers.sh
