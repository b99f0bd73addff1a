/* SPDX-License-Identifier: Apache-2.0 */
/* The vendor catalogue: how one maker's devices are recognised; one JSON file a vendor. */
#ifndef GPUSHARE_COMMON_CATALOGUE_H
#define GPUSHARE_COMMON_CATALOGUE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/buf.h"
#include "common/err.h"

/* card: one for each card; shared: all cards' users need it (uvm); control: administration too. */
enum gs_node_kind { GS_NODE_CARD, GS_NODE_SHARED, GS_NODE_CONTROL };

struct gs_node {
	char *glob; /* begins with "/dev/"; common/glob.h */
	enum gs_node_kind kind;
	struct gs_strv drivers; /* node is ours only under these kernel drivers; empty: any */
};

/*
 * How two values of one environment variable become one. list: comma-separated, joined without
 * repeats. replace: they must be equal. local: the value counts positions inside one container,
 * so it is dropped when there are several sources.
 */
enum gs_env_merge { GS_ENV_LIST, GS_ENV_REPLACE, GS_ENV_LOCAL };

struct gs_env {
	char *name;
	enum gs_env_merge merge;
	bool selects; /* its value tells the next runtime which cards to inject */
};

struct gs_mount {
	char *to; /* glob of the destination */
	struct gs_strv from; /* globs of the host path; empty: a root followed by @to */
	bool selects; /* the mount itself tells the next runtime which cards to inject */
};

struct gs_vendor {
	char *name, *file;
	struct gs_node *nodes;
	size_t n_nodes;
	struct gs_env *envs;
	size_t n_envs;
	struct gs_mount *mounts;
	size_t n_mounts;
	struct gs_strv roots; /* prefixes of host paths of the driver's files; "" is "/" */
	struct gs_strv hooks; /* globs of OCI hook programs that may be copied */
	struct gs_strv next_runtimes; /* base names of runtimes that inject by selector */
	struct gs_strv next_hooks; /* globs of hooks that those runtimes add themselves */
	struct gs_strv select_none; /* selector values that mean no card; the first is written */
	struct gs_strv chrdevs; /* globs of names in /proc/devices */
	struct gs_strv resources; /* globs of Kubernetes resource names */
	struct gs_strv slices; /* globs of those among them that are parts of a card */
};

/* Room for the hashes of three letters. */
#define GS_INITIALS 1024

struct gs_catalogue {
	struct gs_vendor *v;
	size_t n;
	bool initials[GS_INITIALS]; /* how vendors' nodes begin behind "/dev/"; gs_initials() */
};

/*
 * Reads every *.json of @dirs, in the order of the folders and of names; a file in a later folder
 * replaces the one of the same name. A folder that does not exist is no error; no file at all in
 * any of them is -ENOENT. A file with a mistake, in whatever section, is an error that names file,
 * line, column and key (gpushare-vendors(5) has the keys).
 */
int gs_catalogue_load(struct gs_catalogue *cat, const struct gs_strv *dirs, struct gs_err *err);

/*
 * Reads the same files one by one for people who check them: calls @each for every file, also
 * after a mistake, with the vendor (as long as the call lasts), or NULL and what is wrong. An
 * error only where a folder can't be read or there is no file at all.
 */
int gs_catalogue_check(const struct gs_strv *dirs,
		       void (*each)(const char *file, const struct gs_vendor *vendor,
				    const struct gs_err *wrong, void *arg),
		       void *arg, struct gs_err *err);

/* Frees what @cat holds. */
void gs_catalogue_free(struct gs_catalogue *cat);
#define cleanup_catalogue __attribute__((cleanup(gs_catalogue_free)))

/*
 * Is the device node @path with these numbers this vendor's? Gives the matching rule or NULL.
 * Where the rule names drivers, the node's driver is looked up in
 * /sys/dev/char/<major>:<minor>/device/driver. A path that is not plain (common/glob.h) is no
 * vendor's, here and below.
 */
const struct gs_node *gs_vendor_node(const struct gs_vendor *vendor, const char *path,
				     unsigned int major, unsigned int minor);

/* Where sysfs is: "/sys". Tests point it elsewhere. */
extern const char *gs_catalogue_sysfs;

/* The place in cat->initials of a name's first three bytes (a shorter one ends in NULs). */
unsigned int gs_initials(const char *name);

/*
 * The first vendor whose node that is, with the matching rule in *ret_node; NULL: nobody's. Most of
 * a privileged container's hundred devices are told by their first letters.
 */
const struct gs_vendor *gs_catalogue_node(const struct gs_catalogue *cat, const char *path,
					  unsigned int major, unsigned int minor,
					  const struct gs_node **ret_node);

/* The vendor's variable of that name (@len bytes), or NULL. */
const struct gs_env *gs_vendor_env(const struct gs_vendor *vendor, const char *name, size_t len);

/*
 * Is a bind mount of host path @source at @destination one of this vendor's files? Both must
 * match, because a pod's author chooses the destinations of his own volumes.
 */
const struct gs_mount *gs_vendor_mount(const struct gs_vendor *vendor, const char *destination,
				       const char *source);

/* May the hook program @path be copied (@next: is it one that the next runtime adds itself)? */
bool gs_vendor_hook(const struct gs_vendor *vendor, const char *path);
bool gs_vendor_next_hook(const struct gs_vendor *vendor, const char *path);

/* Does the runtime with this path inject this vendor's cards by selector? */
bool gs_vendor_next_runtime(const struct gs_vendor *vendor, const char *path);

#endif
