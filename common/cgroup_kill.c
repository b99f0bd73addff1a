// SPDX-License-Identifier: Apache-2.0
/* Killing a cgroup with all that is in it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/cgroup.h"
#include "common/cgroup_kill.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/proc.h"
#include "common/xalloc.h"

#define PROCS_MAX (4 * 1024 * 1024)
/* The kernel's own bound is cgroup.max.depth; nobody nests containers so far. */
#define DEPTH_MAX 64

static bool ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	return n >= m && strcmp(s + n - m, end) == 0;
}

/* Folders of /sys/fs/cgroup that are hierarchies on v1 and hybrid, and no cgroup's name on v2. */
static bool is_hierarchy(const char *name, size_t len)
{
	static const char *const names[] = { "blkio",	"cpu",	   "cpuacct",  "cpuset",
					     "devices", "freezer", "hugetlb",  "memory",
					     "misc",	"net_cls", "net_prio", "perf_event",
					     "pids",	"rdma",	   "systemd",  "unified" };
	const char *comma = memchr(name, ',', len); /* cpu,cpuacct */

	if (comma)
		len = (size_t)(comma - name);
	for (size_t i = 0; i < GS_ARRAY_SIZE(names); i++)
		if (strlen(names[i]) == len && memcmp(name, names[i], len) == 0)
			return true;
	return false;
}

/* The part of @path that names the cgroup: behind the mount, and behind the hierarchy on v1. */
static const char *inner_path(const char *path)
{
	const char *slash;

	path += strlen(GS_CGROUP_ROOT);
	slash = strchr(path + 1, '/');
	return slash && is_hierarchy(path + 1, (size_t)(slash - path - 1)) ? slash : path;
}

/* Are we in it, and with us whoever called us? */
static bool holds_us(const char *inner)
{
	cleanup_free char *own = NULL;
	size_t n = strlen(inner);

	return gs_proc_cgroup(getpid(), &own, NULL) == 0 && strncmp(own, inner, n) == 0 &&
	       (own[n] == '/' || own[n] == '\0');
}

/*
 * A mistake here kills a node: never the root of a hierarchy nor what stands right below it, never
 * what holds pods of more than one owner (kubepods, its QoS classes, slices of the system), never
 * what holds ourselves.
 */
static bool may_kill(const char *path)
{
	static const char *const never[] = { "kubepods",	 "burstable",
					     "besteffort",	 "kubepods.slice",
					     "-burstable.slice", "-besteffort.slice",
					     "system.slice",	 "user.slice",
					     "machine.slice",	 "init.scope" };
	const char *inner, *last;

	if (strncmp(path, GS_CGROUP_ROOT "/", strlen(GS_CGROUP_ROOT "/")) != 0 ||
	    strstr(path, "//") || strstr(path, "/./") || strstr(path, "/../") ||
	    ends_with(path, "/") || ends_with(path, "/.") || ends_with(path, "/.."))
		return false;
	inner = inner_path(path);
	last = strrchr(inner, '/');
	if (last == inner)
		return false;
	for (size_t i = 0; i < GS_ARRAY_SIZE(never); i++) {
		bool ending = never[i][0] == '-' || strchr(never[i], '.');

		if (strcmp(last + 1, never[i]) == 0 || (ending && ends_with(last, never[i])))
			return false;
	}
	return !holds_us(inner);
}

static bool write_control(int dir, const char *name, const char *value)
{
	cleanup_close int fd = openat(dir, name, O_WRONLY | O_CLOEXEC);

	return fd >= 0 && write(fd, value, strlen(value)) == (ssize_t)strlen(value);
}

/*
 * Does cgroup v2 say of this cgroup, with all below it, that nothing runs in it? However many those
 * are: whoever may make cgroups of his own could make more than anybody can walk through.
 */
static bool is_unpopulated(int dir)
{
	cleanup_free char *events = NULL;
	size_t len;

	return gs_file_read(dir, "cgroup.events", 0, 4096, &events, &len, NULL, NULL) == 0 &&
	       strstr(events, "populated 0");
}

/* SIGKILL to each process that cgroup.procs lists; gives how many there were. */
static size_t kill_procs(int dir)
{
	cleanup_free char *procs = NULL;
	size_t len, n = 0;
	char *p, *end;
	int r;

	r = gs_file_read(dir, "cgroup.procs", 0, PROCS_MAX, &procs, &len, NULL, NULL);
	if (r < 0) /* gone is empty; what can't be read (a threaded cgroup, too many) is not */
		return r == -ENOENT || r == -ENODEV || is_unpopulated(dir) ? 0 : 1;
	for (p = procs; *p; p = end) {
		long pid = strtol(p, &end, 10);

		if (end == p)
			break;
		/* 0: a process of a PID namespace that we do not see; never kill(0) */
		if (pid > 1)
			(void)kill((pid_t)pid, SIGKILL);
		n++;
		while (*end == '\n')
			end++;
	}
	return n;
}

/* The same for this cgroup and those below; what can't be looked at counts as one more. */
static size_t kill_each(int dir, int depth)
{
	size_t n = kill_procs(dir);
	cleanup_dir DIR *d = gs_opendirat(dir, ".");
	struct dirent *e;

	if (!d)
		return n + (errno != ENOENT);
	while ((e = readdir(d)) != NULL) {
		cleanup_close int sub = -1;

		if (e->d_type != DT_DIR || e->d_name[0] == '.')
			continue;
		sub = openat(dir, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (sub < 0)
			n += errno != ENOENT;
		else
			n += depth < DEPTH_MAX ? kill_each(sub, depth + 1) : 1;
	}
	return n;
}

/*
 * What could keep the dying from dying: cgroup v1's freezer, a hierarchy of its own where SIGKILL
 * waits for the thaw (v2's lets it through), and a share of the processor too small to end in.
 */
static void let_die(const char *path, int dir)
{
	cleanup_free char *folder = NULL;
	cleanup_close int freezer = -1;

	(void)write_control(dir, "cpu.max", "max");
	if (strncmp(path, GS_CGROUP_ROOT "/devices/", strlen(GS_CGROUP_ROOT "/devices/")) != 0)
		return;
	folder = gs_asprintf(GS_CGROUP_ROOT "/freezer%s", inner_path(path));
	freezer = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (freezer >= 0)
		(void)write_control(freezer, "freezer.state", "THAWED");
}

static int check_path(const char *path, struct gs_err *err)
{
	return may_kill(path) ?
		       0 :
		       gs_err_set(err, EINVAL, "cgroup %s is not one that may be killed", path);
}

int gs_cgroup_kill_begin(const char *path, uint64_t *ret_ns, struct gs_err *err)
{
	cleanup_free char *file = NULL;
	cleanup_close int fd = -1;
	struct timespec now;
	int r = check_path(path, err);

	if (r < 0)
		return r;
	file = gs_asprintf("%s/cgroup.kill", path);
	fd = open(file, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return gs_err_errno(err, errno, "open %s", file);
	if (ret_ns && clock_gettime(CLOCK_MONOTONIC, &now) == 0)
		*ret_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	if (write(fd, "1", 1) != 1)
		return gs_err_errno(err, errno, "write %s", file);
	return 0;
}

int gs_cgroup_kill(const char *path, uint64_t deadline_ms, struct gs_err *err)
{
	static const struct timespec pause = { .tv_nsec = 5 * 1000 * 1000 };
	int r = check_path(path, err);

	if (r < 0)
		return r;
	for (;;) {
		cleanup_close int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (dir < 0)
			return errno == ENOENT ? 0 : gs_err_errno(err, errno, "open %s", path);
		/* before 5.14 there is no cgroup.kill: stop them all, so that none forks away */
		if (!write_control(dir, "cgroup.kill", "1")) {
			bool frozen = write_control(dir, "cgroup.freeze", "1");
			size_t left = kill_each(dir, 0);

			if (frozen)
				(void)write_control(dir, "cgroup.freeze", "0");
			if (left == 0 || is_unpopulated(dir))
				return 0;
		} else if (is_unpopulated(dir)) {
			return 0;
		}
		let_die(path, dir);
		if (gs_boottime_ms() >= deadline_ms)
			return gs_err_set(err, ETIMEDOUT, "processes in %s outlive SIGKILL", path);
		(void)nanosleep(&pause, NULL);
	}
}
