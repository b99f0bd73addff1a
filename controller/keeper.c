// SPDX-License-Identifier: Apache-2.0
/* Keeps the webhook's certificate. */
#include <errno.h>
#include <gnutls/gnutls.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/xalloc.h"
#include "controller/base64.h"
#include "controller/certificate.h"
#include "controller/keeper.h"
#include "controller/leader.h"

#define SECRETS "/api/v1/namespaces/%s/secrets"
#define WEBHOOKS "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/%s"
#define LOOK_MS 60000
#define SOON_MS 2000 /* where something was not as it should be */

/* Keys of the Secret (type kubernetes.io/tls has the last two). */
enum { AUTHORITIES, AUTHORITY_KEY, CHAIN, KEY, N_KEYS };
static const char *const keys[N_KEYS] = { "ca.crt", "ca.key", "tls.crt", "tls.key" };

struct keeper {
	struct controller *controller;
	uv_timer_t timer;
	struct kube_ask *ask;
	struct gs_strv names; /* of our server */
	struct certificate cert; /* the Secret's */
	struct certificate asked; /* what we ask it to become */
	char *told; /* what was logged last */
	bool ready;
};

/* What is shown. libmicrohttpd hands its callback nothing of ours. */
static struct certificate_shown *shown;

int keeper_certificate(gnutls_session_t session, const struct gnutls_cert_retr_st *info,
		       gnutls_pcert_st **chain, unsigned int *ret_n, gnutls_ocsp_data_st **ocsp,
		       unsigned int *ret_n_ocsp, gnutls_privkey_t *key, unsigned int *flags)
{
	(void)session, (void)info;
	if (!shown || certificate_give(shown, chain, key) < 0)
		return -1;
	*ret_n = 1;
	*ocsp = NULL;
	*ret_n_ocsp = 0;
	*flags = GNUTLS_CERT_RETR_DEINIT_ALL;
	return 0;
}

static int show(const struct certificate *cert, struct gs_err *err)
{
	struct certificate_shown *new;
	int r = certificate_show(cert, &new, err);

	if (r < 0)
		return r;
	certificate_shown_free(shown);
	shown = new;
	return 0;
}

static void on_timer(uv_timer_t *timer);

static void again(struct keeper *keeper, unsigned int ms)
{
	(void)uv_timer_start(&keeper->timer, on_timer, ms, 0);
}

/* Says it once; NULL: all is well. */
static void trouble(struct keeper *keeper, const char *what, const char *why)
{
	cleanup_free char *text = what ? gs_asprintf("%s: %s", what, why) : NULL;

	if (text && (!keeper->told || strcmp(text, keeper->told) != 0))
		gs_log_fields(GS_LOG_WARN, what, "why", why, NULL);
	free(keeper->told);
	keeper->told = gs_steal(text);
	again(keeper, what ? SOON_MS : LOOK_MS);
}

/* ---- The webhook's configuration. */

static void on_patched(const struct kube_reply *reply, void *arg)
{
	struct keeper *keeper = arg;

	keeper->ask = NULL;
	if (reply->r < 0) {
		trouble(keeper, "the webhook's authorities are not written", reply->err->msg);
		return;
	}
	gs_log_fields(GS_LOG_INFO, "the webhook's authorities are written", NULL);
	trouble(keeper, NULL, NULL);
}

/* A patch of the webhooks that have other authorities than ours; NULL: none has. */
static char *patch_of(const struct keeper *keeper, const json_t *config)
{
	cleanup_free char *bundle = base64_encode(keeper->cert.authorities);
	cleanup_json json_t *list = json_array();
	const json_t *webhook;
	size_t i;

	json_array_foreach(json_object_get(config, "webhooks"), i, webhook) {
		const char *name = json_string_value(json_object_get(webhook, "name"));
		const char *has = json_string_value(
			json_object_get(json_object_get(webhook, "clientConfig"), "caBundle"));

		if (name && (!has || strcmp(has, bundle) != 0))
			(void)json_array_append_new(list,
						    json_pack("{s:s, s:{s:s}}", "name", name,
							      "clientConfig", "caBundle", bundle));
	}
	if (json_array_size(list) == 0)
		return NULL;
	cleanup_json json_t *patch = json_pack("{s:O}", "webhooks", list);

	return json_dumps(patch, JSON_COMPACT);
}

static void on_webhook(const struct kube_reply *reply, void *arg)
{
	struct keeper *keeper = arg;
	cleanup_free char *path = gs_asprintf(WEBHOOKS, keeper->controller->settings.webhook);
	cleanup_free char *patch = NULL;
	cleanup_json json_t *config = NULL;

	keeper->ask = NULL;
	if (reply->r < 0) {
		trouble(keeper, "the webhook's configuration is not read", reply->err->msg);
		return;
	}
	config = json_loadb(reply->text, reply->len, 0, NULL);
	patch = patch_of(keeper, config);
	if (!patch || !leader_is(keeper->controller)) {
		trouble(keeper, NULL, NULL);
		return;
	}
	keeper->ask = kube_ask(keeper->controller->kube, "PATCH", path,
			       "application/strategic-merge-patch+json", patch, on_patched, keeper);
}

/* ---- The Secret. */

static bool is_same(const struct certificate *a, const struct certificate *b)
{
	return a->chain && b->chain && a->key && b->key && strcmp(a->chain, b->chain) == 0 &&
	       strcmp(a->key, b->key) == 0;
}

static void use(struct keeper *keeper, struct certificate *cert)
{
	cleanup_free char *path = gs_asprintf(WEBHOOKS, keeper->controller->settings.webhook);
	bool same = is_same(&keeper->cert, cert);
	struct gs_err err;

	if (!same && show(cert, &err) < 0) {
		certificate_free(cert);
		trouble(keeper, "the Secret has no certificate", err.msg);
		return;
	}
	if (!same)
		gs_log_fields(GS_LOG_INFO, "showing the Secret's certificate", NULL);
	certificate_free(&keeper->cert);
	keeper->cert = *cert;
	*cert = (struct certificate){ 0 };
	keeper->ready = true;
	if (!leader_is(keeper->controller)) {
		trouble(keeper, NULL, NULL);
		return;
	}
	keeper->ask =
		kube_ask(keeper->controller->kube, "GET", path, NULL, NULL, on_webhook, keeper);
}

static void on_written(const struct kube_reply *reply, void *arg)
{
	struct keeper *keeper = arg;

	keeper->ask = NULL;
	if (reply->r == -EEXIST) { /* another one was faster, perhaps: read what it wrote */
		again(keeper, SOON_MS);
		return;
	}
	if (reply->r < 0)
		trouble(keeper, "the Secret is not written", reply->err->msg);
	else
		use(keeper, &keeper->asked);
}

/* Writes keeper->asked; @secret is what is there, or NULL. */
static void write_secret(struct keeper *keeper, const json_t *secret)
{
	const struct controller_settings *s = &keeper->controller->settings;
	const char *const values[N_KEYS] = { keeper->asked.authorities, keeper->asked.authority_key,
					     keeper->asked.chain, keeper->asked.key };
	cleanup_free char *path = gs_asprintf(SECRETS "%s%s", s->namespace, secret ? "/" : "",
					      secret ? s->secret : "");
	cleanup_json json_t *body = NULL;
	cleanup_free char *text = NULL;
	json_t *data = json_object();

	for (int i = 0; i < N_KEYS; i++) {
		cleanup_free char *encoded = base64_encode(values[i]);

		(void)json_object_set_new(data, keys[i], json_string(encoded));
	}
	body = secret ? json_deep_copy(secret) :
			json_pack("{s:s, s:s, s:s, s:{s:s, s:s}}", "apiVersion", "v1", "kind",
				  "Secret", "type", "kubernetes.io/tls", "metadata", "name",
				  s->secret, "namespace", s->namespace);
	(void)json_object_set_new(body, "data", data);
	text = json_dumps(body, JSON_COMPACT);
	keeper->ask = kube_ask(keeper->controller->kube, secret ? "PUT" : "POST", path,
			       "application/json", text, on_written, keeper);
	explicit_bzero(text, strlen(text));
}

static struct certificate read_secret(const json_t *secret)
{
	const json_t *data = json_object_get(secret, "data");
	char *v[N_KEYS];

	for (int i = 0; i < N_KEYS; i++)
		v[i] = base64_decode(json_string_value(json_object_get(data, keys[i])));
	return (struct certificate){ v[AUTHORITIES], v[AUTHORITY_KEY], v[CHAIN], v[KEY] };
}

static void on_read(const struct kube_reply *reply, void *arg)
{
	struct keeper *keeper = arg;
	cleanup_json json_t *secret = NULL;
	struct certificate cert = { 0 };
	struct gs_err err;
	bool changed;

	keeper->ask = NULL;
	if (reply->r == 0) {
		secret = json_loadb(reply->text, reply->len, 0, NULL);
		cert = read_secret(secret);
	} else if (reply->r != -ENOENT) {
		trouble(keeper, "the Secret is not read", reply->err->msg);
		return;
	}
	if (!leader_is(keeper->controller)) {
		if (reply->r == 0)
			use(keeper, &cert);
		else
			again(keeper, SOON_MS);
		return;
	}
	if (certificate_renew(&cert, &keeper->names, time(NULL), &changed, &err) < 0) {
		certificate_free(&cert);
		trouble(keeper, "no certificate is made", err.msg);
	} else if (changed) {
		gs_log_fields(GS_LOG_INFO, "renewing the certificate", NULL);
		certificate_free(&keeper->asked);
		keeper->asked = cert;
		write_secret(keeper, secret);
	} else {
		use(keeper, &cert);
	}
}

static void on_timer(uv_timer_t *timer)
{
	struct keeper *keeper = timer->data;
	const struct controller_settings *s = &keeper->controller->settings;
	cleanup_free char *path = gs_asprintf(SECRETS "/%s", s->namespace, s->secret);

	if (!keeper->ask)
		keeper->ask = kube_ask(keeper->controller->kube, "GET", path, NULL, NULL, on_read,
				       keeper);
}

/* ---- For others. */

int keeper_start(struct controller *controller, struct gs_err *err)
{
	const struct controller_settings *s = &controller->settings;
	struct keeper *keeper = gs_calloc(1, sizeof(*keeper));
	struct certificate first = { 0 };
	bool changed;
	int r;

	keeper->controller = controller;
	controller->keeper = keeper;
	(void)uv_timer_init(controller->loop, &keeper->timer);
	keeper->timer.data = keeper;
	gs_strv_take(&keeper->names, gs_asprintf("%s.%s.svc", s->service, s->namespace));
	gs_strv_take(&keeper->names,
		     gs_asprintf("%s.%s.svc.cluster.local", s->service, s->namespace));
	r = certificate_renew(&first, &keeper->names, time(NULL), &changed, err);
	if (r == 0)
		r = show(&first, err);
	certificate_free(&first);
	if (r == 0)
		again(keeper, 0);
	return r;
}

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

void keeper_stop(struct controller *controller)
{
	struct keeper *keeper = gs_steal(controller->keeper);

	if (!keeper)
		return;
	kube_ask_cancel(keeper->ask);
	gs_strv_free(&keeper->names);
	certificate_free(&keeper->cert);
	certificate_free(&keeper->asked);
	free(keeper->told);
	uv_close((uv_handle_t *)&keeper->timer, on_closed);
}

void keeper_hurry(struct controller *controller)
{
	if (controller->keeper && !controller->keeper->ask)
		again(controller->keeper, 0);
}

bool keeper_ready(const struct controller *controller)
{
	return controller->keeper && controller->keeper->ready;
}

time_t keeper_end(const struct controller *controller)
{
	return keeper_ready(controller) ? certificate_end(&controller->keeper->cert) : 0;
}
