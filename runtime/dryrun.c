// SPDX-License-Identifier: Apache-2.0
/*
 * gpushare-spec: shows what create would change in a bundle, and changes nothing. `gpusharectl
 * spec` runs it; it is a program of its own because it is made of the runtime's parts.
 */
#include <errno.h>
#include <getopt.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/config.h"
#include "common/proc.h"
#include "common/xalloc.h"
#include "runtime/create.h"
#include "runtime/next.h"

/* More added elements than this are counted, not listed (a fence has some five hundred rules). */
#define LISTED_MAX 40

static void show_array(const char *name, const struct js_array *array, bool all)
{
	struct js_iter it = js_iter(array->old);
	struct js v;

	if (!array->changed)
		return;
	printf("%s\n", name);
	for (size_t i = 0; js_next_element(&it, &v); i++) {
		if (array->drop[i] || array->repl.v[i][0])
			printf("  - %.*s\n", (int)v.n, v.p);
		if (!array->drop[i] && array->repl.v[i][0])
			printf("  + %s\n", array->repl.v[i]);
	}
	for (size_t i = 0; i < array->added.n; i++) {
		if (i == LISTED_MAX && !all) {
			printf("  + ... %zu more (--all)\n", array->added.n - i);
			break;
		}
		printf("  + %s\n", array->added.v[i]);
	}
}

static void show(const struct create *c, bool all)
{
	cleanup_free char *name = gs_identity_is_set(&c->who.id) ? gs_identity_text(&c->who.id) :
								   NULL;

	printf("container     %s\n", name ? name : "(no identity in the configured vocabulary)");
	printf("role          %s\n",
	       c->recorded ? gs_role_name(c->role) : "none: holds and receives no vendor device");
	printf("next runtime  %s\n", c->next);
	for (size_t i = 0; i < c->n_sources; i++)
		if (c->sources[i].card)
			printf("source        %s, which nobody holds\n", c->sources[i].name);
		else
			printf("source        %s (container %s%s)\n", c->sources[i].name,
			       c->sources[i].record.id, c->sources[i].scanned ? ", no record" : "");
	if (!c->text) {
		puts("config.json   not changed");
		return;
	}
	show_array("process.env", &c->rw.env, all);
	show_array("mounts", &c->rw.mounts, all);
	show_array("linux.devices", &c->rw.devices, all);
	show_array("linux.resources.devices", &c->rw.rules, all);
	for (int i = 0; i < STAGE_COUNT; i++) {
		cleanup_free char *stage = gs_asprintf("hooks.%s", spec_stage_names[i]);

		show_array(stage, &c->rw.hooks[i], all);
	}
	for (size_t i = 0; i < c->rw.n_limits; i++)
		printf("linux.resources.%s.%s\n  + %lld\n", c->rw.limits[i].group,
		       c->rw.limits[i].key, (long long)c->rw.limits[i].value);
}

/* What is no error at create, and yet what the asker wants to know. */
static void show_unknown(const struct create *c)
{
	cleanup_strv struct gs_strv unknown = { 0 };

	request_unknown_keys(&c->spec, &unknown);
	for (size_t i = 0; i < unknown.n; i++)
		(void)fprintf(stderr, "gpusharectl: warning: %s\n", unknown.v[i]);
}

static int usage(void)
{
	(void)fputs(
		"usage: gpusharectl spec [--all] [--json] [--id ID] [--as NAME] BUNDLE\n"
		"\n"
		"Shows what gpushare-runtime would change in BUNDLE/config.json at create. "
		"Changes nothing.\n"
		"\n"
		"  --all      list every added element, also a fence's hundreds of rules\n"
		"  --json     print the whole new config.json instead\n"
		"  --id ID    the container's id (default: the bundle's folder name)\n"
		"  --as NAME  the name that the runtime is called by, for \"profiles\"\n"
		"\n"
		"Example: gpusharectl spec /run/containerd/io.containerd.runtime.v2.task/k8s.io/"
		"1898e55a6f40\n",
		stdout);
	return 0;
}

/* What the call asks for. */
struct call {
	const char *id, *profile; /* id NULL: the bundle's folder */
	bool all, json, help;
};

/* In the words of gpusharectl's other verbs; 2. */
static int misused(const char *what, const char *more)
{
	(void)fprintf(stderr,
		      "gpusharectl: %s%s\n"
		      "Try 'gpusharectl spec --help'.\n",
		      what, more);
	return 2;
}

static int read_options(int argc, char **argv, struct call *call)
{
	static const struct option options[] = {
		{ "all", no_argument, NULL, 'a' },	{ "json", no_argument, NULL, 'j' },
		{ "id", required_argument, NULL, 'i' }, { "as", required_argument, NULL, 'n' },
		{ "help", no_argument, NULL, 'h' },	{ NULL, 0, NULL, 0 },
	};
	int opt;

	opterr = 0;
	while ((opt = getopt_long(argc, argv, ":", options, NULL)) != -1) {
		switch (opt) {
		case 'a':
			call->all = true;
			break;
		case 'j':
			call->json = true;
			break;
		case 'i':
			call->id = optarg;
			break;
		case 'n':
			call->profile = optarg;
			break;
		case 'h':
			call->help = true;
			return 0;
		case ':':
			return misused(argv[optind - 1], " needs a value");
		default:
			return misused("spec has no such option", "");
		}
	}
	return optind + 1 == argc ? 0 : misused("spec takes one bundle", "");
}

static int plan(struct create *c, const struct call *call)
{
	struct gs_err err = { 0 };
	cleanup_free char *next = NULL;
	int r = next_find(&c->config->next, &next, &err);

	c->next = next;
	if (r == 0)
		r = create_plan(c, &err);
	if (r == 0 && c->bundle_fd < 0)
		r = gs_err_set(&err, ENOENT, "%s is no bundle", c->bundle);
	else if (r == 0 && !c->spec.text)
		r = gs_err_set(&err, EINVAL, "%s/config.json can't be understood", c->bundle);
	if (c->spec.text)
		show_unknown(c);
	if (r < 0)
		(void)fprintf(stderr, "gpusharectl: %s\n", err.msg);
	else if (call->json)
		(void)fwrite(c->text ? c->text : c->spec.text, c->text ? c->len : c->spec.len, 1,
			     stdout);
	else
		show(c, call->all);
	return r < 0 ? 1 : 0;
}

static int run(int argc, char **argv)
{
	struct call call = { .profile = "gpushare-runtime" };
	cleanup_free char *folder = NULL;
	cleanup_config struct gs_config config = { 0 };
	struct gs_err config_err = { 0 };
	struct create c = {
		.config = &config, .config_err = &config_err, .dry = true, .bundle_fd = -1
	};
	int r = read_options(argc, argv, &call);

	if (r || call.help)
		return r ? r : usage();
	c.bundle = argv[optind];
	folder = realpath(c.bundle, NULL);
	c.id = call.id || !folder ? call.id : basename(folder);
	gs_config_init(&config);
	(void)gs_config_load(&config, call.profile, &config_err);
	c.deadline_ms = gs_boottime_ms() + config.create_wait_ms;
	r = plan(&c, &call);
	create_free(&c);
	return r;
}

int main(int argc, char **argv)
{
	int r = run(argc, argv);

	/* as of gpusharectl: output that did not arrive is a failure */
	if (fflush(stdout) != 0 || ferror(stdout)) {
		(void)fprintf(stderr, "gpusharectl: write: %s\n", strerror(errno));
		return r ? r : 1;
	}
	return r;
}
