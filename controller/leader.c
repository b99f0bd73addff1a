// SPDX-License-Identifier: Apache-2.0
/*
 * The Lease. As with Kubernetes' own controllers (k8s.io/client-go, tools/leaderelection), clocks
 * of others are not believed: a holder is dead when we have seen no renewal of its for a time.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/xalloc.h"
#include "controller/leader.h"

#define LEASES "/apis/coordination.k8s.io/v1/namespaces/%s/leases"
#define DURATION_S 15 /* without a renewal, others take over */
#define HOLD_MS 10000 /* without one, we cease */
#define TRY_MS 2000
#define ASK_MS 5000 /* then a request is given up */
#define RELEASE_MS 2000 /* so long our end waits for the Lease to be given back */

struct leader {
	struct controller *controller;
	void (*changed)(struct controller *controller, bool leads);
	uv_timer_t timer;
	struct kube_ask *ask;
	uint64_t asked; /* when that was, by the loop's clock */
	uint64_t until; /* so long we lead */
	bool told; /* that we lead */
	char *seen; /* holder and renewal of somebody else's */
	uint64_t seen_since;
	void (*released)(struct controller *controller); /* set: we end */
};

static uint64_t now_ms(const struct leader *leader)
{
	return uv_now(leader->controller->loop);
}

bool leader_is(const struct controller *controller)
{
	const struct leader *leader = controller->leader;

	if (!leader)
		return false;
	uv_update_time(controller->loop);
	return now_ms(leader) < leader->until;
}

static void tell(struct leader *leader)
{
	bool leads = leader_is(leader->controller);

	if (leads == leader->told)
		return;
	leader->told = leads;
	gs_log_fields(GS_LOG_INFO, leads ? "leading" : "no longer leading", "identity",
		      leader->controller->identity, NULL);
	leader->changed(leader->controller, leads);
}

static json_t *micro_time(void)
{
	struct timespec now;
	struct tm tm;
	char text[32];

	(void)clock_gettime(CLOCK_REALTIME, &now);
	(void)gmtime_r(&now.tv_sec, &tm);
	(void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	return json_sprintf("%s.%06ldZ", text, now.tv_nsec / 1000);
}

/* It is given back, or can't be. */
static void release_over(struct leader *leader)
{
	(void)uv_timer_stop(&leader->timer);
	leader->released(leader->controller);
}

static void on_written(const struct kube_reply *reply, void *arg)
{
	struct leader *leader = arg;

	leader->ask = NULL;
	if (leader->released) {
		release_over(leader);
		return;
	}
	if (reply->r == 0)
		leader->until = leader->asked + HOLD_MS;
	else if (reply->r != -EEXIST) /* 409: another one was faster */
		gs_log_fields(GS_LOG_WARN, "the Lease is not written", "why", reply->err->msg,
			      NULL);
	tell(leader);
}

static bool is_ours(const struct leader *leader, const json_t *spec)
{
	const char *holder = json_string_value(json_object_get(spec, "holderIdentity"));

	return holder && strcmp(holder, leader->controller->identity) == 0;
}

/* Takes, renews or releases it: @lease is what stands there, or NULL. */
static void write_lease(struct leader *leader, json_t *lease)
{
	const struct controller_settings *s = &leader->controller->settings;
	json_t *spec = json_object_get(lease, "spec");
	bool ours = is_ours(leader, spec);
	json_int_t transitions = json_integer_value(json_object_get(spec, "leaseTransitions"));
	cleanup_json json_t *body = NULL;
	cleanup_free char *path =
		gs_asprintf(LEASES "%s%s", s->namespace, lease ? "/" : "", lease ? s->lease : "");
	cleanup_free char *text = NULL;

	body = lease ? json_deep_copy(lease) :
		       json_pack("{s:s, s:s, s:{s:s, s:s}}", "apiVersion", "coordination.k8s.io/v1",
				 "kind", "Lease", "metadata", "name", s->lease, "namespace",
				 s->namespace);
	spec = json_object_get(body, "spec");
	if (!json_is_object(spec)) {
		spec = json_object();
		(void)json_object_set_new(body, "spec", spec);
	}
	/* without a holder it is anybody's at once */
	(void)json_object_set_new(spec, "holderIdentity",
				  json_string(leader->released ? "" :
								 leader->controller->identity));
	(void)json_object_set_new(spec, "leaseDurationSeconds",
				  json_integer(leader->released ? 1 : DURATION_S));
	(void)json_object_set_new(spec, "renewTime", micro_time());
	if (!ours) {
		(void)json_object_set_new(spec, "acquireTime", micro_time());
		(void)json_object_set_new(spec, "leaseTransitions",
					  json_integer(lease ? transitions + 1 : 0));
	}
	text = json_dumps(body, JSON_COMPACT);
	leader->asked = now_ms(leader);
	leader->ask = kube_ask(leader->controller->kube, lease ? "PUT" : "POST", path,
			       "application/json", text, on_written, leader);
}

/* Has whoever holds it been silent for long enough? */
static bool is_free(struct leader *leader, const json_t *spec)
{
	const char *holder = json_string_value(json_object_get(spec, "holderIdentity"));
	const char *renewed = json_string_value(json_object_get(spec, "renewTime"));
	cleanup_free char *seen = NULL;

	if (!holder || !*holder || is_ours(leader, spec))
		return true;
	seen = gs_asprintf("%s %s", holder, renewed ? renewed : "");
	if (!leader->seen || strcmp(seen, leader->seen) != 0) {
		free(leader->seen);
		leader->seen = gs_steal(seen);
		leader->seen_since = now_ms(leader);
	}
	return now_ms(leader) - leader->seen_since > DURATION_S * 1000;
}

static void on_read(const struct kube_reply *reply, void *arg)
{
	struct leader *leader = arg;
	cleanup_json json_t *lease = NULL;

	leader->ask = NULL;
	if (reply->r == 0)
		lease = json_loadb(reply->text, reply->len, 0, NULL);
	if (leader->released) {
		if (is_ours(leader, json_object_get(lease, "spec")))
			write_lease(leader, lease);
		else
			release_over(leader);
		return;
	}
	if (reply->r == -ENOENT) {
		write_lease(leader, NULL);
		return;
	}
	if (!json_is_object(lease)) {
		gs_log_fields(GS_LOG_WARN, "the Lease is not read", "why",
			      reply->r < 0 ? reply->err->msg : "no JSON", NULL);
		return;
	}
	if (is_free(leader, json_object_get(lease, "spec")))
		write_lease(leader, lease);
}

static void read_lease(struct leader *leader)
{
	const struct controller_settings *s = &leader->controller->settings;
	cleanup_free char *path = gs_asprintf(LEASES "/%s", s->namespace, s->lease);

	kube_ask_cancel(leader->ask);
	leader->asked = now_ms(leader);
	leader->ask = kube_ask(leader->controller->kube, "GET", path, NULL, NULL, on_read, leader);
}

static void on_timer(uv_timer_t *timer)
{
	struct leader *leader = timer->data;

	tell(leader);
	if (!leader->ask || now_ms(leader) - leader->asked >= ASK_MS)
		read_lease(leader);
}

static void on_release_timer(uv_timer_t *timer)
{
	release_over(timer->data);
}

void leader_release(struct controller *controller, void (*done)(struct controller *controller))
{
	struct leader *leader = controller->leader;

	if (!leader || leader->released || !leader_is(controller)) {
		done(controller);
		return;
	}
	leader->released = done;
	/* first of all nothing more is done in the Lease's name */
	leader->until = 0;
	tell(leader);
	(void)uv_timer_start(&leader->timer, on_release_timer, RELEASE_MS, 0);
	read_lease(leader);
}

void leader_start(struct controller *controller,
		  void (*changed)(struct controller *controller, bool leads))
{
	struct leader *leader = gs_calloc(1, sizeof(*leader));

	leader->controller = controller;
	leader->changed = changed;
	controller->leader = leader;
	(void)uv_timer_init(controller->loop, &leader->timer);
	leader->timer.data = leader;
	(void)uv_timer_start(&leader->timer, on_timer, 0, TRY_MS);
}

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

void leader_stop(struct controller *controller)
{
	struct leader *leader = gs_steal(controller->leader);

	if (!leader)
		return;
	kube_ask_cancel(leader->ask);
	free(leader->seen);
	uv_close((uv_handle_t *)&leader->timer, on_closed);
}
