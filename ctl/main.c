// SPDX-License-Identifier: Apache-2.0
/* gpusharectl: the operator's tool. Finds the verb and runs it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "ctl/ctl.h"

static const struct ctl_verb *const verbs[] = {
	&ctl_status,	 &ctl_inspect, &ctl_lend,   &ctl_reclaim, &ctl_events, &ctl_grant,
	&ctl_containers, &ctl_spec,    &ctl_config, &ctl_setup,	  &ctl_doctor, &ctl_kmod,
};

static int usage(FILE *to)
{
	(void)fprintf(to, "usage: %s VERB [...]\n\nLooks after GPU sharing on this node.\n\n",
		      CTL_NAME);
	for (size_t i = 0; i < GS_ARRAY_SIZE(verbs); i++)
		(void)fprintf(to, "  %-12s %s\n", verbs[i]->name, verbs[i]->summary);
	(void)fprintf(
		to,
		"\n"
		"'%s VERB --help' tells more, with an example. GPUSHARE_CONFIG names another\n"
		"configuration than " GS_CONFIG_PATH ".\n",
		CTL_NAME);
	return to == stdout ? CTL_OK : CTL_USAGE;
}

static int run(int argc, char **argv)
{
	if (argc < 2)
		return usage(stderr);
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
	    strcmp(argv[1], "help") == 0)
		return usage(stdout);
	if (strcmp(argv[1], "--version") == 0) {
		printf("%s %s\n", CTL_NAME, GPUSHARE_VERSION);
		return CTL_OK;
	}
	for (size_t i = 0; i < GS_ARRAY_SIZE(verbs); i++)
		if (strcmp(argv[1], verbs[i]->name) == 0)
			return verbs[i]->run(argc - 1, argv + 1);
	ctl_say("no verb %s", argv[1]);
	(void)fprintf(stderr, "Try '%s --help'.\n", CTL_NAME);
	return CTL_USAGE;
}

int main(int argc, char **argv)
{
	int r = run(argc, argv);

	/* Output that did not arrive is a failure: a script may have asked for a grant's name. */
	if (fflush(stdout) != 0 || ferror(stdout)) {
		ctl_say("write: %s", strerror(errno));
		return r ? r : CTL_FAILED;
	}
	return r;
}
