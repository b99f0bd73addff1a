// SPDX-License-Identifier: Apache-2.0
/* gpusharectl setup: makes this node's container runtimes know gpushare-runtime, and undoes it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/config.h"
#include "common/json.h"
#include "common/xalloc.h"
#include "ctl/ctl.h"
#include "ctl/diff.h"
#include "ctl/root.h"
#include "ctl/setup.h"

const struct setup_runtime *const setup_runtimes[] = {
	&setup_k3s, &setup_rke2, &setup_crio, &setup_containerd, &setup_docker, &setup_podman, NULL,
};

struct options {
	struct setup_node node;
	bool dry_run, undo;
	enum ctl_format format;
	char *root, *binary, *lib_dir; /* the node's */
};

/* ---- Showing. */

static bool same(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static json_t *file_json(const struct setup_file *file)
{
	cleanup_buf struct gs_buf diff = { 0 };
	const char *action = same(file->now, file->after) ? "none" :
			     !file->now			  ? "create" :
			     !file->after		  ? "remove" :
							    "change";

	ctl_diff(file->path, file->now, file->after, &diff);
	return json_pack("{s:s,s:s,s:s}", "path", file->path, "action", action, "diff",
			 diff.data ? diff.data : "");
}

static json_t *plan_json(const struct options *options, const struct setup_plan *plan)
{
	json_t *files = json_array();

	for (size_t i = 0; i < plan->n; i++)
		(void)json_array_append_new(files, file_json(&plan->files[i]));
	return json_pack("{s:s,s:b,s:b,s:o,s:o,s:o}", "runtime", plan->runtime, "changed",
			 setup_changes(plan), "done", !options->dry_run, "files", files, "then",
			 gs_json_list(&plan->then), "notes", gs_json_list(&plan->notes));
}

/* What a terminal would obey becomes '?', but for tabs. */
static void print_diff(const struct setup_file *file)
{
	cleanup_buf struct gs_buf diff = { 0 };

	ctl_diff(file->path, file->now, file->after, &diff);
	for (char *line = diff.data; line && *line;) {
		char *end = strchr(line, '\n');

		*end = 0;
		for (char *p = line; *p;) {
			size_t n = strcspn(p, "\t");
			char tab = p[n];

			p[n] = 0;
			(void)fputs(ctl_printable(p), stdout);
			if (tab)
				(void)putchar('\t');
			p += n + (tab != 0);
		}
		(void)putchar('\n');
		line = end + 1;
	}
}

static void print_plan(const struct options *options, const struct setup_plan *plan)
{
	const char *done = options->dry_run ? "would be " : "";

	if (!setup_changes(plan)) {
		printf("%s: nothing to %s\n", plan->runtime, options->undo ? "undo" : "change");
		return;
	}
	for (size_t i = 0; i < plan->n; i++)
		print_diff(&plan->files[i]);
	printf("%s: %s%s\n", plan->runtime, done, options->undo ? "undone" : "set up");
	for (size_t i = 0; i < plan->then.n; i++)
		printf("%s  %s\n", i ? "" : "to make it effective (containers go on meanwhile):\n",
		       plan->then.v[i]);
	for (size_t i = 0; i < plan->notes.n; i++)
		printf("note: %s\n", plan->notes.v[i]);
}

/* ---- Doing. */

static int make_plan(const struct options *options, const struct setup_runtime *runtime,
		     struct setup_plan *plan, struct gs_err *err)
{
	int r = setup_record_load(&options->node, runtime->name, &plan->record, err);

	if (r < 0 && r != -ENOENT && !(r == -EACCES && options->dry_run))
		return r;
	if (runtime->then)
		runtime->then(plan);
	if (!options->undo)
		return runtime->plan(plan, err);
	if (!plan->record)
		return 0;
	gs_strv_take(&plan->notes,
		     gs_asprintf("containers that %s created need it until they are deleted",
				 plan->node->binary));
	return setup_undo_plan(plan, err);
}

static int carry_out(const struct options *options, struct setup_plan *plan, struct gs_err *err)
{
	if (options->dry_run)
		return 0;
	if (options->undo)
		return plan->record ? setup_undo(plan, err) : 0;
	return setup_changes(plan) ? setup_apply(plan, err) : 0;
}

/* One runtime; CTL_FAILED after telling. @list (may be NULL) gets it as JSON. */
static int do_runtime(const struct options *options, const struct setup_runtime *runtime,
		      json_t *list)
{
	cleanup_plan struct setup_plan plan = { .node = &options->node, .runtime = runtime->name };
	struct gs_err err = { 0 };
	int r = make_plan(options, runtime, &plan, &err);

	if (r == 0)
		r = carry_out(options, &plan, &err);
	if (r < 0) {
		(void)gs_err_prefix(&err, "%s", runtime->name);
		return ctl_failed(&err);
	}
	if (list)
		(void)json_array_append_new(list, plan_json(options, &plan));
	else
		print_plan(options, &plan);
	return CTL_OK;
}

/* ---- Which. */

static const struct setup_runtime *find_runtime(const char *name)
{
	if (strcmp(name, "cri-o") == 0)
		name = "crio";
	for (size_t i = 0; setup_runtimes[i]; i++)
		if (strcmp(setup_runtimes[i]->name, name) == 0)
			return setup_runtimes[i];
	return NULL;
}

static bool has_record(const struct setup_node *node, const char *name)
{
	struct setup_record *record = NULL;
	struct gs_err err = { 0 };
	int r = setup_record_load(node, name, &record, &err);

	setup_record_free(record);
	return r != -ENOENT;
}

/*
 * Those that were set up, for an undo; else the one that serves this node's kubelet: k3s and RKE2
 * bring a containerd of their own, and CRI-O's nodes may have one for docker.
 */
static size_t choose(const struct options *options, const struct setup_runtime **ret)
{
	size_t n = 0;

	for (size_t i = 0; setup_runtimes[i]; i++) {
		const struct setup_runtime *runtime = setup_runtimes[i];

		if (options->undo ? has_record(&options->node, runtime->name) :
				    n == 0 && runtime->cri && runtime->found(&options->node))
			ret[n++] = runtime;
	}
	return n;
}

static int nothing_found(const struct options *options)
{
	if (options->undo) {
		if (options->format == CTL_JSON)
			ctl_print_json(json_array());
		else
			puts("nothing to undo");
		return CTL_OK;
	}
	ctl_say("neither k3s, RKE2, CRI-O nor containerd is here; docker and podman are set up "
		"when they are named");
	return CTL_FAILED;
}

/* ---- The call. */

/* Fills in what the call left open; CTL_FAILED after telling. */
static int complete(struct options *options, struct gs_config *config)
{
	struct setup_node *node = &options->node;
	struct gs_err err = { 0 };
	struct stat st;

	gs_config_init(config);
	if (!getenv(GS_CONFIG_ENV)) {
		char *path = root_path(options->root, config->path);

		free(config->path);
		config->path = path;
		node->config = GS_CONFIG_PATH;
	} else {
		node->config = config->path;
	}
	if (gs_config_load(config, NULL, &err) < 0)
		return ctl_failed(&err);
	options->lib_dir = root_path(options->root, config->lib_dir);
	node->lib_dir = options->lib_dir;
	node->root = options->root;
	if (!options->binary)
		options->binary = setup_default_binary(node->root);
	node->binary = options->binary;
	if (options->undo)
		return CTL_OK;
	if (!root_stat(node->root, node->binary, &st) || !S_ISREG(st.st_mode) ||
	    !(st.st_mode & 0111)) {
		cleanup_free char *path = root_path(node->root, node->binary);

		ctl_say("%s: not there, or not executable: install it first, or every container of "
			"the handler would fail",
			path);
		return CTL_FAILED;
	}
	return CTL_OK;
}

static int do_all(const struct options *options, int argc, char **argv)
{
	const struct setup_runtime *chosen[GS_ARRAY_SIZE(setup_runtimes)];
	json_t *list = options->format == CTL_JSON ? json_array() : NULL;
	size_t n = 0;
	int r = CTL_OK;

	for (int i = 0; i < argc && n < GS_ARRAY_SIZE(chosen); i++)
		chosen[n++] = find_runtime(argv[i]);
	if (!n)
		n = choose(options, chosen);
	if (!n) {
		json_decref(list);
		return nothing_found(options);
	}
	for (size_t i = 0; i < n; i++)
		if (do_runtime(options, chosen[i], list) != CTL_OK)
			r = CTL_FAILED;
	if (list)
		ctl_print_json(list);
	return r;
}

enum {
	OPT_DRY_RUN = 1000,
	OPT_UNDO,
	OPT_DEFAULT,
	OPT_ROOT,
	OPT_BINARY,
	OPT_CONTAINERD,
	OPT_CGROUP
};

static int take_absolute(char **ret, const char *name)
{
	if (optarg[0] != '/')
		return ctl_misused(&ctl_setup, "%s takes an absolute path, not %s", name, optarg);
	free(*ret);
	*ret = gs_strdup(optarg);
	/* "/mnt/": the paths that follow begin with a slash. */
	for (size_t len = strlen(*ret); len > 1 && (*ret)[len - 1] == '/';)
		(*ret)[--len] = 0;
	return CTL_OK;
}

static int take_option(struct options *options, int opt)
{
	struct setup_node *node = &options->node;

	switch (opt) {
	case OPT_DRY_RUN:
		options->dry_run = true;
		return CTL_OK;
	case OPT_UNDO:
		options->undo = true;
		return CTL_OK;
	case OPT_DEFAULT:
		node->make_default = true;
		return CTL_OK;
	case OPT_ROOT:
		return take_absolute(&options->root, "--root");
	case OPT_BINARY:
		return take_absolute(&options->binary, "--binary");
	case OPT_CONTAINERD:
		if (strcmp(optarg, "1") != 0 && strcmp(optarg, "2") != 0)
			return ctl_misused(&ctl_setup, "--containerd takes 1 or 2, not %s", optarg);
		node->containerd = (unsigned int)(optarg[0] - '0');
		return CTL_OK;
	case OPT_CGROUP:
		if (strcmp(optarg, "systemd") != 0 && strcmp(optarg, "cgroupfs") != 0)
			return ctl_misused(&ctl_setup,
					   "--cgroup-driver takes systemd or cgroupfs, not %s",
					   optarg);
		node->systemd_cgroup = optarg[0] == 's';
		return CTL_OK;
	case 'o':
		return ctl_read_format(&ctl_setup, optarg, 0, &options->format);
	default:
		return CTL_USAGE;
	}
}

static int run_call(struct options *options, int argc, char **argv)
{
	static const struct option longs[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "dry-run", no_argument, NULL, OPT_DRY_RUN },
		{ "undo", no_argument, NULL, OPT_UNDO },
		{ "default", no_argument, NULL, OPT_DEFAULT },
		{ "root", required_argument, NULL, OPT_ROOT },
		{ "binary", required_argument, NULL, OPT_BINARY },
		{ "containerd", required_argument, NULL, OPT_CONTAINERD },
		{ "cgroup-driver", required_argument, NULL, OPT_CGROUP },
		{ NULL, 0, NULL, 0 },
	};
	cleanup_config struct gs_config config = { 0 };
	int opt, r;

	while ((opt = ctl_getopt(&ctl_setup, argc, argv, ":ho:", longs)) != -1) {
		if (opt == 'h')
			return ctl_help(&ctl_setup);
		r = take_option(options, opt);
		if (r != CTL_OK)
			return r;
	}
	for (int i = optind; i < argc; i++) {
		if (!find_runtime(argv[i]))
			return ctl_misused(&ctl_setup,
					   "no runtime %s: k3s, rke2, crio, containerd, "
					   "docker or podman",
					   argv[i]);
		for (int k = optind; k < i; k++)
			if (find_runtime(argv[k]) == find_runtime(argv[i]))
				return ctl_misused(&ctl_setup, "%s is named twice", argv[i]);
	}
	if (options->undo && options->node.make_default)
		return ctl_misused(&ctl_setup, "--undo takes no --default: it undoes all of it");
	r = complete(options, &config);
	return r == CTL_OK ? do_all(options, argc - optind, argv + optind) : r;
}

static int run(int argc, char **argv)
{
	struct options options = { .root = gs_strdup("/"), .node.systemd_cgroup = -1 };
	int r = run_call(&options, argc, argv);

	free(options.root);
	free(options.binary);
	free(options.lib_dir);
	return r;
}

const struct ctl_verb ctl_setup = {
	.name = "setup",
	.summary = "make the container runtimes of this node know gpushare, or undo it",
	.help = "usage: gpusharectl setup [--dry-run] [--undo] [-o json] [OPTION...] [RUNTIME...]\n"
		"\n"
		"Adds the runtime handler \"gpushare\" to the configuration of RUNTIME, which is\n"
		"k3s, rke2, crio, containerd, docker or podman; without a name, the one\n"
		"that serves this node's kubelet. Shows each change as a unified difference,\n"
		"keeps what was there, and changes nothing the second time. Restarts nothing: it\n"
		"prints the command.\n"
		"\n"
		"  --dry-run               show what would change, and change nothing\n"
		"  --undo                  put every file back as it was; without a name, of all\n"
		"                          that were set up. Edits of others since then stay,\n"
		"                          or it is refused\n"
		"  --default               every container of the node goes through it, not only\n"
		"                          those that name the handler\n"
		"  --cgroup-driver DRIVER  systemd or cgroupfs, instead of what runc has\n"
		"  --binary PATH           where gpushare-runtime is\n"
		"  --containerd 1|2        its major version, where there is no configuration yet\n"
		"                          and no program that tells\n"
		"  --root FOLDER           the node's files are below FOLDER\n"
		"  -o json                 an array with an object for each runtime instead\n"
		"\n"
		"Example: gpusharectl setup --dry-run containerd\n",
	.run = run,
};
