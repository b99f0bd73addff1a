/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's socket: SOCK_SEQPACKET, root only, one JSON object a packet each way. Only an answer
 * may be longer than a packet: one of just GS_AGENT_PACKET_MAX bytes is followed by another.
 *
 *   request   {"v":1,"op":"reclaim","container":ID,"to":"<namespace>/<pod>/<container>",
 *              "cards":[CARD,...]}   (to: absent where it is not known)
 *             {"v":1,"op":"borrow","container":ID,"grant":NAME,"sources":[ID,...]}
 *             {"v":1,"op":"watched","container":ID}
 *             {"v":1,"op":"claim","grant":NAME,"to":"<namespace>/<pod>/<container>","pod_uid":UID}
 *             {"v":1,"op":"confirm","container":ID,"to":"<namespace>/<pod>/<container>",
 *              "cards":[CARD,...]}
 *   request   {"v":1,"op":"status"}
 *             {"v":1,"op":"lend","name":CARD or HOLDING}
 *             {"v":1,"op":"withdraw","name":CARD or HOLDING}
 *             {"v":1,"op":"grant","cards":[CARD,...],"to":"<namespace>/<pod>/<container>"}
 *
 *   answer    {"v":1,"ok":true}   or   {"v":1,"ok":false,"error":"sentence"}
 *
 * The answer comes when the thing asked for is true: the cards are free, the container may start,
 * its watch stands; the grant that the kubelet was told of is written, for that container; the
 * kubelet gave those cards to that container's pod, or does not tell what it gave; for an
 * operator: the card is lent, or back. status answers with "cards",
 * "holdings", "borrowers" and "kernel"; grant with "grant" (a new spot grant's name), "cards" and
 * "sources". The asker waits no longer than its own deadline and then gives up; what it
 * asked for goes on.
 */
#ifndef GPUSHARE_AGENT_H
#define GPUSHARE_AGENT_H

/*
 * The answer to "status":
 *
 *   "cards":[{"card","vendor","id","uuid","holding","busy":0..1,"memory_used","memory_total",
 *             "strangers":true,"revocable":bool,"unrevocable"},...]
 *   "holdings":[{"holding","state","since_ms","cards":[...],"members":[CONTAINER,...],
 *                "lend":bool,"why_not","touches"},...]
 *   "borrowers":[CONTAINER with "ending":bool,...]
 *   "kernel":{"loaded":bool,"version"}
 *
 * CONTAINER is {"id","name","role","running":bool,"cards":[...],"user_id","partition",
 * "memory_used"}: whose pod it is, by the annotations of those names (cut where they are long), and
 * the bytes that it uses on all its cards. What does not apply or is not known is absent. since_ms:
 * how long it has been in that state. revocable: a return to the card
 * that makes no call is held, too; unrevocable: why it is not, though the vendor's entry says so.
 */

#define GS_AGENT_VERSION 1
#define GS_AGENT_SOCKET "agent.sock" /* in run_dir */
#define GS_AGENT_PACKET_MAX 65536
/* A whole answer: the status of 2,000 containers with eight cards each, and long names. */
#define GS_AGENT_ANSWER_MAX (4 * 1024 * 1024)

#define GS_OP_RECLAIM "reclaim"
#define GS_OP_BORROW "borrow"
#define GS_OP_WATCHED "watched"
#define GS_OP_CLAIM "claim"
#define GS_OP_CONFIRM "confirm"
#define GS_OP_STATUS "status"
#define GS_OP_LEND "lend"
#define GS_OP_WITHDRAW "withdraw"
#define GS_OP_GRANT "grant"

/*
 * run_dir/lent/<card>, written by the agent before it lends a card and removed after the card is
 * back. Where no agent answers, the runtime reads it to take the card back itself:
 *
 *   {"v":1,"card":CARD,"vendor":NAME,"nodes":[{"type":"c","major":N,"minor":N},...],
 *    "select":[VALUE,...],"cgroups":["/sys/fs/cgroup/...",...],"memory_before":N}
 *
 * nodes: the card's own device nodes; select: the values that name it in a selecting environment
 * variable (UUID, index); cgroups: the borrowers', absolute, as recorded when they were created;
 * memory_before: bytes of the card that were used when it was lent; not there where nobody told.
 */
#define GS_LENT_DIR "lent"

/*
 * run_dir/shared/<card>, where a kubelet runs and a target outside its source's pod uses the card:
 * the same without cgroups and memory_before. The runtime asks the agent to reclaim it, too, before
 * a container starts with it: where the kubelet has given the card to that container's pod, those
 * targets are left without a source, and end first. Where no agent answers it goes on.
 */
#define GS_SHARED_DIR "shared"

#endif
