// SPDX-License-Identifier: Apache-2.0
/* One vendor's source: questions to its probe, deadlines, failures. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/inventory_source.h"
#include "agent/probe_child.h"
#include "agent/question.h"
#include "common/cleanup.h"
#include "common/json.h"
#include "common/xalloc.h"

#define PAUSE_MIN_MS 1000
#define PAUSE_MAX_MS 60000
/* The list of cards may take so many times longer than other answers. */
#define LIST_FACTOR 6

unsigned int inventory_deadline_ms = 5000;

struct vendor_source {
	char *probe, *file, *text;
	struct vendor_side side;
	struct vendor_source_ops ops;
	uv_loop_t *loop;
	struct spawner *spawner;
	uv_timer_t deadline, pause;
	unsigned int open; /* timers not closed yet */
	struct probe_child *child;
	bool dying; /* the child was killed and is not gone yet */
	bool wanted; /* start another one when it is gone */
	bool ready; /* it has told its cards, and there is something to measure */
	struct gs_strv ids; /* those cards */
	struct questions list; /* what is to be asked */
	struct question now; /* what was asked */
	bool asking;
	uint64_t seq;
	bool left_out; /* a card could not be listed */
	bool failing; /* and that was told */
	unsigned int failures; /* one after the other */
	size_t clean; /* cards that were read without a mistake since the last one */
};

const struct vendor_side *vendor_source_side(const struct vendor_source *source)
{
	return &source->side;
}

static void drop_questions(struct vendor_source *source)
{
	questions_free(&source->list);
	free(gs_steal(source->now.card));
	source->asking = false;
	(void)uv_timer_stop(&source->deadline);
}

/* Ends the child, whether or not it has done anything wrong. */
static void end_child(struct vendor_source *source)
{
	source->ready = false;
	source->dying = true;
	drop_questions(source);
	probe_child_kill(source->child);
}

static void all_is_well(struct vendor_source *source)
{
	source->failing = false;
	source->failures = 0;
	(void)uv_timer_stop(&source->pause);
}

static void pause_ended(uv_timer_t *timer);

/*
 * Tells it once, and tries again after a pause. It is `failing` until everything was read without
 * a mistake, so that what fails again and again is told once.
 */
static void tell_failure(struct vendor_source *source, const char *why)
{
	uint64_t pause = (uint64_t)PAUSE_MIN_MS << (source->failures < 6 ? source->failures : 6);
	bool first = !source->failing;

	source->clean = 0;
	source->failing = true;
	if (!uv_is_active((uv_handle_t *)&source->pause)) {
		source->failures++;
		(void)uv_timer_start(&source->pause, pause_ended,
				     pause < PAUSE_MAX_MS ? pause : PAUSE_MAX_MS, 0);
	}
	if (first)
		source->ops.failed(source, why, source->ops.arg);
}

/* The probe can't go on. */
static void fail(struct vendor_source *source, const char *why)
{
	if (source->child)
		end_child(source);
	tell_failure(source, why);
	source->ops.unknown(source, source->ops.arg);
}

/* Attaching to a driver that nobody has open takes seconds for each card. */
static unsigned int deadline_of(enum question_kind kind)
{
	return inventory_deadline_ms * (kind == ASK_CARDS ? LIST_FACTOR : 1);
}

static void deadline_passed(uv_timer_t *timer)
{
	static const char *const what[] = { "reading the catalogue's entry", "listing the cards",
					    "reading the cards' load", "reading a card's load" };
	struct vendor_source *source = timer->data;
	char why[120];

	(void)snprintf(why, sizeof(why), "no answer within %u ms while %s",
		       deadline_of(source->now.kind), what[source->now.kind]);
	fail(source, why);
}

static void put_question(struct vendor_source *source, struct gs_buf *out)
{
	static const char *const whens[] = { "now", "due", "free" };

	gs_buf_addf(out, "{\"seq\":%llu", (unsigned long long)++source->seq);
	switch (source->now.kind) {
	case ASK_VENDOR:
		gs_buf_adds(out, ",\"op\":\"vendor\",\"file\":");
		gs_buf_add_json(out, source->file);
		gs_buf_adds(out, ",\"text\":");
		gs_buf_add_json(out, source->text);
		break;
	case ASK_CARDS:
		gs_buf_adds(out, ",\"op\":\"cards\"");
		break;
	case ASK_ONE:
		gs_buf_adds(out, ",\"card\":");
		gs_buf_add_json(out, source->now.card);
		/* fall through */
	case ASK_ALL:
		gs_buf_addf(out, ",\"op\":\"load\",\"processes\":\"%s\"", whens[source->now.when]);
		break;
	}
	gs_buf_adds(out, "}\n");
}

/* Asks the next question, if there is one and nothing is being asked. */
static void pump(struct vendor_source *source)
{
	cleanup_buf struct gs_buf out = { 0 };

	if (!source->child || source->dying || source->asking || !source->list.n)
		return;
	source->now = questions_take(&source->list, 0);
	source->asking = true;
	put_question(source, &out);
	/* The loop's clock stands still while it works; the deadline starts now. */
	uv_update_time(source->loop);
	(void)uv_timer_start(&source->deadline, deadline_passed, deadline_of(source->now.kind), 0);
	probe_child_send(source->child, out.data, out.len);
}

static int take_cards(struct vendor_source *source, const json_t *answer, struct gs_err *err)
{
	const char *left_out = json_string_value(json_object_get(answer, "left_out"));
	struct card *cards;
	size_t n;
	int r = vendor_source_parse_cards(&source->side, json_object_get(answer, "cards"), &cards,
					  &n, err);

	if (r < 0)
		return r;
	gs_strv_free(&source->ids);
	for (size_t i = 0; i < n; i++)
		gs_strv_add(&source->ids, cards[i].id);
	questions_keep(&source->list, &source->ids);
	source->ready = n && source->side.load.source != LOAD_NONE;
	source->left_out = left_out;
	if (!source->ready && !left_out)
		all_is_well(source);
	source->ops.cards(source, cards, n, source->ops.arg);
	/* the list is asked for again after a pause: the card may have been reset */
	if (left_out)
		tell_failure(source, left_out);
	if (source->ready)
		vendor_source_poll(source);
	else if (questions_find(&source->list, ASK_CARDS, NULL) == source->list.n)
		end_child(source); /* a process that waits for nothing costs memory */
	return 0;
}

static int take_loads(struct vendor_source *source, const json_t *answer, bool all,
		      struct gs_err *err)
{
	const json_t *list = json_object_get(answer, "loads"), *item;
	bool clean = true;
	size_t i;

	if (json_array_size(list) != (all ? source->ids.n : 1))
		return gs_err_set(err, EPROTO, "not as many loads as cards");
	json_array_foreach(list, i, item) {
		const char *wrong = json_string_value(json_object_get(item, "error"));
		const char *card = json_string_value(json_object_get(item, "card"));
		int r = source->ops.load(source, item, err, source->ops.arg);

		if (r < 0)
			return r;
		if (wrong) {
			cleanup_free char *why = gs_asprintf("card %s: %s", card, wrong);

			clean = false;
			tell_failure(source, why);
		}
	}
	source->clean = clean ? source->clean + i : 0;
	if (source->clean >= source->ids.n && !source->left_out)
		all_is_well(source);
	return 0;
}

static int take_answer(struct vendor_source *source, const struct question *asked,
		       const json_t *answer, struct gs_err *err)
{
	const char *wrong = json_string_value(json_object_get(answer, "error"));

	if (wrong)
		return gs_err_set(err, EIO, "%s", wrong);
	switch (asked->kind) {
	case ASK_VENDOR:
		break;
	case ASK_CARDS:
		return take_cards(source, answer, err);
	case ASK_ALL:
	case ASK_ONE:
		return take_loads(source, answer, asked->kind == ASK_ALL, err);
	}
	return 0;
}

static void got_line(const char *line, size_t len, void *arg)
{
	struct vendor_source *source = arg;
	cleanup_json json_t *answer = NULL;
	struct question asked = source->now;
	struct gs_err err = { 0 };
	uint64_t seq = 0;
	int r;

	r = gs_json_parse("answer", line, len, &answer, &err);
	if (r == 0)
		r = gs_json_uint(answer, "answer", "seq", true, &seq, &err);
	if (r == 0 && (!source->asking || seq != source->seq))
		r = gs_err_set(&err, EPROTO, "an answer that nobody asked for");
	if (r == 0) {
		source->asking = false;
		source->now.card = NULL;
		(void)uv_timer_stop(&source->deadline);
		r = take_answer(source, &asked, answer, &err);
		free(asked.card);
	}
	if (r < 0)
		fail(source, err.msg);
	else
		pump(source);
}

static void got_wrong(const char *why, void *arg)
{
	fail(arg, why);
}

static void start(struct vendor_source *source);

static void child_ended(const char *how, void *arg)
{
	struct vendor_source *source = arg;
	bool expected = source->dying;

	source->child = NULL;
	source->dying = false;
	source->ready = false;
	drop_questions(source);
	if (!expected)
		fail(source, how);
	else if (source->wanted)
		start(source);
}

static void start(struct vendor_source *source)
{
	const struct probe_child_ops ops = { got_line, got_wrong, child_ended, source };
	struct gs_err err = { 0 };

	source->wanted = false;
	if (probe_child_start(source->loop, source->spawner, source->probe,
			      inventory_deadline_ms / 5 * 4, &ops, &source->child, &err) < 0) {
		fail(source, err.msg);
		return;
	}
	questions_add(&source->list, 0, (struct question){ .kind = ASK_VENDOR });
	questions_add(&source->list, 1, (struct question){ .kind = ASK_CARDS });
	pump(source);
}

static void pause_ended(uv_timer_t *timer)
{
	vendor_source_refresh(timer->data);
}

void vendor_source_refresh(struct vendor_source *source)
{
	uv_timer_t *pause = &source->pause;

	if (source->child && !source->dying) {
		if (questions_find(&source->list, ASK_CARDS, NULL) == source->list.n)
			questions_add(&source->list, source->list.n,
				      (struct question){ .kind = ASK_CARDS });
		pump(source);
	} else if (uv_is_active((uv_handle_t *)pause)) {
		/* What made it fail may be over; but never without any pause. */
		if (uv_timer_get_due_in(pause) > PAUSE_MIN_MS)
			(void)uv_timer_start(pause, pause_ended, PAUSE_MIN_MS, 0);
	} else if (source->child) {
		source->wanted = true;
	} else {
		start(source);
	}
}

void vendor_source_poll(struct vendor_source *source)
{
	struct question question = { .kind = ASK_ALL, .when = PROBE_DUE };

	if (!source->ready)
		return;
	if (source->side.load.source != LOAD_COMMAND) {
		if (questions_find(&source->list, ASK_ALL, NULL) == source->list.n)
			questions_add(&source->list, source->list.n, question);
		pump(source);
		return;
	}
	/* Commands take their time, and the deadline is one answer's. */
	for (size_t i = 0; i < source->ids.n; i++) {
		question.kind = ASK_ONE;
		if (questions_find(&source->list, ASK_ONE, source->ids.v[i]) < source->list.n)
			continue;
		question.card = gs_strdup(source->ids.v[i]);
		questions_add(&source->list, source->list.n, question);
	}
	pump(source);
}

bool vendor_source_read(struct vendor_source *source, const char *id, enum probe_when when)
{
	struct question question = { .kind = ASK_ONE, .when = when };
	size_t at;

	if (!source->ready || !gs_strv_has(&source->ids, id))
		return false;
	at = questions_find(&source->list, ASK_ONE, id);
	if (at < source->list.n) {
		question = questions_take(&source->list, at);
		/* The more of the two: the list now, or when it is due, or not at all. */
		if (when < question.when)
			question.when = when;
	} else {
		question.card = gs_strdup(id);
	}
	questions_add(&source->list, 0, question);
	/* What is being asked may be long. */
	if (source->asking && source->now.kind == ASK_ALL)
		probe_child_send(source->child, "\n", 1);
	pump(source);
	return true;
}

struct vendor_source *vendor_source_new(uv_loop_t *loop, struct spawner *spawner, const char *probe,
					const char *file, char *text, struct vendor_side *side,
					const struct vendor_source_ops *ops)
{
	struct vendor_source *source = gs_calloc(1, sizeof(*source));

	source->loop = loop;
	source->spawner = spawner;
	source->probe = gs_strdup(probe);
	source->file = gs_strdup(file);
	source->text = text;
	source->side = *side;
	*side = (struct vendor_side){ 0 };
	source->ops = *ops;
	(void)uv_timer_init(loop, &source->deadline);
	(void)uv_timer_init(loop, &source->pause);
	source->deadline.data = source->pause.data = source;
	source->open = 2;
	return source;
}

static void timer_closed(uv_handle_t *handle)
{
	struct vendor_source *source = handle->data;
	struct vendor_source_ops ops = source->ops;

	if (--source->open)
		return;
	gs_strv_free(&source->ids);
	vendor_side_free(&source->side);
	free(source->probe);
	free(source->file);
	free(source->text);
	free(source);
	ops.closed(ops.arg);
}

void vendor_source_free(struct vendor_source *source)
{
	drop_questions(source);
	if (source->child)
		probe_child_abandon(gs_steal(source->child));
	uv_close((uv_handle_t *)&source->deadline, timer_closed);
	uv_close((uv_handle_t *)&source->pause, timer_closed);
}
