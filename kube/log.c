// SPDX-License-Identifier: Apache-2.0
/* What the client tells, as lines of the log. */
#include "common/log.h"
#include "kube/kube.h"

void kube_log_health(bool ok, const char *why)
{
	gs_log_fields(ok ? GS_LOG_INFO : GS_LOG_ERROR,
		      ok ? "the Kubernetes API answers" : "the Kubernetes API does not answer",
		      why ? "why" : NULL, why, NULL);
}

void kube_log_note(const char *what, void *arg)
{
	(void)arg;
	gs_log_fields(GS_LOG_WARN, "Kubernetes", "what", what, NULL);
}
