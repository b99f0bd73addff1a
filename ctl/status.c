// SPDX-License-Identifier: Apache-2.0
/* gpusharectl status: the node on one page, and what is wrong with it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/duration.h"
#include "common/json.h"
#include "common/klink.h"
#include "common/xalloc.h"
#include "ctl/ctl.h"
#include "ctl/picture.h"
#include "ctl/table.h"
#include "gpushare/agent.h"

/* Without an agent: is at least the module there? @ret keeps the version. */
static void ask_kernel(struct picture *pic, struct gs_kstatus *status)
{
	cleanup_klink struct gs_klink *link = NULL;
	struct gs_err err = { 0 };
	int r = gs_klink_open(&link, &err);

	pic->loaded = r == 0 ? 1 : r == -ENOENT ? 0 : -1;
	if (r == 0 && gs_klink_status(link, status, NULL) == 0)
		pic->version = status->version;
}

/* The states of the cards, sorted, each as often as there are cards in it. */
static void states_of(const struct picture *pic, struct gs_strv *ret)
{
	for (size_t i = 0; i < pic->n_cards; i++)
		gs_strv_add(ret, picture_state(pic, &pic->cards[i]));
	gs_strv_sort(ret);
}

/* ---- For people. */

static void print_line(char *line)
{
	puts(ctl_printable(line));
	free(line);
}

static void print_cards(const struct picture *pic)
{
	cleanup_strv struct gs_strv states = { 0 };
	struct gs_buf line = { 0 };

	states_of(pic, &states);
	gs_buf_addf(&line, "cards: %zu", pic->n_cards);
	for (size_t i = 0; i < states.n; i += picture_run(&states, i))
		gs_buf_addf(&line, "%s%zu %s", i ? ", " : " (", picture_run(&states, i),
			    states.v[i]);
	gs_buf_adds(&line, states.n ? ")" : "");
	print_line(gs_buf_steal(&line));
}

/* Whose returns are held also where they make no call. */
static void print_revocable(const struct picture *pic)
{
	size_t known = 0, revocable = 0;

	for (size_t i = 0; i < pic->n_cards; i++) {
		known += pic->cards[i].revocable >= 0;
		revocable += pic->cards[i].revocable > 0;
	}
	if (known)
		print_line(gs_asprintf("returns that make no call: held on %zu of %zu cards",
				       revocable, known));
}

static void add_members(struct ctl_table *table, const struct pic_holding *holding, bool holders)
{
	cleanup_strv struct gs_strv names = { 0 };
	cleanup_free char *joined = NULL;

	for (size_t i = 0; i < holding->n_members; i++) {
		const struct pic_container *c = &holding->members[i];

		if ((c->role && strcmp(c->role, "holder") == 0) == holders)
			gs_strv_add(&names, picture_label(c));
	}
	joined = gs_strv_join(&names);
	ctl_table_add(table, joined);
}

static void print_holdings(const struct picture *pic)
{
	static const char *const heading[] = { "HOLDING", "STATE",	 "SINCE",   "CARDS",
					       "HELD-BY", "SHARED-WITH", "NOT-LENT" };
	cleanup_table struct ctl_table table = { .columns = GS_ARRAY_SIZE(heading) };

	if (!pic->n_holdings) {
		puts("nobody holds a card");
		return;
	}
	for (size_t i = 0; i < GS_ARRAY_SIZE(heading); i++)
		ctl_table_add(&table, heading[i]);
	for (size_t i = 0; i < pic->n_holdings; i++) {
		const struct pic_holding *holding = &pic->holdings[i];
		cleanup_free char *cards = gs_strv_join(&holding->cards);
		char since[GS_DURATION_MAX];

		ctl_table_add(&table, holding->name);
		ctl_table_add(&table, holding->state);
		ctl_table_add(&table,
			      holding->since_ms < 0 ?
				      NULL :
				      gs_duration_short((uint64_t)holding->since_ms, since));
		ctl_table_add(&table, cards);
		add_members(&table, holding, true);
		add_members(&table, holding, false);
		ctl_table_add(&table, strcmp(holding->state, "lent") ? holding->why_not : NULL);
	}
	ctl_table_print(&table);
}

static void print_borrowers(const struct picture *pic)
{
	static const char *const heading[] = { "BORROWER", "IS", "CARDS" };
	cleanup_table struct ctl_table table = { .columns = GS_ARRAY_SIZE(heading) };

	if (!pic->n_borrowers) {
		puts("nobody borrows a card");
		return;
	}
	for (size_t i = 0; i < GS_ARRAY_SIZE(heading); i++)
		ctl_table_add(&table, heading[i]);
	for (size_t i = 0; i < pic->n_borrowers; i++) {
		const struct pic_container *borrower = &pic->borrowers[i];
		cleanup_free char *cards = gs_strv_join(&borrower->cards);

		ctl_table_add(&table, picture_label(borrower));
		ctl_table_add(&table, picture_life(borrower));
		ctl_table_add(&table, cards);
	}
	ctl_table_print(&table);
}

static void print_problems(const struct gs_strv *problems)
{
	puts(problems->n ? "wrong:" : "nothing is wrong");
	for (size_t i = 0; i < problems->n; i++)
		print_line(gs_asprintf("  %s", problems->v[i]));
}

static void print(const struct gs_config *config, const struct picture *pic,
		  const struct gs_strv *problems)
{
	const char *module = pic->loaded < 0  ? "not known" :
			     pic->loaded == 0 ? "not loaded" :
			     pic->version     ? pic->version :
						"loaded";

	print_line(gs_asprintf("agent: %s%s/%s", pic->answer ? "" : "no answer at ",
			       config->run_dir, GS_AGENT_SOCKET));
	print_line(gs_asprintf("kernel module: %s", module));
	if (!pic->answer)
		return;
	print_cards(pic);
	print_revocable(pic);
	(void)putchar('\n');
	print_holdings(pic);
	(void)putchar('\n');
	print_borrowers(pic);
	(void)putchar('\n');
	print_problems(problems);
}

/* ---- For programs. */

static json_t *to_json(const struct picture *pic, const struct gs_strv *problems)
{
	json_t *cards = json_array(), *holdings = json_array(), *borrowers = json_array();
	json_t *counts = json_object();
	cleanup_strv struct gs_strv states = { 0 };

	states_of(pic, &states);
	for (size_t i = 0; i < states.n; i += picture_run(&states, i))
		(void)json_object_set_new(counts, states.v[i],
					  json_integer((json_int_t)picture_run(&states, i)));
	for (size_t i = 0; i < pic->n_cards; i++)
		(void)json_array_append_new(cards, picture_json_card(pic, &pic->cards[i]));
	for (size_t i = 0; i < pic->n_holdings; i++)
		(void)json_array_append_new(holdings, picture_json_holding(&pic->holdings[i]));
	for (size_t i = 0; i < pic->n_borrowers; i++)
		(void)json_array_append_new(borrowers, picture_json_container(&pic->borrowers[i]));
	return json_pack("{s:b,s:{s:o,s:s?},s:o,s:o,s:o,s:o,s:o}", "agent", pic->answer != NULL,
			 "kernel", "loaded",
			 pic->loaded < 0 ? json_null() : json_boolean(pic->loaded), "version",
			 pic->version, "states", counts, "cards", cards, "holdings", holdings,
			 "borrowers", borrowers, "problems", gs_json_list(problems));
}

static int show(const struct gs_config *config, enum ctl_format format)
{
	cleanup_picture struct picture pic = { 0 };
	cleanup_strv struct gs_strv problems = { 0 };
	struct gs_kstatus kernel = { 0 };
	struct gs_err err = { 0 };
	int r = picture_ask(config, &pic, &err);

	if (r < 0) {
		ask_kernel(&pic, &kernel);
		gs_strv_add(&problems, err.msg);
	} else {
		picture_problems(&pic, &problems);
	}
	if (format == CTL_JSON)
		ctl_print_json(to_json(&pic, &problems));
	else
		print(config, &pic, &problems);
	return r < 0 ? ctl_failed(&err) : CTL_OK;
}

static int run(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	cleanup_config struct gs_config config = { 0 };
	enum ctl_format format = CTL_TABLE;
	int opt;

	while ((opt = ctl_getopt(&ctl_status, argc, argv, ":ho:", longs)) != -1) {
		if (opt == 'h')
			return ctl_help(&ctl_status);
		if (opt == '?' || ctl_read_format(&ctl_status, optarg, 0, &format) != CTL_OK)
			return CTL_USAGE;
	}
	if (optind < argc)
		return ctl_misused(&ctl_status, "what is %s?", argv[optind]);
	if (ctl_load_config(&config) != CTL_OK)
		return CTL_FAILED;
	return show(&config, format);
}

const struct ctl_verb ctl_status = {
	.name = "status",
	.summary = "this node on one page, and what is wrong with it",
	.help = "usage: gpusharectl status [-o json]\n"
		"\n"
		"Asks the agent: is the kernel module loaded, how many cards are in which state,\n"
		"the holdings and their states, who borrows, and what is wrong. Exits with 1\n"
		"where no agent answers.\n"
		"\n"
		"  -o json  one JSON object instead\n"
		"\n"
		"Example: gpusharectl status -o json | jq -r '.problems[]'\n",
	.run = run,
};
