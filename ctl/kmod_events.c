// SPDX-License-Identifier: Apache-2.0
/* gpusharectl kmod events, gpusharectl events: follow what the kernel module tells. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "ctl/ctl.h"
#include "ctl/kmod.h"

/* What was asked for. */
struct following {
	enum ctl_format format;
	uint64_t count; /* 0: without end */
	struct ctl_names *names; /* NULL: the module's own are shown */
};

/* Says in a line that something happened which is no event. */
static void say(enum ctl_format format, const char *word, const char *text)
{
	if (format == CTL_JSON)
		ctl_kmod_json_line(json_pack("{s:s}", "event", word));
	else
		ctl_kmod_line(0, "%s", text);
}

/* What a reader who missed something has to know now. -ENOENT: the module went meanwhile. */
static int show_state(struct gs_klink *link, const struct following *f, struct gs_err *err)
{
	cleanup_kstate struct gs_kstate state = { 0 };
	int r = gs_klink_dump(link, &state, err);

	if (r < 0)
		return r;
	if (f->format == CTL_JSON)
		ctl_kmod_json_line(
			json_pack("{s:s,s:o}", "event", "dump", "dump", ctl_kmod_json(&state)));
	else
		ctl_kmod_print_holdings(&state, f->names);
	(void)fflush(stdout);
	return 0;
}

static void show_event(const struct gs_kevent *event, const struct following *f)
{
	cleanup_free char *text = NULL;

	if (f->format == CTL_JSON) {
		ctl_kmod_json_line(ctl_kmod_event_json(event, f->names));
		return;
	}
	text = ctl_kmod_event_text(event, f->names);
	ctl_kmod_line(event->time_ns, "%s", text);
}

static int follow(struct gs_klink *link, struct gs_kevents *events, const struct following *f)
{
	struct gs_err err = { 0 };
	uint64_t seen = 0;

	while (!f->count || seen < f->count) {
		enum gs_kevent_what what;
		struct gs_kevent event;
		int r = gs_kevent_next(events, -1, &what, &event, &err);

		if (r == -EPROTO || r == -EPROTONOSUPPORT) {
			ctl_say("%s", err.msg);
			continue;
		}
		if (r < 0 && r != -EINTR)
			return ctl_failed(&err);
		if (r < 0)
			continue;
		r = 0;
		if (what == GS_KEVENT_GOT) {
			show_event(&event, f);
			seen++;
		} else if (what == GS_KEVENT_UNLOADED) {
			say(f->format, "unloaded", "the module was unloaded");
		} else if (what == GS_KEVENT_LOADED) {
			say(f->format, "loaded", "the module was loaded");
			r = show_state(link, f, &err);
		} else if (what == GS_KEVENT_LOST) {
			say(f->format, "lost", "events were lost; the state now is:");
			r = show_state(link, f, &err);
		}
		if (r < 0 && r != -ENOENT && r != -EAGAIN)
			return ctl_failed(&err);
		if (ferror(stdout))
			return CTL_FAILED;
	}
	return CTL_OK;
}

/* A count of events; 0: it is none. */
static uint64_t read_count(const char *text)
{
	char *end;
	unsigned long long n;

	errno = 0;
	n = strtoull(text, &end, 10);
	return *text < '0' || *text > '9' || *end || errno ? 0 : n;
}

int ctl_kmod_follow(const struct ctl_verb *verb, int argc, char **argv, bool named)
{
	static const struct option longs[] = {
		{ "count", required_argument, NULL, 'n' },
		{ "follow", no_argument, NULL, 'f' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	cleanup_klink struct gs_klink *link = NULL;
	cleanup_kevents struct gs_kevents *events = NULL;
	cleanup_config struct gs_config config = { 0 };
	cleanup_names struct ctl_names names = { 0 };
	struct following f = { .format = CTL_TABLE, .names = named ? &names : NULL };
	struct gs_err err = { 0 };
	int opt;

	while ((opt = ctl_getopt(verb, argc, argv, ":fhn:o:", longs)) != -1) {
		if (opt == 'h')
			return ctl_help(verb);
		if (opt == '?')
			return CTL_USAGE;
		/* -f is what other such tools want to hear: it always follows. */
		if (opt == 'n') {
			f.count = read_count(optarg);
			if (!f.count)
				return ctl_misused(verb, "-n takes a number, not %s", optarg);
		}
		if (opt == 'o' && ctl_read_format(verb, optarg, 0, &f.format) != CTL_OK)
			return CTL_USAGE;
	}
	if (optind < argc)
		return ctl_misused(verb, "what is %s?", argv[optind]);
	if (named && ctl_load_config(&config) != CTL_OK)
		return CTL_FAILED;
	names.run_dir = config.run_dir;
	if (ctl_kmod_open(&link) != CTL_OK)
		return CTL_FAILED;
	if (gs_kevents_open(0, &events, &err) < 0)
		return ctl_failed(&err);
	return follow(link, events, &f);
}

int ctl_kmod_events(int argc, char **argv)
{
	return ctl_kmod_follow(&ctl_kmod, argc, argv, false);
}

static int run_events(int argc, char **argv)
{
	return ctl_kmod_follow(&ctl_events, argc, argv, true);
}

const struct ctl_verb ctl_events = {
	.name = "events",
	.summary = "follow what happens to the cards",
	.help = "usage: gpusharectl events [-f] [-n COUNT] [-o json]\n"
		"\n"
		"Prints a line for each event of the kernel module, until ^C: holdings that\n"
		"become idle, are lent and taken back, and by whose touch. As `kmod events`, but\n"
		"with NS/POD/CONTAINER for those that the registry knows.\n"
		"\n"
		"  -f, --follow       what it does in any case\n"
		"  -n, --count COUNT  ends after so many events\n"
		"  -o json            one JSON object a line instead; \"holder\" is whose\n"
		"                     holding it is, \"container\" whose watch\n"
		"\n"
		"Example: gpusharectl events -o json | jq -c 'select(.state==\"lent\")'\n",
	.run = run_events,
};
