// SPDX-License-Identifier: Apache-2.0
/*
 * Takes away what a test program that was killed left on the machine: cgroups, which have nobody
 * else to remove them. They are named gpushare-<word>-<process id of the program>.
 */
#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PREFIX "gpushare-"

static int remove_folder(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)ftw;
	/* a cgroup's files go with it; one with a process in it stays */
	if (type == FTW_DP)
		(void)rmdir(path);
	return 0;
}

static void sweep(const char *hierarchy)
{
	DIR *dir = opendir(hierarchy);
	struct dirent *e;

	while (dir && (e = readdir(dir)) != NULL) {
		const char *number = strrchr(e->d_name, '-');
		char path[512], *end;
		long pid;

		if (strncmp(e->d_name, PREFIX, strlen(PREFIX)) != 0)
			continue;
		pid = strtol(number + 1, &end, 10);
		if (pid <= 0 || *end || kill((pid_t)pid, 0) == 0 || errno != ESRCH)
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", hierarchy, e->d_name);
		(void)nftw(path, remove_folder, 8, FTW_DEPTH | FTW_PHYS);
	}
	if (dir)
		(void)closedir(dir);
}

__attribute__((constructor)) static void sweep_all(void)
{
	sweep("/sys/fs/cgroup");
	sweep("/sys/fs/cgroup/devices");
	sweep("/sys/fs/cgroup/unified");
}
