// SPDX-License-Identifier: Apache-2.0
/* Which shadow pods there should be. */
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/xalloc.h"
#include "controller/shadow_plan.h"
#include "gpushare/resources.h"

/*
 * How long a placed shadow pod may take until it runs (its image may have to come first), and then
 * an agent and the scheduler until its shares are known. Whoever waits longer for them does so for
 * something else: such a shadow pod holds a card for nobody, and is in the way of a drain.
 */
#define START_MS 300000
#define SETTLE_MS 60000
/*
 * Who was not helped waits for something else, perhaps for ever: a card that is held for it all the
 * same is nobody's. The second one may be where there is room; then there is a pause before each
 * next one, twice as long each time.
 */
#define PAUSE_MIN_MS 60000
#define PAUSE_MAX_MS 960000

/* What is numbered. */
enum numbers { ACCOUNTS, PLACES, NODES, NEEDS, N_NUMBERS };

/* What one shadow pod, or all of a node, can still serve. */
struct supply {
	const struct shadow_pod *shadow; /* one that is under way or settles; its place counts */
	unsigned int free; /* shares */
	bool needed;
	struct supply *next; /* of the same place */
};

/* Cards of one account: held, and asked for by this plan or by requests under way. */
struct account {
	unsigned int held, asked;
};

/* A shadow pod that this plan makes may serve others at the same place. */
struct coming {
	unsigned int cards, left; /* of it; shares */
	struct coming *next;
};

/* Of one place. */
struct place {
	struct supply *supplies;
	struct coming *coming;
};

/* Of one node: shares that its shadow pods make, and that pods use. */
struct node {
	unsigned int all, used;
};

/*
 * There may be thousands of pods of each kind, and whoever asks the webhook waits meanwhile: so
 * each text has a number, and nothing here compares all with all.
 */
struct planning {
	const struct shadow_rules *rules;
	uint64_t now;
	struct shadow_pod *const *shadows;
	size_t n_shadows;
	struct supply *supplies; /* one for each shadow pod */
	struct shadow_plan *plan;
	json_t *numbers[N_NUMBERS];
	struct account *accounts;
	struct place *places;
	struct node *nodes;
	struct coming *comings; /* one for each share pod that may need one */
	size_t n_comings;
};

/* Numbers texts in the order in which they come. */
static size_t number(const struct planning *p, enum numbers of, const char *text)
{
	json_t *numbers = p->numbers[of];
	const json_t *known = json_object_get(numbers, text);
	size_t n = json_object_size(numbers);

	if (known)
		return (size_t)json_integer_value(known);
	(void)json_object_set_new(numbers, text, json_integer((json_int_t)n));
	return n;
}

static struct account *account_of(const struct planning *p, const struct shadow_pod *pod)
{
	return &p->accounts[number(p, ACCOUNTS, pod->account)];
}

static struct place *place_of(const struct planning *p, const struct shadow_pod *pod)
{
	return &p->places[number(p, PLACES, pod->place)];
}

static struct node *node_of(const struct planning *p, const struct shadow_pod *pod)
{
	return &p->nodes[number(p, NODES, pod->node)];
}

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

/* When all know of the shares of a shadow pod that is on a node. */
static uint64_t settles_at(const struct shadow_pod *shadow)
{
	return shadow->since + (shadow->ran ? SETTLE_MS : START_MS);
}

static bool settled(const struct planning *p, const struct shadow_pod *shadow)
{
	return shadow->since && p->now >= settles_at(shadow);
}

/* ---- Share pods. */

/* A scheduler that says nothing of shares waits for something that we can't give. */
static bool needs_one(const struct shadow_pod *share)
{
	return !share->over && !share->ending && !*share->node && share->cards > 0 &&
	       strstr(share->why, GS_RESOURCE_SHARE);
}

static int by_age(const void *a, const void *b)
{
	const struct shadow_pod *x = *(struct shadow_pod *const *)a;
	const struct shadow_pod *y = *(struct shadow_pod *const *)b;
	int c = strcmp(x->made, y->made);

	return c ? c : strcmp(x->uid, y->uid);
}

/* The one that was made for it. */
static struct supply *find_own(const struct planning *p, const struct shadow_pod *share)
{
	const json_t *i = json_object_get(p->numbers[NEEDS], share->uid);

	return i ? &p->supplies[json_integer_value(i)] : NULL;
}

/* Else one under way, or just arrived, that has room and may be where this one may be. */
static struct supply *find_spare(const struct planning *p, const struct shadow_pod *share)
{
	struct supply **at = &place_of(p, share)->supplies;

	while (*at) {
		/* no share of its is a second one of the same card */
		if ((*at)->free >= share->cards && (*at)->shadow->cards >= share->cards)
			return *at;
		if ((*at)->free > 0)
			at = &(*at)->next;
		else
			*at = (*at)->next; /* it never serves anybody else */
	}
	return NULL;
}

static void reserve(const struct planning *p, struct supply *supply, const struct shadow_pod *share)
{
	supply->free -= supply->free < share->cards ? supply->free : share->cards;
	supply->needed |= !settled(p, supply->shadow);
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
		    gs_asprintf("a card to be shared is held on node %s%s", shadow->node,
				!shadow->runs	   ? ", by a pod that does not run yet" :
				settled(p, shadow) ? ", where it still finds no room" :
						     ""));
}

static void plan_one(struct planning *p, struct shadow_pod *share)
{
	struct account *account = account_of(p, share);
	unsigned int cap = p->rules->account_cards, have = account->held + account->asked;
	struct coming *coming;

	if (share->later > p->now) {
		look_again(p, share->later);
		if (share->vain)
			add(p, SHADOW_TELL, share,
			    gs_strdup("a card was held for it where it found no room; another one "
				      "is looked for later"));
	} else if (share->too_large) {
		add(p, SHADOW_TELL, share,
		    gs_strdup("its selectors, affinity and tolerations are too large"));
	} else if (cap > 0 && have + share->cards > cap) {
		add(p, SHADOW_TELL, share,
		    gs_asprintf("account %s holds %u cards to be shared, and may hold %u",
				share->account, have, cap));
	} else {
		add(p, SHADOW_MAKE, share, NULL);
		account->asked += share->cards;
		coming = &p->comings[p->n_comings++];
		coming->cards = share->cards;
		coming->left = share->cards * (p->rules->share - 1);
		coming->next = place_of(p, share)->coming;
		place_of(p, share)->coming = coming;
	}
}

/* May one that the plan makes for another one serve @share too? Then that one waits for it. */
static bool shares_with_new(const struct planning *p, const struct shadow_pod *share)
{
	struct coming **at = &place_of(p, share)->coming;

	while (*at) {
		struct coming *coming = *at;

		if (coming->left >= share->cards && coming->cards >= share->cards) {
			coming->left -= share->cards;
			return true;
		}
		if (coming->left > 0)
			at = &coming->next;
		else
			*at = coming->next;
	}
	return false;
}

/* Has the one that was made for it not helped, and gone? */
static void look_at_own(const struct planning *p, struct shadow_pod *share,
			const struct supply *own)
{
	uint64_t pause = share->vain ? PAUSE_MIN_MS : 0;

	if (own) {
		share->unhelped = settled(p, own->shadow);
		return;
	}
	if (!share->unhelped)
		return;
	share->unhelped = false;
	for (unsigned int i = 1; i < share->vain && pause < PAUSE_MAX_MS; i++)
		pause *= 2;
	share->vain++;
	share->later = p->now + pause;
}

static void plan_share(struct planning *p, struct shadow_pod *share)
{
	struct supply *own = find_own(p, share), *supply = own ? own : find_spare(p, share);

	p->plan->waiting++;
	look_at_own(p, share, own);
	if (supply) {
		if (!own)
			reserve(p, supply, share);
		tell_supply(p, share, supply);
		if (supply->shadow->since && !settled(p, supply->shadow))
			look_again(p, settles_at(supply->shadow));
	} else if (!share->asked && !shares_with_new(p, share)) { /* else its answer comes */
		plan_one(p, share);
	}
}

static void plan_shares(struct planning *p, struct shadow_pod *const *shares, size_t n_shares)
{
	cleanup_free struct shadow_pod **needs = gs_calloc(n_shares + 1, sizeof(void *));
	size_t n = 0;

	for (size_t i = 0; i < n_shares; i++)
		if (needs_one(shares[i]))
			needs[n++] = shares[i];
	qsort(needs, n, sizeof(void *), by_age);
	/* Nobody takes what was made for another one. */
	for (size_t i = 0; i < n; i++) {
		struct supply *own = find_own(p, needs[i]);

		if (own)
			reserve(p, own, needs[i]);
		if (needs[i]->asked)
			account_of(p, needs[i])->asked += needs[i]->cards;
	}
	for (size_t i = 0; i < n; i++)
		plan_share(p, needs[i]);
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

/* What shadow pods hold and make, and what share pods use of it. */
static void survey(struct planning *p, struct shadow_pod *const *shares, size_t n_shares)
{
	for (size_t i = 0; i < n_shares; i++)
		if (!shares[i]->over && *shares[i]->node)
			node_of(p, shares[i])->used += shares[i]->cards;
	for (size_t i = 0; i < p->n_shadows; i++) {
		struct shadow_pod *shadow = p->shadows[i];

		p->supplies[i].shadow = shadow;
		if (!*shadow->node)
			shadow->since = 0;
		else if (!shadow->since || (shadow->runs && !shadow->ran))
			shadow->since = p->now;
		shadow->ran |= shadow->runs;
		if (shadow->over)
			continue;
		account_of(p, shadow)->held += shadow->cards;
		if (*shadow->node)
			node_of(p, shadow)->all += shadow->cards * p->rules->share;
		if (!json_object_get(p->numbers[NEEDS], shadow->of))
			(void)json_object_set_new(p->numbers[NEEDS], shadow->of,
						  json_integer((json_int_t)i));
	}
}

/* What may serve others than those for whom it was made; the first shadow pod comes first. */
static void supply_places(struct planning *p)
{
	for (size_t i = p->n_shadows; i-- > 0;) {
		const struct shadow_pod *shadow = p->shadows[i];
		struct supply *supply = &p->supplies[i];
		struct place *place = place_of(p, shadow);

		if (*shadow->node) {
			const struct node *node = node_of(p, shadow);

			supply->free = node->all > node->used ? node->all - node->used : 0;
		} else {
			supply->free = shadow->cards * p->rules->share;
		}
		if (shadow->over || settled(p, shadow))
			continue;
		supply->next = place->supplies;
		place->supplies = supply;
	}
}

void shadow_plan(struct shadow_pod *const *shares, size_t n_shares,
		 struct shadow_pod *const *shadows, size_t n_shadows,
		 const struct shadow_rules *rules, uint64_t now, struct shadow_plan *ret)
{
	size_t n = n_shares + n_shadows + 1;
	cleanup_free struct supply *supplies = gs_calloc(n_shadows + 1, sizeof(*supplies));
	cleanup_free struct account *accounts = gs_calloc(n, sizeof(*accounts));
	cleanup_free struct place *places = gs_calloc(n, sizeof(*places));
	cleanup_free struct node *nodes = gs_calloc(n, sizeof(*nodes));
	cleanup_free struct coming *comings = gs_calloc(n_shares + 1, sizeof(*comings));
	struct planning p = {
		.rules = rules,
		.now = now,
		.shadows = shadows,
		.n_shadows = n_shadows,
		.supplies = supplies,
		.plan = ret,
		.accounts = accounts,
		.places = places,
		.nodes = nodes,
		.comings = comings,
	};

	*ret = (struct shadow_plan){ 0 };
	for (int i = 0; i < N_NUMBERS; i++)
		p.numbers[i] = json_object();
	survey(&p, shares, n_shares);
	supply_places(&p);
	plan_shares(&p, shares, n_shares);
	for (size_t i = 0; i < n_shadows; i++) {
		unsigned int used = *shadows[i]->node ? node_of(&p, shadows[i])->used : 0;

		if (shadows[i]->asked)
			continue;
		if (shadows[i]->later > now)
			look_again(&p, shadows[i]->later);
		else if (shadows[i]->over)
			add(&p, SHADOW_DELETE, shadows[i], gs_strdup("it has ended"));
		else
			plan_shadow(&p, i, used);
	}
	for (int i = 0; i < N_NUMBERS; i++)
		json_decref(p.numbers[i]);
}

void shadow_plan_free(struct shadow_plan *plan)
{
	for (size_t i = 0; i < plan->n; i++)
		free(plan->v[i].text);
	free(plan->v);
	*plan = (struct shadow_plan){ 0 };
}
