// SPDX-License-Identifier: Apache-2.0
/*
 * A kind of objects: a list in pages, then one watch after the other from where the last ended; or
 * a list alone.
 * "Efficient detection of changes", Kubernetes API concepts.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/xalloc.h"
#include "kube/impl.h"

struct kube_watch {
	struct kube_request req;
	struct kube_watch *next_watch;
	struct kube_cut cut;
	struct kube_watch_ops ops;
	char *collection, *query;
	const char *what;
	unsigned int page;
	bool once; /* a list alone */
	bool watching; /* else listing; of a list alone: it is complete */
	char *version; /* where the watch goes on; of a list: "0" any, "" the newest */
	char *next; /* the token of the next page */
	bool listing; /* that a list begins was told */
	bool brought; /* this watch brought something, and not only where it is */
	unsigned int expired; /* watches in a row that soon were too old to go on */
};

/* ---- What comes. */

static void set(char **s, char *value)
{
	free(*s);
	*s = value;
}

static void tell(struct kube_watch *watch, struct js object, bool gone)
{
	watch->ops.object(object, gone, watch->ops.arg);
}

static int on_item(struct js object, void *arg)
{
	tell(arg, object, false);
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
	if (js_string_is(v[0], "BOOKMARK"))
		return 0;
	watch->brought = true;
	watch->req.failures = 0;
	if (js_string_is(v[0], "ADDED") || js_string_is(v[0], "MODIFIED"))
		tell(watch, v[1], false);
	else if (js_string_is(v[0], "DELETED"))
		tell(watch, v[1], true);
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
	gs_buf_addf(&path, "%s?%s%s", watch->collection, watch->query ? watch->query : "",
		    watch->query ? "&" : "");
	if (watch->watching) {
		/* All nodes began together, perhaps: they don't come back together. */
		seconds = tune->watch_s + kube_random(tune->watch_s);
		gs_buf_addf(&path, "watch=1&allowWatchBookmarks=true&timeoutSeconds=%u", seconds);
		req->timeout_ms = (seconds + 30) * 1000;
		req->stall_ms = tune->watch_quiet_ms;
	} else {
		if (!watch->listing && watch->ops.begin)
			watch->ops.begin(watch->ops.arg);
		watch->listing = true;
		gs_buf_addf(&path, "limit=%u", watch->page);
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
	watch->listing = false;
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
	watch->listing = false;
	return 0;
}

static void free_watch(struct kube_request *req)
{
	struct kube_watch *watch = req->arg;

	free(watch->collection);
	free(watch->query);
	free(watch->version);
	free(watch->next);
	kube_cut_reset(&watch->cut);
	free(watch);
}

static void take_out(struct kube_watch *watch)
{
	struct kube_watch **at = &watch->req.kube->watches;

	while (*at != watch)
		at = &(*at)->next_watch;
	*at = watch->next_watch;
	kube_request_close(&watch->req, free_watch);
}

static bool lasted(const struct kube_watch *watch)
{
	const struct kube *kube = watch->req.kube;

	return kube_now(kube) - watch->req.begin >= kube->tune.watch_short_ms;
}

/* Goes on at once after a watch that was worth it; a server that ends each at once gets pauses. */
static void go_on(struct kube_watch *watch)
{
	if (watch->brought || lasted(watch))
		kube_request_start(&watch->req, 0);
	else
		kube_request_again(&watch->req, NULL, 0);
}

/* A server that can't keep up is not helped by lists: each that comes soon waits for longer. */
static void too_old(struct kube_watch *watch)
{
	watch->expired = lasted(watch) ? 0 : watch->expired + 1;
	watch->req.failures = watch->expired;
	list_anew(watch);
	kube_request_again(&watch->req, NULL, 0);
}

static void on_done(struct kube_request *req, const struct kube_answer *answer)
{
	struct kube_watch *watch = req->arg;
	const char *what = watch->watching ? "watch" : "list";
	char *why;
	int r = answer->r;

	if (watch->watching && (r == 0 || r == -ESTALE)) {
		if (r == -ESTALE)
			too_old(watch);
		else
			go_on(watch);
		return;
	}
	if (r == 0)
		r = page_done(watch);
	if (r == 0) {
		const struct kube_watch_ops ops = watch->ops;
		bool complete = watch->watching;

		if (complete && watch->once)
			take_out(watch);
		else
			kube_request_start(req, 0);
		if (complete && ops.synced)
			ops.synced(ops.arg);
		return;
	}
	/* -EINVAL: it would not take that token the next time, either */
	if (r == -ESTALE || r == -EBADMSG || (r == -EINVAL && watch->next))
		list_anew(watch);
	why = answer->err.msg[0] ?
		      gs_strdup(answer->err.msg) :
		      gs_asprintf("%s of %ss: the API server sent %s", what, watch->what,
				  r == -EBADMSG ? "no valid JSON" : "an error");
	kube_request_again(req, why, 0);
	free(why);
}

static struct kube_watch *start(struct kube *kube, const char *collection, const char *query,
				const char *what, unsigned int page,
				const struct kube_watch_ops *ops, bool once)
{
	struct kube_watch *watch;

	if (kube->dying)
		return NULL;
	watch = gs_calloc(1, sizeof(*watch));
	watch->next_watch = kube->watches;
	kube->watches = watch;
	watch->ops = *ops;
	watch->once = once;
	watch->collection = gs_strdup(collection);
	watch->query = query ? gs_strdup(query) : NULL;
	watch->what = what;
	watch->page = page;
	/*
	 * A watch's first list may come from the server's cache: all nodes may begin at once. Who
	 * lists once wants to know how things are.
	 */
	watch->version = gs_strdup(once ? "" : "0");
	watch->cut.kube = kube;
	watch->cut.what = what;
	watch->cut.arg = watch;
	watch->req.method = "GET";
	watch->req.prepare = prepare;
	watch->req.data = on_data;
	watch->req.done = on_done;
	watch->req.arg = watch;
	kube_request_init(kube, &watch->req);
	kube_request_start(&watch->req, 0);
	return watch;
}

void kube_watch(struct kube *kube, const char *collection, const char *query, const char *what,
		unsigned int page, const struct kube_watch_ops *ops)
{
	(void)start(kube, collection, query, what, page, ops, false);
}

struct kube_watch *kube_list(struct kube *kube, const char *collection, const char *query,
			     const char *what, unsigned int page, const struct kube_watch_ops *ops)
{
	return start(kube, collection, query, what, page, ops, true);
}

void kube_list_cancel(struct kube_watch *list)
{
	if (list)
		take_out(list);
}

void kube_watch_close(struct kube *kube)
{
	while (kube->watches)
		take_out(kube->watches);
}
