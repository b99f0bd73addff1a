// SPDX-License-Identifier: Apache-2.0
/* The runtime handler "gpushare" in containerd's configuration: read, judged, written. */
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/xalloc.h"
#include "ctl/setup.h"
#include "gpushare/annotations.h"

static const struct toml_item *find(const struct toml *doc, const char *table, const char *key)
{
	cleanup_free char *path = gs_asprintf("%s.%s", table, key);

	return toml_find(doc, path);
}

/* Does the list of patterns let the handler see our annotations? */
static bool passes(const struct toml *doc, const char *table, const char *key)
{
	const struct toml_item *item = find(doc, table, key);
	cleanup_strv struct gs_strv list = { 0 };

	if (item)
		(void)toml_strings(doc, item, &list);
	/* As Go's path.Match: a star matches no slash, so "*" alone lets none of ours through. */
	for (size_t i = 0; i < list.n; i++)
		if (fnmatch(list.v[i], GS_KEY_GRANT, FNM_PATHNAME) == 0 &&
		    fnmatch(list.v[i], GS_KEY_FROM ".a", FNM_PATHNAME) == 0)
			return true;
	return false;
}

void setup_read_handler(const struct toml *doc, const char *path, struct setup_handler *ret)
{
	cleanup_free char *options = gs_asprintf("%s.options", path);
	const struct toml_item *binary = find(doc, options, "BinaryName");
	const struct toml_item *systemd = find(doc, options, "SystemdCgroup");

	*ret = (struct setup_handler){ .there = toml_below(doc, path) != NULL };
	ret->binary = binary ? binary->string : NULL;
	ret->pod_annotations = passes(doc, path, "pod_annotations");
	ret->container_annotations = passes(doc, path, "container_annotations");
	ret->systemd_cgroup = systemd ? doc->text[systemd->from] == 't' : -1;
}

char *setup_handler_wrong(const struct setup_handler *handler, const char *binary)
{
	if (!handler->binary || strcmp(handler->binary, binary) != 0)
		return gs_asprintf("its BinaryName is %s, not %s",
				   handler->binary ? handler->binary : "not set", binary);
	if (!handler->pod_annotations || !handler->container_annotations)
		return gs_asprintf("%s lacks \"" SETUP_ANNOTATIONS "\", so that %s never reach "
				   "the runtime",
				   handler->pod_annotations ? "container_annotations" :
							      "pod_annotations",
				   handler->pod_annotations ? "grants" : "annotations");
	return NULL;
}

/* ---- What containerd's files say. */

const char *setup_cri_table(unsigned int version)
{
	return version >= 3 ? "plugins.\"io.containerd.cri.v1.runtime\"" :
			      "plugins.\"io.containerd.grpc.v1.cri\"";
}

unsigned int setup_version(const struct toml *doc)
{
	const struct toml_item *item = toml_find(doc, "version");

	return item && item->type == TOML_SCALAR ?
		       (unsigned int)strtoul(doc->text + item->from, NULL, 10) :
		       0;
}

bool setup_cri_disabled(const struct toml *doc)
{
	const struct toml_item *item = toml_find(doc, "disabled_plugins");
	cleanup_strv struct gs_strv list = { 0 };

	if (item)
		(void)toml_strings(doc, item, &list);
	return gs_strv_has(&list, "cri") || gs_strv_has(&list, "io.containerd.grpc.v1.cri") ||
	       gs_strv_has(&list, "io.containerd.cri.v1.runtime");
}

/* The table of the runtime that containers have now. The caller frees. */
static char *default_runtime(const char *cri, const struct toml *doc)
{
	const struct toml_item *item = NULL;
	cleanup_free char *path = gs_asprintf("%s.containerd.default_runtime_name", cri);

	if (doc)
		item = toml_find(doc, path);
	/* Our own name, or one that is no bare key, has no settings to be taken over. */
	if (!item || !item->string ||
	    strspn(item->string, "abcdefghijklmnopqrstuvwxyz"
				 "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				 "0123456789_-") != strlen(item->string) ||
	    !*item->string || strcmp(item->string, SETUP_HANDLER) == 0)
		return gs_asprintf("%s.containerd.runtimes.runc", cri);
	return gs_asprintf("%s.containerd.runtimes.%s", cri, item->string);
}

const char *setup_cgroup_word(const struct setup_node *node, const char *cri,
			      const struct toml *doc)
{
	cleanup_free char *runc = default_runtime(cri, doc);
	cleanup_free char *old = gs_asprintf("%s.systemd_cgroup", cri);
	struct setup_handler handler = { .systemd_cgroup = -1 };

	if (node->systemd_cgroup >= 0)
		return node->systemd_cgroup ? "true" : "false";
	if (doc) {
		setup_read_handler(doc, runc, &handler);
		if (handler.systemd_cgroup < 0 && toml_is(doc, old, "true"))
			return "true";
	}
	return handler.systemd_cgroup == 1 ? "true" : "false";
}

/* ---- Writing it. */

/* What @runc says that is not about runc itself, and differs from what is meant without it. */
static bool is_nodes(const struct toml *doc, const struct toml_item *item, const char *key)
{
	static const char *const own[] = {
		"runtime_type",		 "runtime_path", "runtime_root",    "runtime_engine",
		"container_annotations", "options",	 "pod_annotations", "BinaryName",
		"SystemdCgroup",	 "Root",	 "ShimCgroup",	    "CriuPath"
	};
	static const char *const nothing[] = { "\"\"", "''", "0", "false", "[]" };
	size_t n = item->to - item->from;

	for (size_t i = 0; i < GS_ARRAY_SIZE(own); i++)
		if (strcmp(key, own[i]) == 0)
			return false;
	for (size_t i = 0; i < GS_ARRAY_SIZE(nothing); i++)
		if (n == strlen(nothing[i]) && memcmp(doc->text + item->from, nothing[i], n) == 0)
			return false;
	return !strpbrk(key, ".[");
}

static void copy_keys(const struct toml *doc, const char *table, const char *indent,
		      struct gs_buf *out)
{
	size_t len = strlen(table);

	for (size_t i = 0; doc && i < doc->n; i++) {
		const struct toml_item *item = &doc->items[i];

		if (item->type >= TOML_STRING && strncmp(item->path, table, len) == 0 &&
		    item->path[len] == '.' && is_nodes(doc, item, item->path + len + 1))
			gs_buf_addf(out, "%s%s = %.*s\n", indent, item->path + len + 1,
				    (int)(item->to - item->from), doc->text + item->from);
	}
}

/* The list that runc has, and ours. */
static void add_list(const struct toml *doc, const char *table, const char *key, struct gs_buf *out)
{
	const struct toml_item *item = doc ? find(doc, table, key) : NULL;
	cleanup_strv struct gs_strv list = { 0 };

	if (item)
		(void)toml_strings(doc, item, &list);
	gs_strv_add_once(&list, SETUP_ANNOTATIONS);
	gs_buf_addf(out, "  %s = [", key);
	for (size_t i = 0; i < list.n; i++) {
		gs_buf_adds(out, i ? ", " : "");
		gs_buf_add_json(out, list.v[i]);
	}
	gs_buf_adds(out, "]\n");
}

void setup_write_handler(const struct setup_node *node, const char *cri, const struct toml *runc,
			 const char *systemd_cgroup, struct gs_buf *out)
{
	cleanup_free char *from = default_runtime(cri, runc);
	cleanup_free char *options = gs_asprintf("%s.options", from);

	gs_buf_addf(out,
		    "[%s.containerd.runtimes." SETUP_HANDLER "]\n"
		    "  runtime_type = \"io.containerd.runc.v2\"\n",
		    cri);
	add_list(runc, from, "pod_annotations", out);
	add_list(runc, from, "container_annotations", out);
	copy_keys(runc, from, "  ", out);
	gs_buf_addf(
		out,
		"\n  [%s.containerd.runtimes." SETUP_HANDLER ".options]\n    BinaryName = ", cri);
	gs_buf_add_json(out, node->binary);
	gs_buf_addf(out, "\n    SystemdCgroup = %s\n", systemd_cgroup);
	copy_keys(runc, options, "    ", out);
}
