/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Kubernetes API, as far as we use it. Nothing here waits: requests go on in the loop,
 * are tried again with growing pauses while the server is away, busy (429, with its Retry-After) or
 * broken (5xx), and never more than a bounded number is kept. Names are resolved by a thread of
 * libcurl's. Callbacks come from the loop alone, never out of a call that the caller made; they may
 * call anything here but kube_free().
 */
#ifndef GPUSHARE_KUBE_KUBE_H
#define GPUSHARE_KUBE_KUBE_H

#include <stdbool.h>
#include <uv.h>

#include "common/buf.h"
#include "common/doc.h"
#include "common/err.h"
#include "common/js.h"

struct kube;
struct kube_ask;
struct kube_watch;

struct kube_config {
	char *server; /* https://host:port[/prefix]; http:// only to this host */
	char *ca_file; /* NULL: the system's */
	char *token_file; /* read again whenever it changed, and after a 401 */
	char *node; /* this node's name; NULL: whoever asks is bound to none */
	char *component; /* who reports Events: "gpushared" */
	char *instance; /* which of them; NULL: the node's name */
};

struct kube_pod {
	char *namespace, *name, *uid;
	char *phase;
	char *priority_class;
	int64_t priority;
	char *created; /* RFC 3339, and so sorts as text; NULL: it has none */
	bool deleting;
	/* What its containers request of over-sold CPU, in thousandths, and memory, in MiB. */
	uint64_t vcpu, vmem;
	/* Ordinary CPU or memory is theirs too: requested, a limit, or its RuntimeClass's. */
	bool plain_cpu, plain_memory;
	/* An init container that ends asks for such devices; of those no kubelet tells. */
	bool init_share, init_spot;
	struct kube_annotation {
		char *key, *value;
	} * annotations; /* ours only (gpushare.k8s.io/) */
	size_t n_annotations;
};

/* Has it ended by itself, well or not? */
bool kube_pod_over(const struct kube_pod *pod);

struct kube_ops {
	/*
	 * A pod of this node came, changed or went; it is known by its UID, for a new one may come
	 * under the same name before the old one is told gone. The pod is borrowed for the call. Of
	 * one that went while nobody watched only namespace, name and UID are told.
	 */
	void (*pod)(const struct kube_pod *pod, bool gone, void *arg);
	/* A list is complete: all pods were told, and all that went meanwhile were told gone. */
	void (*synced)(void *arg);
	/*
	 * Answers began to fail, or are well again (the first good one counts as that); @why is a
	 * sentence or NULL.
	 */
	void (*health)(bool ok, const char *why, void *arg);
	/* Something was left out: a pod too large, an Event that is dropped. May be NULL. */
	void (*note)(const char *what, void *arg);
	void *arg;
};

/* A line in the log: for kube_ops.health(), and as kube_ops.note(). */
void kube_log_health(bool ok, const char *why);
void kube_log_note(const char *what, void *arg);

/*
 * Fills what is NULL in @config from a pod's surroundings: KUBERNETES_SERVICE_HOST and _PORT, the
 * files of its service account, NODE_NAME for the node. -ENOENT: this is no pod, and no server is
 * set. "Accessing the API from within a pod", Kubernetes documentation.
 */
int kube_config_in_cluster(struct kube_config *config, struct gs_err *err);

/*
 * The namespace of the pod that we are: POD_NAMESPACE, else what the files of its service account
 * say. The caller frees. -ENOENT: this is no pod; -EINVAL: that is no namespace.
 */
int kube_own_namespace(char **ret, struct gs_err *err);

/*
 * Reads the section "kubernetes" of a configuration, where @object is one, into @config: server,
 * ca_file, token_file and, where that is asked for, @node. -EINVAL with file, line, column and key.
 */
int kube_config_read(const struct gs_doc *doc, struct js object, bool node,
		     struct kube_config *config, struct gs_err *err);

/* Frees the strings; it is {0} then. */
void kube_config_free(struct kube_config *config);

/*
 * Opens nothing yet. @config and @ops are copied. The program must ignore SIGPIPE. -EINVAL: a
 * server that is no URL, no token file (one that is named but not there yet only delays requests),
 * a node's name that is none; -ENOTSUP: a libcurl that would hold the loop up while it resolves
 * names.
 */
int kube_new(uv_loop_t *loop, const struct kube_config *config, const struct kube_ops *ops,
	     struct kube **ret, struct gs_err *err);

/*
 * Ends everything: a delete still under way is told -ECANCELED from within, and whatever is asked
 * for then is ignored. Its memory goes once the loop has closed its handles. NULL is none.
 */
void kube_free(struct kube *kube);

struct kube_watch_ops {
	/* An object came or changed, or it went. The object is borrowed for the call. */
	void (*object)(struct js object, bool gone, void *arg);
	/*
	 * A list begins, and is complete: what was known before, and was not told between the two,
	 * is gone. Either may be NULL. A list that breaks off begins anew, with another begin().
	 */
	void (*begin)(void *arg);
	void (*synced)(void *arg);
	void *arg;
};

/*
 * Lists and then watches all objects of a collection, for ever: resume by resourceVersion,
 * bookmarks, a new list after 410 Gone. @collection: its path, "/api/v1/pods". @query: parameters,
 * escaped, or NULL. @what: one such object, for messages (static). @page: how many objects one
 * answer to a list may have at most; the server may ignore it. No more than one object is in memory
 * at a time; one that is too large is left out, and kube_ops.note() told.
 */
void kube_watch(struct kube *kube, const char *collection, const char *query, const char *what,
		unsigned int page, const struct kube_watch_ops *ops);

/*
 * Lists a collection once, as it is when the server answers, and not from a cache of before;
 * parameters and callbacks as of kube_watch(). It is tried for as long as it takes. What is given
 * can be given up by kube_list_cancel() until ops->synced() was called; it is NULL where the client
 * ends already.
 */
struct kube_watch *kube_list(struct kube *kube, const char *collection, const char *query,
			     const char *what, unsigned int page, const struct kube_watch_ops *ops);

/* Gives a list up: none of its callbacks is called any more. NULL is none. */
void kube_list_cancel(struct kube_watch *list);

/* kube_watch() of the pods of this node, told to kube_ops. The config must have its name. */
void kube_watch_pods(struct kube *kube);

/* The end of a request that kube_ask() made; all of it is borrowed for the call. */
struct kube_reply {
	int r; /* 0: well, or -errno */
	long status; /* HTTP's; 0: none came */
	const char *text; /* the answer's body, where it is a good one; ends in a NUL */
	size_t len;
	const struct gs_err *err; /* a sentence where @r is not 0 */
};

/*
 * Asks the API for anything. @body: JSON of @content_type; both NULL where there is none. @done
 * gets the answer once it is final; meanwhile the request is tried again while the server is away
 * or busy. -E2BIG: an answer of more than 4 MiB. @done may ask anew; when the client ends it is not
 * called. What is given can be given up by kube_ask_cancel() until @done was called; it is NULL
 * where the client ends already.
 */
struct kube_ask *kube_ask(struct kube *kube, const char *method, const char *path,
			  const char *content_type, const char *body,
			  void (*done)(const struct kube_reply *reply, void *arg), void *arg);

/*
 * Gives a request up: @done is not called any more. Whether the server did what was asked for is
 * not known. NULL is none.
 */
void kube_ask_cancel(struct kube_ask *ask);

/*
 * Appends the body of a DELETE: at once (grace 0), if the object still has that UID and is at that
 * resourceVersion (NULL: at whichever).
 */
void kube_delete_options(struct gs_buf *body, const char *uid, const char *version);

/*
 * Deletes a pod at once (grace 0) if it still has that UID. @done (may be NULL) gets 0 when it is
 * gone or was never that one, or -errno once nothing more is tried: what the server refuses for
 * good (-EACCES, -EINVAL, ...), with what it said; -ENOBUFS: too many at a time.
 */
void kube_delete_pod(struct kube *kube, const char *namespace, const char *name, const char *uid,
		     void (*done)(int result, const struct gs_err *err, void *arg), void *arg);

/*
 * An Event on a pod. @type: "Normal" or "Warning". The same one again within a time raises a count.
 * A bounded number waits while the server is away: the oldest is dropped for a new one.
 */
void kube_event(struct kube *kube, const char *namespace, const char *name, const char *uid,
		const char *type, const char *reason, const char *message);

/*
 * So many Events can be asked for now without one being lost that was not sent yet, and with room
 * left for others.
 */
unsigned int kube_event_room(const struct kube *kube);

/* How many Events were dropped so far, because too many waited or the server refused them. */
unsigned long kube_events_dropped(const struct kube *kube);

#endif
