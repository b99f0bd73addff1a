// SPDX-License-Identifier: Apache-2.0
/* Cards and load from files of sysfs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/probe.h"
#include "common/cleanup.h"
#include "common/xalloc.h"

/* In the order of PCI addresses; what has none comes behind, by name, 2 before 10. */
static int by_address(const void *a, const void *b)
{
	const struct probe_card *x = a, *y = b;
	size_t n, m;

	if (!x->pci != !y->pci)
		return x->pci ? -1 : 1;
	if (!x->pci)
		return strverscmp(x->folder, y->folder);
	/* A longer domain is a larger one. */
	n = strlen(x->pci);
	m = strlen(y->pci);
	return n != m ? (n < m ? -1 : 1) : strcasecmp(x->pci, y->pci);
}

static int read_fields(const struct vendor_side *side, struct probe_card *card, int index,
		       struct gs_err *err)
{
	cleanup_free char *number = gs_asprintf("%d", index);
	cleanup_free char *dev = gs_asprintf("%s/dev", card->folder), *numbers = NULL;

	fields_set(&card->fields, "index", number);
	if (card->pci)
		fields_set(&card->fields, "pci", card->pci);
	if (probe_line(dev, &numbers, NULL) == 0 && strchr(numbers, ':'))
		fields_set(&card->fields, "minor", strchr(numbers, ':') + 1);
	for (size_t i = 0; i < side->inventory.field_names.n; i++) {
		cleanup_free char *value = NULL;
		cleanup_free char *path =
			gs_asprintf("%s/%s", card->folder, side->inventory.field_files.v[i]);
		int r = probe_line(path, &value, err);

		/* Not every chip has every file; a template that needs it says so. */
		if (r == -ENOENT)
			continue;
		if (r < 0)
			return r;
		fields_set(&card->fields, side->inventory.field_names.v[i], value);
	}
	return 0;
}

static int read_card(const struct vendor_side *side, struct probe_card *card, int index,
		     struct gs_err *err)
{
	int r = read_fields(side, card, index, err);

	free(gs_steal(card->pci));
	if (r == 0)
		r = probe_card_add_listed(side, card, err);
	if (r == 0)
		r = probe_card_finish(side, card, err);
	return r < 0 ? gs_err_prefix(err, "%s", card->folder) : 0;
}

int probe_files_cards(struct probe *probe, struct gs_err *err)
{
	cleanup_strv struct gs_strv folders = { 0 };
	int r = probe_glob(probe->side.inventory.cards, &folders, err);

	if (r < 0)
		return r;
	if (folders.n > PROBE_CARDS_MAX)
		return gs_err_set(err, E2BIG, "%s: %zu cards", probe->side.inventory.cards,
				  folders.n);
	probe->v = gs_calloc(folders.n + 1, sizeof(*probe->v));
	probe->n = folders.n;
	for (size_t i = 0; i < folders.n; i++) {
		probe->v[i].folder = gs_steal(folders.v[i]);
		probe->v[i].pci = probe_pci_of(probe->v[i].folder);
	}
	folders.n = 0;
	if (probe->n > 1)
		qsort(probe->v, probe->n, sizeof(*probe->v), by_address);
	for (size_t i = 0; r == 0 && i < probe->n; i++)
		r = read_card(&probe->side, &probe->v[i], (int)i, err);
	return r;
}

static int read_number(const struct probe_card *card, const char *file, double *ret,
		       struct gs_err *err)
{
	cleanup_free char *path = gs_asprintf("%s/%s", card->folder, file);

	return probe_number(path, ret, err);
}

static int read_memory(const struct probe_card *card, const char *file, uint64_t *ret,
		       bool *ret_known, struct gs_err *err)
{
	double n;
	int r;

	if (!file)
		return 0;
	r = read_number(card, file, &n, err);
	if (r < 0)
		return r;
	if (n > INT64_MAX / 2)
		return gs_err_set(err, EPROTO, "%s/%s: no amount of memory", card->folder, file);
	*ret = (uint64_t)n;
	*ret_known = true;
	return 0;
}

int probe_files_load(struct probe *probe, const struct probe_card *card, struct probe_load *ret,
		     struct gs_err *err)
{
	double busy = 0;
	int r;

	if (!card->folder)
		return gs_err_set(err, ENODATA, "the card has no folder in sysfs");
	/* Memory first: it is what a return waits for, and some drivers let `busy` wait. */
	r = read_memory(card, probe->side.load.used, &ret->used, &ret->used_known, err);
	if (r == 0)
		r = read_memory(card, probe->side.load.total, &ret->total, &ret->total_known, err);
	if (r == 0)
		r = read_number(card, probe->side.load.busy, &busy, err);
	if (r < 0)
		return r;
	busy /= probe->side.load.busy_max;
	ret->busy = busy < 1 ? busy : 1;
	ret->busy_known = true;
	return 0;
}
