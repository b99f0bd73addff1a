// SPDX-License-Identifier: Apache-2.0
/* Grants: reading and judging them. Their names are secrets until bound: messages are cut. */
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
#include "common/proc.h"
#include "common/xalloc.h"
#include "gpushare/grant.h"

#define SHORT_LEN 6

static const char *const kinds[] = { "share", "spot", NULL };
static const char *const states[] = { "active", "revoked", NULL };

void gs_grant_free(struct gs_grant *grant)
{
	free(grant->resource);
	gs_strv_free(&grant->cards);
	for (size_t i = 0; i < grant->n_sources; i++)
		gs_identity_free(&grant->sources[i]);
	free(grant->sources);
	gs_strv_free(&grant->free);
	gs_strv_free(&grant->devices);
	gs_identity_free(&grant->to);
	free(grant->lease_boot_id);
	*grant = (struct gs_grant){ 0 };
}

bool gs_grant_name_valid(const char *name)
{
	return strspn(name, "0123456789abcdef") == GS_GRANT_NAME_LEN && !name[GS_GRANT_NAME_LEN];
}

const char *gs_grant_short(const char *name, char buf[10])
{
	(void)snprintf(buf, 10, "%.*s...", SHORT_LEN, name);
	return buf;
}

struct grant_label grant_label(const char *name)
{
	struct grant_label label;
	char buf[10];

	(void)snprintf(label.s, sizeof(label.s), "grant %s", gs_grant_short(name, buf));
	return label;
}

int grant_open_dir(const char *lib_dir, const char *name, bool make, struct gs_err *err)
{
	cleanup_close int fd = -1;
	struct stat st;

	if (name && !gs_grant_name_valid(name))
		return gs_err_set(err, EINVAL, "%s: a grant's name is %d lower-case hex digits",
				  grant_label(name).s, GS_GRANT_NAME_LEN);
	fd = make ? gs_dir_make(lib_dir, GS_GRANT_DIR, err) :
		    gs_dir_open(lib_dir, GS_GRANT_DIR, err);
	if (fd < 0)
		return fd;
	/* Who can list the folder has every name, and so every grant not yet bound. */
	if (fstat(fd, &st) < 0 || st.st_uid != 0 || (st.st_mode & 07777) != 0700)
		return gs_err_set(err, EPERM, "%s/%s must be root's with mode 0700", lib_dir,
				  GS_GRANT_DIR);
	return gs_steal_fd(&fd);
}

int grant_read_file(int dir, const char *name, const char *ending, char **ret, size_t *ret_len,
		    struct gs_err *err)
{
	cleanup_free char *text = NULL;
	char file[GRANT_NAME_MAX];
	struct stat st;
	size_t len;
	int r;

	(void)snprintf(file, sizeof(file), "%s%s", name, ending);
	r = gs_file_read(dir, file, O_NOFOLLOW, GRANT_FILE_MAX, &text, &len, &st, NULL);
	if (r == -ELOOP)
		return gs_err_set(err, EPERM, "%s: its file is a symbolic link",
				  grant_label(name).s);
	if (r == -EINVAL)
		return gs_err_set(err, EINVAL, "%s: its file is not a regular one",
				  grant_label(name).s);
	if (r == -EFBIG)
		return gs_err_set(err, EINVAL, "%s: its file is larger than %d bytes",
				  grant_label(name).s, GRANT_FILE_MAX);
	if (r < 0)
		return gs_err_errno(err, -r, "%s", grant_label(name).s);
	if (st.st_uid != 0 || (st.st_mode & (S_IWGRP | S_IWOTH)))
		return gs_err_set(err, EPERM, "%s: others than root may change its file",
				  grant_label(name).s);
	*ret = gs_steal(text);
	*ret_len = len;
	return 0;
}

/* A name in a grant is whole: there is no "here" for "_" to mean. */
static int parse_name(const char *where, const char *key, const char *text, struct gs_identity *ret,
		      struct gs_err *err)
{
	int r = gs_identity_parse(text, strlen(text), NULL, ret, err);

	return r < 0 ? gs_err_prefix(err, "%s: %s", where, key) : 0;
}

static int parse_names(const json_t *obj, const char *where, struct gs_grant *grant,
		       struct gs_err *err)
{
	cleanup_strv struct gs_strv sources = { 0 };
	cleanup_free char *to = NULL;
	int r = gs_json_strv(obj, where, "sources", true, &sources, err);

	if (r == 0)
		r = gs_json_str(obj, where, "to", false, &to, err);
	if (r == 0 && sources.n == 0 && grant->kind == GS_GRANT_SHARE)
		r = gs_err_set(err, EINVAL, "%s: sources must not be empty", where);
	for (size_t i = 0; r == 0 && i < sources.n; i++) {
		struct gs_identity source = { 0 };

		r = parse_name(where, "sources", sources.v[i], &source, err);
		if (r < 0)
			break;
		grant->sources = gs_grow(grant->sources, grant->n_sources, sizeof(source));
		grant->sources[grant->n_sources++] = source;
	}
	if (r == 0 && to)
		r = parse_name(where, "to", to, &grant->to, err);
	return r;
}

static int parse_lease(const json_t *obj, const char *where, struct gs_grant *grant,
		       struct gs_err *err)
{
	static const char *const known[] = { "boot_id", "deadline_ms", NULL };
	const json_t *lease = json_object_get(obj, "lease");
	cleanup_free char *inner = gs_asprintf("%s: lease", where);
	int r;

	if (!lease && grant->kind == GS_GRANT_SHARE)
		return 0;
	if (!lease)
		return gs_err_set(err, EINVAL, "%s: lease is missing", where);
	if (grant->kind == GS_GRANT_SHARE)
		return gs_err_set(err, EINVAL, "%s: a share grant has no lease", where);
	if (!json_is_object(lease))
		return gs_err_set(err, EINVAL, "%s must be an object", inner);
	r = gs_json_known(lease, inner, known, err);
	if (r == 0)
		r = gs_json_str(lease, inner, "boot_id", true, &grant->lease_boot_id, err);
	if (r == 0)
		r = gs_json_uint(lease, inner, "deadline_ms", true, &grant->lease_deadline_ms, err);
	return r;
}

static int parse(const json_t *obj, const char *where, struct gs_grant *grant, struct gs_err *err)
{
	static const char *const known[] = { "v",     "kind",	 "state", "resource",
					     "cards", "sources", "free",  "devices",
					     "to",    "lease",	 NULL };
	int kind = 0, state = 0, r = gs_json_known(obj, where, known, err);
	uint64_t v = 0;

	if (r == 0)
		r = gs_json_uint(obj, where, "v", true, &v, err);
	if (r == 0 && v != GS_GRANT_VERSION)
		r = gs_err_set(err, EINVAL, "%s: v is %llu, and this version reads %d", where,
			       (unsigned long long)v, GS_GRANT_VERSION);
	if (r == 0)
		r = gs_json_enum(obj, where, "kind", true, kinds, &kind, err);
	if (r == 0)
		r = gs_json_enum(obj, where, "state", true, states, &state, err);
	if (r == 0)
		r = gs_json_str(obj, where, "resource", false, &grant->resource, err);
	if (r == 0)
		r = gs_json_strv(obj, where, "cards", false, &grant->cards, err);
	if (r == 0)
		r = gs_json_strv(obj, where, "free", false, &grant->free, err);
	if (r == 0)
		r = gs_json_strv(obj, where, "devices", false, &grant->devices, err);
	if (r == 0 && grant->free.n && kind != GS_GRANT_SPOT)
		r = gs_err_set(err, EINVAL, "%s: only a spot grant has free cards", where);
	grant->kind = (enum gs_grant_kind)kind;
	grant->revoked = state == 1;
	if (r == 0)
		r = parse_names(obj, where, grant, err);
	return r < 0 ? r : parse_lease(obj, where, grant, err);
}

int grant_parse(const char *name, const char *text, size_t len, struct gs_grant *ret,
		struct gs_err *err)
{
	cleanup_grant struct gs_grant grant = { 0 };
	struct grant_label label = grant_label(name);
	cleanup_json json_t *obj = NULL;
	struct gs_err own;
	int r;

	if (!err)
		err = &own;
	r = gs_json_parse(label.s, text, len, &obj, err);
	if (r == 0)
		r = parse(obj, label.s, &grant, err);
	if (r < 0)
		return r;
	(void)snprintf(grant.name, sizeof(grant.name), "%s", name);
	*ret = grant;
	grant = (struct gs_grant){ 0 };
	return 0;
}

static void add_list(struct gs_buf *out, const char *key, const struct gs_strv *list)
{
	gs_buf_addf(out, ",\"%s\":[", key);
	for (size_t i = 0; i < list->n; i++) {
		if (i > 0)
			gs_buf_addc(out, ',');
		gs_buf_add_json(out, list->v[i]);
	}
	gs_buf_addc(out, ']');
}

void grant_format(const struct gs_grant *grant, struct gs_buf *out)
{
	cleanup_strv struct gs_strv sources = { 0 };

	for (size_t i = 0; i < grant->n_sources; i++)
		gs_strv_take(&sources, gs_identity_text(&grant->sources[i]));
	gs_buf_addf(out, "{\"v\":%d,\"kind\":\"%s\",\"state\":\"%s\"", GS_GRANT_VERSION,
		    kinds[grant->kind], states[grant->revoked]);
	if (grant->resource) {
		gs_buf_adds(out, ",\"resource\":");
		gs_buf_add_json(out, grant->resource);
	}
	add_list(out, "cards", &grant->cards);
	add_list(out, "sources", &sources);
	if (grant->free.n)
		add_list(out, "free", &grant->free);
	if (grant->devices.n)
		add_list(out, "devices", &grant->devices);
	if (gs_identity_is_set(&grant->to)) {
		cleanup_free char *to = gs_identity_text(&grant->to);

		gs_buf_adds(out, ",\"to\":");
		gs_buf_add_json(out, to);
	}
	if (grant->kind == GS_GRANT_SPOT) {
		gs_buf_adds(out, ",\"lease\":{\"boot_id\":");
		gs_buf_add_json(out, grant->lease_boot_id ? grant->lease_boot_id : "");
		gs_buf_addf(out, ",\"deadline_ms\":%llu}",
			    (unsigned long long)grant->lease_deadline_ms);
	}
	gs_buf_adds(out, "}\n");
}

int gs_grant_read(const char *lib_dir, const char *name, struct gs_grant *ret, struct gs_err *err)
{
	cleanup_free char *text = NULL;
	cleanup_close int dir = grant_open_dir(lib_dir, name, false, err);
	size_t len = 0;
	int r;

	if (dir == -ENOENT)
		return gs_err_set(err, ENOENT, "no such %s", grant_label(name).s);
	if (dir < 0)
		return dir;
	r = grant_read_file(dir, name, GRANT_FILE, &text, &len, err);
	if (r == -ENOENT)
		return gs_err_set(err, ENOENT, "no such %s", grant_label(name).s);
	return r < 0 ? r : grant_parse(name, text, len, ret, err);
}

int gs_grant_in_force(const struct gs_grant *grant, struct gs_err *err)
{
	char boot[37];
	int r;

	if (grant->revoked && grant->kind == GS_GRANT_SHARE)
		return gs_err_set(err, ECANCELED, "%s was revoked", grant_label(grant->name).s);
	if (grant->kind == GS_GRANT_SHARE)
		return 0;
	r = gs_boot_id(boot, err);
	if (r < 0)
		return r;
	/* A lease of an earlier boot says nothing about this boot's clock. */
	if (grant->revoked || !grant->lease_boot_id || strcmp(boot, grant->lease_boot_id) != 0 ||
	    gs_boottime_ms() >= grant->lease_deadline_ms)
		return gs_err_set(err, ECANCELED, "the GPU was reclaimed by its holder");
	return 0;
}

bool gs_grant_has_source(const struct gs_grant *grant, const struct gs_identity *source)
{
	for (size_t i = 0; i < grant->n_sources; i++)
		if (gs_identity_equal(&grant->sources[i], source))
			return true;
	return false;
}
