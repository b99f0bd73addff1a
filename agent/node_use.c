// SPDX-License-Identifier: Apache-2.0
/* What the node and single pods use. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/node_use.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/identity.h"
#include "common/xalloc.h"

#define FILE_MAX_BYTES (1024 * 1024)
#define MIB (1024 * 1024)

/* The number at @text, and where it ends; false: there is none. */
static bool number(const char *text, const char **ret_end, uint64_t *ret)
{
	char *end;

	text += strspn(text, " ");
	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*ret = strtoull(text, &end, 10);
	*ret_end = end;
	return errno == 0;
}

/* The number behind @key at the beginning of a line; false: there is no such line. */
static bool find(const char *text, const char *key, uint64_t *ret)
{
	size_t n = strlen(key);
	const char *end;

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, n) == 0 && number(line + n, &end, ret))
			return true;
		if (!*line)
			break;
	}
	return false;
}

static int read_text(const char *dir, const char *name, char **ret, struct gs_err *err)
{
	cleanup_free char *path = gs_asprintf("%s/%s", dir, name);
	size_t len;

	return gs_file_read(AT_FDCWD, path, 0, FILE_MAX_BYTES, ret, &len, NULL, err);
}

static int read_cpu(const char *proc, struct node_use_all *ret, struct gs_err *err)
{
	cleanup_free char *text = NULL;
	enum { USER, NICE, SYSTEM, IDLE, IOWAIT, N }; /* proc(5) */
	uint64_t v[N];
	long hz = sysconf(_SC_CLK_TCK);
	int r = read_text(proc, "stat", &text, err);
	const char *at;
	size_t n = 0;

	if (r < 0)
		return r;
	at = text + strcspn(text, " ");
	while (n < N && number(at, &at, &v[n]))
		n++;
	if (hz <= 0 || strncmp(text, "cpu ", 4) != 0 || n < N)
		return gs_err_set(err, EINVAL, "%s/stat: the line of all processors is missing",
				  proc);
	ret->idle_us = (v[IDLE] + v[IOWAIT]) * (1000000 / (uint64_t)hz);
	/* a line each behind it */
	ret->processors = 0;
	for (at = strchr(text, '\n'); at && strncmp(at, "\ncpu", 4) == 0; at = strchr(at + 1, '\n'))
		ret->processors++;
	if (ret->processors == 0)
		return gs_err_set(err, EINVAL, "%s/stat: no processor has a line", proc);
	return 0;
}

static int read_memory(const char *proc, uint64_t *ret_mib, struct gs_err *err)
{
	cleanup_free char *text = NULL;
	uint64_t total, available;
	int r = read_text(proc, "meminfo", &text, err);

	if (r < 0)
		return r;
	if (!find(text, "MemTotal:", &total) || !find(text, "MemAvailable:", &available) ||
	    available > total)
		return gs_err_set(err, EINVAL, "%s/meminfo: how much is available is missing",
				  proc);
	*ret_mib = (total - available) / 1024;
	return 0;
}

int node_use_all(const char *proc, struct node_use_all *ret, struct gs_err *err)
{
	int r = read_cpu(proc, ret, err);

	return r < 0 ? r : read_memory(proc, &ret->memory_mib, err);
}

int node_use_between(const struct node_use_all *before, const struct node_use_all *now,
		     uint64_t passed_us, uint64_t *ret_milli)
{
	uint64_t all_us = now->processors * passed_us, idle_us;

	if (before->processors != now->processors || passed_us == 0)
		return -EAGAIN;
	/* waiting for disks may be counted less than before, says proc(5) */
	idle_us = now->idle_us > before->idle_us ? now->idle_us - before->idle_us : 0;
	*ret_milli = idle_us < all_us ? (all_us - idle_us) * 1000 / passed_us : 0;
	return 0;
}

int node_use_check(const char *root, struct gs_err *err)
{
	cleanup_free char *path = gs_asprintf("%s/cgroup.controllers", root);

	if (access(path, F_OK) == 0)
		return 0;
	return gs_err_set(err, ENOTSUP, "%s: cgroup v2 is not mounted there", root);
}

char *node_use_folder(const char *root, const char *uid)
{
	static const char *const classes[] = { "besteffort", "burstable", NULL };
	cleanup_free char *dashed = NULL;

	if (!gs_id_valid(uid))
		return NULL;
	dashed = gs_strdup(uid);
	for (char *c = dashed; *c; c++)
		if (*c == '-')
			*c = '_';
	for (size_t i = 0; i < GS_ARRAY_SIZE(classes); i++) {
		const char *class = classes[i];
		char *names[] = {
			class ? gs_asprintf("%s/kubepods/%s/pod%s", root, class, uid) :
				gs_asprintf("%s/kubepods/pod%s", root, uid),
			class ? gs_asprintf("%s/kubepods.slice/kubepods-%s.slice/"
					    "kubepods-%s-pod%s.slice",
					    root, class, class, dashed) :
				gs_asprintf("%s/kubepods.slice/kubepods-pod%s.slice", root, dashed),
		};
		char *found = NULL;

		for (size_t k = 0; k < GS_ARRAY_SIZE(names); k++) {
			if (!found && access(names[k], F_OK) == 0)
				found = names[k];
			else
				free(names[k]);
		}
		if (found)
			return found;
	}
	return NULL;
}

int node_use_pod(const char *root, const char *uid, struct node_use *ret, struct gs_err *err)
{
	cleanup_free char *dir = node_use_folder(root, uid);
	cleanup_free char *cpu = NULL, *current = NULL, *stat = NULL;
	uint64_t bytes = 0, cached = 0, dirty = 0, on_its_way = 0;
	int r;

	if (!dir)
		return gs_err_set(err, ENOENT, "pod %.64s has no cgroup", uid);
	r = read_text(dir, "cpu.stat", &cpu, err);
	if (r == 0)
		r = read_text(dir, "memory.current", &current, err);
	if (r == 0)
		r = read_text(dir, "memory.stat", &stat, err);
	if (r < 0)
		return r;
	if (!find(cpu, "usage_usec ", &ret->cpu_us) || !find(current, "", &bytes))
		return gs_err_set(err, EINVAL, "%s: its use can't be read", dir);
	(void)find(stat, "inactive_file ", &cached);
	(void)find(stat, "file_dirty ", &dirty);
	(void)find(stat, "file_writeback ", &on_its_way);
	ret->memory_mib = (bytes > cached ? bytes - cached : 0) / MIB;
	ret->charged = bytes;
	ret->clean = cached > dirty + on_its_way ? cached - dirty - on_its_way : 0;
	return 0;
}
