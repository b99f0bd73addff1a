/* SPDX-License-Identifier: Apache-2.0 */
/* What Prometheus is told, and how healthy the agent is. gpushared(8) lists the metrics. */
#ifndef GPUSHARE_AGENT_OBSERVE_H
#define GPUSHARE_AGENT_OBSERVE_H

#include "agent/agent.h"

/* Makes the metrics and opens HTTP where the settings have a port. As http_new(). */
int observe_start(struct agent *agent, struct gs_err *err);
void observe_stop(struct agent *agent);

/* An event of the kernel module, whatever the agent makes of it. */
void observe_event(struct agent *agent, const struct gs_kevent *event);

/* A borrower was ended: how ("gone", "stuck"), and after how long. */
void observe_eviction(struct agent *agent, const char *outcome, uint64_t after_ms);

/* A return that nobody could be held for: @by says what told it ("process", "card"). */
void observe_unheld(struct agent *agent, const char *by);

/* What became of a request for devices of @resource: "granted", "late", "refused", "claimed". */
void observe_allocation(struct agent *agent, const char *resource, const char *outcome);

/* The kubelet took a device plugin ("ok") or did not ("failed"). */
void observe_registration(struct agent *agent, const char *resource, const char *outcome);

/* The node's status was told what CPU and memory is for sale ("ok"), or not ("failed"). */
void observe_sale(struct agent *agent, const char *outcome);

/* A job's memory is limited at its pod's cgroup, to what it "bought" or, where more, "used". */
void observe_job_limited(struct agent *agent, const char *to);

/* A job is evicted, for its "memory". */
void observe_job_evicted(struct agent *agent, const char *resource);

/*
 * A container that names cards was asked about when it was created ("refuse_unconfirmed"), and
 * "refused", or let in since the kubelet does not tell ("untold").
 */
void observe_unconfirmed(struct agent *agent, const char *outcome);

/* The node's picture was written for the cluster ("ok"), or not ("failed"). */
void observe_view(struct agent *agent, const char *outcome);

/* Mappings were taken away of the users of an idle card. */
void observe_sample(struct agent *agent);

/* From the event of a return until its first kill was about to be written, in microseconds. */
void observe_reaction(struct agent *agent, uint64_t us);

#endif
