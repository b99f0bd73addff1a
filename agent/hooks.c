// SPDX-License-Identifier: Apache-2.0
/* Which drivers the kernel module shall hook, in the words of the catalogue. */
#include "agent/agent.h"
#include "agent/hooker.h"
#include "common/cleanup.h"
#include "common/glob.h"
#include "common/log.h"

/* A card that is powered up by the open takes one to three seconds, more where many are at once. */
#define DEADLINE_MS 20000

/* The calls on this node that are nobody's touch, as the module compares them: type and number. */
static size_t passive_calls(const struct vendor_driver *driver, const char *path,
			    uint32_t ret[GS_PASSIVE_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < driver->n_passive && n < GS_PASSIVE_MAX; i++)
		if (gs_glob_match(driver->passive[i].node, path))
			ret[n++] = (uint32_t)driver->passive[i].magic << 8 | driver->passive[i].nr;
	return n;
}

void hooks_want(struct agent *agent, const struct card *card, const struct card_node *node,
		bool revocable)
{
	const struct vendor_driver *driver = inventory_driver(agent->inventory, card->vendor);
	struct hook_wish wish = {
		.path = node->path, .dev = node->dev, .vendor = card->vendor, .revocable = revocable
	};

	if (!driver)
		return;
	wish.n_passive = passive_calls(driver, node->path, wish.passive);
	hooker_want(agent->hooker, &wish);
}

static void look_again(void *arg)
{
	reconcile_soon(arg, 0);
}

static void on_refused(const char *path, const struct gs_err *err, void *arg)
{
	(void)arg;
	gs_log_fields(GS_LOG_WARN, "not hooked", "node", path, "why", err->msg, NULL);
}

void hooks_start(struct agent *agent)
{
	const struct hooker_ops ops = {
		.added = look_again,
		.refused = on_refused,
		.again = look_again,
		.arg = agent,
	};

	agent->hooker =
		hooker_new(agent->loop, agent->spawner, agent->settings.probe, DEADLINE_MS, &ops);
}
