// SPDX-License-Identifier: Apache-2.0
/* Whom a watch of the kernel module is about: a PID namespace or a cgroup. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/klink.h"
#include "common/proc.h"

int gs_kwho_pid(pid_t pid, struct gs_kwho *ret, struct gs_err *err)
{
	uint64_t start;
	int r;

	if (pid <= 0)
		return gs_err_set(err, ESRCH, "%d is no process", (int)pid);
	r = gs_proc_start(pid, &start, err);
	if (r == 0)
		*ret = (struct gs_kwho){ .pid = pid, .start_time = start };
	return r;
}

int gs_kwho_cgroup(const char *path, struct gs_kwho *ret, struct gs_err *err)
{
	cleanup_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct statfs fs;
	struct stat st;
	bool v1;

	if (fd < 0)
		return gs_err_errno(err, errno, "open the cgroup %s", path);
	if (fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0)
		return gs_err_errno(err, errno, "look at the cgroup %s", path);
	/* devices.allow is in every cgroup of that hierarchy and in none of another one. */
	v1 = fs.f_type == CGROUP_SUPER_MAGIC && faccessat(fd, "devices.allow", F_OK, 0) == 0;
	if (!v1 && fs.f_type != CGROUP2_SUPER_MAGIC)
		return gs_err_set(err, EINVAL,
				  "%s is no cgroup of version 2 nor of the devices hierarchy",
				  path);
	/* 64 bits wide on every machine that the module is for, so it is the kernel's own id. */
	*ret = (struct gs_kwho){ .cgroup_id = st.st_ino, .cgroup_v1 = v1 };
	return 0;
}
