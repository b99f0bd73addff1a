// SPDX-License-Identifier: GPL-2.0-only
/* Telling user space, and killing. */
#include <linux/math64.h>
#include <linux/sched/signal.h>

#include "event.h"
#include "netlink.h"
#include "watch.h"

#define QUEUE 256 /* events; a power of two */
#define KILL_AGAIN_MS 20u
#define KILL_AGAIN_MAX_MS 1000u

struct gs_totals gs_totals;
u64 gs_event_seq;

static struct gs_notice queue[QUEUE];
static unsigned int queue_head, queue_tail; /* under gs_lock: filled at head, sent from tail */
static struct gs_notice overflow;
static bool gap; /* under gs_lock: something was lost, and no later event has shown it */

/*
 * One work item for each, so that neither runs twice at once: events keep their order. Killing
 * comes first and is urgent. Telling takes long, and would hold up those who are dying, so it has a
 * queue of ordinary priority.
 */
static void act(struct work_struct *work);
static DECLARE_DELAYED_WORK(act_work, act);
static void send(struct work_struct *work);
static DECLARE_DELAYED_WORK(send_work, send);

static void lose(void)
{
	gs_totals.events_lost++;
	gap = true;
}

struct gs_notice *gs_event_new(enum gs_event event)
{
	struct gs_notice *notice = &overflow;

	lockdep_assert_held(&gs_lock);
	if (queue_head - queue_tail < QUEUE)
		notice = &queue[queue_head++ % QUEUE];
	else
		lose();
	memset(notice, 0, sizeof(*notice));
	notice->event = event;
	notice->seq = ++gs_event_seq;
	notice->time = gs_clock();
	return notice;
}

void gs_notice_caller(struct gs_notice *notice, const struct gs_watch *watch,
		      const struct gs_call *call)
{
	struct pid_namespace *ns = task_active_pid_ns(current);

	strscpy(notice->watch, watch->name, sizeof(notice->watch));
	notice->by_call = true;
	notice->pid = task_tgid_nr(current);
	notice->start_time = div_u64(current->group_leader->start_boottime, NSEC_PER_SEC / USER_HZ);
	notice->pidns = ns ? ns->ns.inum : 0;
	notice->dev = call->inode->i_rdev;
	notice->kind = call->kind;
}

/* Is the task one of the watched container's? RCU. */
static bool in_watch(struct task_struct *task, const struct gs_watch *watch)
{
	const struct pid *pid = task_pid(task);
	struct css_set *css;
	struct cgroup *cgrp;

	if (watch->by == GS_BY_PIDNS)
		return pid && pid->level >= watch->ns->level &&
		       pid->numbers[watch->ns->level].ns == watch->ns;
	css = rcu_dereference_raw(task->cgroups);
	cgrp = css->dfl_cgrp;
#if GS_CGROUP_V1
	if (watch->by == GS_BY_CGROUP_V1)
		cgrp = rcu_dereference_raw(css->subsys[devices_cgrp_id])->cgroup;
#endif
	for (; cgrp; cgrp = cgroup_parent(cgrp))
		if (cgroup_id(cgrp) == watch->key)
			return true;
	return false;
}

/*
 * Kills what is in a watch. A PID namespace dies with its first process, which is quick; but a
 * tracer of its own can stop that one on its way out. In a cgroup a process may fork while we go
 * through the list. So we come again until nobody is left, and then look at every thread, for a
 * process may have let its first one exit.
 * Returns whether somebody may be there still.
 */
static bool kill_watch(const struct gs_watch *watch)
{
	struct task_struct *process, *thread;
	bool any = false;

	if (watch->by == GS_BY_PIDNS && !watch->killed) {
		kill_pid(watch->init, SIGKILL, 1);
		return true;
	}
	rcu_read_lock();
	for_each_process_thread(process, thread) {
		if (thread->exit_state || !in_watch(thread, watch))
			continue;
		kill_pid(task_tgid(thread), SIGKILL, 1);
		any = true;
	}
	rcu_read_unlock();
	return any;
}

/* One watch that is to be killed, with a reference; NULL if there is none. */
static struct gs_watch *next_to_kill(void)
{
	struct gs_watch *watch;

	list_for_each_entry(watch, &gs_watches, link) {
		if (!watch->kill)
			continue;
		watch->kill = false;
		kref_get(&watch->ref);
		return watch;
	}
	return NULL;
}

static void kill_all(void)
{
	/* Who is stuck in the driver is not looked for fifty times a second for ever. */
	static unsigned int pause_ms;
	bool again = false, there;
	struct gs_watch *watch;

	spin_lock(&gs_lock);
	while ((watch = next_to_kill())) {
		spin_unlock(&gs_lock);
		there = kill_watch(watch);
		spin_lock(&gs_lock);
		if (!watch->killed) {
			gs_totals.kills++;
			pause_ms = KILL_AGAIN_MS / 2;
		}
		watch->killed = true;
		watch->again = there;
		spin_unlock(&gs_lock);
		gs_watch_put(watch);
		spin_lock(&gs_lock);
	}
	list_for_each_entry(watch, &gs_watches, link) {
		watch->kill |= watch->again;
		again |= watch->again;
		watch->again = false;
	}
	if (again && !gs_going) {
		pause_ms = min(2 * pause_ms, KILL_AGAIN_MAX_MS);
		queue_delayed_work(gs_wq, &act_work, msecs_to_jiffies(pause_ms));
	}
	spin_unlock(&gs_lock);
}

static void act(struct work_struct *work)
{
	kill_all();
	mod_delayed_work(gs_tell_wq, &send_work, 0);
}

static void send(struct work_struct *work)
{
	static struct gs_notice notice; /* too large for the stack */
	bool some;

	for (;;) {
		spin_lock(&gs_lock);
		/* A gap shows by the next event's number: perhaps there will be none for long. */
		if (queue_tail == queue_head && gap) {
			gap = false;
			gs_event_new(GS_EV_LOST);
		}
		some = queue_tail != queue_head;
		if (some)
			notice = queue[queue_tail++ % QUEUE];
		spin_unlock(&gs_lock);
		if (!some)
			break;
		if (gs_netlink_send(&notice)) {
			spin_lock(&gs_lock);
			lose();
			/* No memory: later. */
			if (!gs_going)
				queue_delayed_work(gs_tell_wq, &send_work, HZ / 10);
			spin_unlock(&gs_lock);
			break;
		}
	}
}

void gs_act(void)
{
	mod_delayed_work(gs_wq, &act_work, 0);
}

void gs_act_exit(void)
{
	flush_delayed_work(&act_work);
	flush_delayed_work(&send_work);
}
