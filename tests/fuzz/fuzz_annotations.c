// SPDX-License-Identifier: Apache-2.0
/*
 * Annotations and identities. Input: lines; the container's name, its own key's value, the long
 * form's, a grant, vcpu, vmem, and the identity of the configuration without a CRI.
 */
#include <errno.h>

#include "common/buf.h"
#include "gpushare/annotations.h"
#include "runtime/request.h"
#include "runtime/who.h"
#include "tests/fuzz/fuzz.h"

enum { NAME, OWN, LONG, GRANT, VCPU, VMEM, IDENTITY, N };

static void add(struct gs_buf *out, const char *key, const char *value)
{
	if (!*value)
		return;
	gs_buf_addc(out, ',');
	gs_buf_add_json(out, key);
	gs_buf_addc(out, ':');
	gs_buf_add_json(out, value);
}

static char *config_json(char **part)
{
	struct gs_buf out = { 0 };
	char *key = gs_asprintf(GS_KEY_FROM ".%s", part[NAME]);

	gs_buf_adds(&out, "{\"annotations\":{\"io.kubernetes.cri.sandbox-name\":\"pod\","
			  "\"io.kubernetes.cri.sandbox-namespace\":\"ns\"");
	add(&out, "io.kubernetes.cri.container-name", part[NAME]);
	add(&out, key, part[OWN]);
	for (char *p = part[LONG]; *p; p++)
		*p = *p == '\r' ? '\n' : *p;
	add(&out, GS_KEY_FROM, part[LONG]);
	add(&out, GS_KEY_GRANT, part[GRANT]);
	add(&out, GS_KEY_VCPU, part[VCPU]);
	add(&out, GS_KEY_VMEM, part[VMEM]);
	add(&out, GS_KEY_IDENTITY, part[IDENTITY]);
	gs_buf_adds(&out, "}}");
	free(key);
	return gs_buf_steal(&out);
}

/* RFC 1123, said in another way than the code under test says it. */
static bool is_dns_name(const char *s, bool dots, size_t max)
{
	size_t len = strlen(s);

	if (len == 0 || len > max)
		return false;
	for (size_t i = 0; i < len; i++) {
		bool edge = i == 0 || i + 1 == len || s[i - 1] == '.' || s[i + 1] == '.';

		if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789-.", s[i]) ||
		    (edge && (s[i] == '-' || (s[i] == '.' && (i == 0 || i + 1 == len)))) ||
		    (s[i] == '.' && (!dots || s[i + 1] == '.')))
			return false;
	}
	return true;
}

/* What came out is a name, and read again it is the same. */
static void check_identity(const struct gs_identity *id)
{
	struct gs_identity again = { 0 };
	char *text = gs_identity_text(id);

	CHECK(gs_identity_parse(text, strlen(text), NULL, &again, NULL) == 0);
	CHECK(gs_identity_equal(id, &again));
	CHECK(is_dns_name(id->ns, false, 63) && is_dns_name(id->pod, true, 253) &&
	      is_dns_name(id->container, false, 63));
	gs_identity_free(&again);
	free(text);
}

static void check_request(const struct spec *spec, const struct who *who)
{
	struct gs_err err = { 0 };
	struct request req = { 0 };
	int r = request_read(spec, who, &req, &err);

	if (r < 0) {
		check_error(r, &err);
		CHECK(!req.sources && !req.grant);
		return;
	}
	CHECK(req.n_sources <= REQUEST_SOURCES_MAX);
	for (size_t i = 0; i < req.n_sources; i++) {
		check_identity(&req.sources[i]);
		CHECK(!gs_identity_equal(&req.sources[i], &who->id));
		for (size_t j = 0; j < i; j++)
			CHECK(!gs_identity_equal(&req.sources[i], &req.sources[j]));
	}
	CHECK(!req.grant ||
	      (strlen(req.grant) == 32 && strspn(req.grant, "0123456789abcdef") == 32));
	CHECK(req.vcpu_milli >= 0 && req.vmem_bytes >= 0);
	request_free(&req);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum gs_cri cris[] = { GS_CRI_CONTAINERD, GS_CRI_CRIO, GS_CRI_NONE };
	struct spec spec = { 0 };
	struct gs_err err = { 0 };
	char *part[N], *text;
	int r;

	for (int i = 0; i < N; i++)
		part[i] = next_part(&data, &size, '\n');
	text = config_json(part);
	r = spec_read(&spec, text, strlen(text), &err);
	if (r < 0)
		check_error(r, &err); /* no UTF-8, or a key that stands twice */
	for (size_t i = 0; r == 0 && i < sizeof(cris) / sizeof(cris[0]); i++) {
		struct who who = { 0 };

		if (who_read(&spec, cris[i], &who, &err) < 0)
			continue;
		if (gs_identity_is_set(&who.id)) {
			check_identity(&who.id);
			check_request(&spec, &who);
		}
		who_free(&who);
	}
	spec_free(&spec);
	for (int i = 0; i < N; i++)
		free(part[i]);
	return 0;
}
