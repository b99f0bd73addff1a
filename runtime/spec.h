/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a container's config.json that we look at, each with its place in the text. */
#ifndef GPUSHARE_RUNTIME_SPEC_H
#define GPUSHARE_RUNTIME_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include "common/js.h"

/* A larger config.json is not edited; runc itself has no bound. */
#define SPEC_MAX (16 * 1024 * 1024)

/* linux.devices[] */
struct spec_device {
	char *path;
	char type; /* 'c', 'b', 'p'; 'u' is read as 'c', its other name */
	int64_t major, minor;
	struct js raw;
};

/* Access letters of a cgroup rule, as bits. */
#define ACCESS_R 1U
#define ACCESS_W 2U
#define ACCESS_M 4U
#define ACCESS_ALL 7U
#define RULE_ANY (-1)

/* linux.resources.devices[]; what is left out means any, as in the cgroup v1 devices file. */
struct spec_rule {
	bool allow;
	char type; /* 'a', 'b', 'c' */
	int64_t major, minor;
	unsigned int access;
	struct js raw;
};

/* mounts[] */
struct spec_mount {
	char *to, *from; /* from: "" where there is none */
	bool bind;
	struct js raw;
};

/* process.env[]; no '=': name_len is the whole length and value "". */
struct spec_env {
	char *text;
	size_t name_len;
	const char *value;
};

enum spec_stage {
	STAGE_PRESTART,
	STAGE_CREATE_RUNTIME,
	STAGE_CREATE_CONTAINER,
	STAGE_START_CONTAINER,
	STAGE_POSTSTART,
	STAGE_POSTSTOP,
	STAGE_COUNT
};
extern const char *const spec_stage_names[STAGE_COUNT];

/* hooks.<stage>[] */
struct spec_hook {
	enum spec_stage stage;
	char *path;
	struct js args, raw;
};

struct spec {
	char *text; /* its own */
	size_t len;
	/* places; {0} where absent */
	struct js root, process, env, mounts, hooks, stages[STAGE_COUNT], linux_obj, devices;
	struct js resources, rules, annotations, namespaces;
	struct spec_device *device;
	size_t n_devices;
	struct spec_rule *rule;
	size_t n_rules;
	struct spec_mount *mount;
	size_t n_mounts;
	struct spec_env *envs;
	size_t n_envs;
	struct spec_hook *hook;
	size_t n_hooks;
	char *cgroups_path; /* "" where there is none */
	bool no_rules_allow_all; /* set by who knows the runtime: what a spec without rules means */
};

/*
 * Reads @text (taken over, also on an error). -EINVAL, -E2BIG, -EEXIST: it can't be understood;
 * the message says where.
 */
int spec_read(struct spec *spec, char *text, size_t len, struct gs_err *err);

/* Frees what @spec holds. */
void spec_free(struct spec *spec);
#define cleanup_spec __attribute__((cleanup(spec_free)))

/* The value of annotation @key, NULL where it is absent. The caller frees. -EINVAL: no string. */
int spec_annotation(const struct spec *spec, const char *key, char **ret, struct gs_err *err);

/* Has the spec any annotation of ours? */
bool spec_is_annotated(const struct spec *spec);

/* All annotations of ours, as the text of a JSON object. The caller frees. */
char *spec_our_annotations(const struct spec *spec);

/*
 * What the cgroup rules grant for one device ('c' or 'b'), as access bits: all rules are applied
 * in order to a start of nothing, as runc and the kernel's devices cgroup do.
 */
unsigned int spec_rules_access(const struct spec *spec, char type, int64_t major, int64_t minor);

/* The same for a device ('c' or 'b') that no rule names. */
unsigned int spec_default_access(const struct spec *spec, char type);

/* Can it open every character device that no rule names (a privileged container)? */
bool spec_allows_all(const struct spec *spec);

/* The environment variable's value; NULL where absent. The last of several wins, as in runc. */
const char *spec_env_value(const struct spec *spec, const char *name);

#endif
