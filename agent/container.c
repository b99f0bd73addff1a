// SPDX-License-Identifier: Apache-2.0
/* Reading the registry, and completing what the runtime could not know. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/container.h"
#include "common/cgroup.h"
#include "common/cleanup.h"
#include "common/glob.h"
#include "common/kname.h"
#include "common/proc.h"
#include "common/xalloc.h"
#include "gpushare/registry.h"

/* How long the next runtime may take from the end of what we do at a create: hooks of others. */
#define STARTING_MS 120000

/* A record that was not taken over from what was read before. */
#define FRESH SIZE_MAX

static void container_free(struct container *c)
{
	gs_record_free(&c->rec);
	gs_hook_record_free(&c->hook);
	free(c->cgroup);
	gs_strv_free(&c->cards);
	gs_strv_free(&c->denied);
}

void containers_free(struct containers *containers)
{
	for (size_t i = 0; i < containers->n; i++)
		container_free(&containers->v[i]);
	free(containers->v);
	*containers = (struct containers){ 0 };
}

const struct container *containers_find(const struct containers *containers, const char *id)
{
	for (size_t i = 0; i < containers->n; i++)
		if (strcmp(containers->v[i].rec.id, id) == 0)
			return &containers->v[i];
	return NULL;
}

const struct container *containers_find_watch(const struct containers *containers, const char *name)
{
	for (size_t i = 0; i < containers->n; i++) {
		gs_kname own;

		gs_kname_watch(&containers->v[i].rec, own);
		if (strcmp(own, name) == 0)
			return &containers->v[i];
	}
	return NULL;
}

char *container_label(const struct gs_record *rec)
{
	return gs_identity_is_set(&rec->identity) ? gs_identity_text(&rec->identity) :
						    gs_strdup(rec->id);
}

/*
 * A holder has no hook: its record is completed here, as early as its process can be seen, because
 * its cgroup counts as it was made (docker-in-docker moves itself later).
 */
static void complete(const char *run_dir, struct container *c, pid_t pid)
{
	struct gs_hook_record hook = { .pid = pid };

	if (gs_proc_start(pid, &hook.start_ticks, NULL) == 0 &&
	    gs_proc_ns(pid, "pid", &hook.pid_ns, NULL) == 0 &&
	    gs_proc_cgroup(pid, &hook.cgroup, NULL) == 0 &&
	    gs_registry_write_hook(run_dir, c->rec.id, &hook, NULL) == 0)
		c->hook = hook;
	else
		gs_hook_record_free(&hook);
}

static bool is_exempt(const struct container *c, const struct settings *settings)
{
	cleanup_free char *label = container_label(&c->rec);

	return gs_glob_any(&settings->exempt, label);
}

/* Is it so young that its process is waited for? */
static bool is_young(const struct gs_record *rec)
{
	return !rec->deadline_ms || gs_boottime_ms() < rec->deadline_ms + STARTING_MS;
}

/*
 * A create that fails, or is killed, leaves a record that not every engine deletes. Nobody waits
 * for its process for ever: its cards would never be lent again. Where no file could tell of that
 * process, it may be there unseen.
 */
static bool may_come(const struct gs_record *rec)
{
	return !rec->pid_file || is_young(rec);
}

/* Where that can't be told (too many open files, say), nobody has ended: it would be for ever. */
static bool same_process(const struct gs_hook_record *hook)
{
	uint64_t start;
	int r = gs_proc_start(hook->pid, &start, NULL);

	return r < 0 ? r != -ESRCH : start == hook->start_ticks;
}

/* What its process is; known for ever once it was seen. */
static void see_process(const char *run_dir, struct container *c)
{
	pid_t pid = 0;
	bool known;
	int r;

	c->deleted = gs_registry_marked(run_dir, c->rec.id);
	if (c->hook.pid) { /* who has ended does not begin again */
		c->alive = c->alive && same_process(&c->hook);
	} else {
		/* first: a record that comes after the question would be a dead one's for ever */
		known = gs_registry_read_hook(run_dir, c->rec.id, &c->hook, NULL) == 0;
		r = gs_registry_alive(run_dir, &c->rec, &pid, NULL);
		c->alive = r == 0 || (c->alive && gs_err_is_scarce(r));
		if (!known && r == 0 &&
		    gs_registry_read_hook(run_dir, c->rec.id, &c->hook, NULL) < 0)
			complete(run_dir, c, pid);
	}
	c->starting = !c->alive && !c->hook.pid && !c->deleted && may_come(&c->rec);
	free(c->cgroup);
	c->cgroup = c->hook.pid ? gs_cgroup_folder(GS_CGROUP_ROOT, c->hook.cgroup) : NULL;
}

static int read_one(const char *run_dir, const char *id, const struct cards *cards,
		    const struct gs_catalogue *cat, const struct settings *settings,
		    struct container *c, struct gs_err *err)
{
	int r = gs_registry_read(run_dir, id, &c->rec, err);

	if (r < 0)
		return r;
	see_process(run_dir, c);
	container_cards(&c->rec, cards, cat, settings->all_is_each, &c->cards);
	c->exempt = is_exempt(c, settings);
	return 0;
}

/* Sets which file the record is in; all zero where there is none. */
static void stamp(const char *run_dir, const char *id, struct container *c)
{
	cleanup_free char *path = gs_asprintf("%s/" GS_REGISTRY_CONTAINERS "/%s.json", run_dir, id);
	struct stat st;

	if (stat(path, &st) < 0)
		return;
	c->ino = st.st_ino;
	c->made = st.st_ctim;
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/*
 * Takes over what is known of that record, if it is the same one; both are sorted by their ids.
 * Gives where it stood in @before, or FRESH.
 */
static size_t take_over(const char *run_dir, const char *id, struct containers *before, size_t *at,
			struct container *c)
{
	struct container *was;

	while (before && *at < before->n && strcmp(before->v[*at].rec.id, id) < 0)
		(*at)++;
	if (!before || *at == before->n)
		return FRESH;
	was = &before->v[*at];
	if (strcmp(was->rec.id, id) != 0 || !c->ino || was->ino != c->ino ||
	    !same_time(&was->made, &c->made))
		return FRESH;
	*c = *was;
	*was = (struct container){ 0 };
	if (c->inherited)
		gs_strv_free(&c->cards);
	c->inherited = false;
	see_process(run_dir, c);
	return (*at)++;
}

/*
 * A target whose slice does not tell (it is privileged and not fenced: every card is in it) uses
 * what its sources use. Sources come first in a pod, but a target may be another's source.
 */
static void inherit_cards(struct containers *containers)
{
	for (size_t i = 0; i < containers->n; i++) {
		struct container *c = &containers->v[i];

		if (c->cards.n || c->rec.role == GS_ROLE_HOLDER)
			continue;
		for (size_t j = 0; j < c->rec.sources.n; j++) {
			const struct container *from =
				containers_find(containers, c->rec.sources.v[j]);

			if (from)
				gs_strv_merge(&c->cards, &from->cards);
		}
		c->inherited = true;
		gs_strv_sort(&c->cards);
	}
}

/* When were the registry's folders written to? Files come and go there by their names. */
static void written(const char *run_dir, struct timespec ret[2])
{
	static const char *const folders[2] = { GS_REGISTRY_CONTAINERS, GS_REGISTRY_DELETED };

	for (size_t i = 0; i < 2; i++) {
		cleanup_free char *path = gs_asprintf("%s/%s", run_dir, folders[i]);
		struct stat st;

		ret[i] = stat(path, &st) == 0 ? st.st_mtim : (struct timespec){ 0 };
	}
}

bool containers_same(const char *run_dir, const struct containers *containers)
{
	struct timespec now[2];

	written(run_dir, now);
	for (size_t i = 0; i < 2; i++)
		if (!same_time(&now[i], &containers->written[i]))
			return false;
	if (containers->incomplete || containers->leaving)
		return false;
	for (size_t i = 0; i < containers->n; i++) {
		const struct container *c = &containers->v[i];

		if (!c->hook.pid && !c->deleted) /* the process may come after all */
			return false;
		if (c->alive && !same_process(&c->hook))
			return false;
	}
	return true;
}

/* It could not be read to the end: what was taken over is as it was. */
static void give_back(struct containers *before, struct containers *taken, const size_t *from)
{
	for (size_t i = 0; from && i < taken->n; i++)
		if (from[i] != FRESH) {
			before->v[from[i]] = taken->v[i];
			taken->v[i] = (struct container){ 0 };
		}
	containers_free(taken);
	if (before)
		inherit_cards(before);
}

/* One record more, after the others. -errno: none can be read now. */
static int add_one(const char *run_dir, const char *id, const struct cards *cards,
		   const struct gs_catalogue *cat, const struct settings *settings,
		   struct containers *before, size_t *at, struct containers *ret, size_t **from,
		   void (*broken)(const char *id, const char *why), struct gs_err *err)
{
	struct container c = { 0 };
	struct gs_err why = { 0 };
	size_t place;
	int r = 0;

	stamp(run_dir, id, &c);
	place = take_over(run_dir, id, before, at, &c);
	if (place == FRESH)
		r = read_one(run_dir, id, cards, cat, settings, &c, &why);
	if (r < 0) {
		container_free(&c);
		if (gs_err_is_scarce(r))
			return gs_err_set(err, -r, "%s", why.msg);
		/* removed a moment ago, or damaged */
		if (r != -ENOENT && broken)
			broken(id, why.msg);
		return 0;
	}
	if ((c.starting || (c.alive && !c.hook.pid && !c.deleted)) && is_young(&c.rec))
		ret->incomplete = true;
	if (c.alive && c.deleted)
		ret->leaving = true;
	*from = gs_grow(*from, ret->n, sizeof(**from));
	(*from)[ret->n] = place;
	ret->v = gs_grow(ret->v, ret->n, sizeof(*ret->v));
	ret->v[ret->n++] = c;
	return 0;
}

int containers_read(const char *run_dir, const struct cards *cards, const struct gs_catalogue *cat,
		    const struct settings *settings, struct containers *before,
		    struct containers *ret, void (*broken)(const char *id, const char *why),
		    struct gs_err *err)
{
	cleanup_strv struct gs_strv ids = { 0 };
	cleanup_free size_t *from = NULL;
	size_t at = 0;
	int r;

	*ret = (struct containers){ 0 };
	/* what is deleted and gone disappears first; what is deleted and lives is still there */
	gs_registry_sweep(run_dir, UINT_MAX);
	written(run_dir, ret->written);
	r = gs_registry_ids(run_dir, &ids, err);
	for (size_t i = 0; r == 0 && i < ids.n; i++)
		r = add_one(run_dir, ids.v[i], cards, cat, settings, before, &at, ret, &from,
			    broken, err);
	if (r < 0)
		give_back(before, ret, from);
	else
		inherit_cards(ret);
	return r;
}
