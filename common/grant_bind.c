// SPDX-License-Identifier: Apache-2.0
/*
 * Binding a grant to its first user. The name of a grant travels through the pod's annotations,
 * where others may read it; once bound it is worth nothing to them.
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
#include "common/grant_dir.h"
#include "common/json.h"
#include "common/xalloc.h"
#include "gpushare/grant.h"

/* What a .bound file says; strings are its own. */
struct binding {
	char *pod_uid, *container, *container_id;
};

static void binding_free(struct binding *b)
{
	free(b->pod_uid);
	free(b->container);
	free(b->container_id);
}

static int parse(const char *where, const char *text, size_t len, struct binding *b,
		 struct gs_err *err)
{
	static const char *const known[] = { "v", "pod_uid", "container", "container_id", NULL };
	cleanup_json json_t *obj = NULL;
	uint64_t v = 0;
	int r = gs_json_parse(where, text, len, &obj, err);

	if (r == 0)
		r = gs_json_known(obj, where, known, err);
	if (r == 0)
		r = gs_json_uint(obj, where, "v", true, &v, err);
	if (r == 0)
		r = gs_json_str(obj, where, "pod_uid", false, &b->pod_uid, err);
	if (r == 0)
		r = gs_json_str(obj, where, "container", false, &b->container, err);
	if (r == 0)
		r = gs_json_str(obj, where, "container_id", false, &b->container_id, err);
	if (r < 0)
		return r;
	if (v != GS_GRANT_VERSION || !b->pod_uid != !b->container ||
	    !b->pod_uid == !b->container_id)
		return gs_err_set(err, EINVAL, "%s: names no user that this version knows", where);
	return 0;
}

/* Both absent or both the same? */
static bool same(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool is_users(const struct binding *b, const struct gs_grant_user *user)
{
	return same(b->pod_uid, user->pod_uid) && same(b->container, user->container) &&
	       same(b->container_id, user->pod_uid ? NULL : user->container_id);
}

/* -ENOENT: there is none. The caller frees the binding, also after an error. */
static int read_binding(int dir, const char *name, struct binding *b, struct gs_err *err)
{
	cleanup_free char *text = NULL, *where = NULL;
	size_t len = 0;
	int r = grant_read_file(dir, name, GRANT_BOUND, &text, &len, err);

	if (r < 0)
		return r;
	where = gs_asprintf("%s: its binding", grant_label(name).s);
	return parse(where, text, len, b, err);
}

/* Compares the binding that stands in the file. -ENOENT: there is none. */
static int check(int dir, const char *name, const struct gs_grant_user *user, struct gs_err *err)
{
	struct binding b = { 0 };
	int r = read_binding(dir, name, &b, err);

	if (r == 0 && !is_users(&b, user))
		r = gs_err_set(err, EACCES, "%s is bound to another container",
			       grant_label(name).s);
	binding_free(&b);
	return r;
}

static int check_user(const char *name, const struct gs_grant_user *user, struct gs_err *err)
{
	if (!user->pod_uid == !user->container && (user->pod_uid || user->container_id))
		return 0;
	return gs_err_set(err, EINVAL, "%s: nobody is named who uses it", grant_label(name).s);
}

static void format(const struct gs_grant_user *user, struct gs_buf *out)
{
	gs_buf_addf(out, "{\"v\":%d,", GS_GRANT_VERSION);
	if (user->pod_uid) {
		gs_buf_adds(out, "\"pod_uid\":");
		gs_buf_add_json(out, user->pod_uid);
		gs_buf_adds(out, ",\"container\":");
		gs_buf_add_json(out, user->container);
	} else {
		gs_buf_adds(out, "\"container_id\":");
		gs_buf_add_json(out, user->container_id);
	}
	gs_buf_adds(out, "}\n");
}

/* Makes the file. -EEXIST: somebody else was first. */
static int make(int dir, const char *name, const struct gs_grant_user *user, struct gs_err *err)
{
	cleanup_buf struct gs_buf text = { 0 };
	cleanup_free char *where = gs_asprintf("%s: its new binding", grant_label(name).s);
	struct binding b = { 0 };
	char file[GRANT_NAME_MAX];
	struct stat st;
	int r;

	(void)snprintf(file, sizeof(file), "%s%s", name, GRANT_FILE);
	if (fstatat(dir, file, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return gs_err_set(err, ENOENT, "no such %s", grant_label(name).s);
	format(user, &text);
	r = parse(where, text.data, text.len, &b, err);
	/* What is no UTF-8 is changed by writing it, and would bind the grant to somebody else. */
	if (r == 0 && !is_users(&b, user))
		r = gs_err_set(err, EINVAL, "%s: its user's name is not UTF-8", where);
	binding_free(&b);
	if (r < 0)
		return r;
	(void)snprintf(file, sizeof(file), "%s%s", name, GRANT_BOUND);
	r = gs_file_create(dir, file, text.data, text.len, NULL);
	return r < 0 ? gs_err_errno(err, -r, "bind %s", grant_label(name).s) : 0;
}

struct gs_grant_user gs_grant_user_of(const char *pod_uid, const struct gs_identity *id,
				      const char *container_id)
{
	struct gs_grant_user user = { .container_id = container_id };

	if (pod_uid && gs_identity_is_set(id)) {
		user.pod_uid = pod_uid;
		user.container = id->container;
	}
	return user;
}

int gs_grant_bind(const char *lib_dir, const char *name, const struct gs_grant_user *user,
		  struct gs_err *err)
{
	cleanup_close int dir = grant_open_dir(lib_dir, name, false, err);
	int r;

	if (dir < 0)
		return dir;
	r = check_user(name, user, err);
	if (r < 0)
		return r;
	/* Nearly always a restart of the container that has it. */
	r = check(dir, name, user, err);
	if (r != -ENOENT)
		return r;
	r = make(dir, name, user, err);
	return r == -EEXIST ? check(dir, name, user, err) : r;
}

int gs_grant_bound(const char *lib_dir, const char *name, const struct gs_grant_user *user,
		   struct gs_err *err)
{
	cleanup_close int dir = grant_open_dir(lib_dir, name, false, err);
	int r;

	if (dir < 0)
		return dir;
	r = check_user(name, user, err);
	if (r == 0)
		r = check(dir, name, user, err);
	return r == -ENOENT ? gs_err_set(err, ENOENT, "%s is not bound", grant_label(name).s) : r;
}

int gs_grant_bound_pod(const char *lib_dir, const char *name, char **ret_uid, struct gs_err *err)
{
	cleanup_close int dir = grant_open_dir(lib_dir, name, false, err);
	struct binding b = { 0 };
	int r;

	if (dir < 0)
		return dir;
	r = read_binding(dir, name, &b, err);
	if (r == -ENOENT)
		r = 0;
	if (r == 0)
		*ret_uid = gs_steal(b.pod_uid);
	binding_free(&b);
	return r;
}

bool gs_grant_is_bound(const char *lib_dir, const char *name)
{
	cleanup_close int dir = grant_open_dir(lib_dir, name, false, NULL);
	char file[GRANT_NAME_MAX];
	struct stat st;

	if (dir < 0)
		return false;
	(void)snprintf(file, sizeof(file), "%s%s", name, GRANT_BOUND);
	return fstatat(dir, file, &st, AT_SYMLINK_NOFOLLOW) == 0;
}
