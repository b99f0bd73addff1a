// SPDX-License-Identifier: GPL-2.0-only
/*
 * Is the agent alive? Its heartbeat comes each second. It counts as lost three seconds after the
 * last one, and at once when its socket is closed: a killed process says so by that.
 */
#include <linux/netlink.h>
#include <linux/notifier.h>

#include "agent.h"
#include "event.h"
#include "holding.h"
#include "kill.h"

/* Under gs_lock. */
static u32 agent_port;
static unsigned long last_beat;
static unsigned int n_commands; /* of the agent, that it waits for */

static void look(struct work_struct *work);
static DECLARE_DELAYED_WORK(look_work, look);

bool gs_agent_alive(void)
{
	return READ_ONCE(agent_port) != 0;
}

u32 gs_agent_port(void)
{
	return READ_ONCE(agent_port);
}

u32 gs_agent_age_ms(void)
{
	return jiffies_to_msecs(jiffies - READ_ONCE(last_beat));
}

static void set_port(u32 port)
{
	struct gs_notice *notice;

	WRITE_ONCE(agent_port, port);
	n_commands = 0;
	notice = gs_event_new(GS_EV_AGENT);
	notice->alive = port != 0;
	if (!port)
		gs_holding_agent_lost();
	gs_act();
}

static void look(struct work_struct *work)
{
	unsigned long until;

	spin_lock(&gs_lock);
	if (n_commands)
		last_beat = jiffies;
	until = last_beat + msecs_to_jiffies(GS_AGENT_LOST_MS);
	if (agent_port && time_after_eq(jiffies, until))
		set_port(0);
	else if (agent_port && !gs_going)
		queue_delayed_work(gs_wq, &look_work, until - jiffies);
	spin_unlock(&gs_lock);
}

int gs_agent_beat(u32 port, struct netlink_ext_ack *extack)
{
	int ret = 0;

	spin_lock(&gs_lock);
	if (gs_going) {
		gs_refuse(extack, "the module is being unloaded");
		ret = -ESHUTDOWN;
	} else if (agent_port && agent_port != port) {
		gs_refuse(extack, "another process is the agent");
		ret = -EBUSY;
	} else {
		WRITE_ONCE(last_beat, jiffies);
		if (!agent_port)
			set_port(port);
		queue_delayed_work(gs_wq, &look_work, msecs_to_jiffies(GS_AGENT_LOST_MS));
	}
	spin_unlock(&gs_lock);
	return ret;
}

void gs_agent_busy(u32 port, bool busy)
{
	spin_lock(&gs_lock);
	if (agent_port == port) {
		if (busy)
			n_commands++;
		else if (n_commands)
			n_commands--;
		WRITE_ONCE(last_beat, jiffies);
	}
	spin_unlock(&gs_lock);
}

static int socket_closed(struct notifier_block *nb, unsigned long event, void *data)
{
	struct netlink_notify *notify = data;

	if (event != NETLINK_URELEASE || notify->protocol != NETLINK_GENERIC ||
	    notify->net != &init_net)
		return NOTIFY_DONE;
	spin_lock(&gs_lock);
	if (agent_port && agent_port == notify->portid)
		set_port(0);
	spin_unlock(&gs_lock);
	return NOTIFY_DONE;
}

static struct notifier_block notifier = { .notifier_call = socket_closed };

int gs_agent_init(void)
{
	return netlink_register_notifier(&notifier);
}

void gs_agent_exit(void)
{
	netlink_unregister_notifier(&notifier);
	cancel_delayed_work_sync(&look_work);
}
