// SPDX-License-Identifier: Apache-2.0
/* The names of our annotations. */
#include <stdbool.h>
#include <string.h>

#include "common/annotation.h"
#include "common/cleanup.h"
#include "common/identity.h"
#include "common/nearest.h"
#include "common/xalloc.h"
#include "gpushare/annotations.h"

/* A key without the part that all of ours have. */
#define NAME(key) (&(key)[sizeof(GS_ANNOTATION_PREFIX) - 1])

static const char *const names[] = {
	NAME(GS_KEY_FROM),	   NAME(GS_KEY_PARTITION), NAME(GS_KEY_USER_ID),
	NAME(GS_KEY_VCPU),	   NAME(GS_KEY_VMEM),	   NAME(GS_KEY_GRANT),
	NAME(GS_KEY_SHARE),	   NAME(GS_KEY_LEND),	   NAME(GS_KEY_LEND_AFTER),
	NAME(GS_KEY_IDENTITY),	   NAME(GS_KEY_SHADOW),	   NAME(GS_KEY_SHADOW_FOR),
	NAME(GS_KEY_SHADOW_PLACE),
};
/* Those that may end in a dot and a container's name. */
static const char *const each[] = { NAME(GS_KEY_FROM), NAME(GS_KEY_VCPU), NAME(GS_KEY_VMEM) };

static bool is_one_of(const char *name, size_t len, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strncmp(name, words[i], len) == 0 && !words[i][len])
			return true;
	return false;
}

/* The key that was meant by @name, quoted; NULL: none is near. */
static char *meant_key(const char *name, size_t len)
{
	const char *dot = memchr(name, '.', len);
	const char *near = dot ? gs_nearest(name, (size_t)(dot - name), each, GS_ARRAY_SIZE(each)) :
				 NULL;
	cleanup_free char *key = NULL;

	if (near) {
		key = gs_asprintf(GS_ANNOTATION_PREFIX "%s%s", near, dot);
	} else {
		near = gs_nearest(name, len, names, GS_ARRAY_SIZE(names));
		if (!near)
			return NULL;
		key = gs_asprintf(GS_ANNOTATION_PREFIX "%s", near);
	}
	return gs_quote(key, strlen(key));
}

char *gs_annotation_unknown(const char *key)
{
	cleanup_free char *quoted = NULL, *meant = NULL;
	const char *name, *dot;

	if (strncmp(key, GS_ANNOTATION_PREFIX, strlen(GS_ANNOTATION_PREFIX)) != 0)
		return NULL;
	name = NAME(key);
	dot = strchr(name, '.');
	if (is_one_of(name, strlen(name), names, GS_ARRAY_SIZE(names)) ||
	    (dot && is_one_of(name, (size_t)(dot - name), each, GS_ARRAY_SIZE(each))))
		return NULL;
	quoted = gs_quote(key, strlen(key));
	meant = meant_key(name, strlen(name));
	return gs_asprintf("annotation %s is none of gpushare's%s%s", quoted,
			   meant ? "; the nearest is " : "", meant ? meant : "");
}
