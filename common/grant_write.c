// SPDX-License-Identifier: Apache-2.0
/* Making, revoking and listing grants. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/file.h"
#include "common/grant_dir.h"
#include "common/utf8.h"
#include "common/xalloc.h"
#include "gpushare/grant.h"

int gs_grant_name_new(char ret[33], struct gs_err *err)
{
	unsigned char bytes[GS_GRANT_NAME_LEN / 2];

	/* Blocks until the kernel has gathered randomness, and then never gives less. */
	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return gs_err_errno(err, errno, "getrandom");
	for (size_t i = 0; i < sizeof(bytes); i++)
		(void)snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

/* The text of the grant, if it can be read back. */
static int format(const char *name, const struct gs_grant *grant, struct gs_buf *out,
		  struct gs_err *err)
{
	cleanup_grant struct gs_grant back = { 0 };

	for (size_t i = 0; i < grant->cards.n; i++)
		if (!gs_utf8_valid(grant->cards.v[i]))
			return gs_err_set(err, EINVAL, "%s: a card's name is not UTF-8",
					  grant_label(name).s);
	grant_format(grant, out);
	if (out->len > GRANT_FILE_MAX)
		return gs_err_set(err, EINVAL, "%s would be larger than %d bytes",
				  grant_label(name).s, GRANT_FILE_MAX);
	return grant_parse(name, out->data, out->len, &back, err);
}

int gs_grant_create_as(const char *lib_dir, const char *name, const struct gs_grant *grant,
		       struct gs_err *err)
{
	cleanup_buf struct gs_buf text = { 0 };
	cleanup_close int dir = -1;
	char file[GRANT_NAME_MAX];
	int r;

	if (grant->kind == GS_GRANT_SPOT && !grant->lease_boot_id)
		return gs_err_set(err, EINVAL, "only a share grant can be made without a lease");
	r = format(name, grant, &text, err);
	if (r < 0)
		return r;
	dir = grant_open_dir(lib_dir, name, true, err);
	if (dir < 0)
		return dir;
	(void)snprintf(file, sizeof(file), "%s%s", name, GRANT_FILE);
	r = gs_file_create(dir, file, text.data, text.len, NULL);
	if (r < 0)
		return gs_err_errno(err, -r, "write a grant to %s/%s", lib_dir, GS_GRANT_DIR);
	return 0;
}

int gs_grant_create(const char *lib_dir, const struct gs_grant *grant, char ret_name[33],
		    struct gs_err *err)
{
	char name[33];
	int r = gs_grant_name_new(name, err);

	if (r == 0)
		r = gs_grant_create_as(lib_dir, name, grant, err);
	if (r == 0)
		(void)memcpy(ret_name, name, sizeof(name));
	return r;
}

/*
 * Reads the grant, lets @change change it (negative: not to be written; 0: it is so already) and
 * writes it. The lock on the folder keeps a renewal that has read the grant before it was revoked
 * from writing it after that.
 */
static int rewrite(const char *lib_dir, const char *name,
		   int (*change)(struct gs_grant *grant, const void *arg, struct gs_err *err),
		   const void *arg, bool durable, struct gs_err *err)
{
	const struct stat like = { .st_mode = 0600 };
	cleanup_close int dir = grant_open_dir(lib_dir, name, false, err);
	cleanup_grant struct gs_grant grant = { 0 };
	cleanup_buf struct gs_buf text = { 0 };
	char file[GRANT_NAME_MAX];
	int r;

	if (dir < 0)
		return dir;
	if (flock(dir, LOCK_EX) < 0)
		return gs_err_errno(err, errno, "lock %s/%s", lib_dir, GS_GRANT_DIR);
	r = gs_grant_read(lib_dir, name, &grant, err);
	if (r == 0)
		r = change(&grant, arg, err);
	if (r <= 0)
		return r;
	r = format(name, &grant, &text, err);
	if (r < 0)
		return r;
	(void)snprintf(file, sizeof(file), "%s%s", name, GRANT_FILE);
	r = durable ? gs_file_replace(dir, file, text.data, text.len, &like, NULL) :
		      gs_file_publish(dir, file, text.data, text.len, NULL);
	return r < 0 ? gs_err_errno(err, -r, "write %s", grant_label(name).s) : 0;
}

static int set_revoked(struct gs_grant *grant, const void *arg, struct gs_err *err)
{
	(void)arg;
	(void)err;
	if (grant->revoked)
		return 0;
	grant->revoked = true;
	return 1;
}

int gs_grant_revoke(const char *lib_dir, const char *name, struct gs_err *err)
{
	return rewrite(lib_dir, name, set_revoked, NULL, true, err);
}

int gs_grant_remove(const char *lib_dir, const char *name, unsigned int age_s, struct gs_err *err)
{
	cleanup_close int dir = grant_open_dir(lib_dir, name, false, err);
	char file[GRANT_NAME_MAX], bound[GRANT_NAME_MAX];
	struct stat st;

	if (dir < 0)
		return dir;
	(void)snprintf(file, sizeof(file), "%s%s", name, GRANT_FILE);
	(void)snprintf(bound, sizeof(bound), "%s%s", name, GRANT_BOUND);
	if (fstatat(dir, file, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return gs_err_errno(err, errno, "%s", grant_label(name).s);
	if (time(NULL) - st.st_mtime < (time_t)age_s)
		return gs_err_set(err, EAGAIN, "%s is younger", grant_label(name).s);
	/* in this order: a binding without a grant binds nobody, a grant without one anybody */
	if (unlinkat(dir, file, 0) < 0 || (unlinkat(dir, bound, 0) < 0 && errno != ENOENT))
		return gs_err_errno(err, errno, "remove %s", grant_label(name).s);
	return 0;
}

struct lease {
	const char *boot_id;
	uint64_t deadline_ms;
};

static int renew(struct gs_grant *grant, const void *arg, struct gs_err *err)
{
	const struct lease *lease = arg;

	if (grant->kind != GS_GRANT_SPOT)
		return gs_err_set(err, EINVAL, "%s has no lease", grant_label(grant->name).s);
	if (grant->revoked)
		return gs_err_set(err, ECANCELED, "%s was revoked", grant_label(grant->name).s);
	free(grant->lease_boot_id);
	grant->lease_boot_id = gs_strdup(lease->boot_id);
	grant->lease_deadline_ms = lease->deadline_ms;
	return 1;
}

/* Not durable: a lease is of this boot. */
int gs_grant_renew(const char *lib_dir, const char *name, const char *boot_id, uint64_t deadline_ms,
		   struct gs_err *err)
{
	const struct lease lease = { boot_id, deadline_ms };

	return rewrite(lib_dir, name, renew, &lease, false, err);
}

int gs_grant_list(const char *lib_dir, struct gs_strv *ret, struct gs_err *err)
{
	cleanup_close int dir = grant_open_dir(lib_dir, NULL, false, err);
	int r;

	if (dir == -ENOENT) {
		*ret = (struct gs_strv){ 0 };
		return 0;
	}
	if (dir < 0)
		return dir;
	r = gs_dir_names(dir, GRANT_FILE, gs_grant_name_valid, ret);
	return r < 0 ? gs_err_errno(err, -r, "read directory %s/%s", lib_dir, GS_GRANT_DIR) : 0;
}

int gs_grant_taken_back(const char *lib_dir, const char *resource, const struct gs_strv *devices,
			struct gs_err *err)
{
	cleanup_strv struct gs_strv names = { 0 };
	int r = gs_grant_list(lib_dir, &names, err);
	bool revoked = false;

	for (size_t i = 0; r == 0 && i < names.n; i++) {
		cleanup_grant struct gs_grant grant = { 0 };

		r = gs_grant_read(lib_dir, names.v[i], &grant, err);
		if (r == -ENOENT) { /* it went meanwhile */
			r = 0;
			continue;
		}
		if (r < 0 || !grant.resource || strcmp(grant.resource, resource) != 0 ||
		    !gs_strv_intersect(&grant.devices, devices))
			continue;
		if (!grant.revoked)
			return 0;
		revoked = true;
	}
	return r < 0 ? r : revoked;
}
