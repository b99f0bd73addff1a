// SPDX-License-Identifier: Apache-2.0
/* gpusharectl lend, reclaim: an operator's word on one card or holding. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/duration.h"
#include "common/proc.h"
#include "common/xalloc.h"
#include "ctl/ask.h"
#include "ctl/ctl.h"
#include "ctl/picture.h"
#include "gpushare/agent.h"

#define RECLAIM_MS 30000
/* An hour: no return takes longer than a card's hold_max, which is seconds. */
#define TIMEOUT_MAX_MS 3600000

static json_t *about(const char *name)
{
	return json_pack("{s:s}", "name", name);
}

/* Prints "<name> <what>": the name may be one that a vendor's tool gave. */
static int done(const char *name, const char *what)
{
	cleanup_free char *line = gs_asprintf("%s %s", name, what);

	puts(ctl_printable(line));
	return CTL_OK;
}

/* The one name that both verbs take; NULL after telling what is wrong. */
static const char *read_name(const struct ctl_verb *verb, int argc, char **argv)
{
	/* NULL for bytes that JSON has no way to write. */
	cleanup_json json_t *text = optind < argc ? json_string(argv[optind]) : NULL;

	if (optind == argc)
		(void)ctl_misused(verb, "%s which card or holding?", verb->name);
	else if (argc - optind > 1)
		(void)ctl_misused(verb, "what is %s?", argv[optind + 1]);
	else if (!text || !*argv[optind])
		(void)ctl_misused(verb, "that is no name: \"%s\"", argv[optind]);
	else
		return argv[optind];
	return NULL;
}

static int run_lend(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	cleanup_config struct gs_config config = { 0 };
	struct gs_err err = { 0 };
	const char *name;
	int opt;

	while ((opt = ctl_getopt(&ctl_lend, argc, argv, ":h", longs)) != -1)
		return opt == 'h' ? ctl_help(&ctl_lend) : CTL_USAGE;
	name = read_name(&ctl_lend, argc, argv);
	if (!name)
		return CTL_USAGE;
	if (ctl_load_config(&config) != CTL_OK)
		return CTL_FAILED;
	if (ctl_ask(&config, GS_OP_LEND, about(name), CTL_ASK_MS, NULL, &err) < 0)
		return ctl_failed(&err);
	return done(name, "is lent");
}

/* ---- reclaim */

/* Its holder goes on in quarantine too, but a borrower has the card still. */
static bool in_quarantine(const struct gs_config *config, const char *name)
{
	cleanup_picture struct picture pic = { 0 };
	const struct pic_holding *holding;
	const struct pic_card *card;

	if (picture_ask(config, &pic, NULL) < 0)
		return false;
	card = picture_card(&pic, name);
	holding = card ? picture_holding_of(&pic, card) : picture_holding(&pic, name);
	return holding && strcmp(holding->state, "quarantine") == 0;
}

static int reclaim(const struct gs_config *config, const char *name, uint64_t timeout_ms)
{
	cleanup_free char *what = NULL;
	char text[GS_DURATION_MAX];
	uint64_t begin = gs_boottime_ms();
	struct gs_err err = { 0 };
	int r = ctl_ask(config, GS_OP_WITHDRAW, about(name), timeout_ms, NULL, &err);
	uint64_t took = gs_boottime_ms() - begin;

	if (r == -ETIMEDOUT) {
		ctl_say("%s is not back after %s; the agent goes on with it (gpusharectl inspect)",
			name, gs_duration_text(timeout_ms, text));
		return CTL_FAILED;
	}
	if (r < 0)
		return ctl_failed(&err);
	if (in_quarantine(config, name)) {
		ctl_say("%s is in quarantine: a borrower did not let go of it in time "
			"(gpusharectl inspect)",
			name);
		return CTL_FAILED;
	}
	what = gs_asprintf("is back after %s", gs_duration_text(took, text));
	return done(name, what);
}

static int read_timeout(const char *text, uint64_t *ret)
{
	struct gs_err err = { 0 };

	if (gs_duration_ms(text, TIMEOUT_MAX_MS, ret, &err) < 0)
		return ctl_misused(&ctl_reclaim, "--timeout: %s", err.msg);
	return *ret ? CTL_OK : ctl_misused(&ctl_reclaim, "--timeout: it is no time at all");
}

static int run_reclaim(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "timeout", required_argument, NULL, 't' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	cleanup_config struct gs_config config = { 0 };
	uint64_t timeout_ms = RECLAIM_MS;
	const char *name;
	int opt;

	while ((opt = ctl_getopt(&ctl_reclaim, argc, argv, ":h", longs)) != -1) {
		if (opt == 'h')
			return ctl_help(&ctl_reclaim);
		if (opt == '?' || read_timeout(optarg, &timeout_ms) != CTL_OK)
			return CTL_USAGE;
	}
	name = read_name(&ctl_reclaim, argc, argv);
	if (!name)
		return CTL_USAGE;
	if (ctl_load_config(&config) != CTL_OK)
		return CTL_FAILED;
	return reclaim(&config, name, timeout_ms);
}

const struct ctl_verb ctl_lend = {
	.name = "lend",
	.summary = "lend a card now",
	.help = "usage: gpusharectl lend CARD|HOLDING\n"
		"\n"
		"Lends the holding of that card, or of that name, now: whatever its pod says of\n"
		"lending, and although somebody may still compute on it. It must be idle: its\n"
		"containers have not touched it for a while. The first touch takes it back.\n"
		"\n"
		"Example: gpusharectl lend nvidia-GPU-5f0c12ab\n",
	.run = run_lend,
};

const struct ctl_verb ctl_reclaim = {
	.name = "reclaim",
	.summary = "take a lent card back now",
	.help = "usage: gpusharectl reclaim [--timeout TIME] CARD|HOLDING\n"
		"\n"
		"Takes the holding of that card, or of that name, back from who borrows it: these\n"
		"containers are killed. Waits until it is back. Nothing is done where it is not\n"
		"lent.\n"
		"\n"
		"  --timeout TIME  waits no longer, such as 5s or 1m; otherwise 30s. What was\n"
		"                  begun goes on\n"
		"\n"
		"Example: gpusharectl reclaim nvidia-GPU-5f0c12ab --timeout 10s\n",
	.run = run_reclaim,
};
