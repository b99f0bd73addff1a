// SPDX-License-Identifier: Apache-2.0
/* From containers and cards to holdings and watches. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/plan.h"
#include "agent/policy.h"
#include "common/cleanup.h"
#include "common/kname.h"
#include "common/xalloc.h"

static void holding_free(struct plan_holding *h)
{
	gs_strv_free(&h->cards);
	gs_strv_free(&h->members);
	free(h->devs);
}

void plan_free(struct plan *plan)
{
	for (size_t i = 0; i < plan->n_holdings; i++)
		holding_free(&plan->holdings[i]);
	for (size_t i = 0; i < plan->n_watches; i++)
		gs_strv_free(&plan->watches[i].holdings);
	free(plan->holdings);
	free(plan->watches);
	*plan = (struct plan){ 0 };
}

const struct plan_holding *plan_holding(const struct plan *plan, const char *name)
{
	for (size_t i = 0; i < plan->n_holdings; i++)
		if (strcmp(plan->holdings[i].name, name) == 0)
			return &plan->holdings[i];
	return NULL;
}

const struct plan_holding *plan_holding_of_card(const struct plan *plan, const char *card)
{
	for (size_t i = 0; i < plan->n_holdings; i++)
		if (gs_strv_has(&plan->holdings[i].cards, card))
			return &plan->holdings[i];
	return NULL;
}

const struct plan_watch *plan_watch(const struct plan *plan, const char *id)
{
	for (size_t i = 0; i < plan->n_watches; i++)
		if (strcmp(plan->watches[i].container->rec.id, id) == 0)
			return &plan->watches[i];
	return NULL;
}

/* Does it use cards as one of those whom the reserved allocation is for? */
static bool is_user(const struct container *c)
{
	return c->rec.role != GS_ROLE_BORROWER && !c->exempt && c->cards.n &&
	       (c->alive || c->starting);
}

/*
 * Containers that have a card in common are of one holding. Which of them received it from which
 * need not be known: a source that is being restarted does not split it.
 */
static void group(const struct containers *containers, struct plan *plan)
{
	for (size_t i = 0; i < containers->n; i++) {
		const struct container *c = &containers->v[i];
		struct plan_holding h = { 0 };
		size_t kept = 0;

		if (!is_user(c))
			continue;
		gs_strv_merge(&h.cards, &c->cards);
		for (size_t j = 0; j < plan->n_holdings; j++) {
			struct plan_holding *other = &plan->holdings[j];

			if (gs_strv_intersect(&other->cards, &h.cards)) {
				gs_strv_merge(&h.cards, &other->cards);
				gs_strv_merge(&h.members, &other->members);
				holding_free(other);
			} else {
				plan->holdings[kept++] = *other;
			}
		}
		gs_strv_add(&h.members, c->rec.id);
		plan->n_holdings = kept;
		plan->holdings = gs_grow(plan->holdings, plan->n_holdings, sizeof(h));
		plan->holdings[plan->n_holdings++] = h;
	}
}

/* Cards that nobody holds, and that spot containers may have: each a holding of its own. */
static void add_free(const struct cards *cards, const struct gs_strv *free, struct plan *plan)
{
	for (size_t i = 0; i < free->n; i++) {
		struct plan_holding h = { .lend = true, .lend_after_ms = 1 };

		if (plan_holding_of_card(plan, free->v[i]) || !cards_find(cards, free->v[i]))
			continue;
		gs_kname_free(free->v[i], h.name);
		gs_strv_add(&h.cards, free->v[i]);
		plan->holdings = gs_grow(plan->holdings, plan->n_holdings, sizeof(h));
		plan->holdings[plan->n_holdings++] = h;
	}
}

static int compare_devs(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static void set_devs(const struct cards *cards, struct plan_holding *h)
{
	for (size_t i = 0; i < h->cards.n; i++) {
		const struct card *card = cards_find(cards, h->cards.v[i]);

		if (!card)
			continue;
		if (card->settle_ms > h->settle_ms)
			h->settle_ms = card->settle_ms;
		for (size_t j = 0; j < card->n_nodes; j++) {
			uint32_t dev = card->nodes[j].dev;
			size_t k = 0;

			if (!card->nodes[j].hook)
				continue;
			while (k < h->n_devs && h->devs[k] != dev)
				k++;
			if (k < h->n_devs)
				continue;
			h->devs = gs_grow(h->devs, h->n_devs, sizeof(*h->devs));
			h->devs[h->n_devs++] = dev;
		}
	}
	if (h->n_devs)
		qsort(h->devs, h->n_devs, sizeof(*h->devs), compare_devs);
}

bool plan_same_devs(const struct plan_holding *h, const struct gs_kholding *k)
{
	if (h->n_devs != k->devs.n)
		return false;
	for (size_t i = 0; i < k->devs.n; i++)
		if (!bsearch(&k->devs.v[i], h->devs, h->n_devs, sizeof(*h->devs), compare_devs))
			return false;
	return true;
}

/*
 * Named for its holder. While that is being restarted, a holding of the same nodes that the module
 * knows is the same one.
 */
static void set_name(const struct containers *containers, const struct gs_kstate *kernel,
		     struct plan_holding *h)
{
	for (size_t i = 0; i < h->members.n; i++) {
		const struct container *c = containers_find(containers, h->members.v[i]);

		if (c->rec.role == GS_ROLE_HOLDER) {
			gs_kname_holding(&c->rec, h->name);
			return;
		}
	}
	for (size_t i = 0; i < kernel->n_holdings; i++) {
		if (plan_same_devs(h, &kernel->holdings[i])) {
			memcpy(h->name, kernel->holdings[i].name, sizeof(h->name));
			return;
		}
	}
	gs_kname_holding(&containers_find(containers, h->members.v[0])->rec, h->name);
}

static void add_watch(const struct container *c, unsigned int role, uint64_t host_pid_ns,
		      struct plan *plan)
{
	struct plan_watch w = { .container = c, .role = role };

	if (!c->alive || !c->hook.pid)
		return;
	gs_kname_watch(&c->rec, w.name);
	w.by_cgroup = c->rec.shared_pid || c->hook.pid_ns == host_pid_ns;
	for (size_t i = 0; role != GS_EXEMPT && i < c->cards.n; i++) {
		const struct plan_holding *h = plan_holding_of_card(plan, c->cards.v[i]);

		if (h)
			gs_strv_add_once(&w.holdings, h->name);
	}
	if (role != GS_EXEMPT && !w.holdings.n)
		return;
	gs_strv_sort(&w.holdings);
	plan->watches = gs_grow(plan->watches, plan->n_watches, sizeof(w));
	plan->watches[plan->n_watches++] = w;
}

void plan_make(const struct containers *containers, const struct cards *cards,
	       const struct settings *settings, const struct gs_kstate *kernel,
	       uint64_t host_pid_ns, const struct gs_strv *free, struct plan *ret)
{
	*ret = (struct plan){ 0 };
	group(containers, ret);
	add_free(cards, free, ret);
	for (size_t i = 0; i < ret->n_holdings; i++) {
		struct plan_holding *h = &ret->holdings[i];

		gs_strv_sort(&h->cards);
		gs_strv_sort(&h->members);
		set_devs(cards, h);
		if (!h->members.n)
			continue;
		set_name(containers, kernel, h);
		policy_lending(containers, settings, h);
	}
	for (size_t i = 0; i < containers->n; i++) {
		const struct container *c = &containers->v[i];

		if (c->rec.role == GS_ROLE_BORROWER)
			add_watch(c, GS_BORROWER, host_pid_ns, ret);
		else if (c->exempt)
			add_watch(c, GS_EXEMPT, host_pid_ns, ret);
		else
			add_watch(c, GS_MEMBER, host_pid_ns, ret);
	}
}
