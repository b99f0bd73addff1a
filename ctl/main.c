// SPDX-License-Identifier: Apache-2.0
/* gpusharectl: the operator's tool. Finds the verb and runs it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "ctl/ctl.h"

static const struct ctl_verb *const node_verbs[] = {
	&ctl_status, &ctl_inspect, &ctl_top,	    &ctl_lend, &ctl_reclaim,
	&ctl_events, &ctl_grant,   &ctl_containers, &ctl_spec, &ctl_config,
	&ctl_setup,  &ctl_doctor,  &ctl_kmod,	    NULL,
};

/* Those of a plugin of kubectl. */
static const struct ctl_verb *const cluster_verbs[] = {
	&ctl_cluster_inspect,
	&ctl_cluster_top,
	NULL,
};

static const struct ctl_verb *const *verbs = node_verbs;

static int usage(FILE *to)
{
	(void)fprintf(to, "usage: %s VERB [...]\n\nLooks after GPU sharing %s.\n\n", ctl_name,
		      verbs == cluster_verbs ? "in a cluster" : "on this node");
	for (size_t i = 0; verbs[i]; i++)
		(void)fprintf(to, "  %-12s %s\n", verbs[i]->name, verbs[i]->summary);
	(void)fprintf(to, "\n'%s VERB --help' tells more, with an example.%s", ctl_name,
		      verbs == cluster_verbs ? "\n" :
					       " GPUSHARE_CONFIG names another\n"
					       "configuration than " GS_CONFIG_PATH ".\n");
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
	for (size_t i = 0; verbs[i]; i++)
		if (strcmp(argv[1], verbs[i]->name) == 0)
			return verbs[i]->run(argc - 1, argv + 1);
	ctl_say("no verb %s", argv[1]);
	for (size_t i = 0; verbs == cluster_verbs && node_verbs[i]; i++)
		if (strcmp(argv[1], node_verbs[i]->name) == 0)
			ctl_say("it is about a node, and to be called there: " CTL_NAME " %s",
				argv[1]);
	(void)fprintf(stderr, "Try '%s --help'.\n", ctl_name);
	return CTL_USAGE;
}

int main(int argc, char **argv)
{
	const char *called = argc && strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
	int r;

	if (called && strcmp(called, "kubectl-gpushare") == 0) {
		verbs = cluster_verbs;
		ctl_name = CTL_KUBECTL_NAME;
	}
	r = run(argc, argv);
	/* Output that did not arrive is a failure: a script may have asked for a grant's name. */
	if (fflush(stdout) != 0 || ferror(stdout)) {
		ctl_say("write: %s", strerror(errno));
		return r ? r : CTL_FAILED;
	}
	return r;
}
