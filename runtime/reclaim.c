// SPDX-License-Identifier: Apache-2.0
/* Takes lent cards back. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/agentlink.h"
#include "common/cgroup_kill.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/json.h"
#include "common/log.h"
#include "common/xalloc.h"
#include "gpushare/agent.h"
#include "runtime/holds.h"
#include "runtime/reclaim.h"

#define LENT_MAX 65536

/*
 * Nobody answers at the socket: the kernel's own kill, on the cgroups that the agent wrote down.
 * All are killed before the first is waited for, and one that fails saves no other.
 */
static int kill_borrowers(const json_t *cgroups, uint64_t deadline_ms, struct gs_err *err)
{
	int r = 0;
	json_t *v;
	size_t i;

	json_array_foreach(cgroups, i, v) {
		const char *path = json_string_value(v);

		/* gone: its borrower had ended before */
		if (!path || access(path, F_OK) < 0)
			continue;
		if (gs_cgroup_kill(path, 0, NULL) != -EINVAL)
			gs_log(GS_LOG_WARN, "no agent answers: killed the borrowers in %s", path);
	}
	json_array_foreach(cgroups, i, v) {
		const char *path = json_string_value(v);
		int one = path ? gs_cgroup_kill(path, deadline_ms, r < 0 ? NULL : err) : 0;

		if (r == 0)
			r = one;
	}
	return r;
}

static int ask_agent(const struct gs_config *config, json_t *cards, const char *id,
		     const struct gs_identity *who, uint64_t deadline_ms, struct gs_err *err)
{
	cleanup_free char *to = gs_identity_is_set(who) ? gs_identity_text(who) : NULL;
	cleanup_json json_t *request = json_pack("{s:i, s:s, s:s, s:s*, s:O}", "v",
						 GS_AGENT_VERSION, "op", GS_OP_RECLAIM, "container",
						 id, "to", to, "cards", cards);

	return gs_agent_ask(config->run_dir, request, deadline_ms, NULL, err);
}

/* Reads one such file. -EINVAL: it is none of the agent's (a left-over of its writing, say). */
static int read_card(int dir, const char *name, json_t **ret, struct gs_err *err)
{
	cleanup_json json_t *lent = NULL;
	const char *card;
	int r;

	r = gs_json_read(dir, name, O_NOFOLLOW, LENT_MAX, &lent, err);
	if (r < 0)
		return r;
	card = json_string_value(json_object_get(lent, "card"));
	if (json_integer_value(json_object_get(lent, "v")) != GS_AGENT_VERSION || !card ||
	    strcmp(card, name) != 0)
		return gs_err_set(err, EINVAL, "%s does not describe a card of that name", name);
	*ret = gs_steal(lent);
	return 0;
}

/* The files of one folder that describe a card which the container holds. */
struct found {
	json_t *cards, *cgroups; /* their names; whose processes stand in the way */
};

static int look(const struct gs_config *config, const char *folder, const struct slice *own,
		const char *next, struct found *found, struct gs_err *err)
{
	cleanup_close int fd = gs_dir_open(config->run_dir, folder, NULL);
	cleanup_dir DIR *dir = NULL;
	struct dirent *e;

	if (fd < 0)
		return 0;
	dir = gs_opendirat(fd, ".");
	if (!dir)
		return gs_err_errno(err, errno, "read %s/%s", config->run_dir, folder);
	while ((e = readdir(dir)) != NULL) {
		cleanup_json json_t *card = NULL;
		struct gs_err why = { 0 };

		if (e->d_name[0] == '.')
			continue;
		if (read_card(fd, e->d_name, &card, &why) < 0) {
			/* given back in between, or broken: no reason to stop a holder */
			gs_log(GS_LOG_WARN, "%s card passed over: %s", folder, why.msg);
			continue;
		}
		if (!slice_holds_card(own, card, next, config->cri == GS_CRI_NONE))
			continue;
		(void)json_array_append_new(found->cards, json_string(e->d_name));
		(void)json_array_extend(found->cgroups, json_object_get(card, "cgroups"));
	}
	return 0;
}

int reclaim(const struct gs_config *config, const struct slice *own, const char *next,
	    const char *id, const struct gs_identity *who, uint64_t deadline_ms, struct gs_err *err)
{
	cleanup_json json_t *cgroups = json_array();
	cleanup_json json_t *cards = json_array();
	struct found found = { cards, cgroups };
	int r;

	r = look(config, GS_LENT_DIR, own, next, &found, err);
	if (r == 0)
		r = look(config, GS_SHARED_DIR, own, next, &found, err);
	if (r < 0 || json_array_size(cards) == 0)
		return r;
	r = ask_agent(config, cards, id, who, deadline_ms, err);
	if (r == -ENOENT)
		r = kill_borrowers(cgroups, deadline_ms, err);
	return r < 0 ? gs_err_prefix(err, "a card of this container is lent and not back yet") : 0;
}
