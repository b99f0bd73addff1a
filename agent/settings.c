// SPDX-License-Identifier: Apache-2.0
/* The section "agent": defaults, reading, checking. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/settings.h"
#include "common/cleanup.h"
#include "common/config.h"
#include "common/doc.h"
#include "common/identity.h"
#include "common/sections.h"
#include "common/xalloc.h"

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
		.view = true,
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
	free(s->view_namespace);
	kube_config_free(&s->kube);
	*s = (struct settings){ 0 };
}

static int get_http(const struct gs_doc *doc, struct js object, struct settings *s,
		    struct gs_err *err)
{
	struct js v[GS_HTTP_N];
	int r;

	if (!object.n)
		return 0;
	r = gs_doc_members(doc, object, "http", gs_http_keys, v, err);
	if (r == 0)
		r = gs_doc_string(doc, v[GS_HTTP_ADDRESS], "address", &s->http_address, err);
	if (r == 0)
		r = gs_sections_number(doc, v[GS_HTTP_PORT], &gs_http_keys[GS_HTTP_PORT],
				       &s->http_port, err);
	return r;
}

static int get_plugins(const struct gs_doc *doc, struct js object, struct settings *s,
		       struct gs_err *err)
{
	struct js v[GS_PLUGINS_N];
	int r;

	if (!object.n)
		return 0;
	r = gs_doc_members(doc, object, "device_plugins", gs_plugins_keys, v, err);
	if (r == 0)
		r = gs_sections_number(doc, v[GS_PLUGINS_SHARE], &gs_plugins_keys[GS_PLUGINS_SHARE],
				       &s->share, err);
	if (r == 0)
		r = gs_doc_path(doc, v[GS_PLUGINS_KUBELET_DIR], "kubelet_dir", &s->kubelet, err);
	if (r == 0)
		gs_doc_bool(v[GS_PLUGINS_ENABLED], &s->plugins);
	return r;
}

static int get_sale(const struct gs_doc *doc, struct js object, struct sale_settings *s,
		    struct gs_err *err)
{
	struct js v[GS_OVERSALE_N];
	int r;

	if (!object.n)
		return 0;
	r = gs_doc_members(doc, object, "oversale", gs_oversale_keys, v, err);
	if (r == 0)
		r = gs_sections_number(doc, v[GS_OVERSALE_CPU_RATIO],
				       &gs_oversale_keys[GS_OVERSALE_CPU_RATIO], &s->cpu_ratio,
				       err);
	if (r == 0)
		r = gs_sections_number(doc, v[GS_OVERSALE_MEMORY_RATIO],
				       &gs_oversale_keys[GS_OVERSALE_MEMORY_RATIO],
				       &s->memory_ratio, err);
	if (r == 0)
		r = gs_doc_quantity(doc, v[GS_OVERSALE_CPU_FLOOR], "cpu_floor", 1, &s->cpu_floor,
				    err);
	if (r == 0)
		r = gs_doc_quantity(doc, v[GS_OVERSALE_MEMORY_FLOOR], "memory_floor",
				    1000LL * 1024 * 1024, &s->memory_floor, err);
	if (r == 0)
		gs_doc_bool(v[GS_OVERSALE_ENABLED], &s->enabled);
	return r;
}

static int get_view(const struct gs_doc *doc, struct js object, struct settings *s,
		    struct gs_err *err)
{
	struct js v[GS_VIEW_N];
	int r;

	if (!object.n)
		return 0;
	r = gs_doc_members(doc, object, "cluster_view", gs_view_keys, v, err);
	if (r == 0)
		r = gs_doc_string(doc, v[GS_VIEW_NAMESPACE], "namespace", &s->view_namespace, err);
	if (r == 0 && s->view_namespace &&
	    !gs_dns_label(s->view_namespace, strlen(s->view_namespace)))
		r = gs_doc_wrong(doc, v[GS_VIEW_NAMESPACE], err, "namespace is none");
	if (r == 0)
		gs_doc_bool(v[GS_VIEW_ENABLED], &s->view);
	return r;
}

static int get_agent(const struct gs_doc *doc, struct js agent, struct settings *s,
		     struct gs_err *err)
{
	struct js v[GS_AGENT_N];
	int r = gs_doc_members(doc, agent, "agent", gs_agent_keys, v, err);

	if (r == 0)
		r = gs_sections_number(doc, v[GS_AGENT_LEND_AFTER],
				       &gs_agent_keys[GS_AGENT_LEND_AFTER], &s->lend_after_ms, err);
	if (r == 0)
		r = gs_sections_number(doc, v[GS_AGENT_LEND_MIN_FREE],
				       &gs_agent_keys[GS_AGENT_LEND_MIN_FREE], &s->lend_min_free,
				       err);
	if (r == 0)
		r = gs_sections_number(doc, v[GS_AGENT_HOLD_MAX], &gs_agent_keys[GS_AGENT_HOLD_MAX],
				       &s->hold_max_ms, err);
	if (r == 0)
		r = gs_sections_number(doc, v[GS_AGENT_LOAD_PERIOD],
				       &gs_agent_keys[GS_AGENT_LOAD_PERIOD], &s->load_period_ms,
				       err);
	if (r == 0)
		r = gs_sections_number(doc, v[GS_AGENT_SAMPLE_PERIOD],
				       &gs_agent_keys[GS_AGENT_SAMPLE_PERIOD], &s->sample_ms, err);
	if (r == 0)
		r = gs_doc_strings(doc, v[GS_AGENT_EXEMPT], "exempt", &s->exempt, err);
	if (r == 0)
		r = gs_doc_strings(doc, v[GS_AGENT_EXEMPT_CGROUPS], "exempt_cgroups",
				   &s->exempt_cgroups, err);
	if (r == 0)
		r = gs_doc_path(doc, v[GS_AGENT_PROBE], "probe", &s->probe, err);
	if (r == 0)
		r = get_http(doc, v[GS_AGENT_HTTP], s, err);
	if (r == 0)
		r = kube_config_read(doc, v[GS_AGENT_KUBERNETES], true, &s->kube, err);
	if (r == 0)
		r = get_plugins(doc, v[GS_AGENT_PLUGINS], s, err);
	if (r == 0)
		r = get_sale(doc, v[GS_AGENT_OVERSALE], &s->sale, err);
	if (r == 0)
		r = get_view(doc, v[GS_AGENT_VIEW], s, err);
	if (r < 0)
		return r;
	gs_doc_bool(v[GS_AGENT_LEND], &s->lend);
	gs_doc_bool(v[GS_AGENT_LEND_SHARED], &s->lend_shared);
	gs_doc_bool(v[GS_AGENT_KERNEL_KILL], &s->kernel_kill);
	return 0;
}

int settings_load(struct settings *settings, const char *path, struct gs_err *err)
{
	cleanup_free char *text = NULL;
	struct js root, agent = { 0 };
	struct gs_doc doc;
	int r;

	r = gs_config_read(path, &text, &doc, &root, err);
	if (r == -ENOENT)
		return 0;
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
