// SPDX-License-Identifier: Apache-2.0
/* Base64 by GnuTLS. */
#include <gnutls/gnutls.h>
#include <string.h>

#include "common/xalloc.h"
#include "controller/base64.h"

/* GnuTLS's memory may come from another allocator. */
static char *take(gnutls_datum_t *data)
{
	char *text = gs_strndup((char *)data->data, data->size);

	gnutls_free(data->data);
	return text;
}

char *base64_encode(const char *text)
{
	gnutls_datum_t in = { (unsigned char *)text, (unsigned int)strlen(text) }, out = { 0 };

	if (in.size == 0 || gnutls_base64_encode2(&in, &out) < 0)
		return gs_strdup("");
	return take(&out);
}

char *base64_decode(const char *text)
{
	gnutls_datum_t in = { (unsigned char *)text, 0 }, out = { 0 };

	if (!text || !*text)
		return NULL;
	in.size = (unsigned int)strlen(text);
	if (gnutls_base64_decode2(&in, &out) < 0)
		return NULL;
	if (memchr(out.data, '\0', out.size)) {
		gnutls_free(out.data);
		return NULL;
	}
	return take(&out);
}
