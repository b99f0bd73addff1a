// SPDX-License-Identifier: Apache-2.0
/* Deletes pods, a few at a time and in turn. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kube/impl.h"
#include "common/xalloc.h"

struct kube_delete {
	struct kube_request req;
	struct kube_delete *next;
	char *namespace, *name;
	void (*done)(int result, const struct gs_err *err, void *arg);
	void *arg;
	bool active;
	int refused; /* errno value: it is never asked for */
};

static void free_delete(struct kube_request *req)
{
	struct kube_delete *del = req->arg;

	free(del->namespace);
	free(del->name);
	free(del);
}

static void start_next(struct kube *kube)
{
	struct kube_delete *del = kube->deletes;

	while (del && del->active)
		del = del->next;
	if (!del || kube->n_deletes_active >= kube->tune.deletes_active)
		return;
	del->active = true;
	kube->n_deletes_active++;
	kube_request_start(&del->req, 0);
}

static void finish(struct kube_delete *del, int r, const struct gs_err *err)
{
	struct kube *kube = del->req.kube;
	struct kube_delete **at = &kube->deletes;

	while (*at != del)
		at = &(*at)->next;
	*at = del->next;
	if (!*at)
		kube->deletes_end = at;
	kube->n_deletes--;
	if (del->active)
		kube->n_deletes_active--;
	if (del->done)
		del->done(r, r < 0 ? err : NULL, del->arg);
	kube_request_close(&del->req, free_delete);
}

/*
 * 409 is the answer to a UID that is another one now ("the UID in the precondition (a) does not
 * match the UID in record (b)" or "Precondition failed: UID in precondition: a, UID in object meta:
 * b", k8s.io/apiserver registry/rest/delete.go and storage/interfaces.go), but also to a pod that
 * changed at that very moment.
 */
static bool is_another(const struct kube_answer *answer)
{
	return answer->status == 409 && strstr(answer->message, "UID in") &&
	       strstr(answer->message, "recondition");
}

static void on_done(struct kube_request *req, const struct kube_answer *answer)
{
	struct kube_delete *del = req->arg;
	struct kube *kube = req->kube;
	struct gs_err err = answer->err;
	int r = answer->r;

	if (answer->status == 404 || is_another(answer))
		r = 0;
	if (r < 0 && answer->status == 409) {
		kube_request_again(req, NULL, 0);
		return;
	}
	kube_request_well(req);
	if (r < 0)
		(void)gs_err_prefix(&err, "pod %s/%s is not deleted", del->namespace, del->name);
	finish(del, r, &err);
	start_next(kube);
}

static void on_refused(uv_timer_t *timer)
{
	struct kube_request *req = timer->data;
	struct kube_delete *del = req->arg;
	struct kube *kube = req->kube;
	struct gs_err err;

	(void)gs_err_set(&err, del->refused, "pod %s/%s is not deleted: %s", del->namespace,
			 del->name,
			 del->refused == ENOBUFS ? "too many wait to be deleted" :
						   "that is no name of a pod");
	finish(del, -del->refused, &err);
	/* it counted as under way, and another one may wait for that */
	start_next(kube);
}

void kube_delete_options(struct gs_buf *body, const char *uid, const char *version)
{
	gs_buf_adds(body, "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\","
			  "\"gracePeriodSeconds\":0,\"propagationPolicy\":\"Background\","
			  "\"preconditions\":{\"uid\":");
	gs_buf_add_json(body, uid);
	if (version) {
		gs_buf_adds(body, ",\"resourceVersion\":");
		gs_buf_add_json(body, version);
	}
	gs_buf_adds(body, "}}");
}

void kube_delete_pod(struct kube *kube, const char *namespace, const char *name, const char *uid,
		     void (*done)(int result, const struct gs_err *err, void *arg), void *arg)
{
	struct kube_delete *del;

	if (kube->dying)
		return;
	del = gs_calloc(1, sizeof(*del));
	del->namespace = gs_strdup(namespace);
	del->name = gs_strdup(name);
	del->done = done;
	del->arg = arg;
	/* Without a UID it might be another pod of that name. */
	if (!kube_name_ok(namespace) || !kube_name_ok(name) || !*uid)
		del->refused = EINVAL;
	else if (kube->n_deletes >= kube->tune.deletes_max)
		del->refused = ENOBUFS;
	del->req.method = "DELETE";
	del->req.content_type = "application/json";
	del->req.timeout_ms = kube->tune.request_ms;
	del->req.forbidden_ms = kube->tune.forbidden_ms;
	del->req.stall_ms = kube->tune.stall_ms;
	del->req.done = on_done;
	del->req.arg = del;
	kube_request_init(kube, &del->req);
	*kube->deletes_end = del;
	kube->deletes_end = &del->next;
	kube->n_deletes++;
	if (del->refused != 0) {
		/* From the loop, as everything is told. */
		del->active = true;
		kube->n_deletes_active++;
		(void)uv_timer_start(&del->req.timer, on_refused, 0, 0);
		return;
	}
	del->req.path = gs_asprintf("/api/v1/namespaces/%s/pods/%s", namespace, name);
	kube_delete_options(&del->req.body, uid, NULL);
	start_next(kube);
}

void kube_delete_close(struct kube *kube)
{
	struct gs_err err;

	(void)gs_err_set(&err, ECANCELED, "the agent ends");
	while (kube->deletes)
		finish(kube->deletes, -ECANCELED, &err);
}
