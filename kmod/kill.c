// SPDX-License-Identifier: GPL-2.0-only
/* Killing borrowers, by one work item of high priority, until nobody is left of them. */
#include <linux/sched/jobctl.h>
#include <linux/sched/signal.h>

#include "event.h"
#include "holding.h"
#include "kill.h"
#include "watch.h"

#define KILL_AGAIN_MS 20u
#define KILL_AGAIN_MAX_MS 1000u

static void act(struct work_struct *work);
static DECLARE_DELAYED_WORK(act_work, act);

/* Is the task one of the watched container's? RCU. */
static bool in_watch(struct task_struct *task, const struct gs_watch *watch)
{
	const struct pid *pid = task_pid(task);
	struct css_set *css;
	struct cgroup *cgrp;

	if (watch->by == GS_KEY_PIDNS)
		return pid && pid->level >= watch->ns->level &&
		       pid->numbers[watch->ns->level].ns == watch->ns;
	css = rcu_dereference_raw(task->cgroups);
	cgrp = css->dfl_cgrp;
#if GS_CGROUP_V1
	if (watch->by == GS_KEY_CGROUP_V1)
		cgrp = rcu_dereference_raw(css->subsys[devices_cgrp_id])->cgroup;
#endif
	for (; cgrp; cgrp = cgroup_parent(cgrp))
		if (cgroup_id(cgrp) == watch->key)
			return true;
	return false;
}

/*
 * A process that is traced may stop once more on its way out (PTRACE_EVENT_EXIT). Its SIGKILL is
 * taken by then, and later ones are dropped: two that trace one another can't be killed at all, and
 * a borrower could keep its memory for ever. So what SIGKILL does to every other stop
 * (signal_wake_up_state()) is done to this one: it ends. Not while its tracer is looking at it;
 * we come again. RCU.
 */
static void end_exit_stop(struct task_struct *task)
{
	wait_queue_entry_t wake = { .private = task };
	struct sighand_struct *sighand = rcu_dereference(task->sighand);
	unsigned long flags;

	if (!READ_ONCE(task->ptrace) || !sighand)
		return;
	spin_lock_irqsave(&sighand->siglock, flags);
	/* (An exec may have given it another.) */
	if (sighand == rcu_access_pointer(task->sighand) && task->ptrace &&
	    (task->signal->flags & SIGNAL_GROUP_EXIT)) {
#ifdef JOBCTL_TRACED
		if (!(task->jobctl & JOBCTL_PTRACE_FROZEN)) {
			task->jobctl &= ~JOBCTL_TRACED;
			default_wake_function(&wake, TASK_WAKEKILL | __TASK_TRACED, 0, NULL);
		}
#else
		/* A tracer that looks takes TASK_WAKEKILL out of the state. */
		default_wake_function(&wake, TASK_WAKEKILL, 0, NULL);
#endif
	}
	spin_unlock_irqrestore(&sighand->siglock, flags);
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

	if (watch->by == GS_KEY_PIDNS && !watch->killed) {
		kill_pid(watch->init, SIGKILL, 1);
		return true;
	}
	rcu_read_lock();
	for_each_process_thread(process, thread) {
		/* Whatever cgroup we were told: never the host's own first process. */
		if (thread->exit_state || is_global_init(thread) || (thread->flags & PF_KTHREAD) ||
		    !in_watch(thread, watch))
			continue;
		kill_pid(task_tgid(thread), SIGKILL, 1);
		end_exit_stop(thread);
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
		if (!there) {
			watch->gone = true;
			gs_holding_hasten(watch);
		}
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

/* Killing is urgent. Telling takes long, and would hold up those who are dying: it comes after. */
static void act(struct work_struct *work)
{
	kill_all();
	gs_tell();
}

void gs_act(void)
{
	mod_delayed_work(gs_wq, &act_work, 0);
}

void gs_act_exit(void)
{
	flush_delayed_work(&act_work);
	gs_tell_exit();
}
