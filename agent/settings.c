// SPDX-License-Identifier: Apache-2.0
/* The section "agent": defaults, reading, checking. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/settings.h"
#include "common/cleanup.h"
#include "common/config.h"
#include "common/doc.h"
#include "common/file.h"
#include "common/xalloc.h"

#define CONFIG_MAX (1024 * 1024)
/* More pods than that do not share a card. */
#define SHARE_MAX 64
/* Percent; more than that of anything is not there at the same time. */
#define RATIO_MAX 1000

void settings_init(struct settings *s)
{
	*s = (struct settings){
		.lend_after_ms = 10 * 60 * 1000,
		.lend_min_free = 50,
		.hold_max_ms = 30 * 1000,
		.kernel_kill = true,
		.load_period_ms = 2000,
		.http_port = 9479,
		.plugins = true,
		.share = 2,
		.sale = { .cpu_ratio = 100, .memory_ratio = 100 },
	};
	s->kubelet = gs_strdup("/var/lib/kubelet");
	s->probe = gs_strdup(GPUSHARE_LIBEXECDIR "/gpushare-probe");
	s->http_address = gs_strdup("127.0.0.1");
	s->kube.component = gs_strdup("gpushared");
}

void settings_free(struct settings *s)
{
	gs_strv_free(&s->exempt);
	gs_strv_free(&s->exempt_cgroups);
	free(s->probe);
	free(s->http_address);
	free(s->kubelet);
	kube_config_free(&s->kube);
	*s = (struct settings){ 0 };
}

static int get_uint(const struct gs_doc *doc, struct js v, const char *key, unsigned int max,
		    unsigned int *ret, struct gs_err *err)
{
	uint64_t n = *ret;
	int r = gs_doc_uint(doc, v, key, max, &n, err);

	*ret = (unsigned int)n;
	return r;
}

static int get_http(const struct gs_doc *doc, struct js object, struct settings *s,
		    struct gs_err *err)
{
	static const struct gs_doc_key keys[] = {
		{ "address", GS_DOC_STRING, false },
		{ "port", GS_DOC_UINT, false },
		{ 0 },
	};
	struct js v[2];
	int r;

	if (!object.n)
		return 0;
	r = gs_doc_members(doc, object, "http", keys, v, err);
	if (r == 0)
		r = gs_doc_string(doc, v[0], "address", &s->http_address, err);
	if (r == 0)
		r = get_uint(doc, v[1], "port", 65535, &s->http_port, err);
	return r;
}

static int get_plugins(const struct gs_doc *doc, struct js object, struct settings *s,
		       struct gs_err *err)
{
	static const struct gs_doc_key keys[] = {
		{ "enabled", GS_DOC_BOOL, false },
		{ "share", GS_DOC_UINT, false },
		{ "kubelet_dir", GS_DOC_STRING, false },
		{ 0 },
	};
	struct js v[3];
	int r;

	if (!object.n)
		return 0;
	r = gs_doc_members(doc, object, "device_plugins", keys, v, err);
	if (r == 0)
		r = get_uint(doc, v[1], "share", SHARE_MAX, &s->share, err);
	if (r == 0 && s->share < 1)
		r = gs_doc_wrong(doc, v[1], err, "share must be at least 1");
	if (r == 0)
		r = gs_doc_path(doc, v[2], "kubelet_dir", &s->kubelet, err);
	if (r == 0)
		gs_doc_bool(v[0], &s->plugins);
	return r;
}

static int get_sale(const struct gs_doc *doc, struct js object, struct sale_settings *s,
		    struct gs_err *err)
{
	static const struct gs_doc_key keys[] = {
		{ "enabled", GS_DOC_BOOL, false },	  { "cpu_ratio", GS_DOC_UINT, false },
		{ "memory_ratio", GS_DOC_UINT, false },	  { "cpu_floor", GS_DOC_STRING, false },
		{ "memory_floor", GS_DOC_STRING, false }, { 0 },
	};
	struct js v[5];
	int r;

	if (!object.n)
		return 0;
	r = gs_doc_members(doc, object, "oversale", keys, v, err);
	if (r == 0)
		r = get_uint(doc, v[1], "cpu_ratio", RATIO_MAX, &s->cpu_ratio, err);
	if (r == 0)
		r = get_uint(doc, v[2], "memory_ratio", RATIO_MAX, &s->memory_ratio, err);
	if (r == 0)
		r = gs_doc_quantity(doc, v[3], "cpu_floor", 1, &s->cpu_floor, err);
	if (r == 0)
		r = gs_doc_quantity(doc, v[4], "memory_floor", 1000LL * 1024 * 1024,
				    &s->memory_floor, err);
	if (r == 0)
		gs_doc_bool(v[0], &s->enabled);
	return r;
}

static int get_agent(const struct gs_doc *doc, struct js agent, struct settings *s,
		     struct gs_err *err)
{
	enum {
		LEND,
		LEND_SHARED,
		LEND_AFTER,
		MIN_FREE,
		HOLD_MAX,
		KERNEL_KILL,
		PERIOD,
		SAMPLE,
		EXEMPT,
		EXEMPT_CGROUPS,
		PROBE,
		HTTP,
		KUBERNETES,
		PLUGINS,
		OVERSALE,
		N
	};
	static const struct gs_doc_key keys[N + 1] = {
		[LEND] = { "lend", GS_DOC_BOOL, false },
		[LEND_SHARED] = { "lend_shared", GS_DOC_BOOL, false },
		[LEND_AFTER] = { "lend_after", GS_DOC_STRING, false },
		[MIN_FREE] = { "lend_min_free", GS_DOC_UINT, false },
		[HOLD_MAX] = { "hold_max", GS_DOC_STRING, false },
		[KERNEL_KILL] = { "kernel_kill", GS_DOC_BOOL, false },
		[PERIOD] = { "load_period", GS_DOC_STRING, false },
		[SAMPLE] = { "sample_period", GS_DOC_STRING, false },
		[EXEMPT] = { "exempt", GS_DOC_LIST, false },
		[EXEMPT_CGROUPS] = { "exempt_cgroups", GS_DOC_LIST, false },
		[PROBE] = { "probe", GS_DOC_STRING, false },
		[HTTP] = { "http", GS_DOC_OBJECT, false },
		[KUBERNETES] = { "kubernetes", GS_DOC_OBJECT, false },
		[PLUGINS] = { "device_plugins", GS_DOC_OBJECT, false },
		[OVERSALE] = { "oversale", GS_DOC_OBJECT, false },
	};
	struct js v[N];
	int r = gs_doc_members(doc, agent, "agent", keys, v, err);

	if (r == 0)
		r = gs_doc_duration(doc, v[LEND_AFTER], "lend_after", SETTINGS_LEND_AFTER_MIN_MS,
				    &s->lend_after_ms, err);
	if (r == 0)
		r = get_uint(doc, v[MIN_FREE], "lend_min_free", 100, &s->lend_min_free, err);
	if (r == 0)
		r = gs_doc_duration(doc, v[HOLD_MAX], "hold_max", 1000, &s->hold_max_ms, err);
	if (r == 0)
		r = gs_doc_duration(doc, v[PERIOD], "load_period", 100, &s->load_period_ms, err);
	if (r == 0)
		r = gs_doc_duration(doc, v[SAMPLE], "sample_period", 1000, &s->sample_ms, err);
	if (r == 0)
		r = gs_doc_strings(doc, v[EXEMPT], "exempt", &s->exempt, err);
	if (r == 0)
		r = gs_doc_strings(doc, v[EXEMPT_CGROUPS], "exempt_cgroups", &s->exempt_cgroups,
				   err);
	if (r == 0)
		r = gs_doc_path(doc, v[PROBE], "probe", &s->probe, err);
	if (r == 0)
		r = get_http(doc, v[HTTP], s, err);
	if (r == 0)
		r = kube_config_read(doc, v[KUBERNETES], true, &s->kube, err);
	if (r == 0)
		r = get_plugins(doc, v[PLUGINS], s, err);
	if (r == 0)
		r = get_sale(doc, v[OVERSALE], &s->sale, err);
	if (r < 0)
		return r;
	gs_doc_bool(v[LEND], &s->lend);
	gs_doc_bool(v[LEND_SHARED], &s->lend_shared);
	gs_doc_bool(v[KERNEL_KILL], &s->kernel_kill);
	return 0;
}

int settings_load(struct settings *settings, const char *path, struct gs_err *err)
{
	cleanup_free char *text = NULL;
	struct js root, agent;
	struct gs_doc doc;
	size_t len;
	int r;

	r = gs_file_read(AT_FDCWD, path, 0, CONFIG_MAX, &text, &len, NULL, err);
	if (r == -ENOENT)
		return 0;
	doc = (struct gs_doc){ path, text };
	if (r == 0)
		r = gs_doc_parse(&doc, len, &root, err);
	if (r == 0)
		r = js_member(root, "agent", &agent, err);
	if (r < 0 || js_absent(agent))
		return r;
	r = get_agent(&doc, agent, settings, err);
	if (r < 0) {
		settings_free(settings);
		settings_init(settings);
	}
	return r;
}
