// SPDX-License-Identifier: Apache-2.0
/* gpusharectl doctor: looks for what keeps this node from sharing, and says what mends it. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/sections.h"
#include "common/xalloc.h"
#include "ctl/ctl.h"
#include "ctl/doctor.h"
#include "ctl/root.h"

static void doctor_config(struct doctor *d);

/* In the order in which things stand on each other. */
static const struct {
	const char *name;
	void (*run)(struct doctor *d);
} checks[] = {
	{ "config", doctor_config },
	{ "catalogue", doctor_catalogue },
	{ "permissions", doctor_permissions },
	{ "kernel", doctor_kernel },
	{ "tracing", doctor_tracing },
	{ "secure-boot", doctor_secure_boot },
	{ "module", doctor_module },
	{ "cgroup", doctor_cgroup },
	{ "cards", doctor_cards },
	{ "dev-char", doctor_links },
	{ "program", doctor_program },
	{ "hook", doctor_hook },
	{ "next", doctor_next },
	{ "handler", doctor_handler },
	{ "cri", doctor_cri },
	{ "kubelet", doctor_kubelet },
	{ "agent", doctor_agent },
};

/* ---- Findings. */

__attribute__((format(printf, 4, 0))) static void add(struct doctor *d, enum doctor_state state,
						      char *mend, const char *fmt, va_list ap)
{
	char text[GS_ERR_MAX];

	(void)vsnprintf(text, sizeof(text), fmt, ap);
	d->findings = gs_grow(d->findings, d->n, sizeof(*d->findings));
	d->findings[d->n++] = (struct doctor_finding){ d->check, state,
						       ctl_printable(gs_strdup(text)),
						       mend ? ctl_printable(mend) : NULL };
}

void doctor_ok(struct doctor *d, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add(d, DOCTOR_OK, NULL, fmt, ap);
	va_end(ap);
}

void doctor_note(struct doctor *d, char *mend, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add(d, DOCTOR_NOTE, mend, fmt, ap);
	va_end(ap);
}

void doctor_wrong(struct doctor *d, char *mend, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add(d, DOCTOR_WRONG, mend, fmt, ap);
	va_end(ap);
}

/* ---- The configuration, which the other checks need. */

/* The paths in it, as we see them. */
static void move_below(struct gs_config *config, const char *root)
{
	char **const paths[] = { &config->run_dir, &config->lib_dir };

	for (size_t i = 0; i < GS_ARRAY_SIZE(paths); i++) {
		char *path = root_path(root, *paths[i]);

		free(*paths[i]);
		*paths[i] = path;
	}
	for (size_t i = 0; i < config->vendor_dirs.n; i++) {
		char *path = root_path(root, config->vendor_dirs.v[i]);

		free(config->vendor_dirs.v[i]);
		config->vendor_dirs.v[i] = path;
	}
}

static void doctor_config(struct doctor *d)
{
	struct gs_err err = { 0 };
	bool there;

	gs_config_init(&d->config);
	if (!getenv(GS_CONFIG_ENV)) {
		char *path = root_path(d->root, d->config.path);

		free(d->config.path);
		d->config.path = path;
	}
	d->config_ok = gs_config_load(&d->config, NULL, &err) == 0 &&
		       gs_sections_check(d->config.path, &err) == 0;
	there = root_has("/", d->config.path);
	move_below(&d->config, d->root);
	d->node.lib_dir = d->config.lib_dir;
	if (!d->config_ok)
		doctor_wrong(d, gs_strdup("gpusharectl config check   # after editing it"), "%s",
			     err.msg);
	else
		doctor_ok(d, "%s: %s", d->config.path, there ? "valid" : "none, so the defaults");
}

/* ---- Showing. */

static const char *const states[] = { "ok", "note", "WRONG" };

static void print(const struct doctor *d)
{
	size_t wrong = 0;

	for (size_t i = 0; i < d->n; i++) {
		const struct doctor_finding *f = &d->findings[i];

		printf("%-5s  %-11s  %s\n", states[f->state], f->check, f->text);
		if (f->mend)
			printf("                    -> %s\n", f->mend);
		wrong += f->state == DOCTOR_WRONG;
	}
	if (wrong)
		printf("%zu thing%s wrong\n", wrong, wrong == 1 ? " is" : "s are");
	else
		puts("nothing is wrong");
}

static json_t *to_json(const struct doctor *d, bool wrong)
{
	static const char *const names[] = { "ok", "note", "wrong" };
	json_t *list = json_array();

	for (size_t i = 0; i < d->n; i++) {
		const struct doctor_finding *f = &d->findings[i];

		(void)json_array_append_new(list, json_pack("{s:s,s:s,s:s,s:s?}", "check", f->check,
							    "state", names[f->state], "text",
							    f->text, "mend", f->mend));
	}
	return json_pack("{s:b,s:o}", "ok", !wrong, "findings", list);
}

static int examine(const char *root, enum ctl_format format)
{
	cleanup_free char *binary = setup_default_binary(root);
	struct doctor d = { .root = root,
			    .node = { .root = root, .binary = binary, .systemd_cgroup = -1 } };
	bool wrong = false;

	for (size_t i = 0; i < GS_ARRAY_SIZE(checks); i++) {
		d.check = checks[i].name;
		checks[i].run(&d);
	}
	for (size_t i = 0; i < d.n; i++)
		wrong = wrong || d.findings[i].state == DOCTOR_WRONG;
	if (format == CTL_JSON)
		ctl_print_json(to_json(&d, wrong));
	else
		print(&d);
	for (size_t i = 0; i < d.n; i++) {
		free(d.findings[i].text);
		free(d.findings[i].mend);
	}
	free(d.findings);
	free(d.release);
	gs_config_free(&d.config);
	return wrong ? CTL_FAILED : CTL_OK;
}

static int run(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "root", required_argument, NULL, 'r' },
		{ NULL, 0, NULL, 0 },
	};
	enum ctl_format format = CTL_TABLE;
	const char *root = "/";
	int opt;

	while ((opt = ctl_getopt(&ctl_doctor, argc, argv, ":ho:", longs)) != -1) {
		if (opt == 'h')
			return ctl_help(&ctl_doctor);
		if (opt == 'r' && optarg[0] == '/')
			root = optarg;
		else if (opt == 'r')
			return ctl_misused(&ctl_doctor, "--root takes an absolute path, not %s",
					   optarg);
		else if (opt == '?' || ctl_read_format(&ctl_doctor, optarg, 0, &format) != CTL_OK)
			return CTL_USAGE;
	}
	if (optind < argc)
		return ctl_misused(&ctl_doctor, "what is %s?", argv[optind]);
	return examine(root, format);
}

const struct ctl_verb ctl_doctor = {
	.name = "doctor",
	.summary = "look for what keeps this node from sharing, and say what mends it",
	.help = "usage: gpusharectl doctor [-o json] [--root FOLDER]\n"
		"\n"
		"Checks configuration, catalogue, permissions, kernel, module, cards, container\n"
		"runtimes, kubelet and agent. A line for each: ok, note (worth knowing) or WRONG,\n"
		"and below it the command that mends it. Changes nothing. Exits with 1 where\n"
		"something is wrong. As root, or some of it can't be seen.\n"
		"\n"
		"  -o json        one JSON object instead\n"
		"  --root FOLDER  the node's files are below FOLDER, its /proc and /sys too; its\n"
		"                 kernel module is not asked\n"
		"\n"
		"Example: gpusharectl doctor -o json | jq -r '.findings[] | select(.mend).mend'\n",
	.run = run,
};
