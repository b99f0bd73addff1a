// SPDX-License-Identifier: Apache-2.0
/* gpusharectl kmod status: what the kernel module is and what it keeps. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/duration.h"
#include "common/json.h"
#include "common/kname.h"
#include "common/proc.h"
#include "common/xalloc.h"
#include "ctl/ctl.h"
#include "ctl/kmod.h"
#include "ctl/table.h"

static void add_heading(struct ctl_table *table, const char *const *heading)
{
	for (size_t i = 0; i < table->columns; i++)
		ctl_table_add(table, heading[i]);
}

static void add_number(struct ctl_table *table, uint64_t n)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRIu64, n);
	ctl_table_add(table, text);
}

static void add_duration(struct ctl_table *table, uint64_t ms)
{
	char text[GS_DURATION_MAX];

	ctl_table_add(table, gs_duration_text(ms, text));
}

/* How long ago that instant was. */
static void add_ago(struct ctl_table *table, uint64_t ns)
{
	uint64_t now = gs_boottime_ms(), then = ns / 1000000;
	char text[GS_DURATION_MAX];

	ctl_table_add(table, ns ? gs_duration_short(now > then ? now - then : 0, text) : "never");
}

/* ---- Tables. */

static void print_nodes(const struct gs_kstate *state)
{
	static const char *const heading[] = { "NODE",	 "NUMBER", "DRIVER",
					       "MODULE", "HOOKED", "TOUCHES" };
	cleanup_table struct ctl_table table = { .columns = GS_ARRAY_SIZE(heading) };

	if (!state->n_nodes) {
		puts("no device node is hooked");
		return;
	}
	add_heading(&table, heading);
	for (size_t i = 0; i < state->n_nodes; i++) {
		const struct gs_knode *node = &state->nodes[i];
		cleanup_free char *funcs = ctl_kmod_funcs(node->funcs);
		char number[32];

		(void)snprintf(number, sizeof(number), "%u:%u", gs_kdev_major(node->dev),
			       gs_kdev_minor(node->dev));
		ctl_table_add(&table, ctl_kmod_dev(node->dev));
		ctl_table_add(&table, number);
		ctl_table_add(&table, node->driver);
		ctl_table_add(&table, node->module);
		ctl_table_add(&table, funcs);
		add_number(&table, node->touches);
	}
	ctl_table_print(&table);
}

static void add_devs(struct ctl_table *table, const struct gs_kdevs *devs)
{
	cleanup_buf struct gs_buf text = { 0 };

	for (size_t i = 0; i < devs->n; i++)
		gs_buf_addf(&text, "%s%s", i ? "," : "", ctl_kmod_dev(devs->v[i]));
	ctl_table_add(table, text.data);
}

void ctl_kmod_print_holdings(const struct gs_kstate *state, struct ctl_names *names)
{
	static const char *const heading[] = { "HOLDING", "STATE",	"SINCE",    "TOUCHED",
					       "TOUCHES", "LEND-AFTER", "HOLD-MAX", "SETTLE",
					       "FILES",	  "HELD",	"NODES" };
	cleanup_table struct ctl_table table = { .columns = GS_ARRAY_SIZE(heading) };

	if (!state->n_holdings) {
		puts("there is no holding");
		return;
	}
	add_heading(&table, heading);
	for (size_t i = 0; i < state->n_holdings; i++) {
		const struct gs_kholding *holding = &state->holdings[i];

		ctl_table_add(&table, ctl_names_label(names, holding->name));
		ctl_table_add(&table, gs_kname_state(holding->state));
		add_ago(&table, holding->since_ns);
		add_ago(&table, holding->last_touch_ns);
		add_number(&table, gs_kstate_touches(state, holding));
		add_duration(&table, holding->lend_after_ms);
		add_duration(&table, holding->hold_max_ms);
		add_duration(&table, holding->settle_ms);
		add_number(&table, holding->files);
		add_number(&table, holding->held);
		add_devs(&table, &holding->devs);
	}
	ctl_table_print(&table);
}

/* Who is watched: a process or a cgroup's number. */
static void add_who(struct ctl_table *table, const struct gs_kwatch *watch)
{
	char text[64];

	if (watch->pid)
		(void)snprintf(text, sizeof(text), "pid %u", watch->pid);
	else
		(void)snprintf(text, sizeof(text), "cgroup %" PRIu64 "%s", watch->cgroup_id,
			       watch->cgroup_v1 ? " (v1)" : "");
	ctl_table_add(table, text);
}

static uint64_t watch_touches(const struct gs_kwatch *watch)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < watch->n_counts; i++)
		sum += watch->counts[i].touches;
	return sum;
}

static void print_watches(const struct gs_kstate *state)
{
	static const char *const heading[] = { "WATCH",	  "ROLE",  "CONTAINER", "HOLDINGS",
					       "TOUCHES", "FILES", "NOTES" };
	cleanup_table struct ctl_table table = { .columns = GS_ARRAY_SIZE(heading) };

	if (!state->n_watches) {
		puts("no container is watched");
		return;
	}
	add_heading(&table, heading);
	for (size_t i = 0; i < state->n_watches; i++) {
		const struct gs_kwatch *watch = &state->watches[i];
		cleanup_free char *holdings = gs_strv_join(&watch->holdings);

		ctl_table_add(&table, watch->name);
		ctl_table_add(&table, gs_kname_role(watch->role));
		add_who(&table, watch);
		ctl_table_add(&table, holdings);
		add_number(&table, watch_touches(watch));
		add_number(&table, watch->files);
		ctl_table_add(&table, watch->killed	    ? "killed" :
				      watch->revoked	    ? "revoked" :
				      watch->kill_on_return ? "kill on return" :
							      NULL);
	}
	ctl_table_print(&table);
}

static void print_agent(const struct gs_kstatus *status)
{
	char age[GS_DURATION_MAX];

	if (!status->has_agent)
		puts("agent: none, so nothing is lent");
	else
		printf("agent: %s, netlink port %u, last heartbeat %s ago\n",
		       status->agent_alive ? "alive" : "lost", status->agent_port,
		       gs_duration_text(status->agent_age_ms, age));
}

static void print_status(const struct gs_kstatus *status)
{
	char lend_after[GS_DURATION_MAX], hold_max[GS_DURATION_MAX], settle[GS_DURATION_MAX];

	printf("gpushare.ko %s, ABI %u\n", status->version, status->abi);
	for (unsigned int bit = 0; bit < gs_kname_features(); bit++)
		if (!(status->features & 1U << bit))
			printf("this kernel lacks %s: %s\n", gs_kname_feature(bit),
			       gs_kname_feature_lack(bit));
	print_agent(status);
	printf("defaults: lend after %s, hold at most %s, settle %s\n",
	       gs_duration_text(status->lend_after_ms, lend_after),
	       gs_duration_text(status->hold_max_ms, hold_max),
	       gs_duration_text(status->settle_ms, settle));
	printf("since it was loaded: %" PRIu64 " calls held, %" PRIu64 " returns, of which %" PRIu64
	       " settled without an agent, %" PRIu64 " let go at hold-max, %" PRIu64
	       " quarantined; %" PRIu64 " borrowers killed, %" PRIu64
	       " calls of borrowers refused, "
	       "%" PRIu64 " events lost; %" PRIu64 " mappings taken away, %" PRIu64
	       " touches of those\n",
	       status->held, status->returns, status->settled, status->hold_max, status->quarantine,
	       status->kills, status->refused, status->events_lost, status->mappings,
	       status->faults);
}

void ctl_kmod_print(const struct gs_kstate *state)
{
	print_status(&state->status);
	(void)putchar('\n');
	print_nodes(state);
	(void)putchar('\n');
	ctl_kmod_print_holdings(state, NULL);
	(void)putchar('\n');
	print_watches(state);
}

/* ---- JSON. */

static json_t *number(uint64_t n)
{
	return json_integer((json_int_t)n);
}

static json_t *features_json(uint32_t features, bool has)
{
	json_t *array = json_array();

	for (unsigned int bit = 0; bit < gs_kname_features(); bit++)
		if (!(features & 1U << bit) == !has)
			(void)json_array_append_new(array, json_string(gs_kname_feature(bit)));
	return array;
}

static json_t *status_json(const struct gs_kstatus *status)
{
	json_t *agent, *totals, *defaults;

	agent = json_pack("{s:b,s:o,s:o}", "alive", status->agent_alive, "port",
			  status->has_agent ? number(status->agent_port) : json_null(), "age_ms",
			  status->has_agent ? number(status->agent_age_ms) : json_null());
	totals = json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "held",
			   number(status->held), "returns", number(status->returns), "settled",
			   number(status->settled), "hold_max", number(status->hold_max),
			   "quarantine", number(status->quarantine), "kills", number(status->kills),
			   "refused", number(status->refused), "events_lost",
			   number(status->events_lost), "mappings", number(status->mappings),
			   "faults", number(status->faults));
	defaults = json_pack("{s:o,s:o,s:o}", "lend_after_ms", number(status->lend_after_ms),
			     "hold_max_ms", number(status->hold_max_ms), "settle_ms",
			     number(status->settle_ms));
	return json_pack("{s:s,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "version", status->version, "abi",
			 number(status->abi), "features", features_json(status->features, true),
			 "lacks", features_json(status->features, false), "agent", agent, "totals",
			 totals, "defaults", defaults, "event_seq", number(status->event_seq));
}

static json_t *node_json(const struct gs_knode *node)
{
	json_t *funcs = json_array();

	for (unsigned int kind = 0; kind < 32; kind++)
		if (node->funcs & 1U << kind)
			(void)json_array_append_new(funcs, json_string(gs_kname_kind(kind)));
	return json_pack("{s:o,s:s,s:s,s:s?,s:o,s:o,s:b}", "dev", ctl_kmod_dev_json(node->dev),
			 "node", ctl_kmod_dev(node->dev), "driver", node->driver, "module",
			 *node->module ? node->module : NULL, "hooked", funcs, "touches",
			 number(node->touches), "revocable", node->revocable);
}

static json_t *holding_json(const struct gs_kstate *state, const struct gs_kholding *holding)
{
	json_t *devs = json_array();

	for (size_t i = 0; i < holding->devs.n; i++)
		(void)json_array_append_new(devs, ctl_kmod_dev_json(holding->devs.v[i]));
	return json_pack("{s:s,s:s,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "name",
			 holding->name, "state", gs_kname_state(holding->state), "since_ns",
			 number(holding->since_ns), "last_touch_ns", number(holding->last_touch_ns),
			 "touches", number(gs_kstate_touches(state, holding)), "seq",
			 number(holding->seq), "lend_after_ms", number(holding->lend_after_ms),
			 "hold_max_ms", number(holding->hold_max_ms), "settle_ms",
			 number(holding->settle_ms), "files", number(holding->files), "held",
			 number(holding->held), "mappings", number(holding->mappings), "faults",
			 number(holding->faults), "devs", devs);
}

static json_t *watch_json(const struct gs_kwatch *watch)
{
	json_t *counts = json_object();

	for (size_t i = 0; i < watch->n_counts; i++) {
		uint32_t dev = watch->counts[i].dev;
		cleanup_free char *key =
			gs_asprintf("%u:%u", gs_kdev_major(dev), gs_kdev_minor(dev));

		(void)json_object_set_new(counts, key, number(watch->counts[i].touches));
	}
	return json_pack("{s:s,s:s,s:o,s:o,s:o,s:b,s:o,s:b,s:b,s:b,s:o,s:o}", "name", watch->name,
			 "role", gs_kname_role(watch->role), "pid",
			 watch->pid ? number(watch->pid) : json_null(), "pidns",
			 watch->pidns ? number(watch->pidns) : json_null(), "cgroup_id",
			 watch->cgroup_id ? number(watch->cgroup_id) : json_null(), "cgroup_v1",
			 watch->cgroup_v1, "holdings", gs_json_list(&watch->holdings),
			 "kill_on_return", watch->kill_on_return, "revoked", watch->revoked,
			 "killed", watch->killed, "files", number(watch->files), "touches", counts);
}

json_t *ctl_kmod_json(const struct gs_kstate *state)
{
	json_t *json = status_json(&state->status), *nodes = json_array();
	json_t *holdings = json_array(), *watches = json_array();

	for (size_t i = 0; i < state->n_nodes; i++)
		(void)json_array_append_new(nodes, node_json(&state->nodes[i]));
	for (size_t i = 0; i < state->n_holdings; i++)
		(void)json_array_append_new(holdings, holding_json(state, &state->holdings[i]));
	for (size_t i = 0; i < state->n_watches; i++)
		(void)json_array_append_new(watches, watch_json(&state->watches[i]));
	(void)json_object_set_new(json, "nodes", nodes);
	(void)json_object_set_new(json, "holdings", holdings);
	(void)json_object_set_new(json, "watches", watches);
	return json;
}

int ctl_kmod_status(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	cleanup_klink struct gs_klink *link = NULL;
	cleanup_kstate struct gs_kstate state = { 0 };
	enum ctl_format format = CTL_TABLE;
	struct gs_err err = { 0 };
	int opt;

	while ((opt = ctl_getopt(&ctl_kmod, argc, argv, ":ho:", longs)) != -1) {
		if (opt == 'h')
			return ctl_help(&ctl_kmod);
		if (opt == '?')
			return CTL_USAGE;
		if (ctl_read_format(&ctl_kmod, optarg, 0, &format) != CTL_OK)
			return CTL_USAGE;
	}
	if (optind < argc)
		return ctl_misused(&ctl_kmod, "what is %s?", argv[optind]);
	if (ctl_kmod_open(&link) != CTL_OK)
		return CTL_FAILED;
	if (gs_klink_dump(link, &state, &err) < 0)
		return ctl_failed(&err);
	if (format == CTL_JSON)
		ctl_print_json(ctl_kmod_json(&state));
	else
		ctl_kmod_print(&state);
	return CTL_OK;
}
