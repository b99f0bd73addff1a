// SPDX-License-Identifier: GPL-2.0-only
/* Telling user space: a queue of events, and one work item that sends them. */
#include <linux/math64.h>

#include "event.h"
#include "netlink.h"

#define QUEUE 256 /* events; a power of two */

struct gs_totals gs_totals;
u64 gs_event_seq;

static struct gs_notice queue[QUEUE];
static unsigned int queue_head, queue_tail; /* under gs_lock: filled at head, sent from tail */
static struct gs_notice overflow;
static bool gap; /* under gs_lock: something was lost, and no later event has shown it */

/* One work item, so that it never runs twice at once: events keep their order. */
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
	struct task_struct *task = call->task ?: current;
	struct pid_namespace *ns = task_active_pid_ns(task);

	strscpy(notice->watch, watch->name, sizeof(notice->watch));
	notice->by_call = true;
	notice->pid = task_tgid_nr(task);
	notice->start_time = div_u64(task->group_leader->start_boottime, NSEC_PER_SEC / USER_HZ);
	notice->pidns = ns ? ns->ns.inum : 0;
	notice->dev = call->inode->i_rdev;
	notice->kind = call->kind;
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

void gs_tell(void)
{
	mod_delayed_work(gs_tell_wq, &send_work, 0);
}

void gs_tell_exit(void)
{
	flush_delayed_work(&send_work);
}
