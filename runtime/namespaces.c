// SPDX-License-Identifier: Apache-2.0
/* Namespaces of a spec, and which of them get no devices at all. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/file.h"
#include "common/xalloc.h"
#include "runtime/policy.h"

/* Not a path: what the entry says can't be told, as a member stands twice or in another case. */
static const char unclear[] = "?";

/* The entry of @type in linux.namespaces, false: none. *ret_path: NULL for a new namespace. */
static bool namespace_entry(const struct spec *spec, const char *type, char **ret_path)
{
	struct js_iter it = js_iter(spec->namespaces);
	struct js entry, v;

	*ret_path = NULL;
	while (js_next_element(&it, &entry)) {
		struct js path;

		if (js_member(entry, "type", &v, NULL) < 0 ||
		    js_member(entry, "path", &path, NULL) < 0) {
			*ret_path = gs_strdup(unclear);
			return true;
		}
		if (!js_string_is(v, type))
			continue;
		if (!js_absent(path) && !js_string_is(path, ""))
			*ret_path = js_is(path, JS_STRING) ? js_string(path) : gs_strdup(unclear);
		return true;
	}
	return false;
}

/* The kernel's name of a namespace type in /proc/PID/ns. */
static const char *kernel_name(const char *type)
{
	if (strcmp(type, "network") == 0)
		return "net";
	return strcmp(type, "mount") == 0 ? "mnt" : type;
}

static bool same_file(const char *a, const char *b)
{
	struct stat sa, sb;

	return stat(a, &sa) == 0 && stat(b, &sb) == 0 && sa.st_dev == sb.st_dev &&
	       sa.st_ino == sb.st_ino;
}

bool policy_is_host_namespace(const struct spec *spec, const char *type)
{
	cleanup_free char *path = NULL;
	cleanup_free char *ours = gs_asprintf("/proc/self/ns/%s", kernel_name(type));
	cleanup_free char *init = gs_asprintf("/proc/1/ns/%s", kernel_name(type));
	struct stat st;

	if (!namespace_entry(spec, type, &path))
		return true;
	if (!path)
		return false;
	/* a path that can't be followed tells nothing: as bad as the host's */
	return stat(path, &st) < 0 || same_file(path, ours) || same_file(path, init);
}

bool policy_shares_pid_namespace(const struct spec *spec)
{
	cleanup_free char *path = NULL;

	return !namespace_entry(spec, "pid", &path) || path;
}

/* Do we run as the host's root? The initial user namespace maps all ids onto themselves. */
static bool is_host_root(void)
{
	cleanup_free char *map = NULL;
	unsigned long inside, outside;
	size_t len;
	char *p;

	if (geteuid() != 0)
		return false;
	if (gs_file_read(AT_FDCWD, "/proc/self/uid_map", 0, 4096, &map, &len, NULL, NULL) < 0)
		return false;
	inside = strtoul(map, &p, 10);
	outside = strtoul(p, &p, 10);
	return inside == 0 && outside == 0 && strtoul(p, NULL, 10) == UINT32_MAX;
}

int policy_check_user_namespace(const struct spec *spec, struct gs_err *err)
{
	cleanup_free char *path = NULL;
	struct js maps;
	int r;

	if (!is_host_root())
		return gs_err_set(
			err, EPERM,
			"devices can't be shared by a rootless runtime: it runs in a user "
			"namespace or not as root");
	r = js_member(spec->linux_obj, "uidMappings", &maps, err);
	if (r < 0)
		return r;
	if (namespace_entry(spec, "user", &path) ||
	    (js_is(maps, JS_ARRAY) && memchr(maps.p, '{', maps.n)))
		return gs_err_set(err, EPERM,
				  "devices can't be shared into a container with a user namespace "
				  "(hostUsers: false): their nodes would belong to nobody there");
	return 0;
}
