// SPDX-License-Identifier: Apache-2.0
/*
 * Events on pods. Each kind is kept for a time with its count: the same one again changes the
 * object at the server, and what is repeated while a request is under way costs no further one.
 * Kubernetes API, core/v1 Event.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kube/impl.h"
#include "common/cleanup.h"
#include "common/utf8.h"
#include "common/xalloc.h"

#define MESSAGE_MAX 1024 /* API server's bound */
#define NAME_MAX_POD 230 /* of 253, with a dot and 16 digits */

struct event {
	struct event *next;
	char *namespace, *pod, *uid, *type, *reason, *message;
	char *name; /* of the Event object */
	time_t first, last;
	uint64_t begin; /* loop's clock */
	unsigned int count, told; /* how often; as the server knows it */
	bool made; /* the server has the object */
};

struct kube_events {
	struct kube_request req;
	struct event *first, *sending; /* oldest first */
	unsigned int n;
	unsigned int count; /* what the request under way tells */
	uint64_t last_ms; /* when the last one began; 0: never */
};

static void event_free(struct event *e)
{
	free(e->namespace);
	free(e->pod);
	free(e->uid);
	free(e->type);
	free(e->reason);
	free(e->message);
	free(e->name);
	free(e);
}

/* Takes @e out of the list and frees it. */
static void take_out(struct kube_events *events, struct event *e)
{
	struct event **at = &events->first;

	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
	events->n--;
	event_free(e);
}

/* ---- What is sent. */

static void add_member(struct gs_buf *buf, const char *key, const char *value)
{
	gs_buf_addf(buf, "\"%s\":", key);
	gs_buf_add_json(buf, value);
	gs_buf_addc(buf, ',');
}

static void add_time(struct gs_buf *buf, const char *key, time_t t)
{
	char text[32];
	struct tm tm;

	(void)gmtime_r(&t, &tm);
	(void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	add_member(buf, key, text);
}

static void write_event(const struct kube *kube, const struct event *e, struct gs_buf *buf)
{
	gs_buf_adds(buf, "{\"kind\":\"Event\",\"apiVersion\":\"v1\",\"metadata\":{");
	add_member(buf, "namespace", e->namespace);
	gs_buf_adds(buf, "\"name\":");
	gs_buf_add_json(buf, e->name);
	gs_buf_adds(buf, "},\"involvedObject\":{\"kind\":\"Pod\",\"apiVersion\":\"v1\",");
	add_member(buf, "namespace", e->namespace);
	add_member(buf, "name", e->pod);
	gs_buf_adds(buf, "\"uid\":");
	gs_buf_add_json(buf, e->uid);
	gs_buf_adds(buf, "},\"source\":{");
	add_member(buf, "component", kube->config.component);
	gs_buf_adds(buf, "\"host\":");
	gs_buf_add_json(buf, kube->config.node ? kube->config.node : "");
	gs_buf_adds(buf, "},");
	add_member(buf, "reportingComponent", kube->config.component);
	add_member(buf, "reportingInstance", kube->config.instance);
	add_member(buf, "type", e->type);
	add_member(buf, "reason", e->reason);
	add_member(buf, "message", e->message);
	add_time(buf, "firstTimestamp", e->first);
	add_time(buf, "lastTimestamp", e->last);
	gs_buf_addf(buf, "\"count\":%u}", e->count);
}

/* Chosen once; what it tells, anew for each try. */
static void prepare(struct kube_request *req)
{
	struct kube_events *events = req->arg;
	const struct event *e = events->sending;

	gs_buf_free(&req->body);
	free(req->path);
	events->count = e->count;
	events->last_ms = kube_now(req->kube);
	if (e->made) {
		req->method = "PATCH";
		req->content_type = "application/merge-patch+json";
		req->path = gs_asprintf("/api/v1/namespaces/%s/events/%s", e->namespace, e->name);
		gs_buf_addc(&req->body, '{');
		add_time(&req->body, "lastTimestamp", e->last);
		gs_buf_addf(&req->body, "\"count\":%u}", e->count);
	} else {
		req->method = "POST";
		req->content_type = "application/json";
		req->path = gs_asprintf("/api/v1/namespaces/%s/events", e->namespace);
		write_event(req->kube, e, &req->body);
	}
}

static void send_next(struct kube_events *events)
{
	const struct kube *kube = events->req.kube;
	uint64_t due = events->last_ms + kube->tune.event_gap_ms, now = kube_now(kube);
	struct event *e = events->first;

	while (e && e->told == e->count)
		e = e->next;
	if (events->sending || !e)
		return;
	events->sending = e;
	kube_request_start(&events->req, events->last_ms > 0 && due > now ? due - now : 0);
}

static void set_name(struct event *e)
{
	free(e->name);
	e->name = gs_asprintf("%.*s.%08x%08x", NAME_MAX_POD, e->pod, kube_random(UINT32_MAX),
			      kube_random(UINT32_MAX));
	e->made = false;
}

static void on_done(struct kube_request *req, const struct kube_answer *answer)
{
	struct kube_events *events = req->arg;
	struct event *e = gs_steal(events->sending);

	kube_request_well(req);
	req->failures = 0;
	if (answer->r == 0) {
		e->made = true;
		e->told = events->count;
	} else if (e->made && answer->status == 404) {
		/* The server keeps Events for an hour or so. */
		set_name(e);
		e->told = 0;
	} else if (!e->made && answer->status == 409) {
		/* Made by a try whose answer was lost; whether with this count is not known. */
		e->made = true;
		e->told = 0;
	} else {
		req->kube->events_dropped++;
		kube_note(req->kube, "an Event on pod %s/%s is dropped (%s: %s): %s", e->namespace,
			  e->pod, e->reason, e->message, answer->err.msg);
		take_out(events, e);
	}
	send_next(events);
}

/* ---- What is asked for. */

static void drop_oldest(struct kube_events *events)
{
	struct kube *kube = events->req.kube;
	struct event *e = events->first;

	/* Rather one that the server has already, and never the one under way. */
	while (e && (e->told != e->count || e == events->sending))
		e = e->next;
	if (!e) {
		e = events->first == events->sending ? events->first->next : events->first;
		if (!e)
			return;
		if (kube->events_dropped++ % 100 == 0)
			kube_note(kube, "Events are dropped, too many wait: %s on pod %s/%s",
				  e->reason, e->namespace, e->pod);
	}
	take_out(events, e);
}

static void forget_old(struct kube_events *events)
{
	const struct kube *kube = events->req.kube;
	struct event *e = events->first, *next;

	for (; e; e = next) {
		next = e->next;
		if (e != events->sending && e->told == e->count &&
		    kube_now(kube) - e->begin > kube->tune.event_window_ms)
			take_out(events, e);
	}
}

static struct event *find(struct kube_events *events, const char *namespace, const char *uid,
			  const char *type, const char *reason, const char *message)
{
	for (struct event *e = events->first; e; e = e->next)
		if (strcmp(e->uid, uid) == 0 && strcmp(e->namespace, namespace) == 0 &&
		    strcmp(e->type, type) == 0 && strcmp(e->reason, reason) == 0 &&
		    strcmp(e->message, message) == 0)
			return e;
	return NULL;
}

static struct kube_events *events_of(struct kube *kube)
{
	struct kube_events *events = kube->events;

	if (events)
		return events;
	events = gs_calloc(1, sizeof(*events));
	kube->events = events;
	events->req.method = "POST";
	events->req.timeout_ms = kube->tune.request_ms;
	/* the others wait meanwhile, and a namespace that ends takes none for good */
	events->req.forbidden_ms = kube->tune.forbidden_ms / 4;
	events->req.stall_ms = kube->tune.stall_ms;
	events->req.prepare = prepare;
	events->req.done = on_done;
	events->req.arg = events;
	kube_request_init(kube, &events->req);
	return events;
}

/* At most MESSAGE_MAX bytes, cut between characters. */
static char *cut(const char *message)
{
	size_t n = strlen(message);

	if (n <= MESSAGE_MAX)
		return gs_strdup(message);
	n = MESSAGE_MAX;
	while (n > 0 && ((unsigned char)message[n] & 0xc0) == 0x80)
		n--;
	return gs_strndup(message, n);
}

void kube_event(struct kube *kube, const char *namespace, const char *name, const char *uid,
		const char *type, const char *reason, const char *message)
{
	cleanup_free char *text = cut(message);
	struct kube_events *events;
	struct event *e, **at;

	if (kube->dying)
		return;
	events = events_of(kube);
	if (!kube_name_ok(namespace) || !kube_name_ok(name)) {
		kube->events_dropped++;
		kube_note(kube, "an Event is dropped: %s/%s is no name of a pod", namespace, name);
		return;
	}
	forget_old(events);
	e = find(events, namespace, uid, type, reason, text);
	if (!e) {
		while (events->n >= kube->tune.events_max)
			drop_oldest(events);
		e = gs_calloc(1, sizeof(*e));
		e->namespace = gs_strdup(namespace);
		e->pod = gs_strdup(name);
		e->uid = gs_strdup(uid);
		e->type = gs_strdup(type);
		e->reason = gs_strdup(reason);
		e->message = gs_steal(text);
		e->first = time(NULL);
		e->begin = kube_now(kube);
		set_name(e);
		at = &events->first;
		while (*at)
			at = &(*at)->next;
		*at = e;
		events->n++;
	}
	e->count++;
	e->last = time(NULL);
	send_next(events);
}

unsigned int kube_event_room(const struct kube *kube)
{
	unsigned int wait = 0, most = kube->tune.events_max / 2;

	for (const struct event *e = kube->events ? kube->events->first : NULL; e; e = e->next)
		wait += e->told != e->count;
	return wait < most ? most - wait : 0;
}

unsigned long kube_events_dropped(const struct kube *kube)
{
	return kube->events_dropped;
}

static void free_events(struct kube_request *req)
{
	struct kube_events *events = req->arg;

	while (events->first)
		take_out(events, events->first);
	free(events);
}

void kube_event_close(struct kube *kube)
{
	struct kube_events *events = gs_steal(kube->events);

	if (events)
		kube_request_close(&events->req, free_events);
}
