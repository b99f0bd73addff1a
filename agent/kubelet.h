/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is asked of the kubelet: to take a device plugin, and who holds what (its PodResources API
 * v1). Nothing waits: answers come from rpc_dispatch().
 */
#ifndef GPUSHARE_AGENT_KUBELET_H
#define GPUSHARE_AGENT_KUBELET_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/rpc.h"
#include "common/buf.h"
#include "common/err.h"

/* Where the kubelet listens, below its folder (/var/lib/kubelet). */
#define KUBELET_PLUGINS "device-plugins/kubelet.sock"
#define KUBELET_POD_RESOURCES "pod-resources/kubelet.sock"

/*
 * Registers the plugin whose socket is @endpoint, in the folder of the kubelet's @socket, for
 * @resource ("gpushare/spot-gpu"). It must listen already: the kubelet connects at once. @prefers:
 * it wants to be asked which devices to take. @done: as of rpc_call().
 */
void kubelet_register(struct rpc *rpc, const char *socket, const char *endpoint,
		      const char *resource, bool prefers, unsigned int timeout_ms,
		      void (*done)(int code, const struct gs_err *err, void *arg), void *arg);

/* The devices of one resource that a container has, whatever nodes of NUMA they are on. */
struct kubelet_use {
	char *namespace, *pod, *container; /* NULL where nobody has them */
	char *resource; /* "nvidia.com/gpu", "nvidia.com/mig-1g.10gb" */
	struct gs_strv ids; /* as the resource's plugin calls them */
};

/* Sorted, and so are the devices: the same answer is the same. */
struct kubelet_uses {
	struct kubelet_use *v;
	size_t n;
	struct gs_strv pods; /* "namespace/pod": all that it knows, whether they have any or not */
};

/* Frees what @uses holds, and empties it. */
void kubelet_uses_free(struct kubelet_uses *uses);

typedef void kubelet_done(int code, const struct kubelet_uses *uses, const struct gs_err *err,
			  void *arg);

/*
 * All devices that containers of this node have, those of pods that end included until they are
 * gone. Borrowed for the call of @done. (-errno and no uses: as of rpc_call().)
 */
void kubelet_uses(struct rpc *rpc, const char *socket, unsigned int timeout_ms, kubelet_done *done,
		  void *arg);

/* All devices that there are to be had, whether anybody has them or not. */
void kubelet_allocatable(struct rpc *rpc, const char *socket, unsigned int timeout_ms,
			 kubelet_done *done, void *arg);

#endif
