/* SPDX-License-Identifier: Apache-2.0 */
/* A client of the Kubernetes API in a loop of its own, against tests/k8s/apiserver.py. */
#ifndef GPUSHARE_TESTS_KUBECLIENT_H
#define GPUSHARE_TESTS_KUBECLIENT_H

#include "kube/impl.h"

/*
 * What the client told, a line each:
 *	pod ns/name uid phase [deleting]; gone ns/name uid
 *	synced; well; bad: why; note: what; done: result message
 */
struct kubeclient {
	char *dir; /* of the server: port, ca.crt, token */
	int pid; /* of the server */
	struct kube_config config;
	uv_loop_t loop;
	struct kube *kube;
	struct gs_buf told;
	size_t seen; /* so much of it was waited for */
};

/* Starts the server. */
void kubeclient_start(struct kubeclient *client, bool tls);
void kubeclient_stop(struct kubeclient *client);

/* Resets the server, makes a client with short times; closing checks that no handle is left. */
void kubeclient_open(struct kubeclient *client);
void kubeclient_close(struct kubeclient *client);

/* Sends the server's admin socket a printf'ed JSON object with ' for "; the caller frees. */
__attribute__((format(printf, 2, 3))) char *kubeclient_ask(struct kubeclient *client,
							   const char *fmt, ...);

/* The same, without the answer. */
__attribute__((format(printf, 2, 3))) void kubeclient_tell(struct kubeclient *client,
							   const char *fmt, ...);

/* Makes or changes a pod on this node. @more: further JSON members of its metadata, or "". */
void kubeclient_put(struct kubeclient *client, const char *key, const char *uid, const char *phase,
		    const char *more);

/* Runs the loop until that was told (the first, or after what the last call waited for). */
void kubeclient_until(struct kubeclient *client, const char *what);

/* How often that was told since the client was made. */
unsigned int kubeclient_told(const struct kubeclient *client, const char *what);

/* Runs the loop for so long. */
void kubeclient_run(struct kubeclient *client, unsigned int ms);

/* How often the server was asked what contains @what. */
unsigned int kubeclient_asked(struct kubeclient *client, const char *what);

/* Runs the loop until that is @n times or more. */
void kubeclient_until_asked(struct kubeclient *client, const char *what, unsigned int n);

/* For kube_delete_pod(). */
void kubeclient_done(int result, const struct gs_err *err, void *client);

#endif
