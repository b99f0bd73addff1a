// SPDX-License-Identifier: Apache-2.0
/*
 * Writing, finding and reading records. Of what belongs to a container the link to its next runtime
 * is written first, because `delete` goes by it, and then the record; removed last is the record,
 * because everything else is found through it. So a crash in between leaves a record that a delete
 * finds, or a lone link that it takes away, never an entry that nobody finds.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/file.h"
#include "common/record.h"
#include "common/registry_dir.h"
#include "common/xalloc.h"

/* A sweep holds the lock for a few files' time; nobody waits longer than this for a stuck one. */
#define LOCK_WAIT_MS 100
/* How often a name's folder may vanish between making it and using it. */
#define NAME_TRIES 1000

struct reg_name reg_file(const char *id, const char *ending)
{
	struct reg_name name;

	(void)snprintf(name.s, sizeof(name.s), "%s%s", id, ending);
	return name;
}

/* The folder of a name in by-name/: 16 lower-case hex digits. */
static struct reg_name hash_name(const struct gs_identity *identity)
{
	struct reg_name name;

	(void)snprintf(name.s, sizeof(name.s), "%016llx",
		       (unsigned long long)gs_identity_hash(identity));
	return name;
}

/* -EINVAL where @id is none that may be part of a file name. */
static int check_id(const char *id, struct gs_err *err)
{
	char *quoted;
	int r;

	if (gs_id_valid(id))
		return 0;
	quoted = gs_quote(id, strlen(id));
	r = gs_err_set(err, EINVAL, "%s can be no container id in the registry", quoted);
	free(quoted);
	return r;
}

int reg_read(int containers, const char *run_dir, const char *id, struct gs_record *ret,
	     struct gs_err *err)
{
	struct reg_name file = reg_file(id, REG_RECORD);
	cleanup_free char *text = NULL, *path = NULL;
	size_t len;
	int r = gs_file_read(containers, file.s, O_NOFOLLOW, GS_RECORD_MAX, &text, &len, NULL, err);

	if (r == -ENOENT)
		return gs_err_set(err, ENOENT, "no record of container %s", id);
	if (r < 0)
		return r;
	path = gs_asprintf("%s/%s/%s", run_dir, GS_REGISTRY_CONTAINERS, file.s);
	return gs_record_parse(path, id, text, len, ret, err);
}

/* Opens containers/; -ENOENT where there is no registry yet. */
static int open_containers(const char *run_dir, struct gs_err *err)
{
	return gs_dir_open(run_dir, GS_REGISTRY_CONTAINERS, err);
}

int gs_registry_read(const char *run_dir, const char *id, struct gs_record *ret, struct gs_err *err)
{
	cleanup_close int dir = -1;
	int r = check_id(id, err);

	if (r < 0)
		return r;
	dir = open_containers(run_dir, err);
	if (dir == -ENOENT)
		return gs_err_set(err, ENOENT, "no record of container %s", id);
	return dir < 0 ? dir : reg_read(dir, run_dir, id, ret, err);
}

/*
 * The entry by-name/<hash>/<id>. Whoever removes the last entry of a name removes its folder, so
 * it may be gone between making it and making the entry in it.
 */
static int make_name(const char *run_dir, const struct gs_identity *identity, const char *id,
		     struct gs_err *err)
{
	struct reg_name hash = hash_name(identity);
	cleanup_close int dir = gs_dir_make(run_dir, GS_REGISTRY_BY_NAME, err);

	if (dir < 0)
		return dir;
	for (int i = 0; i < NAME_TRIES; i++) {
		cleanup_close int sub = -1, fd = -1;

		if (mkdirat(dir, hash.s, 0700) < 0 && errno != EEXIST)
			break;
		sub = openat(dir, hash.s, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (sub < 0 && errno == ENOENT)
			continue;
		if (sub < 0)
			break;
		fd = openat(sub, id, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd >= 0)
			return 0;
		if (errno != ENOENT)
			break;
	}
	return gs_err_errno(err, errno, "%s/%s/%s/%s", run_dir, GS_REGISTRY_BY_NAME, hash.s, id);
}

void reg_forget_name(const char *run_dir, const struct gs_identity *name, const char *id)
{
	struct reg_name hash = hash_name(name);
	cleanup_close int dir = gs_dir_open(run_dir, GS_REGISTRY_BY_NAME, NULL), sub = -1;

	if (dir < 0)
		return;
	sub = openat(dir, hash.s, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (sub < 0)
		return;
	(void)unlinkat(sub, id, 0);
	/* Fails where other containers have the name. */
	(void)unlinkat(dir, hash.s, AT_REMOVEDIR);
}

/* The text of <id>.next: the path of the next runtime and, on a line of its own, its --root. */
static char *next_text(const char *next, const char *root)
{
	return root ? gs_asprintf("%s\n%s", next, root) : gs_strdup(next);
}

/* The link <id>.next, or none. */
static int make_next(int containers, const struct gs_record *record, struct gs_err *err)
{
	struct reg_name name = reg_file(record->id, REG_NEXT);
	cleanup_free char *text = NULL;

	if (!record->next) {
		(void)unlinkat(containers, name.s, 0);
		return 0;
	}
	text = next_text(record->next, record->root);
	return gs_link_replace(containers, name.s, text, err);
}

/*
 * Looks at what an earlier container of this id has left. -EEXIST where it lives; else what of it
 * would be taken for the new one's is removed.
 */
static int replace_old(const char *run_dir, int containers, const struct gs_record *record,
		       struct gs_err *err)
{
	cleanup_record struct gs_record old = { 0 };
	struct reg_name hook = reg_file(record->id, REG_HOOK);
	int r = reg_read(containers, run_dir, record->id, &old, NULL);

	/* A damaged one tells nothing, and is overwritten. */
	if (r == 0 && gs_registry_alive(run_dir, &old, NULL, NULL) == 0)
		return gs_err_set(err, EEXIST, "container %s is running, from bundle %s",
				  record->id, old.bundle);
	(void)unlinkat(containers, hook.s, 0);
	if (r == 0 && gs_identity_is_set(&old.identity) &&
	    !gs_identity_equal(&old.identity, &record->identity))
		reg_forget_name(run_dir, &old.identity, record->id);
	return 0;
}

/* Also where the lock was not to be had: a mark left would let the next sweep take the new one. */
static void unmark(const char *run_dir, const char *id)
{
	cleanup_close int marks = gs_dir_open(run_dir, GS_REGISTRY_DELETED, NULL);

	if (marks >= 0)
		(void)unlinkat(marks, id, 0);
}

int gs_registry_write(const char *run_dir, const struct gs_record *record, struct gs_err *err)
{
	cleanup_buf struct gs_buf text = { 0 };
	cleanup_close int dir = -1, lock = -1;
	struct reg_name file;
	int r = gs_record_format(record, &text, err);

	if (r < 0)
		return r;
	dir = gs_dir_make(run_dir, GS_REGISTRY_CONTAINERS, err);
	if (dir < 0)
		return dir;
	/* Without marks there is no sweep that could take the new record for the old one. */
	lock = reg_lock(run_dir, LOCK_WAIT_MS);
	r = replace_old(run_dir, dir, record, err);
	if (r < 0)
		return r;
	file = reg_file(record->id, REG_RECORD);
	r = make_next(dir, record, err);
	if (r == 0)
		r = gs_file_publish(dir, file.s, text.data, text.len, err);
	if (r == 0 && gs_identity_is_set(&record->identity))
		r = make_name(run_dir, &record->identity, record->id, err);
	if (r < 0)
		reg_remove(run_dir, dir, record->id, record);
	if (lock != -ENOENT)
		unmark(run_dir, record->id);
	return r;
}

int gs_registry_write_hook(const char *run_dir, const char *id, const struct gs_hook_record *hook,
			   struct gs_err *err)
{
	cleanup_buf struct gs_buf text = { 0 };
	cleanup_close int dir = -1;
	struct reg_name file;
	int r = gs_hook_record_format(id, hook, &text, err);

	if (r < 0)
		return r;
	dir = gs_dir_make(run_dir, GS_REGISTRY_CONTAINERS, err);
	if (dir < 0)
		return dir;
	file = reg_file(id, REG_HOOK);
	return gs_file_publish(dir, file.s, text.data, text.len, err);
}

int gs_registry_read_hook(const char *run_dir, const char *id, struct gs_hook_record *ret,
			  struct gs_err *err)
{
	cleanup_free char *text = NULL, *path = NULL;
	cleanup_close int dir = -1;
	struct reg_name file;
	size_t len;
	int r = check_id(id, err);

	if (r < 0)
		return r;
	dir = open_containers(run_dir, err);
	if (dir < 0)
		return dir;
	file = reg_file(id, REG_HOOK);
	r = gs_file_read(dir, file.s, O_NOFOLLOW, GS_RECORD_MAX, &text, &len, NULL, err);
	if (r < 0)
		return r;
	path = gs_asprintf("%s/%s/%s", run_dir, GS_REGISTRY_CONTAINERS, file.s);
	return gs_hook_record_parse(path, id, text, len, ret, err);
}

char *gs_registry_next(const char *run_dir, const char *id, const char *root)
{
	cleanup_free char *text = NULL, *next = NULL, *want = NULL;
	cleanup_close int dir = -1;

	if (!gs_id_valid(id))
		return NULL;
	/* it is going to be executed: only from a folder that is root's alone */
	dir = open_containers(run_dir, NULL);
	text = dir < 0 ? NULL : gs_link_read(dir, reg_file(id, REG_NEXT).s);
	if (!text)
		return NULL;
	next = gs_strndup(text, strcspn(text, "\n"));
	want = next_text(next, root);
	return strcmp(text, want) == 0 ? gs_steal(next) : NULL;
}

void gs_registry_drop_dead(const char *run_dir, const char *id)
{
	cleanup_record struct gs_record record = { 0 };
	cleanup_free char *path = NULL;

	if (!gs_id_valid(id))
		return;
	path = gs_asprintf("%s/%s/%s%s", run_dir, GS_REGISTRY_CONTAINERS, id, REG_RECORD);
	if (access(path, F_OK) < 0)
		return;
	if (gs_registry_read(run_dir, id, &record, NULL) < 0 ||
	    gs_registry_alive(run_dir, &record, NULL, NULL) < 0)
		gs_registry_remove(run_dir, id);
}

int gs_registry_each_named(const char *run_dir, const struct gs_identity *name,
			   int (*each)(const struct gs_record *record, void *arg), void *arg,
			   unsigned int *ret_broken)
{
	cleanup_close int containers = open_containers(run_dir, NULL);
	cleanup_close int by_name = gs_dir_open(run_dir, GS_REGISTRY_BY_NAME, NULL);
	struct reg_name hash = hash_name(name);
	cleanup_dir DIR *dir = NULL;
	struct dirent *entry;
	unsigned int broken = 0;
	int r = 0;

	/* No registry yet is fine; one that can't be used counts as a record that can't be read. */
	*ret_broken = (containers < 0 && containers != -ENOENT) ||
		      (by_name < 0 && by_name != -ENOENT);
	if (containers < 0 || by_name < 0)
		return 0;
	dir = gs_opendirat(by_name, hash.s);
	while (r == 0 && dir && (entry = readdir(dir))) {
		cleanup_record struct gs_record record = { 0 };
		int found;

		if (!gs_id_valid(entry->d_name))
			continue;
		found = reg_read(containers, run_dir, entry->d_name, &record, NULL);
		/* -ENOENT: it is being removed. */
		if (found < 0)
			broken += found != -ENOENT;
		else if (gs_identity_equal(&record.identity, name))
			r = each(&record, arg);
	}
	*ret_broken = broken;
	return r;
}

int gs_registry_ids(const char *run_dir, struct gs_strv *ret, struct gs_err *err)
{
	cleanup_close int dir = open_containers(run_dir, err);
	int r;

	if (dir == -ENOENT) {
		*ret = (struct gs_strv){ 0 };
		return 0;
	}
	if (dir < 0)
		return dir;
	/* "<id>.hook" is no valid id, so the hook's files are left out here. */
	r = gs_dir_names(dir, REG_RECORD, gs_id_valid, ret);
	return r < 0 ? gs_err_errno(err, -r, "read directory %s/%s", run_dir,
				    GS_REGISTRY_CONTAINERS) :
		       0;
}
