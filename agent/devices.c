// SPDX-License-Identifier: Apache-2.0
/* Which device of a plugin is which card, and which ones a container should get. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/devices.h"
#include "common/cleanup.h"
#include "common/xalloc.h"

/* A device that could be taken. */
struct choice {
	const char *id;
	size_t free; /* devices of that card that are available */
};

int devices_name(const char *card, unsigned int k, char **ret, struct gs_err *err)
{
	cleanup_free char *name = gs_asprintf("%s::%u", card, k);

	if (strlen(name) > PLUGIN_ID_MAX)
		return gs_err_set(err, ENAMETOOLONG,
				  "card %s: the kubelet takes names of %d characters at most", card,
				  PLUGIN_ID_MAX);
	*ret = gs_steal(name);
	return 0;
}

size_t devices_card(const char *device)
{
	const char *end = NULL;

	/* The last one: whatever a vendor's names look like, that is ours. */
	for (const char *c = strstr(device, "::"); c; c = strstr(c + 1, "::"))
		end = c;
	return end ? (size_t)(end - device) : strlen(device);
}

int devices_number(const char *device)
{
	const char *text = device + devices_card(device);
	int n = 0;

	if (!*text || !text[2] || strlen(text + 2) > 4)
		return -1;
	for (text += 2; *text; text++) {
		if (*text < '0' || *text > '9')
			return -1;
		n = n * 10 + (*text - '0');
	}
	return n;
}

static bool same_card(const char *a, const char *b)
{
	size_t len = devices_card(a);

	return devices_card(b) == len && strncmp(a, b, len) == 0;
}

static bool has_card(const struct gs_strv *ids, const char *id)
{
	for (size_t i = 0; i < ids->n; i++)
		if (same_card(ids->v[i], id))
			return true;
	return false;
}

int devices_apart(const struct gs_strv *ids, struct gs_err *err)
{
	for (size_t i = 0; i < ids->n; i++)
		for (size_t k = 0; k < i; k++)
			if (same_card(ids->v[i], ids->v[k]))
				return gs_err_set(err, ENOSPC, "%s and %s are of the same card",
						  ids->v[k], ids->v[i]);
	return 0;
}

static int by_rank(const void *pa, const void *pb)
{
	const struct choice *a = pa, *b = pb;

	if (a->free != b->free)
		return a->free < b->free ? -1 : 1;
	return strcmp(a->id, b->id);
}

int devices_prefer(const struct plugin_wish *wish, struct gs_strv *ret, struct gs_err *err)
{
	const struct gs_strv *available = &wish->available;
	cleanup_free struct choice *choices = gs_calloc(available->n + 1, sizeof(*choices));
	cleanup_strv struct gs_strv chosen = { 0 };

	if (devices_apart(&wish->must, err) < 0)
		return gs_err_set(err, EINVAL, "two of one card must be in the choice");
	gs_strv_merge(&chosen, &wish->must);
	for (size_t i = 0; i < available->n; i++) {
		choices[i].id = available->v[i];
		for (size_t k = 0; k < available->n; k++)
			if (same_card(available->v[i], available->v[k]))
				choices[i].free++;
	}
	qsort(choices, available->n, sizeof(*choices), by_rank);
	for (size_t i = 0; i < available->n && chosen.n < wish->size; i++)
		if (!has_card(&chosen, choices[i].id))
			gs_strv_add(&chosen, choices[i].id);
	if (chosen.n < wish->size)
		return gs_err_set(err, ENOSPC,
				  "%zu different cards are asked for, and %zu have a free device",
				  wish->size, chosen.n);
	gs_strv_merge(ret, &chosen);
	return 0;
}
