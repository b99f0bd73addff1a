/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of containers (include/gpushare/registry.h has the files). */
#ifndef GPUSHARE_COMMON_REGISTRY_H
#define GPUSHARE_COMMON_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/buf.h"
#include "common/err.h"
#include "common/identity.h"

/* What is larger than this is no record of ours. */
#define GS_RECORD_MAX (4 * 1024 * 1024)

enum gs_record_role { GS_ROLE_HOLDER, GS_ROLE_TARGET, GS_ROLE_BORROWER };

/* What the runtime knew at create. Strings are its own; NULL where it does not apply. */
struct gs_record {
	char *id, *bundle, *pid_file;
	struct gs_identity identity;
	char *sandbox_id, *pod_uid;
	char *annotations; /* JSON object text: ours only */
	enum gs_record_role role;
	char *next; /* path of the next runtime */
	char *root; /* its --root: ids are unique only in there */
	char *cgroups_path; /* the spec's linux.cgroupsPath */
	char *boot_id;
	uint64_t start_ticks; /* when the record was made */
	uint64_t deadline_ms; /* CLOCK_BOOTTIME; 0: none */
	char *grant;
	struct gs_strv sources; /* ids of the containers it received from */
	bool shared_pid; /* its spec joins another's PID namespace */
	char *spec; /* vendor slice as JSON text in the shape of config.json */
	size_t spec_len;
};

/* What the hook saw. */
struct gs_hook_record {
	pid_t pid;
	uint64_t start_ticks;
	uint64_t pid_ns;
	char *cgroup;
};

/* Free what they hold. */
void gs_record_free(struct gs_record *record);
void gs_hook_record_free(struct gs_hook_record *record);
#define cleanup_record __attribute__((cleanup(gs_record_free)))
#define cleanup_hook_record __attribute__((cleanup(gs_hook_record_free)))

/*
 * Writes the record with its by-name entry and the link to the next runtime, making folders that
 * are missing; on an error none of them stays. What an earlier container of the same id left (hook
 * record, deletion mark, another name's entry) goes. -EEXIST: a container of this id still lives
 * (see gs_registry_alive()), and its record stays: the next runtime will refuse the new one.
 * -EINVAL: the record could not be read back.
 */
int gs_registry_write(const char *run_dir, const struct gs_record *record, struct gs_err *err);

/* Reads the record of @id. -ENOENT: none; -EINVAL: damaged (the message names file and member). */
int gs_registry_read(const char *run_dir, const char *id, struct gs_record *ret,
		     struct gs_err *err);

/* The hook's own file. */
int gs_registry_write_hook(const char *run_dir, const char *id, const struct gs_hook_record *hook,
			   struct gs_err *err);
int gs_registry_read_hook(const char *run_dir, const char *id, struct gs_hook_record *ret,
			  struct gs_err *err);

/*
 * The next runtime's path recorded for @id as it was created below @root (the value of --root;
 * NULL: none given). NULL where there is none, or only another root's container
 * of the same id. The caller frees.
 */
char *gs_registry_next(const char *run_dir, const char *id, const char *root);

/*
 * Removes what a container of that id has left, unless it lives. For a container that gets no
 * record of its own: it may have the pid file and cgroup by which the old record would count as
 * alive. Nothing there costs one access(2).
 */
void gs_registry_drop_dead(const char *run_dir, const char *id);

/* Marks @id as deleted. Where it has no record, what else is left of it goes at once. */
int gs_registry_mark_deleted(const char *run_dir, const char *id, struct gs_err *err);

/* Is @id marked as deleted? */
bool gs_registry_marked(const char *run_dir, const char *id);

/* Removes everything about @id. What is missing is no error. */
void gs_registry_remove(const char *run_dir, const char *id);

/*
 * Removes at most @max marked containers whose processes are gone. Where that can't be told now
 * (see gs_err_is_scarce()), they are not.
 */
void gs_registry_sweep(const char *run_dir, unsigned int max);

/*
 * Is the container running? By the hook's record: that pid with that start time. Without one: the
 * pid file's process, started not before the record was made, in a cgroup at or below the spec's.
 * 0 and the pid (if @ret_pid is not NULL), or -ESRCH with what is missing. Another error: that
 * can't be told now (see gs_err_is_scarce()).
 */
int gs_registry_alive(const char *run_dir, const struct gs_record *record, pid_t *ret_pid,
		      struct gs_err *err);

/*
 * Calls @each for every record of that name, live or not, in no order, until it gives non-zero
 * (which is then given back). Records that can't be read are skipped and counted in *ret_broken.
 * Cost does not depend on how many other containers there are.
 */
int gs_registry_each_named(const char *run_dir, const struct gs_identity *name,
			   int (*each)(const struct gs_record *record, void *arg), void *arg,
			   unsigned int *ret_broken);

/* The ids of all records, sorted. No registry yet: an empty list. */
int gs_registry_ids(const char *run_dir, struct gs_strv *ret, struct gs_err *err);

/* "holder", "target", "borrower". */
const char *gs_role_name(enum gs_record_role role);

#endif
