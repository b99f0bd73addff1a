// SPDX-License-Identifier: Apache-2.0
/* gpusharectl inspect: every card, who has it, and why it is not lent; of this node or of all. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/duration.h"
#include "common/xalloc.h"
#include "ctl/ask.h"
#include "ctl/cards.h"
#include "ctl/ctl.h"
#include "ctl/inspect.h"
#include "ctl/inspect_card.h"
#include "ctl/table.h"
#include "ctl/totals.h"
#include "ctl/yaml.h"

struct call {
	const struct ctl_verb *verb;
	bool cluster;
	struct view_kubectl kubectl;
	enum ctl_format format;
	bool totals;
	const char *name; /* of what is meant; NULL: all */
};

/* ---- Tables. */

char *inspect_node(const struct view_node *node)
{
	char age[GS_DURATION_MAX];

	if (!node->stale)
		return gs_strdup(node->name ? node->name : "");
	if (node->age_ms < 0)
		return gs_asprintf("%s (stale)", node->name);
	return gs_asprintf("%s (stale %s)", node->name,
			   gs_duration_short((uint64_t)node->age_ms, age));
}

static void add_wide(struct ctl_table *table, const struct inspect_card *of)
{
	const struct pic_holding *holding = picture_holding_of(&of->node->pic, of->card);
	cleanup_free char *tenants = inspect_tenants(of);
	char touches[24] = "";

	if (holding && holding->touches >= 0)
		(void)snprintf(touches, sizeof(touches), "%" PRId64, holding->touches);
	ctl_table_add(table, of->card->vendor);
	ctl_table_add(table, of->card->id);
	ctl_table_add(table, of->card->holding);
	ctl_table_add(table, tenants);
	ctl_table_add(table, touches);
}

static void add_row(struct ctl_table *table, const struct inspect_card *of, const struct call *call)
{
	const struct picture *pic = &of->node->pic;
	const struct pic_card *card = of->card;
	cleanup_free char *busy = card_busy(card), *memory = card_memory(card);
	char since[GS_DURATION_MAX];

	if (call->cluster) {
		cleanup_free char *node = inspect_node(of->node);

		ctl_table_add(table, node);
	}
	ctl_table_add(table, card->name);
	ctl_table_add(table, picture_state(pic, card));
	ctl_table_add(table, card_since(pic, card, since));
	for (enum part part = HOLDS; part < N_PARTS; part++) {
		cleanup_free char *names = card_names(pic, card, part);

		ctl_table_add(table, names);
	}
	ctl_table_add(table, busy);
	ctl_table_add(table, memory);
	if (call->format == CTL_WIDE)
		add_wide(table, of);
	ctl_table_add(table, picture_why_not(pic, card));
}

static void print_table(const struct inspect_card *cards, size_t n, const struct call *call)
{
	static const char *const first[] = { "NODE", NULL };
	static const char *const all[] = { "CARD",    "STATE",	     "SINCE",
					   "HELD-BY", "SHARED-WITH", "BORROWED-BY",
					   "BUSY",    "MEMORY",	     NULL };
	static const char *const wide[] = { "VENDOR", "ID", "HOLDING", "TENANT", "TOUCHES", NULL };
	static const char *const last[] = { "NOT-LENT", NULL };
	cleanup_table struct ctl_table table = { 0 };

	if (call->cluster)
		ctl_table_heading(&table, first);
	ctl_table_heading(&table, all);
	if (call->format == CTL_WIDE)
		ctl_table_heading(&table, wide);
	ctl_table_heading(&table, last);
	for (size_t i = 0; i < n; i++)
		add_row(&table, &cards[i], call);
	ctl_table_print(&table);
}

/* ---- What is asked for. */

static void print_json(json_t *json, const struct call *call)
{
	if (call->format == CTL_YAML)
		yaml_print(json);
	else
		ctl_print_json(json);
}

static int show_totals(const struct view *view, const struct call *call)
{
	cleanup_totals struct totals totals = { 0 };
	cleanup_free char *summary = NULL;

	totals_of(view, &totals);
	if (call->format == CTL_JSON || call->format == CTL_YAML) {
		print_json(totals_json(&totals), call);
		return CTL_OK;
	}
	summary = view_summary(view);
	puts(ctl_printable(summary));
	(void)putchar('\n');
	totals_print(&totals, call->cluster);
	return CTL_OK;
}

static void show_json(const struct inspect_card *cards, size_t n, const struct call *call)
{
	json_t *array = json_array();

	for (size_t i = 0; i < n; i++)
		(void)json_array_append_new(array, inspect_json(&cards[i]));
	print_json(array, call);
}

/* What is missing from what is shown. */
static void tell_gaps(const struct view *view)
{
	for (size_t i = 0; i < view->wrong.n; i++)
		ctl_say("%s", view->wrong.v[i]);
	for (size_t i = 0; i < view->n; i++)
		if (view->v[i].left_out)
			ctl_say("node %s: %" PRIu64 " containers and cards had no room in its view",
				view->v[i].name, view->v[i].left_out);
}

static int show(const struct view *view, const struct call *call)
{
	cleanup_free struct inspect_card *cards = NULL;
	size_t n;

	tell_gaps(view);
	if (call->totals)
		return show_totals(view, call);
	cards = inspect_choose(view, call->name, &n);
	if (call->name && !n) {
		ctl_say("no card, holding or container with a card is called %s", call->name);
		return CTL_FAILED;
	}
	if (call->format == CTL_JSON || call->format == CTL_YAML) {
		show_json(cards, n, call);
	} else if (call->name && call->format == CTL_TABLE) {
		for (size_t i = 0; i < n; i++) {
			if (i)
				(void)putchar('\n');
			inspect_print_card(&cards[i]);
		}
	} else if (n) {
		print_table(cards, n, call);
	} else if (call->cluster && !view->n) {
		ctl_say("no node tells of its cards in namespace %s", call->kubectl.namespace);
	} else {
		ctl_say("the agent knows no card of %s", call->cluster ? "any node" : "this node");
	}
	return CTL_OK;
}

static int look(const struct call *call, struct view *view)
{
	cleanup_config struct gs_config config = { 0 };
	struct gs_err err = { 0 };
	int r;

	if (call->cluster) {
		r = view_of_cluster(&call->kubectl, view, &err);
	} else {
		if (ctl_load_config(&config) != CTL_OK)
			return CTL_FAILED;
		r = view_of_agent(&config, CTL_ASK_MS, view, &err);
	}
	return r < 0 ? ctl_failed(&err) : CTL_OK;
}

bool inspect_cluster_option(int opt, struct view_kubectl *kubectl)
{
	switch (opt) {
	case OPT_NODE:
		kubectl->node = optarg;
		return true;
	case OPT_CONTEXT:
		kubectl->context = optarg;
		return true;
	case OPT_KUBECONFIG:
		kubectl->kubeconfig = optarg;
		return true;
	case 'n':
		kubectl->namespace = optarg;
		return true;
	default:
		return false;
	}
}

static int read_options(int argc, char **argv, struct call *call, bool *ret_help)
{
	static const struct option longs[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "totals", no_argument, NULL, 't' },
		INSPECT_CLUSTER_OPTIONS,
		{ NULL, 0, NULL, 0 },
	};
	/* without those of the cluster */
	static const struct option plain[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "totals", no_argument, NULL, 't' },
		{ NULL, 0, NULL, 0 },
	};
	const char *shorts = call->cluster ? ":ho:n:" : ":ho:";
	int opt;

	while ((opt = ctl_getopt(call->verb, argc, argv, shorts, call->cluster ? longs : plain)) !=
	       -1) {
		if (inspect_cluster_option(opt, &call->kubectl))
			continue;
		if (opt == 'h')
			*ret_help = true;
		else if (opt == 't')
			call->totals = true;
		else if (opt == '?' ||
			 ctl_read_format(call->verb, optarg, CTL_ALSO_WIDE | CTL_ALSO_YAML,
					 &call->format) != CTL_OK)
			return CTL_USAGE;
	}
	call->name = argv[optind];
	if (argc - optind > 1)
		return ctl_misused(call->verb, "what is %s?", argv[optind + 1]);
	if (call->totals && call->name)
		return ctl_misused(call->verb, "--totals are of all cards");
	return CTL_OK;
}

static int run(const struct ctl_verb *verb, bool cluster, int argc, char **argv)
{
	struct call call = { .verb = verb,
			     .cluster = cluster,
			     .kubectl.namespace = INSPECT_NAMESPACE };
	cleanup_view struct view view = { 0 };
	bool help = false;
	int r = read_options(argc, argv, &call, &help);

	if (r != CTL_OK)
		return r;
	if (help)
		return ctl_help(verb);
	r = look(&call, &view);
	return r == CTL_OK ? show(&view, &call) : r;
}

static int run_node(int argc, char **argv)
{
	return run(&ctl_inspect, false, argc, argv);
}

static int run_cluster(int argc, char **argv)
{
	return run(&ctl_cluster_inspect, true, argc, argv);
}

const struct ctl_verb ctl_inspect = {
	.name = "inspect",
	.summary = "each card: who has it, since when, why it is not lent",
	.help = "usage: gpusharectl inspect [-o json|yaml|wide] [CARD|HOLDING|CONTAINER]\n"
		"       gpusharectl inspect --totals [-o json|yaml]\n"
		"\n"
		"Lists every card of this node: its state and since when, who holds it, whom it\n"
		"is shared with, who borrows it, its load and memory, and why it is not lent.\n"
		"With a name, all about the cards that it is about: a card (its name, id or\n"
		"UUID), a holding, or a container (NS/POD/CONTAINER, or its id or at least the\n"
		"first six characters of that).\n"
		"\n"
		"  -o wide   also vendor, id, holding, the holder's account, touches\n"
		"  -o json   JSON instead: an array of cards; yaml likewise\n"
		"  --totals  how many cards each pod and each tenant holds, has lent, shares and\n"
		"            borrows; a tenant is a pod's account (user_id), or its namespace\n"
		"\n"
		"Example: gpusharectl inspect team-a/dev/main\n",
	.run = run_node,
};

const struct ctl_verb ctl_cluster_inspect = {
	.name = "inspect",
	.summary = "each card of the cluster: who has it, since when, why it is not lent",
	.help = "usage: kubectl gpushare inspect [-o json|yaml|wide] [--node NODE]\n"
		"                                [CARD|HOLDING|CONTAINER]\n"
		"       kubectl gpushare inspect --totals [-o json|yaml] [--node NODE]\n"
		"\n"
		"Lists every card of every node whose agent tells the cluster: its state and\n"
		"since when, who holds it, whom it is shared with, who borrows it, its load and\n"
		"memory, and why it is not lent. With a name, all about the cards that it is\n"
		"about: a card (its name, id or UUID), a holding, or a container\n"
		"(NS/POD/CONTAINER, or its id or at least the first six characters of that).\n"
		"A node that has told nothing for eleven minutes is marked stale.\n"
		"\n"
		"  -o wide            also vendor, id, holding, the holder's account, touches\n"
		"  -o json            JSON instead: an array of cards; yaml likewise\n"
		"  --totals           how many cards each pod and each tenant holds, has lent,\n"
		"                     shares and borrows; a tenant is the account (user_id) of a\n"
		"                     pod, or its namespace\n"
		"  --node NODE        that node alone\n"
		"  -n, --namespace NAMESPACE\n"
		"                     where agents write; otherwise gpushare-system\n"
		"  --context NAME, --kubeconfig FILE\n"
		"                     as of kubectl, which has to be in PATH\n"
		"\n"
		"Example: kubectl gpushare inspect --node gpu-7 -o wide\n",
	.run = run_cluster,
};
