// SPDX-License-Identifier: Apache-2.0
/* The section "controller": defaults, reading, checking. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/doc.h"
#include "common/file.h"
#include "common/identity.h"
#include "common/xalloc.h"
#include "controller/settings.h"

#define CONFIG_MAX (1024 * 1024)

void controller_settings_init(struct controller_settings *s)
{
	*s = (struct controller_settings){
		.port = 8443,
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

static int get_uint(const struct gs_doc *doc, struct js v, const char *key, unsigned int min,
		    unsigned int max, unsigned int *ret, struct gs_err *err)
{
	uint64_t n = *ret;
	int r = gs_doc_uint(doc, v, key, max, &n, err);

	if (r == 0 && n < min)
		return gs_doc_wrong(doc, v, err, "%s must be at least %u", key, min);
	*ret = (unsigned int)n;
	return r;
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
	static const struct gs_doc_key keys[] = {
		{ "card", GS_DOC_STRING, false },	 { "image", GS_DOC_STRING, false },
		{ "share", GS_DOC_UINT, false },	 { "quiet", GS_DOC_STRING, false },
		{ "account_cards", GS_DOC_UINT, false }, { 0 },
	};
	struct js v[5];
	int r;

	if (!object.n)
		return 0;
	r = gs_doc_members(doc, object, "shadow", keys, v, err);
	if (r == 0)
		r = gs_doc_string(doc, v[0], "card", &s->card, err);
	if (r == 0)
		r = gs_doc_string(doc, v[1], "image", &s->image, err);
	if (r == 0)
		r = get_uint(doc, v[2], "share", 1, 64, &s->share, err);
	if (r == 0)
		r = gs_doc_duration(doc, v[3], "quiet", 1000, &s->quiet_ms, err);
	if (r == 0)
		r = get_uint(doc, v[4], "account_cards", 0, 1000000, &s->account_cards, err);
	return r;
}

static int get_controller(const struct gs_doc *doc, struct js object, struct controller_settings *s,
			  struct gs_err *err)
{
	enum {
		ADDRESS,
		PORT,
		NAMESPACE,
		SERVICE,
		SECRET,
		LEASE,
		WEBHOOK,
		USERS,
		CLASSES,
		LABEL,
		SHADOW,
		KUBERNETES,
		N
	};
	static const struct gs_doc_key keys[N + 1] = {
		[ADDRESS] = { "address", GS_DOC_STRING, false },
		[PORT] = { "port", GS_DOC_UINT, false },
		[NAMESPACE] = { "namespace", GS_DOC_STRING, false },
		[SERVICE] = { "service", GS_DOC_STRING, false },
		[SECRET] = { "secret", GS_DOC_STRING, false },
		[LEASE] = { "lease", GS_DOC_STRING, false },
		[WEBHOOK] = { "webhook", GS_DOC_STRING, false },
		[USERS] = { "platform_users", GS_DOC_LIST, false },
		[CLASSES] = { "data_classes", GS_DOC_LIST, false },
		[LABEL] = { "partition_label", GS_DOC_STRING, false },
		[SHADOW] = { "shadow", GS_DOC_OBJECT, false },
		[KUBERNETES] = { "kubernetes", GS_DOC_OBJECT, false },
	};
	struct js v[N];
	int r = gs_doc_members(doc, object, "controller", keys, v, err);

	if (r == 0)
		r = gs_doc_string(doc, v[ADDRESS], "address", &s->address, err);
	if (r == 0)
		r = get_uint(doc, v[PORT], "port", 0, 65535, &s->port, err);
	if (r == 0)
		r = get_name(doc, v[NAMESPACE], "namespace", &s->namespace, err);
	if (r == 0)
		r = get_name(doc, v[SERVICE], "service", &s->service, err);
	if (r == 0)
		r = get_name(doc, v[SECRET], "secret", &s->secret, err);
	if (r == 0)
		r = get_name(doc, v[LEASE], "lease", &s->lease, err);
	if (r == 0)
		r = get_name(doc, v[WEBHOOK], "webhook", &s->webhook, err);
	if (r == 0)
		r = gs_doc_strings(doc, v[USERS], "platform_users", &s->policy.platform_users, err);
	if (r == 0)
		r = gs_doc_strings(doc, v[CLASSES], "data_classes", &s->policy.data_classes, err);
	if (r == 0)
		r = gs_doc_string(doc, v[LABEL], "partition_label", &s->policy.partition_label,
				  err);
	if (r == 0)
		r = get_shadow(doc, v[SHADOW], s, err);
	if (r == 0)
		r = kube_config_read(doc, v[KUBERNETES], false, &s->kube, err);
	return r;
}

static int load(struct controller_settings *s, const struct gs_config *config, struct gs_err *err)
{
	cleanup_catalogue struct gs_catalogue cat = { 0 };
	cleanup_free char *text = NULL;
	struct js root, object;
	struct gs_doc doc;
	size_t len;
	int r;

	r = gs_catalogue_load(&cat, &config->vendor_dirs, err);
	if (r < 0)
		return r;
	admission_policy_cards(&s->policy, &cat);
	r = gs_file_read(AT_FDCWD, config->path, 0, CONFIG_MAX, &text, &len, NULL, err);
	if (r == -ENOENT)
		return 0;
	doc = (struct gs_doc){ config->path, text };
	if (r == 0)
		r = gs_doc_parse(&doc, len, &root, err);
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
