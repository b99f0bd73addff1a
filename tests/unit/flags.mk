# SPDX-License-Identifier: Apache-2.0
# Link flags of single unit tests.

# A mistake in it kills what runs on the machine: what it opens and kills is looked at first.
LDFLAGS_test_cgroup_kill = -Wl,--wrap=open,--wrap=open64,--wrap=kill

# A folder that was opened and then can't be read.
LDFLAGS_test_file = -Wl,--wrap=fdopendir
