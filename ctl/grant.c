// SPDX-License-Identifier: Apache-2.0
/* gpusharectl grant: make, list and revoke grants. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/grant.h"
#include "common/xalloc.h"
#include "ctl/grant.h"

/* What the call asks for. */
struct call {
	struct gs_grant grant;
	bool list, spot;
	const char *revoke;
	enum ctl_format format;
};

static int create(const char *lib_dir, const struct call *call)
{
	struct gs_err err = { 0 };
	char name[33];

	if (gs_grant_create(lib_dir, &call->grant, name, &err) < 0)
		return ctl_failed(&err);
	/* The one place where a grant's name is told: to the one who made it. */
	if (call->format == CTL_JSON)
		ctl_print_json(ctl_grant_json(&call->grant, "name", name));
	else
		puts(name);
	return CTL_OK;
}

static int end_grant(const char *lib_dir, const char *prefix)
{
	cleanup_free char *name = NULL;
	struct gs_err err = { 0 };
	char buf[10];
	int r = ctl_grant_find(lib_dir, prefix, &name, &err);

	if (r == 0)
		r = gs_grant_revoke(lib_dir, name, &err);
	if (r < 0)
		return ctl_failed(&err);
	printf("grant %s is revoked\n", gs_grant_short(name, buf));
	return CTL_OK;
}

/* An option that names a container. */
static int read_name(const char *option, const char *text, struct gs_identity *ret)
{
	struct gs_err err = { 0 };

	gs_identity_free(ret);
	if (gs_identity_parse(text, strlen(text), NULL, ret, &err) == 0)
		return CTL_OK;
	return ctl_misused(&ctl_grant, "%s: %s", option, err.msg);
}

static int add_source(struct gs_grant *grant, const char *text)
{
	struct gs_identity source = { 0 };
	int r = read_name("--source", text, &source);

	if (r != CTL_OK)
		return r;
	if (gs_grant_has_source(grant, &source)) {
		gs_identity_free(&source);
		return CTL_OK;
	}
	grant->sources = gs_grow(grant->sources, grant->n_sources, sizeof(source));
	grant->sources[grant->n_sources++] = source;
	return CTL_OK;
}

static int read_option(int opt, struct call *call)
{
	switch (opt) {
	case 's':
		return add_source(&call->grant, optarg);
	case 't':
		return read_name("--to", optarg, &call->grant.to);
	case 'c':
		if (!*optarg)
			return ctl_misused(&ctl_grant, "--card: it is empty");
		gs_strv_add_once(&call->grant.cards, optarg);
		return CTL_OK;
	case 'l':
		call->list = true;
		return CTL_OK;
	case 'p':
		call->spot = true;
		return CTL_OK;
	case 'r':
		call->revoke = optarg;
		return CTL_OK;
	case 'o':
		return ctl_read_format(&ctl_grant, optarg, 0, &call->format);
	default:
		return CTL_USAGE;
	}
}

static int serve(const struct call *call)
{
	bool make = call->grant.n_sources || gs_identity_is_set(&call->grant.to) ||
		    call->grant.cards.n;
	cleanup_config struct gs_config config = { 0 };

	if ((make || call->spot) + call->list + (call->revoke != NULL) > 1)
		return ctl_misused(&ctl_grant, "--list, --revoke and --%s exclude each other",
				   call->spot ? "spot" : "source");
	if (call->spot && call->grant.n_sources)
		return ctl_misused(&ctl_grant,
				   "--spot and --source exclude each other: the sources are those "
				   "who hold the card");
	if (call->spot && !call->grant.cards.n)
		return ctl_misused(&ctl_grant, "--spot needs at least one --card");
	if (!call->list && !call->revoke && !call->spot && !call->grant.n_sources)
		return ctl_misused(&ctl_grant, "a grant needs at least one --source");
	if (ctl_load_config(&config) != CTL_OK)
		return CTL_FAILED;
	if (call->list)
		return ctl_grant_list(config.lib_dir, call->format);
	if (call->spot)
		return ctl_grant_spot(&config, &call->grant, call->format);
	return call->revoke ? end_grant(config.lib_dir, call->revoke) :
			      create(config.lib_dir, call);
}

static int run(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "source", required_argument, NULL, 's' },
		{ "to", required_argument, NULL, 't' },
		{ "card", required_argument, NULL, 'c' },
		{ "spot", no_argument, NULL, 'p' },
		{ "list", no_argument, NULL, 'l' },
		{ "revoke", required_argument, NULL, 'r' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	struct call call = { .format = CTL_TABLE };
	int opt, r = CTL_OK;

	while (r == CTL_OK && (opt = ctl_getopt(&ctl_grant, argc, argv, ":ho:", longs)) != -1) {
		if (opt == 'h') {
			gs_grant_free(&call.grant);
			return ctl_help(&ctl_grant);
		}
		r = read_option(opt, &call);
	}
	if (r == CTL_OK && optind < argc)
		r = ctl_misused(&ctl_grant, "what is %s?", argv[optind]);
	if (r == CTL_OK)
		r = serve(&call);
	gs_grant_free(&call.grant);
	return r;
}

const struct ctl_verb ctl_grant = {
	.name = "grant",
	.summary = "let a container receive from another pod; list and revoke that",
	.help = "usage: gpusharectl grant --source NS/POD/CONTAINER [--source ...]\n"
		"                         [--to NS/POD/CONTAINER] [--card CARD] [-o json]\n"
		"       gpusharectl grant --spot --card CARD [--card ...] [--to NS/POD/CONTAINER]\n"
		"                         [-o json]\n"
		"       gpusharectl grant --list [-o json]\n"
		"       gpusharectl grant --revoke NAME\n"
		"\n"
		"Makes a grant and prints its name, the value of the annotation\n"
		"gpushare.k8s.io/grant. The first container that uses it is the only one ever;\n"
		"until then the name is a secret.\n"
		"\n"
		"  --source  a container of another pod whose devices may be received\n"
		"  --to      only this container may use the grant\n"
		"  --card    a card that the grant is about, for the records; with --spot one\n"
		"            to be borrowed, which must be lent now\n"
		"  --spot    the agent makes a grant to borrow from whoever holds the card,\n"
		"            until it is taken back\n"
		"  --list    all grants of this node, with the beginnings of their names\n"
		"  --revoke  ends a grant, NAME being at least its first six digits; containers\n"
		"            that run already keep what they have\n"
		"  -o json   JSON instead\n"
		"\n"
		"Example: name=$(gpusharectl grant --source team-a/dev/main)\n",
	.run = run,
};
