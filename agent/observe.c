// SPDX-License-Identifier: Apache-2.0
/* Metrics of the agent. Counters count as things happen; gauges are read when somebody asks. */
#include <string.h>

#include "agent/allocations.h"
#include "agent/http.h"
#include "common/metrics.h"
#include "agent/observe.h"
#include "agent/plugins.h"
#include "agent/sale.h"
#include "agent/sandbox.h"
#include "agent/strangers.h"
#include "agent/usage.h"
#include "common/cleanup.h"
#include "common/kname.h"
#include "common/proc.h"
#include "common/xalloc.h"

/* ---- Families. */

static const double seconds[] = { 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
				  0.25,	 0.5,	 1,	2.5,  5,     10,   30 };

#define COUNTER(id, text, ...)                                                            \
	static const struct metric id = { "gpushare_" #id "_total", text, METRIC_COUNTER, \
					  { __VA_ARGS__ },	    NULL, 0 }
#define GAUGE(id, text, ...)                                                   \
	static const struct metric id = { "gpushare_" #id, text, METRIC_GAUGE, \
					  { __VA_ARGS__ }, NULL, 0 }
#define SECONDS(id, text, ...)                                                                \
	static const struct metric id = {                                                     \
		"gpushare_" #id "_seconds", text, METRIC_HISTOGRAM, { __VA_ARGS__ }, seconds, \
		GS_ARRAY_SIZE(seconds)                                                        \
	}

COUNTER(lends, "Times that a holding was lent.", NULL);
COUNTER(returns, "Times that a lent holding was taken back, by its cause.", "cause");
COUNTER(unheld_returns, "Returns that only the load told, so that nobody was held, by whose.",
	"by");
COUNTER(mappings, "Mappings of users that were taken away when their cards were lent.", NULL);
COUNTER(faults, "Touches of such mappings, by users who were back.", NULL);
COUNTER(samples, "Times that the mappings of an idle card's users were taken away.", NULL);
COUNTER(sampled_touches, "Stores seen by that alone, each the end of an idle time.", NULL);
COUNTER(quarantines, "Returns that borrowers outlived.", NULL);
COUNTER(fail_opens, "Returns that ended without the agent's word, by what ended them.", "cause");
COUNTER(unknowns, "Times that a holding's silence ceased to prove anything.", NULL);
COUNTER(evictions, "Borrowers that were ended, by how.", "outcome");
COUNTER(stolen_files, "Files of borrowers that others used after the return.", NULL);
COUNTER(syscalls_denied, "System calls of the agent that its filter refused.", "call");
COUNTER(device_plugin_allocations, "Requests of the kubelet for devices, by what came of them.",
	"resource", "outcome");
COUNTER(device_plugin_registrations, "Registrations of device plugins with the kubelet.",
	"resource", "outcome");
COUNTER(unconfirmed, "Containers whose cards the kubelet did not confirm, by what became of them.",
	"outcome");
COUNTER(oversale_updates, "Changes of the node's status, or readings for them, by outcome.",
	"outcome");
COUNTER(oversale_limits, "Jobs whose pod was not limited to the memory that it bought.", "to");
COUNTER(oversale_evictions, "Jobs that were evicted, by what was wanted back.", "resource");
COUNTER(view_updates, "Writes of the node's picture for the cluster, by outcome.", "outcome");
SECONDS(hold, "How long a user's call was held, the longest of each return.", NULL);
SECONDS(eviction, "From the end of a lending to the end of a borrower's last process.", NULL);
SECONDS(reaction, "From the kernel's word of a return to the first kill by the agent.", NULL);
GAUGE(cards, "Cards by the state of their holding.", "state");
GAUGE(card_busy_ratio, "Load of a card, 0 to 1.", "card", "vendor");
GAUGE(card_memory_used_bytes, "Memory of a card that is used.", "card", "vendor");
GAUGE(card_memory_bytes, "Memory of a card.", "card", "vendor");
GAUGE(pod_card_memory_bytes, "Card memory that a container uses.", "container", "card", "role");
GAUGE(card_strangers, "1: a process that belongs to nobody known uses the card.", "card");
GAUGE(holding_held_callers, "Callers that are held now.", "holding");
GAUGE(borrowers, "Containers that borrow a card now.", NULL);
GAUGE(kernel_module_loaded, "1: the kernel module is there.", NULL);
GAUGE(device_plugin_devices, "Devices that the kubelet is offered.", "resource", "health");
GAUGE(kubelet_up, "1: the kubelet tells who holds what.", NULL);
GAUGE(oversale_cpu_cores, "CPU that is for sale, that was sold, and in use.", "what");
GAUGE(oversale_memory_bytes, "The same of memory.", "what");
GAUGE(kubernetes_api_up, "1: the Kubernetes API answers.", NULL);

static const struct metric *const families[] = {
	&lends,
	&returns,
	&unheld_returns,
	&mappings,
	&faults,
	&samples,
	&sampled_touches,
	&quarantines,
	&fail_opens,
	&unknowns,
	&evictions,
	&stolen_files,
	&syscalls_denied,
	&device_plugin_allocations,
	&device_plugin_registrations,
	&unconfirmed,
	&oversale_updates,
	&oversale_limits,
	&oversale_evictions,
	&view_updates,
	&hold,
	&eviction,
	&reaction,
	&cards,
	&card_busy_ratio,
	&card_memory_used_bytes,
	&card_memory_bytes,
	&pod_card_memory_bytes,
	&card_strangers,
	&holding_held_callers,
	&borrowers,
	&kernel_module_loaded,
	&device_plugin_devices,
	&kubelet_up,
	&oversale_cpu_cores,
	&oversale_memory_bytes,
	&kubernetes_api_up,
};

/* ---- What happens. */

static void observe_state(struct metrics *m, const struct gs_kevent *event)
{
	switch (event->state) {
	case GS_LENT:
		metrics_inc(m, &lends, 1);
		metrics_inc(m, &mappings, event->mappings);
		break;
	case GS_RETURNING:
		metrics_inc(m, &returns, 1, gs_kname_cause(event->cause));
		break;
	case GS_QUARANTINE:
		metrics_inc(m, &quarantines, 1);
		break;
	case GS_UNKNOWN:
		metrics_inc(m, &unknowns, 1);
		break;
	default:
		break;
	}
	if (event->from == GS_IDLE && event->cause == GS_BY_TOUCH && event->kind == GS_FAULT)
		metrics_inc(m, &sampled_touches, 1);
	if (event->from == GS_RETURNING &&
	    (event->cause == GS_BY_SETTLED || event->cause == GS_BY_HOLD_MAX))
		metrics_inc(m, &fail_opens, 1, gs_kname_cause(event->cause));
}

void observe_event(struct agent *agent, const struct gs_kevent *event)
{
	switch (event->event) {
	case GS_EV_STATE:
		observe_state(agent->metrics, event);
		break;
	case GS_EV_RELEASED:
		metrics_observe(agent->metrics, &hold, event->held_ms / 1000.0);
		metrics_inc(agent->metrics, &faults, (double)event->faults);
		break;
	case GS_EV_STOLEN:
		metrics_inc(agent->metrics, &stolen_files, 1);
		break;
	default:
		break;
	}
}

void observe_eviction(struct agent *agent, const char *outcome, uint64_t after_ms)
{
	metrics_inc(agent->metrics, &evictions, 1, outcome);
	if (strcmp(outcome, "gone") == 0)
		metrics_observe(agent->metrics, &eviction, (double)after_ms / 1000);
}

void observe_unheld(struct agent *agent, const char *by)
{
	metrics_inc(agent->metrics, &unheld_returns, 1, by);
}

void observe_allocation(struct agent *agent, const char *resource, const char *outcome)
{
	metrics_inc(agent->metrics, &device_plugin_allocations, 1, resource, outcome);
}

void observe_registration(struct agent *agent, const char *resource, const char *outcome)
{
	metrics_inc(agent->metrics, &device_plugin_registrations, 1, resource, outcome);
}

void observe_unconfirmed(struct agent *agent, const char *outcome)
{
	metrics_inc(agent->metrics, &unconfirmed, 1, outcome);
}

void observe_sale(struct agent *agent, const char *outcome)
{
	metrics_inc(agent->metrics, &oversale_updates, 1, outcome);
}

void observe_job_limited(struct agent *agent, const char *to)
{
	metrics_inc(agent->metrics, &oversale_limits, 1, to);
}

void observe_job_evicted(struct agent *agent, const char *resource)
{
	metrics_inc(agent->metrics, &oversale_evictions, 1, resource);
}

void observe_view(struct agent *agent, const char *outcome)
{
	metrics_inc(agent->metrics, &view_updates, 1, outcome);
}

void observe_sample(struct agent *agent)
{
	metrics_inc(agent->metrics, &samples, 1);
}

void observe_reaction(struct agent *agent, uint64_t us)
{
	metrics_observe(agent->metrics, &reaction, (double)us / 1e6);
}

/* ---- What is. */

static void show_states(struct agent *agent, const struct cards *all)
{
	struct metrics *m = agent->metrics;
	unsigned int count[__GS_STATE_MAX] = { 0 }, free_cards = 0;

	for (size_t i = 0; i < all->n; i++) {
		const struct plan_holding *plan =
			plan_holding_of_card(&agent->plan, all->v[i].name);
		const struct hold *h = plan ? agent_hold(agent, plan->name) : NULL;

		if (!plan || !plan->members.n)
			free_cards++;
		else
			count[h ? h->state : GS_UNKNOWN]++;
	}
	for (unsigned int i = 0; i < __GS_STATE_MAX; i++)
		metrics_set(m, &cards, count[i], gs_kname_state(i));
	metrics_set(m, &cards, free_cards, "free");
}

static void show_users(struct agent *agent, const struct card *card, const struct load *load)
{
	cleanup_free uint64_t *sums = gs_calloc(agent->containers.n + 1, sizeof(*sums));

	(void)usage_add(agent, load, sums);
	for (size_t i = 0; i < agent->containers.n; i++) {
		const struct container *c = &agent->containers.v[i];
		cleanup_free char *label = NULL;

		if (!c->alive || !gs_strv_has(&c->cards, card->name))
			continue;
		label = container_label(&c->rec);
		metrics_set(agent->metrics, &pod_card_memory_bytes, (double)sums[i], label,
			    card->name, gs_role_name(c->rec.role));
	}
}

static void show_cards(struct agent *agent, const struct cards *all)
{
	struct metrics *m = agent->metrics;

	for (size_t i = 0; i < all->n; i++) {
		const struct card *card = &all->v[i];
		const struct load *load = inventory_load(agent->inventory, card->name);

		if (!load)
			continue;
		if (load->known)
			metrics_set(m, &card_busy_ratio, load->busy, card->name, card->vendor);
		if (load->memory_known) {
			metrics_set(m, &card_memory_used_bytes, (double)load->memory_used,
				    card->name, card->vendor);
			metrics_set(m, &card_memory_bytes, (double)load->memory_total, card->name,
				    card->vendor);
		}
		metrics_set(m, &card_strangers, strangers_on(agent, card->name, load), card->name);
		show_users(agent, card, load);
	}
}

static void show_denied(const char *call, uint64_t count, void *arg)
{
	metrics_set(arg, &syscalls_denied, (double)count, call);
}

static void on_metrics(struct gs_buf *out, void *arg)
{
	static const struct metric *const anew[] = { &card_busy_ratio,	 &card_memory_used_bytes,
						     &card_memory_bytes, &pod_card_memory_bytes,
						     &card_strangers,	 &holding_held_callers };
	struct agent *agent = arg;
	struct metrics *m = agent->metrics;
	const struct cards *all = inventory_cards(agent->inventory);
	unsigned int n = 0;

	reconcile_counts(agent);
	for (size_t i = 0; i < GS_ARRAY_SIZE(anew); i++)
		metrics_clear(m, anew[i]);
	show_states(agent, all);
	show_cards(agent, all);
	for (size_t i = 0; i < agent->state.n_holdings; i++)
		metrics_set(m, &holding_held_callers, agent->state.holdings[i].held,
			    agent->state.holdings[i].name);
	for (size_t i = 0; i < agent->containers.n; i++)
		n += agent->containers.v[i].rec.role == GS_ROLE_BORROWER &&
		     agent->containers.v[i].alive;
	metrics_set(m, &borrowers, n);
	metrics_set(m, &kernel_module_loaded, kernel_link(agent->kernel) != NULL);
	plugins_observe(agent, &device_plugin_devices);
	sale_observe(agent, &oversale_cpu_cores, &oversale_memory_bytes);
	metrics_set(m, &kubelet_up, allocations_up(agent));
	metrics_set(m, &kubernetes_api_up, agent->kube && agent->kube_ok);
	sandbox_denied_each(show_denied, m);
	metrics_text(m, out);
}

/* ---- Health. */

static bool on_healthy(struct gs_buf *why, void *arg)
{
	struct agent *agent = arg;

	(void)why;
	/* the loop turns, or nobody would ask; but does it look at the node? */
	if (gs_boottime_ms() - agent->registry_read_ms < 60000)
		return true;
	gs_buf_adds(why, "the registry was not read for a minute\n");
	return false;
}

static bool on_ready(struct gs_buf *why, void *arg)
{
	struct agent *agent = arg;

	if (!kernel_link(agent->kernel))
		gs_buf_adds(why, "the kernel module is not loaded\n");
	if (agent->kube && !agent->kube_ok)
		gs_buf_adds(why, "the Kubernetes API does not answer\n");
	return why->len == 0;
}

int observe_start(struct agent *agent, struct gs_err *err)
{
	const struct http_ops ops = {
		.metrics = on_metrics,
		.healthy = on_healthy,
		.ready = on_ready,
		.arg = agent,
	};

	agent->metrics = metrics_new();
	for (size_t i = 0; i < GS_ARRAY_SIZE(families); i++)
		metrics_add(agent->metrics, families[i]);
	if (!agent->settings.http_port)
		return 0;
	return http_new(agent->loop, agent->settings.http_address,
			(uint16_t)agent->settings.http_port, &ops, &agent->http, err);
}

void observe_stop(struct agent *agent)
{
	http_free(agent->http);
	agent->http = NULL;
}
