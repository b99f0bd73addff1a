// SPDX-License-Identifier: Apache-2.0
/*
 * containerd. A configuration of version 2 (containerd 1.5 to 1.7, and 2.x with an older file) gets
 * the handler in place: below 2.0 an imported file replaces the whole section of the CRI plugin.
 * From version 3 on imports are merged key by key, so there the handler is a drop-in.
 */
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/xalloc.h"
#include "ctl/root.h"
#include "ctl/setup.h"

#define MAIN "/etc/containerd/config.toml"
#define FOLDER "/etc/containerd/conf.d"
#define DROP_IN FOLDER "/gpushare.toml"

static bool found(const struct setup_node *node)
{
	cleanup_free char *program = root_program(node->root, "containerd");

	return program || root_has(node->root, MAIN);
}

/* What `PROGRAM --version` prints, of which @len bytes are kept; false: it failed. */
static bool ask_program(const char *program, char *line, size_t len)
{
	cleanup_close int in = -1, out = -1;
	int status, ends[2];
	size_t n = 0;
	ssize_t got;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return false;
	in = ends[0];
	out = ends[1];
	pid = fork();
	if (pid == 0) {
		if (dup2(out, STDOUT_FILENO) >= 0)
			(void)execl(program, "containerd", "--version", (char *)NULL);
		_exit(127);
	}
	(void)close(gs_steal_fd(&out));
	while (n < len - 1 && (got = read(in, line + n, len - 1 - n)) > 0)
		n += (size_t)got;
	line[n] = 0;
	/* What it would print besides goes nowhere. */
	(void)close(gs_steal_fd(&in));
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/* The first word of digits and dots, or "v" and those, that it says. */
static unsigned int ask_version(const struct setup_node *node)
{
	cleanup_free char *program = root_program(node->root, "containerd");
	cleanup_free char *path = program ? root_path(node->root, program) : NULL;
	char line[256];

	if (!path || !ask_program(path, line, sizeof(line)))
		return 0;
	for (char *p = line; (p = strchr(p, ' ')) != NULL;) {
		size_t digits;

		p += 1 + (p[1] == 'v');
		digits = strspn(p, "0123456789");
		if (digits && p[digits] == '.')
			return (unsigned int)strtoul(p, NULL, 10);
	}
	return 0;
}

/* The version of containerd; 0: nobody knows. */
static unsigned int major_version(const struct setup_node *node)
{
	return node->containerd ? node->containerd : ask_version(node);
}

/* ---- What is there already. */

/* -EEXIST: a handler that is not as it should be, by somebody else's hand. 1: a good one. */
static int see_handler(const struct setup_plan *plan, const char *path, const struct toml *doc,
		       const char *cri, struct gs_err *err)
{
	cleanup_free char *table = gs_asprintf("%s.containerd.runtimes." SETUP_HANDLER, cri);
	cleanup_free char *wrong = NULL;
	struct setup_handler handler;

	setup_read_handler(doc, table, &handler);
	if (!handler.there)
		return 0;
	wrong = setup_handler_wrong(&handler, plan->node->binary);
	if (!wrong)
		return 1;
	return gs_err_set(err, EEXIST,
			  "%s: has a handler \"" SETUP_HANDLER
			  "\" that setup did not write; %s; take "
			  "it out, or mend it by hand",
			  path, wrong);
}

static int check_main(const struct setup_file *file, const struct toml *doc, struct gs_err *err)
{
	if (setup_cri_disabled(doc))
		return gs_err_set(err, EINVAL,
				  "%s: disabled_plugins switches the CRI plugin off, so no kubelet "
				  "is served here; take it out of that list first",
				  file->path);
	return 0;
}

/* ---- In place. */

struct imports {
	const struct setup_node *node;
	const char *cri;
	char *found; /* an imported file with a section of the CRI plugin */
	char *handler; /* one with our handler in it */
};

static void see_import(const char *path, void *arg)
{
	struct imports *imports = arg;
	cleanup_free char *text = NULL;
	cleanup_free char *table =
		gs_asprintf("%s.containerd.runtimes." SETUP_HANDLER, imports->cri);
	cleanup_toml struct toml doc = { 0 };

	if (root_read(imports->node->root, path, &text, NULL) < 0 ||
	    toml_parse(text, strlen(text), &doc, NULL) < 0)
		return;
	if (!imports->found && toml_below(&doc, imports->cri))
		imports->found = gs_strdup(path);
	if (!imports->handler && toml_below(&doc, table))
		imports->handler = gs_strdup(path);
}

/* The list `imports`, and what the files in it have. The caller frees the paths. */
static void see_imports(const struct setup_node *node, const struct toml *doc, const char *cri,
			struct gs_strv *list, struct imports *ret)
{
	const struct toml_item *item = toml_find(doc, "imports");

	*ret = (struct imports){ .node = node, .cri = cri };
	if (item)
		(void)toml_strings(doc, item, list);
	for (size_t i = 0; i < list->n; i++)
		if (list->v[i][0] == '/')
			root_glob(node->root, list->v[i], see_import, ret);
}

static int check_imports(const struct setup_plan *plan, const struct setup_file *file,
			 const struct toml *doc, const char *cri, struct gs_err *err)
{
	cleanup_strv struct gs_strv list = { 0 };
	struct imports imports;
	int r = 0;

	see_imports(plan->node, doc, cri, &list, &imports);
	if (imports.found && major_version(plan->node) < 2)
		r = gs_err_set(err, EINVAL,
			       "%s: imports %s, whose section of the CRI plugin replaces this "
			       "file's whole one below containerd 2.0; put it into this file first",
			       file->path, imports.found);
	free(imports.found);
	free(imports.handler);
	return r;
}

/* containerd has a built-in list of runtimes as long as no file names one: write it out then. */
static void write_runc(const char *cri, const char *systemd_cgroup, struct gs_buf *out)
{
	gs_buf_addf(out,
		    "# Without a name in it, this list was containerd's own: runc alone.\n"
		    "[%s.containerd.runtimes.runc]\n"
		    "  runtime_type = \"io.containerd.runc.v2\"\n"
		    "\n"
		    "  [%s.containerd.runtimes.runc.options]\n"
		    "    SystemdCgroup = %s\n"
		    "\n",
		    cri, cri, systemd_cgroup);
}

static int append_handler(struct setup_plan *plan, struct setup_file *file, const struct toml *doc,
			  const char *cri, struct gs_err *err)
{
	cleanup_buf struct gs_buf block = { 0 };
	cleanup_free char *runtimes = gs_asprintf("%s.containerd.runtimes", cri);
	cleanup_free char *containerd = gs_asprintf("%s.containerd", cri);
	cleanup_free char *runc = gs_asprintf("%s.runc", runtimes);
	cleanup_free char *below = gs_asprintf("%s.", runtimes);
	const char *cgroup = setup_cgroup_word(plan->node, cri, doc);
	bool named = false;

	for (size_t i = 0; i < doc->n; i++)
		named = named || strncmp(doc->items[i].path, below, strlen(below)) == 0;
	gs_buf_adds(&block, SETUP_BEGIN);
	if (!named)
		write_runc(cri, cgroup, &block);
	setup_write_handler(plan->node, cri, doc, cgroup, &block);
	gs_buf_adds(&block, SETUP_END);
	if (plan->node->make_default) {
		int r = setup_set(file, containerd, "default_runtime_name", "\"" SETUP_HANDLER "\"",
				  err);

		if (r < 0)
			return r;
	}
	setup_append(file, block.data);
	return 0;
}

/* Does the finished file say what it should? Inline tables can't be added to, for one. */
static int verify(struct setup_plan *plan, const struct setup_file *file, const char *cri,
		  struct gs_err *err)
{
	cleanup_toml struct toml doc = { 0 };
	int r = setup_parse(file, &doc, err);

	if (r < 0)
		return gs_err_prefix(err, "with the handler in it");
	r = see_handler(plan, file->path, &doc, cri, err);
	return r == 1 ? 0 : r < 0 ? r : gs_err_set(err, EINVAL, "%s: no handler", file->path);
}

static int plan_in_place(struct setup_plan *plan, struct setup_file *file, const struct toml *doc,
			 struct gs_err *err)
{
	const char *cri = setup_cri_table(2);
	int r = see_handler(plan, file->path, doc, cri, err);

	if (r != 0)
		return r < 0 ? r : 0;
	r = check_imports(plan, file, doc, cri, err);
	if (r == 0)
		r = append_handler(plan, file, doc, cri, err);
	return r == 0 ? verify(plan, file, cri, err) : r;
}

/* ---- A drop-in. */

/* Is a file that a list of patterns imports? */
static bool is_imported(const struct gs_strv *list, const char *path)
{
	for (size_t i = 0; i < list->n; i++)
		if (fnmatch(list->v[i], path, FNM_PATHNAME) == 0)
			return true;
	return false;
}

/* Has the main file import the folder. */
static int add_import(struct setup_file *file, const struct toml *doc, struct gs_err *err)
{
	const struct toml_item *imports = toml_find(doc, "imports");
	const struct toml_item *version = toml_find(doc, "version");
	cleanup_strv struct gs_strv list = { 0 };
	cleanup_free char *text = NULL;
	size_t last;

	if (!imports) {
		text = gs_asprintf(SETUP_BEGIN "imports = [\"" FOLDER "/*.toml\"]\n" SETUP_END);
		/* A version that ends the file may have no newline behind it. */
		if (doc->text[version->end - 1] != '\n') {
			setup_append(file, text);
			return 0;
		}
		setup_edit(file, version->end, version->end, text);
		return 0;
	}
	if (imports->type != TOML_ARRAY || !toml_strings(doc, imports, &list))
		return gs_err_set(err, EINVAL, "%s: imports is no list of names", file->path);
	/* Behind the last element, so that what stands between them stays. */
	last = list.n ? imports[list.n].to : imports->from + 1;
	text = gs_asprintf("%.*s%s\"" FOLDER "/*.toml\"%.*s", (int)(last - imports->line),
			   doc->text + imports->line, list.n ? ", " : "",
			   (int)(imports->end - last), doc->text + last);
	setup_edit(file, imports->line, imports->end, text);
	return 0;
}

/* The text of the drop-in, with what the main file says of runc. */
static char *drop_in(const struct setup_plan *plan, const struct toml *doc)
{
	const char *cri = setup_cri_table(3);
	cleanup_buf struct gs_buf out = { 0 };

	gs_buf_adds(&out, SETUP_BEGIN "version = 3\n\n");
	if (plan->node->make_default)
		gs_buf_addf(&out,
			    "[%s.containerd]\n"
			    "  default_runtime_name = \"" SETUP_HANDLER "\"\n"
			    "\n",
			    cri);
	setup_write_handler(plan->node, cri, doc, setup_cgroup_word(plan->node, cri, doc), &out);
	gs_buf_adds(&out, SETUP_END);
	return gs_buf_steal(&out);
}

static int plan_drop_in(struct setup_plan *plan, const struct toml *doc, struct gs_err *err)
{
	const char *cri = setup_cri_table(3);
	cleanup_strv struct gs_strv list = { 0 };
	cleanup_free char *text = drop_in(plan, doc);
	cleanup_free char *elsewhere = NULL;
	struct setup_file *file;
	struct imports imports;
	int r = see_handler(plan, MAIN, doc, cri, err);

	if (r != 0)
		return r < 0 ? r : 0;
	see_imports(plan->node, doc, cri, &list, &imports);
	free(imports.found);
	elsewhere = imports.handler;
	if (elsewhere && strcmp(elsewhere, DROP_IN) != 0)
		return gs_err_set(err, EEXIST,
				  "%s: has a handler \"" SETUP_HANDLER
				  "\" already, which setup did "
				  "not write",
				  elsewhere);
	if (!is_imported(&list, DROP_IN)) {
		r = add_import(&plan->files[plan->n - 1], doc, err);
		if (r < 0)
			return r;
	}
	r = setup_add_file(plan, DROP_IN, &file, err);
	if (r < 0)
		return r;
	if (file->before) { /* not ours, or edited since: judge it */
		cleanup_toml struct toml own = { 0 };

		r = setup_parse(file, &own, err);
		if (r == 0)
			r = see_handler(plan, DROP_IN, &own, cri, err);
		if (r != 0)
			return r < 0 ? r : 0;
	}
	setup_append(file, text);
	return verify(plan, file, cri, err);
}

/* ---- The plan. */

/* A first file, for a containerd that runs by its defaults. */
static int begin_main(struct setup_plan *plan, struct setup_file *file, struct gs_err *err)
{
	unsigned int major = major_version(plan->node);

	if (!major)
		return gs_err_set(err, ENOENT,
				  "%s: no such file, and no containerd that tells its version; say "
				  "--containerd 1 or --containerd 2",
				  file->path);
	setup_append(file, major >= 2 ? "version = 3\n" : "version = 2\n");
	return 0;
}

static int plan(struct setup_plan *plan, struct gs_err *err)
{
	cleanup_toml struct toml doc = { 0 };
	cleanup_free char *text = NULL;
	struct setup_file *file;
	unsigned int version;
	int r = setup_add_file(plan, MAIN, &file, err);

	if (r == 0 && !file->before)
		r = begin_main(plan, file, err);
	if (r < 0)
		return r;
	text = gs_strdup(file->after); /* which edits replace */
	r = toml_parse(text, strlen(text), &doc, err);
	if (r < 0)
		return gs_err_prefix(err, "%s", file->path);
	r = check_main(file, &doc, err);
	if (r < 0)
		return r;
	version = setup_version(&doc);
	if (version < 2)
		return gs_err_set(err, EINVAL,
				  "%s: is of version 1 (it has no \"version = 2\"), in which no "
				  "handler can be added safely; write it anew (containerd config "
				  "default)",
				  file->path);
	return version == 2 ? plan_in_place(plan, file, &doc, err) : plan_drop_in(plan, &doc, err);
}

static void then(struct setup_plan *plan)
{
	gs_strv_add(&plan->then, "systemctl restart containerd");
	gs_strv_add(&plan->then, "ctr plugins ls | grep -w cri   # must end in \"ok\"");
}

const struct setup_runtime setup_containerd = {
	.name = "containerd",
	.what = MAIN ", or a drop-in from 2.0 on",
	.cri = true,
	.found = found,
	.plan = plan,
	.then = then,
};
