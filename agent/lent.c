// SPDX-License-Identifier: Apache-2.0
/* Files that tell the runtime of a card; those in lent/ are for the next agent, too. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/lent.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/json.h"
#include "common/log.h"
#include "gpushare/agent.h"

#define LENT_MAX 65536

/* The card's own nodes, by which the runtime tells who holds it. */
static json_t *nodes_of(const struct card *card)
{
	json_t *list = json_array();

	for (size_t i = 0; i < card->n_nodes; i++)
		if (card->nodes[i].own)
			(void)json_array_append_new(
				list, json_pack("{s:s, s:i, s:i}", "type", "c", "major",
						(int)gs_kdev_major(card->nodes[i].dev), "minor",
						(int)gs_kdev_minor(card->nodes[i].dev)));
	return list;
}

static json_t *borrowers_of(const struct agent *agent, const char *card)
{
	json_t *list = json_array();

	for (size_t i = 0; i < agent->containers.n; i++) {
		const struct container *c = &agent->containers.v[i];

		if (c->rec.role == GS_ROLE_BORROWER && c->cgroup && gs_strv_has(&c->cards, card))
			(void)json_array_append_new(list, json_string(c->cgroup));
	}
	return list;
}

int card_file_write(struct agent *agent, const char *folder, const struct card *card, json_t *more,
		    struct gs_err *err)
{
	cleanup_json json_t *mine = more;
	cleanup_close int dir = gs_dir_make(agent->config.run_dir, folder, err);
	cleanup_json json_t *file = NULL;
	cleanup_free char *text = NULL;

	if (dir < 0)
		return dir;
	file = json_pack("{s:i, s:s, s:s, s:o, s:o}", "v", GS_AGENT_VERSION, "card", card->name,
			 "vendor", card->vendor, "nodes", nodes_of(card), "select",
			 gs_json_list(&card->select));
	if (file && mine)
		(void)json_object_update(file, mine);
	text = file ? json_dumps(file, JSON_COMPACT) : NULL;
	if (!text)
		return gs_err_set(err, EINVAL, "card %s is not UTF-8", card->name);
	return gs_file_publish(dir, card->name, text, strlen(text), err);
}

void card_file_remove(struct agent *agent, const char *folder, const char *card)
{
	cleanup_close int dir = gs_dir_open(agent->config.run_dir, folder, NULL);

	if (dir >= 0 && unlinkat(dir, card, 0) < 0 && errno != ENOENT)
		told_log(&agent->told, GS_LOG_ERROR, "the file of a card stays", "card", card,
			 strerror(errno));
}

static bool is_name(const char *name)
{
	return name[0] != '.' && !strstr(name, ".gpushare-");
}

void card_file_names(const struct agent *agent, const char *folder, struct gs_strv *ret)
{
	cleanup_close int dir = gs_dir_open(agent->config.run_dir, folder, NULL);

	if (dir >= 0)
		(void)gs_dir_names(dir, "", is_name, ret);
}

int lent_write(struct agent *agent, const struct card *card, struct gs_err *err)
{
	uint64_t before = agent_card(agent, card->name)->memory_before;
	json_t *more = json_pack("{s:o}", "cgroups", borrowers_of(agent, card->name));

	if (before <= INT64_MAX)
		(void)json_object_set_new(more, "memory_before", json_integer((json_int_t)before));
	return card_file_write(agent, GS_LENT_DIR, card, more, err);
}

void lent_remove(struct agent *agent, const char *card)
{
	card_file_remove(agent, GS_LENT_DIR, card);
}

bool lent_borrowed(const struct agent *agent, const char *card)
{
	for (size_t i = 0; i < agent->containers.n; i++) {
		const struct container *c = &agent->containers.v[i];

		if (c->rec.role == GS_ROLE_BORROWER && c->alive && gs_strv_has(&c->cards, card))
			return true;
	}
	return false;
}

void lent_read(struct agent *agent)
{
	cleanup_close int dir = gs_dir_open(agent->config.run_dir, GS_LENT_DIR, NULL);
	cleanup_strv struct gs_strv names = { 0 };

	card_file_names(agent, GS_LENT_DIR, &names);
	for (size_t i = 0; i < names.n; i++) {
		struct seen_card *seen = agent_card(agent, names.v[i]);
		cleanup_json json_t *lent = NULL;
		const json_t *before;

		seen->lent = true;
		seen->memory_before = GS_UNTOLD;
		if (gs_json_read(dir, names.v[i], O_NOFOLLOW, LENT_MAX, &lent, NULL) < 0)
			continue;
		before = json_object_get(lent, "memory_before");
		if (json_is_integer(before) && json_integer_value(before) >= 0)
			seen->memory_before = (uint64_t)json_integer_value(before);
	}
}
