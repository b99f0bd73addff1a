// SPDX-License-Identifier: Apache-2.0
/* cpu.max of pods: "Control Group v2", Linux kernel documentation. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/node_use.h"
#include "agent/squeeze.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/xalloc.h"

/* Microseconds, as the kubelet has it; the kernel takes no quota below 1000. */
#define PERIOD_US 100000
#define TEXT_MAX 64

int squeeze_pod(const char *root, const char *uid, uint64_t milli, struct gs_err *err)
{
	cleanup_free char *dir = node_use_folder(root, uid);
	cleanup_free char *path = NULL, *has = NULL;
	cleanup_close int fd = -1;
	char want[TEXT_MAX];
	size_t len;
	int n, r;

	if (!dir)
		return gs_err_set(err, ENOENT, "pod %.64s has no cgroup", uid);
	path = gs_asprintf("%s/cpu.max", dir);
	n = snprintf(want, sizeof(want), "%" PRIu64 " %d\n", milli * (PERIOD_US / 1000), PERIOD_US);
	r = gs_file_read(AT_FDCWD, path, 0, TEXT_MAX, &has, &len, NULL, err);
	if (r < 0 || strcmp(has, want) == 0)
		return r;
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, want, (size_t)n) != n)
		return gs_err_errno(err, errno, "%s", path);
	return 0;
}
