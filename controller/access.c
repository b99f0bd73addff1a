// SPDX-License-Identifier: Apache-2.0
/*
 * Who may read the metrics. What the API server said is kept for a while, by the token's hash: the
 * tokens themselves are not. Strangers send as many as they like, so all of it is bounded, and who
 * was let in before is asked about even where strangers take all places.
 */
#include <gnutls/crypto.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/xalloc.h"
#include "controller/access.h"

#define PATH "/metrics"
/* How long an answer holds: a right that is taken away is so much longer there. */
#define HOLDS_MS 10000
/* How long one waits; Prometheus does for 10 s. */
#define WAIT_MS 3000
/* How many are kept, and how many of them asked about at a time. */
#define VERDICTS_MAX 64
#define ASKING_MAX 8
#define KEY_SIZE 32

struct asker {
	struct asker *next;
	void (*done)(unsigned int status, void *arg);
	void *arg;
};

/* About one token. */
struct verdict {
	struct verdict *next;
	struct access *access;
	unsigned char key[KEY_SIZE];
	bool asking;
	bool good; /* it was let in when it was asked about last */
	unsigned int status; /* what the API server said */
	uint64_t until; /* it holds; or the time of who waits */
	struct kube_ask *ask;
	struct asker *askers;
};

struct access {
	struct controller *controller;
	struct verdict *verdicts;
	size_t n, n_asking;
	uv_timer_t timer;
	bool failing; /* that was told */
};

/* ---- What is known. */

static uint64_t now(const struct access *access)
{
	return uv_now(access->controller->loop);
}

static void drop(struct access *access, struct verdict *verdict)
{
	struct verdict **at = &access->verdicts;

	while (*at != verdict)
		at = &(*at)->next;
	*at = verdict->next;
	access->n--;
	free(verdict);
}

/* Goes before the other one, where one has to: a stranger's, else the older. */
static bool cheaper(const struct verdict *a, const struct verdict *b)
{
	return a->good != b->good ? b->good : a->until < b->until;
}

static struct verdict *add(struct access *access, const unsigned char key[KEY_SIZE])
{
	struct verdict *cheapest = NULL, *verdict;

	for (struct verdict *v = access->verdicts; v; v = v->next)
		if (!v->asking && (!cheapest || cheaper(v, cheapest)))
			cheapest = v;
	if (access->n >= VERDICTS_MAX && cheapest)
		drop(access, cheapest);
	verdict = gs_calloc(1, sizeof(*verdict));
	verdict->access = access;
	memcpy(verdict->key, key, KEY_SIZE);
	verdict->next = access->verdicts;
	access->verdicts = verdict;
	access->n++;
	return verdict;
}

/* It is told: 0, for now nobody knows. */
static void settle(struct verdict *verdict, unsigned int status)
{
	struct access *access = verdict->access;
	struct asker *askers = gs_steal(verdict->askers), *next;

	kube_ask_cancel(gs_steal(verdict->ask));
	verdict->asking = false;
	access->n_asking--;
	verdict->status = status;
	verdict->until = now(access) + (status ? HOLDS_MS : 0);
	if (status)
		verdict->good = status == 200;
	for (struct asker *a = askers; a; a = next) {
		next = a->next;
		a->done(status ? status : 503, a->arg);
		free(a);
	}
}

/* ---- Asking. */

static void fail(struct verdict *verdict, const char *why)
{
	struct access *access = verdict->access;

	if (!access->failing)
		gs_log_fields(GS_LOG_ERROR, "who may read the metrics can't be asked", "why", why,
			      NULL);
	access->failing = true;
	settle(verdict, 0);
}

/* Sends @body, which it takes over; it may hold a token. */
static void post(struct verdict *verdict, const char *path, json_t *body,
		 void (*done)(const struct kube_reply *reply, void *arg))
{
	cleanup_json json_t *mine = body;
	char *text = mine ? json_dumps(mine, JSON_COMPACT) : NULL;

	if (text)
		verdict->ask = kube_ask(verdict->access->controller->kube, "POST", path,
					"application/json", text, done, verdict);
	if (text)
		explicit_bzero(text, strlen(text));
	free(text);
	if (!verdict->ask)
		settle(verdict, 0);
}

/* The status of what was answered; NULL: it failed, and that was told. */
static json_t *status_of(struct verdict *verdict, const struct kube_reply *reply)
{
	json_t *root, *status;

	verdict->ask = NULL;
	if (reply->r < 0) {
		fail(verdict, reply->err->msg);
		return NULL;
	}
	root = json_loadb(reply->text, reply->len, 0, NULL);
	status = json_incref(json_object_get(root, "status"));
	json_decref(root);
	if (!status)
		fail(verdict, "the API server's answer has no status");
	return status;
}

static void on_account(const struct kube_reply *reply, void *arg)
{
	struct verdict *verdict = arg;
	cleanup_json json_t *status = status_of(verdict, reply);

	if (!status)
		return;
	verdict->access->failing = false;
	settle(verdict, json_is_true(json_object_get(status, "allowed")) &&
					!json_is_true(json_object_get(status, "denied")) ?
				200 :
				403);
}

static void on_token(const struct kube_reply *reply, void *arg)
{
	struct verdict *verdict = arg;
	cleanup_json json_t *status = status_of(verdict, reply);
	const json_t *user = json_object_get(status, "user");
	const char *name = json_string_value(json_object_get(user, "username"));

	if (!status)
		return;
	if (!json_is_true(json_object_get(status, "authenticated")) || !name || !*name) {
		verdict->access->failing = false;
		settle(verdict, 401);
		return;
	}
	post(verdict, "/apis/authorization.k8s.io/v1/subjectaccessreviews",
	     json_pack("{s:s, s:s, s:{s:s, s:O*, s:O*, s:O*, s:{s:s, s:s}}}", "apiVersion",
		       "authorization.k8s.io/v1", "kind", "SubjectAccessReview", "spec", "user",
		       name, "uid", json_object_get(user, "uid"), "groups",
		       json_object_get(user, "groups"), "extra", json_object_get(user, "extra"),
		       "nonResourceAttributes", "path", PATH, "verb", "get"),
	     on_account);
}

/* Whoever waited too long is not let in. */
static void on_timer(uv_timer_t *timer)
{
	struct access *access = timer->data;

	for (struct verdict *v = access->verdicts; v; v = v->next)
		if (v->asking && now(access) >= v->until)
			fail(v, "no answer in time");
	if (!access->n_asking)
		(void)uv_timer_stop(&access->timer);
}

static void ask(struct verdict *verdict, const char *token)
{
	struct access *access = verdict->access;

	verdict->asking = true;
	verdict->until = now(access) + WAIT_MS;
	access->n_asking++;
	(void)uv_timer_start(&access->timer, on_timer, 100, 100);
	post(verdict, "/apis/authentication.k8s.io/v1/tokenreviews",
	     json_pack("{s:s, s:s, s:{s:s}}", "apiVersion", "authentication.k8s.io/v1", "kind",
		       "TokenReview", "spec", "token", token),
	     on_token);
}

/* ---- */

/* RFC 6750: the token behind "Bearer"; NULL: there is none. */
static const char *token_of(const char *authorization)
{
	static const char scheme[] = "Bearer ";
	const char *token;

	if (!authorization || strncasecmp(authorization, scheme, strlen(scheme)) != 0)
		return NULL;
	token = authorization + strlen(scheme);
	token += strspn(token, " ");
	for (const char *c = token; *c; c++)
		if (*c <= ' ' || *c >= 0x7f)
			return NULL;
	return *token ? token : NULL;
}

static void wait_for(struct verdict *verdict, void (*done)(unsigned int status, void *arg),
		     void *arg)
{
	struct asker *asker = gs_calloc(1, sizeof(*asker));

	*asker = (struct asker){ verdict->askers, done, arg };
	verdict->askers = asker;
}

void access_ask(struct controller *controller, const char *authorization,
		void (*done)(unsigned int status, void *arg), void *arg)
{
	struct access *access = controller->access;
	const char *token = token_of(authorization);
	unsigned char key[KEY_SIZE];
	struct verdict *v;

	if (!token) {
		done(401, arg);
		return;
	}
	if (gnutls_hash_fast(GNUTLS_DIG_SHA256, token, strlen(token), key) < 0) {
		done(503, arg);
		return;
	}
	v = access->verdicts;
	while (v && memcmp(v->key, key, KEY_SIZE) != 0)
		v = v->next;
	if (v && !v->asking && now(access) < v->until) {
		done(v->status, arg);
		return;
	}
	if (v && v->asking) {
		wait_for(v, done, arg);
		return;
	}
	if (access->n_asking >= ASKING_MAX && !(v && v->good)) {
		done(503, arg);
		return;
	}
	if (!v)
		v = add(access, key);
	wait_for(v, done, arg);
	ask(v, token);
}

void access_start(struct controller *controller)
{
	struct access *access = gs_calloc(1, sizeof(*access));

	access->controller = controller;
	access->timer.data = access;
	(void)uv_timer_init(controller->loop, &access->timer);
	controller->access = access;
}

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

void access_stop(struct controller *controller)
{
	struct access *access = gs_steal(controller->access);

	if (!access)
		return;
	while (access->verdicts) {
		if (access->verdicts->asking)
			settle(access->verdicts, 0);
		drop(access, access->verdicts);
	}
	uv_close((uv_handle_t *)&access->timer, on_closed);
}
