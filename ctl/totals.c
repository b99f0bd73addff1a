// SPDX-License-Identifier: Apache-2.0
/* How many cards each pod and each tenant has. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/xalloc.h"
#include "ctl/cards.h"
#include "ctl/table.h"
#include "ctl/totals.h"

/* A container, once. */
struct use {
	const struct view_node *node;
	const struct pic_container *container;
	enum part part;
	const char *pod, *tenant;
};

struct uses {
	struct use *v;
	size_t n;
};

static int compare_texts(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

static int by_id(const void *a, const void *b)
{
	const struct use *x = a, *y = b;

	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	return strcmp(x->container->id, y->container->id);
}

static int by_pod(const void *a, const void *b)
{
	const struct use *x = a, *y = b;
	int r = strcmp(x->pod, y->pod);

	if (r == 0 && x->node != y->node)
		r = x->node < y->node ? -1 : 1;
	return r;
}

static int by_tenant(const void *a, const void *b)
{
	const struct use *x = a, *y = b;
	int r = compare_texts(x->tenant, y->tenant);

	if (r == 0)
		r = compare_texts(x->container->partition, y->container->partition);
	return r ? r : by_pod(a, b);
}

static bool same_pod(const struct use *a, const struct use *b)
{
	return by_pod(a, b) == 0;
}

static bool same_tenant(const struct use *a, const struct use *b)
{
	return compare_texts(a->tenant, b->tenant) == 0 &&
	       compare_texts(a->container->partition, b->container->partition) == 0;
}

/* ---- Who there is. */

/* The pod's part of NS/POD/CONTAINER, or all of another name; the namespace's, or NULL. */
static void name_use(struct use *use, struct gs_strv *names)
{
	const char *label = picture_label(use->container);
	const char *slash = strchr(label, '/'), *second = slash ? strchr(slash + 1, '/') : NULL;

	gs_strv_take(names,
		     second ? gs_strndup(label, (size_t)(second - label)) : gs_strdup(label));
	use->pod = names->v[names->n - 1];
	use->tenant = use->container->user_id;
	if (use->tenant || !second)
		return;
	gs_strv_take(names, gs_strndup(label, (size_t)(slash - label)));
	use->tenant = names->v[names->n - 1];
}

static void add_use(struct uses *uses, const struct view_node *node,
		    const struct pic_container *container, enum part part, struct gs_strv *names)
{
	struct use *use;

	uses->v = gs_grow(uses->v, uses->n, sizeof(*uses->v));
	use = &uses->v[uses->n++];
	*use = (struct use){ .node = node, .container = container, .part = part };
	name_use(use, names);
}

static void collect(const struct view *view, struct uses *uses, struct gs_strv *names)
{
	for (size_t i = 0; i < view->n; i++) {
		const struct picture *pic = &view->v[i].pic;

		for (size_t k = 0; k < pic->n_holdings; k++)
			for (size_t m = 0; m < pic->holdings[k].n_members; m++) {
				const struct pic_container *c = &pic->holdings[k].members[m];
				bool holds = c->role && strcmp(c->role, "holder") == 0;

				add_use(uses, &view->v[i], c, holds ? HOLDS : SHARES, names);
			}
		for (size_t k = 0; k < pic->n_borrowers; k++)
			add_use(uses, &view->v[i], &pic->borrowers[k], BORROWS, names);
	}
}

/* One that is member of two holdings is one. */
static void drop_twins(struct uses *uses)
{
	size_t kept = 0;

	if (uses->n)
		qsort(uses->v, uses->n, sizeof(*uses->v), by_id);
	for (size_t i = 0; i < uses->n; i++)
		if (!kept || by_id(&uses->v[kept - 1], &uses->v[i]) != 0)
			uses->v[kept++] = uses->v[i];
	uses->n = kept;
}

/* ---- What they have. */

static bool is_lent(const struct use *use, const char *name)
{
	const struct picture *pic = &use->node->pic;
	const struct pic_card *card = picture_card(pic, name);
	const char *state = card ? picture_state(pic, card) : "";

	return strcmp(state, "lent") == 0 || strcmp(state, "returning") == 0;
}

/* How many different ones there are. */
static size_t count(struct gs_strv *list)
{
	size_t n = 0;

	gs_strv_sort(list);
	for (size_t i = 0; i < list->n; i += picture_run(list, i))
		n++;
	gs_strv_free(list);
	return n;
}

/* The total of @n containers, which are sorted by pod. */
static struct total sum(const struct use *uses, size_t n)
{
	struct total total = { .tenant = uses->tenant, .partition = uses->container->partition };
	struct gs_strv cards[N_PARTS] = { 0 }, lent = { 0 };

	for (size_t i = 0; i < n; i++) {
		const struct pic_container *c = uses[i].container;

		total.pods += i == 0 || !same_pod(&uses[i - 1], &uses[i]);
		if (c->memory_used >= 0) {
			total.memory_known = true;
			total.memory += (uint64_t)c->memory_used;
		}
		for (size_t k = 0; k < c->cards.n; k++) {
			char *card =
				gs_asprintf("%p %s", (const void *)uses[i].node, c->cards.v[k]);

			if (uses[i].part == HOLDS && is_lent(&uses[i], c->cards.v[k]))
				gs_strv_add(&lent, card);
			gs_strv_take(&cards[uses[i].part], card);
		}
	}
	total.held = count(&cards[HOLDS]);
	total.shared = count(&cards[SHARES]);
	total.borrowed = count(&cards[BORROWS]);
	total.lent = count(&lent);
	return total;
}

static void group(const struct uses *uses, bool (*same)(const struct use *a, const struct use *b),
		  struct total **ret, size_t *ret_n)
{
	for (size_t i = 0, n; i < uses->n; i += n) {
		for (n = 1; i + n < uses->n && same(&uses->v[i], &uses->v[i + n]); n++)
			;
		*ret = gs_grow(*ret, *ret_n, sizeof(**ret));
		(*ret)[*ret_n] = sum(&uses->v[i], n);
		if (same == same_pod) {
			(*ret)[*ret_n].pod = uses->v[i].pod;
			(*ret)[*ret_n].node = uses->v[i].node->name;
		}
		(*ret_n)++;
	}
}

void totals_of(const struct view *view, struct totals *ret)
{
	struct uses uses = { 0 };

	*ret = (struct totals){ 0 };
	collect(view, &uses, &ret->names);
	drop_twins(&uses);
	if (uses.n)
		qsort(uses.v, uses.n, sizeof(*uses.v), by_pod);
	group(&uses, same_pod, &ret->pods, &ret->n_pods);
	if (uses.n)
		qsort(uses.v, uses.n, sizeof(*uses.v), by_tenant);
	group(&uses, same_tenant, &ret->tenants, &ret->n_tenants);
	free(uses.v);
}

void totals_free(struct totals *totals)
{
	free(totals->pods);
	free(totals->tenants);
	gs_strv_free(&totals->names);
	*totals = (struct totals){ 0 };
}

/* ---- Showing them. */

static void add_number(struct ctl_table *table, size_t n)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%zu", n);
	ctl_table_add(table, text);
}

static void add_counts(struct ctl_table *table, const struct total *t)
{
	cleanup_free char *memory = t->memory_known ? card_bytes(t->memory) : NULL;

	add_number(table, t->held);
	add_number(table, t->lent);
	add_number(table, t->shared);
	add_number(table, t->borrowed);
	ctl_table_add(table, memory);
}

void totals_print(const struct totals *totals, bool cluster)
{
	/* clang-format off */
	static const char *const counts[] = {
		"HELD", "LENT", "SHARED", "BORROWED", "MEMORY", NULL
	};
	/* clang-format on */
	static const char *const pod[] = { "POD", "TENANT", "PARTITION", NULL };
	static const char *const node[] = { "NODE", NULL };
	static const char *const tenant[] = { "TENANT", "PARTITION", "PODS", NULL };
	cleanup_table struct ctl_table pods = { 0 }, tenants = { 0 };

	ctl_table_heading(&pods, pod);
	if (cluster)
		ctl_table_heading(&pods, node);
	ctl_table_heading(&pods, counts);
	for (size_t i = 0; i < totals->n_pods; i++) {
		const struct total *t = &totals->pods[i];

		ctl_table_add(&pods, t->pod);
		ctl_table_add(&pods, t->tenant);
		ctl_table_add(&pods, t->partition);
		if (cluster)
			ctl_table_add(&pods, t->node);
		add_counts(&pods, t);
	}
	ctl_table_print(&pods);
	(void)putchar('\n');
	ctl_table_heading(&tenants, tenant);
	ctl_table_heading(&tenants, counts);
	for (size_t i = 0; i < totals->n_tenants; i++) {
		const struct total *t = &totals->tenants[i];

		ctl_table_add(&tenants, t->tenant);
		ctl_table_add(&tenants, t->partition);
		add_number(&tenants, t->pods);
		add_counts(&tenants, t);
	}
	ctl_table_print(&tenants);
}

static json_t *json_of(const struct total *t)
{
	json_t *o = json_object();

	if (t->pod) {
		(void)json_object_set_new(o, "pod", json_string(t->pod));
		(void)json_object_set_new(o, "node", t->node ? json_string(t->node) : json_null());
	}
	(void)json_object_set_new(o, "tenant", t->tenant ? json_string(t->tenant) : json_null());
	(void)json_object_set_new(o, "partition",
				  t->partition ? json_string(t->partition) : json_null());
	if (!t->pod)
		(void)json_object_set_new(o, "pods", json_integer((json_int_t)t->pods));
	(void)json_object_set_new(o, "held", json_integer((json_int_t)t->held));
	(void)json_object_set_new(o, "lent", json_integer((json_int_t)t->lent));
	(void)json_object_set_new(o, "shared", json_integer((json_int_t)t->shared));
	(void)json_object_set_new(o, "borrowed", json_integer((json_int_t)t->borrowed));
	(void)json_object_set_new(o, "memory_used",
				  t->memory_known ? json_integer((json_int_t)t->memory) :
						    json_null());
	return o;
}

json_t *totals_json(const struct totals *totals)
{
	json_t *pods = json_array(), *tenants = json_array();

	for (size_t i = 0; i < totals->n_pods; i++)
		(void)json_array_append_new(pods, json_of(&totals->pods[i]));
	for (size_t i = 0; i < totals->n_tenants; i++)
		(void)json_array_append_new(tenants, json_of(&totals->tenants[i]));
	return json_pack("{s:o, s:o}", "pods", pods, "tenants", tenants);
}
