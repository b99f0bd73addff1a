// SPDX-License-Identifier: Apache-2.0
/*
 * What gpusharectl setup did, kept in lib_dir/setup/<runtime>.json: each file's text before and
 * after, and the edits between, so that it can be undone, also when others have edited the file
 * elsewhere since.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/file.h"
#include "common/json.h"
#include "common/xalloc.h"
#include "ctl/root.h"
#include "ctl/setup.h"

#define VERSION 1
#define FOLDER "setup"
#define BACKUP ".before-gpushare"
/* Two texts of each of a handful of files, escaped. */
#define RECORD_MAX (16 * 1024 * 1024)

struct setup_record {
	struct setup_file *files;
	size_t n;
	struct gs_strv backups, dirs; /* that were made */
};

static char *record_name(const char *runtime)
{
	return gs_asprintf("%s.json", runtime);
}

/* ---- Reading. */

static void add_entry(struct setup_record *record, const char *path, const char *before,
		      const char *after, const struct gs_strv *old, const struct gs_strv *new)
{
	struct setup_file *file;

	record->files = gs_grow(record->files, record->n, sizeof(*record->files));
	file = &record->files[record->n++];
	*file = (struct setup_file){ .path = gs_strdup(path) };
	file->before = before ? gs_strdup(before) : NULL;
	file->after = after ? gs_strdup(after) : NULL;
	for (size_t i = 0; i < old->n; i++)
		gs_strv_add(&file->old, old->v[i]);
	for (size_t i = 0; i < new->n; i++)
		gs_strv_add(&file->new, new->v[i]);
}

static int read_entry(struct setup_record *record, json_t *json, const char *where,
		      struct gs_err *err)
{
	cleanup_strv struct gs_strv old = { 0 }, new = { 0 };
	cleanup_free char *path = NULL, *before = NULL, *after = NULL;
	int r;

	r = gs_json_str(json, where, "path", true, &path, err);
	if (r == 0)
		r = gs_json_str(json, where, "before", false, &before, err);
	if (r == 0)
		r = gs_json_str(json, where, "after", false, &after, err);
	if (r == 0)
		r = gs_json_strv(json, where, "old", true, &old, err);
	if (r == 0)
		r = gs_json_strv(json, where, "new", true, &new, err);
	if (r < 0)
		return r;
	if (path[0] != '/' || old.n != new.n)
		return gs_err_set(err, EINVAL, "%s: this record was not written by setup", where);
	add_entry(record, path, before, after, &old, &new);
	return 0;
}

int setup_record_load(const struct setup_node *node, const char *runtime, struct setup_record **ret,
		      struct gs_err *err)
{
	cleanup_close int dir = gs_dir_open(node->lib_dir, FOLDER, err);
	cleanup_free char *name = record_name(runtime);
	cleanup_free char *where = gs_asprintf("%s/" FOLDER "/%s", node->lib_dir, name);
	struct setup_record *record;
	cleanup_json json_t *json = NULL;
	uint64_t version = 0;
	int r;

	if (dir < 0)
		return dir;
	r = gs_json_read(dir, name, O_NOFOLLOW, RECORD_MAX, &json, err);
	if (r == 0)
		r = gs_json_uint(json, where, "version", true, &version, err);
	if (r == 0 && version != VERSION)
		r = gs_err_set(err, EINVAL, "%s: written by a newer gpusharectl", where);
	if (r < 0)
		return r;
	record = gs_calloc(1, sizeof(*record));
	for (size_t i = 0; r == 0 && i < json_array_size(json_object_get(json, "files")); i++)
		r = read_entry(record, json_array_get(json_object_get(json, "files"), i), where,
			       err);
	if (r == 0)
		r = gs_json_strv(json, where, "backups", true, &record->backups, err);
	if (r == 0)
		r = gs_json_strv(json, where, "dirs", true, &record->dirs, err);
	if (r < 0)
		setup_record_free(record);
	else
		*ret = record;
	return r;
}

void setup_record_free(struct setup_record *record)
{
	if (!record)
		return;
	for (size_t i = 0; i < record->n; i++) {
		free(record->files[i].path);
		free(record->files[i].before);
		free(record->files[i].after);
		gs_strv_free(&record->files[i].old);
		gs_strv_free(&record->files[i].new);
	}
	free(record->files);
	gs_strv_free(&record->backups);
	gs_strv_free(&record->dirs);
	free(record);
}

static void cleanup_record_ptr(struct setup_record **record)
{
	setup_record_free(*record);
}

const struct setup_file *setup_record_file(const struct setup_record *record, const char *path)
{
	for (size_t i = 0; record && i < record->n; i++)
		if (strcmp(record->files[i].path, path) == 0)
			return &record->files[i];
	return NULL;
}

/* ---- Writing. */

static int write_record(const struct setup_node *node, const char *runtime,
			const struct setup_record *record, struct gs_err *err)
{
	cleanup_close int dir = gs_dir_make(node->lib_dir, FOLDER, err);
	struct stat like = { .st_mode = S_IFREG | 0600, .st_uid = geteuid(), .st_gid = getegid() };
	cleanup_free char *name = record_name(runtime), *text = NULL;
	cleanup_json json_t *json = NULL;
	json_t *files = json_array();

	for (size_t i = 0; i < record->n; i++) {
		const struct setup_file *file = &record->files[i];

		(void)json_array_append_new(files,
					    json_pack("{s:s,s:s*,s:s*,s:o,s:o}", "path", file->path,
						      "before", file->before, "after", file->after,
						      "old", gs_json_list(&file->old), "new",
						      gs_json_list(&file->new)));
	}
	json = json_pack("{s:i,s:s,s:o,s:o,s:o}", "version", VERSION, "runtime", runtime, "files",
			 files, "backups", gs_json_list(&record->backups), "dirs",
			 gs_json_list(&record->dirs));
	text = json_dumps(json, JSON_INDENT(1));
	if (dir < 0)
		return dir;
	if (!text)
		return gs_err_set(err, EINVAL, "%s: can't be written as JSON", name);
	return gs_file_replace(dir, name, text, strlen(text), &like, err);
}

static void remove_record(const struct setup_node *node, const char *runtime)
{
	cleanup_close int dir = gs_dir_open(node->lib_dir, NULL, NULL);
	cleanup_close int folder = gs_dir_open(node->lib_dir, FOLDER, NULL);
	cleanup_free char *name = record_name(runtime);

	if (folder >= 0)
		(void)unlinkat(folder, name, 0);
	if (dir >= 0)
		(void)unlinkat(dir, FOLDER, AT_REMOVEDIR);
}

static bool same(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

/* Does the plan take all of ours out of that file? */
static bool is_dropped(const struct setup_plan *plan, const char *path)
{
	for (size_t i = 0; i < plan->n; i++)
		if (strcmp(plan->files[i].path, path) == 0)
			return !same(plan->files[i].now, plan->files[i].after);
	return false;
}

/* The record of the plan, with what an earlier one has besides. */
static struct setup_record *make_record(const struct setup_plan *plan)
{
	struct setup_record *record = gs_calloc(1, sizeof(*record));

	for (size_t i = 0; i < plan->n; i++) {
		const struct setup_file *file = &plan->files[i];

		if (!same(file->before, file->after))
			add_entry(record, file->path, file->before, file->after, &file->old,
				  &file->new);
	}
	for (size_t i = 0; plan->record && i < plan->record->n; i++) {
		const struct setup_file *file = &plan->record->files[i];

		if (!setup_record_file(record, file->path) && !is_dropped(plan, file->path))
			add_entry(record, file->path, file->before, file->after, &file->old,
				  &file->new);
	}
	if (plan->record) {
		gs_strv_merge(&record->backups, &plan->record->backups);
		gs_strv_merge(&record->dirs, &plan->record->dirs);
	}
	return record;
}

/* Two at once would each keep the other's work as what was there before. */
static int lock(const struct setup_node *node, int *ret, struct gs_err *err)
{
	int dir = gs_dir_make(node->lib_dir, FOLDER, err);

	if (dir < 0)
		return dir;
	*ret = dir;
	if (flock(dir, LOCK_EX | LOCK_NB) < 0)
		return gs_err_set(err, EBUSY, "another gpusharectl setup is at work");
	return 0;
}

/* Is what the plan was made of still there? */
static int check_unchanged(const struct setup_plan *plan, struct gs_err *err)
{
	for (size_t i = 0; i < plan->n; i++) {
		cleanup_free char *now = NULL;
		const char *was = plan->files[i].now;
		int r = root_read(plan->node->root, plan->files[i].path, &now, err);

		if (r < 0 && r != -ENOENT)
			return r;
		if (now && was ? strcmp(now, was) != 0 : now || was)
			return gs_err_set(err, EBUSY, "%s: somebody else is changing it",
					  plan->files[i].path);
	}
	return 0;
}

static int put(const struct setup_plan *plan, const char *path, const char *text,
	       struct gs_strv *made, struct gs_err *err)
{
	return text ? root_write(plan->node->root, path, text, made, err) :
		      root_remove(plan->node->root, path, err);
}

/* Writes every file that differs; puts those back that were written when one can't be. */
static int put_all(const struct setup_plan *plan, struct gs_strv *made, struct gs_err *err)
{
	for (size_t i = 0; i < plan->n; i++) {
		const struct setup_file *file = &plan->files[i];
		int r = same(file->now, file->after) ?
				0 :
				put(plan, file->path, file->after, made, err);

		if (r == 0)
			continue;
		while (i-- > 0)
			if (!same(plan->files[i].now, plan->files[i].after))
				(void)put(plan, plan->files[i].path, plan->files[i].now, NULL,
					  NULL);
		for (size_t d = made->n; d-- > 0;)
			root_rmdir(plan->node->root, made->v[d]);
		return r;
	}
	return 0;
}

static void keep_backups(const struct setup_plan *plan, struct setup_record *record)
{
	for (size_t i = 0; i < plan->n; i++) {
		const struct setup_file *file = &plan->files[i];
		cleanup_free char *backup = gs_asprintf("%s" BACKUP, file->path);

		/* One that is there already is somebody's, or older and so closer to the truth. */
		if (file->before && !same(file->before, file->after) &&
		    root_keep(plan->node->root, backup, file->before))
			gs_strv_add_once(&record->backups, backup);
	}
}

static void drop_backups(const struct setup_node *node, const struct gs_strv *backups)
{
	for (size_t i = 0; i < backups->n; i++)
		(void)root_remove(node->root, backups->v[i], NULL);
}

int setup_apply(struct setup_plan *plan, struct gs_err *err)
{
	__attribute__((cleanup(cleanup_record_ptr))) struct setup_record *record = NULL;
	cleanup_strv struct gs_strv made = { 0 };
	cleanup_close int locked = -1;
	int r = lock(plan->node, &locked, err);

	if (r == 0)
		r = check_unchanged(plan, err);
	if (r < 0)
		return r;
	record = make_record(plan);
	keep_backups(plan, record);
	/* Before the files: if it is killed in between, the undo finds nothing to do. */
	r = write_record(plan->node, plan->runtime, record, err);
	if (r == 0)
		r = put_all(plan, &made, err);
	if (r == 0) {
		gs_strv_merge(&record->dirs, &made);
		return made.n ? write_record(plan->node, plan->runtime, record, err) : 0;
	}
	if (plan->record) {
		(void)write_record(plan->node, plan->runtime, plan->record, NULL);
	} else {
		drop_backups(plan->node, &record->backups);
		remove_record(plan->node, plan->runtime);
	}
	return r;
}

/* ---- Undoing. */

static int undo_file(struct setup_plan *plan, const struct setup_file *was, struct gs_err *err)
{
	struct setup_file *file;
	char *now = NULL;
	int r = root_read(plan->node->root, was->path, &now, err);

	if (r < 0 && r != -ENOENT)
		return r;
	plan->files = gs_grow(plan->files, plan->n, sizeof(*plan->files));
	file = &plan->files[plan->n++];
	*file = (struct setup_file){ .path = gs_strdup(was->path), .now = now };
	if (same(now, was->after) || same(now, was->before))
		file->after = was->before ? gs_strdup(was->before) : NULL;
	else if (now && was->before)
		file->after = setup_unedit(now, &was->old, &was->new);
	else if (!now && was->before)
		return gs_err_set(err, EBUSY, "%s: is gone; %s" BACKUP " is how it was", was->path,
				  was->path);
	if (!file->after && was->before)
		return gs_err_set(err, EBUSY,
				  "%s: was edited since in the lines that setup wrote; take out by "
				  "hand what is about gpushare (%s" BACKUP " is how it was)",
				  was->path, was->path);
	if (!was->before && now && !same(now, was->after))
		return gs_err_set(err, EBUSY,
				  "%s: setup made it, and it was edited since; remove it, or take "
				  "out by hand what is about gpushare",
				  was->path);
	return 0;
}

int setup_undo_plan(struct setup_plan *plan, struct gs_err *err)
{
	int r = 0;

	/* The last first, so that nothing is imported that is gone. */
	for (size_t i = plan->record->n; r == 0 && i-- > 0;)
		r = undo_file(plan, &plan->record->files[i], err);
	return r;
}

int setup_undo(struct setup_plan *plan, struct gs_err *err)
{
	cleanup_strv struct gs_strv made = { 0 };
	cleanup_close int locked = -1;
	int r = lock(plan->node, &locked, err);

	if (r == 0)
		r = check_unchanged(plan, err);
	if (r == 0)
		r = put_all(plan, &made, err);
	if (r < 0)
		return r;
	drop_backups(plan->node, &plan->record->backups);
	for (size_t i = plan->record->dirs.n; i-- > 0;)
		root_rmdir(plan->node->root, plan->record->dirs.v[i]);
	remove_record(plan->node, plan->runtime);
	return 0;
}
