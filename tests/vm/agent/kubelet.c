// SPDX-License-Identifier: Apache-2.0
/*
 * A kubelet as far as the agent sees it, for scripts in the guest:
 *
 *	kubelet serve DIR FILE       takes device plugins, and tells by FILE who holds what, a line
 *	                             each: "NAMESPACE POD CONTAINER RESOURCE ID"; with "-" for the
 *	                             first three of what there is to be had
 *	kubelet allocate SOCKET ID...  asks a plugin for devices, prints the grant's name
 *
 * It asks no plugin for its list of devices: whether one is healthy shows in what it allocates.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/kubelet.h"
#include "agent/rpc.h"
#include "common/cleanup.h"
#include "common/xalloc.h"
#include "deviceplugin.pb-c.h"
#include "gpushare/annotations.h"
#include "podresources.pb-c.h"

static int event = -1;
static bool done;
static int status;

static void wake(void *arg)
{
	(void)arg;
	(void)eventfd_write(event, 1);
}

static void turn(struct rpc *rpc)
{
	struct pollfd poll_fd = { .fd = event, .events = POLLIN };
	eventfd_t n;

	(void)poll(&poll_fd, 1, -1);
	(void)eventfd_read(event, &n);
	rpc_dispatch(rpc);
}

/* ---- serve */

struct line {
	char namespace[64], pod[64], container[64], resource[64], id[64];
};

static bool next_line(FILE *f, bool held, struct line *ret)
{
	while (fscanf(f, "%63s %63s %63s %63s %63s", ret->namespace, ret->pod, ret->container,
		      ret->resource, ret->id) == 5)
		if ((strcmp(ret->pod, "-") != 0) == held)
			return true;
	return false;
}

static int on_register(const ProtobufCMessage *message, struct gs_buf *out, void *arg,
		       struct gs_err *err)
{
	const V1beta1__RegisterRequest *request = (const V1beta1__RegisterRequest *)message;
	V1beta1__Empty answer = V1BETA1__EMPTY__INIT;

	(void)arg, (void)err;
	printf("registered %s at %s\n", request->resource_name, request->endpoint);
	(void)fflush(stdout);
	rpc_append(out, &answer.base);
	return 0;
}

/* Each line a pod of its own: their lists are joined where messages follow each other. */
static int on_list(const ProtobufCMessage *message, struct gs_buf *out, void *arg,
		   struct gs_err *err)
{
	FILE *f = fopen(arg, "re");
	struct line line;

	(void)message, (void)err;
	while (f && next_line(f, true, &line)) {
		char *ids[] = { line.id };
		V1__ContainerDevices devices = V1__CONTAINER_DEVICES__INIT, *each[] = { &devices };
		V1__ContainerResources container = V1__CONTAINER_RESOURCES__INIT;
		V1__ContainerResources *containers[] = { &container };
		V1__PodResources pod = V1__POD_RESOURCES__INIT, *pods[] = { &pod };
		V1__ListPodResourcesResponse answer = V1__LIST_POD_RESOURCES_RESPONSE__INIT;

		devices.resource_name = line.resource;
		devices.device_ids = ids;
		devices.n_device_ids = 1;
		container.name = line.container;
		container.devices = each;
		container.n_devices = 1;
		pod.namespace_ = line.namespace;
		pod.name = line.pod;
		pod.containers = containers;
		pod.n_containers = 1;
		answer.pod_resources = pods;
		answer.n_pod_resources = 1;
		rpc_append(out, &answer.base);
	}
	if (f)
		(void)fclose(f);
	return 0;
}

static int on_allocatable(const ProtobufCMessage *message, struct gs_buf *out, void *arg,
			  struct gs_err *err)
{
	FILE *f = fopen(arg, "re");
	struct line line;

	(void)message, (void)err;
	while (f && next_line(f, false, &line)) {
		char *ids[] = { line.id };
		V1__ContainerDevices devices = V1__CONTAINER_DEVICES__INIT, *each[] = { &devices };
		V1__AllocatableResourcesResponse answer = V1__ALLOCATABLE_RESOURCES_RESPONSE__INIT;

		devices.resource_name = line.resource;
		devices.device_ids = ids;
		devices.n_device_ids = 1;
		answer.devices = each;
		answer.n_devices = 1;
		rpc_append(out, &answer.base);
	}
	if (f)
		(void)fclose(f);
	return 0;
}

static void on_started(int code, const struct gs_err *err, void *arg)
{
	(void)arg;
	if (code == 0)
		return;
	(void)fprintf(stderr, "kubelet: %s\n", err->msg);
	done = true;
	status = 1;
}

static void serve(struct rpc *rpc, const char *dir, char *file)
{
	static const struct rpc_method registration[] = {
		{ "/v1beta1.Registration/Register", &v1beta1__register_request__descriptor,
		  on_register },
	};
	static const struct rpc_method lister[] = {
		{ "/v1.PodResourcesLister/List", &v1__list_pod_resources_request__descriptor,
		  on_list },
		{ "/v1.PodResourcesLister/GetAllocatableResources",
		  &v1__allocatable_resources_request__descriptor, on_allocatable },
	};
	const struct rpc_server_ops plugins = {
		.methods = registration,
		.n = 1,
		.started = on_started,
	};
	const struct rpc_server_ops pods = {
		.methods = lister,
		.n = 2,
		.started = on_started,
		.arg = file,
	};
	cleanup_free char *plugins_socket = gs_asprintf("%s/" KUBELET_PLUGINS, dir);
	cleanup_free char *pods_socket = gs_asprintf("%s/" KUBELET_POD_RESOURCES, dir);

	(void)rpc_server_new(rpc, pods_socket, &pods);
	(void)rpc_server_new(rpc, plugins_socket, &plugins);
	while (!done)
		turn(rpc);
}

/* ---- allocate */

static void on_allocated(int code, const ProtobufCMessage *message, const struct gs_err *err,
			 void *arg)
{
	const V1beta1__AllocateResponse *answer = (const V1beta1__AllocateResponse *)message;

	(void)arg;
	done = true;
	status = 1;
	if (code < 0) {
		(void)fprintf(stderr, "kubelet: %s\n", err->msg);
		return;
	}
	for (size_t i = 0; i < answer->container_responses[0]->n_annotations; i++)
		if (strcmp(answer->container_responses[0]->annotations[i]->key, GS_KEY_GRANT) ==
		    0) {
			puts(answer->container_responses[0]->annotations[i]->value);
			status = 0;
		}
}

static void allocate(struct rpc *rpc, const char *socket, char **ids, size_t n)
{
	V1beta1__ContainerAllocateRequest one = V1BETA1__CONTAINER_ALLOCATE_REQUEST__INIT;
	V1beta1__ContainerAllocateRequest *each[] = { &one };
	V1beta1__AllocateRequest request = V1BETA1__ALLOCATE_REQUEST__INIT;

	one.devices_ids = ids;
	one.n_devices_ids = n;
	request.container_requests = each;
	request.n_container_requests = 1;
	rpc_call(rpc, socket, "/v1beta1.DevicePlugin/Allocate", &request.base,
		 &v1beta1__allocate_response__descriptor, 10000, on_allocated, NULL);
	while (!done)
		turn(rpc);
}

int main(int argc, char **argv)
{
	struct gs_err err = { 0 };
	struct rpc *rpc = NULL;

	event = eventfd(0, EFD_CLOEXEC);
	if (argc < 4 || event < 0 || rpc_new(wake, NULL, &rpc, &err) < 0) {
		(void)fprintf(stderr, "kubelet: %s\n", argc < 4 ? "see its source" : err.msg);
		return 2;
	}
	if (strcmp(argv[1], "serve") == 0)
		serve(rpc, argv[2], argv[3]);
	else
		allocate(rpc, argv[2], argv + 3, (size_t)argc - 3);
	return rpc_free(rpc) < 0 ? 1 : status;
}
