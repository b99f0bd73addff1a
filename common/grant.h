/* SPDX-License-Identifier: Apache-2.0 */
/* Grants: read, check, bind, write (include/gpushare/grant.h has the files). */
#ifndef GPUSHARE_COMMON_GRANT_H
#define GPUSHARE_COMMON_GRANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/err.h"
#include "common/identity.h"

enum gs_grant_kind { GS_GRANT_SHARE, GS_GRANT_SPOT };

struct gs_grant {
	char name[33];
	enum gs_grant_kind kind;
	bool revoked;
	char *resource; /* may be NULL */
	struct gs_strv cards;
	struct gs_identity *sources;
	size_t n_sources;
	struct gs_strv free; /* those of the cards that have no source; spot only */
	struct gs_strv devices; /* the resource's, as the kubelet calls them */
	struct gs_identity to; /* unset: whoever binds it first */
	char *lease_boot_id; /* spot only */
	uint64_t lease_deadline_ms; /* CLOCK_BOOTTIME */
};

/* Frees what @grant holds. */
void gs_grant_free(struct gs_grant *grant);
#define cleanup_grant __attribute__((cleanup(gs_grant_free)))

/* Exactly 32 lower-case hex digits? Only such a name may become a file name. */
bool gs_grant_name_valid(const char *name);

/* The first six characters and dots: a grant's name is a secret, messages never hold it whole. */
const char *gs_grant_short(const char *name, char buf[10]);

/*
 * Reads lib_dir/grants/<name>.json. The folder must be root's with mode 0700; the file regular,
 * root's, not writable by others, at most 64 KiB, no symbolic link. -EINVAL: the name or the file
 * is malformed; -ENOENT: no such grant; -EPERM: not root's alone.
 */
int gs_grant_read(const char *lib_dir, const char *name, struct gs_grant *ret, struct gs_err *err);

/*
 * Is the grant in force: not revoked and, for a spot grant, its lease of this boot and not run out?
 * -ECANCELED with "the GPU was reclaimed by its holder", or "was revoked" for a share grant.
 */
int gs_grant_in_force(const struct gs_grant *grant, struct gs_err *err);

/* Does the grant name this source? */
bool gs_grant_has_source(const struct gs_grant *grant, const struct gs_identity *source);

/* Who uses a grant: with a CRI identity pod UID and container name, else the container's id. */
struct gs_grant_user {
	const char *pod_uid, *container; /* both or neither */
	const char *container_id;
};

/* The user of those; all but @container_id may be NULL or unset. Borrows the strings. */
struct gs_grant_user gs_grant_user_of(const char *pod_uid, const struct gs_identity *id,
				      const char *container_id);

/*
 * Binds the grant to @user at its first use (O_EXCL), or checks that it is bound to the same one.
 * -EACCES: bound to another; the message does not say to whom.
 */
int gs_grant_bind(const char *lib_dir, const char *name, const struct gs_grant_user *user,
		  struct gs_err *err);

/* As gs_grant_bind(), but never binds: -ENOENT where it is not bound at all. */
int gs_grant_bound(const char *lib_dir, const char *name, const struct gs_grant_user *user,
		   struct gs_err *err);

/*
 * The UID of the pod that it is bound to; the caller frees. NULL: it is bound to none, or to a
 * container that is of no pod.
 */
int gs_grant_bound_pod(const char *lib_dir, const char *name, char **ret_uid, struct gs_err *err);

/* Is it bound to anybody? */
bool gs_grant_is_bound(const char *lib_dir, const char *name);

/* A name that nobody can guess, for gs_grant_create_as(). */
int gs_grant_name_new(char ret_name[33], struct gs_err *err);

/*
 * Writes the grant @name, which was told to somebody before it was there. -EEXIST: it is there, in
 * whatever state; else as gs_grant_create().
 */
int gs_grant_create_as(const char *lib_dir, const char *name, const struct gs_grant *grant,
		       struct gs_err *err);

/*
 * Writes a new grant with a random name (getrandom(2)) and gives the name. @resource may be NULL,
 * @to unset; a spot grant has its lease. The folder is made where it is missing.
 */
int gs_grant_create(const char *lib_dir, const struct gs_grant *grant, char ret_name[33],
		    struct gs_err *err);

/* Rewrites the grant with state "revoked". */
int gs_grant_revoke(const char *lib_dir, const char *name, struct gs_err *err);

/*
 * Removes the grant and its binding, if nothing was written to it for @age_s seconds; else -EAGAIN.
 * Who uses it then is told that there is no such grant.
 */
int gs_grant_remove(const char *lib_dir, const char *name, unsigned int age_s, struct gs_err *err);

/*
 * Gives a spot grant a lease of this boot until CLOCK_BOOTTIME @deadline_ms. -ECANCELED: it was
 * revoked, which nothing undoes; -EINVAL: it is no spot grant.
 */
int gs_grant_renew(const char *lib_dir, const char *name, const char *boot_id, uint64_t deadline_ms,
		   struct gs_err *err);

/* All grants' names, for listing. */
int gs_grant_list(const char *lib_dir, struct gs_strv *ret, struct gs_err *err);

/*
 * Was what the kubelet gave of @resource's @devices taken back? 1: a grant of one of them was
 * revoked, and none of them holds; 0: no. Else why some grant can't be read.
 */
int gs_grant_taken_back(const char *lib_dir, const char *resource, const struct gs_strv *devices,
			struct gs_err *err);

#endif
