// SPDX-License-Identifier: Apache-2.0
/*
 * Load from DRM fdinfo (Documentation/gpu/drm-usage-stats.rst of the kernel): each open file of a
 * card tells how long engines worked for it and what memory it has. Files of one client, shared by
 * processes or duplicated, tell the same numbers and count once.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/probe_scan.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/glob.h"
#include "common/xalloc.h"

#define FDINFO_MAX 65536
/* Of one card. They are compared with each other: a card with more tells nothing. */
#define CLIENTS_MAX 4096
#define NAMES_MAX 64 /* engines or regions of a client */
/* Between the two looks of a first reading. */
#define FIRST_MS 100

enum value_kind { ENGINE_NS, ENGINE_CAPACITY, ENGINE_CYCLES, ENGINE_TOTAL, REGION_USED };

/* An engine or a region of a client. */
struct named {
	char *name;
	bool region;
	bool cycles; /* tells cycles of a clock, not nanoseconds */
	uint64_t value, total, capacity;
	int rank; /* of a region's key: the better one counts */
};

struct client {
	uint64_t id;
	pid_t *pids; /* whose file it is; the last one's files we look at */
	size_t n_pids;
	bool tells; /* how its engines work */
	uint64_t memory;
	struct named *v;
	size_t n;
};

/* What one card's clients said at one moment. */
struct sample {
	char *card;
	uint64_t at_ns; /* 0: never */
	bool untold; /* a file told nothing of engines */
	struct client *v;
	size_t n;
};

struct fdinfo {
	struct sample *v;
	size_t n;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_BOOTTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void client_free(struct client *client)
{
	for (size_t i = 0; i < client->n; i++)
		free(client->v[i].name);
	free(client->v);
	free(client->pids);
}

static void sample_free(struct sample *sample)
{
	for (size_t i = 0; i < sample->n; i++)
		client_free(&sample->v[i]);
	free(sample->v);
	free(sample->card);
	*sample = (struct sample){ 0 };
}

void probe_fdinfo_free(struct fdinfo *fdinfo)
{
	if (!fdinfo)
		return;
	for (size_t i = 0; i < fdinfo->n; i++)
		sample_free(&fdinfo->v[i]);
	free(fdinfo->v);
	free(fdinfo);
}

static struct named *named(struct client *client, const char *name, bool region)
{
	for (size_t i = 0; i < client->n; i++)
		if (client->v[i].region == region && strcmp(client->v[i].name, name) == 0)
			return &client->v[i];
	if (client->n == NAMES_MAX)
		return NULL;
	client->v = gs_grow(client->v, client->n, sizeof(*client->v));
	client->v[client->n] = (struct named){ .name = gs_strdup(name), .region = region };
	return &client->v[client->n++];
}

/* "drm-engine-render" and such; the longer beginning first. */
static const struct {
	const char *prefix;
	enum value_kind kind;
	int rank;
} keys[] = {
	{ "drm-engine-capacity-", ENGINE_CAPACITY, 0 },
	{ "drm-engine-", ENGINE_NS, 0 },
	{ "drm-cycles-", ENGINE_CYCLES, 0 },
	{ "drm-total-cycles-", ENGINE_TOTAL, 0 },
	{ "drm-resident-", REGION_USED, 3 },
	{ "drm-memory-", REGION_USED, 2 },
	{ "drm-total-", REGION_USED, 1 },
};

static uint64_t with_unit(uint64_t n, const char *unit)
{
	unit += strspn(unit, " \t");
	if (strncmp(unit, "KiB", 3) == 0)
		return n << 10;
	if (strncmp(unit, "MiB", 3) == 0)
		return n << 20;
	return n;
}

static void take_value(struct client *client, size_t key, const char *name, uint64_t n,
		       const char *unit)
{
	struct named *v = named(client, name, keys[key].kind == REGION_USED);

	if (!v)
		return;
	switch (keys[key].kind) {
	case ENGINE_NS:
		v->value = n;
		client->tells = true;
		break;
	case ENGINE_CAPACITY:
		v->capacity = n;
		break;
	case ENGINE_CYCLES:
		v->value = n;
		v->cycles = client->tells = true;
		break;
	case ENGINE_TOTAL:
		v->total = n;
		break;
	case REGION_USED:
		if (keys[key].rank > v->rank) {
			v->rank = keys[key].rank;
			v->value = with_unit(n, unit);
		}
		break;
	}
}

static void parse(char *text, struct client *client, bool *ret_has_id)
{
	char *line, *save = NULL, *value, *unit;

	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		uint64_t n;

		value = strchr(line, ':');
		if (!value || strncmp(line, "drm-", 4) != 0)
			continue;
		*value++ = '\0';
		n = strtoull(value, &unit, 10);
		if (unit == value)
			continue;
		if (strcmp(line, "drm-client-id") == 0) {
			client->id = n;
			*ret_has_id = true;
			continue;
		}
		for (size_t i = 0; i < GS_ARRAY_SIZE(keys); i++) {
			size_t len = strlen(keys[i].prefix);

			if (strncmp(line, keys[i].prefix, len) != 0)
				continue;
			take_value(client, i, line + len, n, unit);
			break;
		}
	}
}

static bool counts(const struct gs_strv *globs, const char *name)
{
	return !globs->n || gs_glob_any(globs, name);
}

struct reading {
	const struct vendor_side *side;
	const struct probe_card *cards;
	struct probe_load *rets;
	struct sample *samples;
};

static void add_memory(struct probe_load *load, pid_t pid, uint64_t memory)
{
	uint64_t had = 0;

	for (size_t i = 0; i < load->n_processes; i++)
		if (load->processes[i].pid == pid)
			had = load->processes[i].memory;
	probe_load_process(load, pid, had + memory);
}

static void found_file(const struct probe_card *card, pid_t pid, int procfd, const char *fd,
		       void *arg)
{
	struct reading *reading = arg;
	size_t at = (size_t)(card - reading->cards);
	struct sample *sample = &reading->samples[at];
	cleanup_free char *path = gs_asprintf("fdinfo/%s", fd), *text = NULL;
	struct client fresh = { 0 }, *client = NULL;
	bool has_id = false;
	size_t len;

	add_memory(&reading->rets[at], pid, 0);
	if (sample->n == CLIENTS_MAX) { /* to read what it says takes long, and is in vain */
		sample->untold = true;
		return;
	}
	if (gs_file_read(procfd, path, 0, FDINFO_MAX, &text, &len, NULL, NULL) == 0)
		parse(text, &fresh, &has_id);
	if (!has_id) {
		sample->untold = true;
		client_free(&fresh);
		return;
	}
	for (size_t i = 0; i < sample->n && !client; i++)
		if (sample->v[i].id == fresh.id)
			client = &sample->v[i];
	if (client) {
		client_free(&fresh);
	} else {
		sample->v = gs_grow(sample->v, sample->n, sizeof(*sample->v));
		client = &sample->v[sample->n++];
		*client = fresh;
		sample->untold = sample->untold || !client->tells;
		for (size_t i = 0; i < client->n; i++)
			if (client->v[i].region &&
			    counts(&reading->side->load.memory, client->v[i].name))
				client->memory += client->v[i].value;
		reading->rets[at].used += client->memory;
	}
	/* The files of a process come one after the other. */
	if (client->n_pids && client->pids[client->n_pids - 1] == pid)
		return;
	add_memory(&reading->rets[at], pid, client->memory);
	client->pids = gs_grow(client->pids, client->n_pids, sizeof(*client->pids));
	client->pids[client->n_pids++] = pid;
}

static const struct named *engine_of(const struct sample *sample, uint64_t id, const char *name)
{
	for (size_t i = 0; i < sample->n; i++) {
		const struct client *client = &sample->v[i];

		for (size_t j = 0; client->id == id && j < client->n; j++)
			if (!client->v[j].region && strcmp(client->v[j].name, name) == 0)
				return &client->v[j];
	}
	return NULL;
}

/* What part of the time between the samples the client kept the engine at work. */
static double part(const struct sample *old, const struct sample *new, uint64_t id,
		   const struct named *engine)
{
	const struct named *was = engine_of(old, id, engine->name);
	uint64_t did = engine->value - (was && was->value <= engine->value ? was->value : 0);
	uint64_t time = new->at_ns - old->at_ns;

	if (!did)
		return 0;
	if (engine->cycles) {
		/* A client that came since then: by what clock it counts was not seen. */
		if (!was || was->total >= engine->total)
			return 1;
		time = engine->total - was->total;
	}
	return (double)did / (double)time / (double)(engine->capacity ? engine->capacity : 1);
}

/* The busiest engine's part. */
static double busy_of(const struct vendor_side *side, const struct sample *old,
		      const struct sample *new)
{
	struct {
		const char *name;
		double busy;
	} sums[NAMES_MAX];
	double max = 0;
	size_t n = 0;

	for (size_t i = 0; i < new->n; i++) {
		for (size_t j = 0; j < new->v[i].n; j++) {
			const struct named *engine = &new->v[i].v[j];
			size_t k = 0;

			if (engine->region || !counts(&side->load.engines, engine->name))
				continue;
			while (k < n && strcmp(sums[k].name, engine->name) != 0)
				k++;
			if (k == NAMES_MAX)
				continue;
			if (k == n) {
				sums[n].name = engine->name;
				sums[n++].busy = 0;
			}
			sums[k].busy += part(old, new, new->v[i].id, engine);
			if (sums[k].busy > max)
				max = sums[k].busy;
		}
	}
	return max < 1 ? max : 1;
}

/* Each process's clients: which of the many that share one did the work, nobody tells. */
static void processes_busy(const struct vendor_side *side, const struct sample *old,
			   const struct sample *new, struct probe_load *ret)
{
	for (size_t i = 0; i < new->n; i++) {
		const struct client *client = &new->v[i];
		double busy = 0;

		for (size_t j = 0; j < client->n; j++) {
			const struct named *engine = &client->v[j];
			double its = 0;

			if (!engine->region && counts(&side->load.engines, engine->name))
				its = part(old, new, client->id, engine);
			if (its > busy)
				busy = its;
		}
		for (size_t j = 0; client->tells && j < client->n_pids; j++)
			probe_load_busy(ret, client->pids[j], busy < 1 ? busy : 1);
	}
	ret->busy_since_ms = old->at_ns / 1000000;
}

static struct sample *history(struct probe *probe, const char *card)
{
	struct fdinfo *f;

	if (!probe->fdinfo)
		probe->fdinfo = gs_calloc(1, sizeof(*probe->fdinfo));
	f = probe->fdinfo;
	for (size_t i = 0; i < f->n; i++)
		if (strcmp(f->v[i].card, card) == 0)
			return &f->v[i];
	f->v = gs_grow(f->v, f->n, sizeof(*f->v));
	f->v[f->n] = (struct sample){ .card = gs_strdup(card) };
	return &f->v[f->n++];
}

/* One look at all files; rets are as if there had been none before. */
static int look(struct probe *probe, const struct probe_card *cards, size_t n,
		struct sample *samples, struct probe_load *rets, struct gs_err *err)
{
	struct reading reading = { &probe->side, cards, rets, samples };
	cleanup_strv struct gs_strv unseen = { 0 };
	uint64_t at = now_ns();
	int r;

	for (size_t i = 0; i < n; i++) {
		probe_load_free(&rets[i]);
		sample_free(&samples[i]);
		samples[i].at_ns = at;
		samples[i].card = gs_strdup(cards[i].id);
	}
	r = probe_scan(cards, n, found_file, &reading, &unseen, err);
	probe_scan_unseen(&unseen, n, rets);
	for (size_t i = 0; r == 0 && i < n; i++) {
		rets[i].used_known = !samples[i].untold;
		rets[i].processes_known = true;
	}
	return r;
}

/* Replaces the cards' history by the samples and tells how busy they were since. */
static void compare(struct probe *probe, size_t n, struct sample *samples, struct probe_load *rets)
{
	for (size_t i = 0; i < n; i++) {
		struct sample *old = history(probe, samples[i].card);

		if (old->at_ns && samples[i].at_ns > old->at_ns) {
			rets[i].busy = busy_of(&probe->side, old, &samples[i]);
			rets[i].busy_known = !samples[i].untold;
			processes_busy(&probe->side, old, &samples[i], &rets[i]);
		}
		sample_free(old);
		*old = samples[i];
		samples[i] = (struct sample){ 0 };
	}
}

int probe_fdinfo_loads(struct probe *probe, const struct probe_card *cards, size_t n,
		       struct probe_load *rets, struct gs_err *err)
{
	struct sample *samples = gs_calloc(n + 1, sizeof(*samples));
	bool first = false;
	int r;

	for (size_t i = 0; i < n; i++)
		first = first || !history(probe, cards[i].id)->at_ns;
	r = look(probe, cards, n, samples, rets, err);
	/* With files as the source of load only the processes are wanted. */
	if (r == 0 && first && probe->side.load.source == LOAD_FDINFO) {
		compare(probe, n, samples, rets);
		(void)poll(NULL, 0, FIRST_MS);
		r = look(probe, cards, n, samples, rets, err);
	}
	if (r == 0)
		compare(probe, n, samples, rets);
	for (size_t i = 0; i < n; i++)
		sample_free(&samples[i]);
	free(samples);
	return r;
}
