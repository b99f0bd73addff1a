/* SPDX-License-Identifier: Apache-2.0 */
/* Of several replicas one acts: it holds a Lease (coordination.k8s.io/v1). */
#ifndef GPUSHARE_CONTROLLER_LEADER_H
#define GPUSHARE_CONTROLLER_LEADER_H

#include "controller/controller.h"

/* Begins to try. @changed is told, from the loop, when we begin or cease to lead. */
void leader_start(struct controller *controller,
		  void (*changed)(struct controller *controller, bool leads));
void leader_stop(struct controller *controller);

/*
 * Before the end: ceases to lead, and gives the Lease back, so that others need not wait until it
 * runs out. @done is told when that is over, within 2 s; at once where we don't lead. A second call
 * does not wait.
 */
void leader_release(struct controller *controller, void (*done)(struct controller *controller));

/*
 * May we act now? True only while less time has passed since we asked for our last renewal than
 * others wait before they take over.
 */
bool leader_is(const struct controller *controller);

#endif
