// SPDX-License-Identifier: Apache-2.0
/* CRI-O and podman, by drop-ins, and docker, in daemon.json. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/js.h"
#include "common/js_edit.h"
#include "common/xalloc.h"
#include "ctl/root.h"
#include "ctl/setup.h"

#define CRIO_MAIN "/etc/crio/crio.conf"
#define CRIO_DROP_IN "/etc/crio/crio.conf.d/20-gpushare.conf"
#define PODMAN_DROP_IN "/etc/containers/containers.conf.d/gpushare.conf"
#define DOCKER_MAIN "/etc/docker/daemon.json"

static char *quoted(const char *text)
{
	struct gs_buf out = { 0 };

	gs_buf_add_json(&out, text);
	return gs_buf_steal(&out);
}

/* ---- Drop-ins. */

struct drop_in {
	const char *path, *main, *folder; /* where the handler may stand otherwise */
	const char *table; /* the handler's, in each of them */
	const char *key; /* in it, what must name our program */
	const struct setup_plan *plan;
	char *elsewhere;
};

static void see_file(const char *path, void *arg)
{
	struct drop_in *drop_in = arg;
	cleanup_free char *text = NULL;
	cleanup_toml struct toml doc = { 0 };

	if (drop_in->elsewhere || strcmp(path, drop_in->path) == 0 ||
	    root_read(drop_in->plan->node->root, path, &text, NULL) < 0 ||
	    toml_parse(text, strlen(text), &doc, NULL) < 0)
		return;
	if (toml_below(&doc, drop_in->table))
		drop_in->elsewhere = gs_strdup(path);
}

/* Does the file, which setup did not write, name our program? 1; else -EEXIST. */
static int judge(const struct drop_in *drop_in, const struct setup_file *file, struct gs_err *err)
{
	cleanup_toml struct toml doc = { 0 };
	const struct toml_item *item;
	int r = setup_parse(file, &doc, err);

	if (r < 0)
		return r;
	item = toml_find(&doc, drop_in->key);
	for (size_t i = 0; item && i <= 1 && item + i < doc.items + doc.n; i++)
		if (item[i].string && strcmp(item[i].string, drop_in->plan->node->binary) == 0)
			return 1;
	return gs_err_set(
		err, EEXIST,
		"%s: setup did not write it, and it does not name %s; take it away, or mend "
		"it by hand",
		file->path, drop_in->plan->node->binary);
}

static int plan_drop_in(struct setup_plan *plan, struct drop_in *drop_in, const char *text,
			struct gs_err *err)
{
	cleanup_free char *elsewhere = NULL;
	struct setup_file *file;
	int r;

	drop_in->plan = plan;
	root_glob(plan->node->root, drop_in->main, see_file, drop_in);
	root_glob(plan->node->root, drop_in->folder, see_file, drop_in);
	elsewhere = drop_in->elsewhere;
	if (elsewhere)
		return gs_err_set(err, EEXIST,
				  "%s: has a runtime \"" SETUP_HANDLER
				  "\" already, which setup did not "
				  "write",
				  elsewhere);
	r = setup_add_file(plan, drop_in->path, &file, err);
	if (r == 0 && file->before)
		r = judge(drop_in, file, err);
	if (r != 0)
		return r < 0 ? r : 0;
	setup_append(file, text);
	return 0;
}

/* ---- Our own configuration: CRI-O names pods in words of its own. */

static int set_cri(struct setup_plan *plan, const char *cri, struct gs_err *err)
{
	cleanup_free char *value = quoted(cri);
	cleanup_buf struct gs_buf out = { 0 };
	struct js_edit edit = { 0 };
	struct setup_file *file;
	struct js root, member;
	int r = setup_add_file(plan, plan->node->config, &file, err);

	if (r < 0)
		return r;
	if (!file->after) {
		cleanup_free char *text = gs_asprintf("{\n\t\"cri\": %s\n}\n", value);

		setup_append(file, text);
		return 0;
	}
	edit.text = file->after;
	edit.len = strlen(file->after);
	r = js_parse(edit.text, edit.len, &root, err);
	if (r == 0 && !js_is(root, JS_OBJECT))
		r = gs_err_set(err, EINVAL, "must be an object");
	if (r == 0)
		r = js_member(root, "cri", &member, err);
	if (r < 0)
		return gs_err_prefix(err, "%s", file->path);
	if (js_string_is(member, cri))
		return 0;
	if (member.n)
		js_edit_replace(&edit, member, value);
	else
		js_edit_add_member(&edit, root, "cri", value);
	js_edit_apply(&edit, &out);
	js_edit_free(&edit);
	setup_replace(file, out.data);
	return 0;
}

/* ---- CRI-O. */

static bool found_crio(const struct setup_node *node)
{
	cleanup_free char *program = root_program(node->root, "crio");

	return program || root_has(node->root, "/etc/crio");
}

static int plan_crio(struct setup_plan *plan, struct gs_err *err)
{
	struct drop_in drop_in = { .path = CRIO_DROP_IN,
				   .main = CRIO_MAIN,
				   .folder = "/etc/crio/crio.conf.d/*",
				   .table = "crio.runtime.runtimes." SETUP_HANDLER,
				   .key = "crio.runtime.runtimes." SETUP_HANDLER ".runtime_path" };
	cleanup_free char *binary = quoted(plan->node->binary);
	cleanup_free char *text =
		gs_asprintf(SETUP_BEGIN "%s"
					"[crio.runtime.runtimes." SETUP_HANDLER "]\n"
					"runtime_path = %s\n"
					"runtime_type = \"oci\"\n"
					"runtime_root = \"/run/gpushare-oci\"\n" SETUP_END,
			    plan->node->make_default ?
				    "[crio.runtime]\ndefault_runtime = \"" SETUP_HANDLER "\"\n\n" :
				    "",
			    binary);
	int r = plan_drop_in(plan, &drop_in, text, err);

	if (r == 0)
		r = set_cri(plan, "cri-o", err);
	return r;
}

static void then_crio(struct setup_plan *plan)
{
	gs_strv_add(&plan->then, "systemctl restart crio");
}

const struct setup_runtime setup_crio = {
	.name = "crio",
	.what = CRIO_DROP_IN,
	.cri = true,
	.found = found_crio,
	.plan = plan_crio,
	.then = then_crio,
};

/* ---- podman. */

static void note_identity(struct setup_plan *plan)
{
	gs_strv_take(
		&plan->notes,
		gs_asprintf("where this machine has no Kubernetes, %s needs \"cri\": \"none\", or "
			    "the annotation that names a container is not believed",
			    plan->node->config));
}

static bool found_podman(const struct setup_node *node)
{
	cleanup_free char *program = root_program(node->root, "podman");

	return program;
}

static int plan_podman(struct setup_plan *plan, struct gs_err *err)
{
	struct drop_in drop_in = { .path = PODMAN_DROP_IN,
				   .main = "/etc/containers/containers.conf",
				   .folder = "/etc/containers/containers.conf.d/*.conf",
				   .table = "engine.runtimes." SETUP_HANDLER,
				   .key = "engine.runtimes." SETUP_HANDLER };
	cleanup_free char *binary = quoted(plan->node->binary);
	cleanup_free char *text = gs_asprintf(
		SETUP_BEGIN "%s"
			    "[engine.runtimes]\n" SETUP_HANDLER " = [%s]\n" SETUP_END,
		plan->node->make_default ? "[engine]\nruntime = \"" SETUP_HANDLER "\"\n\n" : "",
		binary);

	note_identity(plan);
	return plan_drop_in(plan, &drop_in, text, err);
}

const struct setup_runtime setup_podman = {
	.name = "podman",
	.what = PODMAN_DROP_IN,
	.found = found_podman,
	.plan = plan_podman,
};

/* ---- docker. */

static bool found_docker(const struct setup_node *node)
{
	cleanup_free char *program = root_program(node->root, "dockerd");

	return program;
}

/* Adds what is missing of "runtimes" and "default-runtime". */
static int edit_docker(const struct setup_plan *plan, struct js root, struct js_edit *edit,
		       struct gs_err *err)
{
	cleanup_free char *binary = quoted(plan->node->binary);
	cleanup_free char *runtime = gs_asprintf("{ \"path\": %s }", binary);
	cleanup_free char *all = gs_asprintf("{ \"" SETUP_HANDLER "\": %s }", runtime);
	struct js runtimes, ours = { 0 }, path = { 0 }, name;
	int r;

	if (!js_is(root, JS_OBJECT))
		return gs_err_set(err, EINVAL, "must be an object");
	r = js_member(root, "runtimes", &runtimes, err);
	if (r == 0 && !js_absent(runtimes) && !js_is(runtimes, JS_OBJECT))
		r = gs_err_set(err, EINVAL, "runtimes must be an object");
	if (r == 0 && js_is(runtimes, JS_OBJECT))
		r = js_map_member(runtimes, SETUP_HANDLER, &ours, err);
	if (r == 0 && ours.n)
		r = js_member(ours, "path", &path, err);
	if (r == 0)
		r = js_member(root, "default-runtime", &name, err);
	if (r < 0)
		return r;
	if (ours.n && !js_string_is(path, plan->node->binary))
		return gs_err_set(err, EEXIST,
				  "has a runtime \"" SETUP_HANDLER
				  "\" that setup did not write, and its "
				  "path is not %s; take it out, or mend it by hand",
				  plan->node->binary);
	if (!ours.n && js_is(runtimes, JS_OBJECT))
		js_edit_add_member(edit, runtimes, SETUP_HANDLER, runtime);
	else if (!ours.n && runtimes.n)
		js_edit_replace(edit, runtimes, all);
	else if (!ours.n)
		js_edit_add_member(edit, root, "runtimes", all);
	if (!plan->node->make_default || js_string_is(name, SETUP_HANDLER))
		return 0;
	if (name.n)
		js_edit_replace(edit, name, "\"" SETUP_HANDLER "\"");
	else
		js_edit_add_member(edit, root, "default-runtime", "\"" SETUP_HANDLER "\"");
	return 0;
}

static int plan_docker(struct setup_plan *plan, struct gs_err *err)
{
	static const char empty[] = "{\n}\n";
	cleanup_js_edit struct js_edit edit = { 0 };
	cleanup_buf struct gs_buf out = { 0 };
	struct setup_file *file;
	struct js root;
	int r;

	note_identity(plan);
	r = setup_add_file(plan, DOCKER_MAIN, &file, err);
	if (r < 0)
		return r;
	/* dockerd takes an empty file for none. */
	edit.text = file->before && file->before[strspn(file->before, " \t\r\n")] ? file->before :
										    empty;
	edit.len = strlen(edit.text);
	r = js_parse(edit.text, edit.len, &root, err);
	if (r == 0)
		r = edit_docker(plan, root, &edit, err);
	if (r < 0)
		return gs_err_prefix(err, "%s", file->path);
	js_edit_apply(&edit, &out);
	if (!file->after)
		setup_append(file, out.data);
	else
		setup_replace(file, out.data);
	return 0;
}

static void then_docker(struct setup_plan *plan)
{
	gs_strv_add(&plan->then, "systemctl reload docker");
}

const struct setup_runtime setup_docker = {
	.name = "docker",
	.what = DOCKER_MAIN,
	.found = found_docker,
	.plan = plan_docker,
	.then = then_docker,
};
