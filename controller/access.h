/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may read the metrics: the API server is asked whose the token is (TokenReview), and whether
 * that account may "get" the path /metrics (SubjectAccessReview), as kube-rbac-proxy does and what
 * controller-runtime builds in.
 */
#ifndef GPUSHARE_CONTROLLER_ACCESS_H
#define GPUSHARE_CONTROLLER_ACCESS_H

#include "controller/controller.h"

/* Begins; after kube_new(). */
void access_start(struct controller *controller);

/* Ends it: whoever waits is told 503. Before kube_free(). */
void access_stop(struct controller *controller);

/*
 * Tells @done what HTTP answers to whoever shows that header Authorization (NULL: none): 200; 401,
 * no token or not a good one; 403, its account may not; 503, it can't be told. From within where it
 * is known already, else within three seconds.
 */
void access_ask(struct controller *controller, const char *authorization,
		void (*done)(unsigned int status, void *arg), void *arg);

#endif
