// SPDX-License-Identifier: Apache-2.0
/* Reads the parts of a catalogue entry that the agent and its probe use. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/vendor_side.h"
#include "common/catalogue_check.h"
#include "common/cleanup.h"
#include "common/doc.h"
#include "common/json.h"
#include "common/xalloc.h"

const struct gs_vendor *vendor_side_rules(const struct vendor_side *side)
{
	return &side->rules.v[0];
}

static void number_of_free(struct number_of *number)
{
	gs_strv_free(&number->argv);
	free(number->after);
}

void vendor_side_free(struct vendor_side *side)
{
	free(side->name);
	gs_catalogue_free(&side->rules);
	free(side->inventory.library);
	free(side->inventory.cards);
	gs_strv_free(&side->inventory.field_names);
	gs_strv_free(&side->inventory.field_files);
	gs_strv_free(&side->inventory.argv);
	gs_strv_free(&side->inventory.columns);
	free(side->inventory.separator);
	gs_strv_free(&side->inventory.nodes);
	free(side->inventory.id);
	free(side->inventory.select);
	gs_strv_free(&side->driver.hook_nodes);
	for (size_t i = 0; i < side->driver.n_passive; i++)
		free(side->driver.passive[i].node);
	free(side->driver.passive);
	gs_strv_free(&side->revocable);
	free(side->load.library);
	free(side->load.busy);
	free(side->load.used);
	free(side->load.total);
	gs_strv_free(&side->load.engines);
	gs_strv_free(&side->load.memory);
	number_of_free(&side->load.busy_of);
	number_of_free(&side->load.used_of);
	number_of_free(&side->load.total_of);
	*side = (struct vendor_side){ 0 };
}

/* null counts as absent, everywhere in a catalogue. */
static void drop_nulls(json_t *json)
{
	void *at = json_object_iter(json), *next;
	json_t *v;
	size_t i;

	for (; at; at = next) {
		v = json_object_iter_value(at);
		next = json_object_iter_next(json, at);
		if (json_is_null(v))
			(void)json_object_del(json, json_object_iter_key(at));
		else
			drop_nulls(v);
	}
	json_array_foreach(json, i, v) {
		drop_nulls(v);
	}
}

/* Collects the first error, so that a list of keys reads as one. */
struct reader {
	const char *where;
	struct gs_err *err;
	int r;
};

static void read_str(struct reader *rd, const json_t *obj, const char *key, char **ret)
{
	if (rd->r == 0)
		rd->r = gs_json_str(obj, rd->where, key, false, ret, rd->err);
}

static void read_strv(struct reader *rd, const json_t *obj, const char *key, struct gs_strv *ret)
{
	if (rd->r == 0)
		rd->r = gs_json_strv(obj, rd->where, key, false, ret, rd->err);
}

static void read_uint(struct reader *rd, const json_t *obj, const char *key, unsigned int *ret)
{
	uint64_t n = *ret;

	if (rd->r == 0)
		rd->r = gs_json_uint(obj, rd->where, key, false, &n, rd->err);
	*ret = n > 1000000000 ? 1000000000 : (unsigned int)n;
}

static void read_enum(struct reader *rd, const json_t *obj, const char *key,
		      const char *const *names, int *ret)
{
	if (rd->r == 0)
		rd->r = gs_json_enum(obj, rd->where, key, false, names, ret, rd->err);
}

static void read_rules(struct reader *rd, const json_t *root, struct vendor_side *side)
{
	static const char *const kinds[] = { "card", "shared", "control", NULL };
	struct gs_vendor *v;
	json_t *item;
	size_t i;

	side->rules.v = gs_calloc(1, sizeof(*side->rules.v));
	side->rules.n = 1;
	v = &side->rules.v[0];
	read_str(rd, root, "name", &v->name);
	read_strv(rd, root, "mount_roots", &v->roots);
	json_array_foreach(json_object_get(root, "nodes"), i, item) {
		int kind = GS_NODE_CARD;
		struct gs_node *node;

		v->nodes = gs_grow(v->nodes, v->n_nodes, sizeof(*node));
		node = &v->nodes[v->n_nodes++];
		*node = (struct gs_node){ 0 };
		read_str(rd, item, "glob", &node->glob);
		read_enum(rd, item, "kind", kinds, &kind);
		read_strv(rd, item, "drivers", &node->drivers);
		node->kind = (enum gs_node_kind)kind;
		if (rd->r == 0 && !node->glob)
			rd->r = gs_err_set(rd->err, EINVAL, "%s: a node without glob", rd->where);
	}
	if (rd->r == 0 && !v->name)
		rd->r = gs_err_set(rd->err, EINVAL, "%s: no name", rd->where);
	if (rd->r == 0)
		side->name = gs_strdup(v->name);
}

static void read_inventory(struct reader *rd, const json_t *obj, struct vendor_side *side)
{
	static const char *const sources[] = { "none", "nvml", "files", "command", NULL };
	int source = INVENTORY_NONE;
	const char *key;
	json_t *v;

	read_enum(rd, obj, "source", sources, &source);
	side->inventory.source = (enum inventory_source)source;
	side->inventory.mig = json_object_get(obj, "slices") != NULL;
	read_str(rd, obj, "library", &side->inventory.library);
	read_str(rd, obj, "cards", &side->inventory.cards);
	read_strv(rd, obj, "argv", &side->inventory.argv);
	read_strv(rd, obj, "columns", &side->inventory.columns);
	read_str(rd, obj, "separator", &side->inventory.separator);
	read_uint(rd, obj, "skip_lines", &side->inventory.skip_lines);
	read_strv(rd, obj, "nodes", &side->inventory.nodes);
	read_str(rd, obj, "id", &side->inventory.id);
	read_str(rd, obj, "select", &side->inventory.select);
	json_object_foreach(json_object_get(obj, "fields"), key, v) {
		if (!json_is_string(v))
			continue;
		gs_strv_add(&side->inventory.field_names, key);
		gs_strv_add(&side->inventory.field_files, json_string_value(v));
	}
}

static void read_driver(struct reader *rd, const json_t *obj, struct vendor_side *side)
{
	const json_t *item;
	size_t i;

	if (!obj)
		return;
	side->driver.vendor = side->name;
	read_strv(rd, obj, "chrdev", &side->rules.v[0].chrdevs);
	read_strv(rd, obj, "hook_nodes", &side->driver.hook_nodes);
	read_strv(rd, obj, "revocable", &side->revocable);
	read_uint(rd, obj, "settle_ms", &side->settle_ms);
	json_array_foreach(json_object_get(obj, "passive_calls"), i, item) {
		const char *magic = json_string_value(json_object_get(item, "magic"));
		const char *node = json_string_value(json_object_get(item, "node"));
		json_int_t nr = json_integer_value(json_object_get(item, "nr"));
		struct passive_call *call;

		if (!magic || !node)
			continue;
		side->driver.passive =
			gs_grow(side->driver.passive, side->driver.n_passive, sizeof(*call));
		call = &side->driver.passive[side->driver.n_passive++];
		*call = (struct passive_call){ gs_strdup(node), (unsigned char)magic[0],
					       (unsigned char)nr };
	}
}

static void read_number_of(struct reader *rd, const json_t *obj, const char *key,
			   struct number_of *ret)
{
	const json_t *v = json_object_get(obj, key);

	if (!v)
		return;
	read_strv(rd, v, "argv", &ret->argv);
	read_str(rd, v, "after", &ret->after);
	if (rd->r == 0 && (!ret->argv.n || !ret->after))
		rd->r = gs_err_set(rd->err, EINVAL, "%s: %s without argv or after", rd->where, key);
}

static void read_load(struct reader *rd, const json_t *obj, struct vendor_side *side)
{
	static const char *const sources[] = { "none", "nvml", "files", "fdinfo", "command", NULL };
	static const char *const processes[] = { "nvml", "fdinfo", "open-files", NULL };
	int source = LOAD_NONE, from = PROCESSES_OPEN_FILES;
	unsigned int max = 100;

	read_enum(rd, obj, "source", sources, &source);
	read_enum(rd, obj, "processes", processes, &from);
	side->load.source = (enum load_source)source;
	side->load.processes = source == LOAD_FDINFO ? PROCESSES_FDINFO : (enum process_source)from;
	read_str(rd, obj, "library", &side->load.library);
	if (source == LOAD_FILES) {
		read_str(rd, obj, "busy", &side->load.busy);
		read_str(rd, obj, "memory_used", &side->load.used);
		read_str(rd, obj, "memory_total", &side->load.total);
		read_uint(rd, obj, "busy_max", &max);
	} else if (source == LOAD_COMMAND) {
		read_number_of(rd, obj, "busy", &side->load.busy_of);
		read_number_of(rd, obj, "memory_used", &side->load.used_of);
		read_number_of(rd, obj, "memory_total", &side->load.total_of);
	}
	side->load.busy_max = max ? max : 100;
	read_strv(rd, obj, "engines", &side->load.engines);
	read_strv(rd, obj, "memory", &side->load.memory);
}

static struct js present(struct js v)
{
	const struct js none = { 0 };

	return js_absent(v) ? none : v;
}

/* The catalogue's own checks of the sections, on this very text. */
static int check(const char *file, const char *text, size_t len, struct gs_err *err)
{
	cleanup_strv struct gs_strv chrdevs = { 0 };
	struct gs_doc doc = { file, text };
	struct js root, v;
	int r;

	r = gs_doc_parse(&doc, len, &root, err);
	if (r == 0)
		r = js_map_member(root, "inventory", &v, err);
	if (r == 0)
		r = gs_check_inventory(&doc, present(v), err);
	if (r == 0)
		r = js_map_member(root, "driver", &v, err);
	if (r == 0)
		r = gs_check_driver(&doc, present(v), &chrdevs, err);
	if (r == 0)
		r = js_map_member(root, "load", &v, err);
	if (r == 0)
		r = gs_check_load(&doc, present(v), err);
	return r;
}

int vendor_side_parse(struct vendor_side *side, const char *file, const char *text, size_t len,
		      struct gs_err *err)
{
	cleanup_vendor_side struct vendor_side fresh = { 0 };
	cleanup_json json_t *root = NULL;
	struct reader rd = { file, err, 0 };

	rd.r = check(file, text, len, err);
	if (rd.r == 0)
		rd.r = gs_json_parse(file, text, len, &root, err);
	if (rd.r < 0)
		return rd.r;
	drop_nulls(root);
	read_rules(&rd, root, &fresh);
	read_inventory(&rd, json_object_get(root, "inventory"), &fresh);
	read_driver(&rd, json_object_get(root, "driver"), &fresh);
	read_load(&rd, json_object_get(root, "load"), &fresh);
	if (rd.r < 0)
		return rd.r;
	*side = fresh;
	fresh = (struct vendor_side){ 0 };
	return 0;
}
