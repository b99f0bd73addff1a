// SPDX-License-Identifier: Apache-2.0
/* gpusharectl spec: what create would change in a bundle. Runs gpushare-spec, which is made of the
 * runtime's own parts. */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/xalloc.h"
#include "ctl/ctl.h"

#define PROGRAM "gpushare-spec"

/* The folder of this program; NULL where /proc does not tell. The caller frees. */
static char *own_folder(void)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n <= 0)
		return NULL;
	self[n] = '\0';
	return gs_strdup(dirname(self));
}

static int run(int argc, char **argv)
{
	cleanup_free char *folder = own_folder();
	const char *folders[] = { folder, GPUSHARE_LIBEXECDIR };

	(void)argc;
	for (size_t i = 0; i < GS_ARRAY_SIZE(folders); i++) {
		cleanup_free char *path = NULL;

		if (!folders[i])
			continue;
		path = gs_asprintf("%s/%s", folders[i], PROGRAM);
		argv[0] = path;
		(void)execv(path, argv);
		if (errno != ENOENT) {
			ctl_say("%s: %s", path, strerror(errno));
			return CTL_FAILED;
		}
	}
	ctl_say("%s is neither in %s nor in %s; it is installed together with gpushare-runtime",
		PROGRAM, folder ? folder : ".", GPUSHARE_LIBEXECDIR);
	return CTL_FAILED;
}

const struct ctl_verb ctl_spec = {
	.name = "spec",
	.summary = "what create would change in a bundle, without changing it",
	.help = "",
	.run = run,
};
