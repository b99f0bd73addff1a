// SPDX-License-Identifier: Apache-2.0
/*
 * Is a container of the registry running, and taking away what is left of one that is not. A
 * `delete` only marks, because the container's processes may outlive it for a while.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/cgroup.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/proc.h"
#include "common/registry_dir.h"
#include "common/xalloc.h"

/* Marked containers that still run cost a sweep something too; it looks at this many at most. */
#define SWEEP_LOOK_MAX 64
/* How often the folder of marks may vanish between making it and using it. */
#define MARK_TRIES 1000

/* Why it does not live: @r, which came with @why, unless that says nothing of it. */
static int dead(const struct gs_record *record, int r, const struct gs_err *why, struct gs_err *err)
{
	return gs_err_set(err, gs_err_is_scarce(r) ? -r : ESRCH, "container %s: %s", record->id,
			  why->msg);
}

/* Without a hook's record: by the pid file that the next runtime writes. */
static int alive_by_pid_file(const struct gs_record *record, pid_t *ret_pid, struct gs_err *err)
{
	cleanup_free char *cgroup = NULL;
	struct gs_err why;
	uint64_t start = 0;
	pid_t pid;
	int r;

	if (!record->pid_file)
		return gs_err_set(err, ESRCH, "container %s has no pid file", record->id);
	if (record->pid_file[0] != '/')
		return gs_err_set(err, ESRCH, "the pid file of container %s, %s, is no full path",
				  record->id, record->pid_file);
	if (access(record->pid_file, F_OK) < 0 && errno == ENOENT)
		/* not strerror's words for it: podman takes them for a missing command */
		return gs_err_set(err, ESRCH, "container %s: has not started, there is no %s yet",
				  record->id, record->pid_file);
	r = gs_pid_file_read(record->pid_file, &pid, &why);
	if (r == 0)
		r = gs_proc_start(pid, &start, &why);
	if (r == 0)
		r = gs_proc_cgroup(pid, &cgroup, &why);
	if (r < 0)
		return dead(record, r, &why, err);
	if (start < record->start_ticks)
		return gs_err_set(err, ESRCH, "container %s: process %d is older than it",
				  record->id, (int)pid);
	if (!gs_cgroup_matches(cgroup, record->cgroups_path))
		return gs_err_set(err, ESRCH, "container %s: process %d is in cgroup %s, not %s",
				  record->id, (int)pid, cgroup, record->cgroups_path);
	if (ret_pid)
		*ret_pid = pid;
	return 0;
}

int gs_registry_alive(const char *run_dir, const struct gs_record *record, pid_t *ret_pid,
		      struct gs_err *err)
{
	cleanup_hook_record struct gs_hook_record hook = { 0 };
	struct gs_err why;
	char boot[37];
	uint64_t start;
	int r;

	if (record->boot_id && gs_boot_id(boot, NULL) == 0 && strcmp(boot, record->boot_id) != 0)
		return gs_err_set(err, ESRCH, "container %s was made before the last boot",
				  record->id);
	r = gs_registry_read_hook(run_dir, record->id, &hook, &why);
	if (gs_err_is_scarce(r))
		return dead(record, r, &why, err);
	/* A damaged hook's record says no more than a missing one. */
	if (r < 0)
		return alive_by_pid_file(record, ret_pid, err);
	r = gs_proc_start(hook.pid, &start, &why);
	if (r < 0)
		return dead(record, r, &why, err);
	if (start != hook.start_ticks)
		return gs_err_set(err, ESRCH, "container %s: process %d is another one now",
				  record->id, (int)hook.pid);
	if (ret_pid)
		*ret_pid = hook.pid;
	return 0;
}

int gs_registry_mark_deleted(const char *run_dir, const char *id, struct gs_err *err)
{
	cleanup_close int dir = -1;
	struct reg_name file;
	struct stat st;

	if (!gs_id_valid(id))
		return 0;
	dir = gs_dir_open(run_dir, GS_REGISTRY_CONTAINERS, err);
	if (dir == -ENOENT)
		return 0;
	if (dir < 0)
		return dir;
	file = reg_file(id, REG_RECORD);
	if (fstatat(dir, file.s, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		/* a create that was killed after its first step has left a link */
		reg_remove(run_dir, dir, id, NULL);
		return 0;
	}
	for (int i = 0; i < MARK_TRIES; i++) {
		cleanup_close int marks = gs_dir_make(run_dir, GS_REGISTRY_DELETED, err), fd = -1;

		/* A sweep may take the empty folder away at any moment. */
		if (marks == -ENOENT)
			continue;
		if (marks < 0)
			return marks;
		fd = openat(marks, id, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd >= 0)
			return 0;
		if (errno != ENOENT)
			break;
	}
	return gs_err_errno(err, errno, "mark container %s as deleted", id);
}

bool gs_registry_marked(const char *run_dir, const char *id)
{
	cleanup_close int marks = gs_dir_open(run_dir, GS_REGISTRY_DELETED, NULL);
	struct stat st;

	return gs_id_valid(id) && marks >= 0 && fstatat(marks, id, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* One failed open(2) where nothing is marked, which is nearly always. */
static int open_marks(const char *run_dir)
{
	cleanup_free char *path = gs_asprintf("%s/%s", run_dir, GS_REGISTRY_DELETED);
	cleanup_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : gs_dir_open(run_dir, GS_REGISTRY_DELETED, NULL);
}

int reg_lock(const char *run_dir, unsigned int wait_ms)
{
	const struct timespec ms = { .tv_nsec = 1000000 };

	for (;;) {
		cleanup_close int fd = open_marks(run_dir);
		struct stat st;

		if (fd < 0)
			return fd;
		if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
			/* A sweep may have taken the folder away since it was opened. */
			if (fstat(fd, &st) == 0 && st.st_nlink > 0)
				return gs_steal_fd(&fd);
			continue;
		}
		if (wait_ms-- == 0)
			return -EBUSY;
		(void)nanosleep(&ms, NULL);
	}
}

void reg_remove(const char *run_dir, int containers, const char *id, const struct gs_record *record)
{
	static const char *const endings[] = { REG_HOOK, REG_NEXT, REG_RECORD };

	if (record && gs_identity_is_set(&record->identity))
		reg_forget_name(run_dir, &record->identity, id);
	for (size_t i = 0; i < GS_ARRAY_SIZE(endings); i++) {
		struct reg_name file = reg_file(id, endings[i]);

		(void)unlinkat(containers, file.s, 0);
	}
}

void gs_registry_remove(const char *run_dir, const char *id)
{
	cleanup_record struct gs_record record = { 0 };
	cleanup_close int dir = -1, marks = -1;
	int r;

	if (!gs_id_valid(id))
		return;
	dir = gs_dir_open(run_dir, GS_REGISTRY_CONTAINERS, NULL);
	if (dir >= 0) {
		r = reg_read(dir, run_dir, id, &record, NULL);
		reg_remove(run_dir, dir, id, r == 0 ? &record : NULL);
	}
	marks = gs_dir_open(run_dir, GS_REGISTRY_DELETED, NULL);
	if (marks >= 0)
		(void)unlinkat(marks, id, 0);
}

/* Has the container nothing left that runs? */
static bool gone(const char *run_dir, const struct gs_record *record)
{
	cleanup_hook_record struct gs_hook_record hook = { 0 };
	int r = gs_registry_alive(run_dir, record, NULL, NULL);

	if (r == 0 || gs_err_is_scarce(r))
		return false;
	return gs_registry_read_hook(run_dir, record->id, &hook, NULL) < 0 || !hook.cgroup ||
	       !gs_cgroup_busy(GS_CGROUP_ROOT, hook.cgroup);
}

/* Removes the marked container if it is gone. Gives whether it did. */
static bool sweep_one(const char *run_dir, int containers, int marks, const char *id)
{
	cleanup_record struct gs_record record = { 0 };
	struct stat st;
	int r;

	/* Under the lock: a create of the same id takes the mark away. */
	if (fstatat(marks, id, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	r = reg_read(containers, run_dir, id, &record, NULL);
	if (gs_err_is_scarce(r) || (r == 0 && !gone(run_dir, &record)))
		return false;
	reg_remove(run_dir, containers, id, r == 0 ? &record : NULL);
	(void)unlinkat(marks, id, 0);
	return true;
}

/* Takes the folder of marks away, which fails while there are any. */
static void drop_empty(const char *run_dir)
{
	cleanup_close int run = gs_dir_open(run_dir, NULL, NULL);

	if (run >= 0)
		(void)unlinkat(run, GS_REGISTRY_DELETED, AT_REMOVEDIR);
}

void gs_registry_sweep(const char *run_dir, unsigned int max)
{
	cleanup_close int lock = reg_lock(run_dir, 0), containers = -1;
	cleanup_dir DIR *dir = NULL;
	struct dirent *entry;
	unsigned int looked = 0;

	/* Nothing is marked, or somebody sweeps already. */
	if (lock < 0)
		return;
	containers = gs_dir_open(run_dir, GS_REGISTRY_CONTAINERS, NULL);
	dir = gs_opendirat(lock, ".");
	while (containers >= 0 && dir && max > 0 && looked < SWEEP_LOOK_MAX &&
	       (entry = readdir(dir))) {
		if (!gs_id_valid(entry->d_name))
			continue;
		looked++;
		if (sweep_one(run_dir, containers, lock, entry->d_name))
			max--;
	}
	drop_empty(run_dir);
}
