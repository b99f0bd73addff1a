/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's socket: SOCK_SEQPACKET, root only, one JSON object a packet each way.
 *
 *   request   {"v":1,"op":"reclaim","container":ID,"cards":[CARD,...]}
 *             {"v":1,"op":"borrow","container":ID,"grant":NAME,"sources":[ID,...]}
 *             {"v":1,"op":"watched","container":ID}
 *   answer    {"v":1,"ok":true}   or   {"v":1,"ok":false,"error":"sentence"}
 *
 * The answer comes when the thing asked for is true: the cards are free, the container may start,
 * its watch stands. The asker waits no longer than its own deadline and then gives up; what it
 * asked for goes on.
 */
#ifndef GPUSHARE_AGENT_H
#define GPUSHARE_AGENT_H

#define GS_AGENT_VERSION 1
#define GS_AGENT_SOCKET "agent.sock" /* in run_dir */
#define GS_AGENT_PACKET_MAX 65536

#define GS_OP_RECLAIM "reclaim"
#define GS_OP_BORROW "borrow"
#define GS_OP_WATCHED "watched"

/*
 * run_dir/lent/<card>, written by the agent before it lends a card and removed after the card is
 * back. Where no agent answers, the runtime reads it to take the card back itself:
 *
 *   {"v":1,"card":CARD,"vendor":NAME,"nodes":[{"type":"c","major":N,"minor":N},...],
 *    "select":[VALUE,...],"cgroups":["/sys/fs/cgroup/...",...]}
 *
 * nodes: the card's own device nodes; select: the values that name it in a selecting environment
 * variable (UUID, index); cgroups: the borrowers', absolute, as recorded when they were created.
 */
#define GS_LENT_DIR "lent"

#endif
