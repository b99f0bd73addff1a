# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What agent.sh does, fifty times with each runtime: ROUNDS names another number.
# runs: deep
# seconds: 9000
export ROUNDS=${ROUNDS:-50}
source /vm/suite/agent.sh
