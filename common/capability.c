// SPDX-License-Identifier: Apache-2.0
/* The capabilities that a borrower may not have. */
#include <string.h>
#include <strings.h>

#include "common/capability.h"
#include "common/cleanup.h"

const char *gs_capability_refused(const char *name)
{
	static const char *const refused[] = { "CAP_SYS_ADMIN", "CAP_SYS_MODULE", "CAP_NET_ADMIN",
					       "CAP_SYS_RAWIO", "CAP_SYS_PTRACE" };

	for (size_t i = 0; i < GS_ARRAY_SIZE(refused); i++)
		if (strcasecmp(name, refused[i]) == 0 ||
		    strcasecmp(name, refused[i] + strlen("CAP_")) == 0)
			return refused[i];
	return NULL;
}
