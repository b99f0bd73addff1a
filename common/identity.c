// SPDX-License-Identifier: Apache-2.0
/* Names of containers: parsed strictly, because a pod's author writes them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/identity.h"
#include "common/xalloc.h"

#define DNS_LABEL_MAX 63
#define DNS_SUBDOMAIN_MAX 253
#define CONTAINER_ID_MAX 200

void gs_identity_free(struct gs_identity *id)
{
	free(id->ns);
	free(id->pod);
	free(id->container);
	*id = (struct gs_identity){ 0 };
}

/* ctype.h follows the locale; names do not. */
static bool lower_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool label_of_any_length(const char *s, size_t len)
{
	if (len == 0 || !lower_alnum(s[0]) || !lower_alnum(s[len - 1]))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!lower_alnum(s[i]) && s[i] != '-')
			return false;
	return true;
}

bool gs_dns_label(const char *s, size_t len)
{
	return len <= DNS_LABEL_MAX && label_of_any_length(s, len);
}

/* Kubernetes bounds a pod's name as a whole, not the labels in it. */
static bool dns_subdomain(const char *s, size_t len)
{
	const char *end = s + len;

	if (len > DNS_SUBDOMAIN_MAX)
		return false;
	for (;;) {
		const char *dot = memchr(s, '.', (size_t)(end - s));

		if (!dot)
			return label_of_any_length(s, (size_t)(end - s));
		if (!label_of_any_length(s, (size_t)(dot - s)))
			return false;
		s = dot + 1;
	}
}

struct part {
	const char *s;
	size_t len;
};

static bool is_here(struct part part)
{
	return part.len == 1 && part.s[0] == '_';
}

/* Cuts @text at its slashes; gives how many parts there are, of which @parts gets the first 3. */
static size_t split(const char *text, size_t len, struct part parts[3])
{
	const char *end = text + len;
	size_t n = 0;

	for (;;) {
		const char *slash = memchr(text, '/', (size_t)(end - text));
		const char *stop = slash ? slash : end;

		if (n < 3)
			parts[n] = (struct part){ text, (size_t)(stop - text) };
		n++;
		if (!slash)
			return n;
		text = slash + 1;
	}
}

static int bad(const char *text, size_t len, struct gs_err *err, const char *why)
{
	char *quoted = gs_quote(text, len);
	int r = gs_err_set(err, EINVAL, "%s is not <namespace>/<pod>/<container>: %s", quoted, why);

	free(quoted);
	return r;
}

int gs_identity_parse(const char *text, size_t len, const struct gs_identity *here,
		      struct gs_identity *ret, struct gs_err *err)
{
	struct part p[3];
	size_t n = split(text, len, p);
	bool here_ns, here_pod;

	if (len == 0)
		return bad(text, len, err, "it is empty");
	if (n != 3)
		return bad(text, len, err,
			   n < 3 ? "it has fewer than three parts" :
				   "it has more than three parts");
	here_ns = is_here(p[0]);
	here_pod = is_here(p[1]);
	if ((here_ns || here_pod) && (!here || !gs_identity_is_set(here)))
		return bad(text, len, err, "\"_\" has no meaning here");
	if (!here_ns && !gs_dns_label(p[0].s, p[0].len))
		return bad(text, len, err, "its namespace is no DNS label (RFC 1123)");
	if (!here_pod && !dns_subdomain(p[1].s, p[1].len))
		return bad(text, len, err, "its pod is no DNS name (RFC 1123)");
	if (!gs_dns_label(p[2].s, p[2].len))
		return bad(text, len, err, "its container is no DNS label (RFC 1123)");
	*ret = (struct gs_identity){
		.ns = here_ns ? gs_strdup(here->ns) : gs_strndup(p[0].s, p[0].len),
		.pod = here_pod ? gs_strdup(here->pod) : gs_strndup(p[1].s, p[1].len),
		.container = gs_strndup(p[2].s, p[2].len),
	};
	return 0;
}

struct gs_identity gs_identity_copy(const struct gs_identity *id)
{
	if (!gs_identity_is_set(id))
		return (struct gs_identity){ 0 };
	return (struct gs_identity){
		.ns = gs_strdup(id->ns),
		.pod = gs_strdup(id->pod),
		.container = gs_strdup(id->container),
	};
}

bool gs_identity_equal(const struct gs_identity *a, const struct gs_identity *b)
{
	if (!gs_identity_is_set(a) || !gs_identity_is_set(b))
		return gs_identity_is_set(a) == gs_identity_is_set(b);
	return strcmp(a->ns, b->ns) == 0 && strcmp(a->pod, b->pod) == 0 &&
	       strcmp(a->container, b->container) == 0;
}

char *gs_identity_text(const struct gs_identity *id)
{
	return gs_asprintf("%s/%s/%s", id->ns, id->pod, id->container);
}

#define FNV_START UINT64_C(0xcbf29ce484222325)

static uint64_t fnv1a(uint64_t hash, const char *s)
{
	for (; *s; s++)
		hash = (hash ^ (unsigned char)*s) * UINT64_C(0x100000001b3);
	return hash;
}

uint64_t gs_hash(const char *text)
{
	return fnv1a(FNV_START, text);
}

uint64_t gs_identity_hash(const struct gs_identity *id)
{
	uint64_t hash = FNV_START;

	hash = fnv1a(fnv1a(hash, id->ns), "/");
	hash = fnv1a(fnv1a(hash, id->pod), "/");
	return fnv1a(hash, id->container);
}

bool gs_id_valid(const char *id)
{
	static const char hook[] = ".hook";
	size_t len = 0;

	if (id[0] == '.')
		return false;
	for (; id[len]; len++) {
		char c = id[len];

		if (!lower_alnum(c) && !(c >= 'A' && c <= 'Z') && c != '_' && c != '+' &&
		    c != '-' && c != '.')
			return false;
		if (len >= CONTAINER_ID_MAX)
			return false;
	}
	return len > 0 && (len < sizeof(hook) || strcmp(id + len - (sizeof(hook) - 1), hook) != 0);
}

char *gs_quote(const char *value, size_t len)
{
	struct gs_buf out = { 0 };

	gs_buf_addc(&out, '"');
	for (size_t i = 0; i < len && i < GS_QUOTE_MAX; i++)
		gs_buf_addc(&out, value[i] >= 0x20 && value[i] < 0x7f ? value[i] : '?');
	gs_buf_adds(&out, len > GS_QUOTE_MAX ? "...\"" : "\"");
	return gs_buf_steal(&out);
}
