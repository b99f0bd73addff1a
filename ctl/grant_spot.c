// SPDX-License-Identifier: Apache-2.0
/* gpusharectl grant --spot: a grant that the agent makes, on cards that are lent now. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/json.h"
#include "ctl/ask.h"
#include "ctl/grant.h"
#include "gpushare/agent.h"

/* What the agent answered as a grant as `grant` and `grant --list` show one. */
static json_t *to_json(const json_t *answer, const char *name, const char *to)
{
	const json_t *sources = json_object_get(answer, "sources");
	const json_t *cards = json_object_get(answer, "cards");

	return json_pack("{s:s,s:s,s:O,s:s?,s:O,s:n}", "name", name, "kind", "spot", "sources",
			 sources, "to", to, "cards", cards, "resource");
}

int ctl_grant_spot(const struct gs_config *config, const struct gs_grant *wanted,
		   enum ctl_format format)
{
	json_t *request = json_pack("{s:o}", "cards", gs_json_list(&wanted->cards));
	cleanup_json json_t *answer = NULL;
	cleanup_free char *to = NULL;
	struct gs_err err = { 0 };
	const char *name;

	if (gs_identity_is_set(&wanted->to)) {
		to = gs_identity_text(&wanted->to);
		(void)json_object_set_new(request, "to", json_string(to));
	}
	if (ctl_ask(config, GS_OP_GRANT, request, CTL_ASK_MS, &answer, &err) < 0)
		return ctl_failed(&err);
	name = json_string_value(json_object_get(answer, "grant"));
	if (!name || !gs_grant_name_valid(name) ||
	    !json_is_array(json_object_get(answer, "sources")) ||
	    !json_is_array(json_object_get(answer, "cards"))) {
		ctl_say("the agent's answer is no grant");
		return CTL_FAILED;
	}
	if (format == CTL_JSON)
		ctl_print_json(to_json(answer, name, to));
	else
		puts(name);
	return CTL_OK;
}
