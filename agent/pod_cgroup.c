// SPDX-License-Identifier: Apache-2.0
/* Files of a pod's cgroup. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "agent/node_use.h"
#include "agent/pod_cgroup.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/xalloc.h"

#define TEXT_MAX 64

int pod_cgroup_read(const char *root, const char *uid, const char *name, char **ret_path,
		    char **ret_text, struct gs_err *err)
{
	cleanup_free char *dir = node_use_folder(root, uid);
	cleanup_free char *path = NULL;
	size_t len;
	int r;

	if (!dir)
		return gs_err_set(err, ENOENT, "pod %.64s has no cgroup", uid);
	path = gs_asprintf("%s/%s", dir, name);
	r = gs_file_read(AT_FDCWD, path, 0, TEXT_MAX, ret_text, &len, NULL, err);
	if (r < 0)
		return r;
	*ret_path = gs_steal(path);
	return 0;
}

int pod_cgroup_write(const char *path, const char *text, struct gs_err *err)
{
	cleanup_close int fd = open(path, O_WRONLY | O_CLOEXEC);
	size_t len = strlen(text);

	if (fd < 0 || write(fd, text, len) != (ssize_t)len)
		return gs_err_errno(err, errno, "%s", path);
	return 0;
}
