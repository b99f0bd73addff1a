// SPDX-License-Identifier: Apache-2.0
/* Cards that nobody holds, in the shape of a source. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "common/cleanup.h"
#include "common/json.h"
#include "common/xalloc.h"
#include "runtime/cards_file.h"
#include "runtime/free.h"

/* Appends a node and its rule to the two lists. */
static void add_node(struct gs_buf *devices, struct gs_buf *rules, const char *path,
		     unsigned int major, unsigned int minor)
{
	gs_buf_addf(devices, "%s{\"path\":", devices->len ? "," : "");
	gs_buf_add_json(devices, path);
	gs_buf_addf(devices, ",\"type\":\"c\",\"major\":%u,\"minor\":%u,\"fileMode\":438}", major,
		    minor);
	gs_buf_addc(rules, ',');
	slice_add_rule(rules, 'c', major, minor, ACCESS_ALL);
}

static bool has_path(const json_t *nodes, const char *path)
{
	const json_t *node;
	size_t i;

	json_array_foreach(nodes, i, node) {
		const char *has = json_string_value(json_object_get(node, "path"));

		if (has && strcmp(has, path) == 0)
			return true;
	}
	return false;
}

/*
 * What every user of the vendor's cards needs beside them, as far as it is in /dev itself: the
 * inventory has of that only what the kernel module watches.
 */
static void add_shared(struct gs_buf *devices, struct gs_buf *rules, const json_t *nodes,
		       const struct gs_vendor *vendor)
{
	cleanup_dir DIR *dir = opendir("/dev");
	struct dirent *e;

	while (dir && (e = readdir(dir)) != NULL) {
		cleanup_free char *path = gs_asprintf("/dev/%s", e->d_name);
		const struct gs_node *node;
		struct stat st;

		if (lstat(path, &st) < 0 || !S_ISCHR(st.st_mode))
			continue;
		node = gs_vendor_node(vendor, path, major(st.st_rdev), minor(st.st_rdev));
		if (node && node->kind == GS_NODE_SHARED && !has_path(nodes, path))
			add_node(devices, rules, path, major(st.st_rdev), minor(st.st_rdev));
	}
}

static int add_nodes(struct gs_buf *out, const json_t *card, const struct gs_vendor *vendor,
		     struct gs_err *err)
{
	cleanup_buf struct gs_buf devices = { 0 }, rules = { 0 };
	const json_t *nodes = json_object_get(card, "nodes"), *node;
	size_t i;

	json_array_foreach(nodes, i, node) {
		const char *path = json_string_value(json_object_get(node, "path"));
		json_int_t major = json_integer_value(json_object_get(node, "major"));
		json_int_t minor = json_integer_value(json_object_get(node, "minor"));

		if (!path || major < 0 || major > UINT32_MAX || minor < 0 || minor > UINT32_MAX)
			return gs_err_set(err, EINVAL, "a node is none");
		add_node(&devices, &rules, path, (unsigned int)major, (unsigned int)minor);
	}
	if (!devices.len)
		return gs_err_set(err, ENODEV, "it has no device node");
	add_shared(&devices, &rules, nodes, vendor);
	gs_buf_addf(out,
		    "\"linux\":{\"devices\":[%s],\"resources\":{\"devices\":["
		    "{\"allow\":false,\"access\":\"rwm\"}%s]}}",
		    devices.data, rules.data);
	return 0;
}

/* The variable by which @next injects the vendor's cards, with this card's value; false: none. */
static bool add_selector(struct gs_buf *out, const json_t *card, const struct gs_vendor *vendor,
			 const char *next)
{
	const char *value = json_string_value(json_array_get(json_object_get(card, "select"), 0));

	if (!value || !gs_vendor_next_runtime(vendor, next))
		return false;
	for (size_t i = 0; i < vendor->n_envs; i++) {
		cleanup_free char *text = NULL;

		if (!vendor->envs[i].selects)
			continue;
		text = gs_asprintf("%s=%s", vendor->envs[i].name, value);
		gs_buf_adds(out, "\"process\":{\"env\":[");
		gs_buf_add_json(out, text);
		gs_buf_adds(out, "]}");
		return true;
	}
	return false;
}

static const struct gs_vendor *vendor_named(const struct gs_catalogue *cat, const char *name)
{
	for (size_t i = 0; name && i < cat->n; i++)
		if (strcmp(cat->v[i].name, name) == 0)
			return &cat->v[i];
	return NULL;
}

/* The card of that name in the list; NULL: none. Borrowed. */
static const json_t *card_named(const json_t *file, const char *name)
{
	const json_t *card;
	size_t i;

	json_array_foreach(json_object_get(file, "cards"), i, card) {
		const char *has = json_string_value(json_object_get(card, "name"));

		if (has && strcmp(has, name) == 0)
			return card;
	}
	return NULL;
}

int free_source(const struct gs_config *config, const struct gs_catalogue *cat, const char *next,
		const char *card, struct source *ret, struct gs_err *err)
{
	struct source src = { .name = gs_asprintf("card %s", card) };
	cleanup_json json_t *file = NULL;
	cleanup_buf struct gs_buf text = { 0 };
	const struct gs_vendor *vendor = NULL;
	const json_t *found = NULL;
	size_t len;
	int r;

	r = cards_file_read(config->run_dir, &file, err);
	if (r == 0)
		found = card_named(file, card);
	if (found)
		vendor = vendor_named(cat, json_string_value(json_object_get(found, "vendor")));
	if (r == 0 && !vendor)
		r = gs_err_set(err, ENODEV, "%s is not on this node", src.name);
	gs_buf_addc(&text, '{');
	if (r == 0 && !add_selector(&text, found, vendor, next)) {
		r = add_nodes(&text, found, vendor, err);
		if (r < 0)
			gs_err_prefix(err, "%s", src.name);
	}
	gs_buf_addc(&text, '}');
	len = text.len;
	if (r == 0)
		r = spec_read(&src.spec, gs_buf_steal(&text), len, err);
	if (r < 0) {
		source_free(&src);
		return r;
	}
	src.card = gs_strdup(card);
	*ret = src;
	slice_find(&ret->spec, cat, &ret->slice);
	return 0;
}
