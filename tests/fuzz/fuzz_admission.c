// SPDX-License-Identifier: Apache-2.0
/* What the admission webhook is asked: whatever comes, there is an answer or an error, and a second
 * call with the same question says the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "controller/admission.h"

static struct admission_policy policy;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_json json_t *first = NULL, *second = NULL;
	struct gs_err err;

	if (!policy.partition_label) {
		admission_policy_init(&policy);
		gs_strv_add(&policy.cards, "nvidia.com/*");
		gs_strv_add(&policy.slices, "nvidia.com/mig-*");
		gs_strv_add(&policy.platform_users, "platform");
		gs_strv_add(&policy.data_classes, "data");
	}
	if (admission_review(&policy, NULL, (const char *)data, size, &first, &err) < 0)
		return 0;
	if (admission_review(&policy, NULL, (const char *)data, size, &second, &err) < 0 ||
	    !json_equal(first, second))
		abort();
	if (!json_is_boolean(json_object_get(json_object_get(first, "response"), "allowed")))
		abort();
	return 0;
}
