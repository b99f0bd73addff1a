/* SPDX-License-Identifier: Apache-2.0 */
/* What play sees: the module's events, and the card's log. */
#ifndef PLAY_SEEN_H
#define PLAY_SEEN_H

#include <regex.h>

#include "common/kevent.h"
#include "common/kname.h"
#include "tests/vm/programs/play/tell.h"

#define MAX_EVENTS 4096
#define LOG "/sys/kernel/debug/fakegpu/"

static struct gs_kevents *listener;

/* An event of this scene; saw has taken it if @used. */
struct seen {
	gs_kname who;
	char text[200];
	bool used;
	struct gs_kevent e;
};

static struct seen events[MAX_EVENTS];
static size_t n_events;
static uint64_t heard_seq; /* of the last one, since the module was loaded */

static void name_event(const struct gs_kevent *e, struct seen *seen)
{
	const char *kind = gs_kname_event(e->event), *who = e->name;
	char *to = seen->text;
	size_t size = sizeof(seen->text);

	switch (e->event) {
	case GS_EV_STATE:
		(void)snprintf(to, size, "%s/%s", gs_kname_state(e->state),
			       gs_kname_cause(e->cause));
		break;
	case GS_EV_REVOKED:
		(void)snprintf(to, size, "revoked:%s%s", e->watch, e->killed ? "!" : "");
		break;
	case GS_EV_RELEASED:
		(void)snprintf(to, size, "released:%u", e->held);
		break;
	case GS_EV_STOLEN:
		(void)snprintf(to, size, "stolen:%s", e->watch);
		who = "-";
		break;
	case GS_EV_AGENT:
		(void)snprintf(to, size, "agent:%d", e->agent_alive);
		break;
	default:
		(void)snprintf(to, size, "%s", kind ? kind : "?");
	}
	(void)snprintf(seen->who, sizeof(seen->who), "%s", *who ? who : "-");
}

/* Takes in what has come, and waits for it at most so long. */
static void hear(int ms)
{
	enum gs_kevent_what what;
	struct gs_kevent e;

	while (gs_kevent_next(listener, ms, &what, &e, &err) == 0 && what != GS_KEVENT_NONE) {
		ms = 0;
		if (what != GS_KEVENT_GOT || n_events == MAX_EVENTS)
			continue;
		heard_seq = e.event_seq;
		events[n_events] = (struct seen){ .e = e };
		name_event(&e, &events[n_events++]);
	}
}

/* Takes in every event that the module has sent so far. */
static void catch_up(void)
{
	uint64_t end = now_ms() + PATIENCE_MS;
	struct gs_kstatus status;

	if (gs_klink_status(kmod, &status, &err) < 0)
		return;
	while (heard_seq < status.event_seq && now_ms() < end)
		hear(5);
}

/* heard: all events so far are old. */
static int do_heard(char **argv)
{
	(void)argv;
	catch_up();
	for (size_t i = 0; i < n_events; i++)
		events[i].used = true;
	return 0;
}

static void tell_events(void)
{
	for (size_t i = 0; i < n_events; i++)
		printf("#   %llu.%03llu %s %s\n",
		       (unsigned long long)(events[i].e.time_ns / 1000000000),
		       (unsigned long long)(events[i].e.time_ns / 1000000 % 1000), events[i].who,
		       events[i].text);
}

/* The last event of that kind in this scene. */
static const struct seen *last_event(const char *who, const char *text)
{
	for (size_t i = n_events; i > 0; i--)
		if (strcmp(events[i - 1].who, who) == 0 && strcmp(events[i - 1].text, text) == 0)
			return &events[i - 1];
	return NULL;
}

/* 1: exactly these are there and not yet used; 0: not all yet; -1: others. */
static int match_events(char **argv)
{
	char **want = argv + 2;

	for (size_t i = 0; i < n_events; i++) {
		if (events[i].used || strcmp(events[i].who, argv[1]) != 0)
			continue;
		if (!*want || strcmp(*want, events[i].text) != 0)
			return -1;
		want++;
	}
	return !*want;
}

static int do_saw(char **argv)
{
	uint64_t end = now_ms() + PATIENCE_MS;
	char got[ORDER_MAX] = "";
	int is;

	hear(0);
	while ((is = match_events(argv)) == 0 && now_ms() < end)
		hear(20);
	/* What must not come would have come by now. */
	if (is > 0) {
		catch_up();
		is = match_events(argv);
	}
	for (size_t i = 0; i < n_events; i++) {
		size_t len = strlen(got);

		if (events[i].used || strcmp(events[i].who, argv[1]) != 0)
			continue;
		events[i].used = true;
		(void)snprintf(got + len, sizeof(got) - len, " %s", events[i].text);
	}
	return is > 0 ? 0 : wrong(EPROTO, "saw:%s", got);
}

static int do_gap(char **argv)
{
	const struct seen *a = last_event(argv[1], argv[2]), *b = last_event(argv[1], argv[3]);
	int64_t ms, most = argv[5] ? (int64_t)atoi(argv[5]) * how_slow() : INT64_MAX;

	if (!a || !b)
		return wrong(ENOENT, "no such event");
	ms = ((int64_t)b->e.time_ns - (int64_t)a->e.time_ns) / 1000000;
	return ms >= atoi(argv[4]) && ms <= most ? 0 : wrong(ERANGE, "%d ms", (int)ms);
}

/* ---- The card's log. */
static int match_log(const char *regex, unsigned int *ret_n, unsigned int *ret_first)
{
	FILE *f = fopen(LOG "log", "re");
	unsigned int n = 0;
	char line[512];
	regex_t re;

	*ret_n = *ret_first = 0;
	if (!f)
		return wrong(errno, LOG "log");
	if (regcomp(&re, regex, REG_EXTENDED | REG_NOSUB) != 0) {
		(void)fclose(f);
		return wrong(EINVAL, "bad expression");
	}
	while (fgets(line, sizeof(line), f)) {
		n++;
		if (regexec(&re, line, 0, NULL, 0) != 0)
			continue;
		*ret_n += 1;
		*ret_first = *ret_first ? *ret_first : n;
	}
	regfree(&re);
	(void)fclose(f);
	return 0;
}

static int do_log(char **argv)
{
	unsigned int n, first, want = (unsigned int)atoi(argv[1]);
	int r = match_log(argv[2], &n, &first);

	return r || n == want ? r : wrong(ERANGE, "%u lines", n);
}

static int do_before(char **argv)
{
	unsigned int n, first, second;
	int r = match_log(argv[1], &n, &first);

	r = r ? r : match_log(argv[2], &n, &second);
	if (r)
		return r;
	if (!first || !second)
		return wrong(ENOENT, "not in the log");
	return first < second ? 0 : wrong(ERANGE, "lines %u and %u", first, second);
}

#endif
