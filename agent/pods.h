/* SPDX-License-Identifier: Apache-2.0 */
/* This node's pods, as the Kubernetes API tells them, and which of them have to go. */
#ifndef GPUSHARE_AGENT_PODS_H
#define GPUSHARE_AGENT_PODS_H

#include "agent/agent.h"
#include "agent/oversale.h"

/* Starts watching the pods, where the settings name a server. As kube_new(). */
int pods_start(struct agent *agent, struct gs_err *err);
void pods_stop(struct agent *agent);

/*
 * Deletes a container's pod, with @why as an Event on it: now, or when the API has told of it.
 * Nothing happens without Kubernetes, or for a container that is of no pod.
 *
 * The UID alone decides. A pod made from a file on the node has one of the kubelet's, and its
 * mirror in the API another, which no container has: such a pod is never found. No mark on the
 * object keeps it, for its author can write them all (the mirror's annotation, an owner that is a
 * DaemonSet): a spot pod that may not be deleted would keep its place on the node for nothing.
 * Where a DaemonSet makes it anew, the new one waits for a card like any other.
 */
void pods_delete(struct agent *agent, const struct gs_record *rec, const char *why);

/*
 * The same for the pod of that UID, of which nothing else is known, unless it has ended by itself:
 * what it left may still be wanted.
 */
void pods_delete_uid(struct agent *agent, const char *uid, const char *why);

/* The same by its name, of a pod that the API has told; that has not ended by itself. */
void pods_delete_named(struct agent *agent, const char *ns, const char *name, const char *why);

/*
 * Has a pod that is not over devices of @resource of which the kubelet tells nothing? It lists what
 * containers have, and init containers that go on, but no other init containers; their devices are
 * their pod's all the same, to its end. True as long as the API is yet to tell.
 */
bool pods_untold(const struct agent *agent, const char *resource);

/*
 * The pods that live on over-sold CPU or memory, and how many; what they use is not known here. The
 * caller frees the array; its strings stay until the loop goes on.
 */
size_t pods_jobs(const struct agent *agent, struct oversale_job **ret);

/* Deletes the pod of that UID since the memory that was sold to it is wanted, as @why says. */
void pods_evict(struct agent *agent, const char *uid, const char *why);

#endif
