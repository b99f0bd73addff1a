/* SPDX-License-Identifier: Apache-2.0 */
/* A pod as the API server shows it, of which every part may be missing, null or of a wrong type. */
#ifndef GPUSHARE_CONTROLLER_POD_H
#define GPUSHARE_CONTROLLER_POD_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"

/* More of one resource than any node has: thousandths of a CPU, MiB, cards. */
#define POD_AMOUNT_MAX ((int64_t)1 << 40)

/* In the order of kinds, so that "is it one that runs all the time" is easily said. */
enum pod_list { POD_CONTAINERS, POD_INIT, POD_EPHEMERAL, POD_LISTS };

/* The name of the list in a pod's spec. */
const char *pod_list_name(enum pod_list list);

/*
 * Is @pod built as pods are: objects where there have to be objects, lists where lists, strings
 * where strings, as far as we read it? -EINVAL where not. Everything below relies on this.
 */
int pod_check(const json_t *pod, struct gs_err *err);

/* The value of an annotation; NULL where there is none. @object: anything with metadata. */
const char *pod_annotation(const json_t *object, const char *key);

/* The object of annotations; NULL where there is none. */
json_t *pod_annotations(const json_t *object);

/* Sets an annotation; the object of annotations is made where it is missing. */
void pod_annotate(json_t *pod, const char *key, const char *value);

/* The containers of one list; NULL where there are none. */
json_t *pod_containers(const json_t *pod, enum pod_list list);

/* The container's name for a message, quoted and cut; the caller frees. */
char *pod_container_name(const json_t *container);

/* Puts "container <its name>: " in front of the message. Gives the error's code. */
int pod_container_prefix(const json_t *container, struct gs_err *err);

/* The member @key of @object, if it is an object; else NULL. Both may be missing. */
json_t *pod_object(const json_t *object, const char *key);

/* resources.@which ("requests" or "limits") has @resource: its quantity as text; else NULL. */
const char *pod_resource(const json_t *container, const char *which, const char *resource);

/* Does a container of any kind ask for @resource? */
bool pod_asks(const json_t *pod, const char *resource);

/*
 * How much of an extended resource the container asks for, 0 where it does not. -EINVAL: it is no
 * whole number, more than POD_AMOUNT_MAX, or limits and requests differ.
 */
int pod_amount(const json_t *container, const char *resource, int64_t *ret, struct gs_err *err);

/* Takes @resource out of requests and limits. */
void pod_drop(json_t *container, const char *resource);

/* Sets @resource in requests and limits to @amount. */
void pod_ask(json_t *container, const char *resource, int64_t amount);

#endif
