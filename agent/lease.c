// SPDX-License-Identifier: Apache-2.0
/* Leases of spot grants: as long as this agent lives and the cards are lent, no longer. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/pods.h"
#include "common/cleanup.h"
#include "common/grant.h"
#include "common/log.h"
#include "common/proc.h"
#include "gpushare/grant.h"

/*
 * Writing to the disk can take long, and a user waits for his card. Meanwhile nobody borrows by
 * such a grant: its cards are not lent any more.
 */
#define REVOKE_MS 20

/* How long a revoked grant, spot or a device plugin's, is kept for people; between two looks. */
#define KEEP_S (24 * 3600)
#define FORGET_MS (3600 * 1000)

/* After a restart the pods come back one by one: so long who lends may be on his way. */
#define LENDERS_BACK_MS (5 * 60 * 1000)

/*
 * Is the card there for a borrower: lent, and by somebody from whom it is to be received, if the
 * grant means to receive it? A card that nobody holds is lent by a holding without members.
 */
static bool is_there(struct agent *agent, const struct gs_grant *grant, const char *card)
{
	const struct plan_holding *plan = plan_holding_of_card(&agent->plan, card);
	const struct hold *hold = plan ? agent_hold(agent, plan->name) : NULL;

	return hold && hold->state == GS_LENT &&
	       (plan->members.n || gs_strv_has(&grant->free, card));
}

static bool all_there(struct agent *agent, const struct gs_grant *grant)
{
	for (size_t i = 0; i < grant->cards.n; i++)
		if (!is_there(agent, grant, grant->cards.v[i]))
			return false;
	return grant->cards.n > 0;
}

/* Calls @each for every spot grant that is not revoked. */
static void each_spot(struct agent *agent,
		      void (*each)(struct agent *agent, const struct gs_grant *grant,
				   const void *arg),
		      const void *arg)
{
	cleanup_strv struct gs_strv names = { 0 };
	struct gs_err err = { 0 };

	if (gs_grant_list(agent->config.lib_dir, &names, &err) < 0) {
		told_log(&agent->told, GS_LOG_ERROR, "grants can't be read", NULL, NULL, err.msg);
		return;
	}
	for (size_t i = 0; i < names.n; i++) {
		cleanup_grant struct gs_grant grant = { 0 };

		if (gs_grant_read(agent->config.lib_dir, names.v[i], &grant, NULL) == 0 &&
		    grant.kind == GS_GRANT_SPOT && !grant.revoked)
			each(agent, &grant, arg);
	}
}

/* Is one of them somebody's who does not lend it now? */
static bool any_kept(struct agent *agent, const struct gs_strv *cards)
{
	for (size_t i = 0; i < cards->n; i++) {
		const struct plan_holding *plan = plan_holding_of_card(&agent->plan, cards->v[i]);
		const struct hold *hold = plan ? agent_hold(agent, plan->name) : NULL;

		if (hold && plan->members.n && hold->state != GS_LENT)
			return true;
	}
	return false;
}

/* Revokes it. The pod of that UID (NULL: none) would be refused for ever by now, and goes, too. */
static void end(struct agent *agent, const struct gs_grant *grant, const char *uid, const char *why)
{
	struct gs_err err = { 0 };
	char buf[10];

	if (uid)
		pods_delete_uid(agent, uid, why);
	if (gs_grant_revoke(agent->config.lib_dir, grant->name, &err) < 0)
		told_log(&agent->told, GS_LOG_ERROR, "a grant is not revoked", "grant",
			 gs_grant_short(grant->name, buf), err.msg);
}

/* The UID of the pod that it is bound to; the caller frees. NULL: of none, or it can't be read. */
static char *bound_pod(const struct agent *agent, const struct gs_grant *grant)
{
	char *uid = NULL;

	return gs_grant_bound_pod(agent->config.lib_dir, grant->name, &uid, NULL) == 0 ? uid : NULL;
}

/* Is one of them a card of a lender who is gone for good? */
static bool any_gone(struct agent *agent, const struct gs_grant *grant)
{
	if (gs_boottime_ms() < LENDERS_BACK_MS || !agent->registry_read_ms)
		return false;
	for (size_t i = 0; i < grant->cards.n; i++) {
		const char *card = grant->cards.v[i];
		const struct plan_holding *plan = plan_holding_of_card(&agent->plan, card);

		if (!(plan && plan->members.n) && !gs_strv_has(&grant->free, card))
			return true;
	}
	return false;
}

/*
 * The node was restarted: the kubelet starts the spot pod anew, by a grant whose lease was of the
 * boot before. Its card's user has come back, too; or he has not, and nobody is left from whom it
 * could receive the card. Another pod, made in its place, finds a card that is free now.
 */
static void end_of_last_boot(struct agent *agent, const struct gs_grant *grant, const char *boot_id)
{
	cleanup_free char *uid = NULL;
	const char *why = NULL;
	char buf[10];

	/* without Kubernetes nobody would make another */
	if (!agent->kube || !grant->lease_boot_id || strcmp(grant->lease_boot_id, boot_id) == 0)
		return;
	if (any_kept(agent, &grant->cards))
		why = "the node was restarted, and the user of its card is back";
	else if (any_gone(agent, grant))
		why = "the node was restarted, and who lent its card is gone";
	if (!why)
		return;
	uid = bound_pod(agent, grant);
	if (!uid)
		return;
	gs_log_fields(GS_LOG_INFO, "a grant ends with the restart of the node", "grant",
		      gs_grant_short(grant->name, buf), "pod_uid", uid, NULL);
	end(agent, grant, uid, why);
}

static void renew(struct agent *agent, const struct gs_grant *grant, const void *boot_id)
{
	struct gs_err err = { 0 };
	char buf[10];
	int r;

	if (!all_there(agent, grant)) {
		end_of_last_boot(agent, grant, boot_id);
		return;
	}
	r = gs_grant_renew(agent->config.lib_dir, grant->name, boot_id,
			   gs_boottime_ms() + GS_LEASE_MS, &err);
	if (r < 0 && r != -ECANCELED)
		told_log(&agent->told, GS_LOG_ERROR, "a lease is not renewed", "grant",
			 gs_grant_short(grant->name, buf), err.msg);
}

/* Each lending makes one more, and all of them are read every five seconds. */
static void forget_old(struct agent *agent)
{
	cleanup_strv struct gs_strv names = { 0 };

	if (gs_grant_list(agent->config.lib_dir, &names, NULL) < 0)
		return;
	for (size_t i = 0; i < names.n; i++) {
		cleanup_grant struct gs_grant grant = { 0 };

		if (gs_grant_read(agent->config.lib_dir, names.v[i], &grant, NULL) == 0 &&
		    (grant.kind == GS_GRANT_SPOT || grant.devices.n) && grant.revoked)
			(void)gs_grant_remove(agent->config.lib_dir, names.v[i], KEEP_S, NULL);
	}
}

void lease_renew(struct agent *agent)
{
	uint64_t now = gs_boottime_ms();
	char boot_id[37];

	if (gs_boot_id(boot_id, NULL) == 0)
		each_spot(agent, renew, boot_id);
	if (now < agent->forget_ms)
		return;
	agent->forget_ms = now + FORGET_MS;
	forget_old(agent);
}

/* Who borrowed by it while we were not there was ended by the module. */
static void revoke_one(struct agent *agent, const struct gs_grant *grant, const void *cards)
{
	cleanup_free char *uid = NULL;

	if (!gs_strv_intersect(&grant->cards, cards))
		return;
	uid = bound_pod(agent, grant);
	end(agent, grant, uid, "the holder of its card is back");
}

void lease_revoke_now(struct agent *agent)
{
	cleanup_strv struct gs_strv cards = agent->revoke;

	agent->revoke = (struct gs_strv){ 0 };
	(void)uv_timer_stop(&agent->revoke_timer);
	if (cards.n)
		each_spot(agent, revoke_one, &cards);
}

static void on_revoke(uv_timer_t *timer)
{
	struct agent *agent = timer->data;

	/* the module lets no return last */
	if (back_waits(agent))
		(void)uv_timer_start(timer, on_revoke, REVOKE_MS, 0);
	else
		lease_revoke_now(agent);
}

void lease_revoke(struct agent *agent, const struct gs_strv *cards)
{
	gs_strv_merge(&agent->revoke, cards);
	if (cards->n && !uv_is_active((uv_handle_t *)&agent->revoke_timer))
		(void)uv_timer_start(&agent->revoke_timer, on_revoke, REVOKE_MS, 0);
}
