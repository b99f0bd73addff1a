// SPDX-License-Identifier: Apache-2.0
/* Checks of catalogue entries: patterns, and the sections that only the agent reads. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/catalogue_check.h"
#include "common/cleanup.h"
#include "common/glob.h"
#include "common/xalloc.h"

static int check_glob(const struct gs_doc *doc, struct js v, const char *key, const char *glob,
		      bool path, struct gs_err *err)
{
	const char *mistake = gs_glob_mistake(glob);

	if (mistake)
		return gs_doc_wrong(doc, v, err, "%s: the pattern \"%s\" has %s", key, glob,
				    mistake);
	if (!glob[0])
		return gs_doc_wrong(doc, v, err, "%s: a pattern must not be empty", key);
	if (path && !gs_path_plain(glob))
		return gs_doc_wrong(doc, v, err,
				    "%s must be an absolute path without empty, \".\" or \"..\" "
				    "parts, not \"%s\"",
				    key, glob);
	return 0;
}

static int get_globs(const struct gs_doc *doc, struct js v, const char *key, bool path,
		     struct gs_strv *ret, struct gs_err *err)
{
	struct js_iter it = js_iter(v);
	struct js item;
	int r;

	r = gs_doc_strings(doc, v, key, ret, err);
	for (size_t i = 0; r == 0 && js_next_element(&it, &item); i++)
		r = check_glob(doc, item, key, ret->v[i], path, err);
	return r;
}

int gs_check_path_glob(const struct gs_doc *doc, struct js v, const char *key, char **ret,
		       struct gs_err *err)
{
	int r = gs_doc_string(doc, v, key, ret, err);

	return r == 0 && v.n ? check_glob(doc, v, key, *ret, true, err) : r;
}

int gs_check_path_globs(const struct gs_doc *doc, struct js v, const char *key, struct gs_strv *ret,
			struct gs_err *err)
{
	return get_globs(doc, v, key, true, ret, err);
}

int gs_check_globs(const struct gs_doc *doc, struct js v, const char *key, struct gs_strv *ret,
		   struct gs_err *err)
{
	return get_globs(doc, v, key, false, ret, err);
}

/* A list of strings that nobody keeps. */
static int check_strings(const struct gs_doc *doc, struct js v, const char *key, struct gs_err *err)
{
	cleanup_strv struct gs_strv list = { 0 };

	return gs_doc_strings(doc, v, key, &list, err);
}

static int check_globs(const struct gs_doc *doc, struct js v, const char *key, bool path,
		       struct gs_err *err)
{
	cleanup_strv struct gs_strv list = { 0 };

	return get_globs(doc, v, key, path, &list, err);
}

/*
 * A command is run as it stands, without a shell and without PATH: an absolute path and its
 * arguments.
 */
static int check_argv(const struct gs_doc *doc, struct js v, struct gs_err *err)
{
	cleanup_strv struct gs_strv argv = { 0 };
	int r = gs_doc_strings(doc, v, "argv", &argv, err);

	if (r == 0 && v.n && (argv.n == 0 || !gs_path_plain(argv.v[0])))
		r = gs_doc_wrong(doc, v, err, "argv must begin with an absolute path");
	return r;
}

/* Every {name} of the template must be one of @names. */
static int check_template(const struct gs_doc *doc, struct js v, const char *key,
			  const struct gs_strv *names, struct gs_err *err)
{
	cleanup_free char *text = NULL;
	int r = gs_doc_string(doc, v, key, &text, err);
	char *p, *end;

	if (r < 0 || !v.n)
		return r;
	for (p = text; (p = strchr(p, '{')); p = end + 1) {
		end = strchr(p, '}');
		if (!end)
			return gs_doc_wrong(doc, v, err, "%s: a '{' without its '}'", key);
		*end = '\0';
		if (!gs_strv_has(names, p + 1))
			return gs_doc_wrong(doc, v, err, "%s: there is no field {%s}", key, p + 1);
	}
	return 0;
}

/* With a '/' first, a template of a path; else a pattern below the card's sysfs folder. */
static int check_card_nodes(const struct gs_doc *doc, struct js v, const struct gs_strv *names,
			    struct gs_err *err)
{
	cleanup_strv struct gs_strv nodes = { 0 };
	struct js_iter it = js_iter(v);
	struct js item;
	int r;

	r = gs_doc_strings(doc, v, "nodes", &nodes, err);
	for (size_t i = 0; r == 0 && js_next_element(&it, &item); i++) {
		if (nodes.v[i][0] == '/')
			r = check_template(doc, item, "nodes", names, err);
		else
			r = check_glob(doc, item, "nodes", nodes.v[i], false, err);
	}
	return r;
}

/* The string member "source" of a section, as one of @names; the other keys depend on it. */
static int get_source(const struct gs_doc *doc, struct js section, const char *const *names,
		      int *ret, struct gs_err *err)
{
	struct js source;

	if (js_map_member(section, "source", &source, NULL) < 0)
		return gs_doc_wrong(doc, section, err, "key \"source\" stands twice");
	if (!source.n)
		return gs_doc_wrong(doc, section, err, "key \"source\" is missing");
	return gs_doc_enum(doc, source, "source", names, ret, err);
}

static void add_all(struct gs_strv *list, const char *const *names)
{
	for (size_t i = 0; names[i]; i++)
		gs_strv_add(list, names[i]);
}

static int check_inventory_nvml(const struct gs_doc *doc, struct js section, struct gs_err *err)
{
	enum { SOURCE, LIBRARY, SLICES, ID, SELECT, N };
	static const struct gs_doc_key keys[N + 1] = {
		[SOURCE] = { "source", GS_DOC_STRING, true },
		[LIBRARY] = { "library", GS_DOC_STRING, true },
		[SLICES] = { "slices", GS_DOC_STRING, false },
		[ID] = { "id", GS_DOC_STRING, true },
		[SELECT] = { "select", GS_DOC_STRING, false },
	};
	static const char *const slices[] = { "mig", NULL };
	static const char *const fields[] = { "uuid", "index", "pci", "minor", "serial", NULL };
	cleanup_strv struct gs_strv names = { 0 };
	struct js v[N];
	int r, slice;

	add_all(&names, fields);
	r = gs_doc_members(doc, section, "inventory", keys, v, err);
	if (r == 0)
		r = gs_doc_enum(doc, v[SLICES], "slices", slices, &slice, err);
	if (r == 0)
		r = check_template(doc, v[ID], "id", &names, err);
	if (r == 0)
		r = check_template(doc, v[SELECT], "select", &names, err);
	return r;
}

/* "fields": name of a field -> file below the card's folder. Adds the names. */
static int check_fields(const struct gs_doc *doc, struct js object, struct gs_strv *names,
			struct gs_err *err)
{
	struct js_iter it = js_iter(object);
	struct js k, v;

	while (js_next_member(&it, &k, &v)) {
		cleanup_free char *key = js_string(k), *path = js_string(v);

		if (!key || !key[0] || strpbrk(key, "{}"))
			return gs_doc_wrong(doc, k, err, "fields: a name without '{' and '}'");
		if (gs_strv_has(names, key))
			return gs_doc_wrong(doc, k, err, "fields: \"%s\" is there already", key);
		if (!path || !path[0] || path[0] == '/')
			return gs_doc_wrong(doc, v, err,
					    "fields: %s must be a file below the card's folder",
					    key);
		gs_strv_add(names, key);
	}
	return 0;
}

static int check_inventory_files(const struct gs_doc *doc, struct js section, struct gs_err *err)
{
	enum { SOURCE, CARDS, FIELDS, NODES, ID, SELECT, N };
	static const struct gs_doc_key keys[N + 1] = {
		[SOURCE] = { "source", GS_DOC_STRING, true },
		[CARDS] = { "cards", GS_DOC_STRING, true },
		[FIELDS] = { "fields", GS_DOC_OBJECT, false },
		[NODES] = { "nodes", GS_DOC_LIST, true },
		[ID] = { "id", GS_DOC_STRING, true },
		[SELECT] = { "select", GS_DOC_STRING, false },
	};
	static const char *const fields[] = { "index", "pci", "minor", NULL };
	cleanup_strv struct gs_strv names = { 0 };
	cleanup_free char *cards = NULL;
	struct js v[N];
	int r;

	add_all(&names, fields);
	r = gs_doc_members(doc, section, "inventory", keys, v, err);
	if (r == 0)
		r = gs_check_path_glob(doc, v[CARDS], "cards", &cards, err);
	if (r == 0)
		r = check_fields(doc, v[FIELDS], &names, err);
	if (r == 0)
		r = check_card_nodes(doc, v[NODES], &names, err);
	if (r == 0)
		r = check_template(doc, v[ID], "id", &names, err);
	if (r == 0)
		r = check_template(doc, v[SELECT], "select", &names, err);
	return r;
}

static int check_inventory_command(const struct gs_doc *doc, struct js section, struct gs_err *err)
{
	enum { SOURCE, ARGV, SEPARATOR, SKIP, COLUMNS, NODES, ID, SELECT, N };
	static const struct gs_doc_key keys[N + 1] = {
		[SOURCE] = { "source", GS_DOC_STRING, true },
		[ARGV] = { "argv", GS_DOC_LIST, true },
		[SEPARATOR] = { "separator", GS_DOC_STRING, false },
		[SKIP] = { "skip_lines", GS_DOC_UINT, false },
		[COLUMNS] = { "columns", GS_DOC_LIST, true },
		[NODES] = { "nodes", GS_DOC_LIST, true },
		[ID] = { "id", GS_DOC_STRING, true },
		[SELECT] = { "select", GS_DOC_STRING, false },
	};
	cleanup_strv struct gs_strv names = { 0 };
	struct js v[N];
	int r;

	r = gs_doc_members(doc, section, "inventory", keys, v, err);
	if (r == 0)
		r = check_argv(doc, v[ARGV], err);
	if (r == 0)
		r = gs_doc_strings(doc, v[COLUMNS], "columns", &names, err);
	if (r == 0)
		r = check_card_nodes(doc, v[NODES], &names, err);
	if (r == 0)
		r = check_template(doc, v[ID], "id", &names, err);
	if (r == 0)
		r = check_template(doc, v[SELECT], "select", &names, err);
	return r;
}

int gs_check_inventory(const struct gs_doc *doc, struct js section, struct gs_err *err)
{
	static const char *const sources[] = { "nvml", "files", "command", NULL };
	int r, source = 0;

	if (!section.n)
		return 0;
	r = get_source(doc, section, sources, &source, err);
	if (r < 0)
		return r;
	if (source == 0)
		return check_inventory_nvml(doc, section, err);
	if (source == 1)
		return check_inventory_files(doc, section, err);
	return check_inventory_command(doc, section, err);
}

/* An ioctl's magic is one byte, written as the character that the driver's header has. */
static int check_magic(const struct gs_doc *doc, struct js v, struct gs_err *err)
{
	cleanup_free char *s = js_string(v);

	if (s && strlen(s) == 1)
		return 0;
	return gs_doc_wrong(doc, v, err, "an ioctl magic must be one character");
}

static int check_magics(const struct gs_doc *doc, struct js list, struct gs_err *err)
{
	struct js_iter it = js_iter(list);
	struct js item;
	int r = 0;

	while (r == 0 && js_next_element(&it, &item))
		r = check_magic(doc, item, err);
	return r;
}

static int check_passive_calls(const struct gs_doc *doc, struct js list, struct gs_err *err)
{
	enum { NODE, MAGIC, NR, N };
	static const struct gs_doc_key keys[N + 1] = {
		[NODE] = { "node", GS_DOC_STRING, true },
		[MAGIC] = { "magic", GS_DOC_STRING, true },
		[NR] = { "nr", GS_DOC_UINT, true },
	};
	struct js_iter it = js_iter(list);
	struct js item, v[N];

	while (js_next_element(&it, &item)) {
		cleanup_free char *node = NULL;
		uint64_t nr;
		int r;

		r = gs_doc_members(doc, item, "a passive call", keys, v, err);
		if (r == 0)
			r = gs_check_path_glob(doc, v[NODE], "node", &node, err);
		if (r == 0)
			r = check_magic(doc, v[MAGIC], err);
		if (r == 0)
			r = gs_doc_uint(doc, v[NR], "nr", 255, &nr, err);
		if (r < 0)
			return r;
	}
	return 0;
}

int gs_check_driver(const struct gs_doc *doc, struct js section, struct gs_strv *ret_chrdevs,
		    struct gs_err *err)
{
	enum { CHRDEV, NODES, SYMBOLS, SHARED, MAGIC, PASSIVE, REVOCABLE, SETTLE, N };
	static const struct gs_doc_key keys[N + 1] = {
		[CHRDEV] = { "chrdev", GS_DOC_LIST, false },
		[NODES] = { "hook_nodes", GS_DOC_LIST, false },
		[SYMBOLS] = { "symbols", GS_DOC_LIST, false },
		[SHARED] = { "shared_functions", GS_DOC_BOOL, false },
		[MAGIC] = { "ioctl_magic", GS_DOC_LIST, false },
		[PASSIVE] = { "passive_calls", GS_DOC_LIST, false },
		[REVOCABLE] = { "revocable", GS_DOC_LIST, false },
		[SETTLE] = { "settle_ms", GS_DOC_UINT, false },
	};
	struct js v[N];
	uint64_t settle;
	int r;

	if (!section.n)
		return 0;
	r = gs_doc_members(doc, section, "driver", keys, v, err);
	if (r == 0)
		r = gs_check_globs(doc, v[CHRDEV], "chrdev", ret_chrdevs, err);
	if (r == 0)
		r = check_globs(doc, v[NODES], "hook_nodes", true, err);
	if (r == 0)
		r = check_strings(doc, v[SYMBOLS], "symbols", err);
	if (r == 0)
		r = check_magics(doc, v[MAGIC], err);
	if (r == 0)
		r = check_passive_calls(doc, v[PASSIVE], err);
	if (r == 0)
		r = check_globs(doc, v[REVOCABLE], "revocable", true, err);
	if (r == 0)
		r = gs_doc_uint(doc, v[SETTLE], "settle_ms", 60000, &settle, err);
	return r;
}

static const char *const process_sources[] = { "nvml", "fdinfo", "open-files", NULL };

static int check_load_nvml(const struct gs_doc *doc, struct js section, struct gs_err *err)
{
	enum { SOURCE, LIBRARY, PROCESSES, N };
	static const struct gs_doc_key keys[N + 1] = {
		[SOURCE] = { "source", GS_DOC_STRING, true },
		[LIBRARY] = { "library", GS_DOC_STRING, true },
		[PROCESSES] = { "processes", GS_DOC_STRING, false },
	};
	struct js v[N];
	int r, processes;

	r = gs_doc_members(doc, section, "load", keys, v, err);
	if (r == 0)
		r = gs_doc_enum(doc, v[PROCESSES], "processes", process_sources, &processes, err);
	return r;
}

static int check_load_files(const struct gs_doc *doc, struct js section, struct gs_err *err)
{
	enum { SOURCE, BUSY, BUSY_MAX, USED, TOTAL, PROCESSES, N };
	static const struct gs_doc_key keys[N + 1] = {
		[SOURCE] = { "source", GS_DOC_STRING, true },
		[BUSY] = { "busy", GS_DOC_STRING, true },
		[BUSY_MAX] = { "busy_max", GS_DOC_UINT, false },
		[USED] = { "memory_used", GS_DOC_STRING, false },
		[TOTAL] = { "memory_total", GS_DOC_STRING, false },
		[PROCESSES] = { "processes", GS_DOC_STRING, false },
	};
	struct js v[N];
	int r, processes;

	r = gs_doc_members(doc, section, "load", keys, v, err);
	if (r == 0)
		r = gs_doc_enum(doc, v[PROCESSES], "processes", process_sources, &processes, err);
	return r;
}

static int check_load_fdinfo(const struct gs_doc *doc, struct js section, struct gs_err *err)
{
	enum { SOURCE, ENGINES, MEMORY, N };
	static const struct gs_doc_key keys[N + 1] = {
		[SOURCE] = { "source", GS_DOC_STRING, true },
		[ENGINES] = { "engines", GS_DOC_LIST, false },
		[MEMORY] = { "memory", GS_DOC_LIST, false },
	};
	struct js v[N];
	int r;

	r = gs_doc_members(doc, section, "load", keys, v, err);
	if (r == 0)
		r = check_globs(doc, v[ENGINES], "engines", false, err);
	if (r == 0)
		r = check_globs(doc, v[MEMORY], "memory", false, err);
	return r;
}

/* A command, and the text in its output after which the number stands. */
static int check_number_of(const struct gs_doc *doc, struct js object, const char *what,
			   struct gs_err *err)
{
	enum { ARGV, AFTER, N };
	static const struct gs_doc_key keys[N + 1] = {
		[ARGV] = { "argv", GS_DOC_LIST, true },
		[AFTER] = { "after", GS_DOC_STRING, true },
	};
	struct js v[N];
	int r;

	if (!object.n)
		return 0;
	r = gs_doc_members(doc, object, what, keys, v, err);
	return r < 0 ? r : check_argv(doc, v[ARGV], err);
}

static int check_load_command(const struct gs_doc *doc, struct js section, struct gs_err *err)
{
	enum { SOURCE, BUSY, USED, TOTAL, PROCESSES, N };
	static const struct gs_doc_key keys[N + 1] = {
		[SOURCE] = { "source", GS_DOC_STRING, true },
		[BUSY] = { "busy", GS_DOC_OBJECT, true },
		[USED] = { "memory_used", GS_DOC_OBJECT, false },
		[TOTAL] = { "memory_total", GS_DOC_OBJECT, false },
		[PROCESSES] = { "processes", GS_DOC_STRING, false },
	};
	struct js v[N];
	int r, processes;

	r = gs_doc_members(doc, section, "load", keys, v, err);
	if (r == 0)
		r = gs_doc_enum(doc, v[PROCESSES], "processes", process_sources, &processes, err);
	if (r == 0)
		r = check_number_of(doc, v[BUSY], "busy", err);
	if (r == 0)
		r = check_number_of(doc, v[USED], "memory_used", err);
	if (r == 0)
		r = check_number_of(doc, v[TOTAL], "memory_total", err);
	return r;
}

int gs_check_load(const struct gs_doc *doc, struct js section, struct gs_err *err)
{
	static const char *const sources[] = { "nvml", "files", "fdinfo", "command", NULL };
	int r, source = 0;

	if (!section.n)
		return 0;
	r = get_source(doc, section, sources, &source, err);
	if (r < 0)
		return r;
	if (source == 0)
		return check_load_nvml(doc, section, err);
	if (source == 1)
		return check_load_files(doc, section, err);
	if (source == 2)
		return check_load_fdinfo(doc, section, err);
	return check_load_command(doc, section, err);
}
