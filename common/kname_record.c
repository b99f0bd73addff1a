// SPDX-License-Identifier: Apache-2.0
/* The names that the agent gives to what it tells the module of, from the registry's records. */
#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/identity.h"
#include "common/kname.h"
#include "common/xalloc.h"

static void set_name(const char *text, gs_kname ret)
{
	if (strlen(text) <= GS_NAME_MAX)
		(void)snprintf(ret, sizeof(gs_kname), "%s", text);
	else
		(void)snprintf(ret, sizeof(gs_kname), "%.64s-%016llx", text,
			       (unsigned long long)gs_hash(text));
}

void gs_kname_watch(const struct gs_record *rec, gs_kname ret)
{
	set_name(rec->id, ret);
}

void gs_kname_holding(const struct gs_record *rec, gs_kname ret)
{
	cleanup_free char *text = NULL;

	if (rec->pod_uid && gs_identity_is_set(&rec->identity))
		text = gs_asprintf("%s/%s", rec->pod_uid, rec->identity.container);
	set_name(text ? text : rec->id, ret);
}

void gs_kname_free(const char *card, gs_kname ret)
{
	cleanup_free char *text = gs_asprintf("free/%s", card);

	set_name(text, ret);
}
