/* SPDX-License-Identifier: GPL-2.0-only */
/* Is the agent alive? */
#ifndef GS_KMOD_AGENT_H
#define GS_KMOD_AGENT_H

#include <linux/types.h>

#define GS_AGENT_LOST_MS 3000

struct netlink_ext_ack;

/**
 * gs_agent_beat() - GS_CMD_HEARTBEAT
 * @port: netlink port of the sender
 *
 * Context: process. Return: 0, or -EBUSY while another port is the agent.
 */
int gs_agent_beat(u32 port, struct netlink_ext_ack *extack);

/**
 * gs_agent_busy() - a command of that port begins or ends
 *
 * While the agent waits for an answer of ours it can't beat, and is alive all the same.
 * Context: process.
 */
void gs_agent_busy(u32 port, bool busy);

/** gs_agent_alive() - is there one, that beat in the last GS_AGENT_LOST_MS or so? Context: any. */
bool gs_agent_alive(void);

/** gs_agent_port() - its netlink port, 0 without one. Context: any. */
u32 gs_agent_port(void);

/** gs_agent_age_ms() - since its last heartbeat. Context: any. */
u32 gs_agent_age_ms(void);

/** gs_agent_init() - Return: 0 or an error. Context: process. */
int gs_agent_init(void);

/** gs_agent_exit() - undoes gs_agent_init(). Context: process. */
void gs_agent_exit(void);

#endif
