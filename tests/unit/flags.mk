# SPDX-License-Identifier: Apache-2.0
# Link flags of single unit tests.

# A mistake in it kills what runs on the machine: what it opens and kills is looked at first.
LDFLAGS_test_cgroup_kill = -Wl,--wrap=open,--wrap=open64,--wrap=kill

# A folder that was opened and then can't be read.
LDFLAGS_test_file = -Wl,--wrap=fdopendir

# What tests/unit/fakekernel.c stands in for.
FAKEKERNEL = -Wl,--wrap=mnl_socket_sendto,--wrap=mnl_socket_bind,--wrap=mnl_socket_setsockopt \
	-Wl,--wrap=recvmsg,--wrap=poll
LDFLAGS_test_klink = $(FAKEKERNEL)
LDFLAGS_test_klink_dump = $(FAKEKERNEL)
LDFLAGS_test_kevent = $(FAKEKERNEL)
LDFLAGS_test_doctor_module = $(FAKEKERNEL)

# A client that takes half a minute.
LDFLAGS_test_http = -Wl,--wrap=uv_now

# The socket alone, without what can be asked for; and one that the kernel does not watch.
LDFLAGS_test_server = -Wl,--wrap=ops_serve,--wrap=ops_ready,--wrap=uv_poll_init

# A node without cards and without a kernel module.
LDFLAGS_test_reconcile = -Wl,--wrap=kernel_link,--wrap=inventory_cards \
	-Wl,--wrap=inventory_catalogue,--wrap=inventory_complete

# What the module is told is written down; every cgroup has the id that the test says.
LDFLAGS_test_apply = -Wl,--wrap=inventory_cards,--wrap=gs_kwho_cgroup \
	-Wl,--wrap=gs_klink_holding_set,--wrap=gs_klink_holding_del,--wrap=gs_klink_withdraw \
	-Wl,--wrap=gs_klink_watch_set,--wrap=gs_klink_watch_del

# Who is looked at.
LDFLAGS_test_strangers = -Wl,--wrap=gs_proc_cgroup

# What is done to a borrower, written down.
LDFLAGS_test_evict = -Wl,--wrap=gs_cgroup_kill,--wrap=gs_cgroup_kill_begin \
	-Wl,--wrap=gs_grant_revoke,--wrap=pods_delete,--wrap=observe_eviction \
	-Wl,--wrap=observe_reaction,--wrap=reconcile_soon,--wrap=back_waits

# What is hooked, written down.
LDFLAGS_test_apply_hooks = -Wl,--wrap=inventory_cards \
	-Wl,--wrap=gs_klink_withdraw,--wrap=gs_klink_holding_del

# A record that comes at the worst moment, and one for which there is no file descriptor left.
LDFLAGS_test_containers_same = -Wl,--wrap=gs_registry_alive,--wrap=gs_registry_read

# The module, the cards and the clock as the test says.
LDFLAGS_test_sample = -Wl,--wrap=kernel_link,--wrap=inventory_cards,--wrap=gs_klink_sample \
	-Wl,--wrap=gs_boottime_ms,--wrap=observe_sample,--wrap=unseen_refused

# Whose pod goes, and how long after the boot.
LDFLAGS_test_lease = -Wl,--wrap=pods_delete_uid,--wrap=gs_boottime_ms

# Hours.
LDFLAGS_test_told = -Wl,--wrap=gs_boottime_ms

# What the kernel tells, without what the agent does then.
LDFLAGS_test_events = -Wl,--wrap=kernel_new,--wrap=reconcile_soon,--wrap=back_begin \
	-Wl,--wrap=back_end,--wrap=server_changed,--wrap=observe_event

# What the kubelet says, and who is ended then.
LDFLAGS_test_orphans = -Wl,--wrap=inventory_cards,--wrap=inventory_catalogue \
	-Wl,--wrap=inventory_complete,--wrap=allocations_ask,--wrap=allocations_asking \
	-Wl,--wrap=allocations_answer,--wrap=allocations_known,--wrap=evict,--wrap=evicting \
	-Wl,--wrap=card_file_names,--wrap=card_file_write,--wrap=card_file_remove
