// SPDX-License-Identifier: Apache-2.0
/* One node's hook: opens it, and asks the kernel module. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/probe.h"
#include "common/cleanup.h"
#include "common/klink.h"

static size_t parse_passive(const char *list, uint32_t ret[GS_PASSIVE_MAX])
{
	size_t n = 0;
	char *end;

	while (list && *list && n < GS_PASSIVE_MAX) {
		ret[n++] = (uint32_t)strtoul(list, &end, 10);
		list = *end == ',' ? end + 1 : NULL;
	}
	return n;
}

static int hook(const char *path, uint32_t dev, const char *vendor, const char *passive_list,
		bool revocable, struct gs_err *err)
{
	uint32_t passive[GS_PASSIVE_MAX];
	size_t n = parse_passive(passive_list, passive);
	cleanup_klink struct gs_klink *link = NULL;
	cleanup_close int fd = -1;
	struct stat st;
	int r = gs_klink_open(&link, err);

	if (r < 0)
		return r;
	fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return gs_err_errno(err, errno, "open %s", path);
	if (fstat(fd, &st) < 0 || !S_ISCHR(st.st_mode) || gs_kdev_of(st.st_rdev) != dev)
		return gs_err_set(err, ESTALE, "%s is another device now", path);
	return gs_klink_hook_add(link, fd, vendor, passive, n, revocable, NULL, err);
}

int probe_hook(int argc, char **argv)
{
	struct gs_err err = { 0 };
	int r;

	if (argc < 3)
		return 2;
	r = hook(argv[0], (uint32_t)strtoul(argv[1], NULL, 10), argv[2], argc > 3 ? argv[3] : NULL,
		 argc > 4 && strcmp(argv[4], "revocable") == 0, &err);
	if (r < 0)
		printf("%d %s\n", r, err.msg);
	else
		printf("0\n");
	return fflush(stdout) == 0 ? 0 : 1;
}
