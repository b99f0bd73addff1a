# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# A node with cgroups of version 1, as those with older kernels have.
# kernels: 5.10 6.1
# boot: --cgroup v1
# seconds: 600
source /vm/suite/lib.sh
source /vm/suite/story.inc

is "systemd is up and no unit has failed" "$(systemctl is-system-running)" running
is "cgroups are version 1" "$(node_cgroups)" v1
containers_story

plan
