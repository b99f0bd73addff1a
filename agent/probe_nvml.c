// SPDX-License-Identifier: Apache-2.0
/* Cards and load from a library with NVML's functions. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "agent/probe_nvml.h"
#include "common/cleanup.h"
#include "common/proc.h"
#include "common/xalloc.h"

/* Samples come a few times a second. */
#define SAMPLES_MS 100

static int fail(const struct nvml *nvml, const char *what, int code, struct gs_err *err)
{
	return gs_err_set(err, EIO, "%s: %s", what, nvml_error(nvml, code));
}

static void set_number(struct fields *fields, const char *name, unsigned int n)
{
	char text[16];

	(void)snprintf(text, sizeof(text), "%u", n);
	fields_set(fields, name, text);
}

/* Older versions of the structure are shorter; what a library adds must not hit our stack. */
struct pci_room {
	struct nvml_pci pci;
	char room[64];
};

/* As sysfs writes it: NVML's domain may have eight digits and its letters are capitals. */
static void set_pci(struct fields *fields, const struct nvml_pci *pci)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%04x:%02x:%02x.0", pci->domain, pci->bus, pci->device);
	fields_set(fields, "pci", text);
}

/* Does the path end in that number, and not in a longer one? */
static bool ends_in(const char *path, unsigned int number)
{
	size_t n = strlen(path), digits = n;

	while (digits && isdigit((unsigned char)path[digits - 1]))
		digits--;
	return digits < n && strtoul(path + digits, NULL, 10) == number;
}

/*
 * The card's node: of the first rule for cards, the one whose minor number and whose name have the
 * number that NVML tells. Later rules are for capabilities, channels and the like.
 */
static int add_minor_node(const struct vendor_side *side, struct probe_card *card,
			  unsigned int number, struct gs_err *err)
{
	const struct gs_vendor *rules = vendor_side_rules(side);

	for (size_t i = 0; i < rules->n_nodes; i++) {
		cleanup_strv struct gs_strv found = { 0 };
		int r;

		if (rules->nodes[i].kind != GS_NODE_CARD)
			continue;
		r = probe_glob(rules->nodes[i].glob, &found, err);
		for (size_t j = 0; r == 0 && j < found.n; j++) {
			cleanup_free char *real = probe_path(found.v[j]);
			struct stat st;

			if (ends_in(found.v[j], number) && stat(real, &st) == 0 &&
			    minor(st.st_rdev) == number)
				(void)probe_card_add_node(card, found.v[j], true);
		}
		return r;
	}
	return 0;
}

/* Display nodes of the same PCI device, where the entry says that they are the vendor's. */
static int add_drm_nodes(const struct vendor_side *side, struct probe_card *card,
			 struct gs_err *err)
{
	const struct gs_vendor *rules = vendor_side_rules(side);
	struct probe_card drm = { .folder = card->folder };
	int r = card->folder ? probe_card_add_sysfs(&drm, "drm/*", err) : 0;

	for (size_t i = 0; i < drm.n_nodes; i++) {
		const struct probe_node *node = &drm.nodes[i];

		if (gs_vendor_node(rules, node->path, major(node->rdev), minor(node->rdev)))
			(void)probe_card_add_node(card, node->path, true);
	}
	drm.folder = NULL;
	probe_card_free(&drm);
	return r;
}

/* Does the card answer at all? What has fallen off the bus gives no handle. */
static int find_card(struct probe *probe, struct probe_card *card, unsigned int index,
		     struct gs_err *err)
{
	const struct nvml_functions *f = &probe->nvml->f;
	char uuid[NVML_TEXT_MAX + 1] = "";
	int r = f->by_index(index, &card->handle);

	if (r)
		return fail(probe->nvml, "a card's handle", r, err);
	r = f->uuid(card->handle, uuid, NVML_TEXT_MAX);
	if (r)
		return fail(probe->nvml, "a card's UUID", r, err);
	set_number(&card->fields, "index", index);
	fields_set(&card->fields, "uuid", uuid);
	return 0;
}

static int read_card(struct probe *probe, struct probe_card *card, struct gs_err *err)
{
	const struct nvml_functions *f = &probe->nvml->f;
	char serial[NVML_TEXT_MAX + 1] = "";
	struct pci_room p = { 0 };
	unsigned int number;
	const char *pci;
	int r = 0;

	if (f->serial && f->serial(card->handle, serial, NVML_TEXT_MAX) == NVML_OK)
		fields_set(&card->fields, "serial", serial);
	if (f->pci && f->pci(card->handle, &p.pci) == NVML_OK)
		set_pci(&card->fields, &p.pci);
	pci = fields_get(&card->fields, "pci");
	card->folder = pci ? probe_pci_folder(pci) : NULL;
	if (f->minor_number && f->minor_number(card->handle, &number) == NVML_OK) {
		set_number(&card->fields, "minor", number);
		r = add_minor_node(&probe->side, card, number, err);
	}
	if (r == 0)
		r = add_drm_nodes(&probe->side, card, err);
	return r;
}

static int add_card(struct probe *probe, unsigned int index, struct gs_err *err)
{
	struct probe_card card = { .index = -1 };
	int r;

	/* One lost card does not take the others along. */
	if (find_card(probe, &card, index, err) < 0) {
		if (!probe->left_out)
			probe->left_out = gs_asprintf("card %u is left out: %s", index, err->msg);
		probe_card_free(&card);
		return 0;
	}
	r = read_card(probe, &card, err);
	if (r == 0 && probe->side.inventory.mig)
		r = probe_mig_cards(probe, &card, err);
	if (r) {
		probe_card_free(&card);
		return r < 0 ? r : 0;
	}
	probe->v = gs_grow(probe->v, probe->n, sizeof(*probe->v));
	probe->v[probe->n++] = card;
	return probe_card_finish(&probe->side, &probe->v[probe->n - 1], err);
}

/* 0: no library, or no driver. */
static int start(struct probe *probe, const char *library, struct gs_err *err)
{
	bool there = probe_driver_there(&probe->side);
	int r;

	if (!probe->nvml) {
		r = probe_nvml_open(&probe->side, library, &probe->nvml, err);
		if (r < 0 || !probe->nvml)
			return r == -ENOENT && !there ? 0 : r;
	}
	if (!probe->nvml->initialised) {
		r = probe->nvml->f.init();
		if (r == NVML_DRIVER_NOT_LOADED && !there)
			return 0;
		if (r)
			return fail(probe->nvml, library, r, err);
		probe->nvml->initialised = true;
	}
	return 1;
}

int probe_nvml_cards(struct probe *probe, struct gs_err *err)
{
	unsigned int n;
	int r;

	/* Anew each time: what it says of a card that was lost or came is from its start. */
	if (probe->nvml && probe->nvml->initialised && probe->nvml->f.shutdown) {
		(void)probe->nvml->f.shutdown();
		probe->nvml->initialised = false;
	}
	r = start(probe, probe->side.inventory.library, err);
	if (r <= 0 || !probe->nvml)
		return r;
	r = probe->nvml->f.count(&n);
	if (r)
		return fail(probe->nvml, "the number of cards", r, err);
	if (n > PROBE_CARDS_MAX)
		return gs_err_set(err, E2BIG, "%u cards", n);
	for (unsigned int i = 0; i < n; i++) {
		r = add_card(probe, i, err);
		if (r < 0)
			return r;
	}
	/* With none left it is rather the library that is lost, and a new start may help. */
	return probe->left_out && !probe->n ? -EIO : 0;
}

/* The library's handle of a card that another source has listed: by PCI address. */
static int find_device(struct probe *probe, const struct probe_card *card, nvml_device *ret,
		       struct gs_err *err)
{
	const char *library = probe->side.load.library ? probe->side.load.library :
							 probe->side.inventory.library;
	const struct nvml_functions *f;
	unsigned int n = 0;
	int r = library ? start(probe, library, err) : 0;

	if (r < 0)
		return r;
	f = r ? &probe->nvml->f : NULL;
	if (!f || !f->pci || !card->pci || f->count(&n))
		return gs_err_set(err, ENODATA, "no library can tell");
	for (unsigned int i = 0; i < n; i++) {
		struct probe_card other = { 0 };
		struct pci_room p = { 0 };
		const char *pci;
		bool same;

		if (f->by_index(i, ret) || f->pci(*ret, &p.pci))
			continue;
		set_pci(&other.fields, &p.pci);
		pci = fields_get(&other.fields, "pci");
		same = pci && strcasecmp(pci, card->pci) == 0;
		probe_card_free(&other);
		if (same)
			return 0;
	}
	return gs_err_set(err, ENODATA, "%s has no card %s", library, card->pci);
}

static int device_of(struct probe *probe, const struct probe_card *card, nvml_device *ret,
		     struct gs_err *err)
{
	if (!card->handle)
		return find_device(probe, card, ret, err);
	*ret = card->handle;
	return 0;
}

static int read_memory(const struct nvml *nvml, nvml_device device, struct probe_load *ret,
		       struct gs_err *err)
{
	struct nvml_memory_v2 v2 = { .version = NVML_MEMORY_V2 };
	struct nvml_memory v1;
	int r;

	if (nvml->f.memory_v2 && nvml->f.memory_v2(device, &v2) == NVML_OK) {
		ret->used = v2.used;
		ret->total = v2.total;
	} else if (nvml->f.memory) {
		r = nvml->f.memory(device, &v1);
		if (r)
			return fail(nvml, "memory", r, err);
		ret->used = v1.used;
		ret->total = v1.total;
	} else {
		return 0;
	}
	ret->used_known = ret->total_known = true;
	return 0;
}

static int add_processes(const struct nvml *nvml, nvml_device device, nvml_processes_fn list,
			 struct probe_load *ret)
{
	size_t size = nvml->processes_v1 ? sizeof(struct nvml_process_v1) :
					   sizeof(struct nvml_process);
	cleanup_free char *infos = NULL;
	unsigned int n = 64, room;
	int r;

	do {
		/* Some more than it says: they come and go. */
		room = n + 16;
		infos = gs_reallocarray(infos, room, size);
		memset(infos, 0, room * size);
		n = room;
		r = list(device, &n, infos);
	} while (r == NVML_INSUFFICIENT_SIZE && n > room && n < 65536);
	for (unsigned int i = 0; r == NVML_OK && i < n && i < room; i++) {
		/* Both layouts begin the same. */
		const struct nvml_process_v1 *p = (const void *)(infos + i * size);

		if (p->pid)
			probe_load_process(ret, (pid_t)p->pid,
					   p->memory == NVML_NOT_AVAILABLE ? 0 : p->memory);
	}
	return r;
}

/*
 * How busy each of the card's processes was since the last reading: those that were not have no
 * sample. The first reading only learns where the samples stand. What the library can't tell, on
 * slices for one, stays unknown.
 */
static void add_busy(const struct nvml *nvml, nvml_device device, struct probe_card *card,
		     struct probe_load *ret)
{
	cleanup_free struct nvml_sample *samples = NULL;
	unsigned long long seen = card->sample_us;
	unsigned int n = 256, room;
	int r;

	/* a return looks at the card's memory many times a second */
	if (!nvml->f.samples || gs_boottime_ms() - card->sampled_ms < SAMPLES_MS)
		return;
	do {
		room = n;
		samples = gs_reallocarray(samples, room, sizeof(*samples));
		memset(samples, 0, room * sizeof(*samples));
		r = nvml->f.samples(device, samples, &n, seen);
		if (r == NVML_INSUFFICIENT_SIZE && n <= room)
			n = room * 2;
	} while (r == NVML_INSUFFICIENT_SIZE && n < 65536);
	if (r && r != NVML_NOT_FOUND)
		return;
	for (size_t i = 0; card->sampled_ms && i < ret->n_processes; i++)
		probe_load_busy(ret, ret->processes[i].pid, 0);
	for (unsigned int i = 0; r == NVML_OK && i < n && i < room; i++) {
		const struct nvml_sample *s = &samples[i];
		/* a sample that was never filled has percentages that can't be */
		unsigned int busy = s->sm <= 100 ? s->sm : 0;

		if (s->time_us <= seen)
			continue;
		if (s->encoder <= 100 && s->encoder > busy)
			busy = s->encoder;
		if (s->decoder <= 100 && s->decoder > busy)
			busy = s->decoder;
		if (card->sampled_ms)
			probe_load_busy(ret, (pid_t)s->pid, busy / 100.0);
		if (s->time_us > card->sample_us)
			card->sample_us = s->time_us;
	}
	ret->busy_since_ms = card->sampled_ms;
	card->sampled_ms = gs_boottime_ms();
}

int probe_nvml_processes(struct probe *probe, struct probe_card *card, struct probe_load *ret,
			 struct gs_err *err)
{
	const struct nvml *nvml;
	nvml_device device = NULL;
	int found = device_of(probe, card, &device, err);

	if (found < 0)
		return found;
	nvml = probe->nvml;
	if (!nvml->f.processes[0])
		return gs_err_set(err, ENOSYS, "the library tells no processes");
	for (size_t i = 0; i < 3; i++) {
		int r = NVML_OK;

		if (nvml->f.processes[i])
			r = add_processes(nvml, device, nvml->f.processes[i], ret);
		/* Chips without graphics or MPS; all of them compute. */
		if (r && !(i && (r == NVML_NOT_SUPPORTED || r == NVML_NOT_FOUND)))
			return fail(nvml, "processes", r, err);
	}
	ret->processes_known = true;
	add_busy(nvml, device, card, ret);
	return 0;
}

int probe_nvml_load(struct probe *probe, struct probe_card *card, struct probe_load *ret,
		    struct gs_err *err)
{
	struct nvml_utilization u = { 0 };
	nvml_device device = NULL;
	int r = device_of(probe, card, &device, err);

	if (r == 0)
		r = read_memory(probe->nvml, device, ret, err);
	if (r < 0)
		return r;
	/*
	 * NVML has no utilisation of a slice. One that nobody uses is idle; of another nothing is
	 * known.
	 */
	if (card->slice || !probe->nvml->f.utilization) {
		r = probe_nvml_processes(probe, card, ret, err);
		ret->busy_known = r == 0 && !ret->n_processes;
		return r;
	}
	r = probe->nvml->f.utilization(device, &u);
	if (r)
		return fail(probe->nvml, "utilisation", r, err);
	ret->busy = u.gpu < 100 ? u.gpu / 100.0 : 1;
	ret->busy_known = true;
	return 0;
}
