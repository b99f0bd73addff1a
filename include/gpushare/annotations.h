/* SPDX-License-Identifier: Apache-2.0 */
/* The annotation keys: what pod authors, the platform and our own parts write on pods. */
#ifndef GPUSHARE_ANNOTATIONS_H
#define GPUSHARE_ANNOTATIONS_H

#define GS_ANNOTATION_DOMAIN "gpushare.k8s.io"
#define GS_ANNOTATION_PREFIX GS_ANNOTATION_DOMAIN "/"

/* "<key>.<container>": "<namespace>/<pod>/<container>[,...]"; the long form has no suffix. */
#define GS_KEY_FROM GS_ANNOTATION_PREFIX "container-devices-from"

/* Resource pool and account of the pod; written by the platform. */
#define GS_KEY_PARTITION GS_ANNOTATION_PREFIX "partition"
#define GS_KEY_USER_ID GS_ANNOTATION_PREFIX "user_id"

/* "true": share this pod's card; written by the author. */
#define GS_KEY_SHARE GS_ANNOTATION_PREFIX "share"

/* "true": this pod holds its card only to be a source of share pods; written by the platform. */
#define GS_KEY_SHADOW GS_ANNOTATION_PREFIX "shadow"

/* On a shadow pod: the UID of the pod that it was made for, and a hash of where it may be. */
#define GS_KEY_SHADOW_FOR GS_ANNOTATION_PREFIX "shadow-for"
#define GS_KEY_SHADOW_PLACE GS_ANNOTATION_PREFIX "shadow-place"

/* May this holder's cards be lent, and after how long an absence; written by the platform. */
#define GS_KEY_LEND GS_ANNOTATION_PREFIX "lend"
#define GS_KEY_LEND_AFTER GS_ANNOTATION_PREFIX "lend-after"

/*
 * CPU and memory of an over-sold container, Kubernetes quantities; written by the webhook.
 * "<key>.<container>" is that container's, the key alone that of all others of the pod.
 */
#define GS_KEY_VCPU GS_ANNOTATION_PREFIX "vcpu"
#define GS_KEY_VMEM GS_ANNOTATION_PREFIX "vmem"

/* Name of a grant file, from the device plugin; a secret until bound. */
#define GS_KEY_GRANT GS_ANNOTATION_PREFIX "grant"

/* "<namespace>/<pod>/<container>", believed only where the config says that no CRI runs. */
#define GS_KEY_IDENTITY GS_ANNOTATION_PREFIX "identity"

#endif
