// SPDX-License-Identifier: Apache-2.0
/*
 * The pods of this node: a list in pages, then one watch after the other from where the last ended.
 * "Efficient detection of changes", Kubernetes API concepts.
 *
 * Which pods were told is kept, so that those that went while nobody watched can be told gone.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kube/impl.h"
#include "common/cleanup.h"
#include "common/xalloc.h"

struct known {
	char *namespace, *name, *uid;
	unsigned int list; /* the list that last told it */
};

struct kube_watch {
	struct kube_request req;
	struct kube_cut cut;
	bool watching; /* else listing */
	char *version; /* where the watch goes on; of a list: "0" any, "" the newest */
	char *next; /* the token of the next page */
	unsigned int list;
	bool brought; /* this watch brought something */
	bool full; /* that some are left out was told */
	struct known *known;
	size_t n_known;
};

/* ---- What is known. */

static void forget(struct kube_watch *watch, size_t i)
{
	free(watch->known[i].namespace);
	free(watch->known[i].name);
	free(watch->known[i].uid);
	watch->known[i] = watch->known[--watch->n_known];
}

/* False: there are too many, and this is a new one. */
static bool note_known(struct kube_watch *watch, const struct kube_pod *pod, bool gone)
{
	size_t i = 0;

	while (i < watch->n_known && strcmp(watch->known[i].uid, pod->uid) != 0)
		i++;
	if (gone) {
		if (i < watch->n_known)
			forget(watch, i);
		return true;
	}
	if (i == watch->n_known && i >= watch->req.kube->tune.pods_max)
		return false;
	if (i == watch->n_known) {
		watch->known = gs_grow(watch->known, i, sizeof(*watch->known));
		watch->known[watch->n_known++] = (struct known){
			.namespace = gs_strdup(pod->namespace),
			.name = gs_strdup(pod->name),
			.uid = gs_strdup(pod->uid),
		};
	}
	watch->known[i].list = watch->list;
	return true;
}

static void tell(struct kube_watch *watch, const struct kube_pod *pod, bool gone)
{
	struct kube *kube = watch->req.kube;

	if (note_known(watch, pod, gone)) {
		if (kube->ops.pod)
			kube->ops.pod(pod, gone, kube->ops.arg);
	} else if (!watch->full) {
		watch->full = true;
		kube_note(kube, "more than %zu pods of this node: the others are left out",
			  kube->tune.pods_max);
	}
}

static void tell_object(struct kube_watch *watch, struct js object, bool gone)
{
	struct kube_pod pod;
	struct gs_err err;

	/* One that can't be read must not keep the others from us. */
	if (kube_pod_read(object, &pod, &err) < 0) {
		kube_note(watch->req.kube, "a pod is left out: %s", err.msg);
		return;
	}
	tell(watch, &pod, gone);
	kube_pod_free(&pod);
}

/* ---- What comes. */

static void set(char **s, char *value)
{
	free(*s);
	*s = value;
}

static int on_item(struct js object, void *arg)
{
	tell_object(arg, object, false);
	return 0;
}

/* An ERROR event has a Status for its object. */
static int on_error(struct js status)
{
	struct js code = { 0 }, reason = { 0 };
	int64_t n = 0;

	(void)js_member(status, "code", &code, NULL);
	(void)js_member(status, "reason", &reason, NULL);
	(void)js_int64(code, &n);
	if (n == 410 || js_string_is(reason, "Expired") || js_string_is(reason, "Gone"))
		return -ESTALE;
	return -EIO;
}

static int on_event(struct js event, void *arg)
{
	static const char *const keys[] = { "type", "object" };
	struct kube_watch *watch = arg;
	struct js v[2], version;
	char *text;

	if (js_members(event, keys, 2, v, NULL) < 0 || !js_is(v[1], JS_OBJECT))
		return -EBADMSG;
	if (js_string_is(v[0], "ERROR"))
		return on_error(v[1]);
	if (js_path(v[1], &version, NULL, "metadata", "resourceVersion", NULL) < 0)
		return -EBADMSG;
	text = js_string(version);
	if (!text || !*text) {
		free(text);
		return -EBADMSG;
	}
	set(&watch->version, text);
	watch->brought = true;
	watch->req.failures = 0;
	if (js_string_is(v[0], "ADDED") || js_string_is(v[0], "MODIFIED"))
		tell_object(watch, v[1], false);
	else if (js_string_is(v[0], "DELETED"))
		tell_object(watch, v[1], true);
	return 0;
}

static int on_data(struct kube_request *req, const char *data, size_t len)
{
	struct kube_watch *watch = req->arg;

	return watch->watching ? kube_cut_lines(&watch->cut, data, len) :
				 kube_cut_list(&watch->cut, data, len);
}

/* ---- The requests. */

static void add_parameter(struct gs_buf *path, const char *name, const char *value)
{
	char *escaped = curl_easy_escape(NULL, value, 0);

	if (!escaped)
		abort();
	gs_buf_addf(path, "&%s=%s", name, escaped);
	curl_free(escaped);
}

static void prepare(struct kube_request *req)
{
	struct kube_watch *watch = req->arg;
	const struct kube_tune *tune = &req->kube->tune;
	struct gs_buf path = { 0 };
	unsigned int seconds;

	kube_cut_reset(&watch->cut);
	watch->cut.object = watch->watching ? on_event : on_item;
	watch->brought = false;
	/* a node's name has nothing to escape, "=" has */
	gs_buf_addf(&path, "/api/v1/pods?fieldSelector=spec.nodeName%%3D%s",
		    req->kube->config.node);
	if (watch->watching) {
		/* All nodes began together, perhaps: they don't come back together. */
		seconds = tune->watch_s + kube_random(tune->watch_s);
		gs_buf_addf(&path, "&watch=1&allowWatchBookmarks=true&timeoutSeconds=%u", seconds);
		req->timeout_ms = (seconds + 30) * 1000;
		req->stall_ms = tune->watch_quiet_ms;
	} else {
		gs_buf_addf(&path, "&limit=%u", tune->page);
		req->timeout_ms = tune->request_ms;
		req->stall_ms = tune->stall_ms;
	}
	req->quiet_ok = watch->watching;
	if (watch->next)
		add_parameter(&path, "continue", watch->next);
	else if (*watch->version)
		add_parameter(&path, "resourceVersion", watch->version);
	set(&req->path, gs_buf_steal(&path));
}

/* From the start, and not from a cache that may be behind what was seen already. */
static void list_anew(struct kube_watch *watch)
{
	watch->watching = false;
	set(&watch->version, gs_strdup(""));
	set(&watch->next, NULL);
	watch->list++;
}

static void list_complete(struct kube_watch *watch)
{
	struct kube *kube = watch->req.kube;
	size_t i = 0;

	while (i < watch->n_known) {
		struct known *known = &watch->known[i];
		struct kube_pod pod = { .namespace = known->namespace,
					.name = known->name,
					.uid = known->uid };

		if (known->list == watch->list) {
			i++;
			continue;
		}
		if (kube->ops.pod)
			kube->ops.pod(&pod, true, kube->ops.arg);
		forget(watch, i);
	}
	if (kube->ops.synced)
		kube->ops.synced(kube->ops.arg);
}

/* What stood around the items: where the next page or the watch begins. */
static int page_done(struct kube_watch *watch)
{
	struct js list, token, version;
	char *next;

	if (watch->cut.item || watch->cut.rest.len == 0 ||
	    js_parse(watch->cut.rest.data, watch->cut.rest.len, &list, NULL) < 0 ||
	    js_path(list, &version, NULL, "metadata", "resourceVersion", NULL) < 0 ||
	    js_path(list, &token, NULL, "metadata", "continue", NULL) < 0)
		return -EBADMSG;
	next = js_string(token);
	if (next && *next) {
		set(&watch->next, next);
		return 0;
	}
	free(next);
	next = js_string(version);
	if (!next || !*next) {
		free(next);
		return -EBADMSG;
	}
	set(&watch->version, next);
	set(&watch->next, NULL);
	watch->watching = true;
	list_complete(watch);
	return 0;
}

/* Goes on at once after a watch that was worth it; a server that ends each at once gets pauses. */
static void go_on(struct kube_watch *watch)
{
	uint64_t lasted = kube_now(watch->req.kube) - watch->req.begin;

	if (watch->brought || lasted >= watch->req.kube->tune.watch_short_ms)
		kube_request_start(&watch->req, 0);
	else
		kube_request_again(&watch->req, NULL, 0);
}

static void on_done(struct kube_request *req, const struct kube_answer *answer)
{
	struct kube_watch *watch = req->arg;
	const char *what = watch->watching ? "watch of pods" : "list of pods";
	char *why;
	int r = answer->r;

	if (watch->watching && (r == 0 || r == -ESTALE)) {
		if (r == -ESTALE)
			list_anew(watch);
		go_on(watch);
		return;
	}
	if (r == 0)
		r = page_done(watch);
	if (r == 0) {
		kube_request_start(req, 0);
		return;
	}
	if (r == -ESTALE || r == -EBADMSG)
		list_anew(watch);
	why = answer->err.msg[0] ? gs_strdup(answer->err.msg) :
				   gs_asprintf("%s: the API server sent %s", what,
					       r == -EBADMSG ? "no valid JSON" : "an error");
	kube_request_again(req, why, 0);
	free(why);
}

void kube_watch_pods(struct kube *kube)
{
	struct kube_watch *watch;

	if (kube->watch || kube->dying)
		return;
	watch = gs_calloc(1, sizeof(*watch));
	kube->watch = watch;
	/* The first list may come from the server's cache: all nodes may begin at once. */
	watch->version = gs_strdup("0");
	watch->list = 1;
	watch->cut.kube = kube;
	watch->cut.arg = watch;
	watch->req.method = "GET";
	watch->req.prepare = prepare;
	watch->req.data = on_data;
	watch->req.done = on_done;
	watch->req.arg = watch;
	kube_request_init(kube, &watch->req);
	kube_request_start(&watch->req, 0);
}

static void free_watch(struct kube_request *req)
{
	struct kube_watch *watch = req->arg;

	while (watch->n_known > 0)
		forget(watch, watch->n_known - 1);
	free(watch->known);
	free(watch->version);
	free(watch->next);
	kube_cut_reset(&watch->cut);
	free(watch);
}

void kube_watch_close(struct kube *kube)
{
	struct kube_watch *watch = gs_steal(kube->watch);

	if (watch)
		kube_request_close(&watch->req, free_watch);
}
