// SPDX-License-Identifier: Apache-2.0
/*
 * Reading the vendor catalogue. It is read for every container that is created, so each file costs
 * one open and one read, and no tree is built of what only the agent needs.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/catalogue.h"
#include "common/catalogue_check.h"
#include "common/cleanup.h"
#include "common/doc.h"
#include "common/file.h"
#include "common/glob.h"
#include "common/xalloc.h"

#define VENDOR_FILE_MAX (256 * 1024)
/* Where every node is; gs_catalogue_node() looks at no other path. */
#define DEV "/dev/"

/* One file to read: @dir is an index into the caller's folders. */
struct file {
	char *name;
	size_t dir;
};

struct files {
	struct file *v;
	size_t n;
};

static void files_free(struct files *files)
{
	for (size_t i = 0; i < files->n; i++)
		free(files->v[i].name);
	free(files->v);
}

static void vendor_free(struct gs_vendor *vendor)
{
	for (size_t i = 0; i < vendor->n_nodes; i++) {
		free(vendor->nodes[i].glob);
		gs_strv_free(&vendor->nodes[i].drivers);
	}
	for (size_t i = 0; i < vendor->n_envs; i++)
		free(vendor->envs[i].name);
	for (size_t i = 0; i < vendor->n_mounts; i++) {
		free(vendor->mounts[i].to);
		gs_strv_free(&vendor->mounts[i].from);
	}
	free(vendor->nodes);
	free(vendor->envs);
	free(vendor->mounts);
	gs_strv_free(&vendor->roots);
	gs_strv_free(&vendor->hooks);
	gs_strv_free(&vendor->next_runtimes);
	gs_strv_free(&vendor->next_hooks);
	gs_strv_free(&vendor->select_none);
	gs_strv_free(&vendor->chrdevs);
	gs_strv_free(&vendor->resources);
	gs_strv_free(&vendor->slices);
	free(vendor->name);
	free(vendor->file);
	*vendor = (struct gs_vendor){ 0 };
}

void gs_catalogue_free(struct gs_catalogue *cat)
{
	for (size_t i = 0; i < cat->n; i++)
		vendor_free(&cat->v[i]);
	free(cat->v);
	*cat = (struct gs_catalogue){ 0 };
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct file *)a)->name, ((const struct file *)b)->name);
}

/* ".x.json" is an editor's, "x.json.gpushare-..." a half-written one of ours. */
static bool is_vendor_file(const char *name)
{
	size_t n = strlen(name);

	return name[0] != '.' && n > 5 && strcmp(name + n - 5, ".json") == 0;
}

/* Adds the files of one folder; one of a name that is there already takes its place. */
static int list_dir(struct files *files, size_t dir, const char *path, int *ret_fd,
		    struct gs_err *err)
{
	cleanup_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_dir DIR *d = NULL;
	size_t old = files->n;
	struct dirent *e;

	if (fd < 0)
		return errno == ENOENT ? 0 : gs_err_errno(err, errno, "open directory %s", path);
	d = gs_opendirat(fd, ".");
	if (!d)
		return gs_err_errno(err, errno, "open directory %s", path);
	for (errno = 0; (e = readdir(d)); errno = 0) {
		size_t i;

		if (!is_vendor_file(e->d_name))
			continue;
		for (i = 0; i < old && strcmp(files->v[i].name, e->d_name) != 0; i++)
			;
		if (i < old) {
			files->v[i].dir = dir;
			continue;
		}
		files->v = gs_grow(files->v, files->n, sizeof(*files->v));
		files->v[files->n++] = (struct file){ gs_strdup(e->d_name), dir };
	}
	if (errno)
		return gs_err_errno(err, errno, "read directory %s", path);
	/* readdir(3) gives them in no order, and the first vendor that claims a node has it. */
	if (files->n > old)
		qsort(files->v + old, files->n - old, sizeof(*files->v), by_name);
	*ret_fd = gs_steal_fd(&fd);
	return 0;
}

static int get_nodes(const struct gs_doc *doc, struct js list, struct gs_vendor *vendor,
		     struct gs_err *err)
{
	enum { GLOB, KIND, DRIVERS, N };
	static const struct gs_doc_key keys[N + 1] = {
		[GLOB] = { "glob", GS_DOC_STRING, true },
		[KIND] = { "kind", GS_DOC_STRING, true },
		[DRIVERS] = { "drivers", GS_DOC_LIST, false },
	};
	static const char *const kinds[] = { "card", "shared", "control", NULL };
	struct js_iter it = js_iter(list);
	struct js item, v[N];

	while (js_next_element(&it, &item)) {
		struct gs_node *node;
		int r, kind = 0;

		vendor->nodes = gs_grow(vendor->nodes, vendor->n_nodes, sizeof(*node));
		node = &vendor->nodes[vendor->n_nodes++];
		*node = (struct gs_node){ 0 };
		r = gs_doc_members(doc, item, "a node", keys, v, err);
		if (r == 0)
			r = gs_check_path_glob(doc, v[GLOB], "glob", &node->glob, err);
		if (r == 0 && strncmp(node->glob, DEV, strlen(DEV)) != 0)
			r = gs_doc_wrong(doc, v[GLOB], err,
					 "glob must begin with \"" DEV "\", not \"%s\"",
					 node->glob);
		if (r == 0)
			r = gs_doc_enum(doc, v[KIND], "kind", kinds, &kind, err);
		if (r == 0)
			r = gs_doc_strings(doc, v[DRIVERS], "drivers", &node->drivers, err);
		if (r < 0)
			return r;
		node->kind = (enum gs_node_kind)kind;
	}
	if (!vendor->n_nodes)
		return gs_doc_wrong(doc, list, err, "nodes must not be empty");
	return 0;
}

/* What execve(2)'s readers take for a name: anything up to '='; we are stricter. */
static bool is_env_name(const char *s)
{
	return *s && !(*s >= '0' && *s <= '9') &&
	       strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") ==
		       strlen(s);
}

static int get_envs(const struct gs_doc *doc, struct js list, struct gs_vendor *vendor,
		    struct gs_err *err)
{
	enum { NAME, MERGE, SELECTS, N };
	static const struct gs_doc_key keys[N + 1] = {
		[NAME] = { "name", GS_DOC_STRING, true },
		[MERGE] = { "merge", GS_DOC_STRING, true },
		[SELECTS] = { "selects", GS_DOC_BOOL, false },
	};
	static const char *const merges[] = { "list", "replace", "local", NULL };
	struct js_iter it = js_iter(list);
	struct js item, v[N];

	while (js_next_element(&it, &item)) {
		struct gs_env *env;
		int r, merge = 0;

		vendor->envs = gs_grow(vendor->envs, vendor->n_envs, sizeof(*env));
		env = &vendor->envs[vendor->n_envs++];
		*env = (struct gs_env){ 0 };
		r = gs_doc_members(doc, item, "a variable", keys, v, err);
		if (r == 0)
			r = gs_doc_string(doc, v[NAME], "name", &env->name, err);
		if (r == 0)
			r = gs_doc_enum(doc, v[MERGE], "merge", merges, &merge, err);
		if (r < 0)
			return r;
		if (!env->name || !is_env_name(env->name))
			return gs_doc_wrong(doc, v[NAME], err,
					    "name must be letters, digits and '_'");
		for (size_t i = 0; i + 1 < vendor->n_envs; i++)
			if (strcmp(vendor->envs[i].name, env->name) == 0)
				return gs_doc_wrong(doc, v[NAME], err, "variable %s stands twice",
						    env->name);
		env->merge = (enum gs_env_merge)merge;
		gs_doc_bool(v[SELECTS], &env->selects);
	}
	return 0;
}

static int get_mounts(const struct gs_doc *doc, struct js list, struct gs_vendor *vendor,
		      struct gs_err *err)
{
	enum { TO, FROM, SELECTS, N };
	static const struct gs_doc_key keys[N + 1] = {
		[TO] = { "to", GS_DOC_STRING, true },
		[FROM] = { "from", GS_DOC_LIST, false },
		[SELECTS] = { "selects", GS_DOC_BOOL, false },
	};
	struct js_iter it = js_iter(list);
	struct js item, v[N];

	while (js_next_element(&it, &item)) {
		struct gs_mount *mount;
		int r;

		vendor->mounts = gs_grow(vendor->mounts, vendor->n_mounts, sizeof(*mount));
		mount = &vendor->mounts[vendor->n_mounts++];
		*mount = (struct gs_mount){ 0 };
		if (js_is(item, JS_STRING)) {
			r = gs_check_path_glob(doc, item, "a mount", &mount->to, err);
			if (r < 0)
				return r;
			continue;
		}
		r = gs_doc_members(doc, item, "a mount", keys, v, err);
		if (r == 0)
			r = gs_check_path_glob(doc, v[TO], "to", &mount->to, err);
		if (r == 0)
			r = gs_check_path_globs(doc, v[FROM], "from", &mount->from, err);
		if (r < 0)
			return r;
		if (v[FROM].n && !mount->from.n)
			return gs_doc_wrong(doc, v[FROM], err, "from must not be empty");
		gs_doc_bool(v[SELECTS], &mount->selects);
	}
	return 0;
}

/* A root is put before a pattern: "" or a plain path, taken as it is. */
static int get_roots(const struct gs_doc *doc, struct js list, struct gs_vendor *vendor,
		     struct gs_err *err)
{
	int r = gs_doc_strings(doc, list, "mount_roots", &vendor->roots, err);

	for (size_t i = 0; r == 0 && i < vendor->roots.n; i++)
		if (vendor->roots.v[i][0] && !gs_path_plain(vendor->roots.v[i]))
			r = gs_doc_wrong(doc, list, err,
					 "mount_roots must hold \"\" or absolute paths, not \"%s\"",
					 vendor->roots.v[i]);
	if (r == 0 && !list.n)
		gs_strv_add(&vendor->roots, "");
	return r;
}

static int get_next(const struct gs_doc *doc, struct js object, struct gs_vendor *vendor,
		    struct gs_err *err)
{
	enum { RUNTIMES, HOOKS, N };
	static const struct gs_doc_key keys[N + 1] = {
		[RUNTIMES] = { "runtimes", GS_DOC_LIST, false },
		[HOOKS] = { "hooks", GS_DOC_LIST, false },
	};
	struct js v[N];
	int r;

	if (!object.n)
		return 0;
	r = gs_doc_members(doc, object, "next", keys, v, err);
	if (r == 0)
		r = gs_doc_strings(doc, v[RUNTIMES], "runtimes", &vendor->next_runtimes, err);
	if (r == 0)
		r = gs_check_globs(doc, v[HOOKS], "hooks", &vendor->next_hooks, err);
	return r;
}

static int get_name(const struct gs_doc *doc, struct js v, struct gs_vendor *vendor,
		    struct gs_err *err)
{
	int r = gs_doc_string(doc, v, "name", &vendor->name, err);

	if (r == 0 &&
	    (!vendor->name[0] ||
	     strspn(vendor->name, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(vendor->name)))
		r = gs_doc_wrong(doc, v, err, "name must be lower-case letters, digits and '-'");
	return r;
}

static int get_vendor(const struct gs_doc *doc, size_t len, struct gs_vendor *vendor,
		      struct gs_err *err)
{
	enum {
		NAME,
		TITLE,
		NOTES,
		RESOURCES,
		SLICES,
		NODES,
		ENV,
		SELECT_NONE,
		MOUNTS,
		ROOTS,
		HOOKS,
		NEXT,
		INVENTORY,
		DRIVER,
		LOAD,
		N
	};
	static const struct gs_doc_key keys[N + 1] = {
		[NAME] = { "name", GS_DOC_STRING, true },
		[TITLE] = { "title", GS_DOC_STRING, true },
		[NOTES] = { "notes", GS_DOC_LIST, false },
		[RESOURCES] = { "resources", GS_DOC_LIST, false },
		[SLICES] = { "slices", GS_DOC_LIST, false },
		[NODES] = { "nodes", GS_DOC_LIST, true },
		[ENV] = { "env", GS_DOC_LIST, false },
		[SELECT_NONE] = { "select_none", GS_DOC_LIST, false },
		[MOUNTS] = { "mounts", GS_DOC_LIST, false },
		[ROOTS] = { "mount_roots", GS_DOC_LIST, false },
		[HOOKS] = { "hooks", GS_DOC_LIST, false },
		[NEXT] = { "next", GS_DOC_OBJECT, false },
		[INVENTORY] = { "inventory", GS_DOC_OBJECT, false },
		[DRIVER] = { "driver", GS_DOC_OBJECT, false },
		[LOAD] = { "load", GS_DOC_OBJECT, false },
	};
	cleanup_strv struct gs_strv notes = { 0 };
	struct js root, v[N];
	int r;

	r = gs_doc_parse(doc, len, &root, err);
	if (r == 0)
		r = gs_doc_members(doc, root, "the entry", keys, v, err);
	if (r == 0)
		r = get_name(doc, v[NAME], vendor, err);
	if (r == 0)
		r = gs_doc_strings(doc, v[NOTES], "notes", &notes, err);
	if (r == 0)
		r = gs_check_globs(doc, v[RESOURCES], "resources", &vendor->resources, err);
	if (r == 0)
		r = gs_check_globs(doc, v[SLICES], "slices", &vendor->slices, err);
	if (r == 0)
		r = get_nodes(doc, v[NODES], vendor, err);
	if (r == 0)
		r = get_envs(doc, v[ENV], vendor, err);
	if (r == 0)
		r = gs_doc_strings(doc, v[SELECT_NONE], "select_none", &vendor->select_none, err);
	if (r == 0)
		r = get_mounts(doc, v[MOUNTS], vendor, err);
	if (r == 0)
		r = get_roots(doc, v[ROOTS], vendor, err);
	if (r == 0)
		r = gs_check_globs(doc, v[HOOKS], "hooks", &vendor->hooks, err);
	if (r == 0)
		r = get_next(doc, v[NEXT], vendor, err);
	if (r == 0)
		r = gs_check_inventory(doc, v[INVENTORY], err);
	if (r == 0)
		r = gs_check_driver(doc, v[DRIVER], &vendor->chrdevs, err);
	if (r == 0)
		r = gs_check_load(doc, v[LOAD], err);
	return r;
}

/* Reads files->v[i] into the next vendor of @cat. */
static int load_file(struct gs_catalogue *cat, int dirfd, const char *dir, const char *name,
		     struct gs_err *err)
{
	cleanup_free char *text = NULL;
	struct gs_vendor *vendor;
	struct gs_doc doc;
	size_t len;
	int r;

	cat->v = gs_grow(cat->v, cat->n, sizeof(*cat->v));
	vendor = &cat->v[cat->n++];
	*vendor = (struct gs_vendor){ .file = gs_asprintf("%s/%s", dir, name) };
	r = gs_file_read(dirfd, name, 0, VENDOR_FILE_MAX, &text, &len, NULL, err);
	if (r < 0)
		return r;
	doc = (struct gs_doc){ vendor->file, text };
	r = get_vendor(&doc, len, vendor, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i + 1 < cat->n; i++)
		if (strcmp(cat->v[i].name, vendor->name) == 0)
			return gs_err_set(err, EEXIST, "%s: name \"%s\" is taken by %s",
					  vendor->file, vendor->name, cat->v[i].file);
	return 0;
}

/* What is done with a vendor's file, and what of it is wrong (NULL: nothing). */
typedef void (*each_file)(const char *file, const struct gs_vendor *vendor,
			  const struct gs_err *wrong, void *arg);

/* Reads the files into @cat up to the first mistake; with @each, all, and drops the wrong ones. */
static int load_files(struct gs_catalogue *cat, const struct gs_strv *dirs, struct files *files,
		      int *fds, each_file each, void *arg, struct gs_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < dirs->n; i++)
		r = list_dir(files, i, dirs->v[i], &fds[i], err);
	for (size_t i = 0; r == 0 && i < files->n; i++) {
		size_t dir = files->v[i].dir;
		struct gs_err wrong = { 0 };
		struct gs_vendor *vendor;

		r = load_file(cat, fds[dir], dirs->v[dir], files->v[i].name, each ? &wrong : err);
		if (!each)
			continue;
		vendor = &cat->v[cat->n - 1];
		each(vendor->file, r == 0 ? vendor : NULL, r == 0 ? NULL : &wrong, arg);
		if (r < 0) {
			vendor_free(vendor);
			cat->n--;
		}
		r = 0;
	}
	return r;
}

/* Finds and reads all files; -ENOENT where there are none. */
static int load_dirs(struct gs_catalogue *cat, const struct gs_strv *dirs, each_file each,
		     void *arg, struct gs_err *err)
{
	cleanup_free int *fds = gs_calloc(dirs->n, sizeof(*fds));
	cleanup_buf struct gs_buf all = { 0 };
	struct files files = { 0 };
	size_t n;
	int r;

	for (size_t i = 0; i < dirs->n; i++) {
		gs_buf_addf(&all, "%s%s", i ? ", " : "", dirs->v[i]);
		fds[i] = -1;
	}
	r = load_files(cat, dirs, &files, fds, each, arg, err);
	for (size_t i = 0; i < dirs->n; i++)
		if (fds[i] >= 0)
			(void)close(fds[i]);
	n = files.n;
	files_free(&files);
	if (r == 0 && !n)
		r = gs_err_set(err, ENOENT, "no vendor catalogue (*.json) in %s",
			       all.data ? all.data : "no folder");
	return r;
}

/* Does a pattern, or an alternative of it, begin with three letters that stand for themselves? */
static bool note_letters(struct gs_catalogue *cat, const char *glob)
{
	if (strcspn(glob, "*?[]{},\\") < 3)
		return false;
	cat->initials[gs_initials(glob)] = true;
	return true;
}

/* "{kfd,mkfd}": each alternative of one that has no pattern inside. */
static bool note_alternatives(struct gs_catalogue *cat, const char *glob)
{
	bool known = true;

	while (known && *glob != '}') {
		glob++;
		known = note_letters(cat, glob);
		glob += strcspn(glob, ",{}");
		known = known && *glob && *glob != '{';
	}
	return known;
}

/* Fills cat->initials; a pattern of which the beginning is not known may begin with anything. */
static void note_initials(struct gs_catalogue *cat)
{
	for (size_t i = 0; i < cat->n; i++) {
		for (size_t j = 0; j < cat->v[i].n_nodes; j++) {
			const char *glob = cat->v[i].nodes[j].glob + strlen(DEV);
			bool known = *glob == '{' ? note_alternatives(cat, glob) :
						    note_letters(cat, glob);

			if (!known)
				memset(cat->initials, 1, sizeof(cat->initials));
		}
	}
}

int gs_catalogue_load(struct gs_catalogue *cat, const struct gs_strv *dirs, struct gs_err *err)
{
	cleanup_catalogue struct gs_catalogue fresh = { 0 };
	int r = load_dirs(&fresh, dirs, NULL, NULL, err);

	if (r < 0)
		return r;
	note_initials(&fresh);
	*cat = fresh;
	fresh = (struct gs_catalogue){ 0 };
	return 0;
}

int gs_catalogue_check(const struct gs_strv *dirs, each_file each, void *arg, struct gs_err *err)
{
	cleanup_catalogue struct gs_catalogue cat = { 0 };

	return load_dirs(&cat, dirs, each, arg, err);
}
