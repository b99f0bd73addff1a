// SPDX-License-Identifier: Apache-2.0
/* The probe's answers to the agent's requests. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "agent/probe.h"
#include "agent/probe_scan.h"
#include "common/cleanup.h"
#include "common/json.h"
#include "common/proc.h"
#include "common/xalloc.h"

/* Walks over all processes may take that part of one processor, and come at least so often. */
#define SCAN_SHARE 2000
#define SCAN_MAX_MS 60000

size_t probe_answer_processes = PROBE_LINE_MAX / 2 / 96;

static void drop_cards(struct probe *probe)
{
	for (size_t i = 0; i < probe->n; i++)
		probe_card_free(&probe->v[i]);
	free(gs_steal(probe->v));
	free(gs_steal(probe->left_out));
	probe->n = 0;
}

void probe_free(struct probe *probe)
{
	drop_cards(probe);
	probe_nvml_free(gs_steal(probe->nvml));
	probe_fdinfo_free(gs_steal(probe->fdinfo));
	vendor_side_free(&probe->side);
}

/* A driver's text may be anything; JSON must be UTF-8. */
static void set_text(json_t *obj, const char *key, const char *text)
{
	json_t *value = text ? json_string(text) : NULL;

	if (text && !value)
		value = json_string("?");
	if (value)
		(void)json_object_set_new(obj, key, value);
}

static json_t *node_json(const struct probe_node *node)
{
	json_t *obj = json_object();

	set_text(obj, "path", node->path);
	(void)json_object_set_new(obj, "major", json_integer(major(node->rdev)));
	(void)json_object_set_new(obj, "minor", json_integer(minor(node->rdev)));
	(void)json_object_set_new(obj, "own", json_boolean(node->own));
	(void)json_object_set_new(obj, "revocable", json_boolean(node->revocable));
	(void)json_object_set_new(obj, "hook", json_boolean(node->hook));
	return obj;
}

static json_t *card_json(const struct probe_card *card)
{
	json_t *obj = json_object(), *select = json_array(), *nodes = json_array();

	set_text(obj, "id", card->id);
	set_text(obj, "uuid", card->uuid);
	set_text(obj, "pci", card->pci);
	if (card->index >= 0)
		(void)json_object_set_new(obj, "index", json_integer(card->index));
	for (size_t i = 0; i < card->select.n; i++)
		(void)json_array_append_new(select, json_string(card->select.v[i]));
	for (size_t i = 0; i < card->n_nodes; i++)
		(void)json_array_append_new(nodes, node_json(&card->nodes[i]));
	(void)json_object_set_new(obj, "select", select);
	(void)json_object_set_new(obj, "nodes", nodes);
	return obj;
}

static int answer_vendor(struct probe *probe, const json_t *request, struct gs_err *err)
{
	cleanup_free char *file = NULL, *text = NULL;
	int r = gs_json_str(request, "request", "file", true, &file, err);

	if (r == 0)
		r = gs_json_str(request, "request", "text", true, &text, err);
	if (r < 0 || !text)
		return r;
	probe_free(probe);
	return vendor_side_parse(&probe->side, file, text, strlen(text), err);
}

static int answer_cards(struct probe *probe, json_t *answer, struct gs_err *err)
{
	json_t *list;
	int r = 0;

	drop_cards(probe);
	/* What a library says of a lost card is from its start. */
	if (probe->side.inventory.source != INVENTORY_NVML)
		probe_nvml_free(gs_steal(probe->nvml));
	switch (probe->side.inventory.source) {
	case INVENTORY_NONE:
		break;
	case INVENTORY_NVML:
		r = probe_nvml_cards(probe, err);
		break;
	case INVENTORY_FILES:
		r = probe_files_cards(probe, err);
		break;
	case INVENTORY_COMMAND:
		r = probe_command_cards(probe, err);
		break;
	}
	if (r < 0) {
		drop_cards(probe);
		return r;
	}
	list = json_array();
	for (size_t i = 0; i < probe->n; i++)
		(void)json_array_append_new(list, card_json(&probe->v[i]));
	(void)json_object_set_new(answer, "cards", list);
	set_text(answer, "left_out", probe->left_out);
	return 0;
}

/* What of a card's load is read from the card itself. */
static int read_load(struct probe *probe, struct probe_card *card, struct probe_load *load,
		     struct gs_err *err)
{
	switch (probe->side.load.source) {
	case LOAD_NVML:
		return probe_nvml_load(probe, card, load, err);
	case LOAD_FILES:
		return probe_files_load(probe, card, load, err);
	case LOAD_COMMAND:
		return probe_command_load(probe, card, load, err);
	case LOAD_NONE:
	case LOAD_FDINFO:
		break;
	}
	return 0;
}

static void steal_processes(struct probe_load *to, struct probe_load *from)
{
	free(to->processes);
	to->processes = gs_steal(from->processes);
	to->n_processes = from->n_processes;
	to->processes_known = from->processes_known;
	to->busy_since_ms = from->busy_since_ms;
	gs_strv_free(&to->unseen);
	to->unseen = from->unseen;
	from->unseen = (struct gs_strv){ 0 };
}

static uint64_t cpu_us(void)
{
	struct timespec ts = { 0 };

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/* The processes of some cards out of /proc; they stay unknown where that fails. */
static void scan_processes(struct probe *probe, struct probe_card *cards, size_t n,
			   struct probe_load *loads, enum probe_when when, struct gs_err *err)
{
	struct probe_load *fresh = gs_calloc(n + 1, sizeof(*fresh));
	uint64_t before = cpu_us(), took;
	int r;

	probe_scan_hurry = when == PROBE_DUE && probe->hurries ? STDIN_FILENO : -1;
	if (probe->side.load.processes == PROCESSES_FDINFO)
		r = probe_fdinfo_loads(probe, cards, n, fresh, err);
	else
		r = probe_scan_open(cards, n, fresh, err);
	probe_scan_hurry = -1;
	took = (cpu_us() - before) * SCAN_SHARE * probe->n / n / 1000;
	/* It is due as before, and no mistake. */
	if (r == -EINTR) {
		*err = (struct gs_err){ 0 };
		took = 0;
	}
	for (size_t i = 0; i < n; i++) {
		cards[i].scan_due_ms = gs_boottime_ms() + (took < SCAN_MAX_MS ? took : SCAN_MAX_MS);
		if (r == 0)
			steal_processes(&loads[i], &fresh[i]);
		probe_load_free(&fresh[i]);
	}
	free(fresh);
}

/*
 * A line has its bound. Where all lists together would pass it, cards with more than their part of
 * it have none: what their users do is no reason to know nothing of the others.
 */
static void bound_lists(struct probe_load *loads, struct gs_err *errs, size_t n)
{
	size_t all = 0, part = probe_answer_processes / (n ? n : 1);

	for (size_t i = 0; i < n; i++)
		all += loads[i].n_processes;
	for (size_t i = 0; all > probe_answer_processes && i < n; i++)
		if (loads[i].n_processes > part) {
			loads[i].processes_known = false;
			(void)gs_err_set(&errs[i], E2BIG, "more than %zu processes use it", part);
		}
}

static json_t *load_json(const struct probe_card *card, const struct probe_load *load,
			 uint64_t at_ms, const struct gs_err *wrong)
{
	json_t *obj = json_object(), *list;

	set_text(obj, "card", card->id);
	(void)json_object_set_new(obj, "at_ms", json_integer((json_int_t)at_ms));
	if (wrong->code)
		set_text(obj, "error", wrong->msg);
	if (load->busy_known)
		(void)json_object_set_new(obj, "busy", json_real(load->busy));
	if (load->used_known)
		(void)json_object_set_new(obj, "memory_used", json_integer((json_int_t)load->used));
	if (load->total_known)
		(void)json_object_set_new(obj, "memory_total",
					  json_integer((json_int_t)load->total));
	if (!load->processes_known)
		return obj;
	list = json_array();
	for (size_t i = 0; i < load->n_processes; i++) {
		json_t *process = json_object();

		(void)json_object_set_new(process, "pid", json_integer(load->processes[i].pid));
		(void)json_object_set_new(process, "memory",
					  json_integer((json_int_t)load->processes[i].memory));
		if (load->processes[i].busy_known)
			(void)json_object_set_new(process, "busy",
						  json_real(load->processes[i].busy));
		(void)json_array_append_new(list, process);
	}
	if (load->busy_since_ms)
		(void)json_object_set_new(obj, "busy_since_ms",
					  json_integer((json_int_t)load->busy_since_ms));
	(void)json_object_set_new(obj, "processes", list);
	if (load->unseen.n)
		(void)json_object_set_new(obj, "unseen", gs_json_list(&load->unseen));
	return obj;
}

/* Should the walk over /proc be made now? */
static bool scan_now(const struct probe *probe, const struct probe_card *cards, size_t n,
		     enum probe_when when)
{
	if (probe->side.load.source == LOAD_FDINFO || probe->side.load.processes == PROCESSES_NVML)
		return false;
	return n && (when == PROBE_NOW ||
		     (when == PROBE_DUE && gs_boottime_ms() >= cards[0].scan_due_ms));
}

/* Of @n cards from @cards on; each one's mistakes are its own. */
static void read_loads(struct probe *probe, struct probe_card *cards, size_t n,
		       enum probe_when when, json_t *list)
{
	struct probe_load *loads = gs_calloc(n + 1, sizeof(*loads));
	struct gs_err *errs = gs_calloc(n + 1, sizeof(*errs)), all = { 0 };
	uint64_t *at = gs_calloc(n + 1, sizeof(*at));

	if (probe->side.load.source == LOAD_FDINFO)
		(void)probe_fdinfo_loads(probe, cards, n, loads, &all);
	for (size_t i = 0; i < n; i++) {
		at[i] = gs_boottime_ms();
		errs[i] = all;
		if (read_load(probe, &cards[i], &loads[i], &errs[i]) == 0 &&
		    probe->side.load.processes == PROCESSES_NVML && !loads[i].processes_known)
			(void)probe_nvml_processes(probe, &cards[i], &loads[i], &errs[i]);
	}
	if (scan_now(probe, cards, n, when))
		scan_processes(probe, cards, n, loads, when, &all);
	bound_lists(loads, errs, n);
	for (size_t i = 0; i < n; i++) {
		if (!errs[i].code)
			errs[i] = all;
		(void)json_array_append_new(list, load_json(&cards[i], &loads[i], at[i], &errs[i]));
		probe_load_free(&loads[i]);
	}
	free(loads);
	free(errs);
	free(at);
}

static int answer_load(struct probe *probe, const json_t *request, json_t *answer,
		       struct gs_err *err)
{
	static const char *const whens[] = { "now", "due", "free", NULL };
	cleanup_json json_t *list = json_array();
	cleanup_free char *card = NULL;
	int r, when = PROBE_DUE;

	r = gs_json_str(request, "request", "card", false, &card, err);
	if (r == 0)
		r = gs_json_enum(request, "request", "processes", false, whens, &when, err);
	if (r < 0)
		return r;
	if (!card) {
		read_loads(probe, probe->v, probe->n, (enum probe_when)when, list);
	} else {
		size_t i = 0;

		while (i < probe->n && strcmp(probe->v[i].id, card) != 0)
			i++;
		if (i == probe->n)
			return gs_err_set(err, ENOENT, "no card %s", card);
		read_loads(probe, &probe->v[i], 1, (enum probe_when)when, list);
	}
	(void)json_object_set_new(answer, "loads", gs_steal(list));
	return 0;
}

static int dispatch(struct probe *probe, const json_t *request, json_t *answer, struct gs_err *err)
{
	static const char *const ops[] = { "vendor", "cards", "load", NULL };
	int op = 0, r = gs_json_enum(request, "request", "op", true, ops, &op, err);

	if (r < 0)
		return r;
	if (op == 0)
		return answer_vendor(probe, request, err);
	if (!probe->side.name)
		return gs_err_set(err, EINVAL, "no vendor yet");
	return op == 1 ? answer_cards(probe, answer, err) :
			 answer_load(probe, request, answer, err);
}

void probe_answer(struct probe *probe, const char *line, size_t len, struct gs_buf *out)
{
	cleanup_json json_t *request = NULL, *answer = json_object();
	cleanup_free char *text = NULL;
	struct gs_err err = { 0 };
	uint64_t seq = 0;
	int r = gs_json_parse("request", line, len, &request, &err);

	if (r == 0)
		r = gs_json_uint(request, "request", "seq", true, &seq, &err);
	if (r == 0)
		r = dispatch(probe, request, answer, &err);
	if (r < 0)
		set_text(answer, "error", err.msg);
	(void)json_object_set_new(answer, "seq", json_integer((json_int_t)seq));
	text = json_dumps(answer, JSON_COMPACT);
	gs_buf_adds(out, text ? text : "{}");
	gs_buf_addc(out, '\n');
}
