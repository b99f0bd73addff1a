/* SPDX-License-Identifier: Apache-2.0 */
/* The edits of one config.json, collected by the steps of create and written at the end. */
#ifndef GPUSHARE_RUNTIME_REWRITE_H
#define GPUSHARE_RUNTIME_REWRITE_H

#include "common/js_edit.h"
#include "runtime/spec.h"

struct rewrite_limit {
	const char *group, *key; /* linux.resources.<group>.<key> */
	int64_t value;
};

#define REWRITE_LIMITS_MAX 8

struct rewrite {
	const struct spec *spec;
	struct js_array env, mounts, devices, rules, hooks[STAGE_COUNT];
	struct rewrite_limit limits[REWRITE_LIMITS_MAX];
	size_t n_limits;
};

/* Starts with nothing changed. @spec must outlive it. */
void rewrite_begin(struct rewrite *rw, const struct spec *spec);
void rewrite_free(struct rewrite *rw);
#define cleanup_rewrite __attribute__((cleanup(rewrite_free)))

/* linux.resources.<group>.<key> becomes @value. At most REWRITE_LIMITS_MAX calls. */
void rewrite_limit(struct rewrite *rw, const char *group, const char *key, int64_t value);

/* Does anything change? */
bool rewrite_changes(const struct rewrite *rw);

/*
 * Only what a slice is cut from, after the edits: environment, mounts, hooks and devices as a small
 * config.json with @rules (an array's text; NULL: those that the edits make) as its device rules.
 */
void rewrite_parts(const struct rewrite *rw, const char *rules, struct gs_buf *out);

/*
 * The new config.json, appended to @out. The spec must have "process" and "linux"; "mounts",
 * "hooks", "resources" and what is in them are made where they are missing or null.
 */
void rewrite_text(const struct rewrite *rw, struct gs_buf *out);

#endif
