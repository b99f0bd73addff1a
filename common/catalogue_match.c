// SPDX-License-Identifier: Apache-2.0
/* Which device nodes, variables, mounts and hooks are a vendor's. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/catalogue.h"
#include "common/glob.h"

const char *gs_catalogue_sysfs = "/sys";

/* The kernel driver behind a character device; false where sysfs does not tell. */
static bool node_driver(unsigned int major, unsigned int minor, char ret[NAME_MAX + 1])
{
	char path[PATH_MAX], target[PATH_MAX];
	const char *base;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "%s/dev/char/%u:%u/device/driver", gs_catalogue_sysfs,
		       major, minor);
	n = readlink(path, target, sizeof(target) - 1);
	if (n <= 0)
		return false;
	target[n] = '\0';
	base = strrchr(target, '/');
	base = base ? base + 1 : target;
	return snprintf(ret, NAME_MAX + 1, "%s", base) <= NAME_MAX;
}

const struct gs_node *gs_vendor_node(const struct gs_vendor *vendor, const char *path,
				     unsigned int major, unsigned int minor)
{
	char driver[NAME_MAX + 1];
	int known = -1; /* not looked up yet */

	if (!gs_path_plain(path))
		return NULL;
	for (size_t i = 0; i < vendor->n_nodes; i++) {
		const struct gs_node *node = &vendor->nodes[i];

		if (!gs_glob_match(node->glob, path))
			continue;
		if (node->drivers.n == 0)
			return node;
		if (known < 0)
			known = node_driver(major, minor, driver);
		if (known && gs_strv_has(&node->drivers, driver))
			return node;
	}
	return NULL;
}

unsigned int gs_initials(const char *name)
{
	unsigned int hash = 0;

	for (int i = 0; i < 3; i++) {
		hash = hash * 31 + (unsigned char)*name;
		name += *name != '\0';
	}
	return hash % GS_INITIALS;
}

const struct gs_vendor *gs_catalogue_node(const struct gs_catalogue *cat, const char *path,
					  unsigned int major, unsigned int minor,
					  const struct gs_node **ret_node)
{
	if (strncmp(path, "/dev/", 5) != 0 || !cat->initials[gs_initials(path + 5)])
		return NULL;
	for (size_t i = 0; i < cat->n; i++) {
		*ret_node = gs_vendor_node(&cat->v[i], path, major, minor);
		if (*ret_node)
			return &cat->v[i];
	}
	return NULL;
}

const struct gs_env *gs_vendor_env(const struct gs_vendor *vendor, const char *name, size_t len)
{
	for (size_t i = 0; i < vendor->n_envs; i++)
		if (strncmp(vendor->envs[i].name, name, len) == 0 && !vendor->envs[i].name[len])
			return &vendor->envs[i];
	return NULL;
}

/* Is @source one of the driver's files that would stand at @glob if the driver's root were "/"? */
static bool below_a_root(const struct gs_strv *roots, const char *glob, const char *source)
{
	for (size_t i = 0; i < roots->n; i++) {
		size_t n = strlen(roots->v[i]);

		if (strncmp(source, roots->v[i], n) == 0 && gs_glob_match(glob, source + n))
			return true;
	}
	return false;
}

/*
 * Does the kubelet keep a pod's own volume there, whatever its root directory is? Such a file is
 * the pod author's, and no pattern of a catalogue can make it the driver's.
 */
static bool is_pod_volume(const char *source)
{
	return strstr(source, "/volumes/kubernetes.io~") || strstr(source, "/volume-subpaths/");
}

const struct gs_mount *gs_vendor_mount(const struct gs_vendor *vendor, const char *destination,
				       const char *source)
{
	if (!gs_path_plain(destination) || !gs_path_plain(source) || is_pod_volume(source))
		return NULL;
	for (size_t i = 0; i < vendor->n_mounts; i++) {
		const struct gs_mount *mount = &vendor->mounts[i];

		if (!gs_glob_match(mount->to, destination))
			continue;
		if (mount->from.n ? gs_glob_any(&mount->from, source) :
				    below_a_root(&vendor->roots, mount->to, source))
			return mount;
	}
	return NULL;
}

bool gs_vendor_hook(const struct gs_vendor *vendor, const char *path)
{
	return gs_path_plain(path) && gs_glob_any_across(&vendor->hooks, path);
}

bool gs_vendor_next_hook(const struct gs_vendor *vendor, const char *path)
{
	return gs_path_plain(path) && gs_glob_any_across(&vendor->next_hooks, path);
}

bool gs_vendor_next_runtime(const struct gs_vendor *vendor, const char *path)
{
	const char *base = strrchr(path, '/');

	return gs_strv_has(&vendor->next_runtimes, base ? base + 1 : path);
}
