// SPDX-License-Identifier: Apache-2.0
/* The section "controller": defaults, reading, checking. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/identity.h"
#include "common/sections.h"
#include "common/xalloc.h"
#include "controller/settings.h"

void controller_settings_init(struct controller_settings *s)
{
	*s = (struct controller_settings){
		.port = 8443,
		.metrics_auth = true,
		.share = 2,
		.account_cards = 8,
		.quiet_ms = 5 * 60 * 1000,
	};
	admission_policy_init(&s->policy);
	s->address = gs_strdup("::");
	s->service = gs_strdup("gpushare-controller");
	s->secret = gs_strdup("gpushare-controller-tls");
	s->lease = gs_strdup("gpushare-controller");
	s->webhook = gs_strdup("gpushare");
	s->kube.component = gs_strdup("gpushare-controller");
	s->card = gs_strdup("nvidia.com/gpu");
	s->image = gs_strdup("registry.k8s.io/pause:3.9");
}

void controller_settings_free(struct controller_settings *s)
{
	admission_policy_free(&s->policy);
	free(s->address);
	free(s->namespace);
	free(s->service);
	free(s->secret);
	free(s->lease);
	free(s->webhook);
	kube_config_free(&s->kube);
	free(s->card);
	free(s->image);
	*s = (struct controller_settings){ 0 };
}

/* The name of an object in the API: it becomes a path. */
static int get_name(const struct gs_doc *doc, struct js v, const char *key, char **ret,
		    struct gs_err *err)
{
	int r = gs_doc_string(doc, v, key, ret, err);

	if (r == 0 && v.n && !gs_dns_label(*ret, strlen(*ret)))
		return gs_doc_wrong(doc, v, err, "%s must be a DNS label", key);
	return r;
}

static int get_shadow(const struct gs_doc *doc, struct js object, struct controller_settings *s,
		      struct gs_err *err)
{
	struct js v[GS_SHADOW_N];
	int r;

	if (!object.n)
		return 0;
	r = gs_doc_members(doc, object, "shadow", gs_shadow_keys, v, err);
	if (r == 0)
		r = gs_doc_string(doc, v[GS_SHADOW_CARD], "card", &s->card, err);
	if (r == 0)
		r = gs_doc_string(doc, v[GS_SHADOW_IMAGE], "image", &s->image, err);
	if (r == 0)
		r = gs_sections_number(doc, v[GS_SHADOW_SHARE], &gs_shadow_keys[GS_SHADOW_SHARE],
				       &s->share, err);
	if (r == 0)
		r = gs_sections_number(doc, v[GS_SHADOW_QUIET], &gs_shadow_keys[GS_SHADOW_QUIET],
				       &s->quiet_ms, err);
	if (r == 0)
		r = gs_sections_number(doc, v[GS_SHADOW_ACCOUNT_CARDS],
				       &gs_shadow_keys[GS_SHADOW_ACCOUNT_CARDS], &s->account_cards,
				       err);
	return r;
}

static int get_controller(const struct gs_doc *doc, struct js object, struct controller_settings *s,
			  struct gs_err *err)
{
	struct js v[GS_CONTROLLER_N];
	int r = gs_doc_members(doc, object, "controller", gs_controller_keys, v, err);

	if (r == 0)
		r = gs_doc_string(doc, v[GS_CONTROLLER_ADDRESS], "address", &s->address, err);
	if (r == 0)
		r = gs_sections_number(doc, v[GS_CONTROLLER_PORT],
				       &gs_controller_keys[GS_CONTROLLER_PORT], &s->port, err);
	if (r == 0)
		gs_doc_bool(v[GS_CONTROLLER_METRICS_AUTH], &s->metrics_auth);
	if (r == 0)
		r = get_name(doc, v[GS_CONTROLLER_NAMESPACE], "namespace", &s->namespace, err);
	if (r == 0)
		r = get_name(doc, v[GS_CONTROLLER_SERVICE], "service", &s->service, err);
	if (r == 0)
		r = get_name(doc, v[GS_CONTROLLER_SECRET], "secret", &s->secret, err);
	if (r == 0)
		r = get_name(doc, v[GS_CONTROLLER_LEASE], "lease", &s->lease, err);
	if (r == 0)
		r = get_name(doc, v[GS_CONTROLLER_WEBHOOK], "webhook", &s->webhook, err);
	if (r == 0)
		r = gs_doc_strings(doc, v[GS_CONTROLLER_USERS], "platform_users",
				   &s->policy.platform_users, err);
	if (r == 0)
		r = gs_doc_strings(doc, v[GS_CONTROLLER_CLASSES], "data_classes",
				   &s->policy.data_classes, err);
	if (r == 0)
		r = gs_doc_string(doc, v[GS_CONTROLLER_LABEL], "partition_label",
				  &s->policy.partition_label, err);
	if (r == 0)
		r = get_shadow(doc, v[GS_CONTROLLER_SHADOW], s, err);
	if (r == 0)
		r = kube_config_read(doc, v[GS_CONTROLLER_KUBERNETES], false, &s->kube, err);
	return r;
}

static int load(struct controller_settings *s, const struct gs_config *config, struct gs_err *err)
{
	cleanup_catalogue struct gs_catalogue cat = { 0 };
	cleanup_free char *text = NULL;
	struct js root, object = { 0 };
	struct gs_doc doc;
	int r;

	r = gs_catalogue_load(&cat, &config->vendor_dirs, err);
	if (r < 0)
		return r;
	admission_policy_cards(&s->policy, &cat);
	r = gs_config_read(config->path, &text, &doc, &root, err);
	if (r == -ENOENT)
		return 0;
	if (r == 0)
		r = js_member(root, "controller", &object, err);
	return r < 0 || js_absent(object) ? r : get_controller(&doc, object, s, err);
}

int controller_settings_load(struct controller_settings *s, const struct gs_config *config,
			     struct gs_err *err)
{
	int r = load(s, config, err);

	if (r < 0) {
		controller_settings_free(s);
		controller_settings_init(s);
	}
	return r;
}
