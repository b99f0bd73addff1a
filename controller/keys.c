// SPDX-License-Identifier: Apache-2.0
/* The annotations that only the platform may write. */
#include <errno.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/identity.h"
#include "controller/keys.h"
#include "controller/oversold.h"
#include "controller/pod.h"
#include "gpushare/annotations.h"

/* Those that a namespace may have for all of its pods. */
static const char *const inherited[] = { GS_KEY_PARTITION, GS_KEY_USER_ID, GS_KEY_LEND,
					 GS_KEY_LEND_AFTER };

static bool is_platforms(const char *key)
{
	static const char *const exact[] = { GS_KEY_GRANT,	 GS_KEY_IDENTITY, GS_KEY_VCPU,
					     GS_KEY_VMEM,	 GS_KEY_SHADOW,	  GS_KEY_SHADOW_FOR,
					     GS_KEY_SHADOW_PLACE };
	static const char *const each[] = { GS_KEY_VCPU ".", GS_KEY_VMEM "." };

	for (size_t i = 0; i < GS_ARRAY_SIZE(inherited); i++)
		if (strcmp(key, inherited[i]) == 0)
			return true;
	for (size_t i = 0; i < GS_ARRAY_SIZE(exact); i++)
		if (strcmp(key, exact[i]) == 0)
			return true;
	for (size_t i = 0; i < GS_ARRAY_SIZE(each); i++)
		if (strncmp(key, each[i], strlen(each[i])) == 0)
			return true;
	return false;
}

/* What the namespace says for one of the keys that it may say; NULL: nothing. */
static const char *space_says(const json_t *space, const char *key)
{
	for (size_t i = 0; i < GS_ARRAY_SIZE(inherited); i++)
		if (strcmp(key, inherited[i]) == 0)
			return json_string_value(json_object_get(space, key));
	return NULL;
}

static int refuse(const char *key, const char *value, const char *what, struct gs_err *err)
{
	cleanup_free char *name = gs_quote(key, strlen(key));
	cleanup_free char *quoted = gs_quote(value, strlen(value));

	/* a grant is a secret as long as nobody uses it */
	if (strcmp(key, GS_KEY_GRANT) == 0)
		return gs_err_set(err, EACCES, "annotation %s: only the platform may %s it", name,
				  what);
	return gs_err_set(err, EACCES, "annotation %s: only the platform may %s it (%s)", name,
			  what, quoted);
}

int keys_check(const json_t *space, const json_t *before, const json_t *now, bool oversold,
	       struct gs_err *err)
{
	json_t *v;
	const char *key;

	json_object_foreach(pod_annotations(now), key, v) {
		const char *value = json_string_value(v);
		const char *old = pod_annotation(before, key);
		const char *said = space_says(space, key);

		if (!is_platforms(key) || (old && strcmp(old, value) == 0) ||
		    (said && strcmp(said, value) == 0) || (oversold && oversold_writes(now, key)))
			continue;
		return refuse(key, value, old ? "change" : "write", err);
	}
	json_object_foreach(pod_annotations(before), key, v) {
		if (is_platforms(key) && !pod_annotation(now, key))
			return refuse(key, json_string_value(v), "remove", err);
	}
	return 0;
}

void keys_inherit(const json_t *space, json_t *pod)
{
	for (size_t i = 0; i < GS_ARRAY_SIZE(inherited); i++) {
		const char *said = space_says(space, inherited[i]);

		if (said && !pod_annotation(pod, inherited[i]))
			pod_annotate(pod, inherited[i], said);
	}
}

bool keys_are_in(const json_t *space)
{
	for (size_t i = 0; i < GS_ARRAY_SIZE(inherited); i++)
		if (space_says(space, inherited[i]))
			return true;
	return false;
}
