// SPDX-License-Identifier: GPL-2.0-only
/*
 * gpushare.ko: sees every touch of a card's driver by the containers that it is told to watch, and
 * holds the one who comes back to a card that is lent, until its borrowers are gone.
 */
#include <linux/init.h>
#include <linux/module.h>

#include "agent.h"
#include "event.h"
#include "file.h"
#include "holding.h"
#include "hook.h"
#include "kill.h"
#include "netlink.h"
#include "node.h"
#include "watch.h"

static unsigned int lend_after_ms = 30000;
module_param(lend_after_ms, uint, 0644);
MODULE_PARM_DESC(lend_after_ms, "milliseconds without a touch after which a new holding is idle "
				"(default 30000)");

static unsigned int hold_max_ms = 30000;
module_param(hold_max_ms, uint, 0644);
MODULE_PARM_DESC(hold_max_ms, "milliseconds after a return at which held callers go on, whatever "
			      "the borrowers do (default 30000)");

static unsigned int kernel_hold_max_ms = 3000;
module_param(kernel_hold_max_ms, uint, 0644);
MODULE_PARM_DESC(kernel_hold_max_ms,
		 "milliseconds after a return at which a system call goes on that uses a mapping "
		 "of the card; it may have locks that others need (default 3000)");

static unsigned int settle_ms = 500;
module_param(settle_ms, uint, 0644);
MODULE_PARM_DESC(settle_ms, "milliseconds from the borrowers' last close to the release, when no "
			    "agent looks at the card's memory (default 500)");

DEFINE_MUTEX(gs_hooks);
DEFINE_MUTEX(gs_config);
unsigned int gs_config_generation = 1;
DEFINE_SPINLOCK(gs_lock);
bool gs_going;
unsigned long gs_special;
struct workqueue_struct *gs_wq;
struct workqueue_struct *gs_clock_wq;
struct workqueue_struct *gs_tell_wq;

u32 gs_default_lend_after(void)
{
	return clamp(READ_ONCE(lend_after_ms), 1u, GS_LEND_AFTER_MAX_MS);
}

u32 gs_default_hold_max(void)
{
	return clamp(READ_ONCE(hold_max_ms), 1u, GS_HOLD_MAX_MAX_MS);
}

u32 gs_kernel_hold_max(void)
{
	return min(READ_ONCE(kernel_hold_max_ms), GS_HOLD_MAX_MAX_MS);
}

u32 gs_default_settle(void)
{
	return min(READ_ONCE(settle_ms), GS_SETTLE_MAX_MS);
}

static const struct {
	u32 bit;
	const char *name;
} features[] = {
	{ GS_F_HOOK_BY_ADDRESS, "hooks by address" },
	{ GS_F_HOOK_NO_REGS, "hooks without a full register set" },
	{ GS_F_HOOK_PERMANENT, "hooks that ftrace_enabled can't switch off" },
	{ GS_F_IO_WORKER_NS, "io_uring workers that belong to their container" },
	{ GS_F_MCAST_CAP, "a multicast group that the kernel guards" },
	{ GS_F_CGROUP_V1, "the devices hierarchy of cgroup v1" },
	{ GS_F_FREEZABLE, "killable waits that freeze" },
	{ GS_F_IOCTL_COMPAT, "32-bit callers" },
};

u32 gs_features(void)
{
	u32 have = gs_hook_features() | GS_F_REVOKE | GS_F_SAMPLE;

	if (GS_IO_WORKER_NS)
		have |= GS_F_IO_WORKER_NS;
	if (GS_CGROUP_V1)
		have |= GS_F_CGROUP_V1;
	if (GS_FREEZABLE)
		have |= GS_F_FREEZABLE;
	if (IS_ENABLED(CONFIG_COMPAT))
		have |= GS_F_IOCTL_COMPAT;
#ifdef GS_HAVE_MCAST_FLAGS
	have |= GS_F_MCAST_CAP;
#endif
	return have;
}

void gs_hooks_lock(void)
{
	while (!mutex_trylock(&gs_hooks))
		schedule_timeout_idle(1);
}

/* Also called when a module's init has failed: what it hooked is gone as well then. */
static int module_event(struct notifier_block *nb, unsigned long event, void *data)
{
	if (event != MODULE_STATE_GOING || data == THIS_MODULE)
		return NOTIFY_DONE;
	/* A stranger does not wait for what we do. */
	if (!gs_hooks_in(data))
		return NOTIFY_DONE;
	gs_hooks_lock();
	mutex_lock(&gs_config);
	gs_node_module_going(data);
	mutex_unlock(&gs_config);
	mutex_unlock(&gs_hooks);
	return NOTIFY_DONE;
}

static struct notifier_block module_notifier = { .notifier_call = module_event };

static void drop_queues(void)
{
	if (gs_tell_wq)
		destroy_workqueue(gs_tell_wq);
	if (gs_clock_wq)
		destroy_workqueue(gs_clock_wq);
	if (gs_wq)
		destroy_workqueue(gs_wq);
}

static int __init make_queues(void)
{
	gs_wq = alloc_workqueue("gpushare", WQ_HIGHPRI | WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	gs_clock_wq = alloc_workqueue("gpushare_clock", WQ_HIGHPRI | WQ_UNBOUND, 0);
	gs_tell_wq = alloc_workqueue("gpushare_tell", WQ_UNBOUND, 0);
	if (gs_wq && gs_clock_wq && gs_tell_wq)
		return 0;
	drop_queues();
	return -ENOMEM;
}

static int __init gs_init(void)
{
	unsigned int i;
	u32 have;
	int ret;

	gs_hook_init();
	have = gs_features();
	ret = make_queues();
	if (ret)
		return ret;
	ret = register_module_notifier(&module_notifier);
	if (ret)
		goto err_queues;
	ret = gs_agent_init();
	if (ret)
		goto err_notifier;
	ret = gs_netlink_init();
	if (ret)
		goto err_agent;
	for (i = 0; i < ARRAY_SIZE(features); i++)
		if (!(have & features[i].bit))
			pr_info("this kernel lacks %s\n", features[i].name);
	return 0;

err_agent:
	gs_agent_exit();
err_notifier:
	unregister_module_notifier(&module_notifier);
err_queues:
	drop_queues();
	return ret;
}

/*
 * In this order: no new holds, all who wait go on, borrowers end (nobody would guard their lend),
 * the hooks go, the few who are in a wrapper leave it, and only then what they used is freed.
 */
static void __exit gs_exit(void)
{
	gs_hooks_lock();
	mutex_lock(&gs_config);
	WRITE_ONCE(gs_going, true);
	gs_holding_wake_all();
	gs_node_exit();
	mutex_unlock(&gs_config);
	mutex_unlock(&gs_hooks);
	gs_hook_exit();
	gs_agent_exit();
	unregister_module_notifier(&module_notifier);
	gs_act_exit();
	gs_file_exit();
	gs_watch_exit();
	gs_holding_exit();
	/* A clock that was still running may have had something to tell. */
	gs_act_exit();
	gs_netlink_exit();
	/* A last heartbeat may have asked for it. */
	gs_nodes_check_end();
	rcu_barrier();
	drop_queues();
}

module_init(gs_init);
module_exit(gs_exit);
MODULE_DESCRIPTION("Lends idle accelerators: counts calls of their drivers by container, holds a "
		   "returning user until the borrowers are gone");
MODULE_VERSION(GPUSHARE_VERSION);
MODULE_LICENSE("GPL");
