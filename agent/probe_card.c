// SPDX-License-Identifier: Apache-2.0
/* A card as the probe builds it: fields, templates, nodes. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "agent/probe.h"
#include "common/cleanup.h"
#include "common/glob.h"
#include "common/xalloc.h"

const char *fields_get(const struct fields *fields, const char *name)
{
	for (size_t i = 0; i < fields->names.n; i++)
		if (strcmp(fields->names.v[i], name) == 0)
			return fields->values.v[i];
	return NULL;
}

void fields_set(struct fields *fields, const char *name, const char *value)
{
	gs_strv_add(&fields->names, name);
	gs_strv_add(&fields->values, value);
}

int fields_fill(const struct fields *fields, const char *template, char **ret, struct gs_err *err)
{
	cleanup_buf struct gs_buf out = { 0 };
	const char *open, *close;

	while ((open = strchr(template, '{')) && (close = strchr(open, '}'))) {
		cleanup_free char *name = gs_strndup(open + 1, (size_t)(close - open - 1));
		const char *value = fields_get(fields, name);

		if (!value)
			return gs_err_set(err, ENODATA, "the card has no {%s}", name);
		gs_buf_add(&out, template, (size_t)(open - template));
		gs_buf_adds(&out, value);
		template = close + 1;
	}
	gs_buf_adds(&out, template);
	*ret = gs_buf_steal(&out);
	return 0;
}

void probe_card_free(struct probe_card *card)
{
	free(card->id);
	free(card->uuid);
	free(card->pci);
	free(card->folder);
	gs_strv_free(&card->select);
	gs_strv_free(&card->fields.names);
	gs_strv_free(&card->fields.values);
	for (size_t i = 0; i < card->n_nodes; i++)
		free(card->nodes[i].path);
	free(card->nodes);
	*card = (struct probe_card){ 0 };
}

void probe_load_free(struct probe_load *load)
{
	free(load->processes);
	gs_strv_free(&load->unseen);
	*load = (struct probe_load){ 0 };
}

void probe_load_process(struct probe_load *load, pid_t pid, uint64_t memory)
{
	for (size_t i = 0; i < load->n_processes; i++) {
		if (load->processes[i].pid != pid)
			continue;
		if (load->processes[i].memory < memory)
			load->processes[i].memory = memory;
		return;
	}
	/* Whoever has so many users is not idle, whoever they are. */
	if (load->n_processes == PROBE_PROCESSES_MAX)
		return;
	load->processes = gs_grow(load->processes, load->n_processes, sizeof(*load->processes));
	load->processes[load->n_processes++] =
		(struct probe_process){ .pid = pid, .memory = memory };
}

void probe_load_busy(struct probe_load *load, pid_t pid, double busy)
{
	for (size_t i = 0; i < load->n_processes; i++) {
		struct probe_process *process = &load->processes[i];

		if (process->pid != pid)
			continue;
		if (!process->busy_known || process->busy < busy)
			process->busy = busy;
		process->busy_known = true;
		return;
	}
}

bool probe_card_add_node(struct probe_card *card, const char *path, bool own)
{
	cleanup_free char *real = probe_path(path);
	struct probe_node *node;
	struct stat st;

	if (!gs_path_plain(path) || stat(real, &st) < 0 || !S_ISCHR(st.st_mode))
		return false;
	for (size_t i = 0; i < card->n_nodes; i++)
		if (strcmp(card->nodes[i].path, path) == 0)
			return true;
	card->nodes = gs_grow(card->nodes, card->n_nodes, sizeof(*node));
	node = &card->nodes[card->n_nodes++];
	*node = (struct probe_node){ .path = gs_strdup(path), .rdev = st.st_rdev, .own = own };
	return true;
}

/* The path that the driver gave the node of a sysfs folder: DEVNAME of its uevent; NULL. */
static char *devname(const char *folder)
{
	cleanup_free char *file = gs_asprintf("%s/uevent", folder), *real = probe_path(file);
	cleanup_free char *line = NULL;
	FILE *f = fopen(real, "re");
	char *ret = NULL;
	size_t cap = 0;
	ssize_t n;

	while (f && !ret && (n = getline(&line, &cap, f)) > 0) {
		if (line[n - 1] == '\n')
			line[n - 1] = '\0';
		if (strncmp(line, "DEVNAME=", 8) == 0)
			ret = gs_asprintf("/dev/%s", line + 8);
	}
	if (f)
		(void)fclose(f);
	return ret;
}

int probe_card_add_sysfs(struct probe_card *card, const char *glob, struct gs_err *err)
{
	cleanup_free char *pattern = NULL;
	cleanup_strv struct gs_strv found = { 0 };
	cleanup_buf struct gs_buf folder = { 0 };
	int r;

	/* The folder is a name, not a pattern. */
	for (const char *s = card->folder; *s; s++) {
		if (strchr("*?[]{},\\", *s))
			gs_buf_addc(&folder, '\\');
		gs_buf_addc(&folder, *s);
	}
	pattern = gs_asprintf("%s/%s", folder.data, glob);
	r = probe_glob(pattern, &found, err);
	for (size_t i = 0; r == 0 && i < found.n; i++) {
		cleanup_free char *dev = gs_asprintf("%s/dev", found.v[i]);
		cleanup_free char *number = NULL, *path = NULL;

		if (probe_line(dev, &number, NULL) < 0)
			continue;
		path = devname(found.v[i]);
		if (path)
			(void)probe_card_add_node(card, path, true);
	}
	return r;
}

int probe_card_add_listed(const struct vendor_side *side, struct probe_card *card,
			  struct gs_err *err)
{
	const struct gs_strv *nodes = &side->inventory.nodes;
	int r = 0;

	for (size_t i = 0; r == 0 && i < nodes->n; i++) {
		cleanup_free char *path = NULL;

		if (nodes->v[i][0] != '/') {
			if (card->folder)
				r = probe_card_add_sysfs(card, nodes->v[i], err);
			continue;
		}
		r = fields_fill(&card->fields, nodes->v[i], &path, err);
		if (r == 0)
			(void)probe_card_add_node(card, path, true);
	}
	return r;
}

static void add_select(struct probe_card *card, const char *value)
{
	if (value && value[0] && !gs_strv_has(&card->select, value))
		gs_strv_add(&card->select, value);
}

/* The vendor's nodes that are no card's, as far as they are hooked: every card's users use them. */
static int add_common_nodes(const struct vendor_side *side, struct probe_card *card,
			    struct gs_err *err)
{
	const struct gs_vendor *rules = vendor_side_rules(side);

	for (size_t i = 0; i < rules->n_nodes; i++) {
		const struct gs_node *rule = &rules->nodes[i];
		cleanup_strv struct gs_strv found = { 0 };
		int r;

		if (rule->kind == GS_NODE_CARD)
			continue;
		r = probe_glob(rule->glob, &found, err);
		if (r < 0)
			return r;
		for (size_t j = 0; j < found.n; j++) {
			cleanup_free char *real = probe_path(found.v[j]);
			struct stat st;

			if (!gs_glob_any(&side->driver.hook_nodes, found.v[j]) ||
			    stat(real, &st) < 0)
				continue;
			/* The first rule that matches counts, and may depend on the driver. */
			if (gs_vendor_node(rules, found.v[j], major(st.st_rdev),
					   minor(st.st_rdev)) == rule)
				(void)probe_card_add_node(card, found.v[j], false);
		}
	}
	return 0;
}

int probe_card_finish(const struct vendor_side *side, struct probe_card *card, struct gs_err *err)
{
	const char *uuid = fields_get(&card->fields, "uuid");
	const char *pci = fields_get(&card->fields, "pci");
	const char *index = fields_get(&card->fields, "index");
	int r = fields_fill(&card->fields, side->inventory.id, &card->id, err);

	if (r < 0)
		return gs_err_prefix(err, "id");
	if (!card->id[0])
		return gs_err_set(err, EINVAL, "a card with an empty id");
	card->uuid = uuid && uuid[0] ? gs_strdup(uuid) : NULL;
	card->pci = pci && pci[0] ? gs_strdup(pci) : NULL;
	card->index = index && !card->slice ? (int)strtol(index, NULL, 10) : -1;
	if (side->inventory.select) {
		cleanup_free char *value = NULL;

		r = fields_fill(&card->fields, side->inventory.select, &value, err);
		if (r < 0)
			return gs_err_prefix(err, "select");
		add_select(card, value);
		add_select(card, uuid);
		add_select(card, index);
	}
	r = add_common_nodes(side, card, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < card->n_nodes; i++) {
		struct probe_node *node = &card->nodes[i];

		node->hook = gs_glob_any(&side->driver.hook_nodes, node->path);
		node->revocable = gs_glob_any(&side->revocable, node->path);
	}
	return 0;
}
