// SPDX-License-Identifier: Apache-2.0
/* gpusharectl kmod events: follows what the kernel module tells. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "ctl/ctl.h"
#include "ctl/kmod.h"

/* Says in a line that something happened which is no event. */
static void say(enum ctl_format format, const char *word, const char *text)
{
	if (format == CTL_JSON)
		ctl_kmod_json_line(json_pack("{s:s}", "event", word));
	else
		ctl_kmod_line(0, "%s", text);
}

/* What a reader who missed something has to know now. -ENOENT: the module went meanwhile. */
static int show_state(struct gs_klink *link, enum ctl_format format, struct gs_err *err)
{
	cleanup_kstate struct gs_kstate state = { 0 };
	int r = gs_klink_dump(link, &state, err);

	if (r < 0)
		return r;
	if (format == CTL_JSON)
		ctl_kmod_json_line(
			json_pack("{s:s,s:o}", "event", "dump", "dump", ctl_kmod_json(&state)));
	else
		ctl_kmod_print_holdings(&state);
	(void)fflush(stdout);
	return 0;
}

static void show_event(const struct gs_kevent *event, enum ctl_format format)
{
	cleanup_free char *text = NULL;

	if (format == CTL_JSON) {
		ctl_kmod_json_line(ctl_kmod_event_json(event));
		return;
	}
	text = ctl_kmod_event_text(event);
	ctl_kmod_line(event->time_ns, "%s", text);
}

static int follow(struct gs_klink *link, struct gs_kevents *events, enum ctl_format format,
		  uint64_t count)
{
	struct gs_err err = { 0 };
	uint64_t seen = 0;

	while (!count || seen < count) {
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
			show_event(&event, format);
			seen++;
		} else if (what == GS_KEVENT_UNLOADED) {
			say(format, "unloaded", "the module was unloaded");
		} else if (what == GS_KEVENT_LOADED) {
			say(format, "loaded", "the module was loaded");
			r = show_state(link, format, &err);
		} else if (what == GS_KEVENT_LOST) {
			say(format, "lost", "events were lost; the state now is:");
			r = show_state(link, format, &err);
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

int ctl_kmod_events(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "count", required_argument, NULL, 'n' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	cleanup_klink struct gs_klink *link = NULL;
	cleanup_kevents struct gs_kevents *events = NULL;
	enum ctl_format format = CTL_TABLE;
	struct gs_err err = { 0 };
	uint64_t count = 0;
	int opt;

	while ((opt = ctl_getopt(&ctl_kmod, argc, argv, ":hn:o:", longs)) != -1) {
		if (opt == 'h')
			return ctl_help(&ctl_kmod);
		if (opt == '?')
			return CTL_USAGE;
		if (opt == 'n') {
			count = read_count(optarg);
			if (!count)
				return ctl_misused(&ctl_kmod, "-n takes a number, not %s", optarg);
		}
		if (opt == 'o' && ctl_read_format(&ctl_kmod, optarg, false, &format) != CTL_OK)
			return CTL_USAGE;
	}
	if (optind < argc)
		return ctl_misused(&ctl_kmod, "what is %s?", argv[optind]);
	if (ctl_kmod_open(&link) != CTL_OK)
		return CTL_FAILED;
	if (gs_kevents_open(0, &events, &err) < 0)
		return ctl_failed(&err);
	return follow(link, events, format, count);
}
