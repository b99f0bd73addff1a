// SPDX-License-Identifier: Apache-2.0
/* A device plugin: the kubelet's questions, answered from a snapshot. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/plugin.h"
#include "common/cleanup.h"
#include "common/xalloc.h"
#include "deviceplugin.pb-c.h"

/* The kubelet asks for one container at a time. */
#define MAX_CONTAINERS 64

struct plugin {
	struct rpc *rpc;
	struct rpc_server *server;
	struct plugin_ops ops;

	/* The thread's. */
	struct plugin_snapshot *snapshot;
	struct gs_buf listed; /* the message that the streams have */
	bool has_listed;
};

/* What is published, and how many watch, on the way. */
struct publication {
	struct plugin *plugin;
	struct plugin_snapshot *snapshot;
};

struct watching {
	struct plugin *plugin;
	size_t n;
};

void plugin_annotate(struct plugin_answer *answer, const char *key, const char *value)
{
	gs_strv_add(&answer->keys, key);
	gs_strv_add(&answer->values, value);
}

static void answer_free(struct plugin_answer *answer)
{
	gs_strv_free(&answer->keys);
	gs_strv_free(&answer->values);
}

static int get_options(const ProtobufCMessage *request, struct gs_buf *out, void *arg,
		       struct gs_err *err)
{
	V1beta1__DevicePluginOptions options = V1BETA1__DEVICE_PLUGIN_OPTIONS__INIT;
	const struct plugin *plugin = arg;

	(void)request, (void)err;
	options.get_preferred_allocation_available = plugin->ops.prefer != NULL;
	rpc_append(out, &options.base);
	return 0;
}

static const struct plugin_device *device_find(const struct plugin_snapshot *snapshot,
					       const char *id)
{
	for (size_t i = 0; i < snapshot->n; i++)
		if (strcmp(snapshot->devices[i].id, id) == 0)
			return &snapshot->devices[i];
	return NULL;
}

/* Each of @ids is there, healthy, and in the list once. */
static int check_ids(const struct plugin_snapshot *snapshot, const struct gs_strv *ids,
		     struct gs_err *err)
{
	for (size_t i = 0; i < ids->n; i++) {
		const struct plugin_device *device = device_find(snapshot, ids->v[i]);

		if (!device)
			return gs_err_set(err, ENOENT, "there is no device %.*s", PLUGIN_ID_MAX,
					  ids->v[i]);
		if (!device->healthy)
			return gs_err_set(err, EBUSY, "device %s is not to be had now", device->id);
		for (size_t k = 0; k < i; k++)
			if (strcmp(ids->v[k], ids->v[i]) == 0)
				return gs_err_set(err, EINVAL, "device %s is asked for twice",
						  device->id);
	}
	return 0;
}

/* Is @got what @wish asks for? Of a function of ours, so it is no fault of the kubelet's. */
static bool grants_wish(const struct plugin_wish *wish, const struct gs_strv *got)
{
	for (size_t i = 0; i < got->n; i++) {
		if (!gs_strv_has(&wish->available, got->v[i]))
			return false;
		for (size_t k = 0; k < i; k++)
			if (strcmp(got->v[k], got->v[i]) == 0)
				return false;
	}
	for (size_t i = 0; i < wish->must.n; i++)
		if (!gs_strv_has(got, wish->must.v[i]))
			return false;
	return got->n == wish->size;
}

/*
 * A device may have become unhealthy since the kubelet made its list: it is left out. What can't be
 * chosen is no error, for that would fail the pod's admission for good: to a choice of none the
 * kubelet adds what it likes, and allocate() says what is wrong with that.
 */
static void prefer_one(const struct plugin *plugin,
		       const V1beta1__ContainerPreferredAllocationRequest *request,
		       struct gs_strv *ret)
{
	const struct plugin_snapshot *snapshot = plugin->snapshot;
	int32_t size = request->allocation_size;
	cleanup_strv struct gs_strv available = { 0 };
	struct plugin_wish wish = {
		.must = { request->must_include_deviceids, request->n_must_include_deviceids },
		.size = size > 0 ? (size_t)size : 0,
	};

	for (size_t i = 0; snapshot && i < request->n_available_deviceids; i++) {
		const char *id = request->available_deviceids[i];
		const struct plugin_device *device = device_find(snapshot, id);

		if (device && device->healthy && available.n < snapshot->n)
			gs_strv_add_once(&available, id);
	}
	wish.available = available;
	if (wish.size == 0 || wish.size > available.n || wish.must.n > wish.size ||
	    check_ids(snapshot, &wish.must, NULL) < 0 ||
	    plugin->ops.prefer(snapshot, &wish, ret, plugin->ops.arg, NULL) < 0 ||
	    !grants_wish(&wish, ret))
		gs_strv_free(ret);
}

static int check_count(size_t containers, struct gs_err *err)
{
	return containers > MAX_CONTAINERS ?
		       gs_err_set(err, EINVAL, "%zu containers in one request", containers) :
		       0;
}

static int check_request(const struct plugin *plugin, size_t containers, struct gs_err *err)
{
	if (!plugin->snapshot)
		return gs_err_set(err, EAGAIN, "the devices of this node are not known yet");
	return check_count(containers, err);
}

static int get_preferred(const ProtobufCMessage *message, struct gs_buf *out, void *arg,
			 struct gs_err *err)
{
	const V1beta1__PreferredAllocationRequest *request =
		(const V1beta1__PreferredAllocationRequest *)message;
	V1beta1__PreferredAllocationResponse all = V1BETA1__PREFERRED_ALLOCATION_RESPONSE__INIT;
	V1beta1__ContainerPreferredAllocationResponse responses[MAX_CONTAINERS];
	V1beta1__ContainerPreferredAllocationResponse *each[MAX_CONTAINERS];
	struct gs_strv ids[MAX_CONTAINERS] = { 0 };
	const struct plugin *plugin = arg;
	size_t n = request->n_container_requests;
	int code;

	if (!plugin->ops.prefer)
		return gs_err_set(err, EINVAL, "any devices will do");
	code = check_count(n, err);
	for (size_t i = 0; i < n && code == 0; i++) {
		prefer_one(plugin, request->container_requests[i], &ids[i]);
		v1beta1__container_preferred_allocation_response__init(&responses[i]);
		responses[i].deviceids = ids[i].v;
		responses[i].n_deviceids = ids[i].n;
		each[i] = &responses[i];
	}
	if (code == 0) {
		all.container_responses = each;
		all.n_container_responses = n;
		rpc_append(out, &all.base);
	}
	for (size_t i = 0; i < n && i < MAX_CONTAINERS; i++)
		gs_strv_free(&ids[i]);
	return code;
}

typedef V1beta1__ContainerAllocateResponse__AnnotationsEntry annotation;

/* Appends one container's part of the response. */
static void append_container(struct gs_buf *out, const struct plugin_answer *answer)
{
	V1beta1__ContainerAllocateResponse response = V1BETA1__CONTAINER_ALLOCATE_RESPONSE__INIT;
	V1beta1__ContainerAllocateResponse *one[] = { &response };
	V1beta1__AllocateResponse all = V1BETA1__ALLOCATE_RESPONSE__INIT;
	size_t n = answer->keys.n;
	cleanup_free annotation *entries = gs_calloc(n + 1, sizeof(*entries));
	cleanup_free void **list = gs_calloc(n + 1, sizeof(void *));

	for (size_t i = 0; i < n; i++) {
		v1beta1__container_allocate_response__annotations_entry__init(&entries[i]);
		entries[i].key = answer->keys.v[i];
		entries[i].value = answer->values.v[i];
		list[i] = &entries[i];
	}
	response.annotations = (annotation **)list;
	response.n_annotations = n;
	all.container_responses = one;
	all.n_container_responses = 1;
	/* A message that follows another is merged with it: their lists are joined. */
	rpc_append(out, &all.base);
}

static int allocate(const ProtobufCMessage *message, struct gs_buf *out, void *arg,
		    struct gs_err *err)
{
	const V1beta1__AllocateRequest *request = (const V1beta1__AllocateRequest *)message;
	const struct plugin *plugin = arg;
	int code = check_request(plugin, request->n_container_requests, err);

	for (size_t i = 0; i < request->n_container_requests && code == 0; i++) {
		const V1beta1__ContainerAllocateRequest *one = request->container_requests[i];
		const struct gs_strv ids = { one->devices_ids, one->n_devices_ids };
		struct plugin_answer answer = { 0 };

		code = ids.n > 0 ? check_ids(plugin->snapshot, &ids, err) :
				   gs_err_set(err, EINVAL, "no devices are asked for");
		if (code == 0)
			code = plugin->ops.allocate(plugin->snapshot, &ids, &answer,
						    plugin->ops.arg, err);
		if (code == 0)
			append_container(out, &answer);
		answer_free(&answer);
	}
	if (code < 0 && plugin->ops.refused)
		plugin->ops.refused(plugin->ops.arg);
	return code;
}

/* Nothing is to be done before a start; the options say so, and no kubelet should ask. */
static int pre_start(const ProtobufCMessage *request, struct gs_buf *out, void *arg,
		     struct gs_err *err)
{
	V1beta1__PreStartContainerResponse response = V1BETA1__PRE_START_CONTAINER_RESPONSE__INIT;

	(void)request, (void)arg, (void)err;
	rpc_append(out, &response.base);
	return 0;
}

static const struct rpc_method methods[] = {
	{ "/v1beta1.DevicePlugin/GetDevicePluginOptions", &v1beta1__empty__descriptor,
	  get_options },
	{ "/v1beta1.DevicePlugin/ListAndWatch", &v1beta1__empty__descriptor, NULL },
	{ "/v1beta1.DevicePlugin/GetPreferredAllocation",
	  &v1beta1__preferred_allocation_request__descriptor, get_preferred },
	{ "/v1beta1.DevicePlugin/Allocate", &v1beta1__allocate_request__descriptor, allocate },
	{ "/v1beta1.DevicePlugin/PreStartContainer",
	  &v1beta1__pre_start_container_request__descriptor, pre_start },
};

static void append_device(struct gs_buf *out, const struct plugin_device *from)
{
	V1beta1__ListAndWatchResponse list = V1BETA1__LIST_AND_WATCH_RESPONSE__INIT;
	V1beta1__Device device = V1BETA1__DEVICE__INIT, *devices[] = { &device };
	V1beta1__TopologyInfo topology = V1BETA1__TOPOLOGY_INFO__INIT;
	V1beta1__NUMANode node = V1BETA1__NUMANODE__INIT, *nodes[] = { &node };

	device.id = (char *)from->id;
	device.health = (char *)(from->healthy ? "Healthy" : "Unhealthy");
	if (from->numa >= 0) {
		node.id = from->numa;
		topology.nodes = nodes;
		topology.n_nodes = 1;
		device.topology = &topology;
	}
	list.devices = devices;
	list.n_devices = 1;
	rpc_append(out, &list.base);
}

static void publish(void *arg)
{
	struct publication *publication = arg;
	struct plugin *plugin = publication->plugin;
	struct plugin_snapshot *snapshot = publication->snapshot;
	struct gs_buf list = { 0 };
	bool same;

	free(publication);
	if (plugin->snapshot)
		plugin->snapshot->free(plugin->snapshot);
	plugin->snapshot = snapshot;
	for (size_t i = 0; i < snapshot->n; i++)
		append_device(&list, &snapshot->devices[i]);
	same = plugin->has_listed && plugin->listed.len == list.len &&
	       (list.len == 0 || memcmp(plugin->listed.data, list.data, list.len) == 0);
	gs_buf_free(&plugin->listed);
	plugin->listed = list;
	plugin->has_listed = true;
	if (!same)
		rpc_server_push(plugin->server, &list);
}

static void publication_drop(void *arg)
{
	struct publication *publication = arg;

	publication->snapshot->free(publication->snapshot);
	free(publication);
}

void plugin_publish(struct plugin *plugin, struct plugin_snapshot *snapshot)
{
	struct publication *publication = gs_calloc(1, sizeof(*publication));

	publication->plugin = plugin;
	publication->snapshot = snapshot;
	rpc_run(plugin->rpc, publish, publication_drop, publication);
}

static void on_started(int code, const struct gs_err *err, void *arg)
{
	const struct plugin *plugin = arg;

	plugin->ops.started(code, err, plugin->ops.arg);
}

static void tell_watched(void *arg)
{
	struct watching *watching = arg;
	const struct plugin *plugin = watching->plugin;

	plugin->ops.watched(watching->n, plugin->ops.arg);
	free(watching);
}

static void on_streams(size_t n, void *arg)
{
	struct plugin *plugin = arg;
	struct watching *watching;

	if (!plugin->ops.watched)
		return;
	watching = gs_calloc(1, sizeof(*watching));
	watching->plugin = plugin;
	watching->n = n;
	rpc_post(plugin->rpc, tell_watched, free, watching);
}

static void on_ended(void *arg)
{
	struct plugin *plugin = arg;

	if (plugin->ops.ended)
		plugin->ops.ended(plugin->ops.arg);
	if (plugin->snapshot)
		plugin->snapshot->free(plugin->snapshot);
	gs_buf_free(&plugin->listed);
	free(plugin);
}

struct plugin *plugin_new(struct rpc *rpc, const char *socket, const struct plugin_ops *ops)
{
	struct plugin *plugin = gs_calloc(1, sizeof(*plugin));
	const struct rpc_server_ops server = {
		.methods = methods,
		.n = GS_ARRAY_SIZE(methods),
		.started = on_started,
		.streams = on_streams,
		.ended = on_ended,
		.arg = plugin,
	};

	plugin->rpc = rpc;
	plugin->ops = *ops;
	plugin->server = rpc_server_new(rpc, socket, &server);
	return plugin;
}

void plugin_free(struct plugin *plugin)
{
	if (plugin)
		rpc_server_free(plugin->server);
}
