// SPDX-License-Identifier: Apache-2.0
/* Which shadow pods there should be. */
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/xalloc.h"
#include "controller/shadow_plan.h"
#include "gpushare/resources.h"

/* How long an agent and the scheduler may take until a placed shadow pod's shares are known. */
#define SETTLE_MS 60000

/* What one shadow pod, or all of a node, can still serve. */
struct supply {
	const struct shadow_pod *shadow; /* one that is under way or settles; its place counts */
	unsigned int free; /* shares */
	bool needed;
};

struct planning {
	const struct shadow_rules *rules;
	uint64_t now;
	struct shadow_pod *const *shadows;
	size_t n_shadows;
	struct supply *supplies; /* one for each shadow pod */
	struct shadow_plan *plan;
};

static void add(struct planning *p, enum shadow_act act, struct shadow_pod *pod, char *text)
{
	p->plan->v = gs_grow(p->plan->v, p->plan->n, sizeof(*p->plan->v));
	p->plan->v[p->plan->n++] = (struct shadow_step){ act, pod, text };
}

static void look_again(struct planning *p, uint64_t at)
{
	if (p->plan->next_ms == 0 || at < p->plan->next_ms)
		p->plan->next_ms = at;
}

/* ---- Share pods. */

/* A scheduler that says nothing of shares waits for something that we can't give. */
static bool needs_one(const struct shadow_pod *share)
{
	return !share->over && !*share->node && share->cards > 0 &&
	       strstr(share->why, GS_RESOURCE_SHARE);
}

static int by_age(const void *a, const void *b)
{
	const struct shadow_pod *x = *(struct shadow_pod *const *)a;
	const struct shadow_pod *y = *(struct shadow_pod *const *)b;
	int c = strcmp(x->made, y->made);

	return c ? c : strcmp(x->uid, y->uid);
}

static unsigned int used_on(const char *node, struct shadow_pod *const *shares, size_t n)
{
	unsigned int used = 0;

	for (size_t i = 0; i < n; i++)
		if (!shares[i]->over && strcmp(shares[i]->node, node) == 0)
			used += shares[i]->cards;
	return used;
}

/* Shares on the node of @shadow that its shadow pods have and nobody uses. */
static unsigned int free_on(const struct planning *p, const char *node, unsigned int used)
{
	unsigned int all = 0;

	for (size_t i = 0; i < p->n_shadows; i++)
		if (!p->shadows[i]->over && strcmp(p->shadows[i]->node, node) == 0)
			all += p->shadows[i]->cards * p->rules->share;
	return all > used ? all - used : 0;
}

/* The one that was made for it. */
static struct supply *find_own(struct planning *p, const struct shadow_pod *share)
{
	for (size_t i = 0; i < p->n_shadows; i++)
		if (!p->shadows[i]->over && strcmp(p->shadows[i]->of, share->uid) == 0)
			return &p->supplies[i];
	return NULL;
}

/* Else one under way, or just arrived, that has room and may be where this one may be. */
static struct supply *find_spare(struct planning *p, const struct shadow_pod *share)
{
	for (size_t i = 0; i < p->n_shadows; i++) {
		const struct shadow_pod *shadow = p->shadows[i];

		/* no share of its is a second one of the same card */
		if (!shadow->over && p->supplies[i].free >= share->cards &&
		    shadow->cards >= share->cards && strcmp(shadow->place, share->place) == 0 &&
		    (!shadow->since || p->now - shadow->since < SETTLE_MS))
			return &p->supplies[i];
	}
	return NULL;
}

static void reserve(struct supply *supply, const struct shadow_pod *share)
{
	supply->free -= supply->free < share->cards ? supply->free : share->cards;
	supply->needed = true;
}

static unsigned int cards_of(const struct planning *p, const char *account)
{
	unsigned int cards = 0;

	for (size_t i = 0; i < p->n_shadows; i++)
		if (!p->shadows[i]->over && strcmp(p->shadows[i]->account, account) == 0)
			cards += p->shadows[i]->cards;
	return cards;
}

static void tell_supply(struct planning *p, struct shadow_pod *share, const struct supply *supply)
{
	const struct shadow_pod *shadow = supply->shadow;

	if (!*shadow->node && *shadow->why)
		add(p, SHADOW_TELL, share,
		    gs_asprintf("no card is free to be shared: %.600s", shadow->why));
	else if (!*shadow->node)
		add(p, SHADOW_TELL, share, gs_strdup("a card to be shared is being looked for"));
	else
		add(p, SHADOW_TELL, share,
		    gs_asprintf("a card to be shared is held on node %s", shadow->node));
}

/* @asked: cards that this very plan asks for, of the same account. */
static void plan_share(struct planning *p, struct shadow_pod *share, unsigned int asked)
{
	struct supply *own = find_own(p, share), *supply = own ? own : find_spare(p, share);
	unsigned int cap = p->rules->account_cards, have = cards_of(p, share->account) + asked;

	p->plan->waiting++;
	if (supply) {
		if (!own)
			reserve(supply, share);
		tell_supply(p, share, supply);
		if (supply->shadow->since)
			look_again(p, supply->shadow->since + SETTLE_MS);
	} else if (share->asked) {
		/* its answer comes */
	} else if (share->later > p->now) {
		look_again(p, share->later);
	} else if (cap > 0 && have + share->cards > cap) {
		add(p, SHADOW_TELL, share,
		    gs_asprintf("account %s holds %u cards to be shared, and may hold %u",
				share->account, have, cap));
	} else {
		add(p, SHADOW_MAKE, share, NULL);
	}
}

/* Cards that the plan and requests under way ask for @account. */
static unsigned int asked_for(const struct planning *p, struct shadow_pod *const *needs, size_t n,
			      const char *account)
{
	unsigned int cards = 0;

	for (size_t i = 0; i < p->plan->n; i++)
		if (p->plan->v[i].act == SHADOW_MAKE &&
		    strcmp(p->plan->v[i].pod->account, account) == 0)
			cards += p->plan->v[i].pod->cards;
	for (size_t i = 0; i < n; i++)
		if (needs[i]->asked && strcmp(needs[i]->account, account) == 0)
			cards += needs[i]->cards;
	return cards;
}

/* May the one that the plan makes for @made serve @share too? Then that one waits for it. */
static bool shares_with_new(const struct planning *p, const struct shadow_pod *share,
			    unsigned int *left)
{
	for (size_t i = 0; i < p->plan->n; i++) {
		const struct shadow_pod *made = p->plan->v[i].pod;

		if (p->plan->v[i].act == SHADOW_MAKE && left[i] >= share->cards &&
		    made->cards >= share->cards && strcmp(made->place, share->place) == 0) {
			left[i] -= share->cards;
			return true;
		}
	}
	return false;
}

static void plan_shares(struct planning *p, struct shadow_pod *const *shares, size_t n_shares)
{
	struct shadow_pod **needs = gs_calloc(n_shares + 1, sizeof(void *));
	unsigned int *left = gs_calloc(2 * n_shares + 1, sizeof(*left));
	size_t n = 0;

	for (size_t i = 0; i < n_shares; i++)
		if (needs_one(shares[i]))
			needs[n++] = shares[i];
	qsort(needs, n, sizeof(void *), by_age);
	/* Nobody takes what was made for another one. */
	for (size_t i = 0; i < n; i++) {
		struct supply *own = find_own(p, needs[i]);

		if (own)
			reserve(own, needs[i]);
	}
	for (size_t i = 0; i < n; i++) {
		size_t before = p->plan->n;

		if (!find_own(p, needs[i]) && !find_spare(p, needs[i]) && !needs[i]->asked &&
		    shares_with_new(p, needs[i], left)) {
			p->plan->waiting++;
			continue;
		}
		plan_share(p, needs[i], asked_for(p, needs, n, needs[i]->account));
		if (p->plan->n > before && p->plan->v[before].act == SHADOW_MAKE)
			left[before] = needs[i]->cards * (p->rules->share - 1);
	}
	free(left);
	free(needs);
}

/* ---- Shadow pods. */

static void plan_shadow(struct planning *p, size_t i, unsigned int used)
{
	struct shadow_pod *shadow = p->shadows[i];

	if (p->supplies[i].needed || used > 0) {
		/* Which of a node's cards its share pods use, the API does not tell: all stay. */
		shadow->quiet = 0;
		return;
	}
	if (!*shadow->node) {
		add(p, SHADOW_DELETE, shadow, gs_strdup("nobody needs it any more"));
		return;
	}
	if (!shadow->quiet)
		shadow->quiet = p->now;
	if (p->now - shadow->quiet >= p->rules->quiet_ms)
		add(p, SHADOW_DELETE, shadow, gs_strdup("nobody has shared its card for a while"));
	else
		look_again(p, shadow->quiet + p->rules->quiet_ms);
}

void shadow_plan(struct shadow_pod *const *shares, size_t n_shares,
		 struct shadow_pod *const *shadows, size_t n_shadows,
		 const struct shadow_rules *rules, uint64_t now, struct shadow_plan *ret)
{
	struct planning p = { rules, now, shadows, n_shadows, NULL, ret };
	cleanup_free unsigned int *used = gs_calloc(n_shadows + 1, sizeof(*used));
	cleanup_free struct supply *supplies = gs_calloc(n_shadows + 1, sizeof(*supplies));

	*ret = (struct shadow_plan){ 0 };
	p.supplies = supplies;
	for (size_t i = 0; i < n_shadows; i++) {
		supplies[i].shadow = shadows[i];
		if (!*shadows[i]->node) {
			shadows[i]->since = 0;
			supplies[i].free = shadows[i]->cards * rules->share;
			continue;
		}
		if (!shadows[i]->since)
			shadows[i]->since = now;
		used[i] = used_on(shadows[i]->node, shares, n_shares);
		supplies[i].free = free_on(&p, shadows[i]->node, used[i]);
	}
	plan_shares(&p, shares, n_shares);
	for (size_t i = 0; i < n_shadows; i++) {
		if (shadows[i]->asked)
			continue;
		if (shadows[i]->over)
			add(&p, SHADOW_DELETE, shadows[i], gs_strdup("it has ended"));
		else
			plan_shadow(&p, i, used[i]);
	}
}

void shadow_plan_free(struct shadow_plan *plan)
{
	for (size_t i = 0; i < plan->n; i++)
		free(plan->v[i].text);
	free(plan->v);
	*plan = (struct shadow_plan){ 0 };
}
