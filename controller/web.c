// SPDX-License-Identifier: Apache-2.0
/*
 * The pages. A question about a pod in a namespace that we have not heard of yet waits for a
 * moment: who makes both in one go must not be refused, nor go without what the namespace says.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/httpd.h"
#include "common/log.h"
#include "common/xalloc.h"
#include "controller/access.h"
#include "controller/figures.h"
#include "controller/keeper.h"
#include "controller/spaces.h"
#include "controller/web.h"

/*
 * API servers hold a few each, some more in a burst, and all of them may come from the one address
 * of a proxy; all of Prometheus and kubelets are few beside them.
 */
#define CONNECTIONS 256
#define PER_ADDRESS 128
/* Questions in memory at a time. */
#define BODIES_MAX ((size_t)32 << 20)
/* The API server keeps idle connections for 90 s: it must not meet one that we just close. */
#define KEEP_S 120
/* How long a question waits for its namespace; the API server waits for 10 s. */
#define WAIT_MS 3000
/* A longer one does not wait, but is told to come again: strangers' must not fill BODIES_MAX. */
#define WAIT_BODY_MAX ((size_t)128 << 10)

struct waiting {
	struct waiting *next;
	struct httpd_request *request;
	char *space; /* the namespace in question; NULL: none is told */
	uint64_t until;
};

struct web {
	struct controller *controller;
	struct httpd *httpd;
	struct waiting *waiting;
	uv_timer_t timer;
	uint16_t port;
};

static const char plain[] = "text/plain; charset=utf-8";

static void answer_line(struct httpd_request *request, unsigned int status, const char *line)
{
	struct gs_buf text = { 0 };

	gs_buf_adds(&text, line);
	gs_buf_addc(&text, '\n');
	httpd_answer(request, status, plain, NULL, &text);
}

/* ---- Questions. */

/* The namespace in question; NULL: none is told, or it is no question at all. */
static char *space_of(const struct gs_buf *body)
{
	struct js review, space;

	if (js_parse(body->data, body->len, &review, NULL) < 0 ||
	    js_path(review, &space, NULL, "request", "namespace", NULL) < 0)
		return NULL;
	return js_string(space);
}

static const char *kind_of(const json_t *answer)
{
	const json_t *response = json_object_get(answer, "response");

	if (!json_is_true(json_object_get(response, "allowed")))
		return "refused";
	return json_object_get(response, "patch") ? "changed" : "allowed";
}

static void answer_review(struct web *web, struct httpd_request *request, const json_t *space)
{
	const struct gs_buf *body = httpd_body(request);
	struct controller *controller = web->controller;
	cleanup_json json_t *answer = NULL;
	struct gs_buf text = { 0 };
	struct gs_err err;
	char *dump;

	if (admission_review(&controller->settings.policy, space, body->data, body->len, &answer,
			     &err) < 0) {
		figures_review(controller, "failed");
		answer_line(request, 400, err.msg);
		return;
	}
	figures_review(controller, kind_of(answer));
	dump = json_dumps(answer, JSON_COMPACT);
	gs_buf_adds(&text, dump ? dump : "");
	free(dump);
	httpd_answer(request, 200, "application/json", NULL, &text);
}

/* False: its namespace @name (NULL: none) is not known. */
static bool try_review(struct web *web, struct httpd_request *request, const char *name)
{
	const json_t *space = NULL;

	if (!spaces_synced(web->controller))
		return false;
	if (name && *name) {
		space = spaces_get(web->controller, name);
		if (!space)
			return false;
	}
	answer_review(web, request, space);
	return true;
}

static void give_up(struct web *web, struct httpd_request *request)
{
	figures_review(web->controller, "failed");
	answer_line(request, 503, "what the namespace says is not known yet");
}

static void on_timer(uv_timer_t *timer);

static void review(struct web *web, struct httpd_request *request)
{
	cleanup_free char *space = space_of(httpd_body(request));
	struct waiting *w;

	if (try_review(web, request, space))
		return;
	if (httpd_body(request)->len > WAIT_BODY_MAX) {
		give_up(web, request);
		return;
	}
	w = gs_calloc(1, sizeof(*w));
	w->request = request;
	w->space = gs_steal(space);
	w->until = uv_now(web->controller->loop) + WAIT_MS;
	w->next = web->waiting;
	web->waiting = w;
	(void)uv_timer_start(&web->timer, on_timer, 100, 100);
}

/* Tries again; those whose time is over are answered so. */
static void look(struct web *web, uint64_t now)
{
	struct waiting **at = &web->waiting;

	while (*at) {
		struct waiting *w = *at;

		if (now >= w->until)
			give_up(web, w->request);
		else if (!try_review(web, w->request, w->space)) {
			at = &w->next;
			continue;
		}
		*at = w->next;
		free(w->space);
		free(w);
	}
	if (!web->waiting)
		(void)uv_timer_stop(&web->timer);
}

static void on_timer(uv_timer_t *timer)
{
	look(timer->data, uv_now(timer->loop));
}

void web_spaces_changed(struct controller *controller)
{
	if (controller->web && controller->web->waiting)
		look(controller->web, uv_now(controller->loop));
}

/* ---- Pages. */

static void on_ready(struct web *web, struct httpd_request *request)
{
	if (!keeper_ready(web->controller))
		answer_line(request, 503, "no certificate that the API server trusts");
	else if (!spaces_synced(web->controller))
		answer_line(request, 503, "namespaces are not known yet");
	else
		answer_line(request, 200, "ok");
}

static void on_access(unsigned int status, void *arg)
{
	struct httpd_request *request = arg;
	struct web *web = httpd_data(request);
	struct gs_buf text = { 0 };

	if (status == 200) {
		figures_text(web->controller, &text);
		httpd_answer(request, 200, "text/plain; version=0.0.4; charset=utf-8", NULL, &text);
	} else if (status == 401) {
		answer_line(request, status, "a token of the cluster's is needed");
	} else if (status == 403) {
		answer_line(request, status, "this account may not get /metrics");
	} else {
		answer_line(request, status, "who may read this can't be told now");
	}
}

static void metrics(struct web *web, struct httpd_request *request)
{
	httpd_set_data(request, web);
	if (web->controller->access)
		access_ask(web->controller, httpd_header(request, "Authorization"), on_access,
			   request);
	else
		on_access(200, request);
}

static void on_request(struct httpd_request *request, void *arg)
{
	const char *path = httpd_path(request), *method = httpd_method(request);
	bool post = strcmp(method, "POST") == 0, admit = strcmp(path, "/admit") == 0;
	bool get = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
	struct gs_buf text = { 0 };
	struct web *web = arg;

	if (!admit && strcmp(path, "/metrics") != 0 && strcmp(path, "/healthz") != 0 &&
	    strcmp(path, "/readyz") != 0) {
		answer_line(request, 404, "no such page");
	} else if (admit ? !post : !get) {
		gs_buf_adds(&text, admit ? "only POST\n" : "only GET and HEAD\n");
		httpd_answer(request, 405, plain, admit ? "POST" : "GET, HEAD", &text);
	} else if (admit) {
		review(web, request);
	} else if (strcmp(path, "/metrics") == 0) {
		metrics(web, request);
	} else if (strcmp(path, "/healthz") == 0) {
		answer_line(request, 200, "ok");
	} else {
		on_ready(web, request);
	}
}

int web_start(struct controller *controller, struct gs_err *err)
{
	const struct controller_settings *s = &controller->settings;
	struct web *web = gs_calloc(1, sizeof(*web));
	const struct httpd_config config = {
		.connections = CONNECTIONS,
		.per_address = PER_ADDRESS,
		.body_max = ADMISSION_MAX,
		.bodies_max = BODIES_MAX,
		.keep_s = KEEP_S,
		.certificate = keeper_certificate,
		.request = on_request,
		.arg = web,
	};
	int fd, r;

	web->controller = controller;
	r = httpd_listen(s->address, (uint16_t)s->port, "the webhook", false, &fd, &web->port, err);
	if (r == 0)
		r = httpd_new(controller->loop, fd, &config, &web->httpd, err);
	if (r < 0) {
		free(web);
		return r;
	}
	(void)uv_timer_init(controller->loop, &web->timer);
	web->timer.data = web;
	controller->web = web;
	if (s->metrics_auth)
		access_start(controller);
	return 0;
}

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

void web_stop(struct controller *controller)
{
	struct web *web = gs_steal(controller->web);

	if (!web)
		return;
	look(web, UINT64_MAX);
	access_stop(controller);
	httpd_free(web->httpd);
	uv_close((uv_handle_t *)&web->timer, on_closed);
}

uint16_t web_port(const struct controller *controller)
{
	return controller->web->port;
}
