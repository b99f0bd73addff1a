// SPDX-License-Identifier: Apache-2.0
/*
 * Device plugins at the kubelet. It deletes all sockets of its folder when it starts and expects
 * whoever had one there to register anew; and it tells nobody that it went but by its connection.
 * So each look compares what is there with what we have, and mends the difference; events of the
 * folder make that soon, a timer makes it sure.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/allocations.h"
#include "agent/devices.h"
#include "agent/granted.h"
#include "agent/kubelet.h"
#include "agent/observe.h"
#include "agent/offers.h"
#include "agent/plugins.h"
#include "common/cleanup.h"
#include "common/grant.h"
#include "common/log.h"
#include "common/proc.h"
#include "common/xalloc.h"
#include "gpushare/annotations.h"
#include "gpushare/resources.h"

/* Between two looks without an event, and after one. */
#define LOOK_MS 5000
#define EVENT_MS 20
#define REGISTER_MS 5000
/* How long a kubelet that took a plugin may take to ask it for its devices. */
#define WATCH_MS 5000

/* A file, as it can be told from one that has its name later. */
struct file_id {
	dev_t dev;
	ino_t ino;
	struct timespec made;
};

/* One resource. */
struct served {
	struct plugins *all;
	const char *resource, *endpoint;
	char *socket;
	struct offers *(*offer)(struct agent *agent);
	int (*prefer)(const struct plugin_snapshot *snapshot, const struct plugin_wish *wish,
		      struct gs_strv *ret, void *arg, struct gs_err *err);
	struct serving *now; /* NULL: none */
	struct offers *told; /* a copy of what was published last; NULL: nothing */
	bool listening, registering;
	struct file_id own, with; /* our socket; the kubelet that took it */
	uint64_t registered_ms;
	size_t watching;
	int failed; /* the last failure that was told */
};

/* A plugin, until gRPC is done with it: another may stand in its place by then. */
struct serving {
	struct served *of; /* NULL: no more */
	struct plugins *all;
	const char *resource;
	struct plugin *plugin;
};

struct plugins {
	struct agent *agent;
	struct rpc *rpc;
	uv_async_t wake;
	uv_timer_t look, publish;
	uv_fs_event_t folder;
	char *dir, *kubelet;
	struct served served[2];
};

static void look_soon(struct plugins *all, unsigned int ms);

static bool identify(const char *path, struct file_id *ret)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return false;
	*ret = (struct file_id){ st.st_dev, st.st_ino, st.st_ctim };
	return true;
}

static bool same_file(const struct file_id *a, const struct file_id *b)
{
	return a->ino == b->ino && a->dev == b->dev && a->made.tv_sec == b->made.tv_sec &&
	       a->made.tv_nsec == b->made.tv_nsec;
}

/* ---- In the thread of gRPC. */

/* What the kubelet was told, and the loop has to make true. */
struct promise {
	struct agent *agent;
	const char *resource;
	char name[33];
	struct gs_strv devices;
};

static void promise_free(void *arg)
{
	struct promise *promise = arg;

	gs_strv_free(&promise->devices);
	free(promise);
}

/*
 * The kubelet has the name already, and whoever starts by it claims the grant where this fails, or
 * was never reached.
 */
static void promise_keep(void *arg)
{
	struct promise *promise = arg;
	struct agent *agent = promise->agent;
	cleanup_free char *devices = gs_strv_join(&promise->devices);
	struct gs_err err = { 0 };
	char buf[10];
	int r = granted_write(agent, promise->name, promise->resource, &promise->devices, NULL,
			      &err);
	bool kept = r == 0 || r == -EEXIST;

	observe_allocation(agent, promise->resource, kept ? "granted" : "late");
	gs_log_fields(kept ? GS_LOG_INFO : GS_LOG_ERROR,
		      kept ? "the kubelet gave devices" : "a grant is not written", "resource",
		      promise->resource, "devices", devices, "grant",
		      gs_grant_short(promise->name, buf), kept ? NULL : "why", err.msg, NULL);
	promise_free(promise);
	allocations_granted(agent);
}

static void count_refused(void *arg)
{
	struct promise *promise = arg;

	observe_allocation(promise->agent, promise->resource, "refused");
	promise_free(promise);
}

static int allocate(const struct plugin_snapshot *snapshot, const struct gs_strv *ids,
		    struct plugin_answer *answer, void *arg, struct gs_err *err)
{
	const struct serving *serving = arg;
	struct promise *promise;
	int r = devices_apart(ids, err);

	(void)snapshot;
	if (r < 0)
		return r;
	promise = gs_calloc(1, sizeof(*promise));
	r = gs_grant_name_new(promise->name, err);
	if (r < 0) {
		promise_free(promise);
		return r;
	}
	promise->agent = serving->all->agent;
	promise->resource = serving->resource;
	gs_strv_merge(&promise->devices, ids);
	plugin_annotate(answer, GS_KEY_GRANT, promise->name);
	rpc_post(serving->all->rpc, promise_keep, promise_free, promise);
	return 0;
}

static void refused(void *arg)
{
	struct promise *promise = gs_calloc(1, sizeof(*promise));
	const struct serving *serving = arg;

	promise->agent = serving->all->agent;
	promise->resource = serving->resource;
	rpc_post(serving->all->rpc, count_refused, promise_free, promise);
}

/* ---- Servers. */

static void trouble(struct served *s, const char *what, int code, const struct gs_err *err)
{
	/* each look meets it again: say it once */
	if (s->failed != code)
		gs_log_fields(GS_LOG_ERROR, what, "resource", s->resource, "why", err->msg, NULL);
	s->failed = code;
}

static void serve_end(struct served *s)
{
	if (!s->now)
		return;
	s->now->of = NULL;
	plugin_free(s->now->plugin);
	s->now = NULL;
	s->listening = false;
	s->watching = 0;
	s->with = (struct file_id){ 0 };
	if (s->told)
		s->told->base.free(&s->told->base);
	s->told = NULL;
}

static void on_started(int code, const struct gs_err *err, void *arg)
{
	struct serving *serving = arg;
	struct served *s = serving->of;

	if (!s)
		return;
	if (code < 0 || !identify(s->socket, &s->own)) {
		trouble(s, "a device plugin can't listen", code, err);
		serve_end(s);
		return;
	}
	s->listening = true;
	look_soon(s->all, 0);
}

static void on_watched(size_t n, void *arg)
{
	struct serving *serving = arg;
	struct served *s = serving->of;

	if (!s)
		return;
	s->watching = n;
	if (n == 0) /* the kubelet went, or takes another connection in a moment */
		look_soon(s->all, 1000);
}

static void on_ended(void *arg)
{
	struct serving *serving = arg;

	if (serving->of)
		serving->of->now = NULL;
	free(serving);
}

static void publish(struct served *s)
{
	struct agent *agent = s->all->agent;
	struct offers *offers;

	if (!s->now || !inventory_complete(agent->inventory))
		return;
	offers = s->offer(agent);
	if (s->told && offers_same(s->told, offers)) {
		offers->base.free(&offers->base);
		return;
	}
	if (s->told)
		s->told->base.free(&s->told->base);
	s->told = s->offer(agent);
	plugin_publish(s->now->plugin, &offers->base);
}

static void serve(struct served *s)
{
	struct serving *serving = gs_calloc(1, sizeof(*serving));
	const struct plugin_ops ops = {
		.prefer = s->prefer,
		.allocate = allocate,
		.refused = refused,
		.started = on_started,
		.watched = on_watched,
		.ended = on_ended,
		.arg = serving,
	};

	serving->of = s;
	serving->all = s->all;
	serving->resource = s->resource;
	serving->plugin = plugin_new(s->all->rpc, s->socket, &ops);
	s->now = serving;
	publish(s);
}

/* ---- Registration. */

/* With which kubelet. */
struct registration {
	struct served *of;
	struct file_id with;
};

static void on_registered(int code, const struct gs_err *err, void *arg)
{
	cleanup_free struct registration *registration = arg;
	struct served *s = registration->of;

	s->registering = false;
	if (code == -ECANCELED)
		return;
	observe_registration(s->all->agent, s->resource, code == 0 ? "ok" : "failed");
	if (code < 0) {
		trouble(s, "the kubelet does not take a device plugin", code, err);
		return; /* the next look tries again */
	}
	s->with = registration->with;
	s->registered_ms = gs_boottime_ms();
	s->failed = 0;
	gs_log_fields(GS_LOG_INFO, "the kubelet took a device plugin", "resource", s->resource,
		      NULL);
	allocations_ask(s->all->agent);
}

static void enrol(struct served *s, const struct file_id *with)
{
	struct registration *registration = gs_calloc(1, sizeof(*registration));

	registration->of = s;
	registration->with = *with;
	s->registering = true;
	kubelet_register(s->all->rpc, s->all->kubelet, s->endpoint, s->resource, true, REGISTER_MS,
			 on_registered, registration);
}

/* Is it this kubelet's, and does that one watch it, or will soon? */
static bool is_enrolled(const struct served *s, const struct file_id *kubelet)
{
	return same_file(&s->with, kubelet) &&
	       (s->watching > 0 || gs_boottime_ms() - s->registered_ms < WATCH_MS);
}

static void look_at(struct served *s, const struct file_id *kubelet)
{
	struct file_id own;

	if (s->listening && (!identify(s->socket, &own) || !same_file(&own, &s->own)))
		serve_end(s);
	if (!s->now)
		serve(s);
	else if (s->listening && !s->registering && !is_enrolled(s, kubelet))
		enrol(s, kubelet);
}

/* ---- Looking. */

static void on_wake(uv_async_t *async)
{
	struct plugins *all = async->data;

	if (all->rpc)
		rpc_dispatch(all->rpc);
}

static void wake(void *arg)
{
	struct plugins *all = arg;

	(void)uv_async_send(&all->wake);
}

static void on_folder(uv_fs_event_t *handle, const char *name, int events, int status)
{
	(void)name, (void)events, (void)status;
	look_soon(handle->data, EVENT_MS);
}

static void look(struct plugins *all)
{
	struct file_id kubelet;
	struct gs_err err = { 0 };

	if (!identify(all->kubelet, &kubelet))
		return; /* nobody to serve; who is served already stays so */
	if (!all->rpc && rpc_new(wake, all, &all->rpc, &err) < 0) {
		gs_log_fields(GS_LOG_ERROR, "gRPC can't be started", "why", err.msg, NULL);
		return;
	}
	for (size_t i = 0; i < GS_ARRAY_SIZE(all->served); i++)
		look_at(&all->served[i], &kubelet);
}

static void on_look(uv_timer_t *timer)
{
	struct plugins *all = timer->data;

	/* a folder that came anew under its name tells the old watch nothing */
	(void)uv_fs_event_stop(&all->folder);
	(void)uv_fs_event_start(&all->folder, on_folder, all->dir, 0);
	look_soon(all, LOOK_MS);
	look(all);
}

static void look_soon(struct plugins *all, unsigned int ms)
{
	uv_timer_t *timer = &all->look;

	if (uv_is_active((uv_handle_t *)timer) && uv_timer_get_due_in(timer) <= ms)
		return;
	(void)uv_timer_start(timer, on_look, ms, 0);
}

static void on_publish(uv_timer_t *timer)
{
	struct plugins *all = timer->data;

	for (size_t i = 0; i < GS_ARRAY_SIZE(all->served); i++)
		publish(&all->served[i]);
}

/* ---- For the rest of the agent. */

void plugins_changed(struct agent *agent)
{
	/* from the loop: whoever calls us is amid changing things, and a user may wait for that */
	if (agent->plugins && agent->plugins->rpc)
		(void)uv_timer_start(&agent->plugins->publish, on_publish, 0, 0);
}

bool plugins_have_kubelet(const struct agent *agent)
{
	struct file_id kubelet;

	return agent->plugins && identify(agent->plugins->kubelet, &kubelet);
}

struct rpc *plugins_rpc(struct agent *agent)
{
	return agent->plugins ? agent->plugins->rpc : NULL;
}

bool plugins_gave_away(struct agent *agent, const struct card *card)
{
	const struct allocated *allocated = allocations_known(agent);

	return allocated && allocated_state(allocated, inventory_catalogue(agent->inventory),
					    card) == ALLOCATED_TAKEN;
}

void plugins_observe(struct agent *agent, const struct metric *devices)
{
	for (size_t i = 0; agent->plugins && i < GS_ARRAY_SIZE(agent->plugins->served); i++) {
		const struct served *s = &agent->plugins->served[i];
		unsigned int healthy = 0, n = s->told ? (unsigned int)s->told->n : 0;

		for (unsigned int k = 0; k < n; k++)
			healthy += s->told->devices[k].healthy;
		metrics_set(agent->metrics, devices, healthy, s->resource, "healthy");
		metrics_set(agent->metrics, devices, n - healthy, s->resource, "unhealthy");
	}
}

void plugins_start(struct agent *agent)
{
	static const struct served kinds[] = {
		{ .resource = GS_RESOURCE_SHARE,
		  .endpoint = "gpushare-share.sock",
		  .offer = offers_share,
		  .prefer = offers_prefer_share },
		{ .resource = GS_RESOURCE_SPOT,
		  .endpoint = "gpushare-spot.sock",
		  .offer = offers_spot,
		  .prefer = offers_prefer_spot },
	};
	struct plugins *all;

	if (!agent->settings.plugins || agent->config.cri == GS_CRI_NONE) {
		if (agent->config.refuse_unconfirmed)
			gs_log_fields(GS_LOG_WARN, "refuse_unconfirmed refuses nobody", "why",
				      "no kubelet is asked who holds what", NULL);
		return;
	}
	all = gs_calloc(1, sizeof(*all));
	all->agent = agent;
	all->kubelet = gs_asprintf("%s/" KUBELET_PLUGINS, agent->settings.kubelet);
	all->dir = gs_strndup(all->kubelet, (size_t)(strrchr(all->kubelet, '/') - all->kubelet));
	for (size_t i = 0; i < GS_ARRAY_SIZE(kinds); i++) {
		all->served[i] = kinds[i];
		all->served[i].all = all;
		all->served[i].socket = gs_asprintf("%s/%s", all->dir, kinds[i].endpoint);
	}
	agent->plugins = all;
	all->wake.data = all->look.data = all->publish.data = all->folder.data = all;
	(void)uv_async_init(agent->loop, &all->wake, on_wake);
	(void)uv_timer_init(agent->loop, &all->look);
	(void)uv_timer_init(agent->loop, &all->publish);
	(void)uv_fs_event_init(agent->loop, &all->folder);
	look_soon(all, 0);
	allocations_start(agent);
}

void plugins_stop(struct agent *agent)
{
	struct plugins *all = agent->plugins;
	struct rpc *rpc = all ? all->rpc : NULL;

	if (!rpc)
		return;
	if (rpc_free(rpc) < 0) {
		gs_log_fields(GS_LOG_ERROR, "gRPC does not end", NULL);
		agent->plugins = NULL; /* its thread may look there still */
	}
	all->rpc = NULL;
}

void plugins_free(struct agent *agent)
{
	struct plugins *all = agent->plugins;

	allocations_free(agent);
	for (size_t i = 0; all && i < GS_ARRAY_SIZE(all->served); i++) {
		struct served *s = &all->served[i];

		if (s->told)
			s->told->base.free(&s->told->base);
		free(s->socket);
	}
	if (all) {
		free(all->dir);
		free(all->kubelet);
	}
	free(all);
	agent->plugins = NULL;
}
