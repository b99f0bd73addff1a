// SPDX-License-Identifier: Apache-2.0
/* The Kubernetes client's beginning and end. */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kube/impl.h"
#include "common/xalloc.h"

#define ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount/"

static const struct kube_tune tune = {
	.backoff_min_ms = 500,
	.backoff_max_ms = 30000,
	.retry_after_max_ms = 300000,
	.forbidden_ms = 60000,
	.connect_ms = 10000,
	.request_ms = 120000,
	.stall_ms = 30000,
	.ca_s = 60,
	.watch_s = 300,
	.watch_quiet_ms = 180000, /* bookmarks come about every minute */
	.watch_short_ms = 5000,
	.page = 100,
	.pods_max = 4096,
	.object_max = 4 << 20,
	.deletes_max = 1024,
	.deletes_active = 4,
	.events_max = 128,
	.event_window_ms = 600000,
	.event_gap_ms = 200,
};

bool kube_name_ok(const char *name)
{
	size_t n = strlen(name);

	if (n == 0 || n > 253 || name[0] == '.' || name[0] == '-')
		return false;
	for (const char *c = name; *c; c++)
		if (!islower((unsigned char)*c) && !isdigit((unsigned char)*c) && *c != '-' &&
		    (*c != '.' || c[1] == '.'))
			return false;
	return true;
}

unsigned int kube_random(unsigned int n)
{
	unsigned int r = 0;

	(void)uv_random(NULL, NULL, &r, sizeof(r), 0, NULL);
	return r % n;
}

uint64_t kube_now(const struct kube *kube)
{
	return uv_now(kube->loop);
}

void kube_note(struct kube *kube, const char *fmt, ...)
{
	struct gs_err text = { 0 };
	va_list ap;
	char *s;

	if (!kube->ops.note)
		return;
	va_start(ap, fmt);
	if (vasprintf(&s, fmt, ap) >= 0) {
		/* by way of an error, for its one clean line */
		(void)gs_err_set(&text, EINVAL, "%s", s);
		kube->ops.note(text.msg, kube->ops.arg);
		free(s);
	}
	va_end(ap);
}

int kube_config_in_cluster(struct kube_config *config, struct gs_err *err)
{
	const char *host = getenv("KUBERNETES_SERVICE_HOST");
	const char *port = getenv("KUBERNETES_SERVICE_PORT");
	const char *node = getenv("NODE_NAME");

	if (!config->server && (!host || !*host || !port || !*port))
		return gs_err_set(err, ENOENT,
				  "no API server is set, and KUBERNETES_SERVICE_HOST and "
				  "KUBERNETES_SERVICE_PORT tell none");
	if (!config->server) {
		config->server = gs_asprintf(
			strchr(host, ':') ? "https://[%s]:%s" : "https://%s:%s", host, port);
		/* The cluster's own address has the cluster's own authority. */
		if (!config->ca_file)
			config->ca_file = gs_strdup(ACCOUNT "ca.crt");
	}
	if (!config->token_file)
		config->token_file = gs_strdup(ACCOUNT "token");
	if (!config->node && node && *node)
		config->node = gs_strdup(node);
	return 0;
}

void kube_config_free(struct kube_config *config)
{
	free(config->server);
	free(config->ca_file);
	free(config->token_file);
	free(config->node);
	free(config->component);
	free(config->instance);
	*config = (struct kube_config){ 0 };
}

static bool is_this_host(const char *host)
{
	unsigned char addr[4];

	return strcmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0 ||
	       (inet_pton(AF_INET, host, addr) == 1 && addr[0] == 127);
}

static int check_url(CURLU *url, const char *server, struct gs_err *err)
{
	static const CURLUPart none[] = { CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_QUERY,
					  CURLUPART_FRAGMENT };
	char *scheme = NULL, *host = NULL, *part;
	int r = 0;

	if (curl_url_set(url, CURLUPART_URL, server, 0) != CURLUE_OK ||
	    curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK ||
	    curl_url_get(url, CURLUPART_HOST, &host, 0) != CURLUE_OK)
		r = gs_err_set(err, EINVAL, "API server %s: no URL", server);
	else if (strcmp(scheme, "https") != 0 && strcmp(scheme, "http") != 0)
		r = gs_err_set(err, EINVAL, "API server %s: must begin with https://", server);
	else if (strcmp(scheme, "http") == 0 && !is_this_host(host))
		r = gs_err_set(err, EINVAL,
			       "API server %s: without TLS the token would travel in the clear",
			       server);
	for (size_t i = 0; r == 0 && i < sizeof(none) / sizeof(none[0]); i++) {
		if (curl_url_get(url, none[i], &part, 0) != CURLUE_OK)
			continue;
		curl_free(part);
		r = gs_err_set(err, EINVAL,
			       "API server: its URL has a user, password, query or fragment");
	}
	curl_free(scheme);
	curl_free(host);
	return r;
}

static int check_config(const struct kube_config *config, struct gs_err *err)
{
	CURLU *url;
	int r;

	if (!config->server)
		return gs_err_set(err, EINVAL, "no API server is set");
	if (!config->token_file)
		return gs_err_set(err, EINVAL, "no token file is set");
	if (config->node && !kube_name_ok(config->node))
		return gs_err_set(err, EINVAL, "'%s' is no node's name", config->node);
	if (!(curl_version_info(CURLVERSION_NOW)->features & CURL_VERSION_ASYNCHDNS))
		return gs_err_set(err, ENOTSUP, "libcurl was built without asynchronous DNS");
	url = curl_url();
	if (!url)
		abort();
	r = check_url(url, config->server, err);
	curl_url_cleanup(url);
	return r;
}

static char *copy(const char *s)
{
	return s ? gs_strdup(s) : NULL;
}

int kube_new(uv_loop_t *loop, const struct kube_config *config, const struct kube_ops *ops,
	     struct kube **ret, struct gs_err *err)
{
	struct kube *kube;
	size_t n;
	int r;

	if (curl_global_init(CURL_GLOBAL_DEFAULT) != 0)
		return gs_err_set(err, ENOTSUP, "libcurl does not start");
	r = check_config(config, err);
	if (r < 0) {
		curl_global_cleanup();
		return r;
	}
	kube = gs_calloc(1, sizeof(*kube));
	kube->loop = loop;
	kube->ops = *ops;
	kube->tune = tune;
	kube->health = -1;
	kube->deletes_end = &kube->deletes;
	kube->config = (struct kube_config){
		.server = copy(config->server),
		.ca_file = copy(config->ca_file),
		.token_file = copy(config->token_file),
		.node = copy(config->node),
		.component = copy(config->component ? config->component : "gpushared"),
		.instance = copy(config->instance ? config->instance : config->node),
	};
	n = strlen(kube->config.server);
	while (n > 0 && kube->config.server[n - 1] == '/')
		kube->config.server[--n] = '\0';
	kube->user_agent = gs_asprintf("%s/%s", kube->config.component, GPUSHARE_VERSION);
	r = kube_loop_init(kube, err);
	if (r < 0) {
		kube_free(kube);
		return r;
	}
	*ret = kube;
	return 0;
}

static void free_now(struct kube *kube)
{
	kube_token_forget(kube);
	kube_config_free(&kube->config);
	free(kube->user_agent);
	free(kube);
	curl_global_cleanup();
}

void kube_handle_closed(struct kube *kube)
{
	if (--kube->n_handles == 0 && kube->dying)
		free_now(kube);
}

void kube_free(struct kube *kube)
{
	if (!kube)
		return;
	/* Nobody is told or asks for anything any more, but for the deletes' ends. */
	kube->dying = true;
	kube->ops = (struct kube_ops){ 0 };
	kube_watch_close(kube);
	kube_pods_free(kube);
	kube_ask_close(kube);
	kube_event_close(kube);
	kube_delete_close(kube);
	kube_loop_close(kube);
	if (kube->n_handles == 0)
		free_now(kube);
}
