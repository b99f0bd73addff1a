// SPDX-License-Identifier: Apache-2.0
/* MIG: the slices of a card, which NVML tells, and their nodes, which the driver's /proc does. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/probe_nvml.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/xalloc.h"

#include <fcntl.h>

#define CAPABILITIES "/proc/driver/nvidia/capabilities"
#define CAP_NODE "/dev/nvidia-caps/nvidia-cap"

/* The node of a capability: "DeviceFileMinor: 12" in its file. */
static void add_cap(struct probe_card *card, const char *file, bool own)
{
	cleanup_free char *real = probe_path(file), *text = NULL, *node = NULL;
	const char *number;
	size_t len;

	if (gs_file_read(AT_FDCWD, real, 0, 4096, &text, &len, NULL, NULL) < 0)
		return;
	number = strstr(text, "DeviceFileMinor:");
	if (!number)
		return;
	node = gs_asprintf(CAP_NODE "%ld", strtol(number + strlen("DeviceFileMinor:"), NULL, 10));
	(void)probe_card_add_node(card, node, own);
}

static void add_nodes(const struct probe_card *parent, struct probe_card *slice, unsigned int gi,
		      unsigned int ci)
{
	const char *minor = fields_get(&parent->fields, "minor");
	cleanup_free char *folder = NULL, *gi_access = NULL, *ci_access = NULL;

	/* The card's nodes serve all of its slices. */
	for (size_t i = 0; i < parent->n_nodes; i++)
		(void)probe_card_add_node(slice, parent->nodes[i].path, false);
	if (!minor)
		return;
	folder = gs_asprintf(CAPABILITIES "/gpu%s/mig/gi%u", minor, gi);
	gi_access = gs_asprintf("%s/access", folder);
	ci_access = gs_asprintf("%s/ci%u/access", folder, ci);
	/* A GPU instance may hold several compute instances. */
	add_cap(slice, gi_access, false);
	add_cap(slice, ci_access, true);
}

static int read_slice(struct probe *probe, const struct probe_card *parent,
		      struct probe_card *slice, unsigned int index, struct gs_err *err)
{
	static const char *const from_parent[] = { "pci", "minor", "serial" };
	const struct nvml_functions *f = &probe->nvml->f;
	char uuid[NVML_TEXT_MAX + 1] = "";
	cleanup_free char *place = NULL;
	unsigned int gi, ci;
	int r = f->uuid(slice->handle, uuid, NVML_TEXT_MAX);

	if (r)
		return gs_err_set(err, EIO, "a slice's UUID: %s", nvml_error(probe->nvml, r));
	fields_set(&slice->fields, "uuid", uuid);
	/* As the vendor's runtime counts them: <card>:<slice>. */
	place = gs_asprintf("%s:%u", fields_get(&parent->fields, "index"), index);
	fields_set(&slice->fields, "index", place);
	for (size_t i = 0; i < GS_ARRAY_SIZE(from_parent); i++) {
		const char *value = fields_get(&parent->fields, from_parent[i]);

		if (value)
			fields_set(&slice->fields, from_parent[i], value);
	}
	if (f->gpu_instance && f->compute_instance && f->gpu_instance(slice->handle, &gi) == 0 &&
	    f->compute_instance(slice->handle, &ci) == 0)
		add_nodes(parent, slice, gi, ci);
	return 0;
}

int probe_mig_cards(struct probe *probe, const struct probe_card *parent, struct gs_err *err)
{
	const struct nvml_functions *f = &probe->nvml->f;
	unsigned int on = 0, pending, max = 0;

	if (!f->mig_mode || !f->mig_max || !f->mig_by_index ||
	    f->mig_mode(parent->handle, &on, &pending) || !on)
		return 0;
	if (f->mig_max(parent->handle, &max) || max > PROBE_CARDS_MAX)
		return gs_err_set(err, EIO, "the number of slices is not told");
	for (unsigned int i = 0; i < max; i++) {
		struct probe_card *slice;
		nvml_device handle;
		int r = f->mig_by_index(parent->handle, i, &handle);

		/* A place without a slice. */
		if (r == NVML_NOT_FOUND)
			continue;
		if (r)
			return gs_err_set(err, EIO, "a slice: %s", nvml_error(probe->nvml, r));
		probe->v = gs_grow(probe->v, probe->n, sizeof(*probe->v));
		slice = &probe->v[probe->n++];
		*slice = (struct probe_card){ .index = -1, .handle = handle, .slice = true };
		r = read_slice(probe, parent, slice, i, err);
		if (r == 0)
			r = probe_card_finish(&probe->side, slice, err);
		if (r < 0)
			return r;
	}
	return 1;
}
