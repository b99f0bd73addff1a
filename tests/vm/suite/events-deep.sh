# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
# The same with many more events.
# runs: deep
# kernels: 6.1
# seconds: 3600
EVENTS=200000
export EVENTS
. /vm/suite/events.sh
