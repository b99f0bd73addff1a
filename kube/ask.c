// SPDX-License-Identifier: Apache-2.0
/* Requests of any kind, each asked for once and answered as a whole. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/xalloc.h"
#include "kube/impl.h"

/* What etcd takes as one object is less. */
#define ANSWER_MAX (4 << 20)

struct kube_ask {
	struct kube_request req;
	struct kube_ask *next, **at;
	struct gs_buf answer;
	void (*done)(const struct kube_reply *reply, void *arg);
	void *arg;
};

static void free_ask(struct kube_request *req)
{
	struct kube_ask *ask = req->arg;

	gs_buf_free(&ask->answer);
	free(ask);
}

static void take_out(struct kube_ask *ask)
{
	*ask->at = ask->next;
	if (ask->next)
		ask->next->at = ask->at;
	kube_request_close(&ask->req, free_ask);
}

static void prepare(struct kube_request *req)
{
	gs_buf_free(&((struct kube_ask *)req->arg)->answer);
}

static int on_data(struct kube_request *req, const char *data, size_t len)
{
	struct kube_ask *ask = req->arg;

	if (ask->answer.len + len > ANSWER_MAX)
		return -E2BIG;
	gs_buf_add(&ask->answer, data, len);
	return 0;
}

static void tell(struct kube_ask *ask, int r, long status, const struct gs_err *err)
{
	size_t len = r == 0 ? ask->answer.len : 0;
	cleanup_free char *text = gs_buf_steal(&ask->answer);
	struct kube_reply reply = {
		.r = r,
		.status = status,
		.text = r == 0 ? text : "",
		.len = len,
		.err = err,
	};

	take_out(ask);
	ask->done(&reply, ask->arg);
}

static void on_done(struct kube_request *req, const struct kube_answer *answer)
{
	struct gs_err err = answer->err;

	kube_request_well(req);
	if (answer->r < 0 && !err.msg[0])
		(void)gs_err_errno(&err, -answer->r, "%s %.*s", req->method,
				   (int)strcspn(req->path, "?"), req->path);
	tell(req->arg, answer->r, answer->status, &err);
}

struct kube_ask *kube_ask(struct kube *kube, const char *method, const char *path,
			  const char *content_type, const char *body,
			  void (*done)(const struct kube_reply *reply, void *arg), void *arg)
{
	struct kube_ask *ask;

	if (kube->dying)
		return NULL;
	ask = gs_calloc(1, sizeof(*ask));
	ask->done = done;
	ask->arg = arg;
	ask->req.method = method;
	ask->req.content_type = content_type;
	ask->req.path = gs_strdup(path);
	if (body)
		gs_buf_adds(&ask->req.body, body);
	ask->req.timeout_ms = kube->tune.request_ms;
	ask->req.stall_ms = kube->tune.stall_ms;
	ask->req.prepare = prepare;
	ask->req.data = on_data;
	ask->req.done = on_done;
	ask->req.arg = ask;
	kube_request_init(kube, &ask->req);
	ask->next = kube->asks;
	ask->at = &kube->asks;
	if (ask->next)
		ask->next->at = &ask->next;
	kube->asks = ask;
	kube_request_start(&ask->req, 0);
	return ask;
}

void kube_ask_cancel(struct kube_ask *ask)
{
	if (ask)
		take_out(ask);
}

void kube_ask_close(struct kube *kube)
{
	while (kube->asks)
		take_out(kube->asks);
}
