/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the Kubernetes client share; everybody else takes kube/kube.h. */
#ifndef GPUSHARE_KUBE_IMPL_H
#define GPUSHARE_KUBE_IMPL_H

#include <curl/curl.h>
#include <stdint.h>
#include <sys/stat.h>

#include "kube/kube.h"
#include "common/buf.h"
#include "common/js.h"

/* Times and bounds; kube_new() sets them, only tests change them. */
struct kube_tune {
	unsigned int backoff_min_ms, backoff_max_ms;
	unsigned int retry_after_max_ms; /* a server can't silence us for longer */
	unsigned int forbidden_ms; /* a server that starts forbids what it will allow */
	unsigned int connect_ms;
	unsigned int request_ms; /* a whole request that is no watch */
	unsigned int stall_ms; /* ... and how long nothing may come meanwhile, not even headers */
	unsigned int ca_s; /* the authority's file is read again after so long, where libcurl can */
	unsigned int watch_s; /* a watch ends after one to two times this, by the server */
	unsigned int watch_quiet_ms; /* a watch is begun anew after so long without a byte */
	unsigned int watch_short_ms; /* one that brought nothing and ended sooner was no good */
	unsigned int page; /* pods in one answer to a list */
	size_t pods_max; /* of this node: a kubelet runs a few hundred; who has ended goes first */
	size_t object_max; /* bytes of one pod */
	unsigned int deletes_max, deletes_active;
	unsigned int events_max;
	unsigned int event_window_ms; /* a repeated Event within this raises a count */
	unsigned int event_gap_ms; /* from one request about Events to the next */
};

struct kube_answer {
	int r; /* 0: well, or -errno */
	long status; /* HTTP's; 0: none came */
	const char *message; /* of a Status object; "": none */
	struct gs_err err; /* a sentence where @r is not 0 */
};

/*
 * A request with its repetitions. Whoever owns it sets the first group and may change path and body
 * in prepare(). Kept at one place in memory from kube_request_init() to kube_request_close()'s end.
 */
struct kube_request {
	const char *method;
	const char *content_type;
	char *path; /* behind the server's URL */
	struct gs_buf body;
	unsigned int timeout_ms; /* for all of it */
	unsigned int stall_ms; /* without a byte once a good answer began */
	unsigned int forbidden_ms; /* so long 403 is no final answer: tune.forbidden_ms or 0 */
	bool quiet_ok; /* a good answer that falls silent or lasts too long has ended well */
	void (*prepare)(struct kube_request *req); /* before each try; may be NULL */
	/* Bytes of a good answer; NULL: not wanted. -errno ends it, with that as answer.r. */
	int (*data)(struct kube_request *req, const char *data, size_t len);
	/* The end, but for what is tried again by itself. May start it anew. */
	void (*done)(struct kube_request *req, const struct kube_answer *answer);
	void *arg;

	struct kube *kube;
	uv_timer_t timer; /* the pause before a try, then what is allowed without a byte */
	CURL *easy; /* a try under way */
	struct curl_slist *headers;
	char curl_error[CURL_ERROR_SIZE];
	struct gs_buf said; /* the beginning of an answer that is not good */
	uint64_t begin; /* of this try */
	unsigned int failures; /* in a row; set to 0 by who knows that it goes well */
	bool good; /* this try got 2xx */
	uint64_t forbidden; /* when the first 403 in a row came; 0: the last answer was none */
	bool reauthorized; /* the token was read again because of a 401 */
	bool failing; /* counts in kube->n_failing */
	int data_error;
	void (*closed)(struct kube_request *req);
};

struct kube_watch;
struct kube_pods;
struct kube_ask;
struct kube_delete;
struct kube_events;

struct kube {
	uv_loop_t *loop;
	struct kube_config config;
	struct kube_ops ops;
	struct kube_tune tune;
	char *user_agent;

	CURLM *multi;
	uv_timer_t timer; /* libcurl's */
	struct kube_socket *sockets;

	struct {
		char *text; /* the header line; NULL: to be read */
		struct stat st;
	} token;

	unsigned int n_failing; /* requests that wait for a server that is not well */
	int health; /* as told: -1 not yet, else false or true */

	struct kube_watch *watches;
	struct kube_pods *pods;
	struct kube_ask *asks;
	struct kube_delete *deletes, **deletes_end;
	unsigned int n_deletes, n_deletes_active;
	struct kube_events *events;
	unsigned long events_dropped;

	unsigned int n_handles; /* of the loop, not closed yet */
	bool dying;
};

/* ---- kube.c */

/* A handle of the loop was closed. */
void kube_handle_closed(struct kube *kube);

/* Tells ops->note() a sentence. */
__attribute__((format(printf, 2, 3))) void kube_note(struct kube *kube, const char *fmt, ...);

/* Is it a DNS name (RFC 1123), as those of pods, namespaces and nodes are? */
bool kube_name_ok(const char *name);

/* Random number below @n; @n is not 0. */
unsigned int kube_random(unsigned int n);

/* Milliseconds of the loop's clock. */
uint64_t kube_now(const struct kube *kube);

/* ---- kube/loop.c: libcurl's multi interface in the loop. */

/* Makes kube->multi and its timer. */
int kube_loop_init(struct kube *kube, struct gs_err *err);

/* Frees kube->multi, of which no transfer may be left, and closes the handles. */
void kube_loop_close(struct kube *kube);

/* ---- kube/token.c */

/*
 * The header line with the token, read again where the file is another one or @kube forgot it; the
 * text stays @kube's. -errno with a sentence where it can't be read.
 */
int kube_token(struct kube *kube, const char **ret, struct gs_err *err);
void kube_token_forget(struct kube *kube);

/* ---- kube/http.c */

/* Sets the last group of members; the owner's stay. */
void kube_request_init(struct kube *kube, struct kube_request *req);

/* Tries, from the loop, in @delay_ms at the earliest. */
void kube_request_start(struct kube_request *req, uint64_t delay_ms);

/*
 * Tries again after a pause that grows; @at_least_ms may make it longer. @why: what failed, counts
 * for the health; NULL: nothing did.
 */
void kube_request_again(struct kube_request *req, const char *why, uint64_t at_least_ms);

/* The server is well, as far as this request can tell. */
void kube_request_well(struct kube_request *req);

/* Stops it, frees what it holds, and calls @closed once the loop lets go of it. */
void kube_request_close(struct kube_request *req, void (*closed)(struct kube_request *req));

/* Called by the loop's part: a transfer ended. */
void kube_request_ended(struct kube_request *req, CURLcode code);

/* ---- kube/status.c: an answer that is not good */

/* Fills @ret of @status and the body @said (of what is tried again and what is final alike). */
void kube_status(const struct kube_request *req, long status, struct kube_answer *ret,
		 char **ret_message);

/* ---- kube/pod.c */

/* Takes what we need out of a Pod object; the caller frees. -EINVAL: no namespace, name or UID. */
int kube_pod_read(struct js object, struct kube_pod *ret, struct gs_err *err);
void kube_pod_free(struct kube_pod *pod);

/* ---- kube/cut.c: cuts what comes into objects, with bounded memory */

struct kube_cut {
	struct kube *kube;
	const char *what; /* kind of object, for messages: "pod" */
	int (*object)(struct js object, void *arg); /* -errno ends it */
	void *arg;
	struct gs_buf buf; /* the object that comes */
	bool skip; /* it is too large */
	/* A list's alone: */
	struct gs_buf rest; /* the text around its items, each of them a 0 */
	unsigned int depth;
	char second; /* what the second level is: '{' or '[' */
	bool string, escape, item;
};

/* Forgets what came; callbacks and kube stay. */
void kube_cut_reset(struct kube_cut *cut);
/* A list object: gives its items one by one. -EBADMSG: no JSON, or too large around its items. */
int kube_cut_list(struct kube_cut *cut, const char *data, size_t len);
/* A stream of lines, an object each. -EBADMSG: one is no JSON. */
int kube_cut_lines(struct kube_cut *cut, const char *data, size_t len);

/* ---- kube/watch.c, pods.c, ask.c, delete.c, event.c: what kube_free() calls of each */
void kube_watch_close(struct kube *kube);
void kube_pods_free(struct kube *kube);
void kube_ask_close(struct kube *kube);
void kube_delete_close(struct kube *kube);
void kube_event_close(struct kube *kube);

#endif
