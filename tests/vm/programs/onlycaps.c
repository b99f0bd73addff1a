// SPDX-License-Identifier: Apache-2.0
/*
 * Executes a command with these capabilities alone, as a unit with CapabilityBoundingSet= does.
 *
 *	onlycaps NAME,NAME... COMMAND...    net_admin, for instance
 */
#include <linux/capability.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static const char *const names[CAP_LAST_CAP + 1] = {
	[CAP_DAC_READ_SEARCH] = "dac_read_search",
	[CAP_KILL] = "kill",
	[CAP_SETPCAP] = "setpcap",
	[CAP_NET_ADMIN] = "net_admin",
	[CAP_SYS_PTRACE] = "sys_ptrace",
};

/* Takes it out of the list, so that what is left in the end is unknown. */
static bool take(char *list, const char *name)
{
	size_t len = strlen(name);

	for (char *p = list; *p; p++)
		if ((p == list || p[-1] == ',') && strncmp(p, name, len) == 0 &&
		    (p[len] == ',' || p[len] == '\0')) {
			memset(p, ',', len);
			return true;
		}
	return false;
}

int main(int argc, char **argv)
{
	if (argc < 3) {
		(void)fputs("usage: onlycaps NAME,NAME... COMMAND...\n", stderr);
		return 2;
	}
	/* what root's programs get is the bounding set */
	for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++) {
		bool keep = cap <= CAP_LAST_CAP && names[cap] && take(argv[1], names[cap]);

		if (!keep && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0) {
			perror("onlycaps: the bounding set");
			return 1;
		}
	}
	if (argv[1][strspn(argv[1], ",")]) {
		(void)fprintf(stderr, "onlycaps: unknown: %s\n", argv[1]);
		return 2;
	}
	(void)execvp(argv[2], argv + 2);
	perror(argv[2]);
	return 127;
}
