// SPDX-License-Identifier: Apache-2.0
/* What is asked of the kubelet: its messages, made and read. */
#include <stdlib.h>
#include <string.h>

#include "agent/kubelet.h"
#include "common/cleanup.h"
#include "common/xalloc.h"
#include "deviceplugin.pb-c.h"
#include "podresources.pb-c.h"

/* Whom the answer is for. */
struct asked {
	void (*registered)(int code, const struct gs_err *err, void *arg);
	kubelet_done *told;
	void *arg;
};

void kubelet_uses_free(struct kubelet_uses *uses)
{
	for (size_t i = 0; i < uses->n; i++) {
		free(uses->v[i].namespace);
		free(uses->v[i].pod);
		free(uses->v[i].container);
		free(uses->v[i].resource);
		gs_strv_free(&uses->v[i].ids);
	}
	free(uses->v);
	gs_strv_free(&uses->pods);
	*uses = (struct kubelet_uses){ 0 };
}

/* An entry of the kubelet's is of one NUMA node; ours is of all, so @first of this container on. */
static void uses_add(struct kubelet_uses *uses, size_t first, const V1__PodResources *pod,
		     const char *container, const V1__ContainerDevices *devices)
{
	struct kubelet_use *use = NULL;

	for (size_t i = first; i < uses->n && !use; i++)
		if (strcmp(uses->v[i].resource, devices->resource_name) == 0)
			use = &uses->v[i];
	if (!use) {
		uses->v = gs_grow(uses->v, uses->n, sizeof(*uses->v));
		use = &uses->v[uses->n++];
		*use = (struct kubelet_use){ .resource = gs_strdup(devices->resource_name) };
		if (pod) {
			use->namespace = gs_strdup(pod->namespace_);
			use->pod = gs_strdup(pod->name);
			use->container = gs_strdup(container);
		}
	}
	for (size_t i = 0; i < devices->n_device_ids; i++)
		gs_strv_add(&use->ids, devices->device_ids[i]);
}

static int compare_text(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

static int compare(const void *pa, const void *pb)
{
	const struct kubelet_use *a = pa, *b = pb;
	int c = compare_text(a->namespace, b->namespace);

	c = c ? c : compare_text(a->pod, b->pod);
	c = c ? c : compare_text(a->container, b->container);
	return c ? c : strcmp(a->resource, b->resource);
}

/*
 * A kubelet tells pods, resources and devices in the order of Go's maps, which is another one each
 * time (k8s.io/kubernetes, pkg/kubelet/cm: containerDevicesFromResourceDeviceInstances()).
 */
static void uses_sort(struct kubelet_uses *uses)
{
	for (size_t i = 0; i < uses->n; i++)
		gs_strv_sort_once(&uses->v[i].ids);
	gs_strv_sort_once(&uses->pods);
	if (uses->n > 1)
		qsort(uses->v, uses->n, sizeof(*uses->v), compare);
}

static void on_list(int code, const ProtobufCMessage *answer, const struct gs_err *err, void *arg)
{
	const V1__ListPodResourcesResponse *list = (const V1__ListPodResourcesResponse *)answer;
	cleanup_free struct asked *asked = arg;
	struct kubelet_uses uses = { 0 };

	for (size_t p = 0; code == 0 && p < list->n_pod_resources; p++) {
		const V1__PodResources *pod = list->pod_resources[p];
		cleanup_free char *name = gs_asprintf("%s/%s", pod->namespace_, pod->name);

		gs_strv_add(&uses.pods, name);
		for (size_t c = 0; c < pod->n_containers; c++) {
			const V1__ContainerResources *container = pod->containers[c];
			size_t first = uses.n;

			for (size_t d = 0; d < container->n_devices; d++)
				uses_add(&uses, first, pod, container->name, container->devices[d]);
		}
	}
	uses_sort(&uses);
	asked->told(code, code == 0 ? &uses : NULL, err, asked->arg);
	kubelet_uses_free(&uses);
}

static void on_allocatable(int code, const ProtobufCMessage *answer, const struct gs_err *err,
			   void *arg)
{
	const V1__AllocatableResourcesResponse *all =
		(const V1__AllocatableResourcesResponse *)answer;
	cleanup_free struct asked *asked = arg;
	struct kubelet_uses uses = { 0 };

	for (size_t d = 0; code == 0 && d < all->n_devices; d++)
		uses_add(&uses, 0, NULL, NULL, all->devices[d]);
	uses_sort(&uses);
	asked->told(code, code == 0 ? &uses : NULL, err, asked->arg);
	kubelet_uses_free(&uses);
}

static void on_registered(int code, const ProtobufCMessage *answer, const struct gs_err *err,
			  void *arg)
{
	cleanup_free struct asked *asked = arg;

	(void)answer;
	asked->registered(code, err, asked->arg);
}

void kubelet_register(struct rpc *rpc, const char *socket, const char *endpoint,
		      const char *resource, bool prefers, unsigned int timeout_ms,
		      void (*done)(int code, const struct gs_err *err, void *arg), void *arg)
{
	V1beta1__DevicePluginOptions options = V1BETA1__DEVICE_PLUGIN_OPTIONS__INIT;
	V1beta1__RegisterRequest request = V1BETA1__REGISTER_REQUEST__INIT;
	struct asked *asked = gs_calloc(1, sizeof(*asked));

	asked->registered = done;
	asked->arg = arg;
	options.get_preferred_allocation_available = prefers;
	request.version = (char *)"v1beta1";
	request.endpoint = (char *)endpoint;
	request.resource_name = (char *)resource;
	request.options = &options;
	rpc_call(rpc, socket, "/v1beta1.Registration/Register", &request.base,
		 &v1beta1__empty__descriptor, timeout_ms, on_registered, asked);
}

void kubelet_uses(struct rpc *rpc, const char *socket, unsigned int timeout_ms, kubelet_done *done,
		  void *arg)
{
	V1__ListPodResourcesRequest request = V1__LIST_POD_RESOURCES_REQUEST__INIT;
	struct asked *asked = gs_calloc(1, sizeof(*asked));

	asked->told = done;
	asked->arg = arg;
	rpc_call(rpc, socket, "/v1.PodResourcesLister/List", &request.base,
		 &v1__list_pod_resources_response__descriptor, timeout_ms, on_list, asked);
}

void kubelet_allocatable(struct rpc *rpc, const char *socket, unsigned int timeout_ms,
			 kubelet_done *done, void *arg)
{
	V1__AllocatableResourcesRequest request = V1__ALLOCATABLE_RESOURCES_REQUEST__INIT;
	struct asked *asked = gs_calloc(1, sizeof(*asked));

	asked->told = done;
	asked->arg = arg;
	rpc_call(rpc, socket, "/v1.PodResourcesLister/GetAllocatableResources", &request.base,
		 &v1__allocatable_resources_response__descriptor, timeout_ms, on_allocatable,
		 asked);
}
