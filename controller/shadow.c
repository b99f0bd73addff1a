// SPDX-License-Identifier: Apache-2.0
/* Carries out what shadow_plan() says. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/xalloc.h"
#include "controller/figures.h"
#include "controller/leader.h"
#include "controller/shadow.h"
#include "controller/shadow_make.h"
#include "controller/shadow_remove.h"
#include "gpushare/annotations.h"
#include "gpushare/resources.h"

#define PAGE 500
/* Changes of pods come in crowds: one plan for all of them. */
#define SOON_MS 200
/* After the API refused one, and after one of that name was still there. */
#define REFUSED_MS 60000
#define EXISTS_MS 3000
/* Until there may be room for more Events. */
#define UNTOLD_MS 5000
/* Requests at a time, each with a connection of its own; whoever waits is planned for again. */
#define MAKING_MAX 16
/* More share pods than that are no cluster's. */
#define PODS_MAX 100000

/* Pods by age of their knowledge; looked up by UID in an index. */
struct pods {
	struct shadow_pod **v;
	size_t n;
	json_t *index; /* UID: place in @v */
};

struct making {
	struct making *next;
	struct shadows *shadows;
	struct kube_ask *ask;
	char *uid; /* the share pod's */
	bool told; /* a watch tells of the shadow pod, and is newer than the answer */
};

struct shadows {
	struct controller *controller;
	struct pods shares, cards;
	json_t *listed; /* UIDs that the list under way has told; NULL: none is */
	bool synced;
	bool untold; /* somebody was not told for want of room, and is to be told still */
	uv_timer_t timer;
	struct making *making;
	unsigned int n_making;
};

/* ---- What is known. */

static struct shadow_pod *find(const struct pods *pods, const char *uid)
{
	const json_t *at = json_object_get(pods->index, uid);

	return at ? pods->v[json_integer_value(at)] : NULL;
}

static void forget(struct pods *pods, const char *uid)
{
	const json_t *at = json_object_get(pods->index, uid);
	struct shadow_pod *last;
	size_t i;

	if (!at)
		return;
	i = (size_t)json_integer_value(at);
	last = pods->v[--pods->n];
	(void)json_object_del(pods->index, uid);
	if (pods->v[i] != last)
		(void)json_object_set_new(pods->index, last->uid, json_integer((json_int_t)i));
	shadow_pod_free(pods->v[i]);
	pods->v[i] = last;
}

/* Takes @pod over; what we remember of it stays. */
static void learn(struct pods *pods, struct shadow_pod *pod)
{
	const json_t *at = json_object_get(pods->index, pod->uid);

	if (at) {
		struct shadow_pod **old = &pods->v[json_integer_value(at)];

		pod->since = (*old)->since;
		pod->ran = (*old)->ran;
		pod->quiet = (*old)->quiet;
		pod->later = (*old)->later;
		pod->asked = (*old)->asked;
		pod->unhelped = (*old)->unhelped;
		pod->vain = (*old)->vain;
		pod->told = gs_steal((*old)->told);
		shadow_pod_free(*old);
		*old = pod;
	} else if (pods->n >= PODS_MAX) {
		shadow_pod_free(pod);
	} else {
		(void)json_object_set_new(pods->index, pod->uid, json_integer((json_int_t)pods->n));
		pods->v = gs_grow(pods->v, pods->n, sizeof(void *));
		pods->v[pods->n++] = pod;
	}
}

static void on_timer(uv_timer_t *timer);

static void soon(struct shadows *shadows)
{
	if (shadows->synced && !uv_is_active((uv_handle_t *)&shadows->timer))
		(void)uv_timer_start(&shadows->timer, on_timer, SOON_MS, 0);
	else if (shadows->synced && uv_timer_get_due_in(&shadows->timer) > SOON_MS)
		(void)uv_timer_start(&shadows->timer, on_timer, SOON_MS, 0);
}

/* Of the shadow pod for the share pod @uid; NULL: of all. */
static void is_told(struct shadows *shadows, const char *uid)
{
	for (struct making *making = shadows->making; making; making = making->next)
		making->told |= !uid || strcmp(making->uid, uid) == 0;
}

/* Takes @pod over; NULL is none. */
static void learn_of(struct shadows *shadows, struct shadow_pod *pod, bool shadow, bool gone)
{
	struct pods *pods = shadow ? &shadows->cards : &shadows->shares;

	if (!pod)
		return;
	if (shadow)
		is_told(shadows, pod->of);
	if (shadows->listed)
		(void)json_object_set_new(shadows->listed, pod->uid, json_null());
	if (gone) {
		forget(pods, pod->uid);
		shadow_pod_free(pod);
	} else {
		learn(pods, pod);
	}
	soon(shadows);
}

static void on_object(struct js object, bool gone, void *arg)
{
	bool shadow = false;
	struct shadows *shadows = arg;
	struct shadow_pod *pod = shadow_read(object, &shadows->controller->settings, &shadow);

	learn_of(shadows, pod, shadow, gone);
}

static void on_begin(void *arg)
{
	struct shadows *shadows = arg;

	is_told(shadows, NULL);
	json_decref(shadows->listed);
	shadows->listed = json_object();
}

static void drop_unlisted(struct shadows *shadows, struct pods *pods)
{
	for (size_t i = pods->n; i-- > 0;)
		if (!json_object_get(shadows->listed, pods->v[i]->uid))
			forget(pods, pods->v[i]->uid);
}

static void on_synced(void *arg)
{
	struct shadows *shadows = arg;

	drop_unlisted(shadows, &shadows->shares);
	drop_unlisted(shadows, &shadows->cards);
	json_decref(shadows->listed);
	shadows->listed = NULL;
	shadows->synced = true;
	soon(shadows);
}

/* ---- Making one. */

static void making_free(struct making *making)
{
	struct making **at = &making->shadows->making;

	while (*at != making)
		at = &(*at)->next;
	*at = making->next;
	making->shadows->n_making--;
	free(making->uid);
	free(making);
}

static void tell(struct shadows *shadows, struct shadow_pod *share, const char *type,
		 const char *text)
{
	if (share->told && strcmp(share->told, text) == 0)
		return;
	/* a crowd's would push each other out, and nobody would be told again */
	if (kube_event_room(shadows->controller->kube) == 0) {
		shadows->untold = true;
		return;
	}
	free(share->told);
	share->told = gs_strdup(text);
	kube_event(shadows->controller->kube, share->namespace, share->name, share->uid, type,
		   "WaitsForCard", text);
}

static void on_made(const struct kube_reply *reply, void *arg)
{
	struct making *making = arg;
	struct shadows *shadows = making->shadows;
	struct shadow_pod *share = find(&shadows->shares, making->uid);
	uint64_t now = uv_now(shadows->controller->loop);
	struct js object;

	if (share)
		share->asked = false;
	if (reply->r == 0) {
		/* not only once the watch brings it: it must not be made twice */
		if (!making->told && js_parse(reply->text, reply->len, &object, NULL) == 0)
			on_object(object, false, shadows);
		figures_shadow(shadows->controller, "made");
		gs_log_fields(GS_LOG_INFO, "made a shadow pod", "for", making->uid, NULL);
	} else if (share && reply->r == -EEXIST) {
		share->later = now + EXISTS_MS;
	} else {
		figures_shadow(shadows->controller, "refused");
		gs_log_fields(GS_LOG_WARN, "no shadow pod is made", "why", reply->err->msg, NULL);
		if (share) {
			cleanup_free char *text = gs_asprintf(
				"no pod that holds a card to be shared can be made: %.600s",
				reply->err->msg);

			share->later = now + REFUSED_MS;
			tell(shadows, share, "Warning", text);
		}
	}
	making_free(making);
	soon(shadows);
}

static void make(struct shadows *shadows, struct shadow_pod *share)
{
	const struct controller_settings *s = &shadows->controller->settings;
	cleanup_json json_t *pod = shadow_make(share, s);
	cleanup_free char *text = json_dumps(pod, JSON_COMPACT);
	cleanup_free char *path = gs_asprintf("/api/v1/namespaces/%s/pods", s->namespace);
	struct making *making;

	if (!text || shadows->n_making >= MAKING_MAX)
		return;
	making = gs_calloc(1, sizeof(*making));
	making->shadows = shadows;
	making->uid = gs_strdup(share->uid);
	making->next = shadows->making;
	shadows->making = making;
	shadows->n_making++;
	share->asked = true;
	making->ask = kube_ask(shadows->controller->kube, "POST", path, "application/json", text,
			       on_made, making);
}

/* ---- One stays that was to be removed. */

void shadows_stays(struct controller *controller, const char *uid, bool used, unsigned int ms)
{
	struct shadows *shadows = controller->shadows;
	struct shadow_pod *shadow = shadows ? find(&shadows->cards, uid) : NULL;

	if (!shadow)
		return;
	shadow->asked = false;
	if (used)
		shadow->quiet = 0;
	shadow->later = uv_now(controller->loop) + ms;
	soon(shadows);
}

/* ---- The plan. */

static void count(struct shadows *shadows, size_t waiting)
{
	size_t placed = 0;

	for (size_t i = 0; i < shadows->cards.n; i++)
		placed += *shadows->cards.v[i]->node != '\0';
	figures_shadows(shadows->controller, placed, shadows->cards.n - placed, waiting);
}

static void on_timer(uv_timer_t *timer)
{
	struct shadows *shadows = timer->data;
	const struct controller_settings *s = &shadows->controller->settings;
	const struct shadow_rules rules = { s->share, s->account_cards, s->quiet_ms };
	uint64_t now = uv_now(timer->loop) + 1;
	struct shadow_plan plan = { 0 };

	if (!leader_is(shadows->controller))
		return;
	shadow_plan(shadows->shares.v, shadows->shares.n, shadows->cards.v, shadows->cards.n,
		    &rules, now, &plan);
	count(shadows, plan.waiting);
	shadows->untold = false;
	for (size_t i = 0; i < plan.n; i++) {
		const struct shadow_step *step = &plan.v[i];

		if (step->act == SHADOW_MAKE)
			make(shadows, step->pod);
		else if (step->act == SHADOW_DELETE)
			step->pod->asked =
				shadow_remove(shadows->controller, step->pod, step->text);
		else
			tell(shadows, step->pod, "Normal", step->text);
	}
	if (shadows->untold && (!plan.next_ms || plan.next_ms > now + UNTOLD_MS))
		plan.next_ms = now + UNTOLD_MS;
	if (plan.next_ms)
		(void)uv_timer_start(timer, on_timer, plan.next_ms > now ? plan.next_ms - now : 1,
				     0);
	shadow_plan_free(&plan);
}

/* ---- Beginning and end. */

void shadows_start(struct controller *controller)
{
	struct shadows *shadows = gs_calloc(1, sizeof(*shadows));
	const struct kube_watch_ops ops = { on_object, on_begin, on_synced, shadows };

	shadows->controller = controller;
	shadows->shares.index = json_object();
	shadows->cards.index = json_object();
	controller->shadows = shadows;
	(void)uv_timer_init(controller->loop, &shadows->timer);
	shadows->timer.data = shadows;
	kube_watch(controller->kube, "/api/v1/pods", NULL, "pod", PAGE, &ops);
}

void shadows_lead(struct controller *controller, bool leads)
{
	struct shadows *shadows = controller->shadows;

	if (!shadows)
		return;
	if (!leads)
		shadow_remove_stop(controller);
	while (!leads && shadows->making) {
		struct shadow_pod *share = find(&shadows->shares, shadows->making->uid);

		if (share)
			share->asked = false;
		kube_ask_cancel(shadows->making->ask);
		making_free(shadows->making);
	}
	soon(shadows);
}

static void pods_free(struct pods *pods)
{
	for (size_t i = 0; i < pods->n; i++)
		shadow_pod_free(pods->v[i]);
	free(pods->v);
	json_decref(pods->index);
}

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

void shadows_stop(struct controller *controller)
{
	struct shadows *shadows = gs_steal(controller->shadows);

	if (!shadows)
		return;
	shadow_remove_stop(controller);
	while (shadows->making) {
		kube_ask_cancel(shadows->making->ask);
		making_free(shadows->making);
	}
	pods_free(&shadows->shares);
	pods_free(&shadows->cards);
	json_decref(shadows->listed);
	uv_close((uv_handle_t *)&shadows->timer, on_closed);
}
