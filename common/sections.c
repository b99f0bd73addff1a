// SPDX-License-Identifier: Apache-2.0
/* The keys of the sections "agent" and "controller", and a look at what stands there. */
#include <errno.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/config.h"
#include "common/quantity.h"
#include "common/sections.h"

const struct gs_doc_key gs_agent_keys[GS_AGENT_N + 1] = {
	[GS_AGENT_LEND] = { "lend", GS_DOC_BOOL, false },
	[GS_AGENT_LEND_SHARED] = { "lend_shared", GS_DOC_BOOL, false },
	[GS_AGENT_LEND_AFTER] = { "lend_after", GS_DOC_DURATION, false },
	[GS_AGENT_LEND_MIN_FREE] = { "lend_min_free", GS_DOC_UINT, false },
	[GS_AGENT_HOLD_MAX] = { "hold_max", GS_DOC_DURATION, false },
	[GS_AGENT_KERNEL_KILL] = { "kernel_kill", GS_DOC_BOOL, false },
	[GS_AGENT_LOAD_PERIOD] = { "load_period", GS_DOC_DURATION, false },
	[GS_AGENT_SAMPLE_PERIOD] = { "sample_period", GS_DOC_DURATION, false },
	[GS_AGENT_EXEMPT] = { "exempt", GS_DOC_LIST, false },
	[GS_AGENT_EXEMPT_CGROUPS] = { "exempt_cgroups", GS_DOC_LIST, false },
	[GS_AGENT_PROBE] = { "probe", GS_DOC_PATH, false },
	[GS_AGENT_HTTP] = { "http", GS_DOC_OBJECT, false },
	[GS_AGENT_KUBERNETES] = { "kubernetes", GS_DOC_OBJECT, false },
	[GS_AGENT_PLUGINS] = { "device_plugins", GS_DOC_OBJECT, false },
	[GS_AGENT_OVERSALE] = { "oversale", GS_DOC_OBJECT, false },
	[GS_AGENT_VIEW] = { "cluster_view", GS_DOC_OBJECT, false },
};

const struct gs_doc_key gs_http_keys[GS_HTTP_N + 1] = {
	[GS_HTTP_ADDRESS] = { "address", GS_DOC_STRING, false },
	[GS_HTTP_PORT] = { "port", GS_DOC_UINT, false },
};

const struct gs_doc_key gs_plugins_keys[GS_PLUGINS_N + 1] = {
	[GS_PLUGINS_ENABLED] = { "enabled", GS_DOC_BOOL, false },
	[GS_PLUGINS_SHARE] = { "share", GS_DOC_UINT, false },
	[GS_PLUGINS_KUBELET_DIR] = { "kubelet_dir", GS_DOC_PATH, false },
};

const struct gs_doc_key gs_oversale_keys[GS_OVERSALE_N + 1] = {
	[GS_OVERSALE_ENABLED] = { "enabled", GS_DOC_BOOL, false },
	[GS_OVERSALE_CPU_RATIO] = { "cpu_ratio", GS_DOC_UINT, false },
	[GS_OVERSALE_MEMORY_RATIO] = { "memory_ratio", GS_DOC_UINT, false },
	[GS_OVERSALE_CPU_FLOOR] = { "cpu_floor", GS_DOC_QUANTITY, false },
	[GS_OVERSALE_MEMORY_FLOOR] = { "memory_floor", GS_DOC_QUANTITY, false },
};

const struct gs_doc_key gs_view_keys[GS_VIEW_N + 1] = {
	[GS_VIEW_ENABLED] = { "enabled", GS_DOC_BOOL, false },
	[GS_VIEW_NAMESPACE] = { "namespace", GS_DOC_STRING, false },
};

const struct gs_doc_key gs_controller_keys[GS_CONTROLLER_N + 1] = {
	[GS_CONTROLLER_ADDRESS] = { "address", GS_DOC_STRING, false },
	[GS_CONTROLLER_PORT] = { "port", GS_DOC_UINT, false },
	[GS_CONTROLLER_METRICS_AUTH] = { "metrics_auth", GS_DOC_BOOL, false },
	[GS_CONTROLLER_NAMESPACE] = { "namespace", GS_DOC_STRING, false },
	[GS_CONTROLLER_SERVICE] = { "service", GS_DOC_STRING, false },
	[GS_CONTROLLER_SECRET] = { "secret", GS_DOC_STRING, false },
	[GS_CONTROLLER_LEASE] = { "lease", GS_DOC_STRING, false },
	[GS_CONTROLLER_WEBHOOK] = { "webhook", GS_DOC_STRING, false },
	[GS_CONTROLLER_USERS] = { "platform_users", GS_DOC_LIST, false },
	[GS_CONTROLLER_CLASSES] = { "data_classes", GS_DOC_LIST, false },
	[GS_CONTROLLER_LABEL] = { "partition_label", GS_DOC_STRING, false },
	[GS_CONTROLLER_SHADOW] = { "shadow", GS_DOC_OBJECT, false },
	[GS_CONTROLLER_KUBERNETES] = { "kubernetes", GS_DOC_OBJECT, false },
};

const struct gs_doc_key gs_shadow_keys[GS_SHADOW_N + 1] = {
	[GS_SHADOW_CARD] = { "card", GS_DOC_STRING, false },
	[GS_SHADOW_IMAGE] = { "image", GS_DOC_STRING, false },
	[GS_SHADOW_SHARE] = { "share", GS_DOC_UINT, false },
	[GS_SHADOW_QUIET] = { "quiet", GS_DOC_DURATION, false },
	[GS_SHADOW_ACCOUNT_CARDS] = { "account_cards", GS_DOC_UINT, false },
};

#define KUBE_KEYS                                              \
	[GS_KUBE_SERVER] = { "server", GS_DOC_STRING, true },  \
	[GS_KUBE_CA_FILE] = { "ca_file", GS_DOC_PATH, false }, \
	[GS_KUBE_TOKEN_FILE] = { "token_file", GS_DOC_PATH, false }

const struct gs_doc_key gs_kube_keys[GS_KUBE_N + 1] = { KUBE_KEYS };
const struct gs_doc_key gs_kube_node_keys[GS_KUBE_N + 1] = {
	KUBE_KEYS,
	[GS_KUBE_NODE] = { "node", GS_DOC_STRING, true },
};

/* More than any table has. */
#define KEYS_MAX 32
/* More pods than that do not share a card. */
#define SHARE_MAX 64
/* Percent; more than that of anything is not there at the same time. */
#define RATIO_MAX 1000

/* Numbers, and times in milliseconds. */
static const struct bounds {
	const struct gs_doc_key *key;
	unsigned int min, max;
} bounds[] = {
	{ &gs_agent_keys[GS_AGENT_LEND_AFTER], GS_LEND_AFTER_MIN_MS, GS_DOC_DURATION_MAX },
	{ &gs_agent_keys[GS_AGENT_LEND_MIN_FREE], 0, 100 },
	{ &gs_agent_keys[GS_AGENT_HOLD_MAX], 1000, GS_DOC_DURATION_MAX },
	{ &gs_agent_keys[GS_AGENT_LOAD_PERIOD], 100, GS_DOC_DURATION_MAX },
	{ &gs_agent_keys[GS_AGENT_SAMPLE_PERIOD], 1000, GS_DOC_DURATION_MAX },
	{ &gs_http_keys[GS_HTTP_PORT], 0, 65535 },
	{ &gs_plugins_keys[GS_PLUGINS_SHARE], 1, SHARE_MAX },
	{ &gs_oversale_keys[GS_OVERSALE_CPU_RATIO], 0, RATIO_MAX },
	{ &gs_oversale_keys[GS_OVERSALE_MEMORY_RATIO], 0, RATIO_MAX },
	{ &gs_controller_keys[GS_CONTROLLER_PORT], 0, 65535 },
	{ &gs_shadow_keys[GS_SHADOW_SHARE], 1, SHARE_MAX },
	{ &gs_shadow_keys[GS_SHADOW_QUIET], 1000, GS_DOC_DURATION_MAX },
	{ &gs_shadow_keys[GS_SHADOW_ACCOUNT_CARDS], 0, 1000000 },
};

/* The objects in the sections, as the message names them. */
static const struct object {
	const struct gs_doc_key *in; /* the section's keys */
	size_t at; /* in the section */
	const struct gs_doc_key *keys;
} objects[] = {
	{ gs_agent_keys, GS_AGENT_HTTP, gs_http_keys },
	{ gs_agent_keys, GS_AGENT_KUBERNETES, gs_kube_node_keys },
	{ gs_agent_keys, GS_AGENT_PLUGINS, gs_plugins_keys },
	{ gs_agent_keys, GS_AGENT_OVERSALE, gs_oversale_keys },
	{ gs_agent_keys, GS_AGENT_VIEW, gs_view_keys },
	{ gs_controller_keys, GS_CONTROLLER_SHADOW, gs_shadow_keys },
	{ gs_controller_keys, GS_CONTROLLER_KUBERNETES, gs_kube_keys },
};

static const struct bounds *bounds_of(const struct gs_doc_key *key)
{
	for (size_t i = 0; i < GS_ARRAY_SIZE(bounds); i++)
		if (bounds[i].key == key)
			return &bounds[i];
	abort();
}

int gs_sections_number(const struct gs_doc *doc, struct js v, const struct gs_doc_key *key,
		       unsigned int *ret, struct gs_err *err)
{
	const struct bounds *b = bounds_of(key);
	uint64_t n = *ret;
	int r;

	if (!v.n)
		return 0;
	if (key->type == GS_DOC_DURATION)
		return gs_doc_duration(doc, v, key->name, b->min, ret, err);
	r = gs_doc_uint(doc, v, key->name, b->max, &n, err);
	if (r == 0 && n < b->min)
		return gs_doc_wrong(doc, v, err, "%s must be at least %u", key->name, b->min);
	if (r == 0)
		*ret = (unsigned int)n;
	return r;
}

static int check_value(const struct gs_doc *doc, struct js v, const struct gs_doc_key *key,
		       struct gs_err *err)
{
	cleanup_strv struct gs_strv list = { 0 };
	cleanup_free char *text = NULL;
	struct gs_err why = { 0 };
	unsigned int n = 0;
	int64_t milli;
	int r = 0;

	switch (key->type) {
	case GS_DOC_LIST:
		return gs_doc_strings(doc, v, key->name, &list, err);
	case GS_DOC_PATH:
		return gs_doc_path(doc, v, key->name, &text, err);
	case GS_DOC_DURATION:
	case GS_DOC_UINT:
		return gs_sections_number(doc, v, key, &n, err);
	case GS_DOC_STRING:
	case GS_DOC_QUANTITY:
		r = gs_doc_string(doc, v, key->name, &text, err);
		if (r == 0 && key->type == GS_DOC_QUANTITY &&
		    gs_quantity_milli(text, &milli, &why) < 0)
			r = gs_doc_wrong(doc, v, err, "%s: %s", key->name, why.msg);
		return r;
	case GS_DOC_BOOL:
	case GS_DOC_OBJECT:
		break;
	}
	return 0;
}

/* Keys and values of one object; *ret are the values. */
static int check_object(const struct gs_doc *doc, struct js object, const char *what,
			const struct gs_doc_key *keys, struct js *ret, struct gs_err *err)
{
	int r = gs_doc_members(doc, object, what, keys, ret, err);

	for (size_t i = 0; r == 0 && keys[i].name; i++)
		if (ret[i].n)
			r = check_value(doc, ret[i], &keys[i], err);
	return r;
}

static int check_section(const struct gs_doc *doc, struct js root, const char *name,
			 const struct gs_doc_key *keys, struct gs_err *err)
{
	struct js section, v[KEYS_MAX], inner[KEYS_MAX];
	int r = js_member(root, name, &section, err);

	if (r < 0 || js_absent(section))
		return r;
	r = check_object(doc, section, name, keys, v, err);
	for (size_t i = 0; r == 0 && i < GS_ARRAY_SIZE(objects); i++) {
		const struct object *o = &objects[i];

		if (o->in == keys && v[o->at].n)
			r = check_object(doc, v[o->at], keys[o->at].name, o->keys, inner, err);
	}
	return r;
}

int gs_sections_check(const char *path, struct gs_err *err)
{
	cleanup_free char *text = NULL;
	struct gs_doc doc;
	struct js root;
	int r = gs_config_read(path, &text, &doc, &root, err);

	if (r == -ENOENT)
		return 0;
	if (r == 0)
		r = check_section(&doc, root, "agent", gs_agent_keys, err);
	return r < 0 ? r : check_section(&doc, root, "controller", gs_controller_keys, err);
}
