/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the admission webhook says to a pod: a pure function from the API server's question (an
 * AdmissionReview of admission.k8s.io/v1) to its answer.
 */
#ifndef GPUSHARE_CONTROLLER_ADMISSION_H
#define GPUSHARE_CONTROLLER_ADMISSION_H

#include <jansson.h>
#include <stddef.h>

#include "common/buf.h"
#include "common/catalogue.h"
#include "common/err.h"

/* What is longer is no question: etcd takes objects of 1.5 MiB, and an update brings two. */
#define ADMISSION_MAX ((size_t)8 * 1024 * 1024)

struct admission_policy {
	struct gs_strv cards; /* globs of resources that stand for cards */
	struct gs_strv slices; /* globs of those among them that are no whole cards */
	struct gs_strv platform_users; /* who may write the platform's keys */
	struct gs_strv data_classes; /* priority classes of data jobs */
	char *partition_label; /* the label of nodes that says their partition */
};

/* The defaults: no cards, no platform users, label gpushare.k8s.io/partition. */
void admission_policy_init(struct admission_policy *policy);

/* Adds what the catalogue says of resources: which are cards, which slices. */
void admission_policy_cards(struct admission_policy *policy, const struct gs_catalogue *cat);

/* Frees what @policy holds. */
void admission_policy_free(struct admission_policy *policy);

/*
 * Answers the @len bytes at @text. @space is the annotations of the namespace in question (an
 * object of strings, borrowed; NULL: none): what it says for partition, user_id, lend and
 * lend-after holds for its pods, whoever makes them. *ret is the answer, which the caller decrefs:
 *
 * - A pod with none of our keys and resources is allowed without a patch, and any deletion.
 * - On creation the pod gets what controller/{keys,share,oversold,partition}.h say, as a patch that
 *   changes nothing when it meets its own result.
 * - What they or controller/spot.h refuse is answered with code 403 and a sentence; on an update
 *   only what it changes counts. An object that can't be understood is refused, too.
 * - What is allowed has the warnings of controller/warn.h; on an update all that hold for the pod.
 *
 * -EINVAL: the text is no such question, so that there is nothing to answer to; or it is made of
 * more values than any pod.
 */
int admission_review(const struct admission_policy *policy, const json_t *space, const char *text,
		     size_t len, json_t **ret, struct gs_err *err);

#endif
