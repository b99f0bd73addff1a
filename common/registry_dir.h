/* SPDX-License-Identifier: Apache-2.0 */
/* What the registry's source files share: names of files and the lock. No part of the interface. */
#ifndef GPUSHARE_COMMON_REGISTRY_DIR_H
#define GPUSHARE_COMMON_REGISTRY_DIR_H

#include "common/registry.h"
#include "gpushare/registry.h"

/* Long enough for a valid container id and every ending; id_file() checks nothing. */
#define REG_NAME_MAX 256
struct reg_name {
	char s[REG_NAME_MAX];
};

#define REG_RECORD ".json"
#define REG_HOOK ".hook.json"
#define REG_NEXT ".next"

/* "<id><ending>". */
struct reg_name reg_file(const char *id, const char *ending);

/*
 * Reads the record of @id in the open folder containers/ (@run_dir is for messages). Errors as
 * gs_registry_read().
 */
int reg_read(int containers, const char *run_dir, const char *id, struct gs_record *ret,
	     struct gs_err *err);

/* As gs_registry_remove(), in the open folder; @record is what to remove, NULL: unknown. */
void reg_remove(const char *run_dir, int containers, const char *id,
		const struct gs_record *record);

/* Removes the entry of @id under @name, and the folder of the name if it is empty then. */
void reg_forget_name(const char *run_dir, const struct gs_identity *name, const char *id);

/*
 * Locks the folder deleted/ as long as the descriptor given is open, so that a sweep and a create
 * of the same id do not mix. -ENOENT: nothing is marked, nothing to lock. -EBUSY: somebody held it
 * for all of @wait_ms.
 */
int reg_lock(const char *run_dir, unsigned int wait_ms);

#endif
