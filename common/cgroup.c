// SPDX-License-Identifier: Apache-2.0
/* Looking into cgroups, and telling which cgroup a container's spec means. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/cgroup.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/xalloc.h"

/* Deeper than any container makes; bounds recursion, and with it open files. */
#define CGROUP_DEPTH_MAX 64

char *gs_cgroup_pick(char *text)
{
	char *line, *save = NULL, *unified = NULL, *devices = NULL;

	/* "<hierarchy>:<controllers>:<path>", and the path may hold colons. */
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;

		if (!path)
			continue;
		list++;
		if (strncmp(line, "0::", 3) == 0)
			unified = path + 1;
		else if (gs_commas_have(list, (size_t)(path - list), "devices"))
			devices = path + 1;
	}
	/* a v1 hierarchy that stands beside cgroup v2 unused leaves everybody in its root */
	if (devices && (strcmp(devices, "/") != 0 || !unified))
		return gs_strdup(devices);
	return unified ? gs_strdup(unified) : NULL;
}

/* Takes the next component off *@s: its start, and length; 0 at the end. */
static size_t component(const char **s, const char **ret)
{
	size_t len;

	*s += strspn(*s, "/");
	*ret = *s;
	len = strcspn(*s, "/");
	*s += len;
	return len;
}

/* Do the components of @path begin with all those of @want? */
static bool starts_with(const char *path, const char *want)
{
	for (;;) {
		const char *a, *b;
		size_t len_b = component(&want, &b), len_a;

		if (len_b == 0)
			return true;
		len_a = component(&path, &a);
		if (len_a != len_b || memcmp(a, b, len_a) != 0)
			return false;
	}
}

/* Do the components of @want stand in @path one after another, anywhere? */
static bool holds(const char *path, const char *want)
{
	const char *at;

	do {
		if (starts_with(path, want))
			return true;
	} while (component(&path, &at) > 0);
	return false;
}

bool gs_cgroup_matches(const char *path, const char *cgroups_path)
{
	const char *prefix, *name;
	char *unit;
	size_t len;
	bool yes;

	if (!cgroups_path || !*cgroups_path || holds(path, cgroups_path))
		return true;
	prefix = strchr(cgroups_path, ':');
	name = prefix ? strchr(prefix + 1, ':') : NULL;
	if (!name || !name[1] || strchr(name + 1, ':') || strchr(name, '/'))
		return false;
	prefix++;
	name++;
	len = strlen(name);
	if (len > 6 && strcmp(name + len - 6, ".slice") == 0)
		return holds(path, name);
	unit = gs_asprintf("%.*s-%s.scope", (int)(name - 1 - prefix), prefix, name);
	yes = !strchr(unit, '/') && holds(path, unit);
	free(unit);
	return yes;
}

/* Reads at most @size - 1 bytes of @name in @dir and ends them; -1 where there is no such file. */
static ssize_t read_start(int dir, const char *name, char *buf, size_t size)
{
	cleanup_close int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t n;

	if (fd < 0)
		return -1;
	do
		n = read(fd, buf, size - 1);
	while (n < 0 && errno == EINTR);
	buf[n > 0 ? n : 0] = '\0';
	return n;
}

/* After something could not be opened: is it no more than that there is no descriptor for it? */
static bool is_unknown(void)
{
	return gs_err_is_scarce(-errno);
}

/* Takes @fd. What can't be looked at now counts as busy. */
static bool busy(int fd, unsigned int depth)
{
	cleanup_close int mine = fd;
	cleanup_dir DIR *dir = NULL;
	struct dirent *entry;
	char text[128];
	ssize_t n;

	/* Version 2 answers for the whole tree below. */
	n = read_start(fd, "cgroup.events", text, sizeof(text));
	if (n >= 0)
		return strstr(text, "populated 1") != NULL;
	if (is_unknown() || read_start(fd, "cgroup.procs", text, sizeof(text)) > 0)
		return true;
	dir = fdopendir(fd);
	if (!dir)
		return false;
	(void)gs_steal_fd(&mine);
	while ((entry = readdir(dir))) {
		int sub;

		if (entry->d_type != DT_DIR || entry->d_name[0] == '.' || depth == 0)
			continue;
		sub = openat(dirfd(dir), entry->d_name,
			     O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (sub >= 0 && busy(sub, depth - 1))
			return true;
	}
	return false;
}

static bool busy_path(const char *root, const char *hierarchy, const char *path)
{
	char *full = gs_asprintf("%s%s%s", root, hierarchy, path);
	int fd = open(full, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	bool ret = fd < 0 ? is_unknown() : busy(fd, CGROUP_DEPTH_MAX);

	free(full);
	return ret;
}

/* A cgroup namespace shows what lies outside of it as "/../..". */
static bool usable(const char *path)
{
	const char *rest = path, *at;
	size_t len, n = 0;

	if (path[0] != '/')
		return false;
	for (; (len = component(&rest, &at)) > 0; n++)
		if (len == 2 && memcmp(at, "..", 2) == 0)
			return false;
	return n > 0;
}

bool gs_cgroup_busy(const char *root, const char *path)
{
	size_t len = strlen(root);

	if (!usable(path))
		return false;
	if (strncmp(path, root, len) == 0 && path[len] == '/')
		return usable(path + len) && busy_path("", "", path);
	return busy_path(root, "", path) || busy_path(root, "/devices", path) ||
	       busy_path(root, "/unified", path);
}

char *gs_cgroup_folder(const char *root, const char *path)
{
	static const char *const hierarchies[] = { "", "/devices", "/unified" };

	if (!usable(path) || strcmp(path, "/") == 0)
		return NULL;
	for (size_t i = 0; i < GS_ARRAY_SIZE(hierarchies); i++) {
		cleanup_free char *folder = gs_asprintf("%s%s%s", root, hierarchies[i], path);
		cleanup_free char *procs = gs_asprintf("%s/cgroup.procs", folder);

		if (access(procs, F_OK) == 0)
			return gs_steal(folder);
	}
	return NULL;
}
