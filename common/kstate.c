// SPDX-License-Identifier: Apache-2.0
/* The whole state of the kernel module, gathered from the messages of a dump. */
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "common/kmsg.h"
#include "common/xalloc.h"

uint32_t gs_kdev_of(dev_t rdev)
{
	return gs_kdev(major(rdev), minor(rdev));
}

void gs_kholding_free(struct gs_kholding *holding)
{
	free(holding->devs.v);
	*holding = (struct gs_kholding){ 0 };
}

void gs_kwatch_free(struct gs_kwatch *watch)
{
	gs_strv_free(&watch->holdings);
	free(watch->counts);
	*watch = (struct gs_kwatch){ 0 };
}

void gs_kstate_free(struct gs_kstate *state)
{
	for (size_t i = 0; i < state->n_holdings; i++)
		gs_kholding_free(&state->holdings[i]);
	for (size_t i = 0; i < state->n_watches; i++)
		gs_kwatch_free(&state->watches[i]);
	free(state->nodes);
	free(state->holdings);
	free(state->watches);
	*state = (struct gs_kstate){ 0 };
}

int gs_kmsg_add(const struct nlmsghdr *nlh, struct gs_kstate *state, struct gs_err *err)
{
	int r = 0;

	switch (gs_kmsg_cmd(nlh)) {
	case GS_CMD_NODE:
		state->nodes = gs_grow(state->nodes, state->n_nodes, sizeof(*state->nodes));
		r = gs_kmsg_node(nlh, &state->nodes[state->n_nodes], err);
		state->n_nodes += r == 0;
		break;
	case GS_CMD_HOLDING:
		state->holdings =
			gs_grow(state->holdings, state->n_holdings, sizeof(*state->holdings));
		r = gs_kmsg_holding(nlh, &state->holdings[state->n_holdings], err);
		state->n_holdings += r == 0;
		break;
	case GS_CMD_WATCH:
		state->watches = gs_grow(state->watches, state->n_watches, sizeof(*state->watches));
		r = gs_kmsg_watch(nlh, &state->watches[state->n_watches], err);
		state->n_watches += r == 0;
		break;
	default:
		break;
	}
	return r;
}

const struct gs_kholding *gs_kstate_holding(const struct gs_kstate *state, const char *name)
{
	for (size_t i = 0; i < state->n_holdings; i++)
		if (strcmp(state->holdings[i].name, name) == 0)
			return &state->holdings[i];
	return NULL;
}

const struct gs_kwatch *gs_kstate_watch(const struct gs_kstate *state, const char *name)
{
	for (size_t i = 0; i < state->n_watches; i++)
		if (strcmp(state->watches[i].name, name) == 0)
			return &state->watches[i];
	return NULL;
}

const struct gs_knode *gs_kstate_node(const struct gs_kstate *state, uint32_t dev)
{
	for (size_t i = 0; i < state->n_nodes; i++)
		if (state->nodes[i].dev == dev)
			return &state->nodes[i];
	return NULL;
}

static bool has_dev(const struct gs_kholding *holding, uint32_t dev)
{
	for (size_t i = 0; i < holding->devs.n; i++)
		if (holding->devs.v[i] == dev)
			return true;
	return false;
}

uint64_t gs_kstate_touches(const struct gs_kstate *state, const struct gs_kholding *holding)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < state->n_watches; i++) {
		const struct gs_kwatch *watch = &state->watches[i];

		if (watch->role != GS_MEMBER || !gs_strv_has(&watch->holdings, holding->name))
			continue;
		for (size_t k = 0; k < watch->n_counts; k++)
			if (has_dev(holding, watch->counts[k].dev))
				sum += watch->counts[k].touches;
	}
	return sum;
}
