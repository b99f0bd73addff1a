// SPDX-License-Identifier: Apache-2.0
/* Events of the kernel module, told to people and to programs. */
#include <inttypes.h>
#include <stdlib.h>

#include "common/buf.h"
#include "common/duration.h"
#include "common/kname.h"
#include "ctl/ctl.h"
#include "ctl/kmod.h"

/* "held until..." needs no more: why a holding changed, in words. */
static void add_cause(struct gs_buf *text, const struct gs_kevent *e, struct ctl_names *names)
{
	if (e->cause != GS_BY_TOUCH || !e->pid) {
		if (e->cause != GS_BY_NONE)
			gs_buf_addf(text, " (%s)", gs_kname_cause(e->cause));
		return;
	}
	gs_buf_adds(text, " (touch:");
	if (e->has_kind)
		gs_buf_addf(text, " %s", gs_kname_kind(e->kind));
	if (e->has_dev)
		gs_buf_addf(text, " of %s", ctl_kmod_dev(e->dev));
	if (ctl_names_find(names, e->watch))
		gs_buf_addf(text, " by pid %u of %s)", e->pid, ctl_names_label(names, e->watch));
	else
		gs_buf_addf(text, " by pid %u, watch %s)", e->pid, e->watch);
}

static void add_state(struct gs_buf *text, const struct gs_kevent *e, struct ctl_names *names)
{
	gs_buf_addf(text, "holding %s: %s -> %s", ctl_names_label(names, e->name),
		    gs_kname_state(e->from), gs_kname_state(e->state));
	add_cause(text, e, names);
}

char *ctl_kmod_event_text(const struct gs_kevent *e, struct ctl_names *names)
{
	const char *holding = ctl_names_label(names, e->name);
	const char *watch = ctl_names_label(names, e->watch);
	struct gs_buf text = { 0 };
	char longest[GS_DURATION_MAX];

	switch (e->event) {
	case GS_EV_STATE:
		add_state(&text, e, names);
		break;
	case GS_EV_DRAINED:
		gs_buf_addf(&text, "holding %s: the last file of its borrowers is closed", holding);
		break;
	case GS_EV_REVOKED:
		gs_buf_addf(&text, "borrower %s may touch nothing any more%s", watch,
			    e->killed ? ", and was killed" : "");
		break;
	case GS_EV_RELEASED:
		gs_buf_addf(&text, "holding %s: %u held call%s on, the longest after %s", holding,
			    e->held, e->held == 1 ? " goes" : "s go",
			    gs_duration_text(e->held_ms, longest));
		break;
	case GS_EV_HOOKED:
		gs_buf_addf(&text, "%s is hooked", ctl_kmod_dev(e->dev));
		break;
	case GS_EV_UNHOOKED:
		gs_buf_addf(&text, "%s is not hooked any more", ctl_kmod_dev(e->dev));
		add_cause(&text, e, names);
		break;
	case GS_EV_AGENT:
		gs_buf_addf(&text, "the agent is %s", e->agent_alive ? "there" : "gone");
		break;
	case GS_EV_STOLEN:
		gs_buf_addf(&text, "a file of borrower %s was used outside it", watch);
		if (e->pid)
			gs_buf_addf(&text, ", by pid %u", e->pid);
		gs_buf_adds(&text, ", and refused");
		break;
	case GS_EV_LOST:
		gs_buf_adds(&text, "events were lost");
		break;
	default:
		gs_buf_addf(&text, "an event of kind %u, which this program does not know",
			    e->event);
		break;
	}
	return gs_buf_steal(&text);
}

static void set(json_t *json, const char *key, json_t *value)
{
	(void)json_object_set_new(json, key, value);
}

static void set_number(json_t *json, const char *key, uint64_t n)
{
	set(json, key, json_integer((json_int_t)n));
}

static void set_text(json_t *json, const char *key, const char *text)
{
	if (*text)
		set(json, key, json_string(text));
}

/* Whose name that is, where it is known. */
static void set_label(json_t *json, const char *key, struct ctl_names *names, const char *name)
{
	const char *label = ctl_names_find(names, name);

	if (label)
		set(json, key, json_string(label));
}

json_t *ctl_kmod_event_json(const struct gs_kevent *e, struct ctl_names *names)
{
	json_t *json = json_object();

	set_text(json, "event", gs_kname_event(e->event));
	set_number(json, "seq", e->event_seq);
	set_number(json, "time_ns", e->time_ns);
	set_text(json, "holding", e->name);
	set_text(json, "watch", e->watch);
	set_label(json, "holder", names, e->name);
	set_label(json, "container", names, e->watch);
	if (e->event == GS_EV_STATE) {
		set_text(json, "from", gs_kname_state(e->from));
		set_text(json, "state", gs_kname_state(e->state));
	}
	if (e->cause != GS_BY_NONE)
		set_text(json, "cause", gs_kname_cause(e->cause));
	if (e->has_dev) {
		set(json, "dev", ctl_kmod_dev_json(e->dev));
		set_text(json, "node", ctl_kmod_dev(e->dev));
	}
	if (e->has_kind)
		set_text(json, "kind", gs_kname_kind(e->kind));
	if (e->pid) {
		set_number(json, "pid", e->pid);
		set_number(json, "start_time", e->start_time);
		set_number(json, "pidns", e->pidns);
	}
	if (e->event == GS_EV_RELEASED) {
		set_number(json, "held", e->held);
		set_number(json, "held_ms", e->held_ms);
		set_number(json, "faults", e->faults);
	}
	if (e->event == GS_EV_STATE && e->state == GS_LENT)
		set_number(json, "mappings", e->mappings);
	if (e->event == GS_EV_REVOKED)
		set(json, "killed", json_boolean(e->killed));
	if (e->event == GS_EV_AGENT)
		set(json, "alive", json_boolean(e->agent_alive));
	return json;
}
