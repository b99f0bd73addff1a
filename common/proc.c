// SPDX-License-Identifier: Apache-2.0
/* Reading /proc: start times, cgroups, namespaces, the boot's id. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/cgroup.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/proc.h"

/* A process in the deepest cgroup of every version 1 hierarchy stays far below this. */
#define PROC_FILE_MAX (256 * 1024)

static int read_pid(pid_t pid, const char *file, char **ret, struct gs_err *err)
{
	char path[64];
	size_t len;
	int r;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	r = gs_file_read(AT_FDCWD, path, 0, PROC_FILE_MAX, ret, &len, NULL, err);
	/* Gone before the open, or between open and read. */
	if (r == -ENOENT || r == -ESRCH)
		return gs_err_set(err, ESRCH, "process %d is gone", (int)pid);
	return r;
}

/* The start of field @n of a stat line, given the start of field 3; NULL where it has fewer. */
static const char *field(const char *s, unsigned int n)
{
	for (unsigned int i = 3; s && i < n; i++) {
		s = strchr(s, ' ');
		if (s)
			s++;
	}
	return s;
}

/* Field 3. Field 2 is the program's name in brackets and may itself hold ") ". */
static const char *state_field(const char *text)
{
	const char *s = strrchr(text, ')');

	return s && s[1] == ' ' ? s + 2 : NULL;
}

int gs_proc_parent(pid_t pid, pid_t *ret, struct gs_err *err)
{
	cleanup_free char *text = NULL;
	const char *parent;
	int r = read_pid(pid, "stat", &text, err);

	if (r < 0)
		return r;
	parent = field(state_field(text), 4);
	if (!parent)
		return gs_err_set(err, EPROTO, "/proc/%d/stat: no parent", (int)pid);
	*ret = (pid_t)strtol(parent, NULL, 10);
	return 0;
}

int gs_proc_start(pid_t pid, uint64_t *ret_ticks, struct gs_err *err)
{
	cleanup_free char *text = NULL;
	const char *state, *threads, *start;
	char *end;
	uint64_t ticks;
	int r = read_pid(pid, "stat", &text, err);

	if (r < 0)
		return r;
	state = state_field(text);
	threads = field(state, 20);
	start = field(threads, 5); /* 2 fields on: 22 */
	if (!start)
		return gs_err_set(err, EPROTO, "/proc/%d/stat: fewer than 22 fields", (int)pid);
	/*
	 * A zombie whose other threads still run is a process whose first thread has ended; a
	 * zombie alone only waits for its parent.
	 */
	if (state[0] == 'X' || (state[0] == 'Z' && strtoul(threads, NULL, 10) <= 1))
		return gs_err_set(err, ESRCH, "process %d has ended", (int)pid);
	errno = 0;
	ticks = strtoull(start, &end, 10);
	if (errno || end == start)
		return gs_err_set(err, EPROTO, "/proc/%d/stat: no start time", (int)pid);
	*ret_ticks = ticks;
	return 0;
}

static struct timespec boottime(void)
{
	struct timespec ts;

	/* Linux has had CLOCK_BOOTTIME since 2.6.39; the call cannot fail on it. */
	if (clock_gettime(CLOCK_BOOTTIME, &ts) < 0)
		abort();
	return ts;
}

uint64_t gs_ticks_now(void)
{
	struct timespec ts = boottime();
	uint64_t hz = (uint64_t)sysconf(_SC_CLK_TCK);

	return (uint64_t)ts.tv_sec * hz + (uint64_t)ts.tv_nsec * hz / 1000000000;
}

uint64_t gs_boottime_ms(void)
{
	struct timespec ts = boottime();

	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

int gs_boot_id(char ret[37], struct gs_err *err)
{
	static const char path[] = "/proc/sys/kernel/random/boot_id";
	cleanup_free char *text = NULL;
	size_t len;
	int r = gs_file_read(AT_FDCWD, path, 0, 64, &text, &len, NULL, err);

	if (r < 0)
		return r;
	if (len < 36 || strspn(text, "0123456789abcdef-") != 36)
		return gs_err_set(err, EPROTO, "%s: not an id of 36 characters", path);
	memcpy(ret, text, 36);
	ret[36] = '\0';
	return 0;
}

int gs_proc_cgroup(pid_t pid, char **ret, struct gs_err *err)
{
	cleanup_free char *text = NULL, *path = NULL;
	int r = read_pid(pid, "cgroup", &text, err);

	if (r < 0)
		return r;
	path = gs_cgroup_pick(text);
	if (!path)
		return gs_err_set(err, ENODATA, "/proc/%d/cgroup: neither cgroup2 nor devices",
				  (int)pid);
	*ret = gs_steal(path);
	return 0;
}

int gs_proc_ns(pid_t pid, const char *name, uint64_t *ret, struct gs_err *err)
{
	char path[64];
	struct stat st;

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, name);
	if (stat(path, &st) < 0)
		return gs_err_errno(err, errno == ENOENT ? ESRCH : errno, "%s", path);
	*ret = st.st_ino;
	return 0;
}

int gs_pid_file_read(const char *path, pid_t *ret, struct gs_err *err)
{
	cleanup_free char *text = NULL;
	char *end;
	long pid;
	size_t len;
	int r = gs_file_read(AT_FDCWD, path, O_NOFOLLOW, 64, &text, &len, NULL, err);

	if (r < 0)
		return r;
	if (text[0] < '0' || text[0] > '9')
		return gs_err_set(err, EINVAL, "%s: not a process number", path);
	errno = 0;
	pid = strtol(text, &end, 10);
	end += strspn(end, " \t\r\n");
	if (errno || pid <= 0 || pid > INT_MAX || end != text + len)
		return gs_err_set(err, EINVAL, "%s: not a process number", path);
	*ret = (pid_t)pid;
	return 0;
}
