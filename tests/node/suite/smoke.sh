# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# The node itself: systemd, cgroups, modules, and containers of every kind that use a card.
# runs: short
# seconds: 600
source /vm/suite/lib.sh
source /vm/suite/story.inc

is "the kernel is the pinned one" "$(uname -r)" "$(</vm/release)"
is "systemd is up and no unit has failed" "$(systemctl is-system-running)" running
is "cgroups are version 2" "$(node_cgroups)" v2
for module in fakegpu gpushare; do
	check "$module is loaded" test -d /sys/module/$module
done
check "gpusharectl speaks to the module" gpusharectl kmod status

containers_story

plan
