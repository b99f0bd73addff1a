# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
# The agent killed in every state, and at many instants.
# runs: deep
# kernels: 5.10 6.1 6.12 7.3
# boot: --agent --mem 768
# seconds: 7200
ROUNDS=${ROUNDS:-500}
. /vm/suite/agent-kills.sh
