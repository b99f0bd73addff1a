// SPDX-License-Identifier: Apache-2.0
/* Reads the annotation container-devices-from. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/sources.h"

int gs_sources_parse(const char *text, size_t len, const struct gs_identity *here,
		     int (*each)(const struct gs_identity *source, void *arg, struct gs_err *err),
		     void *arg, struct gs_err *err)
{
	const char *end = text + len;

	for (;;) {
		const char *comma = memchr(text, ',', (size_t)(end - text));
		const char *stop = comma ? comma : end;
		cleanup_identity struct gs_identity source = { 0 };
		int r = gs_identity_parse(text, (size_t)(stop - text), here, &source, err);

		if (r == 0 && gs_identity_equal(&source, here))
			r = gs_err_set(err, EINVAL, "the container names itself as its source");
		if (r == 0)
			r = each(&source, arg, err);
		if (r < 0 || !comma)
			return r;
		text = comma + 1;
	}
}

int gs_sources_find(const char *text, const char *container, const char **ret, size_t *ret_len,
		    struct gs_err *err)
{
	*ret = NULL;
	*ret_len = 0;
	while (*text) {
		size_t len = strcspn(text, ";\n");
		const char *eq = memchr(text, '=', len);
		size_t name = eq ? (size_t)(eq - text) : 0;

		if (len && (!eq || !gs_dns_label(text, name))) {
			cleanup_free char *quoted = gs_quote(text, len);

			return gs_err_set(err, EINVAL,
					  "entry %s is not <container>=<source>[,<source>]",
					  quoted);
		}
		if (len && strlen(container) == name && memcmp(text, container, name) == 0) {
			if (*ret)
				return gs_err_set(err, EINVAL, "two entries for container %s",
						  container);
			*ret = eq + 1;
			*ret_len = len - name - 1;
		}
		text += len + (text[len] != '\0');
	}
	return 0;
}
