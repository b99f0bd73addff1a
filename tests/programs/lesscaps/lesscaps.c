// SPDX-License-Identifier: Apache-2.0
/*
 * For LD_PRELOAD: whoever gives up capabilities with libcap gives up the one that LESS_CAP names,
 * too. So a test sees what the agent needs each of those for that it keeps.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/capability.h>

int cap_set_proc(cap_t caps)
{
	int (*real)(cap_t) = (int (*)(cap_t))dlsym(RTLD_NEXT, "cap_set_proc");
	const char *name = getenv("LESS_CAP");
	cap_value_t cap;

	if (name && (cap_from_name(name, &cap) < 0 ||
		     cap_set_flag(caps, CAP_PERMITTED, 1, &cap, CAP_CLEAR) < 0 ||
		     cap_set_flag(caps, CAP_EFFECTIVE, 1, &cap, CAP_CLEAR) < 0))
		abort();
	return real(caps);
}
