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
 * Without @kill it only looks, for somebody else kills it.
 * Returns whether somebody may be there still.
 */
static bool end_watch(const struct gs_watch *watch, bool kill)
{
	struct task_struct *process, *thread, *last = NULL;
	bool any = false;

	if (kill && watch->by == GS_KEY_PIDNS && !watch->killed) {
		kill_pid(watch->init, SIGKILL, 1);
		return true;
	}
	rcu_read_lock();
	for_each_process_thread(process, thread) {
		/* Whatever cgroup we were told: never the host's own first process. */
		if (thread->exit_state || is_global_init(thread) || (thread->flags & PF_KTHREAD) ||
		    !gs_watch_has(watch, thread))
			continue;
		any = true;
		if (!kill)
			break;
		/* Once: while a process dumps core, each one goes through all of its threads. */
		if (process != last)
			kill_pid(task_tgid(thread), SIGKILL, 1);
		last = process;
		end_exit_stop(thread);
	}
	rcu_read_unlock();
	return any;
}

/* One watch that is to be killed, or looked after, with a reference; NULL if there is none. */
static struct gs_watch *next_to_end(bool *ret_kill)
{
	struct gs_watch *watch;

	list_for_each_entry(watch, &gs_watches, link) {
		if (!watch->kill && !watch->look)
			continue;
		*ret_kill = watch->kill;
		watch->kill = watch->look = false;
		kref_get(&watch->ref);
		return watch;
	}
	return NULL;
}

static void kill_all(void)
{
	/* Who is stuck in the driver is not looked for fifty times a second for ever. */
	static unsigned int pause_ms;
	bool again = false, kill, there;
	struct gs_watch *watch;
	struct gs_link *link;

	spin_lock(&gs_lock);
	while ((watch = next_to_end(&kill))) {
		spin_unlock(&gs_lock);
		there = end_watch(watch, kill);
		spin_lock(&gs_lock);
		if (!watch->looked || (kill && !watch->killed))
			pause_ms = KILL_AGAIN_MS / 2;
		watch->looked = true;
		if (kill && !watch->killed)
			gs_totals.kills++;
		watch->killed |= kill;
		/* Who has no files is waited for by nobody. */
		watch->again = there && (kill || watch->files);
		if (!there) {
			watch->gone = true;
			list_for_each_entry(link, &watch->links, of_watch)
				gs_holding_hasten(link->holding);
		}
		spin_unlock(&gs_lock);
		gs_watch_put(watch);
		spin_lock(&gs_lock);
	}
	list_for_each_entry(watch, &gs_watches, link) {
		watch->kill |= watch->again && watch->killed;
		watch->look |= watch->again && !watch->killed;
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
